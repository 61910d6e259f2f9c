"""The time line of the model: to scale, selectable, short enough."""

from __future__ import annotations

import pytest
from observed import profiled

from dynascope.compiler.lab.slices import profile_of
from dynascope.compiler.report import Report
from dynascope.widgets.model import view_model
from dynascope.widgets.render.text import to_text


@pytest.fixture
def report() -> Report:
    events, found = profiled("inductor_cpu")
    found.profile = profile_of(events, found)
    return found


def test_segments_are_to_scale_and_lead_to_their_nodes(report: Report) -> None:
    model = view_model(report)
    time = model["time"]
    assert sum(s["w"] for s in time["segments"]) == pytest.approx(1, abs=0.001)
    assert [s["id"] for s in time["segments"] if s["kind"] == "graph"] == ["g0", "g1", "g2", "g3", "g4"]
    assert [s["tone"] for s in time["segments"] if s["kind"] == "graph"] == [0, 1, 2, 3, 4]
    assert all(s["id"] in model["details"] for s in time["segments"] if s["id"])
    assert "unaccounted" in [s["name"] for s in time["shares"]]


def test_the_dearest_break_stands_first_with_its_cost(report: Report) -> None:
    model = view_model(report)
    assert "sleep" in model["breaks"][0]["code"]
    assert model["breaks"][0]["cost"].startswith("costs ")
    detail = model["details"][model["breaks"][0]["id"]]
    assert {f[0]: f[1] for f in detail["facts"]}["run time"] == model["breaks"][0]["cost"]
    assert f"    {detail['copy']} costs " in to_text(report, colour=False, width=100).partition("run time: ")[2]


def test_without_a_profile_there_is_no_time_line() -> None:
    assert view_model(Report())["time"] is None
    assert "run time" not in to_text(Report(), colour=False, width=100)
