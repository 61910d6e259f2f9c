"""Saves a report, and finds out before anything runs whether that is possible; failures are one-line messages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dynascope.compiler.report import Report
from dynascope.compiler.settings import SAVE_SUFFIXES


def why_not_savable(path: str, suffixes: Sequence[str] = SAVE_SUFFIXES) -> str | None:
    """Why no report can be saved at this path; None if one can be."""
    if Path(path).suffix.lower() not in suffixes:
        return f"the name must end in one of {' '.join(suffixes)}"
    folder = next(f for f in Path(path).absolute().parents if f.exists())  # missing folders below it are created
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return f"{folder} is not a writable folder"
    return None


def save(report: Report, path: str | Path) -> str | None:
    """Save the report; returns None, or one line that says what went wrong: a failure to save must not fail the run."""
    try:
        report.save(path)
    except Exception as error:
        reason = (getattr(error, "strerror", None) or str(error) or type(error).__name__).partition("\n")[0]
        return f"not saved: {reason}"
    return None
