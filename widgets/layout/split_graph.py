"""The layout of the split graph: a call leads one column to the right, a continuation down.

Promises: no two frames overlap, and the boxes of a frame are one below the other in it; every route starts and ends on the
border of what it joins, and crosses no other frame if one of the simple routes is free; a long chain of continuations without
calls, at or below a tree's root, is cut into two columns; trees are side by side where there is room.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import Literal

from dynascope.widgets.layout.geometry import Placement, Point, Rect, Size, placement, shelves
from dynascope.widgets.words import grouped

#: what an edge says: a graph stops at a break; a frame continues as a resume function, or calls another one.  Calls lead to the
#: right, all others down
EdgeKind = Literal["within", "continues", "calls"]

COLUMN, COLUMN_GAP, ROW_GAP = 246.0, 50.0, 46.0
#: trees side by side are at most this many pixels wide: two columns
ROOM = 2 * COLUMN + COLUMN_GAP
#: the height above which a chain of continuations is cut into two columns
TALL = 640.0
#: gaps inside a frame: around its boxes, and between them
PAD, INNER_GAP = 12.0, 16.0
#: distances from a border to the first vertical line beside it, and from a line to the next; those of the lines that are tried
FIRST_LANE, LANE = 12.0, 6.0
_AWAY = [FIRST_LANE + LANE * lane for lane in range(6)]
#: distance between the top of a box and a line that ends at its side or turns above it
TURN = 20.0
#: at most this many times, a line is compared with a column of frames in one drawing; after that, edges run beside the drawing
BUDGET = 400_000


@dataclass(frozen=True)
class Box:
    """A frame or another top-level box, or a box in the frame with id `frame`; the height of a frame is that of its header."""

    id: str
    width: float
    height: float
    frame: str | None = None


@dataclass
class Edge:
    """An edge between two frames or boxes, by id."""

    source: str
    target: str
    kind: EdgeKind


def layout(boxes: list[Box], edges: Sequence[Edge]) -> Placement[str]:
    """Place the boxes and route the edges."""
    members = grouped((box.frame, box) for box in boxes)
    owner = {box.id: box.frame or box.id for box in boxes}
    trees = _Forest({box.id: _size(box, members[box.id]) for box in members[None]}, edges, owner).trees()
    extents = [(max(r.right for r in tree.values()), max(r.bottom for r in tree.values())) for tree in trees]
    corners = shelves(extents, ROOM, ROW_GAP, COLUMN_GAP)
    frames = {id: r.moved(x, y) for tree, (x, y) in zip(trees, corners, strict=True) for id, r in tree.items()}
    rects = dict(frames)
    for box in members[None]:
        y = frames[box.id].y + box.height
        for inner in members[box.id]:
            rects[inner.id] = Rect(frames[box.id].middle - inner.width / 2, y, inner.width, inner.height)
            y += inner.height + INNER_GAP
    lasts = {inside[-1].id for frame, inside in members.items() if frame is not None and inside}
    router, routes = _Router(frames, rects, owner, lasts), dict[int, list[Point]]()
    # edges that lead up most come first, so that routes that share an end do not cross
    for number in sorted(range(len(edges)), key=lambda n: rects[edges[n].target].y - rects[edges[n].source].y):
        routes[number] = router.route(edges[number])
    return placement(rects, [routes[number] for number in range(len(edges))])


def _size(frame: Box, inside: list[Box]) -> Size:
    if not inside:
        return frame.width, frame.height
    width = max([frame.width, *(box.width + 2 * PAD for box in inside)])
    return width, frame.height + sum(box.height + INNER_GAP for box in inside) - INNER_GAP + PAD


class _Forest:
    """Frames as trees: the first edge that leads to a frame joins it to its parent, unless that closes a cycle."""

    def __init__(self, sizes: dict[str, Size], edges: Sequence[Edge], owner: dict[str, str]) -> None:
        self.sizes = sizes
        self.parent: dict[str, str] = {}
        self.right: dict[str, list[str]] = defaultdict(list)
        self.down: dict[str, list[str]] = defaultdict(list)
        for edge in edges:
            source, target = owner[edge.source], owner[edge.target]
            if target not in self.parent and self._root(source) != target:
                self.parent[target] = source
                (self.right if edge.kind == "calls" else self.down)[source].append(target)

    def _root(self, id: str) -> str:
        while id in self.parent:
            id = self.parent[id]
        return id

    def trees(self) -> list[dict[str, Rect]]:
        return [self._tree(id) for id in self.sizes if id not in self.parent]

    def _tree(self, root: str) -> dict[str, Rect]:
        """The positions of a tree's frames: each as high in its column as the frames placed before it allow."""
        floors: dict[int, float] = defaultdict(float)
        placed: dict[str, Rect] = {}
        second = self._second_column(root)
        stack = [(root, 0, 0.0)]
        while stack:
            id, column, y = stack.pop()
            width, height = self.sizes[id]
            span = range(column, column + _columns(width))
            y = max([y, *(floors[c] for c in span)])
            placed[id] = Rect(column * (COLUMN + COLUMN_GAP), y, width, height)
            floors |= dict.fromkeys(span, y + height + ROW_GAP)
            following = [(child, span.stop, y) for child in self.right[id]]
            for n, child in enumerate(self.down[id]):
                if child in second:
                    following.append((child, 1, placed[second[child]].y))
                else:  # after the second column back to the first one, below both
                    following.append((child, 0, floors[1]) if id in second else (child, column + n, y + height + ROW_GAP))
            stack += reversed(following)
        return placed

    def _second_column(self, root: str) -> dict[str, str]:
        """Frame that moves to the second column of a long chain -> the frame beside which that column begins."""
        trunk = [root]
        while self.down[trunk[-1]]:
            trunk.append(self.down[trunk[-1]][0])
        second: dict[str, str] = {}
        for plain, frames in groupby(trunk, self._is_plain):
            chain = list(frames)
            ends = list(accumulate(self.sizes[id][1] + ROW_GAP for id in chain))
            if plain and ends[-1] > TALL:
                second |= {id: chain[0] for id, end in zip(chain[1:], ends[1:], strict=True) if end > ends[-1] / 2 + ROW_GAP}
        return second

    def _is_plain(self, id: str) -> bool:
        """Whether a frame takes one column and nothing is beside it: no call, and at most one continuation."""
        return not self.right[id] and len(self.down[id]) < 2 and _columns(self.sizes[id][0]) == 1


