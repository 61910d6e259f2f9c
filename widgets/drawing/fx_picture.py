"""The layout of an FX graph: its nodes, or for a large graph its folds, each with the layout of its contents.

Promises: up to `DRAWN` nodes are drawn one by one; larger graphs are drawn as folds.  The contents of each fold of up to
`DRAWN` nodes are laid out in advance, so that it opens without a kernel; those of a larger one are in the list of nodes.  An
arrow joins two boxes of a drawing if one reads the other; but if many folds read the same fold of inputs, one arrow is drawn
and the readers are counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dynascope.compiler.report import time_text
from dynascope.widgets.drawing.fx_fold import FxRun, fx_folds
from dynascope.widgets.layout.fx_graph import layout
from dynascope.widgets.layout.geometry import Size
from dynascope.widgets.wire import FxFold, FxNode, FxPicture
from dynascope.widgets.words import cut, text_width

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

#: prefix of an input's name that is not shown: the path of its module, or `l_`
_INPUT = re.compile(r"^(?:.*_(?:modules|parameters|buffers)_|[lL]_)(?=.)")


@dataclass(frozen=True)
class FxDrawing:
    """All nodes of one graph, in order: each reads only nodes before it.

    `modules` and `seconds` have one entry for each node; seconds are 0 for a node that was not timed.
    """

    nodes: list[FxNode]
    modules: Sequence[str | None]
    seconds: Sequence[float]

    def picture(self) -> FxPicture:
        """The whole graph."""
        run = FxRun("", 0, len(self.nodes))
        return self._unfolded(run) if run.count <= DRAWN else self._folded(run)

    def _unfolded(self, run: FxRun) -> FxPicture:
        """The layout of single nodes; a value that another of them reads is written right below the box of its node."""
        nodes = self.nodes[run.first : run.end]
        read = {source for node in nodes for source in node["reads"]}
        devices = {node["value"].rpartition("] ")[2] for node in nodes if "] " in node["value"]}
        same = f" {devices.pop()}" if len(devices) == 1 else ""
        titles, notes, sizes = [], [], []
        for i, node in enumerate(nodes):
            titles.append(cut(_title(node), WIDEST - 24, 12))
            value = node["value"].removesuffix(same) if same else node["value"]
            notes.append(cut(value, WIDEST - 10, 10, mono=True) if value and run.first + i in read else "")
            time = node.get("time", "")
            wide = max(
                text_width(titles[i], 12) + 24, text_width(notes[i], 10, mono=True) + 10, text_width(time, 10, mono=True) + 16
            )
            sizes.append((min(WIDEST, max(NARROWEST, wide)), TALLER if time else HEIGHT))
        inner = ((source - run.first, i) for i, node in enumerate(nodes) for source in node["reads"])
        return _placed(run, sizes, [pair for pair in inner if pair[0] >= 0], titles, notes)

    def _folded(self, run: FxRun) -> FxPicture:
        """The layout of folds, with an edge wherever a node in one fold reads a node in another."""
        nodes = self.nodes[run.first : run.end]
        runs = fx_folds(self.modules[run.first : run.end], nodes, run.first)
        fold_of = [i for i, r in enumerate(runs) for _ in range(r.count)]
        reads = ((source - run.first, i) for i, node in enumerate(nodes) for source in node["reads"])
        joined = {(fold_of[source], fold_of[i]) for source, i in reads if source >= 0 and fold_of[source] != fold_of[i]}
        readers = [sorted(b for a, b in joined if a == i) if self._holds_inputs(r) else [] for i, r in enumerate(runs)]
        joined -= {(i, b) for i, folds_read in enumerate(readers) if len(folds_read) > READERS for b in folds_read[1:]}
        taken = [sum(self.seconds[r.first : r.end]) for r in runs]
        folds: list[FxFold] = []
        titles, notes, sizes = [], [], []
        for i, r in enumerate(runs):
            folds.append({"name": r.name, "first": r.first, "count": r.count})
            if r.count <= DRAWN:
                folds[i]["inside"] = self._unfolded(r)
            titles.append(cut(r.name, FOLD_WIDEST - 38, 12))
            notes.append(f"{r.count:,} {'node' if r.count == 1 else 'nodes'}")
            if len(readers[i]) > READERS:
                notes[i] += f" · read by {len(readers[i])} parts"
            if taken[i] > 0:
                folds[i]["heat"] = round(100 * taken[i] / max(taken))
                notes[i] += f" · {time_text(taken[i])}"
            wide = max(text_width(titles[i], 12), text_width(notes[i], 10, mono=True)) + 38
            sizes.append((min(FOLD_WIDEST, max(FOLD_NARROWEST, wide)), TALLER))
        picture = _placed(run, sizes, sorted(joined), titles, notes)
        picture["folds"] = folds
        return picture

    def _holds_inputs(self, run: FxRun) -> bool:
        return all(node["kind"] in ("input", "param") for node in self.nodes[run.first : run.end])


def _title(node: FxNode) -> str:
    if node["kind"] in ("input", "param"):
        return _INPUT.sub("", node["name"]).strip("_") or node["name"]
    return "return" if node["kind"] == "output" else node["target"]


def _placed(run: FxRun, sizes: list[Size], joined: list[tuple[int, int]], titles: list[str], notes: list[str]) -> FxPicture:
    placed = layout(tuple(sizes), tuple(joined), ROOM, TALL)
    return {
        "width": placed.width, "height": placed.height, "first": run.first,
        "boxes": [[*placed.rects[i]] for i in range(len(sizes))],
        "titles": titles, "notes": notes, "joined": [list(pair) for pair in joined],
        "edges": [[[x, y] for x, y in route] for route in placed.routes],
    }  # fmt: skip
