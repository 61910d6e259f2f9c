"""Rectangles, routes and placements; shelves: drawings side by side where there is room; columns: a tall drawing, cut.

Columns are side by side, like those of a newspaper.  Promises: a cut is made only between two rows, and only where exactly one
arrow crosses it; each column is moved unchanged; columns are in reading order; the arrow to the next column runs through the
free space between the two.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Generic, NamedTuple, TypeVar

from dynascope.widgets.words import grouped

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
        """The box moved by (dx, dy)."""
        return Rect(self.x + dx, self.y + dy, self.width, self.height)


#: boxes, and the routes between them
Drawing = tuple[list[Rect], list[list[Point]]]


@dataclass(frozen=True)
class Placement(Generic[Key]):
    """The position of each box, and one polyline for each edge."""

    width: float
    height: float
    rects: dict[Key, Rect]
    routes: list[list[Point]]


def extent(rects: Collection[Rect], routes: Sequence[list[Point]]) -> Rect:
    """The smallest box around all of these."""
    xs = [x for left, _, width, _ in rects for x in (left, left + width)] + [x for route in routes for x, _ in route]
    ys = [y for _, top, _, height in rects for y in (top, top + height)] + [y for route in routes for _, y in route]
    return Rect(min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))


def placement(rects: dict[Key, Rect], routes: list[list[Point]]) -> Placement[Key]:
    """The boxes and routes, moved so that the smallest coordinate is the margin, and rounded to a tenth of a pixel."""
    around = extent(rects.values(), routes) if rects else Rect(0.0, 0.0, 0.0, 0.0)
    dx, dy = MARGIN - around.x, MARGIN - around.y
    boxes = {key: Rect(round(r.x + dx, 1), round(r.y + dy, 1), r.width, r.height) for key, r in rects.items()}
    lines = [[(round(x + dx, 1), round(y + dy, 1)) for x, y in route] for route in routes]
    return Placement(round(around.width + 2 * MARGIN, 1), round(around.height + 2 * MARGIN, 1), boxes, lines)


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


# -- columns ------------------------------------------------------------------------------------------


#: gaps between rows, and between columns
ROW_GAP, COLUMN_GAP = 30.0, 50.0
#: distance from the end of a column, or from its beginning, to the bend of an arrow between columns
BEND = 13.0


class Part(NamedTuple):
    """A drawing in rows: `spans` has each route's first and last row, `tops` the top of each row and of one more below."""

    rects: list[Rect]
    routes: list[list[Point]]
    spans: list[tuple[int, int]]
    tops: list[float]


def wrapped(part: Part, room: float, tall: float) -> Drawing:
    """`part` in as many columns of about `tall` pixels as there is room for; in one if it is not tall or cannot be cut."""
    high, cuts = part.tops[-1], _cuts(part)
    most = int((room + COLUMN_GAP) // (min(r.width for r in part.rects) + COLUMN_GAP))
    for count in range(min(math.ceil(high / tall), most) if cuts else 0, 1, -1):
        begins = sorted({min(cuts, key=lambda top: abs(top - n * high / count)) for n in range(1, count)})
        sides = ((x, r.y) for r in part.rects for x in (r.x, r.right))
        across = grouped((bisect_right(begins, y), x) for x, y in chain(sides, *part.routes))
        before = [min(across[n]) for n in range(len(begins) + 1)]
        lefts = [*accumulate((max(across[n]) - x + COLUMN_GAP for n, x in enumerate(before)), initial=0.0)]
        if lefts[-1] - COLUMN_GAP <= room:
            return _in_columns(part, begins, lefts, before)
    return part.rects, part.routes


def _in_columns(part: Part, begins: list[float], lefts: list[float], before: list[float]) -> Drawing:
    """`part` cut at `begins`; `lefts`: the left side of each column and of one more, `before`: where it was."""
    tops = [0.0, *begins]

    def moved(point: Point) -> Point:
        n = bisect_right(begins, point[1])
        return point[0] - before[n] + lefts[n], point[1] - tops[n]

    def carried(route: list[Point]) -> list[Point]:
        """The route; where it leads to the next column, up the gap between the two."""
        out = [moved(point) for point in route[:1]]
        for a, b in pairwise(route):
            at, (bx, by) = bisect_right(begins, a[1]), moved(b)
            if at != bisect_right(begins, b[1]):
                foot, between = begins[at] - tops[at] - ROW_GAP + BEND, lefts[at + 1] - COLUMN_GAP / 2
                out += [(out[-1][0], foot), (between, foot), (between, -BEND), (bx, -BEND)]
            out.append((bx, by))
        return out

    return [Rect(*moved((r.x, r.y)), r.width, r.height) for r in part.rects], [carried(route) for route in part.routes]


def _cuts(part: Part) -> list[float]:
    """The tops of the rows above which exactly one route runs."""
    changes = Counter(first + 1 for first, _ in part.spans)
    changes.subtract(last + 1 for _, last in part.spans)
    counts = accumulate(changes[row] for row in range(len(part.tops) - 1))
    return [top for top, count in zip(part.tops, counts, strict=False) if count == 1]
