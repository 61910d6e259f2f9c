"""The text of an FX graph, read back into nodes, against the graph itself."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.distributed.tensor import Partial, Placement, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec

from dynascope.compiler.builder import graphs
from dynascope.compiler.driver import explain


def test_a_graph_is_read_while_another_thread_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 raises SystemError in one of two threads that parse at the same moment."""
    parse, errors = ast.parse, iter([SystemError("AST constructor recursion depth mismatch")] * 3)

    def disturbed(text: str) -> ast.Module:
        for error in errors:
            raise error
        return parse(text)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert [n.op for n in graphs.read_graph("def forward(self, x):\n    return (x,)\n")[0]] == ["placeholder", "output"]


def test_a_quoted_line_with_a_character_that_ends_lines_elsewhere_keeps_the_places() -> None:
    text = """\
def forward(self, x):
    # File: a.py:3 in f, code: y = x.sin()  # \x0c \u2028
    sin = x.sin();  x = None
    # File: a.py:4 in f, code: return y.cos()
    cos = sin.cos();  sin = None
    return (cos,)
"""
    nodes = {n.name: n for n in graphs.read_graph(text)[0]}
    assert (nodes["sin"].line, nodes["cos"].line) == (3, 4)


def a_local_named_output(x: torch.Tensor) -> torch.Tensor:
    output = x + 1
    output = output * 2
    return output.sin()


def stores_into_a_local_named_output(x: torch.Tensor) -> torch.Tensor:
    output = torch.zeros(3)
    output[0] = x[0]
    output += x
    return output


def a_local_named_output_1(x: torch.Tensor) -> torch.Tensor:
    output_1 = x + 1
    output = output_1 * 2
    output_7 = output + output_1
    return output_7.cos()


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


@pytest.mark.parametrize(
    "function",
    [
        a_local_named_output, stores_into_a_local_named_output, a_local_named_output_1, an_argument_named_output,
        lists_of_tensors, indices_and_keywords,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
@pytest.mark.parametrize("dynamic", [False, True])
def test_nodes_are_those_of_the_graph_and_of_its_text(function: Callable[..., Any], dynamic: bool) -> None:
    captured: list[Any] = []

    def witness(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        captured.append([(n.op, n.name, [a.name for a in n.all_input_nodes]) for n in gm.graph.nodes])
        return gm

    torch._dynamo.reset()
    report = explain(function, backend=witness, dynamic=dynamic)(torch.ones(3))
    assert [[(n.op, n.name, n.inputs) for n in g.nodes] for g in report.graphs] == captured
    assert report.hooks["node modules"] is True
    assert "nodes of live graphs" not in report.hooks
    for graph in report.graphs:  # the nodes are copied from the graph; a log has only the text
        assert graphs.read_graph(graph.code) == (graph.nodes, graph.outputs)


def test_no_two_nodes_bear_one_name_though_the_text_prints_none_for_the_output() -> None:
    text = "def forward(self, output, output_2):\n    output_3 = output + output_2\n    return (output_3, output)\n"
    nodes, outputs = graphs.read_graph(text)
    assert [n.name for n in nodes] == ["output", "output_2", "output_3", "output_4"]
    assert outputs == nodes[-1].inputs == ["output_3", "output"]


def test_inputs_and_outputs_are_in_the_order_of_the_text() -> None:
    text = "def forward(self, a, b, c):\n    cat = torch.cat([c, a], b)\n    return ([(c, a), cat], b)\n"
    nodes, outputs = graphs.read_graph(text)
    assert nodes[3].inputs == ["c", "a", "b"]
    assert outputs == ["c", "a", "cat", "b"]


@pytest.mark.skipif(
    not hasattr(DTensorSpec, "format_shard_order_str"), reason="before torch 2.10, graphs do not print placements"
)
@pytest.mark.parametrize("placements", [(Shard(0),), (Replicate(), Partial(), Shard(1)), (Shard(0), Shard(0))])
def test_placements_are_as_torch_prints_them(placements: tuple[Placement, ...]) -> None:
    order = DTensorSpec.compute_default_shard_order(placements)
    printed = DTensorSpec.format_shard_order_str(placements, order)
    text = f"def forward(self, x: 'DTensor(bf16[s7, 8][8, 1]cuda:0, {printed})', y: 'Mine(f32[2][1]cpu)'):\n    return x\n"
    node, other = graphs.read_graph(text)[0][:2]
    assert (node.dtype, node.shape, node.stride, node.device) == ("bfloat16", ["s7", 8], [8, 1], "cuda:0")
    assert (node.subclass, other.subclass) == (f"DTensor({printed})", "Mine")
