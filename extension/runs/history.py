"""Keeps the earlier reports of each cell as `report.previous`; the view shows what changed since the previous one.

A cell is identified by the id that the front end gives it.  Without an id (in a terminal or nbclient), it is identified by the
names of what it compiled or, if it compiled only its statements or nothing, by its text.
"""

from __future__ import annotations

from collections.abc import Hashable

from dynascope.compiler.report import Report
from dynascope.compiler.source.code import STATEMENTS, user_name

#: earlier runs of one cell that are kept
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
    """Remember `report` as the latest one of the cell; returns the report before it, which becomes its `previous`."""
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
