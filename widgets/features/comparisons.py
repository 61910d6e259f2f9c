"""What `--check` found, and sentences about the diff of two reports and about an expectation that a report does not meet."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, TypedDict

from dynascope.compiler.report import Break, Diff, Frame, Graph, Report, label, place, plural, seconds
from dynascope.compiler.report.comparison import AGREES, Expectation
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.recompiles import compiled_again, failures
from dynascope.widgets.words import printable

_COUNTS = {
    "graphs": "graph", "breaks": "graph break", "resumes": "resume function", "skipped": "skipped frame",
    "recompiles": "recompile",
}  # fmt: skip
#: how the notes of a check begin
CHECK = "check: "
_KINDS = {"not_met": "not met", "new": "newly met", "moved": "moved", "changed": "changed"}


class CheckPart(TypedDict):
    """What `--check` found, in sentences; `id`: the graph in which it begins.

    `searchable`: whether the place where it begins was not searched, and can be; `issue`: the text of an issue, or "".
    """

    agrees: bool | None
    lines: list[str]
    id: str
    searchable: bool
    issue: str


class ErrorMark(TypedDict):
    """How far a value is from float64; `heat`: 0 if all of its digits are right, 100 if none is; `first`: it begins here.

    `short`: the larger error of the two in words; `text`: both.
    """

    heat: int
    short: str
    text: str
    first: bool


def check_part(report: Report) -> CheckPart | None:
    """What the check found; None without one."""
    if report.check is None:
        return None
    numbers, (graph, _) = report.check.numbers, node_errors(report)
    is_wrong = numbers is not None and numbers.verdict not in ("rounding", "unknown")
    return {
        "agrees": report.check.agrees,
        "lines": [printable(note.removeprefix(CHECK), 2000) for note in report.notes if note.startswith(CHECK)],
        "id": "" if graph is None else graph.id,
        "searchable": is_wrong and report.settings.get("check") != "where",
        "issue": "" if numbers is None else printable(numbers.issue, 20_000),
    }


def node_errors(report: Report) -> tuple[Graph | None, dict[str, ErrorMark]]:
    """The graph in which compiled and eager code begin to differ, and by node the errors on the way there."""
    numbers = report.check.numbers if report.check is not None else None
    if numbers is None or numbers.origin is None:
        return None, {}
    origin = numbers.origin
    wanted = {(node.node, node.line) for node in origin.path}
    graph = next((g for g in report.graphs if wanted <= {(node.name, node.line) for node in g.nodes}), None)
    digits = {"float16": 3.0, "bfloat16": 2.1}.get(numbers.precision, 6.9)
    what = "gradient off by" if origin.is_backward else "off by"
    marks = dict[str, ErrorMark]()
    for node in origin.path if graph is not None else ():
        error, compiled, eager = max(node.eager, node.compiled), _off_by(node.compiled), _off_by(node.eager)
        heat = 0 if not error else min(100, max(0, round(100 * (1 + math.log10(error) / digits))))
        marks[node.node] = {
            "heat": heat, "short": f"off by {_off_by(error)}", "text": f"{what} {compiled} compiled, {eager} eager",
            "first": node.node == origin.node,
        }  # fmt: skip
    return graph, marks


def _off_by(share: float) -> str:
    if share >= 0.001:
        return "≥ 100 %" if share >= 1 else f"{float(f'{100 * share:.2g}'):g} %"
    return f"{share:.0e}" if share else "0"


#: a report may have other operations in its graphs
_SAME = "the same graph breaks and counts"


def diff_dict(diff: Diff) -> dict[str, Any]:
    """A diff in sentences: one for each change, what matters most first; a summary; the compile times."""
    counts = {name: f"{plural(now, _COUNTS[name])} (before: {before})" for name, (before, now) in diff.counts.items()}
    runs = {"now": ("this run", "gone"), "before": ("the earlier run", "new")}
    words = "{0} {why}: a break that it does not have is not known to be {1}"
    partial = [words.format(*runs[which], why=why) for which, why in diff.partial.items()]
    told = Counter((b.file, b.line) for b in [*diff.new, *diff.not_met, *(now for _, now in diff.changed + diff.moved)])
    lines = [*partial, *(f"{_KINDS[k]}: {_line(b, told)}" for k in ("new", "not_met") for b in getattr(diff, k))]
    changed = [(now, _outcome(now, before), _outcome(before, now)) for before, now in diff.changed]
    lines += [f"now {is_now}: {_line(now, told)} (before: {was})" for now, is_now, was in changed]
    lines += [f"moved: {_line(now, told)} (before: line {before.line})" for before, now in diff.moved]
    lines += [words for name, words in counts.items() if name != "breaks"]
    parts = [f"{len(changed)} {words}" for kind, words in _KINDS.items() if (changed := getattr(diff, kind))]
    return {
        "lines": lines or [_SAME],
        "summary": " · ".join(parts or counts.values()) or ("not all is known" if partial else _SAME),
        "times": "compiled in {1} (before: {0})".format(*map(seconds, diff.compile_seconds)),
    }  # fmt: skip


def _outcome(broken: Break, other: Break) -> str:
    """The outcome of a break, and whether it is allowed, as far as they are not those of the other one."""
    allowed = ["allowed" if broken.allowed else "not allowed"] * ({broken.allowed, other.allowed} == {True, False})
    return " and ".join([broken.outcome] * (broken.outcome != other.outcome) + allowed)


def _line(broken: Break, told: Counter[tuple[str, int]]) -> str:
    """The place of a break and its line; with the column if more than one of those that are told are in that line."""
    column = "" if told[broken.file, broken.line] < 2 or broken.column is None else f":{broken.column + 1}"
    return f"{place(broken)}{column} {broken.source.strip()}"


def unmet(report: Report, expected: Expectation) -> str:
    """The message of a failed expectation: the expected and the actual count, and one line for each place."""
    name, places, added = expected.name, Places(report), report.of_inputs
    frames, lines, also = [f for f in report.frames if f.id not in added], list[str](), ""
    if expected == AGREES:
        found = [note.removeprefix(CHECK) for note in report.notes if note.startswith(CHECK)]
        return "\n  ".join(["expected check=agrees", *(found or ["no check was made: --check, or check=True, asks for one"])])
    if name in ("breaks", "unexpected"):
        told = Counter((b.file, b.line) for b in report.own_breaks)
        lines = [f"{_line(b, told)} ({b.type})" for b in report.own_breaks if name == "breaks" or b.allowed is not True]
        lines += [note for note in report.notes if "unknown breaks" in note]  # says how to know them
        also = "; the breaks of cached frames are unknown" if report.summary.cached else ""
        also = f", and {n} whose places are unknown{also}" if (n := report.summary.unknown_breaks) else also
    elif name == "resumes":
        resumes = [f for f in frames if f.kind == "resume" and f.recompile_of is None]  # a recompile adds none
        lines = [f"{_at(f)} {places.name(f)}" for f in resumes]
    elif name == "recompiles":
        again = [r for r in compiled_again(report) if r.frame not in added]
        lines = [f"{places.name(report.frame(r.frame))}: {'; '.join(failures(r, places))}" for r in again]
    elif name in ("graphs", "ops"):
        for g in (g for g in report.graphs if g.frame not in added):
            at, ops = places.graph(g), "ops unknown" if g.ops is None else plural(g.ops, "op")
            lines.append(f"{g.id} in {places.name(report.frame(g.frame))}{' at ' * bool(at)}{at}, {ops}")
        statuses = {f.status for f in frames} - {"ignored"}
        if not lines and statuses <= {"empty"}:
            lines = ["no graph was made of the code that ran", *report.notes]
    else:
        lines = [f"{_at(f)} {places.name(f)} ({f.reason or name})" for f in frames if f.status == name]
    return "\n  ".join([f"expected {expected}, found {expected.actual(report)}{also}", *lines])


def _at(frame: Frame) -> str:
    return f"{label(frame.file, frame.cell)}:{frame.line}"
