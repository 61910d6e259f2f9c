"""The layout of an FX graph: its nodes, or for a large graph its folds, each with the layout of its contents.

Promises: up to `DRAWN` nodes are drawn one by one; larger graphs are drawn as folds.  The contents of each fold of up to
`DRAWN` nodes are laid out in advance, so that it opens without a kernel; those of a larger one are in the list of nodes.  An
arrow joins two boxes of a drawing if one reads the other; but if many folds read the same fold of inputs, one arrow is drawn
and the readers are counted.  A fold is a run of consecutive nodes that belong together, so arrows between folds only lead
forward; there are at least two and at most `MOST`; each node is in exactly one; inputs at the start have a fold of their own,
unless nodes are folded by number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, TypedDict

from typing_extensions import NotRequired

from dynascope.compiler.report import Graph, time_text
from dynascope.widgets.features.graphs import FxNode
from dynascope.widgets.layout.fx_graph import layout
from dynascope.widgets.layout.geometry import Size
from dynascope.widgets.words import cut, grouped, shorten, text_width

#: at most this many nodes are drawn one by one
DRAWN = 300
#: pixels: the height of a box, and of one with a second line (an operation with its time, a fold with its number of nodes)
HEIGHT = 28.0
TALLER = 40.0
NARROWEST, WIDEST = 60.0, 190.0
FOLD_NARROWEST, FOLD_WIDEST = 90.0, 260.0
#: if more folds than this read a fold of inputs, all but the first are only counted: arrows of parameters would hide all others
READERS = 4
#: pixels: a drawing higher than `TALL` is cut into columns, as many as fit into the width `ROOM`
TALL, ROOM = 420.0, 740.0

#: at most this many folds: a reader can grasp a drawing of so many boxes
MOST = 60
#: a grouping is useful if no group has a larger share than this of the nodes, not counting inputs
LARGEST = 0.7
INPUTS = "inputs"
#: the greatest depth of module paths that is tried
DEEPEST = 8

#: prefix of an input's name that is not shown: the path of its module, or `l_`
_INPUT = re.compile(r"^(?:.*_(?:modules|parameters|buffers)_|[lL]_)(?=.)")


#: title, note, size
_Box = tuple[str, str, Size]


class FxPicture(TypedDict):
    """The layout of a part of an FX graph: its `folds` if it has any, else the nodes from node `first` on.

    Each box has (x, y, width, height), a title, and a note: a node's value, if another node here reads it, or how many nodes a
    fold holds.  Each edge has the two boxes that it joins (`joined`), and a polyline (`edges`).
    """

    width: float
    height: float
    first: int
    boxes: list[list[float]]
    titles: list[str]
    notes: list[str]
    joined: list[list[int]]
    edges: list[list[list[float]]]
    folds: NotRequired[list[FxFold]]


class FxFold(TypedDict):
    """`count` nodes from node `first` on, drawn as one box; `inside`: the layout of these nodes, unless they are too many."""

    name: str
    first: int
    count: int
    inside: NotRequired[FxPicture]
    heat: NotRequired[int]


def fx_picture(all_nodes: list[FxNode], graph: Graph) -> FxPicture:
    """The whole graph; its nodes are in order: each reads only nodes before it."""
    return _unfolded(all_nodes, range(len(all_nodes))) if len(all_nodes) <= DRAWN else _folded(all_nodes, graph)


def _unfolded(all_nodes: list[FxNode], run: range) -> FxPicture:
    """The layout of single nodes; a value that another of them reads is written right below the box of its node."""
    nodes = all_nodes[run.start : run.stop]
    read = {source for node in nodes for source in node["reads"]}
    devices = {node["value"].rpartition("] ")[2] for node in nodes if "] " in node["value"]}
    same = f" {devices.pop()}" if len(devices) == 1 else ""
    boxes: list[_Box] = []
    for i, node in zip(run, nodes, strict=True):
        title, value, time = cut(_title(node), WIDEST - 24, 12), node["value"].removesuffix(same), node.get("time", "")
        note = cut(value, WIDEST - 10, 10, mono=True) if value and i in read else ""
        wide = max(text_width(title, 12) + 24, _mono_width(note) + 10, _mono_width(time) + 16)
        boxes.append((title, note, (min(WIDEST, max(NARROWEST, wide)), TALLER if time else HEIGHT)))
    inner = [(n - run.start, i) for i, node in enumerate(nodes) for n in node["reads"] if n >= run.start]
    return _placed(run.start, boxes, inner)


def _folded(all_nodes: list[FxNode], graph: Graph) -> FxPicture:
    """The layout of folds, with an edge wherever a node in one fold reads a node in another."""
    runs = fx_folds([node.module for node in graph.nodes], all_nodes)
    fold_of = [i for i, run in enumerate(runs) for _ in run.nodes]
    joined = {(fold_of[source], fold_of[i]) for i, node in enumerate(all_nodes) for source in node["reads"]}
    joined = {(a, b) for a, b in joined if a != b}
    inputs = {i for i, run in enumerate(runs) if all(all_nodes[n]["kind"] in ("input", "param") for n in run.nodes)}
    readers = grouped((a, b) for a, b in sorted(joined) if a in inputs)
    joined -= {(i, b) for i, folds_read in readers.items() if len(folds_read) > READERS for b in folds_read[1:]}
    seconds = {op.node: op.seconds for op in graph.run.ops} if graph.run else {}
    taken = [sum(seconds.get(graph.nodes[n].name, 0.0) for n in run.nodes) for run in runs]
    folds: list[FxFold] = []
    boxes: list[_Box] = []
    for i, (name, nodes) in enumerate(runs):
        folds.append({"name": name, "first": nodes.start, "count": len(nodes)})
        if len(nodes) <= DRAWN:
            folds[i]["inside"] = _unfolded(all_nodes, nodes)
        title, note = cut(name, FOLD_WIDEST - 38, 12), f"{len(nodes):,} {'node' if len(nodes) == 1 else 'nodes'}"
        note += f" · read by {len(readers[i])} parts" if len(readers[i]) > READERS else ""
        if taken[i] > 0:
            folds[i]["heat"] = round(100 * taken[i] / max(taken))
            note += f" · {time_text(taken[i])}"
        wide = max(text_width(title, 12), _mono_width(note)) + 38
        boxes.append((title, note, (min(FOLD_WIDEST, max(FOLD_NARROWEST, wide)), TALLER)))
    return {**_placed(0, boxes, sorted(joined)), "folds": folds}


def _mono_width(words: str) -> float:
    return text_width(words, 10, mono=True)


def _title(node: FxNode) -> str:
    if node["kind"] in ("input", "param"):
        return _INPUT.sub("", node["name"]).strip("_") or node["name"]
    return "return" if node["kind"] == "output" else node["target"]


def _placed(first: int, boxes: list[_Box], joined: list[tuple[int, int]]) -> FxPicture:
    placed = layout(tuple(size for _, _, size in boxes), tuple(joined), ROOM, TALL)
    return {
        "width": placed.width, "height": placed.height, "first": first,
        "boxes": [[*placed.rects[i]] for i in range(len(boxes))],
        "titles": [title for title, _, _ in boxes], "notes": [note for _, note, _ in boxes],
        "joined": [list(pair) for pair in joined], "edges": [[[x, y] for x, y in route] for route in placed.routes],
    }  # fmt: skip


# -- folds ------------------------------------------------------------------------------------------


class FxRun(NamedTuple):
    """Consecutive nodes of the graph."""

    name: str
    nodes: range


def fx_folds(modules: Sequence[str | None], nodes: list[FxNode]) -> list[FxRun]:
    """The folds of more than `MOST` nodes.

    Nodes are grouped by module path, if more than half have one, at the greatest depth with at most `MOST` folds, or else by
    source line.  If every grouping gives more, neighboring runs are joined; if none is useful, nodes are folded by number.
    """
    by_module: list[list[FxRun]] = []
    if sum(m is not None for m in modules) * 2 > len(nodes):
        paths = [(m or "").split(".") for m in modules]
        by_module = [_runs([".".join(path[:depth]) for path in paths], nodes) for depth in range(DEEPEST, 0, -1)]
    by_line = _runs([n.get("place", "") for n in nodes], nodes)
    useful = [runs for runs in (*by_module, by_line) if _is_useful(runs)]
    few = next((runs for runs in useful if len(runs) <= MOST), None)
    return few or _joined(useful[-1] if useful else [FxRun(f"node {i + 1}", range(i, i + 1)) for i in range(len(nodes))])


def _is_useful(runs: list[FxRun]) -> bool:
    """Whether there are at least two runs besides inputs, none with more than the share `LARGEST` of the nodes in them."""
    own = [len(run.nodes) for run in runs if run.name != INPUTS]
    return len(own) >= 2 and max(own) <= LARGEST * sum(own)


def _runs(keys: list[str], nodes: list[FxNode]) -> list[FxRun]:
    """Runs of nodes with the same key; inputs and parameters make runs of their own, together.

    A node without a key joins the run before it, or begins the run `start` if there is none or it is of inputs.
    """
    filled: list[str] = []
    for key, node in zip(keys, nodes, strict=True):
        own = INPUTS if node["kind"] in ("input", "param") else key
        filled.append(own or (filled[-1] if filled and filled[-1] != INPUTS else "start"))
    runs = [[*run] for _, run in groupby(enumerate(filled), lambda pair: pair[1])]
    return [FxRun(shorten(run[0][1], 200), range(run[0][0], run[-1][0] + 1)) for run in runs]


def _joined(runs: list[FxRun]) -> list[FxRun]:
    """Join neighboring runs, because there are too many: `model.layers.0 – 13`; inputs at the start stay separate."""
    head = runs[:1] if runs[0].name == INPUTS else []
    rest = runs[len(head) :]
    size = -(-len(rest) // (MOST - len(head)))
    return head + [_together(rest[at : at + size]) for at in range(0, len(rest), size)]


def _together(runs: list[FxRun]) -> FxRun:
    one, other = runs[0].name, runs[-1].name
    # what both begin with: the file of a place, a module's path, or "node"
    by = next((by for by in ":. " if by in one), "")
    shared = one[: one.rfind(by) + 1]
    name = one if one == other else f"{one} – {other.removeprefix(shared)}"
    return FxRun(name, range(runs[0].nodes.start, runs[-1].nodes.stop))
