"""Run mypy, or import-linter, on `dynascope` as users get it: one package, assembled from its three folders.

Neither tool follows the package-dir mapping or an editable installation, so the folders are copied to
build/typecheck/dynascope (as pyproject.toml maps them), and mypy's messages are printed with the real paths.

    python -m tools.typecheck           # types, also those of tools/
    python -m tools.typecheck layers    # imports between layers: [tool.importlinter] in pyproject.toml
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
    """Package -> folder, from pyproject.toml, which is read line by line because Python 3.10 has no tomllib."""
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
    """Copy the packages to `target`; returns copied path -> real path, both relative."""
    shutil.rmtree(target, ignore_errors=True)
    real = {}
    for package, folder in folders(root).items():
        place = target / package.replace(".", "/")
        shutil.copytree(root / folder, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        real[place.relative_to(target).as_posix() + "/"] = folder + "/"
    return real


def types(real: dict[str, str]) -> int:
    """Run mypy and return its exit status; its messages name the real files, not the copies."""
    up = os.path.relpath(ROOT, COPY) + os.sep  # prefix of the tools' paths, which are not copied
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--config-file", str(ROOT / "pyproject.toml")]
    environ = {**os.environ, "MYPYPATH": os.pathsep.join([str(COPY), str(ROOT)]), "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")}
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


def layers() -> int:
    """Run import-linter and return its exit status; its report is printed if a contract is broken."""
    # import-linter finds the package in the working directory
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    options = ["--config", str(ROOT / "pyproject.toml"), "--no-cache", "--no-logo"]
    done = subprocess.run([sys.executable, "-c", code, *options], cwd=str(COPY), capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
    return done.returncode


def main(arguments: list[str]) -> int:
    """Run mypy, or import-linter if `arguments` has "layers"; returns the exit status."""
    real = assemble(ROOT, COPY)
    return layers() if "layers" in arguments else types(real)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
