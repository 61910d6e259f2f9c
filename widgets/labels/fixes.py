"""Sentences about fixes: what can be fixed, by which change, and why other changes are refused."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Container, Iterable, Mapping

from dynascope.compiler.report import Fix, FixEdit, FixSet, Report, plural, time_text
from dynascope.widgets.labels.words import Places, capped

#: at most this many lines of one fix's diff are shown
MOST_LINES = 24
#: lines of the source that are shown above and below a change
CONTEXT = 2
_DYNAMIC = "torch.compile(..., dynamic=True)"
_MARK = "torch._dynamo.mark_dynamic"


def fixes_summary(report: Report) -> str:
    """`2 of 3 graph breaks can be fixed: 4 graphs → 1`; "" if no fixes were looked for, or there was nothing to fix."""
    fixes = report.fix_set
    if fixes is None or not (report.breaks or report.recompiles or fixes.notes):
        return ""
    if any(count for _, count, _ in fixed_counts(report)):
        words = f"{fixed_words(report)} can be fixed: "
    else:
        words = f"no {' or '.join(name for name, _, _ in fixed_counts(report)) or 'graph break'} can be fixed"
        if not fixes.fixes:
            return words + ("" if fixes.is_complete else " by what was tried so far")
        words += ", but more can be captured: "
    words += f"{plural(fixes.graphs_before, 'graph')} → {fixes.graphs_after}"
    if fixes.graphs_before != report.summary.graphs:
        words += " in the repeated calls"
    if fixes.seconds_before is None or fixes.seconds_after is None:
        return words
    return f"{words}, {time_text(fixes.seconds_before)} → {time_text(fixes.seconds_after)} a call"


def fixed_counts(report: Report) -> list[tuple[str, int, int]]:
    """(name, how many the chosen fixes remove, number) for graph breaks and recompiles, if the report has any."""
    removed = {id for fix in report.fixes or () if fix.chosen for id in fix.removes}
    gone = sum(b.id in removed for b in report.breaks)
    if report.fix_set is not None:  # a break that a change only moves is not fixed
        gone = min(gone, report.fix_set.breaks_before - report.fix_set.breaks_after)
    again = sum(r.frame in removed for r in report.recompiles)
    counts = [("graph break", gone, report.summary.breaks), ("recompile", again, report.summary.recompiles)]
    return [count for count in counts if count[2]]


def fixed_words(report: Report) -> str:
    """What the chosen fixes remove: `2 of 3 graph breaks and 0 of 1 recompile`."""
    return " and ".join(f"{count} of {plural(whole, name)}" for name, count, whole in fixed_counts(report))


def is_fixable(report: Report) -> bool:
    """Whether there is something to fix for which not every change was tried."""
    is_tried = report.fix_set is not None and report.fix_set.is_complete
    return bool(report.breaks or report.recompiles) and not is_tried


def fix_words(fix: Fix) -> str:
    """A change and its verdict: `Choose with torch.where: proved, agrees with eager on ...`."""
    words = f"{fix.title}: {fix.verdict}"
    return f"{words}, {fix.reason}" if fix.reason else words


def how_to_apply(report: Report) -> str:
    """What to do with the chosen fixes: `report.patch() is the diff, ...`, or the settings to change; "" if none is chosen."""
    fixes = report.fix_set
    if fixes is None or not fixes.fixes:
        return ""
    if fixes.edits:
        return "report.patch() is the diff, report.fixed() the fixed function"
    by_hand = unplaced_settings(report)
    return f"no file changes: use {', '.join(by_hand)}" if by_hand else "%fix puts the cell with the fix below"


def unplaced_settings(report: Report) -> list[str]:
    """The settings of the chosen fixes that neither the edits nor the new texts of cells contain, as lines of Python."""
    fixes = report.fix_set
    if fixes is None:
        return []
    placed = "".join(edit.after for edit in fixes.edits)
    if any("--dynamic true" in text.partition("\n")[0] for text in fixes.cells.values()):
        placed += _DYNAMIC
    lines = setting_lines(fixes)
    # an edit that adds the call may have another name for the argument
    if any("mark_dynamic(" in edit.after and "mark_dynamic(" not in edit.before for edit in fixes.edits):
        lines = [line for line in lines if not line.startswith(_MARK)]
    return [line for line in lines if line not in placed]


def setting_lines(fix: Fix | FixSet) -> list[str]:
    """The settings of a fix as lines of Python."""
    lines = []
    for name, value in fix.settings.items():
        if name == _MARK and isinstance(value, list):
            lines += [f"{name}({mark})" for mark in value]
        elif isinstance(value, list):
            lines += [f"{name}.add({function.removeprefix('builtins.')})" for function in value]
        else:
            lines.append(f"{name} = {value!r}" if "." in name else f"torch.compile(..., {name}={value!r})")
    return lines


def diff_lines(fix: Fix, report: Report, places: Places) -> list[str]:
    """A fix as a diff: removed lines begin with "-", added ones with "+", the lines around them with a blank.

    Settings are added lines.
    """
    lines: list[str] = []
    for edit in fix.edits:
        above, below = _around(edit, fix, report, places.lines(edit.file))
        before, after = ([*above, *text.splitlines(), *below] for text in (edit.before, edit.after))
        changed = list(difflib.unified_diff(before, after, n=CONTEXT, lineterm=""))[2:]
        lines += [line for line in changed if not line.startswith("@@")]
    lines += [f"+{line}" for line in setting_lines(fix)]
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], f" … and {plural(more, 'more line')}"]


def _around(edit: FixEdit, fix: Fix, report: Report, lines: Mapping[int, str]) -> tuple[list[str], list[str]]:
    """The source's lines above and below an edit; none if earlier fixes have moved the lines, and its place is unknown."""
    before = edit.before.splitlines()
    first = next((f for f in report.fixes or () if f.chosen and any(e.file == edit.file for e in f.edits)), fix)
    starts = [edit.first_line] if first is fix else [n for n in lines if before and lines[n] == before[0]]
    starts = [n for n in starts if [lines.get(n + i) for i in range(len(before))] == before]
    if len(starts) != 1:
        return [], []
    [start] = starts
    above = [lines[n] for n in range(start - CONTEXT, start) if n in lines]
    end = start + len(before)
    return above, [lines[n] for n in range(end, end + CONTEXT) if n in lines]


