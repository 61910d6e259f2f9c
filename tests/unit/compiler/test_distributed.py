"""Under torch.distributed: the trace names ranks, DDP's optimizer splits graphs, CUDA graphs are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed
from observed import broken, seen
from torch.distributed import _functional_collectives as functional_collectives

from dynascope.compiler.driver import explain
from dynascope.compiler.report import Report
from dynascope.widgets.model import view_model


@pytest.fixture
def process_group(tmp_path: Path) -> Iterator[None]:
    """A group of this process alone."""
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
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


def test_a_process_group_changes_nothing_in_the_report(process_group: None) -> None:
    report = explain(broken, backend="eager")(torch.ones(2))
    summary = report.summary
    assert (summary.frames, summary.graphs, summary.breaks, summary.resumes) == (2, 2, 1, 1)
    assert [h.frame for h in report.breaks[0].hits] == ["f0"]


def ddp_report(layers: torch.nn.Module | None = None, bucket_cap_mb: float = 1) -> Report:
    inner = layers or Layers()
    model = torch.nn.parallel.DistributedDataParallel(inner, bucket_cap_mb=bucket_cap_mb)  # type: ignore[no-untyped-call]
    return seen(lambda: torch.compile(model, backend="aot_eager")(torch.ones(2, 512)).sum().backward())


def test_graphs_that_ddp_splits_are_told_with_their_parts(process_group: None) -> None:
    report = ddp_report()
    graph = next(g for g in report.graphs if g.splits)
    assert [split.name for split in graph.splits] == [f"submod_{i}" for i in range(4)]
    assert graph.notes == [
        "DDP's optimizer split this graph into 4, one for each bucket of gradients; "
        "bucket_cap_mb says how much goes into a bucket"
    ]
    assert graph.code.count("torch._C._nn.linear(") == 4
    assert [split.code.count("torch._C._nn.linear(") for split in graph.splits] == [1, 1, 1, 1]
    assert (graph.aot_forward or "").count("class GraphModule") == 4
    assert graph.backward == "compiled"
    assert "graph 0: DDP's optimizer split this graph into 4" in " ".join(str(report).split())
    details = view_model(report)["details"][graph.id]
    assert ["split by DDP", "4 parts", ""] in details["facts"]
    assert {"Split by DDP", "AOT forward", "AOT backward"} <= {part["name"] for part in details["parts"]}


def test_the_breaks_of_ddps_own_forward_are_not_the_users(process_group: None) -> None:
    layers = Layers()
    layers.forward = lambda x: broken(layers.layers[0](x))  # type: ignore[method-assign]
    report = ddp_report(layers)
    assert [b.function for b in report.breaks] == ["broken"]
    assert report.summary.breaks == 1
    assert {b.function for b in report.wrapper_breaks} == {"_pre_forward", "__init__"}
    assert sum("own code has 2 graph breaks" in note for note in report.notes) == 1
    assert Report.from_dict(report.to_dict()).wrapper_breaks == report.wrapper_breaks


def test_a_break_that_cuts_the_users_function_at_ddp_stays(process_group: None) -> None:
    model = torch.nn.parallel.DistributedDataParallel(Layers())  # type: ignore[no-untyped-call]

    def step(x: torch.Tensor) -> torch.Tensor:
        return model(x + 1).sum()  # type: ignore[no-any-return]

    report = explain(step, backend="eager")(torch.ones(2, 512))
    assert report.breaks
    assert report.summary.breaks == len(report.breaks)


def test_collectives_are_nodes_of_their_own_kind(process_group: None) -> None:
    def summed(x: torch.Tensor) -> torch.Tensor:
        x = functional_collectives.all_reduce(x * 2, "sum", torch.distributed.group.WORLD)
        return x + 1

    report = explain(summed, backend="eager")(torch.ones(2, 3))
    parts = {p["key"]: p["body"] for p in view_model(report)["details"][report.graphs[0].id]["parts"]}
    nodes = parts["graph"]["nodes"]
    started, waiting = (n for n, node in enumerate(nodes) if node["kind"] == "collective")
    assert nodes[started]["target"] == "all_reduce(sum) over all ranks"
    assert nodes[waiting]["reads"] == [started]
    assert parts["collectives"] == [["all_reduce(sum) over all ranks of f32[2, 3]", "forward", "", ""]]


def test_cuda_graphs_that_were_skipped_are_told_with_the_reason() -> None:
    report = explain(broken, backend="cudagraphs")(torch.ones(2))
    for graph in report.graphs:
        assert [note for note in graph.notes if "CUDA graphs were skipped: cpu device" in note] == graph.notes
        assert len(graph.notes) == 1
