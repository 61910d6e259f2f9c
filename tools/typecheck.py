"""Run mypy on `dynascope` as users get it: one package, put together from its three folders.

mypy follows neither the package-dir mapping nor an editable installation, so the folders are copied to
build/typecheck/dynascope (as pyproject.toml maps them) and its messages are turned back to the real paths.

    python -m tools.typecheck
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "typecheck"


def folders(root: Path = ROOT) -> dict[str, str]:
    """Package to folder, from pyproject.toml (read line by line: tomllib is not in Python 3.10)."""
    found = {}
    inside = False
    for line in (root / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            inside = line.strip() == "[tool.setuptools.package-dir]"
        elif inside and "=" in line:
            package, _, folder = (part.strip().strip("\"'") for part in line.partition("="))
            found[package] = folder
    return found


def assemble(root: Path, target: Path) -> dict[str, str]:
    """Copy the packages below `target`; returns copied path to real path, both relative."""
    shutil.rmtree(target, ignore_errors=True)
    real = {}
    for package, folder in folders(root).items():
        place = target / package.replace(".", "/")
        shutil.copytree(root / folder, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        real[place.relative_to(target).as_posix() + "/"] = folder + "/"
    return real


def main() -> int:
    """mypy's exit status."""
    real = assemble(ROOT, COPY)
    up = os.path.relpath(ROOT, COPY) + os.sep  # the tools are checked where they lie
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--config-file", str(ROOT / "pyproject.toml")]
    environ = {
        **os.environ,
        "MYPYPATH": os.pathsep.join([str(COPY), str(ROOT)]),
        "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache"),
    }
    done = subprocess.run(
        [*command, "-p", "dynascope", "-p", "tools"], cwd=str(COPY), env=environ, capture_output=True, text=True
    )
    for line in done.stdout.splitlines():
        # the longest prefix first: dynascope/compiler/ before dynascope/
        for copied in sorted(real, key=len, reverse=True):
            if line.startswith(copied):
                line = real[copied] + line[len(copied) :]
                break
        print(line.removeprefix(up).removeprefix(str(ROOT) + os.sep))
    sys.stderr.write(done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
