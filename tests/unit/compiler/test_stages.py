"""Later stages: AOTAutograd, Inductor, caches, backward graphs; cold and warm."""

from __future__ import annotations

import copy
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch
from observed import seen
from torch._dynamo.utils import compilation_time_metrics

from dynascope.compiler.capture.recording import observe
from dynascope.compiler.driver import explain


@pytest.fixture(autouse=True)
def _cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))


def pieces(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = (x @ w).relu()
    torch._dynamo.graph_break()
    return (y.sin() * y).sum()


def arguments() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(4, 4), torch.ones(4, 4, requires_grad=True)


def without_times(report: Any) -> dict[str, Any]:
    data: dict[str, Any] = copy.deepcopy(report.to_dict())
    data["summary"]["compile_seconds"] = 0
    data.pop("compile_time")
    for frame in data["frames"]:
        frame.update(compile_seconds=0, compile_id=None)  # ids count up in a process
    for graph in data["graphs"]:
        graph.update(from_cache=None, caches={})
    return data


def test_cold_warm_and_without_caches_give_the_same_report() -> None:
    compilation_time_metrics.clear()
    cold = explain(pieces)(*arguments())
    times = {name: sum(values) for name, values in compilation_time_metrics.items()}
    warm = explain(pieces)(*arguments())
    fresh = explain(pieces, cache=False)(*arguments())
    for report, cached, generated in ((cold, False, True), (warm, True, False), (fresh, None, True)):
        assert [g.from_cache for g in report.graphs] == [cached, cached]
        assert ("codegen" in {p.kind for p in report.compile_time.phases}) is generated
        assert "other" not in {p.kind for p in report.compile_time.phases}
    found = defaultdict[str, float](float)
    for phase in cold.compile_time.phases:
        found[phase.function or phase.name] += phase.seconds
    assert {"compile_fx_inner", "compile_file", "Scheduler.codegen"} <= found.keys() & times.keys()
    for name in found.keys() & times.keys():
        assert found[name] == pytest.approx(times[name], rel=0.05, abs=1e-4), name
    assert without_times(warm) == without_times(cold)
    expected, told = without_times(cold), without_times(fresh)
    expected["settings"].pop("cache")
    told["settings"].pop("cache")
    assert told == expected


def test_stages_of_a_graph_are_there_and_a_backward_in_a_later_recording_is_noted_there() -> None:
    compiled = torch.compile(pieces)
    with observe() as first:
        loss = compiled(*arguments())
    report = first.report
    for graph in report.graphs:
        assert "def call(" in (graph.backend_code or "")
        assert "def forward" in (graph.aot_forward or "")
        assert "def forward" in (graph.aot_backward or "")
        assert graph.backward == "pending"
    frame = report.frames[0]
    assert frame.guard_count
    assert "x is a float32 tensor of shape [4, 4]" in [guard.text for site in frame.guard_sites for guard in site.guards]
    assert frame.compile_seconds is not None
    with observe() as second:
        loss.backward()
    assert second.report.summary.graphs == 0
    assert "2 backward graphs compiled" in second.report.notes[0]


def test_a_backward_in_the_same_recording() -> None:
    report = seen(lambda: torch.compile(pieces)(*arguments()).backward())
    assert [g.backward for g in report.graphs] == ["compiled", "compiled"]
    assert report.notes == []


def test_no_backend_stage_with_eager() -> None:
    report = explain(pieces, backend="eager")(*arguments())
    assert [(g.backward, g.backend_code, g.aot_forward) for g in report.graphs] == [("none", None, None)] * 2


def test_nodes_know_their_module_shape_and_line() -> None:
    report = explain(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()), backend="eager")(torch.ones(2, 4))
    linear = next(n for n in report.graphs[0].nodes if "linear" in n.target)
    assert (linear.dtype, linear.shape, linear.stride, linear.device) == ("float32", [2, 3], [3, 1], "cpu")
    assert linear.module is not None
    assert report.compiled == ["Sequential"]
