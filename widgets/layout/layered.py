"""Our own layered layout: rows by longest path, order by barycentre, x by neighbours; linear in its input.

Promises: boxes never overlap, whatever the edges are (cycles, loops, several parts, long spans); 10,000
boxes take less than a second.  Long edges run through gaps between boxes while their number is small,
and along a lane beside the drawing where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

Point = tuple[float, float]
Size = tuple[float, float]


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
    """Left upper corners, and one polyline per line."""

    corners: dict[str, Point]
    routes: list[list[Point]]


def place(sizes: dict[str, Size], lines: list[Line], gaps: Gaps, *, snug: bool = False) -> Placed:
    """Place every box of `sizes` and route every line.

    `snug`: a box that nothing leads to stands right above the first that it leads to, not in the top row.
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
    corners = {id: (rows.x[i] - sizes[id][0] / 2, rows.top[ranks[i]]) for i, id in enumerate(ids)}
    return Placed(corners, rows.routes())


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
        """Sort each row by where its neighbours stand, down and up a few times."""
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
                        near = [place[n] for node in unit for n in neighbours[node]]
                        keys[unit[0]] = sum(near) / len(near) if near else place[unit[0]]
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
        """The centres of the first boxes of a row whose units stand as close as they may."""
        starts, at = [], 0.0
        for position, unit in enumerate(row):
            if position:
                at += self.gaps.column + self.width[unit[0]] / 2
            starts.append(at)
            at += self.offset[unit[-1]] + self.width[unit[-1]] / 2
        return starts

    def _settle(self, row: list[list[int]], starts: list[float], neighbours: list[list[int]]) -> None:
        """Least movement towards the wished places without overlap: blocks of units that touch move as one."""
        x = self.x
        blocks: list[tuple[float, float, int]] = []  # sum of wishes, weight, how many units
        for unit, start in zip(row, starts, strict=True):
            wishes = [sum([x[n] for n in neighbours[i]]) / len(neighbours[i]) - self.offset[i] for i in unit if neighbours[i]]
            if wishes:
                total, weight, count = sum(wishes) - start * len(wishes), float(len(wishes)), 1
            else:
                total, weight, count = (x[unit[0]] - start) * 0.1, 0.1, 1
            while blocks and blocks[-1][0] * weight > total * blocks[-1][1]:
                before = blocks.pop()
                total, weight, count = total + before[0], weight + before[1], count + before[2]
            blocks.append((total, weight, count))
        shifts = [total / weight for total, weight, count in blocks for _ in range(count)]
        self._set(row, [shift + start for shift, start in zip(shifts, starts, strict=True)])

    def routes(self) -> list[list[Point]]:
        """One polyline per arc."""
        right = max([self.x[n] + self.width[n] / 2 for n in range(self.real)], default=0.0)
        lane = right + 16
        follows = {pair for unit in self.units for pair in pairwise(unit)}
        result: list[list[Point]] = []
        for (source, target, kind), passed in zip(self.arcs, self.passes, strict=True):
            if kind == "order" or source == target:
                result.append([])
                continue
            a, b = self._rect(source), self._rect(target)
            if passed is not None:
                points: list[Point] = []
                for node in passed:
                    rank = self.ranks[node]
                    points += [(self.x[node], self.top[rank]), (self.x[node], self.top[rank] + self.height[rank])]
                result.append(clipped(a, b, points, "down"))
            elif (source, target) in follows:
                result.append(clipped(a, b, [], "side"))
            else:
                below = self.top[self.ranks[source]] + self.height[self.ranks[source]] + self.gaps.row * 0.3
                above = self.top[self.ranks[target]] - self.gaps.row * 0.35
                result.append(clipped(a, b, [
                    (a[0] + a[2] * 0.75, below), (lane, below), (lane, above), (b[0] + b[2] * 0.75, above),
                ], "lane"))  # fmt: skip
                lane += 6 if lane < right + 300 else 0
        return result

    def _rect(self, node: int) -> tuple[float, float, float, float]:
        width, height = self.sizes[node]
        return self.x[node] - width / 2, self.top[self.ranks[node]], width, height


def clipped(
    a: tuple[float, float, float, float], b: tuple[float, float, float, float], inner: list[Point], kind: str
) -> list[Point]:
    """A route from the border of `a` to the border of `b` through the points between.

    Rectangles are (x, y, width, height).  Ends: bottom to top for down edges, right to left for side edges,
    for lanes straight below and above the first and the last inner point.
    """
    ax, ay, aw, ah = a
    bx, by, bw, bh = b
    if kind == "side":
        if not inner and ax + aw <= bx:
            y = min(ay + min(ah, 40.0) / 2, by + bh)
            top, bottom = max(ay, by), min(ay + ah, by + bh)
            if top <= bottom:
                y = min(max(y, top), bottom)
                return [(ax + aw, y), (bx, y)]
        return [(ax + aw, ay + ah / 2), *inner, (bx, by + bh / 2)]
    if kind == "lane":
        return [(inner[0][0], ay + ah), *inner, (inner[-1][0], by)]
    if kind == "free":
        return [_border(a, inner[0] if inner else (bx + bw / 2, by + bh / 2)), *inner,
                _border(b, inner[-1] if inner else (ax + aw / 2, ay + ah / 2))]  # fmt: skip
    return [(ax + aw / 2, ay + ah), *inner, (bx + bw / 2, by)]


def _border(rect: tuple[float, float, float, float], towards: Point) -> Point:
    """Where the line from the middle of a rectangle towards a point leaves it."""
    x, y, width, height = rect
    cx, cy = x + width / 2, y + height / 2
    dx, dy = towards[0] - cx, towards[1] - cy
    if dx == 0 and dy == 0:
        return cx, y + height
    scale = min(width / 2 / abs(dx) if dx else float("inf"), height / 2 / abs(dy) if dy else float("inf"))
    return cx + dx * scale, cy + dy * scale


def _units(count: int, beside: set[tuple[int, int]]) -> list[list[int]]:
    """All nodes, each behind the first one that it stands beside; a circle is cut at its smallest."""
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
