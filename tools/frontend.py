"""Installs the front end's development tools with npm, into widgets/frontend/node_modules, for `make check` and `make test`.

A complete installation is kept; an interrupted one is repeated.  Standard library only; parses on Python 3.8.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "widgets" / "frontend"
#: the list of installed packages, which npm writes last
INSTALLED = "node_modules/.package-lock.json"


def is_installed(folder: Path = FOLDER) -> bool:
    """Whether all packages that are not optional are installed in the versions of the lock file."""
    if not (folder / INSTALLED).is_file():
        return False
    wanted = json.loads((folder / "package-lock.json").read_text())["packages"]
    installed = json.loads((folder / INSTALLED).read_text())["packages"]
    needed = {name: package["version"] for name, package in wanted.items() if name and not package.get("optional")}
    return all(installed.get(name, {}).get("version") == version for name, version in needed.items())


def ensure(environ: dict[str, str], folder: Path = FOLDER) -> str | None:
    """Install the tools unless they are installed; returns why that failed, or None."""
    if is_installed(folder):
        return None
    npm = shutil.which("npm", path=environ.get("PATH"))
    if npm is None:
        return "npm is missing"
    done = subprocess.run([npm, "ci"], cwd=str(folder), env=environ, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith(("npm error", "npm ERR!"))]
        return "npm ci failed: " + (lines[0].partition(" ")[2] if lines else f"exit status {done.returncode}")
    return None
