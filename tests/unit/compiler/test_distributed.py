"""Under torch.distributed: the trace names ranks, DDP's optimizer splits graphs, CUDA graphs are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed

from dynascope.compiler.driver.explain import explain
from dynascope.compiler.recording.recording import observe
from dynascope.compiler.report import Report
from dynascope.widgets.model.build import view_model


@pytest.fixture
def process_group(tmp_path: Path) -> Iterator[None]:
    """A group of this process alone."""
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    torch._dynamo.reset()
    yield
    torch.distributed.destroy_process_group()


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(512, 512) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).relu()
        return x


def broken(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def test_a_process_group_changes_nothing_in_the_report(process_group: None) -> None:
    report = explain(broken, backend="eager")(torch.ones(2))
    summary = report.summary
    assert (summary.frames, summary.graphs, summary.breaks, summary.resumes) == (2, 2, 1, 1)
    assert [h.frame for h in report.breaks[0].hits] == ["f0"]
    assert {f.rank for f in report.frames if f.status != "ignored"} == {0}


def ddp_report() -> Report:
    model = torch.nn.parallel.DistributedDataParallel(Layers(), bucket_cap_mb=1)  # type: ignore[no-untyped-call]
    with observe() as recording:
        torch.compile(model, backend="aot_eager")(torch.ones(2, 512)).sum().backward()
    return recording.report


def test_graphs_that_ddp_splits_are_told_with_their_parts(process_group: None) -> None:
    report = ddp_report()
    graph = next(g for g in report.graphs if g.splits)
    assert [split.name for split in graph.splits] == [f"submod_{i}" for i in range(4)]
    assert graph.notes == ["DDP's optimizer split this graph into 4, one for each bucket of gradients"]
    assert graph.code.count("torch._C._nn.linear(") == 4
    assert [split.code.count("torch._C._nn.linear(") for split in graph.splits] == [1, 1, 1, 1]
    assert (graph.aot_forward or "").count("class GraphModule") == 4
    assert graph.backward == "compiled"
    parts = {part["name"] for part in view_model(report)["details"][graph.id]["parts"]}
    assert {"Split by DDP", "AOT forward", "AOT backward"} <= parts


def test_the_standard_library_is_no_skipped_frame_of_the_users(process_group: None) -> None:
    assert [f.file for f in ddp_report().frames if f.status == "skipped" and f.file.startswith("<frozen")] == []


def test_cuda_graphs_that_were_skipped_are_told_with_the_reason() -> None:
    torch._dynamo.reset()
    report = explain(broken, backend="cudagraphs")(torch.ones(2))
    for graph in report.graphs:
        assert [note for note in graph.notes if "CUDA graphs were skipped: cpu device" in note] == graph.notes
        assert len(graph.notes) == 1
