"""Layout, for any boxes, groups and edges: nothing overlaps, groups hold their boxes, edges end on borders."""

from __future__ import annotations

import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.widgets.layout.layered import Rect
from dynascope.widgets.layout.placement import SIDE_GAP, Box, Edge, Group, Placement, layout

SLACK = 0.25  # coordinates are rounded to a tenth
KINDS = ("down", "side", "free", "order")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Box], list[Edge], list[Group]]:
    """Up to 14 boxes in up to 4 groups, joined at will (loops, cycles, doubles, edges to groups)."""
    groups = [Group(f"G{i}", draw(st.sampled_from([0.0, 28.0, 60.0]))) for i in range(draw(st.integers(0, 4)))]
    size = st.floats(4, 300, allow_nan=False, width=16)
    homes = st.sampled_from([None, *(g.id for g in groups)])
    boxes = [Box(f"b{i}", draw(size), draw(size), draw(homes)) for i in range(draw(st.integers(0, 14)))]
    ids = [b.id for b in boxes] + [g.id for g in groups]
    edge = st.builds(Edge, st.sampled_from(ids), st.sampled_from(ids), st.sampled_from(KINDS)) if ids else st.nothing()
    edges = draw(st.lists(edge, max_size=24)) if ids else []
    return boxes, [e for e in edges if not inside_own_group(e, boxes)], groups


def inside_own_group(edge: Edge, boxes: list[Box]) -> bool:
    """An edge between a group and a box in it has no sensible drawing; nor has one from a thing to itself."""
    home = {b.id: b.group for b in boxes}
    return edge.source == edge.target or home.get(edge.source) == edge.target or home.get(edge.target) == edge.source


def overlap(a: Rect, b: Rect) -> bool:
    across = a.x + SLACK < b.x + b.width - SLACK and b.x + SLACK < a.x + a.width - SLACK
    return across and a.y + SLACK < b.y + b.height - SLACK and b.y + SLACK < a.y + a.height - SLACK


def on_border(point: tuple[float, float], r: Rect) -> bool:
    x, y = point
    inside = r.x - SLACK <= x <= r.x + r.width + SLACK and r.y - SLACK <= y <= r.y + r.height + SLACK
    edges = (abs(x - r.x), abs(x - r.x - r.width), abs(y - r.y), abs(y - r.y - r.height))
    return inside and min(edges) <= SLACK


def check(placed: Placement, boxes: list[Box], edges: list[Edge], groups: list[Group]) -> None:
    assert set(placed.boxes) == {b.id for b in boxes}
    assert set(placed.groups) == {g.id for g in groups}
    loose = [placed.boxes[b.id] for b in boxes if b.group is None] + list(placed.groups.values())
    everything = [*placed.boxes.values(), *placed.groups.values()]
    for i, a in enumerate(loose):
        for b in loose[i + 1 :]:
            assert not overlap(a, b), (a, b)
    for i, one in enumerate(boxes):
        for other in boxes[i + 1 :]:
            assert not overlap(placed.boxes[one.id], placed.boxes[other.id])
        if one.group is not None:
            r, g = placed.boxes[one.id], placed.groups[one.group]
            assert g.x - SLACK <= r.x
            assert r.x + r.width <= g.x + g.width + SLACK
            assert g.y - SLACK <= r.y
            assert r.y + r.height <= g.y + g.height + SLACK
    for r in everything:
        assert r.x >= 0
        assert r.y >= 0
        assert r.x + r.width <= placed.width
        assert r.y + r.height <= placed.height
    where = placed.boxes | placed.groups
    assert len(placed.edges) == len(edges)
    for edge, route in zip(edges, placed.edges, strict=True):
        if edge.kind == "order":
            assert route == []
            continue
        assert len(route) >= 2
        assert on_border(route[0], where[edge.source]), (edge, route, where[edge.source])
        assert on_border(route[-1], where[edge.target]), (edge, route, where[edge.target])


