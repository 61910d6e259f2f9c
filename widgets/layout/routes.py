"""Right-angled routes between placed boxes, where one is free; the engines' own routes serve elsewhere.

Promises: a route returned starts and ends on the borders asked for and crosses no other box; None where no
simple route is free.  Only for drawings of moderate size: each try looks at every box.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

Point = tuple[float, float]
#: x, y, width, height
Frame = tuple[float, float, float, float]

LANE = 6.0


class Router:
    """Routes in one drawing; lanes taken by earlier routes are left free for these."""

    def __init__(self, outers: dict[str, Frame]) -> None:
        self.outers = outers
        self.lanes: set[tuple[float, float, float]] = set()

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
        y_end = b[1] + b[3] / 2
        y_start = a[1] + min(20, a[3] / 2)
        tries: list[list[Point]] = []
        if outer[0] - (a[0] + a[2]) >= 8:
            for x in self._between(a[0] + a[2], outer[0]):
                tries.append([(a[0] + a[2], y_start), (x, y_start), (x, y_end), (b[0], y_end)])
        if a[0] - (outer[0] + outer[2]) >= 8:
            for x in self._between(outer[0] + outer[2], a[0]):
                tries.append([(a[0], y_start), (x, y_start), (x, y_end), (b[0] + b[2], y_end)])
        beside = max(a[0] + a[2], outer[0] + outer[2])
        for lane in range(1, 9):
            x = beside + 4 + lane * LANE
            tries.append([(a[0] + a[2], y_start), (x, y_start), (x, y_end), (b[0] + b[2], y_end)])
        for points in tries:
            route = self._free(points, source, target)
            if route and self._unused(route):
                return self._keep(route)
        return None

    def _between(self, left: float, right: float) -> Iterator[float]:
        """Places for an upright line between two borders, the nearest to the right one first."""
        x = right - 12 if right - left > 24 else (left + right) / 2
        for _ in range(10):
            if x <= left + 3:
                return
            yield x
            x -= LANE

    def _unused(self, route: list[Point]) -> bool:
        x = route[1][0]
        low, high = sorted((route[1][1], route[2][1]))
        return not any(abs(x - lane) < LANE - 1 and low < bottom and top < high for lane, top, bottom in self.lanes)

    def _keep(self, route: list[Point]) -> list[Point]:
        low, high = sorted((route[1][1], route[2][1]))
        self.lanes.add((route[1][0], low, high))
        return route

    def _free(self, route: list[Point], *ends: str) -> list[Point] | None:
        """The route, if none of its stretches crosses a box other than those at its ends."""
        for id, (x, y, width, height) in self.outers.items():
            if id in ends:
                continue
            for (ax, ay), (bx, by) in pairwise(route):
                if min(ax, bx) < x + width + 2 and max(ax, bx) > x - 2 and min(ay, by) < y + height + 2 and max(ay, by) > y - 2:
                    return None
        return route
