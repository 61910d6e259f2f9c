"""A large FX graph, folded: stretches of nodes that belong together become one box each.

Promises: a fold is a run of neighbours in the order of the graph, so arrows between folds lead forward only; there are at
most `MOST` of them; inputs, and each node besides, stand in exactly one.  Linear in the number of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from dynascope.compiler.run_time.break_costs import time_text
from dynascope.widgets import layout as lay
from dynascope.widgets.wire import FxFold, FxNode, FxPicture
from dynascope.widgets.words import cut, shorten, text_width
from dynascope.widgets.wrap import wrapped

#: boxes that can still be taken in
MOST = 60
WIDEST, HEIGHT = 260.0, 40.0
#: pixels: what is higher stands in columns, as many as this is wide
TALL, ROOM = 420.0, 740.0
#: share of the nodes that one fold may hold
LARGEST = 0.7
INPUTS = "inputs"
#: deepest module path that is tried first
DEEPEST = 8


def fx_folds(modules: Sequence[str | None], nodes: list[FxNode]) -> list[FxFold]:
    """The folds of a graph: by module path, as deep as stays readable; by source line; by number where nothing is known."""
    known = sum(m is not None for m in modules)
    ways: list[list[str]] = []
    if known * 2 > len(nodes):
        ways += [[_upto(m, depth) for m in modules] for depth in range(DEEPEST, 0, -1)]
    ways.append([n.get("place", "") for n in nodes])
    for keys in ways:
        folds = _runs(keys, nodes)
        own = [f["count"] for f in folds if f["name"] != INPUTS]
        # one fold that holds nearly everything tells nothing
        if len(own) >= 2 and len(folds) <= MOST and max(own) <= LARGEST * sum(own):
            return folds
    return _pieces(len(nodes))


def _upto(module: str | None, depth: int) -> str:
    return "" if module is None else ".".join(module.split(".")[:depth])


def _runs(keys: list[str], nodes: list[FxNode]) -> list[FxFold]:
    """Runs of one key.  A node without a key goes with what is before it; inputs and parameters stand apart."""
    filled: list[str] = []
    for key, node in zip(keys, nodes, strict=True):
        own = INPUTS if node["kind"] in ("input", "param") else key
        filled.append(own or (filled[-1] if filled and filled[-1] != INPUTS else "start"))
    folds: list[FxFold] = []
    at = 0
    for key, run in groupby(filled):
        count = len(list(run))
        folds.append({"name": shorten(key, 200), "first": at, "count": count})
        at += count
    return folds


def _pieces(count: int) -> list[FxFold]:
    size = -(-count // MOST)
    return [
        {"name": f"nodes {at + 1}–{min(count, at + size)}", "first": at, "count": min(size, count - at)}
        for at in range(0, count, size)
    ]


def folded_picture(folds: list[FxFold], nodes: list[FxNode], seconds: Sequence[float] = ()) -> FxPicture:
    """Where the folds stand; a line where a node of one reads a node of another.

    `seconds`: of each node, where it was run: a fold's heat is what its nodes took together.
    """
    fold_of = [i for i, fold in enumerate(folds) for _ in range(fold["count"])]
    joined = {(fold_of[source], fold_of[i]) for i, node in enumerate(nodes) for source in node["reads"]}
    titles = [cut(fold["name"], WIDEST - 24, 12) for fold in folds]
    notes = [f"{fold['count']:,} {'node' if fold['count'] == 1 else 'nodes'}" for fold in folds]
    taken = [sum(seconds[fold["first"] : fold["first"] + fold["count"]]) for fold in folds]
    for i, fold in enumerate(folds):
        if taken[i] > 0:
            fold["heat"] = round(100 * taken[i] / max(taken))
            notes[i] += f" · {time_text(taken[i])}"
    widths = [max(text_width(a, 12), text_width(b, 10)) + 24 for a, b in zip(titles, notes, strict=True)]
    boxes = [lay.Box(f"n{i}", min(WIDEST, max(90.0, width)), HEIGHT) for i, width in enumerate(widths)]
    edges = [lay.Edge(f"n{a}", f"n{b}") for a, b in sorted(joined) if a < b]
    placed = wrapped(lay.layout(boxes, edges, engine="layered", compact=True), edges, ROOM, tall=TALL, bend=10.0)
    rects = [placed.boxes[f"n{i}"] for i in range(len(folds))]
    return {
        "width": placed.width, "height": placed.height, "boxes": [[r.x, r.y, r.width, r.height] for r in rects],
        "titles": titles, "edges": [[[x, y] for x, y in route] for route in placed.edges],
        "labels": [[round(r.x + r.width / 2, 1), round(r.y + 31, 1), note] for r, note in zip(rects, notes, strict=True)],
    }  # fmt: skip
