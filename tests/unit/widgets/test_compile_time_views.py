"""The compile time in the views: in order, linked to frames; as text; repeated blocks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dynascope
from dynascope.compiler.report import CompilePhase, CompileTime, Graph, InputRun, RepeatedBlock, Report
from dynascope.widgets.features.compile_time import repeat_words
from dynascope.widgets.features.places import Places
from dynascope.widgets.model import view_model

LOG = Path(__file__).parents[2] / "traces" / "compile_time-2.13.0.log.gz"


@pytest.fixture(scope="module")
def report() -> Report:
    return dynascope.load(LOG)


def test_the_rows_lead_to_frames(report: Report) -> None:
    line = view_model(report)["compile_time"]
    assert re.fullmatch(r"Compile time · 77 s · C\+\+ and Triton 74%, code generation 16%, graph passes 3%", line["title"])
    assert len(line["rows"]) == 10
    assert line["rows"][0] == {
        "name": "compile_file", "kind": "compiler", "what": "C++ and Triton", "own": "57 s", "total": "57 s", "count": 13,
        "where": "forward", "id": "f0",
    }  # fmt: skip


def test_threads_at_work_at_the_same_time_do_not_make_the_compile_longer() -> None:
    phases = [
        CompilePhase(name="dynamo", kind="dynamo", count=1, seconds=4.0, self_seconds=4.0),
        CompilePhase(name="compile_file", kind="compiler", count=1, seconds=2.0, self_seconds=2.0),
    ]
    report = Report(compile_time=CompileTime(seconds=6.0, elapsed=5.0, phases=phases))
    assert view_model(report)["compile_time"]["title"] == "Compile time · 5.00 s · Dynamo 67%, C++ and Triton 33%"
    report.inputs = [InputRun(arguments="float32[2]")]
    assert "\ncompile time: 5.00 s with --inputs\n" in report.details(), "the headline's is without them"


def test_in_the_text_the_seconds_stand_in_the_details(report: Report) -> None:
    assert "compile time:" not in str(report)
    text = " ".join(report.details().split())
    assert "compile time: 77 s C++ and Triton 74%" in text
    assert "57 s compile_file 13×, C++ and Triton" in text


def test_what_is_unknown_is_said() -> None:
    assert view_model(Report())["compile_time"] is None
    assert "compile time" not in Report().details()
    time = CompileTime(seconds=1.0, unfinished=["dynamo", "gc"])
    text = " ".join(Report(compile_time=time).details().split())
    assert "2 phases have no recorded end; their time is not counted: dynamo, gc" in text


def test_a_repeated_block_is_said_with_what_may_compile_it_once() -> None:
    block = RepeatedBlock(
        count=24, ops=4, share=0.99, graphs=["g0"], modules=["layers.0", "layers.23"], functions=["Block.forward"]
    )
    text = " ".join(Report(compile_time=CompileTime(seconds=1.0, repeats=[block])).details().split())
    assert "(layers.0 … layers.23) is in graph ? 24 times: 99% of the graph. torch.compiler.nested_compile_region is" in text
    block.graphs, block.modules = ["g0", "g1"], []
    places = Places(Report(graphs=[Graph(id=id, frame="f0", ops=4) for id in block.graphs]))
    words = "Graphs 0, 1 have equal operations: 4 operations (Block.forward), captured 24 times."
    assert repeat_words(block, places) == words, "their inputs may differ"
