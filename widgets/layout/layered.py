"""Our own layered layout: rows by longest path, order by barycentre, x by neighbours; linear in its input.

Promises: boxes never overlap, whatever the edges are (cycles, loops, several parts, long spans); 10,000
boxes take less than a second.  Long edges run through gaps between boxes while their number is small,
and along a lane beside the drawing where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

Point = tuple[float, float]
Size = tuple[float, float]


class Rect(NamedTuple):
    """A placed box or group; x and y are its left upper corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    def moved(self, dx: float, dy: float) -> Rect:
        """Moved, and rounded to a tenth of a pixel."""
        return Rect(round(self.x + dx, 1), round(self.y + dy, 1), self.width, self.height)


@dataclass(frozen=True)
class Line:
    """An edge between outer boxes; `kind` as in `layout.Edge`."""

    source: str
    target: str
    kind: str


@dataclass(frozen=True)
class Gaps:
    """Free pixels between rows, between columns, and where a side edge passes."""

    row: float
    column: float
    side: float


@dataclass(frozen=True)
class Placed:
    """The position of each box, and one polyline per line."""

    boxes: dict[str, Rect]
    routes: list[list[Point]]


def place(sizes: dict[str, Size], lines: list[Line], gaps: Gaps, *, snug: bool = False) -> Placed:
    """Place every box of `sizes` and route every line.

    `snug`: a box without incoming lines is right above the first box that it leads to, not in the top row.
    """
    if not sizes:
        return Placed({}, [[] for _ in lines])
    ids = list(sizes)
    index = {id: i for i, id in enumerate(ids)}
    arcs = [(index[line.source], index[line.target], line.kind) for line in lines]
    ranks = _ranks(len(ids), arcs)
    if snug:
        _lower_sources(ranks, arcs)
    rows = _Rows([sizes[id] for id in ids], arcs, ranks, gaps)
    rows.order()
    rows.spread()
    return Placed({id: rows.rect(i) for i, id in enumerate(ids)}, rows.routes())


def _ranks(count: int, arcs: list[tuple[int, int, str]]) -> list[int]:
    """The row of each box: below its sources for down edges, no higher than them for side edges.

    Back edges (found depth first, in the order given) and free edges count for nothing.
    """
    after: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for source, target, kind in arcs:
        if kind != "free" and source != target:
            after[source].append((target, 0 if kind == "side" else 1))
    state, finished = bytearray(count), []
    back: set[tuple[int, int]] = set()
    for root in range(count):
        if state[root]:
            continue
        stack = [(root, 0)]
        state[root] = 1
        while stack:
            node, step = stack[-1]
            if step < len(after[node]):
                stack[-1] = (node, step + 1)
                target = after[node][step][0]
                if state[target] == 1:
                    back.add((node, target))
                elif not state[target]:
                    state[target] = 1
                    stack.append((target, 0))
            else:
                state[node] = 2
                finished.append(node)
                stack.pop()
    ranks = [0] * count
    for node in reversed(finished):
        for target, step in after[node]:
            if (node, target) not in back:
                ranks[target] = max(ranks[target], ranks[node] + step)
    return ranks


def _lower_sources(ranks: list[int], arcs: list[tuple[int, int, str]]) -> None:
    """Move boxes without sources down to just above the highest of their targets."""
    reached = {target for source, target, _ in arcs if source != target}
    first: dict[int, int] = {}
    for source, target, kind in arcs:
        if source not in reached and source != target and kind == "down":
            first[source] = min(first.get(source, ranks[target]), ranks[target])
    for node, rank in first.items():
        ranks[node] = max(ranks[node], rank - 1)


