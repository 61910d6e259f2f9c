"""Profiling a call leaves no trace, and says what it could not undo."""

from __future__ import annotations

import io
import logging
import re
import sys
import time
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from observed import Terminal

import dynascope
from dynascope.compiler.lab import check, inputs
from dynascope.compiler.lab import profile as profiles
from dynascope.compiler.report import BreakCost, Graph, Profile, Report, Summary
from dynascope.compiler.report.schema import Backward
from dynascope.widgets.features.run_time import verdict_words


def test_measuring_compiles_nothing_of_its_own() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu"):  # a graph of its own that only enters and leaves it
            torch._dynamo.graph_break()
            return x + 1

    report = dynascope.explain(f, backend="eager", profile=2)(torch.ones(2))
    assert not [note for note in report.notes if "compiled while measuring" in note]


def test_what_no_one_can_undo_is_said_before_the_call_which_is_repeated_few_times(tmp_path: Any) -> None:
    path = tmp_path / "log"

    def writes(x: torch.Tensor) -> torch.Tensor:
        with open(path, "a") as file:
            file.write("x")
        return x + 1

    with pytest.raises(UserWarning, match="dynascope: the call may use `open`"):  # warnings are errors here
        dynascope.explain(writes, backend="eager", profile=2)(torch.ones(2))
    assert not path.exists()
    with pytest.warns(UserWarning, match="dynascope: the call may use `open`"):
        report = dynascope.explain(writes, backend="eager", profile=2)(torch.ones(2))
    assert report.profile is not None, report.notes
    assert len(path.read_text()) <= 20
    for flag in ("second_call", "fix"):
        with pytest.warns(UserWarning, match="dynascope: the call may use `open`"):
            report = dynascope.explain(writes, backend="eager", **{flag: True})(torch.ones(2))
        assert any(note.startswith("the call may use `open`") for note in report.notes)


