"""The latest report of this process, which `dynascope.last()` returns."""

from __future__ import annotations

from dynascope.compiler.report import Report

_latest: Report | None = None


def last() -> Report:
    """The latest Report of `load` or of any run, such as `%%compile`, `explain` or `observe`; a RanksReport is never returned.

    Raises LookupError if there is none yet.
    """
    if _latest is None:
        raise LookupError("no report yet: run a cell under %%compile, or dynascope.explain(f)(x)")
    return _latest


def remember(report: Report) -> None:
    """Make this the report that `last()` returns."""
    global _latest
    _latest = report
