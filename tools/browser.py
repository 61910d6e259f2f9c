"""Finds a Chromium for the browser tests, or installs one, with a message.

A browser named by `DYNASCOPE_CHROMIUM` comes first, then the machine's, then Playwright's.  If there is none, one is installed:
with apt-get if this is a root shell, else, or if that fails, Playwright's.  Standard library only; parses on Python 3.8.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tools.preflight import has_apt

#: environment variable with the path of the browser, for the tests
VARIABLE = "DYNASCOPE_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"


def works(path: str) -> bool:
    """Whether this browser starts; on some systems it is a stub that only says how to install one."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def find(python: str, environ: dict[str, str]) -> str | None:
    """The path of a browser that starts, or None.  `python`: an interpreter that has Playwright."""
    for name in (environ.get(VARIABLE, ""), *NAMES, MAC):
        path = shutil.which(name, path=environ.get("PATH")) if name else None
        if path and works(path):
            return path
    path = playwrights_own(python, environ)
    return path if path and works(path) else None


def playwrights_own(python: str, environ: dict[str, str]) -> str | None:
    """The path of Playwright's Chromium; None if it has none."""
    code = (
        "from playwright.sync_api import sync_playwright\n"
        "with sync_playwright() as p: print(p.chromium.executable_path)"
    )  # fmt: skip
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, env=environ)
    path = done.stdout.strip()
    return path if done.returncode == 0 and Path(path).is_file() else None


def install(python: str, environ: dict[str, str]) -> str | None:
    """Install a Chromium, with a message, and return its path; None if that failed."""
    if has_apt():
        print("setup: no Chromium here: installing it with apt-get (this is a root shell)", flush=True)
        quiet = {**environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (
            ["apt-get", "update", "-qq"],
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"],
        ):
            if subprocess.call(command, env=quiet, stdout=subprocess.DEVNULL):
                break
        else:
            found = find(python, environ)
            if found:
                return found
        print("setup: apt-get failed; trying Playwright's Chromium", flush=True)
    print("setup: installing Playwright's Chromium", flush=True)
    command = [python, "-m", "playwright", "install", *(["--with-deps"] if has_apt() else []), "chromium"]
    if subprocess.call(command, env=environ) == 0:
        return find(python, environ)
    return None


def cure() -> str:
    """One line on how to install a browser by hand."""
    if shutil.which("apt-get"):
        return "sudo apt-get install chromium"
    return "install Chromium or Chrome, or: .venv/bin/python -m playwright install --with-deps chromium"


def ensure(python: str, environ: dict[str, str]) -> str | None:
    """Find a browser, or install one, and return its path; None if that failed."""
    return find(python, environ) or install(python, environ)
