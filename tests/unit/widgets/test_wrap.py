"""Tall drawings in columns: the same pieces, in order, none over another, joined by the same arrows."""

from __future__ import annotations

import itertools

import pytest
from samples import SAMPLES, many, split

from dynascope.widgets.layout import fx_graph, split_graph
from dynascope.widgets.layout.geometry import MARGIN, Placement, Point, Rect
from dynascope.widgets.layout.split_graph import COLUMN, ROOM, Box, Edge
from dynascope.widgets.model import view_model

HIGH = 120.0


def chain(count: int, calls: tuple[int, ...] = ()) -> tuple[Placement[str], list[Edge]]:
    """Frames that continue one another; those in `calls` call another one."""
    boxes = [Box(f"f{i}", COLUMN, HIGH - 60) for i in range(count)]
    boxes += [Box(f"b{i}", COLUMN - 40, 40, f"f{i}") for i in range(count)] + [Box(f"h{i}", COLUMN, 60) for i in calls]
    edges = [Edge(f"b{i}", f"f{i + 1}", "down") for i in range(count - 1)] + [Edge(f"f{i}", f"h{i}", "right") for i in calls]
    return split_graph.layout(boxes, edges), edges


def layers(count: int) -> tuple[Placement[int], list[tuple[int, int]]]:
    """Boxes that read one another in turn."""
    arcs = [(i, i + 1) for i in range(count - 1)]
    return fx_graph.layout(((90.0, 30.0),) * count, tuple(arcs), 740.0, 420.0), arcs


def overlapping(rects: dict[str, Rect]) -> list[tuple[str, str]]:
    def meet(a: Rect, b: Rect) -> bool:
        return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height

    return [(i, j) for (i, a), (j, b) in itertools.combinations(rects.items(), 2) if meet(a, b)]


def crossed(route: list[Point], rects: dict[str, Rect]) -> list[tuple[str, str]]:
    """The rectangles that a right-angled route crosses."""
    met = []
    for (ax, ay), (bx, by) in itertools.pairwise(route):
        assert ax == pytest.approx(bx) or ay == pytest.approx(by)
        line = Rect(min(ax, bx), min(ay, by), abs(ax - bx), abs(ay - by))
        met += [pair for pair in overlapping({"line": line, **rects}) if "line" in pair]
    return met


def test_a_long_chain_of_frames_has_two_columns_as_high_as_each_other() -> None:
    placed, edges = chain(20)
    frames = {id: r for id, r in placed.rects.items() if id[0] == "f"}
    assert placed.width <= ROOM + 2 * MARGIN
    assert placed.height < 12 * (HIGH + 50)
    assert len({r.x for r in frames.values()}) == 2
    assert overlapping(frames) == []
    assert sorted(frames, key=lambda i: (frames[i].x, frames[i].y)) == [f"f{i}" for i in range(20)]
    for edge, route in zip(edges, placed.routes, strict=True):
        others = {id: r for id, r in frames.items() if id not in (f"f{edge.source[1:]}", edge.target)}
        assert crossed(route, others) == []


def test_a_frame_with_a_call_is_below_the_columns_before_it() -> None:
    placed, _ = chain(18, calls=(10,))
    rects = placed.rects
    assert overlapping({id: r for id, r in rects.items() if id[0] != "b"}) == []
    assert rects["f10"].y > max(rects[f"f{i}"].bottom for i in range(10))
    assert (rects["h10"].y, rects["h10"].x) == (rects["f10"].y, rects["f10"].right + split_graph.COLUMN_GAP)
    assert len({rects[f"f{i}"].x for i in range(10)}) == 2


def test_a_long_chain_of_nodes_has_columns_in_reading_order() -> None:
    placed, arcs = layers(60)
    rects = {str(i): r for i, r in placed.rects.items()}
    assert placed.width <= 740 + 2 * MARGIN
    assert len({r.x for r in rects.values()}) >= 4
    assert overlapping(rects) == []
    assert sorted(rects, key=lambda i: (rects[i].x, rects[i].y)) == [str(i) for i in range(60)]
    for (source, target), route in zip(arcs, placed.routes, strict=True):
        a, b = placed.rects[source], placed.rects[target]
        assert route[0] == pytest.approx((a.middle, a.bottom), abs=0.2)
        assert route[-1] == pytest.approx((b.middle, b.y), abs=0.2)
        assert crossed(route, {id: r for id, r in rects.items() if id not in (str(source), str(target))}) == []
    assert max(len(route) for route in placed.routes) == 6


@pytest.mark.parametrize("name", SAMPLES)
def test_no_frame_of_a_picture_is_over_another(name: str) -> None:
    picture = split(SAMPLES[name]())
    outer = [*picture["groups"], *(b for b in picture["boxes"] if "group" not in b)]
    assert overlapping({s["id"]: Rect(s["x"], s["y"], s["w"], s["h"]) for s in outer}) == []


def test_the_layers_of_a_model_have_columns_too() -> None:
    picture = view_model(SAMPLES["layers"]())["details"]["g0"]["parts"][0]["body"]["picture"]
    rects = {str(i): Rect(*box) for i, box in enumerate(picture["boxes"])}
    assert overlapping(rects) == []
    assert len({r.x for r in rects.values()}) >= 4
    assert picture["height"] < 20 * len(rects)  # a single column is 70 for each


def test_a_picture_of_thirty_breaks_is_no_tall_thin_column() -> None:
    picture = split(many(30))
    assert picture["height"] < 6 * picture["width"]
