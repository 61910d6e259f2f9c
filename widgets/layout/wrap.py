"""Cuts a tall drawing into columns side by side, like a newspaper.

Promises: a cut is made only where a single arrow, leading down, crosses it; each column is moved unchanged; columns are in
reading order; a part that is too wide for a column has the whole width, below the columns before it; the arrow to the next
column runs through the free space between the two.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from dynascope.widgets.layout import placement as lay
from dynascope.widgets.layout.layered import Point, Rect

#: height in pixels up to which a drawing stays one column
TALL = 640.0
#: pixels between the end of a column and the bend of the arrow that leaves it
BEND = 18.0


@dataclass
class _Cut:
    """A place to cut: everything above ends at `bottom`, everything below begins at `top`; `edge` is the one that crosses."""

    bottom: float
    top: float
    edge: int


@dataclass
class _Column:
    """The part between two cuts, to which neighbouring parts may be joined.  `dx`, `dy`: how far it is moved."""

    left: float
    top: float
    right: float
    bottom: float
    dx: float = 0.0
    dy: float = 0.0

    def joined(self, other: _Column) -> _Column:
        return _Column(min(self.left, other.left), self.top, max(self.right, other.right), other.bottom)

    def moved(self, point: Point) -> Point:
        return round(point[0] + self.dx, 1), round(point[1] + self.dy, 1)


def wrapped(
    placed: lay.Placement, edges: list[lay.Edge], room: float, *, tall: float = TALL, bend: float = BEND
) -> lay.Placement:
    """`placed` in as many columns as fit into `room` pixels; unchanged if it is not tall or cannot be cut."""
    cuts = _cuts(placed, edges, bend) if placed.height > tall else []
    if not cuts:
        return placed
    pages = _pages(_pieces(placed, cuts), room, tall)
    columns = [column for page in pages for column in page]
    y = lay.MARGIN + (bend if len(pages[0]) > 1 else 0)
    for page in pages:
        x = lay.MARGIN
        for column in page:
            column.dx, column.dy = x - column.left, y - column.top
            x = column.right + column.dx + lay.SIDE_GAP
        y = max(c.bottom + c.dy for c in page) + lay.ROW_GAP
    used = {c.edge: c for c in cuts if any(c.bottom == column.bottom for column in columns)}
    ends = [c.bottom for c in columns]

    def of(top: float) -> _Column:
        return columns[min(bisect_left(ends, top), len(columns) - 1)]

    def rect(r: Rect) -> Rect:
        return Rect(*of(r.y).moved((r.x, r.y)), r.width, r.height)

    routes = [
        _carried(route, used[n], columns, pages, bend) if n in used else [of(p[1]).moved(p) for p in route]
        for n, route in enumerate(placed.edges)
    ]
    width = max(c.right + c.dx for c in columns) + lay.MARGIN
    height = max(c.bottom + c.dy for c in columns) + max(lay.MARGIN, bend + lay.MARGIN / 2)
    boxes, groups = ({i: rect(r) for i, r in rects.items()} for rects in (placed.boxes, placed.groups))
    return lay.Placement(round(width, 1), round(height, 1), boxes, groups, routes)


def _cuts(placed: lay.Placement, edges: list[lay.Edge], bend: float) -> list[_Cut]:
    """All places where the drawing can be cut, from top to bottom."""
    gaps: list[tuple[float, float]] = []
    bottom = math.inf
    for r in sorted([*placed.groups.values(), *placed.boxes.values()], key=lambda r: r.y):
        if r.y > bottom + 2 * bend:
            gaps.append((bottom, r.y))
        bottom = max(r.bottom, bottom) if bottom < math.inf else r.bottom
    crossing: list[list[int]] = [[] for _ in gaps]
    for number, route in enumerate(placed.edges):
        heights = [y for _, y in route]
        first = bisect_right(gaps, min(heights, default=math.inf), key=lambda gap: gap[1])
        last = bisect_left(gaps, max(heights, default=-math.inf), key=lambda gap: gap[0])
        for numbers in crossing[first:last]:
            numbers.append(number)
    pairs = zip(gaps, crossing, strict=True)
    return [_Cut(*gap, numbers[0]) for gap, numbers in pairs if len(numbers) == 1 and edges[numbers[0]].kind == "down"]


def _pieces(placed: lay.Placement, cuts: list[_Cut]) -> list[_Column]:
    """The parts between the cuts, as narrow as their boxes and arrows allow."""
    begins = [c.top for c in cuts]
    pieces = [_Column(math.inf, math.inf, -math.inf, -math.inf) for _ in (0, *cuts)]
    for r in (*placed.groups.values(), *placed.boxes.values()):
        piece = pieces[bisect_right(begins, r.y)]
        piece.top, piece.bottom = min(piece.top, r.y), max(piece.bottom, r.bottom)
        piece.left, piece.right = min(piece.left, r.x), max(piece.right, r.right)
    for x, y in (point for route in placed.edges for point in route):
        piece = pieces[bisect_right(begins, y)]
        piece.left, piece.right = min(piece.left, x), max(piece.right, x)
    return pieces


def _pages(pieces: list[_Column], room: float, tall: float) -> list[list[_Column]]:
    """The columns side by side, page by page: narrow pieces are spread evenly, wide ones are one below the other."""
    runs: list[tuple[bool, list[_Column]]] = []
    for piece in pieces:
        narrow = 2 * (piece.right - piece.left) + lay.SIDE_GAP <= room
        if not runs or runs[-1][0] != narrow:
            runs.append((narrow, []))
        runs[-1][1].append(piece)
    pages = []
    for narrow, run in runs:
        high, wide = run[-1].bottom - run[0].top, max(p.right - p.left for p in run)
        fit = int((room + lay.SIDE_GAP) // (wide + lay.SIDE_GAP)) if narrow and high > tall else 1
        columns = [run[0]]
        share = high / min(fit, math.ceil(high / tall))
        for piece in run[1:]:
            full = (piece.top + piece.bottom) / 2 - columns[-1].top > share
            columns[-1:] = [columns[-1], piece] if full and len(columns) < fit else [columns[-1].joined(piece)]
        pages.append(columns)
    return pages


def _carried(route: list[Point], cut: _Cut, columns: list[_Column], pages: list[list[_Column]], bend: float) -> list[Point]:
    """The route from the end of one column to the start of the next."""
    before = next(n for n, column in enumerate(columns) if column.bottom == cut.bottom)
    here, there = columns[before], columns[before + 1]
    begin = [here.moved(p) for p in route if p[1] <= cut.bottom]
    end = [there.moved(p) for p in route if p[1] >= cut.top]
    (ax, ay), (bx, by) = (begin[-1][0], cut.bottom + here.dy + bend), (end[0][0], cut.top + there.dy - bend)
    if any(page[-1] is here for page in pages):  # on to the next page: below all columns
        middle = round(cut.top + there.dy - lay.ROW_GAP / 2, 1)
        return [*begin, (ax, middle), (bx, middle), *end]
    between = round(here.right + here.dx + lay.SIDE_GAP / 2, 1)
    return [*begin, (ax, round(ay, 1)), (between, round(ay, 1)), (between, round(by, 1)), (bx, round(by, 1)), *end]
