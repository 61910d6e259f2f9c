"""Earlier reports of each cell: `report.previous`, which "what changed" compares with.

A cell is identified by the id that the front end gives it; without one (a terminal, nbclient), by the names of what it
compiled, or by its text.
"""

from __future__ import annotations

from collections.abc import Hashable

from dynascope.compiler.report import Report
from dynascope.compiler.source.code import STATEMENTS, user_name

#: runs of one cell that are kept
KEPT = 20

_latest: dict[Hashable, Report] = {}


def key(cell_id: str | None, report: Report, text: str) -> Hashable:
    """What identifies the cell of this report."""
    if cell_id is not None:
        return ("id", cell_id)
    if not report.compiled or report.compiled == [user_name(STATEMENTS)]:
        return ("text", text)
    return ("names", *report.compiled)


def add(cell: Hashable, report: Report) -> Report | None:
    """Remember `report` as the cell's latest one; returns the one before, which becomes its `previous`."""
    report.previous = before = _latest.get(cell)
    _latest[cell] = report
    oldest: Report | None = report
    for _ in range(KEPT):
        oldest = oldest.previous if oldest is not None else None
    if oldest is not None:
        oldest.previous = None
    return before


def forget() -> None:
    """Forget every run; called when the extension is unloaded."""
    _latest.clear()
