"""Places the unconnected parts of a drawing side by side where there is room.

Promises: everything connected by arrows is laid out as one part, by `layout`; parts keep the given order, in rows no wider than
`room` (a wider part has a row of its own); tall parts are cut into columns; nothing overlaps; ids, sizes and edges are
unchanged.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dynascope.widgets.layout import placement as lay
from dynascope.widgets.layout.layered import Point, Rect
from dynascope.widgets.layout.wrap import wrapped

COMPACT_ROW_GAP, COMPACT_SIDE_GAP, COMPACT_BEND = 30.0, 16.0, 13.0


def packed(
    boxes: list[lay.Box], edges: list[lay.Edge], groups: list[lay.Group], room: float, *,
    alone: Collection[str] = (), compact: float = 0,
) -> lay.Placement:  # fmt: skip
    """Lay out like `layout.layout`, but with parts that only an edge of kind "order" joins side by side.

    `alone`: ids of boxes that will grow, so that no other part may be beside them; `compact`: for many small boxes, with half
    the gaps, and in columns if they are higher than that many pixels.
    """
    parts = _parts(boxes, edges, groups)

    def laid_out(boxes: list[lay.Box], edges: list[lay.Edge], groups: list[lay.Group]) -> lay.Placement:
        whole = lay.layout(boxes, edges, groups, compact=bool(compact))
        return wrapped(whole, edges, room, tall=compact, bend=COMPACT_BEND) if compact else wrapped(whole, edges, room)

    if len(parts) < 2:
        return laid_out(boxes, edges, groups)
    owner = {id: n for n, ids in enumerate(parts) for id in ids}
    own = [_Part([], [], [], any(id in alone for id in ids)) for ids in parts]
    for box in boxes:
        own[owner[box.id]].boxes.append(box)
    for group in groups:
        own[owner[group.id]].groups.append(group)
    for number, edge in enumerate(edges):
        if owner[edge.source] == owner[edge.target]:
            own[owner[edge.source]].edges.append(number)
    placed = [laid_out(part.boxes, [edges[i] for i in part.edges], part.groups) for part in own]
    gaps = (COMPACT_ROW_GAP, COMPACT_SIDE_GAP) if compact else (lay.ROW_GAP, lay.SIDE_GAP)
    return _in_rows(own, placed, len(edges), room, gaps)


@dataclass(frozen=True)
class _Part:
    """A connected part; `edges` are indices of edges; `grows`: no other part may be beside it."""

    boxes: list[lay.Box]
    groups: list[lay.Group]
    edges: list[int]
    grows: bool


def _in_rows(
    parts: list[_Part], placements: list[lay.Placement], edges: int, room: float, gaps: tuple[float, float]
) -> lay.Placement:
    """The parts one after the other, in rows; `gaps`: between rows, and between parts of a row."""
    boxes: dict[str, Rect] = {}
    groups: dict[str, Rect] = {}
    routes: list[list[Point]] = [[] for _ in range(edges)]
    row_gap, side_gap = gaps
    x = y = high = width = 0.0
    for part, placed in zip(parts, placements, strict=True):
        if x and (part.grows or x + placed.width - 2 * lay.MARGIN > room):
            x, y, high = 0.0, y + high - 2 * lay.MARGIN + row_gap, 0.0
        boxes |= {id: r.moved(x, y) for id, r in placed.boxes.items()}
        groups |= {id: r.moved(x, y) for id, r in placed.groups.items()}
        for number, route in zip(part.edges, placed.edges, strict=True):
            routes[number] = [(round(a + x, 1), round(b + y, 1)) for a, b in route]
        width, high = max(width, x + placed.width), max(high, placed.height)
        x += room if part.grows else placed.width - 2 * lay.MARGIN + side_gap
    return lay.Placement(round(width, 1), round(y + high, 1), boxes, groups, routes)


def _parts(boxes: list[lay.Box], edges: list[lay.Edge], groups: list[lay.Group]) -> list[list[str]]:
    """The ids of each part, parts in the order of their first group or box."""
    leader: dict[str, str] = {}

    def find(id: str) -> str:
        leader.setdefault(id, id)
        while leader[id] != id:
            leader[id] = leader[leader[id]]
            id = leader[id]
        return id

    for box in boxes:
        if box.group is not None:
            leader[find(box.id)] = find(box.group)
    for edge in edges:
        if edge.kind != "order":
            leader[find(edge.source)] = find(edge.target)
    parts: dict[str, list[str]] = {}
    for id in (*(g.id for g in groups), *(b.id for b in boxes)):
        parts.setdefault(find(id), []).append(id)
    return list(parts.values())
