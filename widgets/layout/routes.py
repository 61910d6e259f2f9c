"""Right-angled routes between placed boxes, where one is free; elsewhere the routes of `layered` serve.

Promises: a route returned starts and ends on the borders asked for and crosses no other box; None where no
simple route is free.  Only for drawings of moderate size: each try looks at every box.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise

Point = tuple[float, float]
#: x, y, width, height
Frame = tuple[float, float, float, float]

LANE = 6.0


class Router:
    """Routes in one drawing; lanes taken by earlier routes are left free for these."""

    def __init__(self, outers: dict[str, Frame]) -> None:
        self.outers = outers
        self.lanes: set[tuple[bool, float, float, float]] = set()

    def down(self, source: str, a: Frame, target: str, drop: float) -> list[Point] | None:
        """From the bottom of `a` (in the outer box `source`) to the top of the outer box `target`."""
        outer, b = self.outers[source], self.outers[target]
        ax, bx = a[0] + a[2] / 2, b[0] + b[2] / 2
        start, end = a[1] + a[3], b[1]
        floor = outer[1] + outer[3]
        if end <= floor:
            return None
        if abs(ax - bx) < 1:
            return self._free([(ax, start), (ax, end)], source, target)
        for y in (end - drop, floor + min(drop, (end - floor) / 2)):
            if y > floor:
                route = self._free([(ax, start), (ax, y), (bx, y), (bx, end)], source, target)
                if route:
                    return route
        return None

    def side(self, source: str, target: str) -> list[Point] | None:
        """From the right of one outer box to the left of another: straight where their heights meet, else one step."""
        a, b = self.outers[source], self.outers[target]
        right, left = a[0] + a[2], b[0]
        if left - right < 8:
            return None
        top, bottom = max(a[1], b[1]), min(a[1] + a[3], b[1] + b[3])
        if top + 4 <= bottom:
            y = min(max(b[1] + 20, top + 2), bottom - 2)
            return self._free([(right, y), (left, y)], source, target)
        ya, yb = a[1] + min(20, a[3] / 2), b[1] + min(20, b[3] / 2)
        for x in self._between(right, left):
            route = self._free([(right, ya), (x, ya), (x, yb), (left, yb)], source, target)
            if route:
                return self._keep(route)
        return None

    def free(self, source: str, target: str, b: Frame) -> list[Point] | None:
        """From a side of one outer box to a side of `b`, which lies in the outer box `target`."""
        a, outer = self.outers[source], self.outers[target]
        for points in chain(self._across(a, outer, b), self._around(a, outer, b)):
            route = self._free(points, source, target)
            if route and self._unused(route):
                return self._keep(route)
        return None

    def _across(self, a: Frame, outer: Frame, b: Frame) -> Iterator[list[Point]]:
        """Out of a side of `a`, and one step to a side of `b`."""
        y_end, y_start = b[1] + b[3] / 2, a[1] + min(20, a[3] / 2)
        left, right = b[0], b[0] + b[2]
        if outer[0] - (a[0] + a[2]) >= 8:
            for x in self._between(a[0] + a[2], outer[0]):
                yield [(a[0] + a[2], y_start), (x, y_start), (x, y_end), (left, y_end)]
        if a[0] - (outer[0] + outer[2]) >= 8:
            for x in self._between(outer[0] + outer[2], a[0]):
                yield [(a[0], y_start), (x, y_start), (x, y_end), (right, y_end)]
        beside = max(a[0] + a[2], outer[0] + outer[2])
        for lane in range(1, 9):
            x = beside + 4 + lane * LANE
            yield [(a[0] + a[2], y_start), (x, y_start), (x, y_end), (right, y_end)]

    def _around(self, a: Frame, outer: Frame, b: Frame) -> Iterator[list[Point]]:
        """Out of the top or the bottom of `a`, between two rows, and down or up beside `outer` to a side of `b`."""
        y_end, start = b[1] + b[3] / 2, a[0] + a[2] * 0.75
        for lane in range(1, 7):
            for top in (True, False):
                border = a[1] if top else a[1] + a[3]
                y = border - 4 - lane * LANE if top else border + 4 + lane * LANE
                for x, side in ((outer[0] + outer[2] + 4 + lane * LANE, b[0] + b[2]), (outer[0] - 4 - lane * LANE, b[0])):
                    yield [(start, border), (start, y), (x, y), (x, y_end), (side, y_end)]

    def _between(self, left: float, right: float) -> Iterator[float]:
        """Places for an upright line between two borders, the nearest to the right one first."""
        x = right - 12 if right - left > 24 else (left + right) / 2
        for _ in range(10):
            if x <= left + 3:
                return
            yield x
            x -= LANE

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
        for id, (x, y, width, height) in self.outers.items():
            stretches = list(pairwise(route))[id == source : len(route) - 1 - (id == target)]
            for (ax, ay), (bx, by) in stretches:
                if min(ax, bx) < x + width + 2 and max(ax, bx) > x - 2 and min(ay, by) < y + height + 2 and max(ay, by) > y - 2:
                    return None
        return route


def _lanes(route: list[Point]) -> Iterator[tuple[bool, float, float, float]]:
    """(is it upright, where, from, to) of each inner stretch."""
    for (ax, ay), (bx, by) in pairwise(route[1:-1]):
        upright = abs(ax - bx) < 0.01
        low, high = sorted((ay, by) if upright else (ax, bx))
        yield upright, ax if upright else ay, low, high
