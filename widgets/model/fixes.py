"""The Fix tab of a graph break or a recompiled frame: the chosen changes and the others, each with its verdict and diff."""

from __future__ import annotations

from collections.abc import Container

from dynascope.compiler.report import Fix, Report
from dynascope.widgets.labels.fixes import considered, diff_lines, fix_words
from dynascope.widgets.labels.words import Places, printable
from dynascope.widgets.wire import FixBody, FixRow, Part

#: at most this many changes are listed besides the chosen ones
ROWS = 12


def fix_parts(report: Report, owners: Container[str | None], file: str, places: Places) -> list[Part]:
    """The Fix tab of a break, or of the recompiled frames of one function; [] if no change was considered for them.

    `owners`: ids of the break or of the frames; `file`: the file that they are in.
    """
    own = considered(report, owners)
    if not own:
        return []
    chosen = [fix for fix in own if fix.chosen]
    cells = report.fix_set.cells if report.fix_set is not None else {}
    body: FixBody = {
        "chosen": [_row(fix, report, places) for fix in chosen],
        "others": [_row(fix, report, places) for fix in own if not fix.chosen][:ROWS],
        "cell": printable(cells.get(file, "")) if chosen else "",
    }
    tried = sum(fix.verdict != "untried" and bool(fix.edits or fix.settings) for fix in own)
    name = "Fix" if chosen else f"Fix ({tried} tried)" if tried else "Fix (none)"
    return [{"key": "fix", "name": name, "kind": "fix", "body": body}]


def _row(fix: Fix, report: Report, places: Places) -> FixRow:
    counts = (
        ("graph breaks", fix.breaks_before, fix.breaks_after), ("recompiles", fix.recompiles_before, fix.recompiles_after),
        ("graphs", fix.graphs_before, fix.graphs_after),
    )  # fmt: skip
    gain = ", ".join(f"{name} {before} → {after}" for name, before, after in counts if after is not None and (before or after))
    diff = [printable(line, 400) for line in diff_lines(fix, report, places)]
    return {
        "words": printable(fix_words(fix), 2000), "verdict": fix.verdict, "gain": gain,
        "assumption": printable(fix.assumption, 1000), "diff": diff,
    }  # fmt: skip
