"""Tall drawings in columns: the same pieces, in order, none over another, joined by the same arrows."""

from __future__ import annotations

import itertools

import pytest
from samples import SAMPLES, many, split

from dynascope.widgets.layout.geometry import Rect
from dynascope.widgets.model import view_model


def overlapping(rects: dict[str, Rect]) -> list[tuple[str, str]]:
    def meet(a: Rect, b: Rect) -> bool:
        return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height

    return [(i, j) for (i, a), (j, b) in itertools.combinations(rects.items(), 2) if meet(a, b)]


@pytest.mark.parametrize("name", SAMPLES)
def test_no_frame_of_a_picture_is_over_another(name: str) -> None:
    picture = split(SAMPLES[name]())
    assert overlapping({s.id: s.at for s in [*picture.groups, *(b for b in picture.boxes if not b.group)]}) == []


def test_the_layers_of_a_model_have_columns_too() -> None:
    picture = view_model(SAMPLES["layers"]())["details"]["g0"]["parts"][0]["body"]["picture"]
    rects = {str(i): Rect(*box) for i, box in enumerate(picture["boxes"])}
    assert overlapping(rects) == []
    assert len({r.x for r in rects.values()}) >= 4
    assert picture["height"] < 20 * len(rects)  # a single column is 70 for each


def test_a_picture_of_thirty_breaks_is_no_tall_thin_column() -> None:
    picture = split(many(30))
    assert picture.height < 6 * picture.width
