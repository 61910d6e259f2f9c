"""What guards cost: by frame, by what they are about, and without them.  Structure only: no test compares times."""

from __future__ import annotations

import statistics
import sys

import pytest
import torch
from test_segments import BACKENDS, recorded

from dynascope.compiler.driver.explain import explain
from dynascope.compiler.profile import measure
from dynascope.compiler.profile.guard_costs import heaviest
from dynascope.compiler.profile.profiler_trace import CALL, GUARD_CHECK
from dynascope.compiler.profile.segments import profile_of
from dynascope.compiler.report import Report
from dynascope.compiler.torch_private import caches
from dynascope.compiler.torch_private.profiling import Evaluation, guard_switches


@pytest.mark.parametrize("name", BACKENDS)
def test_the_frames_add_up_to_the_profilers_own_figure(name: str) -> None:
    events, report = recorded(name)
    costs = profile_of(events, report).guards
    assert costs is not None
    calls = [e for e in events if e.name == CALL]
    inside = [sum(e.duration for e in events if e.name == GUARD_CHECK and c.start <= e.start < c.end) for c in calls]
    assert costs.lookups == pytest.approx(statistics.median(inside) * 1e-9, rel=0.05)
    assert sum(f.lookups for f in costs.frames) == pytest.approx(costs.lookups)
    assert sum(f.prologue for f in costs.frames) == pytest.approx(costs.prologue)
    assert sum(f.share for f in costs.frames) == pytest.approx(costs.share)


@pytest.mark.parametrize("name", BACKENDS)
def test_guards_belong_to_the_frame_that_is_entered_after_them(name: str) -> None:
    events, report = recorded(name)
    costs = profile_of(events, report).guards
    assert costs is not None
    with_graph = {f.id for f in report.frames if f.graph is not None}
    assert with_graph <= {f.frame for f in costs.frames if f.lookups}
    assert [f.times for f in costs.frames if f.frame == "f0"] == [pytest.approx(1)]


def test_the_largest_part_is_split() -> None:
    guards = [("L", None, 2), ("L['self']", "L", 1), ("L['x']", "L", 2)]
    guards += [(f"L['self']._modules['{i}']", "L['self']", 5) for i in range(3)]
    cost = dict(zip((source for source, _, _ in guards), (1e-6, 0, 1e-6, 3e-6, 3e-6, 3e-6), strict=True))

    def seconds(sources: set[str] | None) -> float:
        return sum(cost[source] for source in (cost if sources is None else sources))

    rows = [(g.source, g.guards, g.share) for g in heaviest(Evaluation("0/0", guards, seconds))]
    assert rows == [("self.*", 15, pytest.approx(9 / 11)), ("x", 2, pytest.approx(1 / 11))]


def test_a_source_may_be_inside_itself() -> None:
    guards = [("L", None, 0), ("L['x']", "L", 1), ("L['x']", "L['x']", 1), ("L['x'].y", "L['x']", 1)]
    (row,) = heaviest(Evaluation("0/0", guards, lambda sources: 1e-6 * len({"L", "L['x']", "L['x'].y"} & (sources or {"L"}))))
    assert (row.source, row.guards) == ("x.y", 1)


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.scale = 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.scale


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def test_a_real_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "WORTH", 0.0)
    model, x = Net(), torch.ones(2, 4)
    own = torch.compile(model, backend="eager")
    before = own(x)
    report = explain(model, backend="eager", profile=2)(x)
    assert report.profile is not None, report.notes
    costs = report.profile.guards
    assert costs is not None
    assert [f.frame for f in costs.frames if f.lookups] == ["f0"]
    # how far they are split depends on the times, which on a busy machine are not the same in each run
    assert [g.source for g in costs.guards if g.source.partition(".")[0] == "self"]
    assert {g.frame for g in costs.guards} == {"f0"}
    assert all(0 < g.share <= 1 for g in costs.guards)
    assert [s.name for s in costs.switches] == guard_switches()
    assert "skip_guard_eval_unsafe" in guard_switches()
    assert [s.failed for s in costs.switches if s.failed] == []
    assert all(s.before and s.seconds is not None for s in costs.switches)
    assert Report.from_dict(report.to_dict()).profile == report.profile
    # nothing of it stays
    assert sys.getprofile() is None
    compiles = caches.compiles()
    assert torch.equal(own(x), before)
    assert caches.compiles() == compiles


def test_the_most_expensive_guards_come_first_whatever_their_frame() -> None:
    model = Net()

    def f(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        return model(x)

    report = explain(f, backend="eager", profile=2)(torch.ones(2, 4))
    assert report.profile is not None, report.notes
    assert report.profile.guards is not None
    guards = report.profile.guards.guards
    assert {g.frame for g in guards} == {"f0", "f1"}
    assert [g.seconds for g in guards] == sorted((g.seconds for g in guards), reverse=True)


def test_where_guards_take_too_little_no_switch_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "WORTH", 1.0)
    report = explain(torch.relu, backend="eager", profile=2)(torch.ones(2))
    assert report.profile is not None
    assert report.profile.guards is not None
    assert report.profile.guards.switches == []


def test_install_free_tensors_is_unsafe() -> None:
    """The view says that a tensor which is replaced gives wrong results without an error."""
    block, x = Block(), torch.ones(2, 4)
    with torch._dynamo.config.patch(install_free_tensors=True):
        compiled = torch.compile(block, backend="eager")
        before = compiled(x)
        block.linear.bias = torch.nn.Parameter(torch.full((4,), 9.0))
        assert torch.equal(compiled(x), before)
        assert not torch.equal(block(x), before)
