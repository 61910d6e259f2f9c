"""The layout of FX graphs: rows by longest path, order by barycenter, x by neighbors; in almost linear time.

Promises: boxes never overlap; 10,000 boxes take less than a second.  Edges run through gaps between boxes, but if too many are
long, the longest ones take lanes beside the drawing.  Parts that no edge joins are side by side where there is room, and tall
parts are cut into columns (`geometry.wrapped`).
"""

from __future__ import annotations

import functools
from itertools import accumulate

from dynascope.widgets.layout.geometry import MARGIN, ROW_GAP, Part, Placement, Point, Rect, Size, placement, shelves, wrapped

COLUMN_GAP = 16.0
Arc = tuple[int, int]


#: about as many entries as a large report has graphs and folds; otherwise, each redraw of a growing report places them again
@functools.lru_cache(maxsize=512)
def layout(sizes: tuple[Size, ...], arcs: tuple[Arc, ...], room: float, tall: float) -> Placement[int]:
    """Place boxes of these sizes; in each arc (source, target), the source comes before the target.

    Unconnected parts are placed side by side, up to `room` wide; a part higher than `tall` is cut into columns.
    """
    rects: dict[int, Rect] = {}
    routes: list[list[Point]] = [[] for _ in arcs]
    parts = _parts(len(sizes), arcs)
    numbers = {node: n for part in parts for n, node in enumerate(part)}
    joined: dict[int, list[int]] = {part[0]: [] for part in parts}
    first = {node: part[0] for part in parts for node in part}
    for number, (source, _) in enumerate(arcs):
        joined[first[source]].append(number)
    placed = []
    for part in parts:
        own = [(numbers[arcs[i][0]], numbers[arcs[i][1]]) for i in joined[part[0]]]
        placed.append(wrapped(_Rows([sizes[node] for node in part], own).part(), room, tall))
    corners = shelves([(p.width - 2 * MARGIN, p.height - 2 * MARGIN) for p in placed], room, ROW_GAP, COLUMN_GAP)
    for part, drawing, (x, y) in zip(parts, placed, corners, strict=True):
        rects |= {node: drawing.rects[n].moved(x, y) for n, node in enumerate(part)}
        for i, route in zip(joined[part[0]], drawing.routes, strict=True):
            routes[i] = [(px + x, py + y) for px, py in route]
    return placement(rects, routes)


def _parts(count: int, arcs: tuple[Arc, ...]) -> list[list[int]]:
    """The connected parts, in the order of their first boxes."""
    leader = list(range(count))

    def find(node: int) -> int:
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    for source, target in arcs:
        leader[find(source)] = find(target)
    parts: dict[int, list[int]] = {}
    for node in range(count):
        parts.setdefault(find(node), []).append(node)
    return list(parts.values())


def _ranks(count: int, arcs: list[Arc]) -> list[int]:
    """The row of each box: below all of its sources; a box without sources is directly above its highest target."""
    ranks = [0] * count
    for source, target in sorted(arcs):
        ranks[target] = max(ranks[target], ranks[source] + 1)
    reached = {target for _, target in arcs}
    first: dict[int, int] = {}
    for source, target in arcs:
        if source not in reached:
            first[source] = min(first.get(source, ranks[target]), ranks[target])
    for node, rank in first.items():
        ranks[node] = rank - 1
    return ranks


