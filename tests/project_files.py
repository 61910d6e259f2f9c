"""Which files belong to the project: what git tracks or, in an unpacked archive, what lies there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NOT_OURS = {".git", ".venv", "build", "dist", "__pycache__", "node_modules", ".ipynb_checkpoints", ".hypothesis"}


def project_files(root: Path) -> list[str]:
    """Paths relative to `root`, with forward slashes, of files that exist."""
    if (root / ".git").exists():
        done = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True)
        if done.returncode == 0:
            return [name for name in done.stdout.split("\0") if name and (root / name).is_file()]
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in NOT_OURS and not f.endswith((".egg-info", "_cache"))]
        found += [(Path(folder) / f).relative_to(root).as_posix() for f in files]
    return found


def pyproject(root: Path) -> dict[str, Any]:
    """What stands in pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text())


def copy_project(root: Path, to: Path) -> Path:
    """A copy of the project, in which a build can write without another test's seeing it."""
    for name in project_files(root):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, to / name)
    return to
