"""Graphs: their nodes, values and source lines, what running one alone showed, and what the later stages made of it.

Promises: the nodes are in the graph's order, and each reads only nodes above it.  The heat of an operation is its time in
percent of the slowest operation's, and always comes with the time in words; what was not measured is left out or called
unknown.  A kernel has source lines only if the compiler's own comment names the nodes that it computes; if the texts of a
report are long in total, they are not in the model, which says how to get them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypedDict

from typing_extensions import NotRequired

from dynascope.compiler.ranks.structure import called, collectives, describe
from dynascope.compiler.report import ONLY_WHERE_RECORDED, Graph, GraphRun, Node, Report, plural, time_text
from dynascope.widgets.detail import ROWS, Detail, Part, code_part, facts, guarded_part, list_part, prose, tab
from dynascope.widgets.features.breaks import frame_words
from dynascope.widgets.features.comparisons import node_errors
from dynascope.widgets.features.places import Places
from dynascope.widgets.terminal import Terminal
from dynascope.widgets.words import printable, shorten

_GRAPH_FROM_BEFORE = "The graph was compiled before this recording, so its operations are unknown."
_ALONE = (
    "This graph alone, on made-up data of the recorded shapes: eager against what the backend makes of it, the time of each "
    "operation, and the memory it needs. Your tensors and modules take no part in it."
)
_DTYPES = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c", "double": "f64", "half": "f16", "long": "i64"}
#: what nodes that are no operations are
_KINDS = {"placeholder": "input", "output": "output", "get_attr": "param"}


class FxNode(TypedDict):
    """One node of an FX graph; `heat`: its time as a percentage of the slowest node's.

    `reads`: the positions, in the list of nodes, of the nodes that it reads, all of them before it.
    """

    name: str
    op: str
    kind: str
    target: str
    value: str
    reads: list[int]
    full: str
    line: NotRequired[int]
    file: NotRequired[str]
    place: NotRequired[str]
    time: NotRequired[str]
    heat: NotRequired[int]


Draw = Callable[[list[FxNode], Graph], Any]


class RunBody(TypedDict):
    """A graph run on its own: sentences, whether it ran, and `code`: how to run it in Python, empty if impossible."""

    graph: str
    text: list[str]
    ran: bool
    code: str


def graph_detail(number: int, g: Graph, places: Places, draw: Draw) -> Detail:
    """All that is known of a graph; `draw`: makes the drawing of its nodes."""
    frame, b, place = places.frames.get(g.frame), places.breaks.get(g.break_ or ""), places.graph(g)
    known = g.ops is not None  # of a graph that was compiled before the recording, only its existence is known
    detail: Detail = {
        "kind": "graph", "title": f"Graph {number}", "code": f"of {shorten(places.name(frame), 120)}" if frame else "",
        "place": place, "copy": place, "facts": facts(
            ("operations", g.ops if known else "unknown", ""),
            ("frame", frame and frame_words(frame, places), g.frame),
            ("ends at", "✂ " + shorten(places.code(b), 60) if b else printable(g.end or "", 200), b.id if b else ""),
            ("inputs", len(g.inputs) if known else None, ""),
            ("outputs", len(g.outputs) if known else None, ""),
            ("backward", printable(g.backward, 40) if known else None, ""),
            ("split by DDP", plural(len(g.splits), "part") if g.splits else None, ""),
            ("from cache", {True: "yes", False: "no", None: ""}[g.from_cache], ""),
            *((f"  {printable(name, 40)} cache", printable(value, 80), "") for name, value in g.caches.items()),
        ), "parts": _parts(g, places, draw),
    }  # fmt: skip
    for first in [n for n in g.nodes if n.op not in _KINDS and n.line and n.file][:1]:
        detail["file"], detail["line"] = printable(first.file, 1000), first.line or 0
    return detail


def _parts(g: Graph, places: Places, draw: Draw) -> list[Part]:
    values = {n.name: value_text(n) for n in g.nodes}
    ends = [*((x, "input") for x in g.inputs[:ROWS]), *((x, "output") for x in g.outputs[:ROWS])]
    found = [[printable(describe(c), 300), "backward" if c.backward else "forward", "", ""] for c in collectives(g)]
    splits = "\n\n".join(f"# {split.name}\n{split.code}" for split in g.splits)
    return [
        *prose("about", "What is known", [_GRAPH_FROM_BEFORE] if g.ops is None else []),
        *guarded_part("graph", "Graph", lambda: _nodes_part(g, places, draw)),
        *guarded_part("run", "Run alone", lambda: run_part(places.report, g)),
        *code_part("code", "Python code", g.code, "python"),
        *code_part("splits", "Split by DDP", splits, "python"),
        *code_part("aot", "AOT forward", g.aot_forward, "python"),
        *code_part("aotb", "AOT backward", g.aot_backward, "python"),
        *code_part("backend", "Backend code", g.backend_code, "python"),
        *tab("ends", "Inputs, outputs", "list", [[shorten(x, 200), values.get(x, ""), end, ""] for x, end in ends]),
        *list_part("collectives", "Collectives", found),
        *prose("notes", "Notes", [printable(n, 2000) for n in g.notes]),
    ]


# -- nodes ------------------------------------------------------------------------------------------


def _nodes_part(graph: Graph, places: Places, draw: Draw) -> list[Part]:
    """The tab with the nodes, and the drawing of them."""
    latest: dict[str, int] = {}  # a name refers to the latest earlier node with that name
    heats, nodes = heat(graph.run), list[FxNode]()
    wrong, errors = node_errors(places.report)
    for i, node in enumerate(graph.nodes):
        row = _node(node, [latest[name] for name in dict.fromkeys(node.inputs) if name in latest], places)
        latest[node.name] = i
        if graph is wrong and node.name in errors:
            mark = errors[node.name]
            row["heat"], row["time"], row["full"] = mark["heat"], mark["short"], f"{row['full']}  ·  {mark['text']}"
        elif node.name in heats:
            row["heat"], row["time"] = heats[node.name]
            row["full"] += f"  ·  alone, eager: {row['time']}"
        nodes.append(row)
    return tab("graph", "Graph", "graph", {"nodes": nodes, "picture": draw(nodes, graph)} if nodes else None)


def _node(node: Node, reads: list[int], places: Places) -> FxNode:
    value, target, is_collective = value_text(node), operation_name(node.target), "c10d_functional" in node.target
    collective = called(node.code) if is_collective else None
    target = printable(describe(collective)) if collective is not None else target
    kind = _KINDS.get(node.op, "collective" if is_collective else "point")  # `wait_tensor` is one, too
    full = f"{node.name} = {node.target}" + (f" : {value}" if value else "") + (f"  ({node.module})" if node.module else "")
    row: FxNode = {
        "name": shorten(node.name, 200), "op": node.op, "kind": kind, "target": shorten(target, 120),
        "value": value, "reads": reads, "full": printable(full, 1000),
    }  # fmt: skip
    if node.file is not None and node.line is not None:
        row["file"], row["line"] = printable(node.file, 1000), node.line
        row["place"] = places.at(node.file, node.line)
    return row


def value_text(node: Node) -> str:
    """A node's value as text: `f32[8, 16] cpu DTensor(S(0))`; empty if it is not a tensor or its type is unknown."""
    if node.dtype is None and node.shape is None:
        return ""
    name = (node.dtype or "").removeprefix("torch.")
    letters = name.rstrip("0123456789")
    dtype = _DTYPES.get(letters, letters) + name[len(letters) :]
    shape = "" if node.shape is None else f"[{', '.join(map(str, node.shape))}]"
    return printable(" ".join(filter(None, (dtype + shape, node.device, node.subclass))), 300)


