"""Boxes and edges in, positions and edge polylines out.

Promises: no two boxes overlap; every box lies inside its group, groups do not overlap each other or
foreign boxes; every edge starts and ends on the border of what it joins; all coordinates are >= 0 and
inside the returned size; the same input gives the same output.  The work is
linear in boxes and edges (`layered`), beside the right-angled routes of drawings of at most `ROUTED` boxes (`routes`).

A group is a column: its boxes are one below the other, under its header, in the given order.  For `layered` a group is one tall
box, and its contents never move.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from dynascope.widgets.layout import layered
from dynascope.widgets.layout.layered import Point, Rect
from dynascope.widgets.layout.routes import Router

#: "down": the target is below; "side": the target is to the right, in the same row if possible;
#: "free": drawn, but without influence on the layout; "order": not drawn, but the target is below
EdgeKind = Literal["down", "side", "free", "order"]

#: number of boxes and groups above which no right-angled routes are searched
ROUTED = 600
ROW_GAP = 46.0
COLUMN_GAP = 26.0
SIDE_GAP = 50.0
MARGIN = 14.0
#: inside a group
PAD = 12.0
INNER_GAP = 16.0


@dataclass(frozen=True)
class Box:
    """Something with a size; `group` is the id of the group that it is in."""

    id: str
    width: float
    height: float
    group: str | None = None


@dataclass(frozen=True)
class Group:
    """A column of boxes under a header; never narrower than `width`."""

    id: str
    header: float = 28.0
    width: float = 0.0


@dataclass(frozen=True)
class Edge:
    """From a box or group to a box or group."""

    source: str
    target: str
    kind: EdgeKind = "down"


@dataclass(frozen=True)
class Placement:
    """The positions of everything.  `edges` has one polyline for each given edge, empty for kind "order"."""

    width: float
    height: float
    boxes: dict[str, Rect]
    groups: dict[str, Rect]
    edges: list[list[Point]]


def layout(boxes: list[Box], edges: list[Edge], groups: list[Group] | None = None, *, compact: bool = False) -> Placement:
    """Place boxes and groups, and route the edges.

    `compact` halves the gaps, and sets sources right above what reads them (for graphs of many small boxes).
    Raises ValueError where an id is given twice or an edge or box names what is not there.
    """
    return _cached(tuple(boxes), tuple(edges), tuple(groups or ()), compact)


#: cache size: the number of pictures in a large report's folds, as the widget and the static twin need the same ones
@functools.lru_cache(maxsize=512)
def _cached(boxes: tuple[Box, ...], edges: tuple[Edge, ...], groups: tuple[Group, ...], compact: bool) -> Placement:
    columns = _Columns(boxes, groups)
    lines = [layered.Line(columns.outer(e.source), columns.outer(e.target), e.kind) for e in edges]
    gaps = layered.Gaps(ROW_GAP, COLUMN_GAP, SIDE_GAP)
    if compact:
        gaps = layered.Gaps(30.0, 16.0, 30.0)
    placed = layered.place(columns.sizes, lines, gaps, snug=compact)
    return columns.finish(placed, edges, lines, right_angled=not compact and len(columns.sizes) <= ROUTED)


class _Columns:
    """Groups folded into single outer boxes, and unfolded again once these are placed."""

    def __init__(self, boxes: tuple[Box, ...], groups: tuple[Group, ...]) -> None:
        self.boxes = {b.id: b for b in boxes}
        self.groups = {g.id: g for g in groups}
        if len(self.boxes) != len(boxes) or len(self.groups) != len(groups) or self.boxes.keys() & self.groups.keys():
            raise ValueError("an id is given twice")
        self.members: dict[str, list[Box]] = {g.id: [] for g in groups}
        for box in boxes:
            if box.group is not None:
                if box.group not in self.members:
                    raise ValueError(f"box {box.id!r} is in an unknown group: {box.group!r}")
                self.members[box.group].append(box)
        self.sizes: dict[str, tuple[float, float]] = {}
        for group in groups:
            self.sizes[group.id] = self._group_size(group)
        for box in boxes:
            if box.group is None:
                self.sizes[box.id] = (box.width, box.height)

    def _group_size(self, group: Group) -> tuple[float, float]:
        inside = self.members[group.id]
        width = max([group.width, *(b.width + 2 * PAD for b in inside)])
        height = group.header + sum(b.height for b in inside) + INNER_GAP * max(0, len(inside) - 1) + (PAD if inside else 0)
        return max(width, 2 * PAD), max(height, PAD)

    def outer(self, id: str) -> str:
        if id in self.groups:
            return id
        if id not in self.boxes:
            raise ValueError(f"an edge names what is not there: {id!r}")
        return self.boxes[id].group or id

    def finish(
        self,
        placed: layered.Placed,
        edges: tuple[Edge, ...],
        lines: list[layered.Line],
        *,
        right_angled: bool,
    ) -> Placement:
        """Put the boxes into their groups, and lead each route to its boxes."""
        rects = placed.boxes
        all_boxes = {i: r for i, r in rects.items() if i in self.boxes}
        for id, group in self.groups.items():
            outer = rects[id]
            y = outer.y + group.header
            for box in self.members[id]:
                all_boxes[box.id] = Rect(outer.middle - box.width / 2, y, box.width, box.height)
                y += box.height + INNER_GAP
        router = Router(rects) if right_angled else None
        routes: list[list[Point]] = [[] for _ in edges]

        def descent(number: int) -> tuple[bool, float]:
            """Free edges last, from the one that climbs most: so routes that share an end do not cross."""
            line = lines[number]
            return edges[number].kind == "free", rects[line.target].y - rects[line.source].y

        for number in sorted(range(len(edges)), key=descent):
            edge, line = edges[number], lines[number]
            if edge.kind == "order":
                continue
            if line.source == line.target:
                routes[number] = self._inside(edge, rects[line.source], all_boxes)
            else:
                angled = self._angled(router, edge, line, all_boxes, rects) if router else None
                routes[number] = angled or self._through(edge, placed.routes[number], all_boxes)
        return _shifted(all_boxes, {i: rects[i] for i in self.groups}, routes)

    def _angled(
        self, router: Router, edge: Edge, line: layered.Line, boxes: dict[str, Rect], rects: dict[str, Rect]
    ) -> list[Point] | None:
        """A free right-angled route, or None; a route down from a box in a group is possible for the last box only."""
        a, b = boxes.get(edge.source, rects[line.source]), boxes.get(edge.target, rects[line.target])
        last = edge.source == line.source or self.members[line.source][-1].id == edge.source
        if edge.kind == "down" and last and edge.target == line.target:
            return router.down(line.source, a, line.target, ROW_GAP * 0.6)
        if edge.kind == "side" and edge.source == line.source and edge.target == line.target:
            return router.side(line.source, line.target)
        if edge.kind == "free" and edge.source == line.source:
            return router.free(line.source, line.target, b)
        return None

    def _inside(self, edge: Edge, outer: Rect, boxes: dict[str, Rect]) -> list[Point]:
        """An edge within one group: straight to the next box, beside the column otherwise."""
        a, b = boxes.get(edge.source, outer), boxes.get(edge.target, outer)
        if a is not outer and b is not outer and edge.source != edge.target:
            order = [m.id for m in self.members[self.outer(edge.source)]]
            if order.index(edge.target) == order.index(edge.source) + 1:
                return [(a.middle, a.bottom), (b.middle, b.y)]
        side = max(a.right, b.right)
        reach = side + min(PAD / 2, max(2.0, outer.right - side))
        start, end = a.y + a.height * 0.4, b.y + b.height * 0.6
        return [(a.right, start), (reach, start), (reach, end), (b.right, end)]

    def _through(self, edge: Edge, route: list[Point], boxes: dict[str, Rect]) -> list[Point]:
        """Carry a route between groups on to the boxes inside them."""
        points = list(route)
        if edge.source in boxes and self.boxes[edge.source].group is not None:
            points = _step_in(points[0], boxes[edge.source])[::-1] + points
        if edge.target in boxes and self.boxes[edge.target].group is not None:
            points = points + _step_in(points[-1], boxes[edge.target])
        return _tidy(points)


def _step_in(at: Point, box: Rect) -> list[Point]:
    """From a point on a group's border to the border of a box inside."""
    x, y = at
    if box.x <= x <= box.right and (y >= box.bottom or y <= box.y):
        return [(x, box.bottom if y >= box.bottom else box.y)]
    height = box.y + box.height / 2
    return [(x, height), (box.x if x <= box.middle else box.right, height)]


