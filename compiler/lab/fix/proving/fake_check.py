"""A backend that runs a graph eagerly and compares what operators return with what their fake implementations promised.

Only operators called through `torch.ops` are checked, above all custom ones.  Those that fixes make must leave their arguments
as they are, because their schema says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynascope.compiler.lab.comparison import difference


class WrongFake(Exception):
    """An operator returned something other than its fake implementation promised, or changed an argument."""


def checking_backend(graph: Any, inputs: list[Any]) -> Callable[..., Any]:
    """A callable that runs the graph node by node; it raises WrongFake at the first mismatch."""
    import torch

    # OpOverloadPacket and OpOverload
    operators = (type(torch.ops.aten.sin), type(torch.ops.aten.sin.default))

    class Checking(torch.fx.Interpreter):
        def run_node(self, node: Any) -> Any:
            args, kwargs = self.fetch_args_kwargs_from_env(node)
            given = [*args, *kwargs.values()] if str(node.target).startswith("dynascope.") else []
            before = [a.clone() if isinstance(a, torch.Tensor) else a for a in given]
            result = super().run_node(node)
            if any(difference(now, then) for now, then in zip(given, before, strict=True)):
                raise WrongFake(f"{node.target} changes an argument in place")
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
        if len(real) != len(fake):
            return f"returned {len(real)} values, but its fake implementation says {len(fake)}"
        return next(filter(None, map(_difference, real, fake)), None)
    if not isinstance(real, torch.Tensor) or not isinstance(fake, torch.Tensor):
        return None
    if real.dtype != fake.dtype:
        return f"returned {real.dtype}, but its fake implementation says {fake.dtype}"
    if len(real.shape) != len(fake.shape):
        return f"returned {len(real.shape)} dimensions, but its fake implementation says {len(fake.shape)}"
    for one, other in zip(real.shape, fake.shape, strict=True):
        if isinstance(other, int) and one != other:
            return f"returned shape {tuple(real.shape)}, but its fake implementation says {tuple(fake.shape)}"
    for size, one, other in zip(real.shape, real.stride(), fake.stride(), strict=True):
        if isinstance(other, int) and size > 1 and real.numel() and one != other:
            return f"returned strides {real.stride()}, but its fake implementation says {tuple(fake.stride())}"
    return None
