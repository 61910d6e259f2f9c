"""The text of an FX graph, read back into nodes, against the graph itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.distributed.tensor import Partial, Placement, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec

from dynascope.compiler.builder import graphs
from dynascope.compiler.driver import explain


def test_a_quoted_line_with_a_character_that_ends_lines_elsewhere_keeps_the_places() -> None:
    text = """\
def forward(self, x):
    # File: a.py:3 in f, code: y = x.sin()  # \x0c \u2028
    sin = x.sin();  x = None
    # File: a.py:4 in f, code: return y.cos()
    cos = sin.cos();  sin = None
    return (cos,)
"""
    nodes = {n.name: n for n in graphs.read_graph(text)}
    assert (nodes["sin"].line, nodes["cos"].line) == (3, 4)


def a_local_named_output(x: torch.Tensor) -> torch.Tensor:
    output = x + 1
    output = output * 2
    return output.sin()


def an_argument_named_output(output: torch.Tensor) -> torch.Tensor:
    return output + 1


def lists_of_tensors(x: torch.Tensor) -> Any:
    y, z = x + 1, x * 2
    y[0] = z[1]
    return [(z.sin(), y), torch.where(x > torch.cat([z, x], dim=0).sum(), torch.stack([x, z]), x), z + (x - y)]


def indices_and_keywords(x: torch.Tensor) -> Any:
    y = x[None, :, None] ** 2 - (-x)[..., 1:].sum(-1, keepdim=True)
    y[0, :, 0] = 1e-05
    y @= y.new_full((1, 1), float("inf")).to(torch.float64, copy=True).float()
    z = torch.nn.functional.pad(x, (1, 1), mode="constant", value=-0.5) * x.shape[0]
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        chosen = torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (z,))
    return {"a": (y, chosen), "b": [z.real, torch.split(x, [1, 2])[1], torch.vmap(torch.sin)(x)]}


@pytest.mark.parametrize("function", [a_local_named_output, an_argument_named_output, lists_of_tensors, indices_and_keywords])
@pytest.mark.parametrize("dynamic", [False, True])
def test_nodes_are_those_of_the_graph_and_of_its_text(function: Callable[..., Any], dynamic: bool) -> None:
    captured: list[Any] = []

    def witness(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        captured.append([(n.op, n.name, [a.name for a in n.all_input_nodes]) for n in gm.graph.nodes])
        return gm

    report = explain(function, backend=witness, dynamic=dynamic)(torch.ones(3))
    assert [[(n.op, n.name, n.inputs) for n in g.nodes] for g in report.graphs] == captured
    assert report.hooks["graphs"] is True
    assert "nodes of live graphs" not in report.hooks
    for graph in report.graphs:  # the nodes are copied from the graph; a log has only the text
        assert graphs.read_graph(graph.code) == graph.nodes
        assert graph.outputs == graph.nodes[-1].inputs


@pytest.mark.skipif(
    not hasattr(DTensorSpec, "format_shard_order_str"), reason="before torch 2.10, graphs do not print placements"
)
@pytest.mark.parametrize("placements", [(Shard(0),), (Replicate(), Partial(), Shard(1)), (Shard(0), Shard(0))])
def test_placements_are_as_torch_prints_them(placements: tuple[Placement, ...]) -> None:
    printed = DTensorSpec.format_shard_order_str(placements, DTensorSpec.compute_default_shard_order(placements))
    text = f"def forward(self, x: 'DTensor(bf16[s7, 8][8, 1]cuda:0, {printed})', y: 'Mine(f32[2][1]cpu)'):\n    return x\n"
    node, other = graphs.read_graph(text)[:2]
    assert (node.dtype, node.shape, node.stride, node.device) == ("bfloat16", ["s7", 8], [8, 1], "cuda:0")
    assert (node.subclass, other.subclass) == (f"DTensor({printed})", "Mine")
