"""The latest report of this process: what `dynascope.last()` gives."""

from __future__ import annotations

from dynascope.compiler.report import Report

_latest: Report | None = None


def last() -> Report:
    """The latest report of `%%compile`, `%%observe`, `explain`, `observe` or `load`.

    Raises LookupError where there is none yet.
    """
    if _latest is None:
        raise LookupError("no report yet: run a cell under %%compile, or dynascope.explain(f)(x)")
    return _latest


def remember(report: Report) -> None:
    """Make this the report that `last()` gives."""
    global _latest
    _latest = report