def _tidy(points: list[Point]) -> list[Point]:
    """Without repeated points and without points on a straight line between their neighbours."""
    kept: list[Point] = []
    for point in points:
        if kept and abs(point[0] - kept[-1][0]) < 0.01 and abs(point[1] - kept[-1][1]) < 0.01:
            continue
        if len(kept) >= 2:
            (ax, ay), (bx, by) = kept[-2], kept[-1]
            cross = (bx - ax) * (point[1] - ay) - (by - ay) * (point[0] - ax)
            ahead = (bx - ax) * (point[0] - bx) + (by - ay) * (point[1] - by)
            if abs(cross) < 0.01 and ahead >= 0:
                kept.pop()
        kept.append(point)
    return kept if len(kept) > 1 else kept * 2


def _shifted(boxes: dict[str, Rect], groups: dict[str, Rect], routes: list[list[Point]]) -> Placement:
    """Moved so that the smallest coordinate is the margin, and rounded to a tenth of a pixel."""
    rects = [*boxes.values(), *groups.values()]
    if not rects:
        return Placement(2 * MARGIN, 2 * MARGIN, {}, {}, [[] for _ in routes])
    points = [*((r.x, r.y) for r in rects), *((r.right, r.bottom) for r in rects), *chain.from_iterable(routes)]
    xs, ys = zip(*points, strict=True)
    dx, dy = MARGIN - min(xs), MARGIN - min(ys)
    return Placement(
        round(max(xs) + dx + MARGIN, 1), round(max(ys) + dy + MARGIN, 1),
        {i: r.moved(dx, dy) for i, r in boxes.items()}, {i: r.moved(dx, dy) for i, r in groups.items()},
        [[(round(x + dx, 1), round(y + dy, 1)) for x, y in route] for route in routes],
    )  # fmt: skip
