"""What the views show of a check: its sentences, the errors on the way, and whether a search is offered."""

from __future__ import annotations

import pytest
import torch

import dynascope
from dynascope.widgets.model import view_model


def smooth(x: torch.Tensor) -> torch.Tensor:
    a = torch.sin(x)
    b = torch.tanh(a)
    return b * 2


def wrong(module: torch.fx.GraphModule, inputs: object) -> object:
    for node in module.graph.nodes:
        if node.target is torch.tanh:
            node.target = torch.cos
    module.recompile()
    return module.forward


def test_the_errors_are_shown_in_the_graph_and_on_the_lines() -> None:
    torch._dynamo.reset()
    found = dynascope.explain(smooth, backend=wrong, check="where")(torch.linspace(-1, 1, 8))
    model = view_model(found)
    check = model["check"]
    assert check["id"] == found.graphs[0].id
    assert not check["searchable"]
    assert any("The error begins at" in line for line in check["lines"])
    assert not any(note.startswith("check: ") for note in model["notes"])
    lines = [line for source in model["sources"] for line in source["lines"]]
    errors = {line["text"].strip(): line["error"] for line in lines if "error" in line}
    assert errors["a = torch.sin(x)"]["heat"] < 20
    assert (errors["b = torch.tanh(a)"]["heat"], errors["b = torch.tanh(a)"]["short"]) == (100, "off by ≥ 100 %")
    assert errors["b = torch.tanh(a)"]["first"]
    assert not errors["return b * 2"]["first"]
    assert "The error begins at" in str(found)


@pytest.mark.parametrize("backend", [wrong, "eager"])
def test_a_search_is_offered_where_they_differ(backend: object) -> None:
    torch._dynamo.reset()
    found = dynascope.explain(smooth, backend=backend, check=True)(torch.linspace(-1, 1, 8))
    assert view_model(found)["check"]["searchable"] == (backend is wrong)
