"""What recording, profiling, replay and comparisons do on a GPU.  `make gpu` runs these.

What only a GPU has (its lane, waiting, CUDA graphs) is asked for there alone; the rest must hold on either device
(DYNASCOPE_DEVICE=cpu rehearses it).
"""

from __future__ import annotations

import copy
import gc
from pathlib import Path
from typing import Any

import pytest
import torch
from device_programs import DEVICE, ON_GPU, broken, network, noisy, square, straight, train

import dynascope
from dynascope.compiler.report import Profile, Report

pytestmark = [
    pytest.mark.skipif(ON_GPU and not torch.cuda.is_available(), reason="needs a CUDA device"),
    # torch advises it once in a process, for every product in float32
    pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores"),
    pytest.mark.filterwarnings("ignore:The CUDA Graph is empty"),
]


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def profiled(function: Any, *args: Any, **settings: Any) -> tuple[Report, Profile]:
    report = dynascope.explain(function, profile=5, **settings)(*args)
    assert report.profile is not None, report.notes
    return report, report.profile


def outline(report: Report) -> Any:
    breaks = [(b.line, b.reason) for b in report.breaks]
    return breaks, [[n.target for n in g.nodes] for g in report.graphs], [f.status for f in report.frames]


def test_the_report_is_that_of_the_cpu() -> None:
    here = dynascope.explain(broken, backend="aot_eager")(square(8))
    torch._dynamo.reset()
    assert outline(here) == outline(dynascope.explain(broken, backend="aot_eager")(square(8).cpu()))
    assert {n.device for g in here.graphs for n in g.nodes if n.device} == {"cuda:0" if ON_GPU else "cpu"}


def test_a_profile_adds_up_and_names_the_device() -> None:
    report, profile = profiled(broken, square())
    assert profile.devices
    assert 0 <= profile.shares["unaccounted"] < 0.3
    lanes = {s.lane for s in profile.segments}
    assert lanes == set(profile.lanes)
    assert {s.graph for s in profile.segments if s.kind == "graph"} == {g.id for g in report.graphs}
    if ON_GPU:
        assert any(lane.startswith("GPU 0 stream") for lane in lanes)
        kernels = [s for s in profile.segments if s.kind == "kernel"]
        assert {s.graph for s in kernels} >= {g.id for g in report.graphs}
        assert 0 < profile.shares["device busy"] <= 1
        assert profile.shares["waiting"] > 0  # `.item()` waits


def test_a_backward_on_the_device_belongs_to_its_graph() -> None:
    _, profile = profiled(train, *network())
    assert {s.graph for s in profile.segments if s.label.startswith("backward")} == {"g0", "g1"}
    if ON_GPU:
        assert [s for s in profile.segments if s.kind == "kernel" and s.graph]


@pytest.mark.skipif(not ON_GPU, reason="CUDA graphs need a CUDA device")
def test_the_kernels_of_cuda_graphs_belong_to_the_graph_that_replays_them() -> None:
    report, profile = profiled(straight, square(), mode="reduce-overhead")
    assert report.summary.graphs == 1
    assert {s.graph for s in profile.segments if s.kind == "kernel"} == {"g0"}
    assert not any("skipped" in note for note in report.graphs[0].notes)


def test_repeated_calls_leave_arguments_and_random_numbers_alone() -> None:
    kept: list[torch.Tensor] = []
    x = square(16)
    plain, plain_kept = x.clone(), list(kept)
    torch.manual_seed(1)
    expected = torch.compile(noisy, backend="aot_eager")(plain, plain_kept)
    after = torch.rand(3, device=DEVICE)
    torch._dynamo.reset()
    torch.manual_seed(1)
    dynascope.explain(noisy, backend="aot_eager", profile=3, check=True)(x, kept)
    assert torch.equal(torch.rand(3, device=DEVICE), after)
    assert torch.equal(x, plain)
    assert len(kept) == len(plain_kept) == 1
    assert torch.equal(kept[0], plain_kept[0])
    assert expected.shape == x.shape


