"""Parts of a drawing that no arrow joins, set side by side where there is room for them.

Promises: what an arrow joins is laid out as one, by `layout`; parts stand in the order given, in rows no wider than
asked for (a part that is wider has a row of its own); tall parts are cut into columns; nothing overlaps; ids, sizes and
edges are those given.
"""

from __future__ import annotations

from collections.abc import Collection

from dynascope.widgets import layout as lay
from dynascope.widgets.wrap import wrapped

#: of more parts none is sent to `dot`: each costs a process
DOT_PARTS = 6
#: a drawing of more groups is not seen at a glance, so the better engine's time is better saved
DOT_GROUPS = 60
COMPACT_ROW_GAP, COMPACT_SIDE_GAP, COMPACT_BEND = 30.0, 16.0, 13.0


def packed(
    boxes: list[lay.Box], edges: list[lay.Edge], groups: list[lay.Group], room: float, *,
    alone: Collection[str] = (), quick: bool = False, compact: float = 0,
) -> lay.Placement:  # fmt: skip
    """As `layout.layout`, but parts that only an edge of kind "order" joins stand beside each other.

    `alone`: ids beside which no other part may stand, because they grow; `quick`: without `dot`; `compact`: many small
    boxes, with half the gaps, without `dot`, and in columns where they are higher than that many pixels.
    """
    parts = _parts(boxes, edges, groups)
    engine: lay.Engine = "auto" if len(parts) <= DOT_PARTS and len(groups) <= DOT_GROUPS and not quick else "layered"
    row_gap, side_gap = lay.ROW_GAP, lay.SIDE_GAP
    if compact:
        engine, row_gap, side_gap = "layered", COMPACT_ROW_GAP, COMPACT_SIDE_GAP

    def laid(
        boxes: list[lay.Box], edges: list[lay.Edge], groups: list[lay.Group], engine: lay.Engine = engine
    ) -> lay.Placement:
        whole = lay.layout(boxes, edges, groups, engine=engine, compact=bool(compact))
        return wrapped(whole, edges, room, tall=compact, bend=COMPACT_BEND) if compact else wrapped(whole, edges, room)

    if len(parts) < 2:
        return laid(boxes, edges, groups)
    owner = {id: n for n, ids in enumerate(parts) for id in ids}
    own_boxes: list[list[lay.Box]] = [[] for _ in parts]
    own_edges: list[list[int]] = [[] for _ in parts]
    own_groups: list[list[lay.Group]] = [[] for _ in parts]
    for box in boxes:
        own_boxes[owner[box.id]].append(box)
    for group in groups:
        own_groups[owner[group.id]].append(group)
    for number, edge in enumerate(edges):
        if owner[edge.source] == owner[edge.target]:
            own_edges[owner[edge.source]].append(number)
    placed_boxes: dict[str, lay.Rect] = {}
    placed_groups: dict[str, lay.Rect] = {}
    routes: list[list[lay.Point]] = [[] for _ in edges]
    engines = set()
    x = y = high = width = 0.0
    for n in range(len(parts)):
        few = len(own_groups[n]) + len(own_boxes[n]) < 4
        mine = [edges[i] for i in own_edges[n]]
        part = laid(own_boxes[n], mine, own_groups[n], "layered" if few else engine)
        engines.add(part.engine)
        grows = any(id in alone for id in parts[n])
        if x and (grows or x + part.width - 2 * lay.MARGIN > room):
            x, y, high = 0.0, y + high - 2 * lay.MARGIN + row_gap, 0.0
        placed_boxes |= {id: _moved(r, x, y) for id, r in part.boxes.items()}
        placed_groups |= {id: _moved(r, x, y) for id, r in part.groups.items()}
        for number, route in zip(own_edges[n], part.edges, strict=True):
            routes[number] = [(round(a + x, 1), round(b + y, 1)) for a, b in route]
        width, high = max(width, x + part.width), max(high, part.height)
        x += room if grows else part.width - 2 * lay.MARGIN + side_gap
    used = "dot" if "dot" in engines else "layered"
    return lay.Placement(round(width, 1), round(y + high, 1), placed_boxes, placed_groups, routes, used)


def _moved(r: lay.Rect, x: float, y: float) -> lay.Rect:
    return lay.Rect(round(r.x + x, 1), round(r.y + y, 1), r.width, r.height)


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
