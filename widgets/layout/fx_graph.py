"""The layout of FX graphs: rows by longest path, order by barycenter, x by neighbors; in almost linear time.

Promises: boxes never overlap; 10,000 boxes take less than a second.  Edges run through gaps between boxes, but if too many are
long, the longest ones take lanes beside the drawing.  Parts that no edge joins are side by side where there is room, and tall
parts are cut into columns (`geometry.wrapped`).
"""

from __future__ import annotations

import functools
from itertools import accumulate, pairwise

from dynascope.widgets.layout.geometry import ROW_GAP, Part, Placement, Point, Rect, Size, extent, placement, shelves, wrapped
from dynascope.widgets.words import grouped

COLUMN_GAP = 16.0
Arc = tuple[int, int]


#: about as many entries as a large report has graphs and folds; otherwise, each redraw of a growing report places them again
@functools.lru_cache(maxsize=512)
def layout(sizes: tuple[Size, ...], arcs: tuple[Arc, ...], room: float, tall: float) -> Placement[int]:
    """Place boxes of these sizes; in each arc (source, target), the source comes before the target.

    Unconnected parts are placed side by side, up to `room` wide; a part higher than `tall` is cut into columns.
    """
    leaders = _leaders(len(sizes), arcs)
    joined = grouped((leaders[source], number) for number, (source, _) in enumerate(arcs))
    parts = grouped(zip(leaders, range(len(sizes)), strict=True))
    drawings: list[tuple[list[Rect], list[list[Point]]]] = []
    for leader, nodes in parts.items():
        at = {node: n for n, node in enumerate(nodes)}
        own = [(at[arcs[number][0]], at[arcs[number][1]]) for number in joined[leader]]
        drawings.append(wrapped(_Rows([sizes[node] for node in nodes], own).part(), room, tall))
    extents = [extent(*drawing) for drawing in drawings]
    corners = shelves([(around.width, around.height) for around in extents], room, ROW_GAP, COLUMN_GAP)
    rects: dict[int, Rect] = {}
    routes: list[list[Point]] = [[] for _ in arcs]
    for (leader, nodes), (boxes, lines), around, (x, y) in zip(parts.items(), drawings, extents, corners, strict=True):
        dx, dy = x - around.x, y - around.y
        rects |= {node: box.moved(dx, dy) for node, box in zip(nodes, boxes, strict=True)}
        for number, line in zip(joined[leader], lines, strict=True):
            routes[number] = [(px + dx, py + dy) for px, py in line]
    return placement(rects, routes)


def _leaders(count: int, arcs: tuple[Arc, ...]) -> list[int]:
    """For each box, one that stands for its connected part."""
    leader = list(range(count))

    def find(node: int) -> int:
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    for source, target in arcs:
        leader[find(source)] = find(target)
    return [find(node) for node in range(count)]


def _ranks(count: int, arcs: list[Arc]) -> list[int]:
    """The row of each box: below all of its sources; a box without sources is directly above its highest target."""
    ranks = [0] * count
    for source, target in sorted(arcs):
        ranks[target] = max(ranks[target], ranks[source] + 1)
    reached = {target for _, target in arcs}
    for node, targets in grouped((source, ranks[target]) for source, target in arcs if source not in reached).items():
        ranks[node] = min(targets) - 1
    return ranks


