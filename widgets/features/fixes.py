"""Fixes: what can be fixed, by which change, and why other changes are refused.

The Fix tab of a break or a recompiled frame, and the lines for a terminal.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Container, Sequence
from typing import TypedDict

from dynascope.compiler.report import Fix, FixSet, FixVerdict, Report, label, plural, setting_lines, time_text
from dynascope.compiler.report.measurements import UNEVEN
from dynascope.compiler.report.overview import PACKAGES
from dynascope.widgets.detail import Part, tab
from dynascope.widgets.features.places import Places
from dynascope.widgets.terminal import Terminal
from dynascope.widgets.words import capped, grouped, listing, printable

#: at most this many lines of one fix's diff are shown, and this many changes besides the chosen ones in a tab
MOST_LINES, MOST_CHANGES = 24, 12
#: lines of an edit that are shown above and below what changes
CONTEXT = 2
_DYNAMIC = "torch.compile(..., dynamic=True)"
_WARM_UP = "torch.compiler.set_stance"
_MARK = "torch._dynamo.mark_dynamic"
#: fields of `Counts` -> their names in sentences
_COUNTED = {
    "breaks": "graph breaks", "recompiles": "recompiles", "graphs": "graphs", "graph_runs": "graph runs",
    "eager_ops": "operations outside graphs",
}  # fmt: skip


class FixRow(TypedDict):
    """One change that may fix a break or recompile: its outcome in words, and its changed lines."""

    words: str
    verdict: FixVerdict
    gain: str
    assumption: str
    condition: str
    diff: list[str]


class FixBody(TypedDict):
    """The changes for one break or recompile; `copies`: what buttons copy, by their labels."""

    chosen: list[FixRow]
    others: list[FixRow]
    copies: dict[str, str]


def fixes_summary(report: Report) -> str:
    """`2 fixes, 1 under a condition: graph breaks 3 → 0, graphs 4 → 1 in the repeated calls`: counted with all of them at once.

    "" if no fixes were looked for, or there was nothing to fix.
    """
    fixes = report.fixes_to_apply(conditional=True)
    if fixes is None or not (report.breaks or report.recompiles or fixes.notes):
        return ""
    if not report.fixes or all(fix.verdict == "untried" and not (fix.edits or fix.settings) for fix in report.fixes):
        if report.inputs and not (report.summary.breaks or report.summary.recompiles):
            return "no fix was tried: only the program's own calls are repeated, not those with --inputs"
        return "no fix was tried"
    if not fixes.fixes:
        return "no fix was found" + ("" if fixes.is_complete else " so far: not every change was tried")
    count, asked = len(fixes.fixes), sum(fix.verdict == "conditional" for fix in report.fixes)
    words = f"{count} fix{'es' * (count > 1)}{f', {asked}' * (0 < asked < count)}{' under a condition' * bool(asked)}"
    same = "no fewer operations run outside graphs" * fixes.runs_no_less
    gains = _changes(fixes, is_whole=True), times_with_fixes(report)[0], same
    return ": ".join(filter(None, (words, ", ".join(filter(None, gains)))))


def _changes(of: Fix | FixSet, *, is_whole: bool = False) -> str:
    """What changes: `graph breaks 1 → 0, recompiles 2 → unknown in the repeated calls`; "" if nothing, or all is unknown.

    `is_whole`: graph breaks and recompiles also if they stay, but not how often graphs run.
    """
    counts = [(name, getattr(of.before, name, None), getattr(of.after, name, None)) for name in _COUNTED]
    stays, left_out = (("breaks", "recompiles"), "graph_runs") if is_whole else ((), "")
    told = [one for one in counts if (None not in one or (one[0] == "recompiles" and of.after)) and one[0] != left_out]
    told = [(name, was, now) for name, was, now in told if was != now or (was and name in stays)]
    told.sort(key=lambda one: one[1] == one[2])  # first what changes
    found = ", ".join(f"{_COUNTED[name]} {was} → {now}" for name, was, now in told).replace("None", "unknown")
    # calls in eager mode before the compiled ones are compared with the first calls
    return found + " in the repeated calls" * (bool(found) and _WARM_UP not in of.settings)


def times_with_fixes(report: Report) -> tuple[str, bool]:
    """The times of a call without and with all fixes, in words, and whether it is slower with them; ("", False): unknown."""
    fixes = report.fixes_to_apply(conditional=True)
    is_unclear = report.profile is not None and report.profile.verdict.payback == "unclear"
    if fixes is None or fixes.before.seconds is None or fixes.after.seconds is None or is_unclear:
        return "", False
    before, after = fixes.before.seconds, fixes.after.seconds
    known = report.profile.median_seconds if report.profile is not None else before
    spread = [known] if report.profile is None else [report.profile.call_seconds, *report.profile.spread]
    low, high = (end * before / known for end in (min(spread), max(spread)))  # calls of the unchanged program differ as much
    if high > UNEVEN * low:
        return "", False
    was, slower = time_text(before), after > high
    words = f"about {was} a call before and after" if low <= after <= high else f"{was} → {time_text(after)} a call"
    return words + " when compiled anew" * (before != known) + ", which is slower" * slower, slower


def is_fixable(report: Report) -> bool:
    """Whether there is something to fix for which not every change was tried."""
    return bool(report.breaks or report.recompiles) and not (report.fix_set is not None and report.fix_set.is_complete)


def fix_words(fix: Fix) -> str:
    """A change and its verdict: `Choose with torch.where: verified, agrees with eager on ...`."""
    is_refused = fix.verdict == "refused"
    # what was not tried was not refused; what is not chosen for a reason may have been tried
    is_known = (fix.verdict == "untried" and fix.reason) or fix.reason.startswith("it is in force already")
    verdict = "" if is_known or (is_refused and not (fix.edits or fix.settings)) else fix.verdict
    words = f"{fix.title}: " + ", ".join(filter(None, [verdict, fix.reason]))
    # an input or a forced condition may be a case that never comes; what was recorded is one that came
    matters = not fix.reason.startswith(("with ", "where ")) or fix.reason.startswith("with the recorded inputs: ")
    if not is_refused or matters or fix.before is None or fix.after is None or fix.after.breaks >= fix.before.breaks:
        return words
    known = f"graph breaks {fix.before.breaks} → {fix.after.breaks}"
    return f"{words.rstrip('.:')}. If you know that this does not matter: {known}"


def how_to_apply(report: Report) -> str:
    """What to do with the chosen fixes: `report.patch() is the diff, ...`, or the settings to change; "" if that is done."""
    fixes, by = report.fixes_to_apply(conditional=True), report.patched_by
    if fixes is None or not fixes.fixes:
        return ""
    own, all_sure = report.fix_set or FixSet(), fixes is report.fix_set
    by_hand = unplaced_settings(fixes)
    if not (fixes.edits or fixes.cells):
        return f"No file changes: use {', '.join(by_hand)}"
    if not by:
        return ""
    of = " for those under a condition" * (bool(own.fixes) and by_hand != unplaced_settings(own))
    needed = [f"also needed{of}: {', '.join(by_hand)}"] if by_hand else []
    if by.startswith("report."):
        is_live = report.live_fixes is not None  # a report that was read from a file has no functions
        both = "report.patch({0}) is the diff" + "; `with report.fixed({0}) as f:` gives the fixed function" * is_live
        words = [both.format("")] if own.fixes else []
        words += [] if all_sure else ["with the conditional fixes, too: " * bool(own.fixes) + both.format("conditional=True")]
        return "; ".join([*words, *needed])
    is_magic = by == "%fix"
    if not is_magic and any(re.search(PACKAGES, edit.file) for edit in fixes.edits):
        return "; ".join(["apply the printed patch by hand, as it changes a library's file", *needed])
    sure = bool(own.fixes and (own.cells if is_magic else own.edits))
    does = "puts the fixes into a new cell" if is_magic else "writes the fixes into the files"
    if is_magic and (count := len((own if sure else fixes).cells)) > 1:
        does = f"puts the last of {count} fixed cells into a new cell, and prints what changes in the other cells"
    words = [f"{by} {does}"] if sure else []
    rest = f"{does.partition(' ')[0]} those that hold under a condition, too" if sure else does
    words += [] if all_sure or (is_magic and not fixes.cells) else [f"{by} --conditional {rest}"]
    words += needed
    if is_magic and (files := {edit.file for edit in fixes.edits} - fixes.cells.keys()):
        labels = listing(sorted(label(f, None) for f in files), 100)
        words.append(f"print(dynascope.last().patch({'' if all_sure else 'conditional=True'})) has those in {labels}")
    return "; ".join(words)


def unplaced_settings(fixes: FixSet) -> list[str]:
    """The settings of these fixes that neither the edits nor the new texts of cells contain, as lines of Python."""

    def is_added(words: str) -> bool:
        return any(words in edit.after and words not in edit.before for edit in fixes.edits)

    in_cell = any("--dynamic true" in text.partition("\n")[0] for text in fixes.cells.values())
    placed = "".join(edit.after for edit in fixes.edits) + _DYNAMIC * (in_cell or is_added("dynamic=True"))
    is_marked = is_added("mark_dynamic(")  # which may have another name for the argument
    return [line for line in setting_lines(fixes.settings) if line not in placed and not (is_marked and line.startswith(_MARK))]


def fix_row(fix: Fix) -> FixRow:
    """A change with its verdict, its gain and its diff.

    In the diff, removed lines begin with "-", added with "+", others of an edit with a blank.  Settings are added lines.
    """
    diff: list[str] = []
    for edit in fix.edits:
        changed = list(difflib.unified_diff(edit.before.splitlines(), edit.after.splitlines(), n=CONTEXT, lineterm=""))[2:]
        diff += [" …" if line.startswith("@@") else line for line in changed][not diff :]
    diff += [f"+{line}" for line in setting_lines(fix.settings)]
    more = [f" … and {plural(len(diff) - MOST_LINES, 'more line')}"] if len(diff) > MOST_LINES else []
    return {
        "words": printable(fix_words(fix), 2000), "verdict": fix.verdict,
        "gain": _changes(fix),
        "assumption": printable(fix.assumption, 1000), "condition": printable(fix.condition, 2000),
        "diff": [printable(line, 400) for line in diff[:MOST_LINES]] + more,
    }  # fmt: skip


def considered(report: Report, ids: Container[str | None], setting: str | None = None) -> list[Fix]:
    """The changes considered for these breaks and recompiled frames; if `setting` is given, those that set it in Dynamo."""
    own = [fix for fix in report.fixes or () if any(id in ids for id in (fix.break_, fix.recompile, *fix.removes, *fix.moves))]
    return [fix for fix in own if setting is None or any(name.rpartition(".")[2] == setting for name in fix.settings)]


def is_only_moved(fix: Fix) -> bool:
    """Whether there are as many graph breaks with the fix as without: the one that it is for appears elsewhere."""
    return fix.before is not None and fix.after is not None and fix.after.breaks >= fix.before.breaks


def is_refused(tried: Sequence[Fix]) -> bool:
    """Whether one of these changes was tried and refused, and none holds."""
    return "refused" in [fix.verdict for fix in tried if fix.edits or fix.settings] and not any(fix.chosen for fix in tried)


def copies(report: Report, file: str = "") -> dict[str, str]:
    """Label of a button -> what it copies: a cell with the verified changes, and with the conditional ones, too.

    It is the cell `file`, or else the latest one that changes.
    """
    sets = {"Copy fixed cell": report.fix_set, "Copy cell with conditional fixes": report.conditional_fix_set}
    cells = {label: fixes.cells for label, fixes in sets.items() if fixes is not None and fixes.fixes and fixes.cells}
    return {label: printable(texts.get(file) or next(reversed(texts.values()))) for label, texts in cells.items()}


def fix_parts(owners: Container[str | None], file: str, places: Places) -> list[Part]:
    """The Fix tab of a break, or of the recompiled frames of one function; [] if no change was considered for them.

    `owners`: ids of the break or of the frames; `file`: the file that they are in.
    """
    report, own = places.report, considered(places.report, owners)
    chosen = [fix_row(fix) for fix in own if fix.chosen]
    others = [fix_row(fix) for fix in [fix for fix in own if not fix.chosen][:MOST_CHANGES]]
    body: FixBody = {"chosen": chosen, "others": others, "copies": copies(report, file) if chosen else {}}
    tried = sum(fix.verdict != "untried" and bool(fix.edits or fix.settings) for fix in own)
    return tab("fix", "Fix" if chosen else f"Fix ({tried} tried)" if tried else "Fix (none)", "fix", body if own else None)


def fix_lines(places: Places, terminal: Terminal, most: int) -> list[str]:
    """The chosen fixes as diffs, and for the first breaks and recompiles without one, the changes that were considered.

    `most`: breaks and recompiles; 0: only what all fixes do, and what was not tried and why.
    """
    report, summary = places.report, fixes_summary(places.report)
    if not summary or report.fix_set is None:
        return []
    out, fixes = ["", *terminal.wrap(summary, "", 5, "bold")], report.fixes or []
    notes = [line for note in report.fix_set.notes for line in terminal.wrap("note: " + note, "", 3)]
    if not most:
        return out + notes
    for fix in (fix for fix in fixes if fix.chosen):
        row = fix_row(fix)
        mark, style = ("✓", "green") if fix.verdict == "verified" else ("?", "yellow")
        out += terminal.wrap(f"{mark} {_removed([fix], places)}{row['words']}", "    ", 8, style)
        out += terminal.wrap(f"condition: {row['condition']}", "      ", 12) if row["condition"] else []
        for line in row["diff"]:
            style = {"+": "green", "-": "red"}.get(line[:1], "soft")
            out.append(" " * 6 + terminal.paint(printable(line, terminal.width - 6).expandtabs(4), style))
        out += terminal.wrap(f"assumes: {row['assumption']}", "      ", 12) if row["assumption"] else []
    ids = [b.id for b in report.breaks[:most]] + [r.frame for r in report.recompiles[:most]]
    each = [considered(report, [id]) for id in ids]
    vain = [fix for own in each if not any(f.chosen for f in own) for fix in own[:3]]
    # without any, the repeated calls may break elsewhere
    vain = vain or [fix for fix in fixes if not (fix.chosen or fix.break_ or fix.recompile)]
    for words, alike in list(grouped((fix_words(fix), fix) for fix in vain).items())[: 3 * most]:
        out += terminal.wrap(f"✗ {_removed(alike, places)}{words}", "    ", 8, "soft")
    return out + notes


def _removed(fixes: Sequence[Fix], places: Places) -> str:
    """What fixes remove, or are for: `f.py:4, f.py:9: `, `f.py:4:7: `, `3 recompiles of M, recompile 1/1 of f: `; "": none."""
    owners = {id: bool(fix.removes) for fix in fixes for id in fix.removes or (fix.break_, fix.recompile)}
    breaks = [b for b in places.report.breaks if b.id in owners]
    at = [places.at(b.file, b.line, b.cell) if owners[b.id] else places.of_break(b) for b in breaks]
    frames = [places.frames[r.frame] for r in places.report.recompiles if r.frame in owners]
    again = grouped((places.name(f), f.compile_id or f.id) for f in frames)
    named = [(f"{len(ids)} recompiles" if ids[1:] else f"recompile {ids[0]}") + f" of {name}" for name, ids in again.items()]
    return "".join(f"{', '.join(capped(what, 4))}: " for what in [[*dict.fromkeys(at), *named]] if what)
