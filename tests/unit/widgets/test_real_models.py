"""Views of real models (transformers, random weights from small configs): drawn whole, whatever a local is named.

These have locals named `output`, stores in place, many inputs or more nodes than are drawn one by one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from real.small_models import EXPERTS, IDS, TEXT, of_transformers

from dynascope.compiler.driver import explain
from dynascope.widgets.model import view_model

transformers = pytest.importorskip("transformers")

LINEAR = {"linear_num_value_heads": 2, "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
#: model -> settings of its configuration
MODELS: dict[str, dict[str, Any]] = {
    "Gemma3ForCausalLM": TEXT | {"layer_types": ["sliding_attention", "full_attention"]},
    "Qwen3NextForCausalLM": TEXT | LINEAR | EXPERTS | {"layer_types": ["linear_attention", "full_attention"]},
    **{name: IDS[name] for name in ("Mamba2ForCausalLM", "RecurrentGemmaForCausalLM", "RwkvForCausalLM")},
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The libraries' own warnings are theirs; an error out of them would make Dynamo skip frames."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def drawn(model: Any, **inputs: torch.Tensor) -> None:
    """Every form of the report is made; its graphs are those that the backend was given, down to the names of nodes."""
    given: list[Any] = []

    def witness(gm: torch.fx.GraphModule, example: Any) -> Callable[..., Any]:
        given.append([(n.op, n.name, {a.name for a in n.all_input_nodes}) for n in gm.graph.nodes])
        return gm

    with torch.no_grad():
        report = explain(model.eval(), backend=witness)(**inputs)
    assert given
    assert [[(n.op, n.name, set(n.inputs)) for n in g.nodes] for g in report.graphs if g.ops] == given
    model = view_model(report)
    for graph in report.graphs:
        parts = {part["key"]: part for part in model["details"][graph.id]["parts"]}
        assert parts["graph"]["kind"] == "graph"
        assert [n["reads"] for n in parts["graph"]["body"]["nodes"]] == positions(graph.nodes)
    report.view().close()
    assert "could not be drawn" not in report.to_html() + report.to_svg() + str(report)


def positions(nodes: list[Any]) -> list[list[int]]:
    """What each node reads; no two nodes of a graph bear one name."""
    index = {n.name: i for i, n in enumerate(nodes)}
    assert len(index) == len(nodes)
    return [[index[name] for name in n.inputs] for n in nodes]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_models_of_text(name: str) -> None:
    if not hasattr(transformers, name):
        pytest.skip(f"this transformers has no {name}")
    model, inputs = of_transformers(name, MODELS[name], "input_ids")
    drawn(model, **inputs)
