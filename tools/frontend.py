"""The front end's development tools: installed by npm into widgets/frontend/node_modules, run by `make test`.

As for `.venv`, a stamp that is written last says what is installed: an interrupted installation is repeated, a finished
one is not.  Standard library only; parses on Python 3.8.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "widgets" / "frontend"
STAMP = "dynascope-installed"
#: these decide what is installed
MANIFESTS = ("package.json", "package-lock.json", ".npmrc")


def stamp(folder: Path = FOLDER) -> str:
    """What the stamp says once everything is installed."""
    digest = hashlib.sha256()
    for name in MANIFESTS:
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()


def is_installed(folder: Path = FOLDER) -> bool:
    """Whether the tools that the manifests name are installed."""
    path = folder / "node_modules" / STAMP
    return path.is_file() and path.read_text() == stamp(folder)


def ensure(environ: dict[str, str], folder: Path = FOLDER) -> str | None:
    """Install the tools unless they are there; why they cannot be, or None."""
    if is_installed(folder):
        return None
    npm = shutil.which("npm", path=environ.get("PATH"))
    if npm is None:
        return "npm is missing"
    done = subprocess.run([npm, "ci"], cwd=str(folder), env=environ, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith(("npm error", "npm ERR!"))]
        return "npm ci failed: " + (lines[0].partition(" ")[2] if lines else f"exit status {done.returncode}")
    (folder / "node_modules" / STAMP).write_text(stamp(folder))
    return None