class _Rows:
    """Rows of nodes, ordered and spread out; a node is a box, or a point where an edge passes the row."""

    def __init__(self, sizes: list[Size], arcs: list[Arc]) -> None:
        self.sizes, self.arcs = sizes, arcs
        self.ranks = _ranks(len(sizes), arcs)
        self.width = [width for width, _ in sizes]
        self.up: list[list[int]] = [[] for _ in sizes]
        self.down: list[list[int]] = [[] for _ in sizes]
        self.rows = [nodes for _, nodes in sorted(grouped(zip(self.ranks, range(len(sizes)), strict=True)).items())]
        self.height = [max(sizes[node][1] for node in row) for row in self.rows]
        self.top = list(accumulate((height + ROW_GAP for height in self.height), initial=0.0))
        #: for each arc: its points in the rows that it passes, or None if it runs along a lane beside the drawing
        self.passes = self._passes()
        self.x = [0.0] * len(self.ranks)
        self._order()
        self._spread()

    def _passes(self) -> list[list[int] | None]:
        """The points where each edge passes the rows between its ends; None for the longest edges if too many are long."""
        budget = len(self.sizes) + len(self.arcs) + 600
        passes: list[list[int] | None] = [None] * len(self.arcs)
        spans = [range(self.ranks[source] + 1, self.ranks[target]) for source, target in self.arcs]
        for number in sorted(range(len(self.arcs)), key=lambda number: len(spans[number])):
            between, (source, target) = spans[number], self.arcs[number]
            if len(between) > budget:
                break
            budget -= len(between)
            passes[number] = points = [*range(len(self.ranks), len(self.ranks) + len(between))]
            for point, rank in zip(points, between, strict=True):
                self.rows[rank].append(point)
            self.ranks += between
            self.width += [2.0] * len(points)
            self.up += [[] for _ in points]
            self.down += [[] for _ in points]
            for above, below in pairwise([source, *points, target]):
                self.down[above].append(below)
                self.up[below].append(above)
        return passes

    def _order(self) -> None:
        """Sort each row by the positions of its nodes' neighbors, down and up a few times."""
        place = [0.0] * len(self.ranks)

        def number(row: list[int]) -> None:
            for position, node in enumerate(row):
                place[node] = position

        for row in self.rows:
            number(row)
        for sweep in range(6 if len(self.ranks) < 2000 else 2):
            neighbours = self.down if sweep % 2 else self.up
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                keys = {node: _mean(neighbours[node], place) if neighbours[node] else place[node] for node in row}
                row.sort(key=keys.__getitem__)
                number(row)

    def _spread(self) -> None:
        """Give each node an x near its neighbors; the nodes of a row keep their order, and at least the gap between them."""
        order: list[tuple[list[int], list[float]]] = []
        for row in self.rows:
            lefts = accumulate((self.width[node] + COLUMN_GAP for node in row), initial=0.0)
            centres = [left + self.width[node] / 2 for node, left in zip(row, lefts, strict=False)]
            order.append((row, centres))
            for node, x in zip(row, centres, strict=True):
                self.x[node] = x - centres[0]
        for turn in range(8 if len(self.ranks) < 2000 else 2):
            for row, centres in reversed(order) if turn % 2 else order:
                self._settle(row, centres, self.down if turn % 2 else self.up)

    def _settle(self, row: list[int], starts: list[float], neighbours: list[list[int]]) -> None:
        """Place the nodes of a row as near to their neighbors as they fit: nodes that touch move as one block."""
        blocks: list[tuple[float, float, int]] = []  # sum of the desired shifts, weight, number of nodes
        for node, start in zip(row, starts, strict=True):
            near, count = neighbours[node], 1
            total, weight = (_mean(near, self.x) - start, 1.0) if near else ((self.x[node] - start) * 0.1, 0.1)
            while blocks and blocks[-1][0] * weight > total * blocks[-1][1]:
                before = blocks.pop()
                total, weight, count = total + before[0], weight + before[1], count + before[2]
            blocks.append((total, weight, count))
        shifts = [total / weight for total, weight, count in blocks for _ in range(count)]
        for node, start, shift in zip(row, starts, shifts, strict=True):
            self.x[node] = start + shift

    def part(self) -> Part:
        """The placed boxes, and the routes: through the points in the rows, or along a lane beside the drawing."""
        tops = [self.top[rank] for rank in self.ranks]
        rects = [Rect(self.x[n] - width / 2, tops[n], width, height) for n, (width, height) in enumerate(self.sizes)]
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
    return sum([values[n] for n in nodes]) / len(nodes) if len(nodes) > 1 else values[nodes[0]]
