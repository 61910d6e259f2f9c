"""The source view: every line of every excerpt, and what the compiler made of it.

Promises: each line has, where they exist, the numbers of all graphs that captured an op on it, the breaks on it with their
columns, the region that it is in, and one state ("graph", "break", "skipped", "failed",
"unfinished" or "empty") with the reason in words; the text is cut only at its end, so columns are right.
"""

from __future__ import annotations

from typing import TypedDict

from typing_extensions import NotRequired

from dynascope.compiler.report import Break, listed
from dynascope.compiler.report.overview import OWNERS, Owners
from dynascope.widgets.detail import Way
from dynascope.widgets.features.breaks import only_rest_is_eager
from dynascope.widgets.features.comparisons import ErrorMark, node_errors
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.recompiles import is_at_limit
from dynascope.widgets.features.regions import bands
from dynascope.widgets.words import grouped, printable, shorten

#: at most this many characters of a line are shown
LINE_LIMIT = 2000
Key = tuple[str, int]
#: words of each state of a frame; a line of several frames shows the last state here that one of them has
_STATES = {"empty": "no graph", "unfinished": "unfinished", "failed": "not compiled", "skipped": "runs eagerly"}
#: words of each outcome of a break, the worst last
_OUTCOMES = {"resumed": "graph break", "skipped": "break · skips frame", "raised": "break · stops"}


class SourceMark(TypedDict):
    """A break on a line: in the columns from `start` up to, but not including, `end`."""

    id: str
    start: int
    end: int
    outcome: str


class SourceLine(TypedDict):
    """One line of source.

    `gap`: number of lines left out before it; `region`: "error" or "allow", then the flag and who set it, in words.
    """

    line: int
    text: str
    gap: NotRequired[int]
    graphs: NotRequired[list[int]]
    marks: NotRequired[list[SourceMark]]
    state: NotRequired[str]
    reason: NotRequired[str]
    id: NotRequired[str]
    region: NotRequired[list[str]]
    error: NotRequired[ErrorMark]


class SourceFile(TypedDict):
    """One file or cell; beside code of libraries or many functions, also its numbers of breaks and graphs, and whose it is."""

    file: str
    label: str
    lines: list[SourceLine]
    breaks: NotRequired[int]
    graphs: NotRequired[int]
    owner: NotRequired[str]


def source_view(places: Places, large: bool = False) -> list[SourceFile]:
    """The lines of every source that the report knows.

    `large`, or with code of a library: the files are sorted by owner (the user's own first), then by breaks and graphs.
    """
    report, owners = places.report, Owners(places.report)
    large = large or any(owners.of(source.file) != "own" for source in report.sources)
    nodes = ((n, number) for number, graph in enumerate(report.graphs) for n in graph.nodes if n.op.startswith("call_"))
    graphs = grouped(((n.file, n.line), number) for n, number in nodes if n.file is not None and n.line is not None)
    breaks = grouped(((b.file, b.line), b) for b in report.breaks)
    states, regions, (wrong, marks) = _states(places, graphs, breaks), bands(places), node_errors(report)
    marked = wrong.nodes if wrong is not None else ()
    errors = grouped(((node.file or "", node.line or 0), marks[node.name]) for node in marked if node.name in marks)
    files: list[SourceFile] = []
    for source in report.sources:
        lines: list[SourceLine] = []
        for number, text in sorted(places.lines(source.file).items()):
            key = (source.file, number)
            line: SourceLine = {"line": number, "text": printable(text, LINE_LIMIT)}
            if lines and number != lines[-1]["line"] + 1:
                line["gap"] = number - lines[-1]["line"] - 1
            if key in graphs:
                line["graphs"] = sorted(set(graphs[key]))
            if key in breaks:
                spans = ((b, places.span(b)) for b in breaks[key])  # over the unindented text if the columns are unknown
                line["marks"] = [{
                    "id": b.id, "start": min(start, LINE_LIMIT), "end": min(end, LINE_LIMIT), "outcome": b.outcome,
                } for b, (_, start, end, _) in spans]  # fmt: skip
            if key in states:
                line["state"], line["reason"], line["id"] = states[key]
            if key in errors:
                line["error"] = max(errors[key], key=lambda mark: mark["heat"])
            if key in regions:
                band = regions[key]
                words = f"region: error_on_graph_break={band.flag}, {band.who}"
                line["region"] = ["error" if band.flag else "allow", printable(words, 400)]
            lines.append(line)
        if not lines:
            continue
        files.append({"file": printable(source.file, 1000), "label": places.label(source.file, source.cell), "lines": lines})
        if large:
            files[-1]["owner"] = owners.of(source.file)
            files[-1]["breaks"] = sum(b.file == source.file for b in report.breaks)
            files[-1]["graphs"] = len({number for line in lines for number in line.get("graphs", ())})
    return sorted(files, key=lambda file: (OWNERS.index(file["owner"]), -file["breaks"], -file["graphs"])) if large else files