class _Rows:
    """Rows of nodes, ordered and spread out; a node is a box, or a point where an edge passes the row."""

    def __init__(self, sizes: list[Size], arcs: list[Arc]) -> None:
        self.sizes, self.arcs = sizes, arcs
        self.ranks = _ranks(len(sizes), arcs)
        self.width = [width for width, _ in sizes]
        self.up: list[list[int]] = [[] for _ in sizes]
        self.down: list[list[int]] = [[] for _ in sizes]
        self.height = [0.0] * (max(self.ranks) + 1)
        for rank, (_, height) in zip(self.ranks, sizes, strict=True):
            self.height[rank] = max(self.height[rank], height)
        self.top = list(accumulate((height + ROW_GAP for height in self.height), initial=0.0))
        #: for each arc: its points in the rows that it passes, or None if it runs along a lane beside the drawing
        self.passes = self._passes()
        self.rows: list[list[int]] = [[] for _ in self.height]
        for node, rank in enumerate(self.ranks):
            self.rows[rank].append(node)
        self.x = [0.0] * len(self.ranks)
        self._order()
        self._spread()

    def _passes(self) -> list[list[int] | None]:
        """The points where each edge passes the rows between its ends; None for the longest edges if too many are long."""
        budget = 2 * (len(self.sizes) + len(self.arcs)) + 200
        passes: list[list[int] | None] = [None] * len(self.arcs)
        spans = [self.ranks[target] - self.ranks[source] for source, target in self.arcs]
        for number in sorted(range(len(self.arcs)), key=spans.__getitem__):
            if spans[number] <= budget + 1:
                budget -= spans[number] - 1
                passes[number] = self._chain(*self.arcs[number])
        return passes

    def _chain(self, source: int, target: int) -> list[int]:
        points = list(range(len(self.ranks), len(self.ranks) + self.ranks[target] - self.ranks[source] - 1))
        for rank, _ in enumerate(points, self.ranks[source] + 1):
            self.ranks.append(rank)
            self.width.append(2.0)
            self.up.append([])
            self.down.append([])
        for above, below in zip([source, *points], [*points, target], strict=True):
            self.down[above].append(below)
            self.up[below].append(above)
        return points

    def _order(self) -> None:
        """Sort each row by the positions of its nodes' neighbors, down and up a few times."""
        place = [0.0] * len(self.ranks)
        for row in self.rows:
            _number(row, place)
        for sweep in range(6 if len(self.ranks) < 2000 else 2):
            neighbours = self.down if sweep % 2 else self.up
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                if len(row) > 1:
                    keys = {node: _mean(neighbours[node], place) if neighbours[node] else place[node] for node in row}
                    row.sort(key=keys.__getitem__)
                    _number(row, place)

    def _spread(self) -> None:
        """Give each node an x near its neighbors; the nodes of a row keep their order, and at least the gap between them."""
        starts = []
        for row in self.rows:
            centres, right = [], -COLUMN_GAP
            for node in row:
                centres.append(right + COLUMN_GAP + self.width[node] / 2)
                right += COLUMN_GAP + self.width[node]
            starts.append(centres)
            for node, x in zip(row, centres, strict=True):
                self.x[node] = x - centres[0]
        order = list(zip(self.rows, starts, strict=True))
        for turn in range(8 if len(self.ranks) < 2000 else 2):
            for row, centres in reversed(order) if turn % 2 else order:
                self._settle(row, centres, self.down if turn % 2 else self.up)

    def _settle(self, row: list[int], starts: list[float], neighbours: list[list[int]]) -> None:
        """Place the nodes of a row as near to their neighbors as they fit: nodes that touch move as one block."""
        blocks: list[tuple[float, float, int]] = []  # sum of the desired shifts, weight, number of nodes
        for node, start in zip(row, starts, strict=True):
            near, weight, count = neighbours[node], 1.0, 1
            total = _mean(near, self.x) - start if near else 0.0
            if not near:
                total, weight = (self.x[node] - start) * 0.1, 0.1
            while blocks and blocks[-1][0] * weight > total * blocks[-1][1]:
                before = blocks.pop()
                total, weight, count = total + before[0], weight + before[1], count + before[2]
            blocks.append((total, weight, count))
        shifts = [total / weight for total, weight, count in blocks for _ in range(count)]
        for node, start, shift in zip(row, starts, shifts, strict=True):
            self.x[node] = start + shift

    def part(self) -> Part:
        """The placed boxes, and the routes: through the points in the rows, or along a lane beside the drawing."""
        rects = [
            Rect(self.x[n] - width / 2, self.top[self.ranks[n]], width, height) for n, (width, height) in enumerate(self.sizes)
        ]
        right = max(r.right for r in rects)
        lane = right + 16
        routes: list[list[Point]] = []
        for (source, target), passed in zip(self.arcs, self.passes, strict=True):
            a, b = rects[source], rects[target]
            if passed is not None:
                inner = [(self.x[n], y) for n in passed for y in self._edges_of_row(n)]
                routes.append([(a.middle, a.bottom), *inner, (b.middle, b.y)])
            else:
                below, above = self._edges_of_row(source)[1] + ROW_GAP * 0.3, b.y - ROW_GAP * 0.35
                ax, bx = a.x + a.width * 0.75, b.x + b.width * 0.75
                routes.append([(ax, a.bottom), (ax, below), (lane, below), (lane, above), (bx, above), (bx, b.y)])
                lane += 6 if lane < right + 300 else 0
        return Part(rects, routes, [(self.ranks[source], self.ranks[target]) for source, target in self.arcs], self.top)

    def _edges_of_row(self, node: int) -> tuple[float, float]:
        top = self.top[self.ranks[node]]
        return top, top + self.height[self.ranks[node]]


def _mean(nodes: list[int], values: list[float]) -> float:
    return sum([values[n] for n in nodes]) / len(nodes)


def _number(row: list[int], place: list[float]) -> None:
    for position, node in enumerate(row):
        place[node] = position
