"""Python in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def python(*arguments: str | Path, folder: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in this folder, with these environment variables beside those that there are."""
    command, environment = [sys.executable, *map(str, arguments)], {**os.environ, **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=600)


def printed_by(*arguments: str | Path, folder: Path | None = None, **variables: str) -> str:
    """What a run that succeeds prints."""
    done = python(*arguments, folder=folder, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