@given(graphs())
@settings(max_examples=150, deadline=None)
def test_our_own_layout(graph: tuple[list[Box], list[Edge], list[Group]]) -> None:
    boxes, edges, groups = graph
    check(layout(boxes, edges, groups), boxes, edges, groups)


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_our_own_layout_compact(graph: tuple[list[Box], list[Edge], list[Group]]) -> None:
    boxes, edges, groups = graph
    check(layout(boxes, edges, groups, compact=True), boxes, edges, groups)


@given(graphs())
@settings(max_examples=10, deadline=None)
def test_same_input_same_output(graph: tuple[list[Box], list[Edge], list[Group]]) -> None:
    boxes, edges, groups = graph
    first = layout(boxes, edges, groups)
    again = layout(list(boxes), list(edges), [*groups, Group("more")])
    assert layout(boxes, edges, groups) == first
    assert set(again.boxes) == set(first.boxes)


def work(boxes: list[Box], edges: list[Edge], *, compact: bool = False) -> int:
    """Calls of functions that a layout makes: what it costs, the same on every machine."""
    calls = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        layout(boxes, edges, compact=compact)
    finally:
        sys.setprofile(before)
    return calls


def small_boxes(count: int) -> tuple[list[Box], list[Edge]]:
    boxes = [Box(f"b{i}", 90, 28) for i in range(count)]
    edges = [Edge(f"b{max(0, i - 1 - i % 7)}", f"b{i}") for i in range(1, count)]
    return boxes, edges + [Edge(f"b{i // 3}", f"b{i}") for i in range(1, count, 5)]


def hits_of_one_break(count: int) -> tuple[list[Box], list[Edge]]:
    boxes = [Box(f"b{i}", 222, 80) for i in range(count)]
    return boxes, [Edge(f"b{i}", f"b{i + 1}", "side") for i in range(count - 1)] + [
        Edge(f"b{i}", "b0", "free") for i in range(2, count)
    ]


def test_the_work_grows_linearly_with_the_boxes() -> None:
    assert work(*small_boxes(8_000), compact=True) < 6 * work(*small_boxes(2_000), compact=True)


def test_the_work_of_free_edges_is_bounded() -> None:
    assert work(*hits_of_one_break(400)) < 20 * work(*hits_of_one_break(50))


def test_what_side_edges_join_stands_close_whatever_is_above_and_below() -> None:
    ids = [f"{row}{i}" for row in "abc" for i in range(4)]
    boxes = [Box(id, 100, 30) for id in ids]
    edges = [Edge(f"{row}{i}", f"{row}{i + 1}", "side") for row in "abc" for i in range(3)]
    edges += [Edge("a0", "b0"), Edge("b3", "c0"), Edge("c3", "b0", "free"), Edge("a3", "c0", "free")]
    placed = layout(boxes, edges)
    for edge in edges[:9]:
        left, right = placed.boxes[edge.source], placed.boxes[edge.target]
        assert (right.y, round(right.x - left.right, 1)) == (left.y, SIDE_GAP)


def test_free_edges_move_nothing_and_run_between_the_rows() -> None:
    """Frames of one row, all of which ran into the break of the first: no arrow runs beside the whole drawing."""
    boxes = [Box(f"f{i}", 200, 60) for i in range(6)]
    calls = [Edge(f"f{i}", f"f{i + 1}", "side") for i in range(5)]
    hits = [Edge(f"f{i}", "f0", "free") for i in range(2, 6)]
    alone, hit = layout(boxes, calls), layout(boxes, [*calls, *hits])
    assert hit.width == alone.width
    assert [r.x for r in hit.boxes.values()] == [r.x for r in alone.boxes.values()]
    assert hit.height < alone.height + 100


def test_arrows_that_lead_to_one_box_do_not_cross() -> None:
    """The longest gets the lane next to the target: the others do not run across it."""
    boxes = [Box(f"s{i}", 100, 40) for i in range(5)] + [Box("t", 100, 40)]
    edges = [Edge("s0", "t", "side"), *(Edge(f"s{i}", f"s{i + 1}") for i in range(4))]
    edges += [Edge(f"s{i}", "t", "free") for i in range(1, 5)]
    routes = layout(boxes, edges).edges[5:]
    lanes = [route[1][0] for route in routes]
    assert lanes == sorted(lanes)
    assert len(set(lanes)) == 4
