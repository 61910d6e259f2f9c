"""Saving a report: what cannot be is said before anything runs, and what goes wrong all the same in one line."""

from __future__ import annotations

import os
from pathlib import Path

from dynascope.compiler.report import Report
from dynascope.compiler.settings import SAVE_SUFFIXES


def why_not(path: str) -> str | None:
    """Why no report can be saved there; None where nothing speaks against it."""
    if Path(path).suffix.lower() not in SAVE_SUFFIXES:
        return f"the name must end in one of {' '.join(SAVE_SUFFIXES)}"
    folder = Path(path).absolute().parent
    folder = next(f for f in (folder, *folder.parents) if f.exists())  # what is missing below it is made
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return f"{folder} is no folder that can be written to"
    return None


def save(report: Report, path: str | Path) -> str | None:
    """Save it; returns what went wrong, in one line, or None: the run is over, and what it gave is what counts."""
    try:
        report.save(path)
    except Exception as error:
        reason = (getattr(error, "strerror", None) or str(error) or type(error).__name__).partition("\n")[0]
        return f"not saved: {reason}"
    return None