@pytest.mark.parametrize("more", [{}, {"second_call": True}, {"fix": True}, {"error_on_graph_break": True}])
def test_the_warning_names_the_line_of_the_call(more: dict[str, Any]) -> None:
    def writes(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.shape else open("never")  # type: ignore[return-value]

    line = sys._getframe().f_lineno + 2
    with pytest.warns(UserWarning, match="`open`") as warned:
        dynascope.explain(writes, backend="eager", check=True, **more)(torch.ones(2))
    assert [(w.filename, w.lineno) for w in warned if "`open`" in str(w.message)] == [(__file__, line)]


# inside: these three must be reached where a note can be made of them
def test_a_fault_in_reading_the_profile_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    fails = Mock(side_effect=ValueError("no call in the profiler's trace"))
    monkeypatch.setattr(profiles, "profile_of", fails)
    monkeypatch.setattr(check, "words", fails)
    monkeypatch.setattr(inputs, "_complete", fails)
    report = dynascope.explain(lambda x: x + 1, backend="eager", profile=2, check=True, inputs=[torch.ones(2)])(torch.ones(2))
    assert (report.profile, report.check, report.inputs) == (None, None, None)
    for what in ("profile: not measured", "the check is not shown", "inputs: not shown"):
        assert f"{what}: ValueError: no call in the profiler's trace" in report.notes


def test_a_terminal_says_how_far_measuring_is_and_an_interrupt_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        time.sleep(0.02)
        return x + 1

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(profiles, "_TELL_EVERY", 0.01)
    report = dynascope.explain(slow, backend="eager", profile=3)(torch.ones(2))
    lines = terminal.getvalue().split("\r\x1b[K")
    found = [line.partition("] ")[2] for line in lines if re.match(r"\[\d+ s, Ctrl-C stops this\] ", line)]
    assert found[0] == "measuring: repeating the call until nothing compiles"
    assert found[1].startswith("measuring: compiled calls, step 1 of 9")
    assert found[-2].startswith("measuring: eager calls, step 9 of 9")
    assert found[-1] == "tracing the calls again"  # the breaks are expensive
    assert any(", call 2 of " in line for line in lines)
    assert lines[-1] == ""
    assert report.profile is not None

    monkeypatch.setattr(profiles, "plain_events", Mock(side_effect=KeyboardInterrupt))
    report = dynascope.explain(slow, backend="eager", profile=3)(torch.ones(2))
    assert report.profile is None
    assert profiles.INTERRUPTED in report.notes


def test_a_profiler_that_is_running_goes_on() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as running:
        report = dynascope.explain(lambda x: x + 1, backend="eager", profile=2)(torch.ones(2))
        torch.ones(2) * 3
    assert report.profile is None
    assert [note for note in report.notes if "another profiler is running" in note]
    assert "aten::mul" in [e.name for e in running.events() or ()]


# inside: times are made up
def profiled(measured: profiles.Measurement, backward: Backward = "none") -> Profile:
    report = Report(graphs=[Graph(id="g0", frame="f0", ops=0, backward=backward)], summary=Summary(compile_seconds=3.0))
    profiles.annotate_profile(report, measured)
    return report.profile


def test_calls_that_take_very_different_times_make_rough_figures() -> None:
    call = profiles.Event(profiles.CALL, "cpu", 0, 1_000_000)
    measured = profiles.Measurement(events=[call], compiled=[1e-3, 1e-3, 1e-3, 9e-3, 9e-3], eager=[1e-3] * 5)
    found = profiled(measured)
    rough = "the calls took very different times ({})"
    assert found.notes == [rough.format("compiled 1.0 ms to 9.0 ms") + ": the figures are rough"]  # why is not known
    measured.compiled = [0.5e-3] * 5
    found = profiled(measured)
    assert (found.median_seconds, found.profiled_seconds, found.notes) == (0.5e-3, 1e-3, [])
    measured.compiled, measured.eager = [1e-3] * 5, [1e-3, 1e-3, 1e-3, 9e-3, 9e-3]
    assert [note.partition(":")[0] for note in profiles._doubts(measured)] == [rough.format("eager 1.0 ms to 9.0 ms")]
    measured.compiled = measured.eager  # one disturbance has one note
    both = rough.format("compiled 1.0 ms to 9.0 ms, eager 1.0 ms to 9.0 ms")
    assert [note.partition(":")[0] for note in profiles._doubts(measured)] == [both]


def test_breaks_cost_no_more_than_a_call_spends_outside_of_graphs() -> None:
    costs = [
        BreakCost(break_="b0", seconds=3.0, share=0.6, ops_seconds=1.0),
        BreakCost(break_="b1", seconds=None, eager_seconds=1.0),
    ]
    found = Profile(calls=3, median_seconds=5.0, shares={"graphs": 0.5}, breaks=costs)
    profiles._fit(found)
    assert found.seconds_of_breaks == 2.5
    assert [(c.seconds, c.share, c.ops_seconds, c.eager_seconds) for c in found.breaks] == [
        (1.5, 0.3, 0.5, None),
        (None, None, 0, 0.5),
    ]


def test_where_the_time_goes_is_unknown_if_the_profiled_calls_were_disturbed() -> None:
    call, graph = (profiles.Event(name, "cpu", 0, 4_500_000) for name in (profiles.CALL, f"{profiles.GRAPH} g0"))
    measured = profiles.Measurement(events=[call, graph], compiled=[81e-6] * 5, eager=[81e-6] * 5)
    found = profiled(measured)
    assert (found.segments, found.shares, found.breaks, found.guard_seconds) == ([], {}, [], None)
    assert found.notes[0].startswith("a call took 4.5 ms under the profiler, 81 µs without it: where the time goes")
    assert "under torch.profiler (4.5 ms a call): unknown" in str(Report(profile=found))
    measured.compiled = [2e-3] * 5
    assert profiled(measured).shares


def test_which_is_faster_is_unclear_where_times_vary_by_more_than_they_differ() -> None:
    call = profiles.Event(profiles.CALL, "cpu", 0, 1_000_000)
    busy = profiles.Measurement(events=[call], compiled=[1e-4, 1e-4, 2e-4, 4e-2, 4e-2], eager=[1e-4, 1e-4, 4e-2, 4e-2, 4e-2])
    found = profiled(busy)
    assert (found.verdict.payback, found.verdict.payback_calls) == ("unclear", None)
    assert "these times are too uncertain" in verdict_words(found)
    assert "times as fast" not in verdict_words(found)
    sped_up = profiles.Measurement(events=[call], compiled=[0.3] * 5, eager=[0.2] * 5)  # it takes 1 ms under the profiler
    assert profiled(sped_up).verdict.payback == "unclear"
    measured = profiles.Measurement(events=[call], compiled=[39e-3] * 5, eager=[4e-4] * 5)
    found = profiled(measured)
    assert (found.verdict.payback, len(found.notes)) == ("slower", 1), "it is quicker under the profiler, as nothing can be"
    busy.eager = [second + 1 for second in busy.eager]
    assert ": compiling makes it faster; no" in verdict_words(profiled(busy)), "half of them differ widely"
    busy.eager[0] = 3e-2
    assert ": these times are too uncertain for a verdict" in verdict_words(profiled(busy)), (
        "a call of each kind is like the others"
    )
    busy.compiled = [1e-3] * 5
    busy.eager[0] = busy.eager[1]
    assert re.search(r"times as fast; compiling pays for itself after \d calls;", verdict_words(profiled(busy)))
    busy.waited = 0.5
    assert profiled(busy).verdict.payback == "unclear"
    assert profiled(busy).notes == ["threads had to wait for a core, as the machine was busy: the figures are rough"]
    busy.waited = 0.0
    # it took time to compile, and runs outside of the measured call
    assert verdict_words(profiled(busy, "compiled")).endswith("times as fast; no compiled graph runs in its own thread")


def test_what_a_break_costs_is_unknown_where_torchs_own_code_runs_eagerly_because_of_it() -> None:
    class Says(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            print(end="")
            return x * 2

    layers = torch.nn.Sequential(torch.nn.Linear(2, 2), Says())
    for model in (layers, lambda x: layers(x) + 1):
        report = dynascope.explain(model, backend="eager", profile=2)(torch.ones(2))
        assert [cost.method for cost in report.profile.breaks] == ["unknown"]
        assert "; torch's own forward at container.py:" in str(report)


def test_what_repeating_the_call_compiles_is_measured_and_is_not_in_the_report() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            if self.calls == 1:
                torch._dynamo.graph_break()
            return x * self.calls

    report = dynascope.explain(Counter(), backend="eager", profile=2)(torch.ones(2))
    assert (report.summary.breaks, report.summary.recompiles) == (1, 0)
    (note,) = [n for n in report.notes if "while measuring" in n]
    assert note.startswith("1 frame compiled while measuring, outside of counts and expectations, as the call was repeated")
    assert "forward, a guard that failed: self.calls == 0" in note
    assert [s.label for s in report.profile.segments if s.kind == "graph"] == ["compiled while measuring (0/1)"]
    assert [cost.method for cost in report.profile.breaks] == ["unknown"], "that code may have a break there, too"
    assert not any("lacks" in n for n in report.notes)


def test_a_call_that_the_compiler_refuses_when_repeated_is_not_said_to_be_compiled() -> None:
    seen: list[int] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        seen.append(len(seen))
        return x + 1

    with torch._dynamo.config.patch(recompile_limit=1):
        report = dynascope.explain(f, backend="eager", profile=2)(torch.ones(2))
    (note,) = [n for n in report.notes if "while measuring" in n]
    assert note.startswith("1 compile begun while measuring may have come to nothing: at the recompile limit")


def test_a_call_that_compiles_each_time_is_not_measured(monkeypatch: Any) -> None:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    compiled = torch.compile(inner, backend="eager")

    @torch.compiler.disable
    def forgetful(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.eval_frame.reset_code(inner.__code__)
        return compiled(x)

    def f(x: torch.Tensor) -> torch.Tensor:
        return forgetful(x + 1)

    idle = torch.compiler.disable(lambda x: x)
    report = dynascope.explain(lambda x: idle(x + 1) * 2, backend="eager", profile=2)(torch.ones(2))
    assert report.profile is not None
    assert report.profile.breaks[0].seconds is None, "the work of what the program disabled is no cost of a break"
    report = dynascope.explain(f, backend="eager", profile=2)(torch.ones(2))
    words = "profile: not measured: it does not settle: repeated call 5 still compiled code (inner)"
    assert (report.profile, words in report.notes) == (None, True), report.notes
    seen, log = list[float](), logging.StreamHandler(io.StringIO())
    monkeypatch.setattr(logging.getLogger("torch._dynamo"), "handlers", [log])
    appends = dynascope.explain(lambda x: (seen.append(x.sum().item()), x + 1), backend="eager", profile=2)
    assert "compiled code (resume in <lambda>, a guard that failed: Cache line invalidated" in appends(torch.ones(2)).notes[0]
    with torch._dynamo.config.patch(recompile_limit=2):
        appends(torch.ones(2))
    assert "recompile_limit" not in log.stream.getvalue()  # what repeated calls log is not the program's
    steady = dynascope.explain(lambda x: x + 1, backend="eager", profile=2)(torch.ones(2))
    assert steady.profile is not None
    assert not any("compiled while measuring" in note for note in steady.notes)