def owners(fix: Fix) -> list[str]:
    """Ids of the breaks and recompiled frames that a chosen fix removes; else of the one that the change is for, if any."""
    return fix.removes or [id for id in (fix.break_, fix.recompile) if id is not None]


def removed_words(report: Report, fix: Fix, places: Places) -> str:
    """What a fix removes: `f.py:4, f.py:9`, `3 recompiles of M, recompile of loss`."""
    at = [places.at(b.file, b.line, b.cell) for b in report.breaks if b.id in owners(fix)]
    again = Counter(places.name(report.frame(r.frame)) for r in report.recompiles if r.frame in owners(fix))
    frames = [f"{plural(n, 'recompile')} of {name}" if n > 1 else f"recompile of {name}" for name, n in again.items()]
    return ", ".join(capped([*at, *frames], 4)) or "after the other fixes"


def considered(report: Report, ids: Container[str | None], setting: str | None = None) -> list[Fix]:
    """The changes considered for these breaks and recompiled frames; if `setting` is given, those that set it in Dynamo."""
    own = [fix for fix in report.fixes or () if any(id in ids for id in (fix.break_, fix.recompile, *fix.removes))]
    return [fix for fix in own if setting is None or any(name.rpartition(".")[2] == setting for name in fix.settings)]


def is_refused(tried: Iterable[Fix]) -> bool:
    """Whether one of these changes was tried and refused, and none is proved."""
    verdicts = [fix.verdict for fix in tried if fix.edits or fix.settings]
    return "refused" in verdicts and "proved" not in verdicts


def refused(report: Report, id: str) -> list[Fix]:
    """The changes that were considered for a break or a recompiled frame, if none was chosen for it; else []."""
    own = considered(report, [id])
    return [] if any(fix.chosen for fix in own) else own
