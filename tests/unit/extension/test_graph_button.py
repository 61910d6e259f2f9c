"""Run this graph, from the view: queued as Run again is, and its figures in the report, the view and the saved output."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
import torch
from clicks import Clicks

import dynascope
from dynascope.compiler.report import Report

CELL = ["def f(x):", "    x = x + 1", "    torch._dynamo.graph_break()", "    return x @ x", "f(torch.ones(4, 4))"]


@pytest.fixture(autouse=True)
def a_run(shell: Any, kernel: Clicks) -> None:
    shell("%%compile --backend eager -o report", *CELL)


def run_part(view: Any, graph: str) -> Any:
    return next(p["body"] for p in view.content["details"][graph]["parts"] if p["key"] == "run")


def test_the_figures_come_into_report_view_and_output(shell: Any, kernel: Clicks) -> None:
    report, before = dynascope.last(), shell.ip.execution_count
    state, names = torch.random.get_rng_state(), set(shell.ns)
    assert not run_part(kernel.view(), "g1")["ran"]
    view = kernel.press("run_graph", graph="g1")
    kernel.loop.run()
    assert dynascope.last() is report is shell.ns["report"]
    assert report.graph("g1").run.backend == "inductor"
    assert report.graph("g0").run is None
    assert run_part(view, "g1")["ran"]
    assert "graph 1 alone. On CPU" in kernel.updates[-1]["text/plain"]
    assert (view.status["text"], view.busy, view.selected) == ("", False, "b0")
    assert (shell.ip.execution_count, set(shell.ns)) == (before, names)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_click_only_queues_and_can_be_taken_back(kernel: Clicks) -> None:
    view = kernel.press("run_graph", graph="g0")
    assert view.busy
    assert "queued" in view.status["text"]
    kernel.press("run_graph", graph="g1")
    assert "already queued" in view.status["text"]
    assert len(kernel.loop.queued) == 1
    kernel.press("stop")
    kernel.loop.run()
    assert [g.run for g in dynascope.last().graphs] == [None, None]
    assert not view.busy


def test_what_cannot_be_is_said(kernel: Clicks) -> None:
    view = kernel.press("run_graph", graph="g9")
    kernel.loop.run()
    assert "g9 could not be run on its own: KeyError" in view.status["text"]
    assert (view.status["kind"], view.busy) == ("error", False)


def test_an_interrupt_ends_it_and_leaves_the_view_usable(kernel: Clicks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Report, "run_graph", Mock(side_effect=KeyboardInterrupt))
    view = kernel.press("run_graph", graph="g0")
    kernel.loop.run()
    assert (view.status["text"], view.busy) == ("interrupted", False)
