"""Tall drawings in columns: the same pieces, in order, none over another, joined by the same arrows."""

from __future__ import annotations

import itertools

import pytest
from samples import SAMPLES, many

from dynascope.widgets.drawing.split_graph import ROOM
from dynascope.widgets.layout.layered import Rect
from dynascope.widgets.layout.placement import Box, Edge, EdgeKind, Group, Placement, layout
from dynascope.widgets.layout.wrap import wrapped
from dynascope.widgets.model.build import view_model

HIGH, WIDE = 120.0, 240.0


def chain(count: int, *more: tuple[str, str, EdgeKind], beside: tuple[int, ...] = ()) -> tuple[Placement, list[Edge]]:
    """Groups one below the other, each with a box in it; `beside`: those with a neighbour."""
    groups = [Group(f"f{i}", HIGH - 60, WIDE) for i in range(count)] + [Group(f"h{i}", 60, WIDE) for i in beside]
    boxes = [Box(f"b{i}", WIDE - 40, 40, f"f{i}") for i in range(count)]
    edges = [Edge(f"b{i}", f"f{i + 1}") for i in range(count - 1)] + [Edge(f"f{i}", f"h{i}", "side") for i in beside]
    edges += [Edge(a, b, kind) for a, b, kind in more]
    return layout(boxes, edges, groups), edges


def overlapping(rects: dict[str, Rect]) -> list[tuple[str, str]]:
    def meet(a: Rect, b: Rect) -> bool:
        return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height

    return [(i, j) for (i, a), (j, b) in itertools.combinations(rects.items(), 2) if meet(a, b)]


def test_a_long_chain_stands_in_columns_as_high_as_each_other() -> None:
    placed, edges = chain(20)
    made = wrapped(placed, edges, ROOM)
    assert made.width <= ROOM + 30
    assert made.height < 0.6 * placed.height
    assert len({r.x for r in made.groups.values()}) == 2
    assert overlapping(made.groups) == []
    order = sorted(made.groups, key=lambda i: (made.groups[i].x, made.groups[i].y))
    assert order == [f"f{i}" for i in range(20)]
    for i in range(20):
        group, box = made.groups[f"f{i}"], made.boxes[f"b{i}"]
        assert (group.width, group.height) == (placed.groups[f"f{i}"].width, placed.groups[f"f{i}"].height)
        assert (box.x - group.x, box.y - group.y) == pytest.approx(
            (placed.boxes[f"b{i}"].x - placed.groups[f"f{i}"].x, placed.boxes[f"b{i}"].y - placed.groups[f"f{i}"].y)
        )


def test_the_arrow_to_the_next_column_begins_and_ends_where_it_did_and_crosses_nothing() -> None:
    placed, edges = chain(20)
    made = wrapped(placed, edges, ROOM)
    for edge, route in zip(edges, made.edges, strict=True):
        source, target = made.boxes[edge.source], made.groups[edge.target]
        assert route[0] == pytest.approx((source.x + source.width / 2, source.y + source.height))
        assert route[-1] == pytest.approx((target.x + target.width / 2, target.y))
        for (ax, ay), (bx, by) in itertools.pairwise(route):
            assert ax == pytest.approx(bx) or ay == pytest.approx(by)
            line = Rect(min(ax, bx), min(ay, by), abs(ax - bx), abs(ay - by))
            others = {i: r for i, r in made.groups.items() if i not in (f"f{edge.source[1:]}", edge.target)}
            assert not [pair for pair in overlapping({"line": line, **others}) if "line" in pair]
    assert max(len(route) for route in made.edges) == 6


def test_what_is_low_or_cannot_be_cut_stays_as_it_is() -> None:
    low, edges = chain(3)
    assert wrapped(low, edges, ROOM) is low
    tied, edges = chain(12, ("f0", "b11", "free"))  # an arrow past every gap
    assert wrapped(tied, edges, ROOM) is tied


def test_what_is_too_wide_for_a_column_has_the_width_below_the_columns_before_it() -> None:
    placed, edges = chain(18, beside=(10,))
    made = wrapped(placed, edges, ROOM)
    assert overlapping(made.groups) == []
    above = max(made.groups[f"f{i}"].y + made.groups[f"f{i}"].height for i in range(10))
    below = min(made.groups[f"f{i}"].y for i in range(11, 18))
    for id in ("f10", "h10"):
        assert above < made.groups[id].y
        assert made.groups[id].y + made.groups[id].height < below
    assert len({made.groups[f"f{i}"].x for i in range(10)}) == 2


@pytest.mark.parametrize("name", SAMPLES)
def test_no_group_of_a_picture_lies_over_another(name: str) -> None:
    picture = view_model(SAMPLES[name]())["split"]
    outer = [*picture["groups"], *(b for b in picture["boxes"] if "group" not in b)]
    assert overlapping({s["id"]: Rect(s["x"], s["y"], s["w"], s["h"]) for s in outer}) == []


def test_the_layers_of_a_model_stand_in_columns_too() -> None:
    picture = view_model(SAMPLES["layers"]())["details"]["g0"]["parts"][0]["body"]["picture"]
    rects = {str(i): Rect(*box) for i, box in enumerate(picture["boxes"])}
    assert overlapping(rects) == []
    assert len({r.x for r in rects.values()}) >= 4
    assert picture["height"] < 20 * len(rects)  # a single column is 70 for each


def test_a_picture_of_thirty_breaks_is_no_tall_thin_column() -> None:
    picture = view_model(many(30))["split"]
    assert picture["height"] < 6 * picture["width"]
