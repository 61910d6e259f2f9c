"""Layouts of any frames, boxes, nodes and edges: nothing overlaps, frames hold their boxes, edges end on borders."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping
from itertools import combinations
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.widgets.layout import fx_graph, split_graph
from dynascope.widgets.layout.geometry import Placement, Rect, Size
from dynascope.widgets.layout.split_graph import COLUMN, COLUMN_GAP, Box, Edge

Key = TypeVar("Key", bound=Hashable)
SLACK = 0.25  # coordinates are rounded to a tenth
KINDS = ("continues", "calls")
Nodes = tuple[tuple[Size, ...], tuple[tuple[int, int], ...]]


@st.composite
def split_graphs(draw: st.DrawFn) -> tuple[list[Box], list[Edge]]:
    """Up to 8 frames with up to 14 boxes, joined at will (cycles, doubles, edges from and to frames and boxes)."""
    width, height = (
        st.sampled_from([120.0, COLUMN, COLUMN + 28, 312.0, 594.0, 618.0, 700.0]),
        st.sampled_from([28.0, 60.0, 300.0]),
    )
    frames = [Box(f"f{i}", draw(width), draw(height)) for i in range(draw(st.integers(1, 8)))]
    homes = st.sampled_from([f.id for f in frames])
    boxes = [Box(f"b{i}", 222.0, draw(height), draw(homes)) for i in range(draw(st.integers(0, 14)))]
    home = {b.id: b.frame or b.id for b in [*frames, *boxes]}
    ids = st.sampled_from(list(home))
    edges = draw(st.lists(st.builds(Edge, ids, ids, st.sampled_from(KINDS)), max_size=24))
    # an edge between a frame and a box in it has no sensible drawing; nor has one from a thing to itself
    sensible = [e for e in edges if home[e.source] != home[e.target] or len({e.source, e.target, home[e.source]}) == 3]
    return [*frames, *boxes], sensible


@st.composite
def fx_graphs(draw: st.DrawFn) -> Nodes:
    """Up to 40 nodes, each of which reads up to three before it."""
    sizes = draw(st.lists(st.tuples(st.floats(4, 300, width=16), st.floats(4, 60, width=16)), max_size=40))
    arcs = {
        (source, target)
        for target in range(1, len(sizes))
        for source in draw(st.lists(st.integers(0, target - 1), max_size=3))
    }  # fmt: skip
    return tuple(sizes), tuple(sorted(arcs, key=lambda arc: arc[1]))


def overlap(a: Rect, b: Rect) -> bool:
    across = a.x + SLACK < b.right - SLACK and b.x + SLACK < a.right - SLACK
    return across and a.y + SLACK < b.bottom - SLACK and b.y + SLACK < a.bottom - SLACK


def on_border(point: tuple[float, float], r: Rect) -> bool:
    x, y = point
    inside = r.x - SLACK <= x <= r.right + SLACK and r.y - SLACK <= y <= r.bottom + SLACK
    return inside and min(abs(x - r.x), abs(x - r.right), abs(y - r.y), abs(y - r.bottom)) <= SLACK


def check(placed: Placement[Key], outer: Mapping[Key, Rect], edges: list[tuple[Key, Key]]) -> None:
    assert not [pair for pair in combinations(outer.values(), 2) if overlap(*pair)]
    points = [point for route in placed.routes for point in route]
    for x, y in [*points, *((r.x, r.y) for r in placed.rects.values()), *((r.right, r.bottom) for r in placed.rects.values())]:
        assert 0 <= x <= placed.width
        assert 0 <= y <= placed.height
    for (source, target), route in zip(edges, placed.routes, strict=True):
        assert len(route) >= 2
        assert on_border(route[0], placed.rects[source]), (source, route, placed.rects[source])
        assert on_border(route[-1], placed.rects[target]), (target, route, placed.rects[target])


@given(split_graphs())
@settings(max_examples=150, deadline=None)
def test_any_split_graph(graph: tuple[list[Box], list[Edge]]) -> None:
    boxes, edges = graph
    placed = split_graph.layout(boxes, edges)
    assert set(placed.rects) == {b.id for b in boxes}
    check(placed, {b.id: placed.rects[b.id] for b in boxes if b.frame is None}, [(e.source, e.target) for e in edges])
    inner = [(b.frame, placed.rects[b.id]) for b in boxes if b.frame is not None]
    assert not [(a, b) for (_, a), (_, b) in combinations(inner, 2) if overlap(a, b)]
    for frame, r in inner:
        f = placed.rects[frame]
        assert f.x - SLACK <= r.x <= r.right <= f.right + SLACK
        assert f.y - SLACK <= r.y <= r.bottom <= f.bottom + SLACK
    assert split_graph.layout(boxes, edges) == placed


@given(fx_graphs())
@settings(max_examples=150, deadline=None)
def test_any_fx_graph(graph: Nodes) -> None:
    sizes, arcs = graph
    placed = fx_graph.layout(sizes, arcs, 740, 420)
    assert sorted(placed.rects) == list(range(len(sizes)))
    check(placed, placed.rects, list(arcs))


def work(make: Callable[[], object]) -> int:
    """Calls of functions that a layout makes: what it costs, the same on every machine."""
    calls = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    fx_graph.layout.cache_clear()
    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        make()
    finally:
        sys.setprofile(before)
    return calls


def small_boxes(count: int) -> Nodes:
    arcs = {(max(0, i - 1 - i % 7), i) for i in range(1, count)} | {(i // 3, i) for i in range(1, count, 5)}
    return ((90.0, 28.0),) * count, tuple(sorted(arcs, key=lambda arc: arc[1]))


def test_the_work_grows_linearly_with_the_nodes() -> None:
    small, large = (work(lambda count=count: fx_graph.layout(*small_boxes(count), 740, 420)) for count in (2_000, 8_000))
    assert large < 6 * small


def test_a_called_frame_is_beside_its_caller_whatever_is_above_and_below() -> None:
    boxes = [Box(f"{row}{i}", COLUMN, 30) for row in "abc" for i in range(4)]
    edges = [Edge(f"{row}{i}", f"{row}{i + 1}", "calls") for row in "abc" for i in range(3)]
    edges += [Edge("a0", "b0", "continues"), Edge("b0", "c0", "continues")]
    rects = split_graph.layout(boxes, edges).rects
    for edge in edges[:9]:
        left, right = rects[edge.source], rects[edge.target]
        assert (right.y, round(right.x - left.right, 1)) == (left.y, COLUMN_GAP)


def test_arrows_that_lead_to_one_box_do_not_cross() -> None:
    """The longest gets the lane next to the target: the others do not run across it."""
    boxes = [Box(f"s{i}", COLUMN, 40) for i in range(5)] + [Box("t", COLUMN, 40)]
    edges = [Edge("s0", "t", "calls"), *(Edge(f"s{i}", f"s{i + 1}", "continues") for i in range(4))]
    edges += [Edge(f"s{i}", "t", "calls") for i in range(1, 5)]
    lanes = [route[1][0] for route in split_graph.layout(boxes, edges).routes[5:]]
    assert lanes == sorted(lanes)
    assert len(set(lanes)) == 4