@functools.lru_cache(4096)
def operation_name(target: str) -> str:
    """`softmax` for `torch.nn.functional.softmax`, `sum` for `torch.ops.aten.sum.dim_IntList`."""
    target = re.sub(r"(?s)^<(?:built-in function|built-in method|function) ([^ >]*).*", r"\1", target)
    parts = [p for p in target.split(".") if p]
    is_overload = parts[:2] == ["torch", "ops"] and len(parts) > 4
    if len(parts) > 1 and (is_overload or parts[-1] in ("default", "Tensor", "Scalar", "int", "dim", "self")):
        parts.pop()
    return printable(parts[-1] if parts else target)


# -- run alone --------------------------------------------------------------------------------------


def run_part(report: Report, graph: Graph) -> list[Part]:
    """The tab "Run alone" of a graph: its figures, and how to run it or why that is impossible."""
    run, name = graph.run, report.settings.get("output") or "dynascope.last()"
    text = [f"{ONLY_WHERE_RECORDED[:1].upper()}{ONLY_WHERE_RECORDED[1:]}."] if report.from_file else [_ALONE]
    code = "" if report.from_file else printable(f'{name}.run_graph("{graph.id}")', 200)
    if run is not None:
        notes = [printable(note[:1].upper() + note[1:], 500) + "." for note in run.notes]
        text = [printable(graph_run_words(run), 500) + ".", *notes, *(text if report.from_file else [])]
    body: RunBody = {"graph": graph.id, "text": text, "ran": run is not None, "code": code}
    return tab("run", "Run alone", "run", body if graph.ops and graph.code else None)