class _Rows:
    """Rows of units, being ordered and spread.

    A unit is a box with those that side edges join to its right, which move as one; or a point where a long edge passes.
    """

    def __init__(self, sizes: list[Size], arcs: list[tuple[int, int, str]], ranks: list[int], gaps: Gaps) -> None:
        self.sizes, self.arcs, self.ranks, self.gaps = sizes, arcs, list(ranks), gaps
        self.real = len(sizes)
        self.width = [s[0] for s in sizes]
        self.up: list[list[int]] = [[] for _ in sizes]
        self.down: list[list[int]] = [[] for _ in sizes]
        #: per arc: the passing points, or None for a lane beside the drawing
        self.passes: list[list[int] | None] = self._passes()
        beside = {(s, t) for s, t, kind in arcs if kind == "side" and ranks[s] == ranks[t] and s != t}
        self.units = _units(len(self.ranks), beside)
        #: from the centre of a unit's first box to that of each of its boxes
        self.offset = [0.0] * len(self.ranks)
        for unit in self.units:
            for left, right in pairwise(unit):
                gap = gaps.side if (left, right) in beside else gaps.column
                self.offset[right] = self.offset[left] + self.width[left] / 2 + gap + self.width[right] / 2
        self.rows: list[list[list[int]]] = [[] for _ in range(max(self.ranks) + 1)]
        for unit in self.units:
            self.rows[self.ranks[unit[0]]].append(unit)
        self.height = [0.0] * len(self.rows)
        for rank, (_, height) in zip(ranks, sizes, strict=True):
            self.height[rank] = max(self.height[rank], height)
        self.top = list(accumulate((height + gaps.row for height in self.height), initial=0.0))
        self.x = [0.0] * len(self.ranks)

    def _passes(self) -> list[list[int] | None]:
        """Points where each long edge passes the rows between its ends, for the shortest edges first."""
        budget = 2 * (self.real + len(self.arcs)) + 200
        passes: list[list[int] | None] = [None] * len(self.arcs)
        spans = [self.ranks[t] - self.ranks[s] for s, t, _ in self.arcs]
        for number in sorted(range(len(self.arcs)), key=spans.__getitem__):
            if 1 <= spans[number] <= budget + 1 and self.arcs[number][2] != "free":
                budget -= spans[number] - 1
                passes[number] = self._chain(*self.arcs[number][:2])
        return passes

    def _chain(self, source: int, target: int) -> list[int]:
        points: list[int] = []
        above = source
        for rank in range(self.ranks[source] + 1, self.ranks[target]):
            node = len(self.ranks)
            self.ranks.append(rank)
            self.width.append(2.0)
            self.up.append([above])
            self.down.append([])
            self.down[above].append(node)
            points.append(node)
            above = node
        self.down[above].append(target)
        self.up[target].append(above)
        return points

    def order(self) -> None:
        """Sort each row by the positions of its neighbours, down and up a few times."""
        place = [0.0] * len(self.ranks)
        for row in self.rows:
            _number(row, place)
        for sweep in range(6 if len(self.ranks) < 2000 else 2):
            going_down = sweep % 2 == 0
            neighbours = self.up if going_down else self.down
            for row in self.rows if going_down else reversed(self.rows):
                if len(row) > 1:
                    keys = {}
                    for unit in row:
                        near = [n for node in unit for n in neighbours[node]] if len(unit) > 1 else neighbours[unit[0]]
                        keys[unit[0]] = sum([place[n] for n in near]) / len(near) if near else place[unit[0]]
                    row.sort(key=lambda unit: keys[unit[0]])
                    _number(row, place)

    def spread(self) -> None:
        """Give each unit an x near its neighbours; units in a row keep their order and distance."""
        starts = [self._starts(row) for row in self.rows]
        for row, start in zip(self.rows, starts, strict=True):
            self._set(row, start)
        turns = 8 if len(self.ranks) < 2000 else 2
        order = list(zip(self.rows, starts, strict=True))
        for turn in range(turns):
            neighbours = self.up if turn % 2 == 0 else self.down
            for row, start in order if turn % 2 == 0 else reversed(order):
                self._settle(row, start, neighbours)

    def _set(self, row: list[list[int]], first: list[float]) -> None:
        for unit, x in zip(row, first, strict=True):
            for node in unit:
                self.x[node] = x + self.offset[node]

    def _starts(self, row: list[list[int]]) -> list[float]:
        """The centres of the first boxes of a row whose units are as close together as allowed."""
        starts, at = [], 0.0
        for position, unit in enumerate(row):
            if position:
                at += self.gaps.column + self.width[unit[0]] / 2
            starts.append(at)
            at += self.offset[unit[-1]] + self.width[unit[-1]] / 2
        return starts

    def _settle(self, row: list[list[int]], starts: list[float], neighbours: list[list[int]]) -> None:
        """Move units as little as possible from their desired places without overlap: units that touch move as one block."""
        x = self.x
        blocks: list[tuple[float, float, int]] = []  # sum of wishes, weight, how many units
        for unit, start in zip(row, starts, strict=True):
            total, weight, count = 0.0, 0.0, 1
            for node in unit:
                near = neighbours[node]
                if near:
                    wish = x[near[0]] if len(near) == 1 else sum([x[n] for n in near]) / len(near)
                    total, weight = total + wish - self.offset[node] - start, weight + 1
            if not weight:
                total, weight = (x[unit[0]] - start) * 0.1, 0.1
            while blocks and blocks[-1][0] * weight > total * blocks[-1][1]:
                before = blocks.pop()
                total, weight, count = total + before[0], weight + before[1], count + before[2]
            blocks.append((total, weight, count))
        shifts = [total / weight for total, weight, count in blocks for _ in range(count)]
        self._set(row, [shift + start for shift, start in zip(shifts, starts, strict=True)])

    def routes(self) -> list[list[Point]]:
        """One polyline per arc: through its points, to the right, or along a lane beside the drawing."""
        right = max(self.x[n] + self.width[n] / 2 for n in range(self.real))
        lane = right + 16
        follows = {pair for unit in self.units for pair in pairwise(unit)}
        routes: list[list[Point]] = [[] for _ in self.arcs]
        for number, (source, target, kind) in enumerate(self.arcs):
            passed = self.passes[number]
            if kind == "order" or source == target:
                continue
            a, b = self.rect(source), self.rect(target)
            if passed is not None:
                inner = [(self.x[n], y) for n in passed for y in self._edges_of_row(n)]
                routes[number] = [(a.middle, a.bottom), *inner, (b.middle, b.y)]
            elif (source, target) in follows:
                routes[number] = _sideways(a, b)
            else:
                below = self._edges_of_row(source)[1] + self.gaps.row * 0.3
                above = self._edges_of_row(target)[0] - self.gaps.row * 0.35
                ax, bx = a.x + a.width * 0.75, b.x + b.width * 0.75
                routes[number] = [(ax, a.bottom), (ax, below), (lane, below), (lane, above), (bx, above), (bx, b.y)]
                lane += 6 if lane < right + 300 else 0
        return routes

    def _edges_of_row(self, node: int) -> tuple[float, float]:
        top = self.top[self.ranks[node]]
        return top, top + self.height[self.ranks[node]]

    def rect(self, node: int) -> Rect:
        """The position of a box."""
        width, height = self.sizes[node]
        return Rect(self.x[node] - width / 2, self.top[self.ranks[node]], width, height)