def test_compiled_agrees_with_eager_on_the_device() -> None:
    report = dynascope.explain(straight, check=True)(square(64))
    assert report.check.agrees, report.check


def test_half_precision_is_compared_by_its_own_rounding() -> None:
    net, x = network()

    def step(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(DEVICE, torch.bfloat16):
            return net(x)

    report = dynascope.explain(step, check=True)(x)
    assert report.check.agrees, report.check


def test_the_line_that_loses_its_digits_is_named_on_the_device() -> None:
    def spread(x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(-1, keepdim=True)
        return (x * x).mean(-1, keepdim=True) - mean * mean

    report = dynascope.explain(spread, check="where")(square(64) * 1e-3 + 100)
    numbers = report.check.numbers
    assert numbers is not None, report.check
    assert numbers.verdict == "both"
    assert "mean * mean" in numbers.origin.source, numbers.origin


def test_nothing_of_the_call_is_kept_on_the_device() -> None:
    def used() -> int:
        gc.collect()
        return torch.cuda.memory_allocated() if ON_GPU else 0

    x = square()
    torch.mm(x, x)  # makes the workspace of the library, which stays
    before = used()
    with dynascope.observe() as run:
        torch.compile(straight)(x)
    assert run.report.summary.graphs == 1
    torch._dynamo.reset()
    assert used() == before


def test_a_difference_on_the_device_is_found() -> None:
    def doubling(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        return lambda *args: tuple(x * 2 for x in graph(*args))

    assert dynascope.explain(straight, backend=doubling, check=True)(square(64)).check.agrees is False


def test_a_graph_runs_on_its_own() -> None:
    run = dynascope.explain(straight)(square()).run_graph("g0", calls=5)
    assert run.device == ("cuda:0" if ON_GPU else "cpu")
    assert run.compiled_seconds is not None, run.notes
    assert len(run.ops) >= 12
    assert all(op.seconds is not None for op in run.ops)


def test_a_fix_is_verified_on_the_device() -> None:
    report = dynascope.explain(broken, backend="aot_eager", fix=True)(square(8))
    assert report.fix_set.after.breaks < report.fix_set.before.breaks, report.fixes


def test_every_view_shows_it(tmp_path: Path) -> None:
    report, _ = profiled(broken, square())
    report.run_graph("g0", calls=3)
    assert "graph break" in str(report)
    assert report.save(tmp_path / "report.html").stat().st_size > 10_000
    assert dynascope.load(report.save(tmp_path / "report.json")).to_dict() == copy.deepcopy(report).to_dict()


def test_results_are_there_after_repeated_calls() -> None:
    kept: list[torch.Tensor] = []

    def keeping(x: torch.Tensor) -> torch.Tensor:
        kept.append(straight(x))
        return kept[-1]

    mode = {"mode": "reduce-overhead"} if ON_GPU else {}  # with CUDA graphs, later calls take the memory of earlier results
    report = dynascope.explain(keeping, profile=3, check=True, **mode)(x := square(64))
    assert report.profile is not None, report.notes
    assert not [note for note in report.notes if "restored" in note]
    assert torch.allclose(kept[0], straight(x))


def test_no_change_that_is_tried_ends_the_use_of_the_device() -> None:
    table = torch.arange(8.0, device=DEVICE)

    def looks_up(x: torch.Tensor) -> torch.Tensor:
        if torch.isnan(x).any():
            raise ValueError("nan")
        y = torch.zeros_like(x)
        if x.max() < 1:
            y = table[(x * 8).long()]
        return y

    assert dynascope.explain(looks_up, backend="aot_eager", fix=True)(square(4)).fixes
    assert torch.equal(torch.ones(2, device=DEVICE) + 1, torch.full((2,), 2.0, device=DEVICE))
