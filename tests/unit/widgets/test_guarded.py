"""A part that cannot be drawn: the rest is drawn, a line says what is missing, and in tests the fault is raised."""

from __future__ import annotations

import json
from collections.abc import Callable
from unittest.mock import Mock

import pytest
from samples import hostile, layers, loop, many, model, one_break, recompiled

from dynascope.compiler.report import GraphRun, Guard, GuardSite, Report
from dynascope.widgets import words
from dynascope.widgets.model import view_model
from dynascope.widgets.render.static_output import to_mimebundle
from dynascope.widgets.render.text import to_text

HOSTILE = "<script>alert(1)</script>\x1b[31m\nsecond line"
FAIL = Mock(side_effect=RuntimeError(HOSTILE))
#: what fails, by the module that calls it
FAULTS = (
    "model.Places", "features.summary.headline", "model.split_picture", "model.details", "model.source_view",
    "model.timeline", "model.break_rows", "features.summary.first_id", "features.summary.chips", "model.fx_picture",
    "features.graphs._nodes_part", "features.graphs.run_part", "features.breaks.break_target", "features.breaks.advice",
    "features.breaks.flag_words", "features.frames.ops_text", "features.frames.frame_words",
    "features.source_view.bands", "features.run_time.timeline",
    "drawing.fx_picture.layout", "drawing.fx_picture.fx_folds", "drawing.split_graph.layout",
    "render.static_output._table", "render.static_output.svg", "render.static_output.split_picture",
    "render.static_output.graphs_alone", "render.static_output.static_body", "render.page.static_body",
    "render.page.json", "render.picture.svg", "render.picture._digraph", "render.text.Places", "render.text.headline_lines",
    "render.text.break_lines", "render.text.run_time_lines", "render.text.graph_lines",
)  # fmt: skip


def reports() -> list[Report]:
    """Between them they have every part."""
    measured = one_break()
    measured.graphs[0].run = GraphRun(device="cpu", device_name="CPU", backend="inductor", calls=3, eager_seconds=0.1)
    return [measured, loop(), many(20), layers(30)]


def forms(report: Report) -> dict[str, str]:
    """All that a report can become, as text."""
    view = report.view()
    try:
        shown = json.dumps(view.content)
        shown += str(view)
    finally:
        view.close()
    text = to_text(report, colour=False, width=100)
    page, dot = report.to_html(), str(report.to_graphviz())
    return {"page": page, "svg": report.to_svg(), "dot": dot, "text": text, "view": shown, **to_mimebundle(report)}


def hostile_guards() -> Report:
    """Guards, a recompile, an explanation and a compile id that steer a terminal."""
    report = recompiled()
    report.recompiles[0].failed_guards[0].source = "\x1b]0;x\x07"
    report.frames[0].guard_sites = [GuardSite(guards=[Guard(kind="EQUALS_MATCH", text="\x1b[31m <script>", source="n")])]
    report.frames[0].compile_id = "0\x01/\u202e0"
    report.breaks = one_break().breaks
    report.breaks[0].explanation = "\x1b[2J\x1b]0;title\x07gone"
    return report


def all_forms() -> list[tuple[str, str]]:
    return [form for report in reports() for form in forms(report).items()]


@pytest.fixture
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(words.VARIABLE)


def break_it(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr(f"dynascope.widgets.{fault}", FAIL if fault != "render.page.json" else None)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_rest_is_drawn_and_a_line_says_what_is_missing(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In tests the fault is raised."""
    break_it(monkeypatch, fault)
    with pytest.raises(RuntimeError if fault != "render.page.json" else AttributeError):
        all_forms()
    monkeypatch.delenv(words.VARIABLE)
    made = all_forms()
    assert any("could not be drawn (" in text for _, text in made)
    assert not any("\x1b" in text for _, text in made)
    assert not any("<script>alert" in text for kind, text in made if kind in ("page", "svg", "text/html"))


@pytest.mark.parametrize("make", [hostile, hostile_guards])
def test_hostile_text_is_harmless(make: Callable[[], Report]) -> None:
    for kind, text in forms(make()).items():
        shown = text.encode().decode("unicode_escape") if kind == "view" else text
        assert not set("\x00\x07\x1b\u202e") & set(shown), kind
        if kind in ("page", "svg", "text/html"):
            assert "<img src=x" not in shown
            assert shown.count("</script>") == (2 if kind == "page" else 0)


@pytest.mark.parametrize("fault", ["split_picture", "source_view", "break_rows"])
def test_one_part_takes_no_other_with_it(fault: str, monkeypatch: pytest.MonkeyPatch, as_users_have_it: None) -> None:
    monkeypatch.setattr(f"dynascope.widgets.model.{fault}", FAIL)
    model = view_model(one_break())
    parts = {"split_picture": model["split"]["svg"], "source_view": model["sources"], "break_rows": model["breaks"]}
    assert [part for part, found in parts.items() if not found] == [fault]
    assert model["details"]["b0"]["facts"]
    assert [n for n in model["notes"] if n.endswith("␛[31m second line)")] == model["notes"][:1]


@pytest.mark.parametrize("fault", ["fix_lines", "run_time_lines", "note_lines", "overview"])
def test_no_part_of_a_large_text_takes_the_rest_with_it(
    fault: str, monkeypatch: pytest.MonkeyPatch, as_users_have_it: None
) -> None:
    report = model(breaks=12)
    monkeypatch.setattr(f"dynascope.widgets.render.text.{fault}", FAIL)
    text = to_text(report, width=110)
    assert text.startswith(report.headline())
    assert "could not be drawn (RuntimeError" in text
    assert ("Causes: " if fault != "overview" else "✂ graph break at model.py:8") in text


def test_where_nothing_can_be_drawn_the_view_says_so(monkeypatch: pytest.MonkeyPatch, as_users_have_it: None) -> None:
    monkeypatch.setattr("dynascope.widgets.model.Places", FAIL)
    model = view_model(one_break())
    assert model["headline"].startswith("This report could not be drawn (RuntimeError: ")
    assert model["first"] in model["details"]


def test_an_interrupt_is_not_held_back(monkeypatch: pytest.MonkeyPatch, as_users_have_it: None) -> None:
    monkeypatch.setattr("dynascope.widgets.model.source_view", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        view_model(one_break())
