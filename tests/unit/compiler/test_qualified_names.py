"""A frame's qualified name: the function with its class, as the source has it."""

from __future__ import annotations

import torch

import dynascope
from dynascope.compiler.report.overview import call_tree


class Block(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.sin()
        torch._dynamo.graph_break()
        return x.cos()


def outer(x: torch.Tensor) -> torch.Tensor:
    return Block()(x) + 1


def test_methods_are_named_with_their_class() -> None:
    report = dynascope.explain(outer, backend="eager")(torch.ones(3))
    names = {(f.kind, f.name, f.qualname) for f in report.frames if f.status != "ignored" and f.file == __file__}
    assert {("function", "outer", "outer"), ("function", "forward", "Block.forward")} <= names
    assert ("resume", "forward", "Block.forward") in names
    assert [call.name for root in call_tree(report) for _, call in root.walk()] == ["outer", "Block.forward"]
