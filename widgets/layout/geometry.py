"""Rectangles, routes and placements; shelves: drawings side by side where there is room; columns: a tall drawing, cut.

Columns are side by side, like those of a newspaper.  Promises: a cut is made only between two rows, and only where exactly one
arrow crosses it; each column is moved unchanged; columns are in reading order; a piece that is too wide for a column has the
whole width, below the columns before it; the arrow to the next column runs through the free space between the two.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import accumulate, chain
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


# -- columns ------------------------------------------------------------------------------------------


#: gaps between rows, and between columns
ROW_GAP, COLUMN_GAP = 30.0, 50.0
#: distance from the end of a column, or from its beginning, to the bend of an arrow between columns
BEND = 13.0


@dataclass(frozen=True)
class Part:
    """A drawing in rows: `spans` has each route's first and last row, `tops` the top of each row and of one more below."""

    rects: list[Rect]
    routes: list[list[Point]]
    spans: list[tuple[int, int]]
    tops: list[float]


@dataclass
class _Column:
    """The part of a drawing between two cuts."""

    left: float
    top: float
    right: float
    bottom: float
    #: number of the route that leads to it; -1 for the first column
    edge: int
    #: how far it is moved
    dx: float = 0.0
    dy: float = 0.0
    #: number of its page; columns on one page are side by side, pages one below the other
    page: int = 0

    def join(self, other: _Column) -> None:
        self.left, self.right, self.bottom = min(self.left, other.left), max(self.right, other.right), other.bottom

    def moved(self, point: Point) -> Point:
        return point[0] + self.dx, point[1] + self.dy


def wrapped(part: Part, room: float, tall: float) -> Placement[int]:
    """`part` in columns about `tall` pixels high, or higher if `room` is narrow; in one if it is not tall or cannot be cut."""
    pieces = _pieces(part)
    rects = dict(enumerate(part.rects))
    if part.tops[-1] <= tall or len(pieces) < 2:
        return placement(rects, part.routes)
    columns = _columns(pieces, room, tall)
    begins = [column.top for column in columns[1:]]
    used = {column.edge: n for n, column in enumerate(columns) if n}

    def moved(point: Point) -> Point:
        return columns[bisect_right(begins, point[1])].moved(point)

    return placement(
        {n: Rect(*moved((r.x, r.y)), r.width, r.height) for n, r in rects.items()},
        [
            _carried(route, columns[used[n] - 1], columns[used[n]]) if n in used else [moved(point) for point in route]
            for n, route in enumerate(part.routes)
        ],
    )


def _pieces(part: Part) -> list[_Column]:
    """The pieces between all possible cuts, as narrow as their boxes and arrows allow."""
    changes = [0] * (len(part.tops) + 1)
    crossing = [0] * (len(part.tops) + 1)  # sum of the numbers of the routes that cross: if only one does, its number
    for number, (first, last) in enumerate(part.spans):
        for sums, value in ((changes, 1), (crossing, number)):
            sums[first + 1] += value
            sums[last + 1] -= value
    counts, numbers = list(accumulate(changes)), list(accumulate(crossing))
    cuts = [row for row in range(1, len(part.tops) - 1) if counts[row] == 1]
    begins = [part.tops[row] for row in cuts]
    ends = [top - ROW_GAP for top in (*begins, part.tops[-1])]
    pieces = [
        _Column(math.inf, top, -math.inf, bottom, edge)
        for top, bottom, edge in zip([0.0, *begins], ends, [-1, *(numbers[row] for row in cuts)], strict=True)
    ]
    corners = [(x, r.y) for r in part.rects for x in (r.x, r.right)]
    for x, y in (*corners, *(point for route in part.routes for point in route)):
        piece = pieces[bisect_right(begins, y)]
        piece.left, piece.right = min(piece.left, x), max(piece.right, x)
    return pieces


def _columns(pieces: list[_Column], room: float, tall: float) -> list[_Column]:
    """The placed columns, page by page: narrow pieces are spread evenly over columns, wide ones are one below the other."""
    runs: list[tuple[bool, list[_Column]]] = []
    for piece in pieces:
        narrow = 2 * (piece.right - piece.left) + COLUMN_GAP <= room
        if not runs or runs[-1][0] != narrow:
            runs.append((narrow, []))
        runs[-1][1].append(piece)
    columns: list[_Column] = []
    y = 0.0
    for page, (narrow, run) in enumerate(runs):
        high, wide = run[-1].bottom - run[0].top, max(piece.right - piece.left for piece in run)
        fit = int((room + COLUMN_GAP) // (wide + COLUMN_GAP)) if narrow and high > tall else 1
        share = high / min(fit, math.ceil(high / tall))
        on_page = [run[0]]
        for piece in run[1:]:
            full = (piece.top + piece.bottom) / 2 - on_page[-1].top > share
            if full and len(on_page) < fit:
                on_page.append(piece)
            else:
                on_page[-1].join(piece)
        x = 0.0
        for column in on_page:
            column.dx, column.dy, column.page = x - column.left, y - column.top, page
            x = column.right + column.dx + COLUMN_GAP
        y = max(column.bottom + column.dy for column in on_page) + ROW_GAP
        columns += on_page
    return columns


def _carried(route: list[Point], here: _Column, there: _Column) -> list[Point]:
    """The route of the arrow that leads from one column to the next."""
    begin = [here.moved(point) for point in route if point[1] <= here.bottom]
    end = [there.moved(point) for point in route if point[1] >= there.top]
    (ax, _), (bx, _) = begin[-1], end[0]
    ay, by = here.bottom + here.dy + BEND, there.top + there.dy - BEND
    if here.page != there.page:  # in the gap between the pages
        middle = there.top + there.dy - ROW_GAP / 2
        return [*begin, (ax, middle), (bx, middle), *end]
    between = here.right + here.dx + COLUMN_GAP / 2
    return [*begin, (ax, ay), (between, ay), (between, by), (bx, by), *end]
