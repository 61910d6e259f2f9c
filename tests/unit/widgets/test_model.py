"""The model: what is drawn, counted and told of each kind of report."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
import samples
from msgspec.structs import replace

from dynascope.compiler.report import Report
from dynascope.widgets.model import ViewModel, view_model


def kinds(report: Report) -> list[str]:
    return [a.kind for a in samples.split(report).arrows]


def drawn_ids(svg: str) -> set[str]:
    return set(re.findall('data-id="([^"]*)" data-kind="', svg))


def source_line(model: ViewModel, number: int) -> dict[str, Any]:
    return dict(next(line for line in model["sources"][0]["lines"] if line["line"] == number))


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_every_model_is_json_and_the_report_stays_as_it_was(name: str) -> None:
    report = samples.SAMPLES[name]()
    before = copy.deepcopy(report)
    model = view_model(report)
    assert json.loads(json.dumps(model, allow_nan=False)) == model
    assert report == before
    assert view_model(report) == model


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_what_can_be_selected_has_a_detail(name: str) -> None:
    model = view_model(samples.SAMPLES[name]())
    assert drawn_ids(model["split"]["svg"]) <= set(model["details"])
    assert {row["id"] for row in model["breaks"]} <= set(model["details"])
    assert {c["id"] for c in model["chips"] if "id" in c} <= set(model["details"])
    assert model["first"] in {*model["details"], ""}
    assert {fact[2] for d in model["details"].values() for fact in d["facts"]} - {""} <= set(model["details"])


def test_lines_know_their_graphs_breaks_and_states() -> None:
    model = view_model(samples.loop())
    assert source_line(model, 2)["graphs"] == [0]
    assert source_line(model, 5)["graphs"] == [1]
    assert source_line(model, 4)["marks"] == [{"id": "b0", "start": 4, "end": 10, "outcome": "resumed"}]
    assert source_line(model, 9)["state"] == "skipped"
    assert "for loop" in source_line(model, 9)["reason"]
    assert source_line(model, 11)["state"] == "break"
    assert "state" not in source_line(model, 1)
    assert source_line(model, 6)["state"] == "empty"
    report = samples.loop()
    skipped = next(f for f in report.frames if f.status == "skipped")
    report.frames.append(replace(skipped, id="f9", status="compiled", reason=None))  # another version
    assert "state" not in source_line(view_model(report), 9)


def test_an_unfinished_frame_says_so_wherever_it_is_shown() -> None:
    model = view_model(samples.unfinished())
    (group,) = samples.split(samples.unfinished()).groups
    assert (group.kind, group.note.split(" ")[0]) == ("unfinished", "unfinished")
    assert "does not hold the end" in " ".join(group.lines)
    assert [c["text"] for c in model["chips"]] == ["unfinished: f"]
    assert ["1", "unfinished"] in model["counts"]
    assert not any("compiled in" in words for _, words in model["counts"])
    assert source_line(model, 2)["state"] == "graph"
    assert (source_line(model, 3)["state"], source_line(model, 3)["id"]) == ("unfinished", "f0")
    detail = model["details"]["f0"]
    assert (detail["kind"], detail["title"]) == ("unfinished", "Unfinished frame")
    assert model["first"] == "f0"


def test_a_nested_break_is_drawn_once_where_it_stands() -> None:
    model = view_model(samples.nested())
    breaks = [b for b in samples.split(samples.nested()).boxes if b.kind == "break"]
    assert [(b.id, b.group) for b in breaks] == [("b0", "f3")]
    assert "4 hits" in breaks[0].note
    assert kinds(samples.nested()).count("continues") == 4
    assert model["breaks"][0]["hits"] == 4


def test_what_stops_or_skips_comes_before_what_resumes_and_allowed_breaks_come_last() -> None:
    report = samples.loop()
    assert [row["id"] for row in view_model(report)["breaks"]] == ["b1", "b0"]
    report.breaks[1].allowed = True
    assert [row["id"] for row in view_model(report)["breaks"]] == ["b0", "b1"]


def test_a_recompile_says_why() -> None:
    model = view_model(samples.recompiled())
    assert model["first"] == "f1"
    words = ["n was 2 when it was compiled, and is not now", "recompile 0/1 of f (0.21 s)"]
    assert model["details"]["f1"]["parts"][0]["body"]["text"] == words
    assert [box.title for box in samples.split(samples.recompiled()).boxes if box.kind == "version"] == ["v2"]


def test_an_error_is_the_first_thing_to_see() -> None:
    model = view_model(samples.refused())
    assert (model["chips"][0]["kind"], model["first"]) == ("error", "b0")
    assert "stopped by an error" in model["headline"]


def test_of_many_frames_the_view_has_all_and_a_picture_counts_those_that_it_lacks() -> None:
    model = view_model(samples.many())
    assert model["split"]["large"]
    assert {f.id for f in samples.many().frames} <= drawn_ids(model["split"]["svg"])
    assert len(model["breaks"]) == 100
    assert not view_model(samples.one_break())["split"]["large"]
    few = samples.split(samples.many(), 20)
    assert (len(few.groups), few.left_out) == (20, "81 more frames")
    assert {box.group for box in few.boxes} == {group.id for group in few.groups}
    assert {end for arrow in few.arrows for end in (arrow.source, arrow.target)} <= {
        shape.id for shape in (*few.groups, *few.boxes)
    }


def test_counts_are_the_headline_in_parts() -> None:
    model = view_model(samples.one_break())
    told = " · ".join(f"{n} {words}" if n else words for n, words in model["counts"])
    assert f"{model['name']}: {told}" == model["headline"]


def test_the_model_grows_linearly() -> None:
    sizes = [len(json.dumps(view_model(samples.many(n)))) for n in (100, 200, 400)]
    assert sizes[2] - sizes[1] < 2.3 * (sizes[1] - sizes[0])


def test_large_fx_graphs_are_folded_small_ones_are_drawn() -> None:
    large = view_model(samples.SAMPLES["big"]())["details"]["g0"]["parts"][0]["body"]
    assert len(large["nodes"]) == 10_000
    assert len(large["picture"]["boxes"]) == len(large["picture"]["folds"]) <= 60
    small = view_model(samples.one_break())["details"]["g0"]["parts"][0]["body"]
    assert len(small["picture"]["boxes"]) == len(small["nodes"]) == 4
    assert small["nodes"][1]["value"] == "f32[8, 16] cpu"


def test_a_large_fx_graph_folds_by_module() -> None:
    picture = view_model(samples.layers())["details"]["g0"]["parts"][0]["body"]["picture"]
    folds = picture["folds"]
    assert [fold["name"] for fold in folds[:3]] == ["inputs", "model.layers.0", "model.layers.1"]
    assert {fold["count"] for fold in folds[1:-1]} == {12}
    assert picture["joined"] == [[i, i + 1] for i in range(len(folds) - 1)]


def test_regions_are_named_where_their_breaks_stand() -> None:
    shapes = {s.id: s for s in (*samples.split(samples.regions()).boxes, *samples.split(samples.regions()).groups)}
    assert (shapes["b0"].region, shapes["b0"].lines) == ("allow", ["In[3]:7: breaks allowed"])
    assert (shapes["b2"].region, shapes["b2"].lines) == ("error", ["In[3]:10: breaks are errors"])
    assert shapes["f3"].region == "error"
    assert not shapes["f2"].region  # the run's own flag is off, too
    assert not shapes["f0"].region


def test_an_error_that_the_users_code_caught_is_said_to_be_caught() -> None:
    chip = view_model(samples.regions())["chips"][0]
    assert (chip["text"], chip["kind"]) == ("did not end the run: Unsupported: Call to print", "note")
    assert "stopped by an error" not in view_model(samples.regions())["headline"]


def test_cached_code_is_not_said_to_have_no_breaks() -> None:
    model = view_model(samples.cached())
    assert "graph breaks unknown" in model["headline"]
    assert ["", "graph breaks unknown"] in model["counts"]
    assert [fact[:2] for fact in model["details"]["g0"]["facts"]] == [["operations", "unknown"], ["frame", "f (0/0)"]]
    assert model["first"] == "f0"
    assert "skipped" not in model["headline"], "nor is it known whether it leads to a skipped frame"
    report = samples.one_break()
    report.summary.cached = 1
    assert "at least 1 graph break · 1 resume function · 1 cached" in view_model(report)["headline"]


def test_a_compiled_frame_with_a_reason_says_what_is_not_compiled() -> None:
    report = samples.one_break()
    report.frames[0].reason = "the rest of the function runs eagerly"
    model = view_model(report)
    group = next(g for g in samples.split(report).groups if g.id == "f0")
    assert group.lines == ["the rest of the function runs eagerly"]
    about = next(p for p in model["details"]["f0"]["parts"] if p["key"] == "about")
    assert about["body"]["text"] == ["Not all of it is compiled: the rest of the function runs eagerly"]


def test_a_failed_resume_function_is_not_blamed_on_the_break_that_it_follows() -> None:
    facts = view_model(samples.regions())["details"]["f3"]["facts"]
    assert ["after break", "✂ torch._dynamo.graph_break()", "b1"] in facts
    assert ["at break", "✂ print(x)", "b2"] in facts


def test_links_lead_to_web_pages_only() -> None:
    assert view_model(samples.one_break())["details"]["b0"]["links"][0][0] == "GB0025"
    assert "links" not in view_model(samples.hostile())["details"]["b0"]
    mixed = samples.one_break()
    b = mixed.breaks[0]
    b.gb_ids, b.urls = ["GB0001", *b.gb_ids], ["javascript:gb0001", *b.urls, "https://other.page"]
    assert [name for name, _ in view_model(mixed)["details"]["b0"]["links"]] == ["GB0025", "page"]


def test_partial_reports_with_missing_parts_are_drawn() -> None:
    """While it grows, a report names frames, graphs and breaks that are not there yet."""
    report = samples.nested()
    for gone in range(len(report.frames)):
        part = copy.deepcopy(report)
        part.frames = part.frames[gone:]
        part.graphs = part.graphs[: len(part.graphs) - gone]
        view_model(part)
    report.frames, report.graphs = [], []
    assert [b.id for b in samples.split(report).boxes] == ["b0"]