def _columns(width: float) -> int:
    """How many columns a frame of this width takes; it may reach a little into the gap beside them."""
    return max(1, math.ceil((width + COLUMN_GAP / 2 - 5) / (COLUMN + COLUMN_GAP)))


class _Router:
    """Finds right-angled routes in one drawing; later routes leave the lanes of earlier ones free."""

    def __init__(self, frames: dict[str, Rect], rects: dict[str, Rect], owner: dict[str, str], lasts: set[str]) -> None:
        self.frames, self.rects, self.owner, self.lasts = frames, rects, owner, lasts
        self.right, self.beside, self.budget = max((r.right for r in frames.values()), default=0.0), 0, BUDGET
        #: vertical stretches of earlier routes, by their x in units of LANE: (x, from, to, frame whose calls may share it)
        self.lanes: dict[int, list[tuple[float, float, float, str]]] = defaultdict(list)
        #: left side -> the frames there, from top to bottom; they do not overlap, so their lower sides are in order, too
        self.columns = grouped((r.x, (id, r)) for id, r in sorted(frames.items(), key=lambda item: item[1].y))
        self.bottoms = {x: [r.bottom for _, r in column] for x, column in self.columns.items()}
        self.rights = {x: max(r.right for _, r in column) for x, column in self.columns.items()}

    def route(self, edge: Edge) -> list[Point]:
        """A route inside a frame; between frames, the first simple route that is free, or else one beside the drawing."""
        a, b = self.rects[edge.source], self.rects[edge.target]
        source, target = self.owner[edge.source], self.owner[edge.target]
        outer = self.frames[source]
        if source == target:
            return _inside(outer, a, b)
        if edge.kind == "calls":  # those of one frame may share a line
            trunk, tries = source, _beside(a, outer, b, self.frames[target])
        else:
            trunk, tries = "", _below(a, outer, b, edge.source == source or edge.source in self.lasts)
        for points in tries:
            if self.budget > 0 and self._unused(points, trunk) and self._free(points, source, target):
                break
        else:
            self.beside += 1
            x = self.right + FIRST_LANE + LANE * min(self.beside, 50)
            start, end = a.y + min(TURN, a.height / 2), b.y + min(TURN, b.height / 2)
            points = [(a.right, start), (x, start), (x, end), (b.right, end)]
        for lane in _lanes(points):
            self.lanes[int(lane[0] // LANE)].append((*lane, trunk))
        return points

    def _unused(self, points: list[Point], trunk: str) -> bool:
        """Whether no earlier route runs along an inner vertical stretch of this one, except those that may share it."""
        return not any(
            abs(x - lane) < LANE - 1 and low < end and start < high and (not trunk or trunk != other)
            for x, low, high in _lanes(points)
            for near in (-1, 0, 1)
            for lane, start, end, other in self.lanes.get(int(x // LANE) + near, ())
        )

    def _free(self, points: list[Point], source: str, target: str) -> bool:
        """Whether a route crosses no frame: only its first stretch may touch the source, only its last one the target."""
        last = len(points) - 2
        for n, ((ax, ay), (bx, by)) in enumerate(pairwise(points)):
            left, right, top, bottom = min(ax, bx) - 2, max(ax, bx) + 2, min(ay, by) - 2, max(ay, by) + 2
            may_touch = {id for id, at in ((source, 0), (target, last)) if n == at}
            for x, column in self.columns.items():
                if x >= right or self.rights[x] <= left:
                    continue
                self.budget -= 1
                for id, r in column[bisect_right(self.bottoms[x], top) :]:
                    if r.y >= bottom:
                        break
                    if r.right > left and id not in may_touch:
                        return False
        return True


def _inside(frame: Rect, a: Rect, b: Rect) -> list[Point]:
    """A route in one frame: straight to the next box, or else beside the boxes."""
    if 0 <= b.y - a.bottom <= INNER_GAP:
        return [(a.middle, a.bottom), (b.middle, b.y)]
    x = min(max(a.right, b.right) + PAD / 2, max(frame.right, a.right, b.right))
    start, end = a.y + a.height * 0.4, b.y + b.height * 0.6
    return [(a.right, start), (x, start), (x, end), (b.right, end)]


def _below(a: Rect, outer: Rect, b: Rect, straight: bool) -> Iterator[list[Point]]:
    """Routes to the top of `b`; `straight`: nothing is below `a` in its frame."""
    turn, height = b.y - TURN, a.y + a.height / 2
    if straight:
        if b.x + TURN <= a.middle <= b.right - TURN and outer.bottom < b.y:
            yield [(a.middle, a.bottom), (a.middle, b.y)]
        yield [(a.middle, a.bottom), (a.middle, turn), (b.middle, turn), (b.middle, b.y)]
    for away in _AWAY:
        for side, x in ((a.right, outer.right + away), (a.x, outer.x - away)):
            yield [(side, height), (x, height), (x, turn), (b.middle, turn), (b.middle, b.y)]


def _beside(a: Rect, outer: Rect, b: Rect, target: Rect) -> Iterator[list[Point]]:
    """Routes from a side of `a` to a side of `b`: straight where their heights meet, else with one vertical stretch."""
    start, end = a.y + min(TURN, a.height / 2), b.y + min(TURN, b.height / 2)
    if a.right < b.x and b.y <= start <= b.bottom:
        yield [(a.right, start), (b.x, start)]
    for side, sign in ((target.x, -1), (target.right, 1), (outer.right, 1), (outer.x, -1)):
        for x in (side + sign * away for away in _AWAY):
            if not (outer.x < x < outer.right or target.x < x < target.right):
                leave, enter = a.right if x >= outer.right else a.x, b.right if x >= target.right else b.x
                yield [(leave, start), (x, start), (x, end), (enter, end)]


def _lanes(points: list[Point]) -> Iterator[tuple[float, float, float]]:
    """(x, from, to) of each inner vertical stretch."""
    for (ax, ay), (bx, by) in pairwise(points[1:-1]):
        if ax == bx:
            yield ax, min(ay, by), max(ay, by)
