"""The source lens: every line of every excerpt, and what the compiler made of it.

Promises: each line has the numbers of all graphs that captured an op on it, the breaks on it with their
columns, the region that it is in, and one state ("graph", "break", "skipped", "failed", "unfinished", "empty" or "")
with the reason in words; the text keeps its length, so columns are right.
"""

from __future__ import annotations

from collections import defaultdict

from dynascope.compiler.report import Break, Report
from dynascope.widgets.labels.advice import only_rest_is_eager
from dynascope.widgets.labels.bands import bands
from dynascope.widgets.labels.words import Places, printable, shorten
from dynascope.widgets.wire import LensFile, LensLine, LensMark

#: characters of one line that are shown
LINE_LIMIT = 2000
NO_OP = ("placeholder", "get_attr", "output")


def lens(report: Report, places: Places) -> list[LensFile]:
    """The lines of every source that the report knows, files with breaks first."""
    graphs = _graph_lines(report)
    marks = _marks(report)
    states = _states(report, places, graphs, marks)
    regions = bands(report, places)
    files: list[LensFile] = []
    for source in report.sources:
        lines: list[LensLine] = []
        previous: int | None = None
        for number, text in sorted(places.lines(source.file).items()):
            key = (source.file, number)
            state, reason, id = states.get(key, ("", "", ""))
            line: LensLine = {"line": number, "text": printable(text, LINE_LIMIT)}
            if previous is not None and number != previous + 1:
                line["gap"] = number - previous - 1
            previous = number
            if key in graphs:
                line["graphs"] = sorted(graphs[key])
            if key in marks:
                line["marks"] = [_mark(b, places) for b in marks[key]]
            if state:
                line["state"] = state
            if reason:
                line["reason"] = reason
            if id:
                line["id"] = id
            if key in regions:
                line["region"] = ["error" if regions[key].flag else "allow", printable(regions[key].words(), 400)]
            lines.append(line)
        if lines:
            files.append(
                {"file": printable(source.file, 1000), "label": places.label(source.file, source.cell), "lines": lines}
            )
    return files


def _graph_lines(report: Report) -> dict[tuple[str, int], set[int]]:
    captured: dict[tuple[str, int], set[int]] = defaultdict(set)
    for number, graph in enumerate(report.graphs):
        for node in graph.nodes:
            if node.op not in NO_OP and node.file is not None and node.line is not None:
                captured[node.file, node.line].add(number)
    return captured


def _marks(report: Report) -> dict[tuple[str, int], list[Break]]:
    breaks_on: dict[tuple[str, int], list[Break]] = defaultdict(list)
    for b in report.breaks:
        breaks_on[b.file, b.line].append(b)
    return breaks_on


def _mark(b: Break, places: Places) -> LensMark:
    """The columns of a break on its line; if they are unknown, those of the line's whole text."""
    _, start, end, _ = places.span(b)
    return {"id": b.id, "start": min(start, LINE_LIMIT), "end": min(end, LINE_LIMIT), "outcome": b.outcome}


#: rank of each frame state; if a line has several frames, the highest is shown
_RANK = {"empty": 0, "unfinished": 1, "failed": 2, "skipped": 3}
WORDS = {"resumed": "graph break", "skipped": "break · skips frame", "raised": "break · stops"}


def _states(
    report: Report, places: Places, graphs: dict[tuple[str, int], set[int]], marks: dict[tuple[str, int], list[Break]]
) -> dict[tuple[str, int], tuple[str, str, str]]:
    """State, reason and id to select, for each line with a frame."""
    states: dict[tuple[str, int], tuple[str, str, str]] = {}
    for frame in report.frames:
        word = frame.status if frame.status in _RANK else None
        if word is None:
            continue
        first = frame.line if frame.kind in ("resume", "statements") else frame.line + 1
        end = places.end_of(frame)
        lines = places.lines(frame.file)
        reason = {"skipped": "runs eagerly: ", "failed": "not compiled: ", "empty": "nothing to compile: "}.get(
            word, "unfinished: "
        )
        why = shorten(frame.reason or "reason unknown", 300)
        for number in range(first, end + 1):
            before = states.get((frame.file, number))
            if lines.get(number, "").strip() and (before is None or _RANK[word] > _RANK[before[0]]):
                states[frame.file, number] = (word, reason + why, frame.id)
    for key, numbers in graphs.items():
        names = ", ".join(str(n) for n in sorted(numbers)[:6])
        states[key] = ("graph", f"captured in graph {names}", report.graphs[min(numbers)].id)
    for key, breaks in marks.items():
        worst = max(breaks, key=lambda b: ("resumed", "skipped", "raised").index(b.outcome))
        text = WORDS[worst.outcome] if len(breaks) == 1 else f"{len(breaks)} breaks"
        if len(breaks) == 1 and only_rest_is_eager(report, worst):
            text = "break · rest runs eagerly"
        if all(b.allowed for b in breaks):
            text = text.removeprefix("graph ") + " · allowed"
        states[key] = ("break", text, worst.id)
    return states
