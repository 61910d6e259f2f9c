"""The segments of a call, on recorded profiler events: exact to the nanosecond.

`profiler_traces/*.json` come from real runs (`profiler_traces/record.py`), those of a GPU from an H100.  The events of a device
below are made up, for cases that these runs do not have.

Inside: `read_calls` and `profile_of` are given events; a live profile has other times in each run.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from observed import profiled as recorded
from programs import NOTICES_ATTRIBUTES

from dynascope.compiler.driver import explain
from dynascope.compiler.lab import slices as slicing
from dynascope.compiler.report import Break, Frame, Graph, Hit, Report

BACKENDS = ["inductor_cpu", "eager_cpu"]
ALL = [*BACKENDS, "inductor_cuda", "eager_cuda"]


def named(report: Report) -> dict[str, str]:
    """The breaks of the recorded program, by id."""
    in_order = sorted(report.breaks, key=lambda b: b.line)
    return dict(zip((b.id for b in in_order), ("inner", "print", "sleep", "if"), strict=True))


def within(events: list[slicing.Event], calls: list[slicing.Event], prefix: str) -> int:
    """Nanoseconds of all events of this name inside the calls; counted from the raw events."""
    return sum(e.duration for e in events for c in calls if e.name.startswith(prefix) and c.start <= e.start < c.end)


@pytest.mark.parametrize("name", ALL)
def test_slices_cover_each_call_without_a_hole(name: str) -> None:
    events, report = recorded(name)
    for call in slicing.read_calls(events, report):
        assert call.slices[0].start == call.start
        assert call.slices[-1].end == call.end
        assert all(a.end == b.start for a, b in zip(call.slices, call.slices[1:], strict=False))


@pytest.mark.parametrize("name", BACKENDS)
def test_sums_by_kind_are_those_of_the_raw_events(name: str) -> None:
    events, report = recorded(name)
    marked = [e for e in events if e.name == slicing.CALL]
    slices = [p for call in slicing.read_calls(events, report) for p in call.slices]
    assert len(marked) == 3
    graphs = within(events, marked, slicing.BACKEND if name.startswith("inductor") else slicing.GRAPH)
    assert sum(p.end - p.start for p in slices if p.kind == "graph") == graphs
    assert sum(p.end - p.start for p in slices if p.kind == "lookup") == within(events, marked, slicing.GUARD_CHECK)
    assert sum(p.ops.get("aten::is_nonzero", [0, 0])[0] for p in slices) == within(events, marked, "aten::is_nonzero")


@pytest.mark.parametrize("name", ALL)
def test_graphs_follow_in_order_and_gaps_belong_to_their_breaks(name: str) -> None:
    events, report = recorded(name)
    profile, names = slicing.profile_of(events, report), named(report)
    story: list[Any] = []
    for segment in profile.segments:
        what = segment.graph if segment.kind == "graph" else names.get(segment.break_ or "") if segment.kind == "gap" else None
        if what is not None and (not story or story[-1] != what):
            story.append(what)
    there = ["g0", "print", "g1", "sleep", "inner", "g2", "inner", "g3", "if", "g4"]
    assert story == [*there, "if", "inner", "sleep", "print"], "the way back leads through them"
    assert all((s.op_count is not None) == (s.kind == "gap") for s in profile.segments)
    after_the_if = [s for s in profile.segments if s.kind == "gap" and names.get(s.break_ or "") == "if"]
    assert sum(s.op_count or 0 for s in after_the_if) == sum(op.count for s in after_the_if for op in s.ops) > 0
    assert profile.calls == 3
    assert sum(profile.shares.values()) - profile.shares.get("device busy", 0) == pytest.approx(1, abs=0.05)
    assert profile.shares["unaccounted"] < 0.05
    assert not profile.notes


@pytest.mark.parametrize("name", ALL)
def test_breaks_are_ranked_by_what_they_cost(name: str) -> None:
    events, report = recorded(name)
    profile, names = slicing.profile_of(events, report), named(report)
    costs = {names[c.break_]: c for c in profile.breaks}
    assert next(iter(costs)) == "sleep"
    assert costs["sleep"].seconds > 0.002
    how = "device idle" if name.endswith("cuda") else "gap"
    for cost in costs.values():
        assert cost.times == 1
        assert cost.method == how


def test_a_step_of_training_shows_each_backward_with_its_graph() -> None:
    events, report = recorded("training_cpu")
    calls = [e for e in events if e.name == slicing.CALL]
    (first, *_) = slicing.read_calls(events, report)
    graphs = [(p.graph, p.label) for p in first.slices if p.kind == "graph"]
    assert graphs == [("g0", "graph 0"), ("g1", "graph 1"), ("g1", "backward of graph 1"), ("g0", "backward of graph 0")]
    slices = [p for call in slicing.read_calls(events, report) for p in call.slices]
    assert sum(p.end - p.start for p in slices if p.kind == "graph") == within(events, calls, slicing.BACKEND)
    # the wrappers of the second graph's backward are there because of the break, those of the first one's are not
    lines = {b.id: b.line for b in report.breaks}
    assert [lines.get(p.break_ or "") for p in first.slices if p.label == "prologue"][-4:] == [48, 48, None, None]


# -- made-up events ---------------------------------------------------------------------------------------------


def event(name: str, start: int, end: int, kind: str = "cpu", correlation: int | None = None, **more: Any) -> slicing.Event:
    return slicing.Event(name, kind, start, end, correlation=correlation, **{"thread": 1, **more})


def one_break() -> Report:
    """f breaks in line 4 and goes on in a resume function."""
    frames = [
        Frame(id="f0", compile_id="0/0", name="f", code_name="f", file="x.py", line=1, graph="g0"),
        Frame(id="f1", compile_id="1/0", name="f", code_name="torch_dynamo_resume_in_f_at_4", file="x.py", line=4,
              kind="resume", continues="f0", break_="b0", graph="g1"),
    ]  # fmt: skip
    graphs = [Graph(id="g0", frame="f0", ops=1, end="break", break_="b0"), Graph(id="g1", frame="f1", ops=1)]
    found = Break(id="b0", file="x.py", line=4, hits=[Hit(frame="f0", line=4, outcome="resumed", resumes=["f1"])])
    return Report(frames=frames, graphs=graphs, breaks=[found])


def a_call(at: int = 0, gap: int = 500) -> list[slicing.Event]:
    """Processor: graph 0 at 120-200, gap, lookup (20), prologue (30), graph 1 (100)."""
    second = at + 200 + gap
    end = second + 20 + 30 + 100
    return [
        event(slicing.CALL, at, end + 50),
        event("TorchDynamo Cache Lookup", at + 50, at + 90),
        event("Torch-Compiled Region: 0/0", at + 90, end),
        event("dynascope graph a", at + 120, at + 200),
        event("TorchDynamo Cache Lookup", second, second + 20),
        event("Torch-Compiled Region: 1/0", second + 20, end),
        event("dynascope graph b", second + 50, end),
    ]


def test_each_nanosecond_of_a_made_up_call() -> None:
    (call,) = slicing.read_calls(a_call(), one_break())
    assert [(p.kind, p.start, p.end, p.graph, p.break_) for p in call.slices] == [
        ("unaccounted", 0, 50, None, None),
        ("lookup", 50, 90, None, None),
        ("prologue", 90, 120, None, None),
        ("graph", 120, 200, "g0", None),
        ("gap", 200, 700, None, "b0"),
        ("lookup", 700, 720, None, "b0"),
        ("prologue", 720, 750, None, "b0"),
        ("graph", 750, 850, "g1", None),
        ("unaccounted", 850, 900, None, None),
    ]


def test_the_cost_is_the_gap_the_lookup_and_the_prologue_but_no_tensor_op() -> None:
    (cost,) = slicing.profile_of([*a_call(), event("aten::mm", 300, 400), event("aten::item", 410, 430)], one_break()).breaks
    assert cost.seconds == pytest.approx((500 - 100 + 20 + 30) * 1e-9)
    assert cost.ops_seconds == pytest.approx(100e-9)


def test_the_profilers_own_time_is_no_cost_and_costs_never_exceed_the_call() -> None:
    def cost(own: float, events: list[slicing.Event]) -> tuple[float, float]:
        (found,) = slicing.profile_of(events, one_break(), own).breaks
        return found.seconds * 1e9, found.share

    # 900 ns with twelve starts and ends of events: spread evenly, five of them are the break's
    assert cost(120e-9, a_call()) == (pytest.approx(550 - 5 * 10), pytest.approx((550 - 5 * 10) / (900 - 120)))
    # more than an event can take slows all of it down: what is left adds up to the call without the profiler
    seconds, share = cost(800_000e-9, a_call(gap=1_000_000))
    assert 190_000 < seconds < 200_401
    assert 0.9 < share <= 1 + 1e-9
    (nothing,) = slicing.profile_of(a_call(), one_break(), 1.0).breaks
    assert (nothing.seconds, nothing.share) == (0, None)


def test_median_and_spread_over_calls_that_went_the_same_way() -> None:
    events = [e for i, gap in enumerate([100, 500, 600, 700, 9000]) for e in a_call(i * 100_000, gap)]
    profile = slicing.profile_of([*events, *[event(slicing.CALL, 900_000, 900_100)]], one_break())
    (cost,) = profile.breaks
    assert (profile.calls, cost.seconds, cost.spread) == (6, pytest.approx(650e-9), pytest.approx([550e-9, 750e-9]))
    assert "5 of 6 calls went the same way" in profile.notes[0]


def test_a_skipped_frame_has_no_cost_that_is_known() -> None:
    skipped = Frame(id="f0", compile_id="0/0", name="f", code_name="f", file="x.py", line=1, status="skipped", stopped_by="b0")
    hits = [Hit(frame="f0", line=2, outcome="skipped"), Hit(frame="f2", line=2, outcome="resumed")]  # the other: of a caller
    later = Break(id="b1", file="x.py", line=3, outcome="skipped", hits=[Hit(frame="f1", line=3, outcome="skipped")])
    report = Report(frames=[skipped], breaks=[Break(id="b0", file="x.py", line=2, outcome="skipped", hits=hits), later])
    profile = slicing.profile_of([event(slicing.CALL, 0, 1000), event("aten::mm", 100, 300)], report)
    cost, other = profile.breaks
    assert other.method == "unknown", "perhaps the frame ran, as eager code: the call does not show it"
    assert cost.seconds is None
    assert cost.eager_seconds == pytest.approx(1000e-9)
    assert cost.method == "eager frame"
    assert profile.segments[0].frame == "f0"
    other = Frame(id="f1", compile_id="1/0", name="g", code_name="g", file="x.py", line=3, status="skipped", stopped_by="b1")
    report.frames.append(other)
    events = [event(slicing.CALL, 0, 1000)]
    assert [c.break_ for c in slicing.profile_of(events, report, function="g").breaks if c.eager_seconds] == ["b1"]


def test_a_rest_that_runs_eagerly_is_the_cost_of_the_break_that_makes_it_so() -> None:
    report = one_break()
    report.frames[1].status, report.frames[1].graph, report.frames[1].stopped_by = "skipped", None, "b1"
    report.breaks.append(
        Break(id="b1", file="x.py", line=5, outcome="skipped", hits=[Hit(frame="f1", line=5, outcome="skipped")])
    )
    events = [event(slicing.CALL, 0, 1000), event("Torch-Compiled Region: 0/0", 100, 900), event("dynascope graph a", 120, 200)]
    rest, first = slicing.profile_of(events, report).breaks
    assert (rest.break_, rest.method, rest.eager_seconds) == ("b1", "eager frame", pytest.approx(700e-9))
    assert (first.method, first.seconds) == ("unknown", None), "nothing shows where the rest begins"


@pytest.mark.parametrize("called", [{"kind": "resume", "continues": "f0", "break_": "b0"}, {"parent": "f0", "called_from": 4}])
def test_what_runs_eagerly_without_a_break_of_its_own_is_no_cost_of_the_break_before_it(called: dict[str, Any]) -> None:
    report = one_break()
    report.frames += [Frame(id="f2", compile_id="2/0", name="g", code_name="g", file="x", line=9, status="skipped", **called)]
    (cost,) = slicing.profile_of(a_call(), report).breaks
    assert (cost.seconds, cost.method, cost.eager_seconds) == (None, "eager frame", pytest.approx(500e-9))


def test_no_call_is_an_error() -> None:
    with pytest.raises(ValueError, match="no call"):
        slicing.profile_of([], Report())


def test_autograds_thread_for_a_device_stands_where_the_call_waits_for_it() -> None:
    """Made up: on a GPU the backward runs in a thread of its own."""
    other = {"thread": 2}
    events = [
        event(slicing.CALL, 0, 1000), event("Torch-Compiled Region: 0/0", 100, 300),
        event("dynascope graph a", 110, 200), event("CompiledFunction", 120, 190, sequence=5),
        event("aten::ones_like", 310, 320),
        event("autograd::engine::evaluate_function: CompiledFunctionBackward", 400, 600, sequence=5, **other),
        event("CompiledFunctionBackward", 410, 590, sequence=5, **other),
        event("autograd::engine::evaluate_function: X", 150, 180, **other),  # while the call itself worked
    ]  # fmt: skip
    (call,) = slicing.read_calls(events, one_break())
    assert [(p.start, p.end) for p in call.slices if p.label == "backward of graph 0"] == [(410, 590)]
    assert all(a.end == b.start for a, b in itertools.pairwise(call.slices))
    assert not any("X" in op for p in call.slices for op in p.ops)


# -- a device ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["inductor_cuda", "eager_cuda", "cudagraphs_cuda", "training_cuda"])
def test_the_work_of_a_gpu_belongs_to_what_launched_it(name: str) -> None:
    events, report = recorded(name)
    profile = slicing.profile_of(events, report)
    (lane,) = set(profile.lanes) - {"CPU"}
    assert lane.startswith("GPU 0 stream")
    work = [s for s in profile.segments if s.lane == lane]
    assert {s.graph for s in work if s.kind == "kernel"} >= {g.id for g in report.graphs}
    assert all(s.graph or s.break_ or s.frame is None for s in work)
    assert profile.shares["device busy"] == pytest.approx(sum(s.duration for s in work) / profile.median_seconds, rel=0.2)
    assert profile.shares["unaccounted"] < 0.15


def kernel(name: str, start: int, end: int, correlation: int, kind: str = "kernel") -> slicing.Event:
    return event(name, start, end, kind, correlation, thread="stream 7", device=0)


def launched(first_kernel: int = 300) -> list[slicing.Event]:
    """Graph 0 launches one kernel, graph 1 another; the first one runs until `first_kernel`."""
    return [
        *a_call(),
        event("cudaLaunchKernel", 150, 160, "runtime", 1), kernel("triton_a", 165, first_kernel, 1),
        event("cudaLaunchKernel", 760, 770, "runtime", 2), kernel("triton_b", 780, 860, 2),
        event("cudaDeviceSynchronize", 852, 890, "runtime", 3),
    ]  # fmt: skip


def test_kernels_stand_on_the_lane_of_their_device_with_the_graph_that_launched_them() -> None:
    profile = slicing.profile_of(launched(), one_break())
    assert profile.lanes == ["CPU", "GPU 0 stream 7"]
    kernels = [s for s in profile.segments if s.kind == "kernel"]
    assert [(s.label, s.graph, s.start) for s in kernels] == [
        ("triton_a", "g0", pytest.approx(165e-9)), ("triton_b", "g1", pytest.approx(780e-9)),
    ]  # fmt: skip
    assert profile.shares["waiting"] == pytest.approx(38 / 900)
    assert profile.shares["device busy"] == pytest.approx((135 + 80) / 900)


def test_on_a_device_a_break_costs_what_the_device_stands_idle() -> None:
    (cost,) = slicing.profile_of(launched(300), one_break()).breaks
    assert cost.seconds == pytest.approx((780 - 300) * 1e-9)  # less than the 550 of the processor
    (hidden,) = slicing.profile_of(launched(775), one_break()).breaks
    assert hidden.seconds == pytest.approx(5e-9)  # the device still had work
    assert cost.method == "device idle"


def test_a_chrome_trace_of_a_gpu_is_read() -> None:
    common = {"ph": "X", "pid": 1, "tid": 5, "ts": 10.5, "dur": 2.25}
    trace = {"traceEvents": [
        {**common, "cat": "cpu_op", "name": "aten::mm", "args": {"External id": 3}},
        {**common, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": {"correlation": 7}},
        {**common, "cat": "kernel", "name": "k", "args": {"correlation": 7, "device": 0, "stream": 20}},
        {**common, "cat": "gpu_memcpy", "name": "Memcpy HtoD", "args": {"correlation": 8, "device": 0, "stream": 20}},
        {**common, "cat": "gpu_user_annotation", "name": "x"}, {"ph": "M", "name": "process_name"},
    ]}  # fmt: skip
    events = slicing.plain_events(trace)
    assert [(e.kind, e.thread, e.device, e.correlation) for e in events] == [
        ("cpu", 5, None, None), ("runtime", 5, None, 7), ("kernel", "stream 20", 0, 7), ("copy", "stream 20", 0, 8),
    ]  # fmt: skip
    assert {(e.start, e.duration) for e in events} == {(10500, 2250)}
    assert [e.thread for e in slicing.trees(events)] == [5]


# -- compiled code that the report lacks -----------------------------------------------------------------------------------


def renamed(events: list[slicing.Event], region: str, other: str) -> list[slicing.Event]:
    """As if the repeated calls had run another version of the code in this region."""
    name, wanted = f"{slicing.REGION}{region}", f"{slicing.REGION}{other}"
    return [replace(e, name=e.name.replace(name, wanted)) if e.name.startswith(name) else e for e in events]


def test_a_version_that_the_report_lacks_is_no_graph_of_the_report() -> None:
    events, report = recorded("inductor_cpu")
    first = next(f for f in report.frames if f.graph == "g0")
    before = slicing.profile_of(events, report)
    profile = slicing.profile_of(renamed(events, first.compile_id or "", f"{(first.compile_id or '').split('/')[0]}/7"), report)
    unknown = [s for s in profile.segments if s.kind == "graph" and s.graph is None]
    assert [s.label for s in unknown] == ["compiled code the report lacks (0/7)"]
    assert "g0" not in [s.graph for s in profile.segments]
    assert any("(0/7)" in note for note in profile.notes)
    # the resume function that it calls tells which break ended it
    assert [c.break_ for c in profile.breaks] == [c.break_ for c in before.breaks]


@pytest.mark.skipif(not NOTICES_ATTRIBUTES, reason="plain torch runs the old code; see torch_versions.md")
def test_the_second_call_of_a_module_that_goes_another_way_is_not_its_first_graph() -> None:
    class Second(torch.nn.Module):
        first = True

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.first:
                self.first = False
                return x + 1
            return x @ x

    report = explain(Second(), backend="eager", profile=1, inputs=[torch.ones(4, 4)])(torch.ones(4, 4))
    assert report.profile is not None, report.notes
    assert [s.graph for s in report.profile.segments if s.kind == "graph"] == [None]
    assert report.profile.verdict.payback_calls is None  # what compiling the other graph took is unknown
