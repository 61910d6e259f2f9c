"""Make and keep `.venv`: pinned versions, resumable, closed to the machine's other Python set-ups.

The stamp is written last, so an interrupted installation is resumed by the next run, and it is keyed
on everything that decides what gets installed, so a finished one is not repeated.
Standard library only; parses on Python 3.8.
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

#: what would let another installation's packages, kernels or settings into ours
LEAKS = (
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV",
    "JUPYTER_PATH", "JUPYTER_CONFIG_PATH", "JUPYTERLAB_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR",
    "JUPYTER_PREFER_ENV_PATH", "IPYTHONDIR", "MYPYPATH", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "TORCH_LOGS", "TORCH_TRACE",
    "TORCH_COMPILE_DEBUG", "TORCHDYNAMO_DISABLE", "PYTORCH_JIT",
)  # fmt: skip


def isolated(environ: dict[str, str], build: Path, venv: Path) -> dict[str, str]:
    """`environ` without the leaks, and with every Jupyter folder under `build`."""
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
    """Where an environment keeps its programs."""
    return venv / ("Scripts" if os.name == "nt" else "bin")


def interpreter(venv: Path) -> Path:
    """The environment's Python."""
    return scripts(venv) / ("python.exe" if os.name == "nt" else "python")


def key(torch: str, root: Path) -> str:
    """Changes when anything changes that decides what gets installed."""
    digest = hashlib.sha256()
    for text in (torch, "{}.{}".format(*sys.version_info[:2]), str(root)):
        digest.update(text.encode() + b"\0")
    digest.update((root / CONSTRAINTS).read_bytes() + b"\0")
    digest.update(what_to_install((root / "pyproject.toml").read_text(encoding="utf-8")).encode())
    return f"torch {torch} {digest.hexdigest()}"


def what_to_install(pyproject: str) -> str:
    """The sections of pyproject.toml that an installation depends on: not those of the checks."""
    kept = []
    inside = True
    for line in pyproject.splitlines():
        if line.startswith("["):
            inside = line.lstrip("[").startswith(("build-system", "project", "tool.setuptools"))
        if inside:
            kept.append(line)
    return "\n".join(kept)


def is_ready(venv: Path, torch: str, root: Path = ROOT) -> bool:
    """Whether the environment is complete, and for these pins."""
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
    """What pip is told, in order: torch first, because a bare `torch` may be another one."""
    pins = ["-c", CONSTRAINTS]
    extra = os.environ.get("TORCH_INDEX", "")
    index = ["--index-url", extra] if extra else []
    return [
        (f"torch {torch} (a large download, where it is not cached)", [*index, f"torch=={torch}"]),
        # with torch named, pip takes a setuptools that this torch allows
        ("the build tools", [*pins, f"torch=={torch}", "setuptools>=77"]),
        ("dynascope and its tools", [*pins, f"torch=={torch}", "--no-build-isolation", "-e", ".[test,docs]"]),
    ]


def ensure(venv: Path, torch: str = TORCH, root: Path = ROOT) -> bool:
    """Make the environment ready; True where there was something to do.

    Raises SystemExit with pip's exit status, in one line, where a step fails.
    """
    if is_ready(venv, torch, root):
        return False
    stamp = venv / STAMP
    if stamp.exists():
        stamp.unlink()
    if not is_sound(venv):
        if venv.exists():
            say(f"{venv.name} is half made or of another Python: starting afresh")
            shutil.rmtree(str(venv))
        say("making {} with Python {}.{}".format(venv, *sys.version_info[:2]))
        run([sys.executable, "-m", "venv", str(venv)], root, dict(os.environ))
    environ = isolated(dict(os.environ), root / "build", venv)
    for what, arguments in steps(torch):
        say(f"installing {what}")
        # not --quiet: the downloads take minutes, and pip shows how far they are
        pip = [str(interpreter(venv)), "-m", "pip", "install", "--disable-pip-version-check"]
        run([*pip, *arguments], root, environ)
    stamp.write_text(key(torch, root) + "\n")
    say(f"{venv.name} is ready")
    if root.name == "dynascope":
        say(f"run Python elsewhere than in {root.parent}: there this folder stands in the way of `import dynascope`")
    return True


def run(command: list[str], root: Path, environ: dict[str, str]) -> None:
    """Run one step of the installation, or stop with a line that says how to go on."""
    status = subprocess.call(command, cwd=str(root), env=environ)
    if status:
        say("failed: {}".format(" ".join(command)))
        say("what was installed so far is kept; the same make command goes on from here")
        raise SystemExit(status)


def say(text: str) -> None:
    """A line of progress."""
    print("setup: " + text, flush=True)
