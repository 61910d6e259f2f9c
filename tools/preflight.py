"""Checks the machine before anything is installed, and names each missing thing with a one-line cure.

This file runs under the machine's Python, so it needs the standard library only and parses on Python 3.8.  `check(task)`
returns Findings and changes nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

OLDEST, NEWEST = (3, 10), (3, 14)
ROOT = Path(__file__).resolve().parent.parent
#: free disk space for torch and all tools, in GB: with a CPU build (from TORCH_INDEX), and with PyPI's CUDA build
GIGABYTES, GIGABYTES_CUDA = 4.0, 6.5
#: tasks that work without a C++ compiler, with a backend that generates no code
WITHOUT_COMPILER = ("check", "demo", "lab", "docs")


class Finding:
    """One missing thing.  `fatal`: whether the task cannot run without it."""

    def __init__(self, what: str, cure: str, fatal: bool = True) -> None:
        self.what = what
        self.cure = cure
        self.fatal = fatal

    def __str__(self) -> str:
        word = "missing" if self.fatal else "note"
        return f"preflight: {word}: {self.what}\n           cure: {self.cure}"


def has_apt() -> bool:
    """Whether this process can install system packages with apt-get."""
    return bool(shutil.which("apt-get")) and hasattr(os, "geteuid") and os.geteuid() == 0


def system_cure(apt: str, brew: str, other: str) -> str:
    """A line on how to install something with this machine's package manager."""
    if shutil.which("apt-get"):
        if has_apt():
            return f"apt-get install {apt}"
        return f"sudo apt-get install {apt}" if shutil.which("sudo") else f"as root: apt-get install {apt}"
    if sys.platform == "darwin":
        return brew
    return other


def python_finding(version: tuple[int, int]) -> Finding | None:
    """Finding if dynascope is not tested with this Python; a newer one may work if torch has wheels for it."""
    if OLDEST <= version <= NEWEST:
        return None
    names = "{}.{} to {}.{}".format(*OLDEST, *NEWEST)
    return Finding(
        "Python {} (this is {}.{})".format(names, *version),
        "install one of them, then: make PYTHON=/path/to/python3.11 ...",
        fatal=version < OLDEST,
    )


def venv_finding(python: str) -> Finding | None:
    """Finding if venv or ensurepip is missing; without ensurepip, `python -m venv` leaves an incomplete environment."""
    done = subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True)
    if done.returncode == 0:
        return None
    version = "{}.{}".format(*sys.version_info[:2])
    return Finding(
        "the venv module with ensurepip",
        system_cure(f"python{version}-venv", "brew install python", "install the package python3-venv (or python3-pip)"),
    )


def disk_finding(folder: Path, needed: float | None = None) -> Finding | None:
    """Finding if the project's disk lacks space for downloads, environment and compiled kernels; `needed` is in GB."""
    cuda = sys.platform == "linux" and not os.environ.get("TORCH_INDEX")
    if needed is None:
        needed = GIGABYTES_CUDA if cuda else GIGABYTES
    free = shutil.disk_usage(str(folder)).free / 1e9
    if free >= needed:
        return None
    return Finding(
        f"{needed:g} GB of free disk space (there are {free:.1f} GB)",
        f"free some space on the disk of {folder}" + (", or set TORCH_INDEX to an index of CPU builds" if cuda else ""),
    )


def compiler() -> str | None:
    """A C++ compiler for Inductor, or None."""
    return shutil.which(os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++"))


def compiler_finding(fatal: bool) -> Finding | None:
    """Finding if a C++ file that includes Python.h cannot be compiled, as Inductor does on the CPU."""
    found = compiler()
    version = "{}.{}".format(*sys.version_info[:2])
    cure = system_cure(f"g++ python{version}-dev", "xcode-select --install", "install g++ and the Python headers")
    suffix = "" if fatal else " (continuing with the backend aot_eager, which compiles no C++)"
    if found is None:
        return Finding("a C++ compiler for Inductor" + suffix, cure, fatal)
    include = sysconfig.get_paths()["include"]
    if not (Path(include) / "Python.h").is_file():
        return Finding(f"Python.h for Inductor (looked in {include}){suffix}", cure, fatal)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text("#include <Python.h>\n#include <vector>\nint main() { return 0; }\n")
        done = subprocess.run([found, "-fsyntax-only", "-I" + include, str(source)], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines() or ["no message"]
    return Finding(f"a working C++ compiler ({found} says: {lines[0]}){suffix}", cure, fatal)


def can_compile() -> bool:
    """Whether Inductor will be able to build its C++ here."""
    return compiler_finding(fatal=False) is None


def node_finding(under_ci: bool) -> Finding | None:
    """Finding if node or npm is missing; the front end's checks are then left out, which is an error under CI."""
    if shutil.which("node") and shutil.which("npm"):
        return None
    return Finding(
        "node and npm, for the checks of the front end" + ("" if under_ci else " (left out)"),
        system_cure("nodejs npm", "brew install node", "install node 20 or newer, which includes npm"),
        fatal=under_ci,
    )


def under_ci() -> bool:
    """Whether this runs under CI (services set `CI`), where no check may be left out."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def check(task: str, root: Path = ROOT, installed: bool = False) -> list[Finding]:
    """What is missing for `task`; `installed`: the environment exists, so disk space and venv are not checked.

    The browser is not checked here: `tools/browser.py` finds or installs one.
    """
    findings = [python_finding((sys.version_info[0], sys.version_info[1]))]
    if not installed:
        findings += [venv_finding(sys.executable), disk_finding(root)]
    findings.append(compiler_finding(fatal=task not in WITHOUT_COMPILER))
    if task in ("check", "test", "test-all"):
        findings.append(node_finding(under_ci()))
    return [f for f in findings if f is not None]
