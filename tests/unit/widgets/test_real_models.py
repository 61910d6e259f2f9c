"""Views of real models (transformers, random weights from small configs): drawn whole, whatever a local is named.

These have locals named `output`, stores in place, many inputs or more nodes than are drawn one by one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from dynascope.compiler.driver import explain
from dynascope.widgets.model import view_model

transformers = pytest.importorskip("transformers")

SMALL = {
    "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
    "vocab_size": 99, "num_hidden_layers": 1, "pad_token_id": 0,
}  # fmt: skip
MAMBA = {"vocab_size": 99, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 1}
EXPERTS = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16}
LINEAR = {"linear_num_value_heads": 2, "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
TWO = SMALL | {"num_hidden_layers": 2}
HYBRID = TWO | LINEAR | EXPERTS
#: model, its configuration, settings
TEXT: list[tuple[str, str, dict[str, Any]]] = [
    ("Gemma3ForCausalLM", "Gemma3TextConfig", TWO | {"layer_types": ["sliding_attention", "full_attention"]}),
    ("Mamba2ForCausalLM", "Mamba2Config", MAMBA | {"num_heads": 4, "head_dim": 16, "n_groups": 1, "chunk_size": 4}),
    ("Qwen3NextForCausalLM", "Qwen3NextConfig", HYBRID | {"layer_types": ["linear_attention", "full_attention"]}),
    ("RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", SMALL | {"num_hidden_layers": 3, "lru_width": 32}),
    ("RwkvForCausalLM", "RwkvConfig", {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "context_length": 32}),
]


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
@pytest.mark.parametrize(("model", "config", "settings"), TEXT, ids=[name for name, _, _ in TEXT])
def test_models_of_text(model: str, config: str, settings: dict[str, Any]) -> None:
    if not hasattr(transformers, model):
        pytest.skip(f"this transformers has no {model}")
    made = getattr(transformers, model)(getattr(transformers, config)(**settings))
    drawn(made, input_ids=torch.randint(3, 90, (1, 8)))
