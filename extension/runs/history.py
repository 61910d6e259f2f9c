"""What each cell reported before: `report.previous`, and what changed since.

A cell is known by the id that the notebook's front end gives it; where there is none (a terminal, nbclient), by the names
of what it compiled, or by its text.
"""

from __future__ import annotations

from collections.abc import Hashable

from dynascope.compiler.report import Report
from dynascope.compiler.source.code import STATEMENTS, user_name

#: runs of one cell that are kept
KEPT = 20

_latest: dict[Hashable, Report] = {}


def key(cell_id: str | None, report: Report, text: str) -> Hashable:
    """What tells the cell of this report from others."""
    if cell_id is not None:
        return ("id", cell_id)
    if not report.compiled or report.compiled == [user_name(STATEMENTS)]:
        return ("text", text)
    return ("names", *report.compiled)


def follow(of: Hashable, report: Report) -> Report | None:
    """Remember `report` as the cell's last one; returns the one before, which is now its `previous`."""
    report.previous = before = _latest.get(of)
    _latest[of] = report
    last: Report | None = report
    for _ in range(KEPT):
        last = last.previous if last is not None else None
    if last is not None:
        last.previous = None
    return before


def forget() -> None:
    """Forget every run (the extension is unloaded)."""
    _latest.clear()