def graph_run_words(run: GraphRun) -> str:
    """The result of a run: `On CPU, 2 threads: eager 520 µs, inductor 93 µs a call, 5.6 times as fast`."""
    words = f"On {run.device_name}: eager {time_text(run.eager_seconds)}"
    if run.compiled_seconds is None:
        return f"{words} a call; {run.backend} could not run it"
    words += f", {run.backend} {time_text(run.compiled_seconds)} a call"
    if run.speed_up is None:
        return words
    one, other = run.eager_spread, run.compiled_spread
    if len(one) == len(other) == 2 and one[0] <= other[1] and other[0] <= one[1]:  # within the spread of equal calls
        return f"{words}, no clear difference"
    times = run.speed_up if run.speed_up >= 1 else 1 / run.speed_up
    return f"{words}, {times:.{1 if times < 10 else 0}f} times as {'fast' if run.speed_up >= 1 else 'slow'}"


def graphs_alone(report: Report) -> list[str]:
    """A sentence on each graph that was run on its own."""
    runs = [(number, graph.run) for number, graph in enumerate(report.graphs)]
    return [f"graph {number} alone. {graph_run_words(run)}" for number, run in runs if run is not None]


def heat(run: GraphRun | None) -> dict[str, tuple[int, str]]:
    """By node, an operation's heat in percent, and its time and share of the total in words: `12 µs · 34%`."""
    spent = {op.node: op.seconds for op in run.ops} if run is not None else {}
    total, most = sum(op.seconds for op in run.ops) if run is not None else 0.0, max(spent.values(), default=0.0)
    words = {node: f"{100 * s / total:.0f}%" if s >= 0.01 * total else "< 1%" for node, s in spent.items() if total > 0}
    return {node: (round(100 * spent[node] / most), f"{time_text(spent[node])} · {share}") for node, share in words.items()}


def splits(report: Report) -> list[str]:
    """Sentences on how and why DDPOptimizer split graphs."""
    return [f"graph {n}: {note}" for n, g in enumerate(report.graphs) if g.splits for note in g.notes if note.startswith("DDP")]


def graph_lines(report: Report, terminal: Terminal) -> list[str]:
    """Graphs that were run on their own."""
    out = [line for sentence in graphs_alone(report) for line in terminal.wrap(f"▦ {sentence}", "", 3)]
    return ["", *out] if out else []
