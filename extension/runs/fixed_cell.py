"""Puts the fixes of a report into the text of cells as the user wrote them, for `%fix` and the view."""

from __future__ import annotations

from typing import Any

from dynascope.compiler.lab.fix.text_edits import NotApplicable, with_edits
from dynascope.compiler.report import FixSet, Report
from dynascope.shell import cell_number, raw_cell


def use_raw_texts(shell: Any, report: Report, ran: str) -> None:
    """Make the fixed texts in `report` anew from what the user wrote; until now, they have comments or calls for magics.

    A cell is left out if its raw text is unknown or a change does not apply to it; the patch still shows its fixes.  `ran`: the
    file of the cell that ran; if the fixes need `dynamic=True`, this becomes an option of its magic.
    """
    fixes = report.fix_set
    if fixes is None:
        return
    texts: dict[str, str] = {}
    for file in dict.fromkeys([*fixes.cells, *([ran] if fixes.settings.get("dynamic") is True else [])]):
        edits = [edit for edit in fixes.edits if edit.file == file]
        raw = raw_cell(shell, cell_number(file) or 0)  # IPython has no In[0]
        if raw:
            raw = raw.rstrip("\n") + "\n"
            try:
                text = with_edits(raw, edits)
                text = _with_options(text, fixes) if file == ran else text
                texts |= {file: text.rstrip("\n")} if text != raw else {}
            except NotApplicable:
                continue
    fixes.cells = texts


def _with_options(text: str, fixes: FixSet) -> str:
    """The text of a cell; if the fixes need `dynamic=True`, with `--dynamic true` added to a `%%compile` on its first line."""
    first, end, rest = text.partition("\n")
    if fixes.settings.get("dynamic") is True and first.startswith("%%compile"):
        first += " --dynamic true"
    return first + end + rest


def latest_fixed_cell(report: Report) -> tuple[str, list[str]] | None:
    """The fixed text of the latest cell that changes, and the names of the other cells that change; None if none does."""
    cells = report.fix_set.cells if report.fix_set is not None else {}
    files = sorted(cells, key=lambda file: cell_number(file) or 0)
    return (cells[files[-1]], [f"In[{cell_number(file)}]" for file in files[:-1]]) if files else None
