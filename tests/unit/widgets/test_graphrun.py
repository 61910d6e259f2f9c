"""A graph that was run on its own, in every view."""

from __future__ import annotations

import json
from typing import Any

import pytest
from samples import alone, one_break

from dynascope.compiler.report import Graph, GraphRun, OpTime, Report
from dynascope.widgets.features.graphs import graph_run_words, heat
from dynascope.widgets.model import view_model
from dynascope.widgets.render.static_output import static_html
from dynascope.widgets.render.text import to_text


def run(**facts: Any) -> GraphRun:
    known: dict[str, Any] = {"device": "cpu", "device_name": "CPU", "backend": "inductor", "calls": 3, "eager_seconds": 2e-3}
    return GraphRun(**(known | facts))


def part(report: Any, graph: str, key: str) -> Any:
    return next(p["body"] for p in view_model(report)["details"][graph]["parts"] if p["key"] == key)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"compiled_seconds": 1e-3, "speed_up": 2.0}, "inductor 1.0 ms a call, 2.0 times as fast"),
        ({"compiled_seconds": 50e-6, "speed_up": 40.0}, "inductor 50 µs a call, 40 times as fast"),
        ({"compiled_seconds": 4e-3, "speed_up": 0.5}, "inductor 4.0 ms a call, 2.0 times as slow"),
        (
            {"compiled_seconds": 1e-3, "speed_up": 2.0, "eager_spread": [1e-3, 4e-3], "compiled_spread": [0.5e-3, 2e-3]},
            "inductor 1.0 ms a call, no clear difference",
        ),
        ({}, "a call; inductor could not run it"),
    ],
)
def test_the_verdict_in_words(facts: dict[str, Any], words: str) -> None:
    told = graph_run_words(run(**facts))
    assert told.startswith("On CPU: eager 2.0 ms")
    assert told.endswith(words)


def test_heat_is_in_per_cent_of_the_slowest_and_says_the_time() -> None:
    told = heat(run(ops=[OpTime(node="a", seconds=1e-6), OpTime(node="b", seconds=199e-6)]))
    assert told == {"a": (1, "1 µs · < 1%"), "b": (100, "199 µs · 100%")}
    assert heat(None) == heat(run()) == {}


def test_the_drawing_and_the_list_bear_the_times() -> None:
    body = part(alone(), "g0", "graph")
    plain = part(one_break(), "g0", "graph")
    assert [n.get("time") for n in body["nodes"]] == [None, "4 µs · 33%", "8 µs · 67%", None]
    assert [n.get("heat") for n in body["nodes"]] == [None, 50, 100, None]
    assert all("time" not in n and "heat" not in n for n in plain["nodes"])
    assert [box[3] for box in body["picture"]["boxes"]] == [28, 40, 40, 28]
    assert "8 µs · 67%" in body["nodes"][2]["full"]


def test_the_part_before_and_after() -> None:
    before = part(one_break(), "g1", "run")
    assert not before["ran"]
    assert before["code"] == 'dynascope.last().run_graph("g1")'
    after = part(alone(), "g0", "run")
    assert after["ran"]
    assert after["text"][1] == "Which branch it takes depends on the made-up data."


@pytest.mark.parametrize("way", ["loaded", "trace"])
def test_of_a_report_from_a_file_the_part_says_that_its_graphs_are_not_run(way: str) -> None:
    report = alone()
    if way == "loaded":
        report = Report.from_dict(json.loads(json.dumps(report.to_dict())))
    else:
        report.origin = "trace"
    sentence = "Graphs can be run only where they were recorded, and this report was read from a file."
    report.graphs[1].run = None
    before, after = part(report, "g1", "run"), part(report, "g0", "run")
    assert (before["text"], before["code"], before["ran"]) == ([sentence], "", False)
    assert (after["ran"], after["code"], after["text"][-1]) == (True, "", sentence)


def test_the_name_that_the_report_is_bound_to_stands_in_the_python_line() -> None:
    report = one_break()
    report.settings = {**report.settings, "output": "mine"}
    assert part(report, "g0", "run")["code"] == 'mine.run_graph("g0")'


def test_a_graph_of_which_nothing_is_known_has_no_such_part() -> None:
    report = one_break()
    report.graphs[0] = Graph(id="g0", frame="f0", ops=None)
    assert "run" not in [p["key"] for p in view_model(report)["details"]["g0"]["parts"]]


def test_text_and_the_static_twin_tell_it_too() -> None:
    words = "graph 0 alone. On CPU, 2 threads: eager 523 µs, inductor 93 µs a call, 5.6 times as fast"
    assert words in to_text(alone(), colour=False, width=110)
    assert words in static_html(alone())
    assert "alone" not in to_text(one_break(), colour=False) + static_html(one_break())
