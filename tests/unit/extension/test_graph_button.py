"""Run this graph, from the view: queued as Run again is, and its figures in the report, the view and the saved output."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch

CELL = ["def f(x):", "    x = x + 1", "    torch._dynamo.graph_break()", "    return x @ x", "f(torch.ones(4, 4))"]


class Loop(list[Any]):
    """A kernel's event loop: what is queued waits for the end of the cell."""

    def add_callback(self, callback: Any, *args: Any) -> None:
        self.append((callback, args))

    def run(self) -> None:
        while self:
            callback, args = self.pop(0)
            callback(*args)


@pytest.fixture
def clicked(shell: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A view of a run in a kernel; `clicked("g0")` clicks and lets the loop run; `.view`, `.loop`, `.updates`."""
    from dynascope.runs import rerun
    from dynascope.runs.display import Display

    loop, made, updates = Loop(), [], []
    shell.ip.kernel = types.SimpleNamespace(io_loop=loop)
    shell.ip.get_parent = dict
    attach, finish = rerun.attach, Display.finish
    monkeypatch.setattr(rerun, "attach", lambda run, display: (attach(run, display), made.append(display.view)))
    monkeypatch.setattr(Display, "finish", lambda self, report: (finish(self, report), updates.append(report)))
    shell.ip.run_line_magic("config", "DynascopeMagics.view = 'widget'")
    shell("%%compile --backend eager -o report", *CELL)

    def click(graph: str, run: bool = True) -> None:
        for heard in made[-1]._callbacks:
            heard({"kind": "run_graph", "graph": graph})
        if run:
            loop.run()

    click.view, click.loop, click.updates = made[-1], loop, updates  # type: ignore[attr-defined]
    yield click
    del shell.ip.kernel, shell.ip.get_parent


def run_part(view: Any, graph: str) -> Any:
    return next(p["body"] for p in view.content["details"][graph]["parts"] if p["key"] == "run")


def test_the_figures_come_into_report_view_and_output(shell: Any, clicked: Any) -> None:
    import dynascope

    report, before = dynascope.last(), shell.ip.execution_count
    state, names = torch.random.get_rng_state(), set(shell.ns)
    assert not run_part(clicked.view, "g1")["ran"]
    clicked("g1")
    assert dynascope.last() is report is shell.ns["report"]
    run = report.graph("g1").run
    assert run is not None
    assert run.backend == "inductor"
    assert report.graph("g0").run is None
    assert run_part(clicked.view, "g1")["ran"]
    assert clicked.updates[-1] is report
    assert clicked.view.status["text"] == ""
    assert not clicked.view.busy
    assert clicked.view.selected == "b0"
    assert (shell.ip.execution_count, set(shell.ns)) == (before, names)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_click_only_queues_and_can_be_taken_back(shell: Any, clicked: Any) -> None:
    import dynascope

    clicked("g0", run=False)
    assert clicked.view.busy
    assert "queued" in clicked.view.status["text"]
    clicked("g1", run=False)
    assert "already queued" in clicked.view.status["text"]
    assert len(clicked.loop) == 1
    for heard in clicked.view._callbacks:
        heard({"kind": "stop"})
    clicked.loop.run()
    assert [g.run for g in dynascope.last().graphs] == [None, None]
    assert not clicked.view.busy


def test_what_cannot_be_is_said(clicked: Any) -> None:
    clicked("g9")
    assert "there is no graph g9" in clicked.view.status["text"]
    assert clicked.view.status["kind"] == "error"
    assert not clicked.view.busy


def test_an_interrupt_ends_it_and_leaves_the_view_usable(clicked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from dynascope.compiler.report import Report

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Report, "run_graph", interrupted)
    clicked("g0")
    assert clicked.view.status["text"] == "interrupted"
    assert not clicked.view.busy
    monkeypatch.undo()