def ways(places: Places) -> dict[str, Way]:
    """By id, the way to each break, frame and graph in a library's code, where it is known."""
    found, owners = dict[str, Way](), Owners(places.report)
    for frame in places.report.frames:
        names, at, line, met = list[str](), frame, frame.called_from, set[str]()
        while at.id not in met and owners.of(at.file) != "own":
            met.add(at.id)
            before = places.frames.get(at.continues or "")
            if before is None:
                names.insert(0, places.function(at.name or at.code_name or "?", at.file, at.line))
                line = at.called_from
            at = before or places.frames.get(at.parent or "") or at
        if names and line is not None and owners.of(at.file) == "own":
            way: Way = {"file": printable(at.file, 1000), "line": line, "names": names}
            found |= {id: way for id in (frame.id, frame.graph) if id is not None}
    for b in places.report.breaks:  # the stack begins at the frame
        own = max((n for n, entry in enumerate(b.stack) if owners.of(entry.file) == "own"), default=0)
        names = [places.function(entry.function, entry.file, entry.line) for entry in b.stack[own + 1 :]]
        above = found.get(b.hits[0].frame) if b.hits else None
        if names and owners.of(b.stack[own].file) == "own":
            found[b.id] = {"file": printable(b.stack[own].file, 1000), "line": b.stack[own].line, "names": names}
        elif above is not None:
            found[b.id] = {**above, "names": [*above["names"], *names]}
    for way in found.values():
        if len(way["names"]) > 8:
            way["names"] = [*way["names"][:2], "…", *way["names"][-4:]]
    return found


def _states(places: Places, graphs: dict[Key, list[int]], breaks: dict[Key, list[Break]]) -> dict[Key, tuple[str, str, str]]:
    """For each line with a break, a graph or code not compiled: its state, the reason, and the id that a click selects."""
    states: dict[Key, tuple[str, str, str]] = {}
    # by line, where the innermost compiled frame begins: it may be another version of the code, or a function inside it
    compiled = sorted((f for f in places.report.frames if f.status in ("compiled", "cached")), key=lambda f: f.line)
    captured = {(f.file, number): f.line for f in compiled for number in range(f.line, places.end_of(f) + 1)}
    for status, words in _STATES.items():  # the last one that fits a line is shown
        for frame in reversed([f for f in places.report.frames if f.status == status and not is_at_limit(f)]):
            lines, reason = places.lines(frame.file), f"{words}: {shorten(frame.reason or 'reason unknown', 300)}"
            first = frame.line if frame.kind in ("resume", "statements") else frame.line + 1
            for number in range(first, places.end_of(frame) + 1):
                if lines.get(number, "").strip() and captured.get((frame.file, number), 0) < frame.line:
                    states[frame.file, number] = (status, reason, frame.id)
    for key, numbers in graphs.items():
        states[key] = ("graph", f"captured in graph {listed(sorted({*numbers}), 6)}", places.report.graphs[min(numbers)].id)
    for key, on_line in breaks.items():
        worst = max(on_line, key=lambda b: list(_OUTCOMES).index(b.outcome))
        text = "break · rest runs eagerly" if only_rest_is_eager(places.report, worst) else _OUTCOMES[worst.outcome]
        text = text if len(on_line) == 1 else f"{len(on_line)} breaks"
        if all(b.allowed for b in on_line):
            text = text.removeprefix("graph ") + " · allowed"
        states[key] = ("break", text, worst.id)
    return states