def _sideways(a: Rect, b: Rect) -> list[Point]:
    """Straight from the right of `a` to the left of `b`, where their heights meet."""
    top, bottom = max(a.y, b.y), min(a.bottom, b.bottom)
    if top > bottom:
        return [(a.right, a.y + a.height / 2), (b.x, b.y + b.height / 2)]
    y = min(max(a.y + min(a.height, 40.0) / 2, top), bottom)
    return [(a.right, y), (b.x, y)]


def _units(count: int, beside: set[tuple[int, int]]) -> list[list[int]]:
    """All nodes, each after the first node that it is beside; a cycle is cut at its smallest node."""
    follow: dict[int, list[int]] = {}
    leader = list(range(count))
    for source, target in sorted(beside):
        root = source
        while leader[root] != root:
            root = leader[root]
        if leader[target] == target and root != target:
            leader[target] = source
            follow.setdefault(source, []).append(target)
    units = []
    for node in range(count):
        if leader[node] == node:
            unit, stack = [], [node]
            while stack:
                unit.append(stack.pop())
                stack.extend(reversed(follow.get(unit[-1], ())))
            units.append(unit)
    return units


def _number(row: list[list[int]], place: list[float]) -> None:
    for position, node in enumerate(chain.from_iterable(row)):
        place[node] = position
