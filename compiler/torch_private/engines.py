"""A backend called directly, on one graph: what only Dynamo does otherwise, by private names of torch.

Where they are not there in the installed torch, nothing can be compiled, and the error says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def compiled_graph(backend: str, module: Any, inputs: list[Any]) -> Callable[..., Any]:
    """What a backend makes of an FX graph, called as Dynamo calls it, but with static sizes; raises what it raises."""
    import torch
    from torch._dynamo import lookup_backend
    from torch._guards import TracingContext, tracing
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    # with a ShapeEnv, numbers that come out of tensors (`.item()`) stay symbols instead of ending the compile
    mode = FakeTensorMode(shape_env=ShapeEnv())
    fakes = [mode.from_tensor(x, static_shapes=True) if isinstance(x, torch.Tensor) else x for x in inputs]
    with tracing(TracingContext(mode)):
        made: Callable[..., Any] = lookup_backend(backend)(module, fakes)
    return made
