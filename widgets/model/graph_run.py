"""What running one graph alone showed: figures as bars, sentences, and heat for the drawing of the graph.

Promises: the heat of an operation is its time in percent of the slowest operation's, and always comes with the time in words;
what was not measured is left out or called unknown.
"""

from __future__ import annotations

from dynascope.compiler.report import ONLY_WHERE_RECORDED, Graph, GraphRun, Report, byte_text, time_text
from dynascope.widgets.labels.run_time import graph_run_words
from dynascope.widgets.labels.words import operation_name, printable, shorten
from dynascope.widgets.wire import Bar, BarGroup, Part, RunBody

#: the tab lists at most this many operations
SLOWEST = 8
_BEFORE = (
    "This graph alone, on made-up data of the recorded shapes: eager against what the backend makes of it, the time of each "
    "operation, and the memory it needs. Your tensors and modules take no part in it."
)


def run_part(report: Report, graph: Graph) -> Part:
    """The tab "Run alone" of a graph: its figures, and how to run it or why that is impossible."""
    name = report.settings.get("output") or "dynascope.last()"
    body: RunBody = {"graph": graph.id, "text": [_BEFORE], "groups": [], "code": ""}
    if report.from_file:
        body["text"] = [ONLY_WHERE_RECORDED[:1].upper() + ONLY_WHERE_RECORDED[1:] + "."]
    else:
        body["code"] = printable(f'{name}.run_graph("{graph.id}")', 200)
    if graph.run is not None:
        notes = [printable(note[:1].upper() + note[1:], 500) + "." for note in graph.run.notes]
        last = body["text"] if report.from_file else []
        body["text"] = [printable(graph_run_words(graph.run), 500) + ".", *notes, *last]
        body["groups"] = _groups(graph.run, graph)
    return {"key": "run", "name": "Run alone", "kind": "run", "body": body}


def heat(run: GraphRun | None) -> dict[str, tuple[int, str]]:
    """By node, an operation's heat in percent, and its time and share of the total in words: `12 µs · 34%`."""
    if run is None or not run.ops:
        return {}
    most, total = max(op.seconds for op in run.ops), sum(op.seconds for op in run.ops)
    return {
        op.node: (round(100 * op.seconds / most), f"{time_text(op.seconds)} · {_per_cent(op.seconds / total)}")
        for op in run.ops
        if total > 0
    }


def _per_cent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.01 else "< 1%"


def _groups(run: GraphRun, graph: Graph) -> list[BarGroup]:
    times = [("eager", run.eager_seconds, run.eager_spread), (run.backend, run.compiled_seconds, run.compiled_spread)]
    peaks = [("eager", run.eager_peak_bytes)]
    peaks += [(run.backend, run.compiled_peak_bytes)] if run.compiled_seconds is not None else []
    longest = max(seconds or 0.0 for _, seconds, _ in times) or 1.0
    largest = max(peak or 0 for _, peak in peaks) or 1
    groups: list[BarGroup] = [
        {
            "title": f"One call: median of {run.calls} calls (range of the middle half)",
            "bars": [_bar(name, f"{time_text(s)} ({' to '.join(map(time_text, spread))})", s / longest)
                     for name, s, spread in times if s is not None],
        },
        {
            "title": "Peak memory, not counting the inputs",
            "bars": [_bar(name, "unknown" if n is None else byte_text(n), (n or 0) / largest) for name, n in peaks],
        },
    ]  # fmt: skip
    heats, targets = heat(run), {n.name: n.target for n in graph.nodes}
    slowest = sorted(heats, key=lambda name: -heats[name][0])[:SLOWEST]
    if slowest:
        title = "Operations, eager" if len(heats) <= SLOWEST else f"The {len(slowest)} slowest operations, eager"
        bars = [_bar(_label(name, targets.get(name, "")), heats[name][1], heats[name][0] / 100) for name in slowest]
        groups.append({"title": title, "bars": bars})
    return groups


def _label(name: str, target: str) -> str:
    """A node's name and operation, `y_1 (linear)`; only the name, `linear_1`, if it begins with the operation."""
    operation = operation_name(target)
    return name if name.startswith(operation) else f"{name} ({operation})"


def _bar(label: str, value: str, part: float) -> Bar:
    return {"label": shorten(label, 80), "value": value, "part": round(100 * part)}
