"""Saves a report; a failure is a one-line message."""

from __future__ import annotations

from pathlib import Path

from dynascope.compiler.report import Report


def save(report: Report, path: str | Path) -> str | None:
    """Save the report; returns None, or one line that says what went wrong: a failure to save must not fail the run."""
    try:
        report.save(path)
    except Exception as error:
        reason = (getattr(error, "strerror", None) or str(error) or type(error).__name__).partition("\n")[0]
        return f"not saved: {reason}"
    return None
