"""A backend called directly, on one graph: what only Dynamo does otherwise.  Private names of torch, guarded.

What is not there in the installed torch is named in `missing`, or, where nothing can be compiled without it, in the error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from dynascope.compiler.marks import missing


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


@contextlib.contextmanager
def transforms_closed() -> Iterator[None]:
    """A graph that fails between entering and leaving a transform (vmap, grad) must not leave it entered."""
    try:
        yield
    except BaseException:
        try:
            from torch._C import _autograd, _functorch, _set_fwd_grad_enabled

            while _functorch.peek_interpreter_stack() is not None:
                _functorch.pop_dynamic_layer_stack()
            _autograd._saved_tensors_hooks_enable()
            _functorch.set_inplace_requires_grad_allowed(False)
            _set_fwd_grad_enabled(True)
        except (ImportError, AttributeError) as error:
            missing["transforms of a graph that failed"] = str(error)
        raise
