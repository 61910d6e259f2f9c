"""Right-angled routes between placed boxes; if none is free, the routes of `layered` are used.

Promises: a returned route starts and ends on the given borders and crosses no other box; None if no simple route is free.  Only
for drawings of moderate size: each try checks every box.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise

from dynascope.widgets.layout.layered import Point, Rect

LANE = 6.0
#: comparisons of a route with a box in one drawing; after that, free edges run beside the drawing
BUDGET = 400_000


class Router:
    """Routes in one drawing; lanes taken by earlier routes are left free for these."""

    def __init__(self, outers: dict[str, Rect]) -> None:
        self.outers = outers
        self.lanes: set[tuple[bool, float, float, float]] = set()
        self.budget = BUDGET

    def down(self, source: str, a: Rect, target: str, drop: float) -> list[Point] | None:
        """From the bottom of `a` (in the outer box `source`) to the top of the outer box `target`."""
        b, floor = self.outers[target], self.outers[source].bottom
        if b.y <= floor:
            return None
        if abs(a.middle - b.middle) < 1:
            return self._free([(a.middle, a.bottom), (a.middle, b.y)], source, target)
        for y in (b.y - drop, floor + min(drop, (b.y - floor) / 2)):
            if y > floor:
                route = self._free([(a.middle, a.bottom), (a.middle, y), (b.middle, y), (b.middle, b.y)], source, target)
                if route:
                    return route
        return None

    def side(self, source: str, target: str) -> list[Point] | None:
        """From the right of one outer box to the left of another: straight where their heights meet, else one step."""
        a, b = self.outers[source], self.outers[target]
        if b.x - a.right < 8:
            return None
        top, bottom = max(a.y, b.y), min(a.bottom, b.bottom)
        if top + 4 <= bottom:
            y = min(max(b.y + 20, top + 2), bottom - 2)
            return self._free([(a.right, y), (b.x, y)], source, target)
        ya, yb = a.y + min(20, a.height / 2), b.y + min(20, b.height / 2)
        for x in _between(a.right, b.x):
            route = self._free([(a.right, ya), (x, ya), (x, yb), (b.x, yb)], source, target)
            if route:
                return self._keep(route)
        return None

    def free(self, source: str, target: str, b: Rect) -> list[Point] | None:
        """From a side of one outer box to a side of `b`, which lies in the outer box `target`."""
        a, outer = self.outers[source], self.outers[target]
        for points in chain(_across(a, outer, b), _around(a, outer, b)):
            if self.budget <= 0:
                break
            if self._unused(points) and self._free(points, source, target):
                return self._keep(points)
        return None

    def _unused(self, route: list[Point]) -> bool:
        """Whether no earlier route runs along an inner stretch of this one."""
        return not any(
            is_upright == other and abs(at - lane) < LANE - 1 and low < end and start < high
            for is_upright, at, low, high in _lanes(route)
            for other, lane, start, end in self.lanes
        )

    def _keep(self, route: list[Point]) -> list[Point]:
        self.lanes.update(_lanes(route))
        return route

    def _free(self, route: list[Point], source: str, target: str) -> list[Point] | None:
        """The route, if it crosses no box: only its first stretch may touch the source, only its last the target."""
        self.budget -= len(self.outers)
        stretches = [
            (min(ax, bx) - 2, max(ax, bx) + 2, min(ay, by) - 2, max(ay, by) + 2) for (ax, ay), (bx, by) in pairwise(route)
        ]
        lefts, rights, tops, bottoms = zip(*stretches, strict=True)
        left, right, top, bottom = min(lefts), max(rights), min(tops), max(bottoms)
        for id, (x, y, width, height) in self.outers.items():
            if x >= right or y >= bottom or x + width <= left or y + height <= top:
                continue
            for x0, x1, y0, y1 in stretches[id == source : len(stretches) - (id == target)]:
                if x0 < x + width and x1 > x and y0 < y + height and y1 > y:
                    return None
        return route


def _across(a: Rect, outer: Rect, b: Rect) -> Iterator[list[Point]]:
    """Out of a side of `a`, and one step to a side of `b`."""
    start, end = a.y + min(20, a.height / 2), b.y + b.height / 2
    if outer.x - a.right >= 8:
        for x in _between(a.right, outer.x):
            yield [(a.right, start), (x, start), (x, end), (b.x, end)]
    if a.x - outer.right >= 8:
        for x in _between(outer.right, a.x):
            yield [(a.x, start), (x, start), (x, end), (b.right, end)]
    for lane in range(1, 9):
        x = max(a.right, outer.right) + 4 + lane * LANE
        yield [(a.right, start), (x, start), (x, end), (b.right, end)]


def _around(a: Rect, outer: Rect, b: Rect) -> Iterator[list[Point]]:
    """Out of the top or the bottom of `a`, between two rows, and beside `outer` to a side of `b`."""
    start, end = a.x + a.width * 0.75, b.y + b.height / 2
    for away in (4 + lane * LANE for lane in range(1, 7)):
        for border, y in ((a.y, a.y - away), (a.bottom, a.bottom + away)):
            for x, side in ((outer.right + away, b.right), (outer.x - away, b.x)):
                yield [(start, border), (start, y), (x, y), (x, end), (side, end)]


def _between(left: float, right: float) -> Iterator[float]:
    """Places for an upright line between two borders, the nearest to the right one first."""
    x = right - 12 if right - left > 24 else (left + right) / 2
    for _ in range(10):
        if x <= left + 3:
            return
        yield x
        x -= LANE


def _lanes(route: list[Point]) -> Iterator[tuple[bool, float, float, float]]:
    """(is it upright, where, from, to) of each inner stretch."""
    for (ax, ay), (bx, by) in pairwise(route[1:-1]):
        upright = abs(ax - bx) < 0.01
        low, high = sorted((ay, by) if upright else (ax, bx))
        yield upright, ax if upright else ay, low, high
