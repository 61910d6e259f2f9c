"""Rectangles, routes and placements, and shelves: drawings side by side where there is room."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

Point = tuple[float, float]
Size = tuple[float, float]
Key = TypeVar("Key", bound=Hashable)

#: pixels around a drawing
MARGIN = 14.0


class Rect(NamedTuple):
    """A placed box; x and y are its upper left corner."""

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
        """The box moved by (dx, dy), rounded to a tenth of a pixel."""
        return Rect(round(self.x + dx, 1), round(self.y + dy, 1), self.width, self.height)


@dataclass(frozen=True)
class Placement(Generic[Key]):
    """The position of each box, and one polyline for each edge."""

    width: float
    height: float
    rects: dict[Key, Rect]
    routes: list[list[Point]]


def placement(rects: dict[Key, Rect], routes: list[list[Point]]) -> Placement[Key]:
    """The boxes and routes, moved so that the smallest coordinate is the margin, and rounded to a tenth of a pixel."""
    if not rects:
        return Placement(2 * MARGIN, 2 * MARGIN, {}, [[] for _ in routes])
    corners = [(r.x, r.y) for r in rects.values()] + [(r.right, r.bottom) for r in rects.values()]
    xs, ys = zip(*chain(corners, *routes), strict=True)
    dx, dy = MARGIN - min(xs), MARGIN - min(ys)
    return Placement(
        round(max(xs) + dx + MARGIN, 1),
        round(max(ys) + dy + MARGIN, 1),
        {key: rect.moved(dx, dy) for key, rect in rects.items()},
        [[(round(x + dx, 1), round(y + dy, 1)) for x, y in route] for route in routes],
    )


def shelves(sizes: Iterable[Size], room: float, row_gap: float, column_gap: float) -> list[Point]:
    """Where to put drawings of these sizes: in the given order, in rows no wider than `room`; a wider one gets its own row."""
    x = y = high = 0.0
    corners: list[Point] = []
    for width, height in sizes:
        if x and x + width > room:
            x, y, high = 0.0, y + high + row_gap, 0.0
        corners.append((x, y))
        x, high = x + width + column_gap, max(high, height)
    return corners
