"""A backend that runs a graph eagerly and compares what custom operators return with what they promised the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class WrongFake(Exception):
    """A custom operator returned something else than its fake implementation said."""


def checking_backend(graph: Any, inputs: list[Any]) -> Callable[..., Any]:
    """The graph as a callable, node by node; raises WrongFake."""
    import torch

    operators = (type(torch.ops.aten.sin), type(torch.ops.aten.sin.default))

    class Checking(torch.fx.Interpreter):
        def run_node(self, node: Any) -> Any:
            result = super().run_node(node)
            if isinstance(node.target, operators):
                promised = node.meta.get("example_value", node.meta.get("val"))
                text = _difference(result, promised)
                if text is not None:
                    raise WrongFake(f"{node.target}: {text}")
            return result

    return Checking(graph).run


def _difference(real: Any, fake: Any) -> str | None:
    import torch

    if isinstance(real, (list, tuple)) and isinstance(fake, (list, tuple)):
        return next(filter(None, map(_difference, real, fake)), None)
    if not isinstance(real, torch.Tensor) or not isinstance(fake, torch.Tensor):
        return None
    if real.dtype != fake.dtype:
        return f"{real.dtype} where its fake says {fake.dtype}"
    if len(real.shape) != len(fake.shape):
        return f"{len(real.shape)} dimensions where its fake says {len(fake.shape)}"
    for one, other in zip(real.shape, fake.shape, strict=True):
        if isinstance(other, int) and one != other:
            return f"shape {tuple(real.shape)} where its fake says {tuple(fake.shape)}"
    return None
