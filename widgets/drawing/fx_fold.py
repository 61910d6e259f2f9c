"""Folds the nodes of a large FX graph: consecutive nodes that belong together become one box.

Promises: a fold is a run of consecutive nodes, so arrows between folds only lead forward; there are at least two and at most
`MOST` folds; each node is in exactly one; inputs at the start have a fold of their own, unless nodes are folded by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from dynascope.widgets.wire import FxNode
from dynascope.widgets.words import shorten

#: a reader can grasp a drawing of at most this many boxes
MOST = 60
#: a grouping is useful if no group has a larger share than this of the nodes, not counting inputs
LARGEST = 0.7
INPUTS = "inputs"
#: the greatest depth of module paths that is tried
DEEPEST = 8


@dataclass(frozen=True)
class FxRun:
    """`count` consecutive nodes, from node `first` of the graph on."""

    name: str
    first: int
    count: int

    @property
    def end(self) -> int:
        return self.first + self.count


def fx_folds(modules: Sequence[str | None], nodes: list[FxNode], first: int = 0) -> list[FxRun]:
    """The folds of a run of more than `MOST` nodes that begins at node `first`.

    Nodes are grouped by module path, if more than half have one, at the greatest depth with at most `MOST` folds, or else by
    source line.  If every grouping gives more, neighboring runs are joined; if none is useful, nodes are folded by number.
    """
    known = sum(m is not None for m in modules)
    by_module: list[list[FxRun]] = []
    if known * 2 > len(nodes):
        by_module = [_runs([_upto(m, depth) for m in modules], nodes, first) for depth in range(DEEPEST, 0, -1)]
    by_line = _runs([n.get("place", "") for n in nodes], nodes, first)
    useful = [runs for runs in (*by_module, by_line) if _is_useful(runs)]
    few = next((runs for runs in useful if len(runs) <= MOST), None)
    return few or (_joined(useful[-1]) if useful else _pieces(len(nodes), first))


def _is_useful(runs: list[FxRun]) -> bool:
    """Whether there are at least two runs besides inputs, none with more than the share `LARGEST` of the nodes in them."""
    own = [r.count for r in runs if r.name != INPUTS]
    return len(own) >= 2 and max(own) <= LARGEST * sum(own)


def _upto(module: str | None, depth: int) -> str:
    return "" if module is None else ".".join(module.split(".")[:depth])


def _runs(keys: list[str], nodes: list[FxNode], first: int) -> list[FxRun]:
    """Runs of nodes with the same key; inputs and parameters make runs of their own, together.

    A node without a key joins the run before it, or begins the run `start` if there is none or it is of inputs.
    """
    filled: list[str] = []
    for key, node in zip(keys, nodes, strict=True):
        own = INPUTS if node["kind"] in ("input", "param") else key
        filled.append(own or (filled[-1] if filled and filled[-1] != INPUTS else "start"))
    runs: list[FxRun] = []
    for key, run in groupby(filled):
        count = len(list(run))
        runs.append(FxRun(shorten(key, 200), first, count))
        first += count
    return runs


def _joined(runs: list[FxRun]) -> list[FxRun]:
    """Join neighboring runs, because there are too many: `model.layers.0 – 13`; inputs at the start stay separate."""
    head = runs[:1] if runs[0].name == INPUTS else []
    rest = runs[len(head) :]
    size = -(-len(rest) // (MOST - len(head)))
    return head + [_together(rest[at : at + size]) for at in range(0, len(rest), size)]


def _together(runs: list[FxRun]) -> FxRun:
    one, other = runs[0].name, runs[-1].name
    # what both begin with: the file of a place, or a module's path
    shared = one.rpartition(":" if ":" in one else ".")[0] + (":" if ":" in one else ".")
    name = one if one == other else f"{one} – {other.removeprefix(shared)}"
    return FxRun(name, runs[0].first, sum(r.count for r in runs))


def _pieces(count: int, first: int) -> list[FxRun]:
    size = -(-count // MOST)
    return [
        FxRun(f"nodes {first + at + 1}–{first + min(count, at + size)}", first + at, min(size, count - at))
        for at in range(0, count, size)
    ]
