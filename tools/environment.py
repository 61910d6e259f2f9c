"""Makes `.venv`, with pinned versions and isolated from the machine's other Python installations.

A stamp is written last, so the next run resumes an interrupted installation.  The stamp has a hash of the versions of torch and
Python, the checkout's path, the pins and the sections of pyproject.toml that describe the package; a complete installation is
kept until one of these changes.  Standard library only; parses on Python 3.8.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TORCH = "2.13.0"
CONSTRAINTS = "binder/constraints.txt"
STAMP = "dynascope-installed"

#: environment variables that would bring in packages, kernels or settings from outside
LEAKS = (
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV",
    "JUPYTER_PATH", "JUPYTER_CONFIG_PATH", "JUPYTERLAB_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR",
    "JUPYTER_PREFER_ENV_PATH", "IPYTHONDIR", "MYPYPATH", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "TORCH_LOGS", "TORCH_TRACE",
    "TORCH_COMPILE_DEBUG", "TORCHDYNAMO_DISABLE", "PYTORCH_JIT",
)  # fmt: skip


def isolated(environ: dict[str, str], build: Path, venv: Path) -> dict[str, str]:
    """`environ` for `venv`: the variables in `LEAKS` removed or set anew, the folders of Jupyter and Inductor in `build`."""
    clean = {k: v for k, v in environ.items() if k not in LEAKS}
    jupyter = build / "jupyter"
    clean.update(
        PYTHONNOUSERSITE="1",
        VIRTUAL_ENV=str(venv),
        PATH=str(scripts(venv)) + os.pathsep + environ.get("PATH", os.defpath),
        JUPYTER_CONFIG_DIR=str(jupyter / "config"),
        JUPYTER_DATA_DIR=str(jupyter / "data"),
        JUPYTER_RUNTIME_DIR=str(jupyter / "runtime"),
        JUPYTER_PREFER_ENV_PATH="1",
        JUPYTER_PLATFORM_DIRS="1",
        IPYTHONDIR=str(jupyter / "ipython"),
        TORCHINDUCTOR_CACHE_DIR=str(build / "inductor"),
    )
    return clean


def scripts(venv: Path) -> Path:
    """The folder with an environment's programs."""
    return venv / ("Scripts" if os.name == "nt" else "bin")


def interpreter(venv: Path) -> Path:
    """The environment's Python."""
    return scripts(venv) / ("python.exe" if os.name == "nt" else "python")


def key(torch: str, root: Path) -> str:
    """The text of the stamp; it depends on the versions of torch and Python, `root`, the pins and `what_to_install`.

    It does not depend on TORCH_INDEX, so that a command without this variable keeps the torch that was installed with it.
    """
    digest = hashlib.sha256()
    for text in (torch, "{}.{}".format(*sys.version_info[:2]), str(root)):
        digest.update(text.encode() + b"\0")
    digest.update((root / CONSTRAINTS).read_bytes() + b"\0")
    digest.update(what_to_install((root / "pyproject.toml").read_text(encoding="utf-8")).encode())
    return f"torch {torch} {digest.hexdigest()}"


def what_to_install(pyproject: str) -> str:
    """The sections of pyproject.toml that an installation depends on, without those for checks."""
    kept = []
    inside = True
    for line in pyproject.splitlines():
        if line.startswith("["):
            inside = line.lstrip("[").startswith(("build-system", "project", "tool.setuptools"))
        if inside:
            kept.append(line)
    return "\n".join(kept)


def is_ready(venv: Path, torch: str, root: Path = ROOT) -> bool:
    """Whether the environment is complete and up to date."""
    stamp = venv / STAMP
    return stamp.is_file() and stamp.read_text().strip() == key(torch, root) and interpreter(venv).exists()


def is_sound(venv: Path) -> bool:
    """Whether the environment, finished or not, has a Python of the right version with pip."""
    if not (venv / "pyvenv.cfg").is_file() or not interpreter(venv).exists():
        return False
    probe = "import pip, sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([str(interpreter(venv)), "-c", probe], capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.strip() == "{}.{}".format(*sys.version_info[:2])


def steps(torch: str) -> list[tuple[str, list[str]]]:
    """The installations in order, as (what is installed, arguments for pip); torch first, so that pip takes no other torch."""
    pins = ["-c", CONSTRAINTS]
    extra = os.environ.get("TORCH_INDEX", "")
    index = ["--index-url", extra] if extra else []
    return [
        (f"torch {torch} (a large download, where it is not cached)", [*index, f"torch=={torch}"]),
        # torch is named again so that pip chooses a setuptools that this torch allows
        ("the build tools", [*pins, f"torch=={torch}", "setuptools>=77"]),
        ("dynascope and its tools", [*pins, f"torch=={torch}", "--no-build-isolation", "-e", ".[test,docs]"]),
    ]


def ensure(venv: Path, torch: str = TORCH, root: Path = ROOT) -> bool:
    """Make the environment ready; returns whether anything was installed.

    Raises SystemExit with the exit status of a step that fails.
    """
    if is_ready(venv, torch, root):
        return False
    stamp = venv / STAMP
    if stamp.exists():
        stamp.unlink()
    if not is_sound(venv):
        if venv.exists():
            say(f"{venv.name} is incomplete or has another Python: creating it anew")
            shutil.rmtree(str(venv))
        say("making {} with Python {}.{}".format(venv, *sys.version_info[:2]))
        run([sys.executable, "-m", "venv", str(venv)], root, dict(os.environ))
    environ = isolated(dict(os.environ), root / "build", venv)
    for what, arguments in steps(torch):
        say(f"installing {what}")
        # not --quiet: the downloads take minutes, and pip shows their progress
        pip = [str(interpreter(venv)), "-m", "pip", "install", "--disable-pip-version-check"]
        run([*pip, *arguments], root, environ)
    stamp.write_text(key(torch, root) + "\n")
    say(f"{venv.name} is ready")
    if root.name == "dynascope":
        say(f"run Python elsewhere than in {root.parent}: there this folder stands in the way of `import dynascope`")
    return True


def run(command: list[str], root: Path, environ: dict[str, str]) -> None:
    """Run one step of the installation; if it fails, exit with a line that says how to continue."""
    status = subprocess.call(command, cwd=str(root), env=environ)
    if status:
        say("failed: {}".format(" ".join(command)))
        say("what is installed so far is kept; run the same make command again to continue")
        raise SystemExit(status)


def say(text: str) -> None:
    """Print a line of progress."""
    print("setup: " + text, flush=True)
