"""The fixes of a report in the text of a cell as its user wrote it, for `%fix` and the view."""

from __future__ import annotations

from typing import Any

from dynascope.compiler.fixes.candidate import Edit
from dynascope.compiler.fixes.text_edits import NotApplicable, with_edits
from dynascope.compiler.report import FixSet, Report
from dynascope.shell import cell_number


def to_users_texts(shell: Any, report: Report, ran: str) -> None:
    """Turn the fixed texts of cells, which the compiler knows without magics, into what the user would write.

    A cell whose lines the two do not share is left out: the patch still shows its fixes.  `ran`: the cell that ran, whose magic
    has what torch.compile is given.
    """
    fixes = report.fix_set
    if fixes is None:
        return
    texts: dict[str, str] = {}
    for file in dict.fromkeys([*fixes.cells, *([ran] if fixes.settings.get("dynamic") is True else [])]):
        edits = [Edit(e.file, e.first_line, e.last_line, e.before, e.after) for e in fixes.edits if e.file == file]
        raw = _raw(shell, cell_number(file))
        if raw is not None:
            try:
                text = with_edits(raw, edits)
                text = _with_options(text, fixes) if file == ran else text
                texts |= {file: text.rstrip("\n")} if text != raw else {}
            except NotApplicable:
                continue
    fixes.cells = texts


def _with_options(text: str, fixes: FixSet) -> str:
    """The cell with what torch.compile is given as an option of its magic."""
    first, end, rest = text.partition("\n")
    if fixes.settings.get("dynamic") is True and first.startswith("%%compile"):
        first += " --dynamic true"
    return first + end + rest


def _raw(shell: Any, number: int | None) -> str | None:
    """A cell as the user wrote it; None if that is not known."""
    history = getattr(shell.history_manager, "input_hist_raw", None)
    if number is None or not history or not 0 <= number < len(history):
        return None
    text = str(history[number])
    return text if text.endswith("\n") else text + "\n"


def latest(report: Report) -> tuple[str, list[str]] | None:
    """The fixed text of the latest cell that changes, and the other cells that do; None if none does."""
    cells = report.fix_set.cells if report.fix_set is not None else {}
    files = sorted(cells, key=lambda file: cell_number(file) or 0)
    return (cells[files[-1]], [f"In[{cell_number(file)}]" for file in files[:-1]]) if files else None
