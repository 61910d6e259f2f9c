"""Isolates a graph that is run on its own: turns off the caller's settings in torch, and compiles the graph with a backend.

The caller's settings are modes, inference mode, gradient mode, autocast, transforms, default device and dtype, and the
TORCH_TRACE log that is being written.  They are restored exactly, and so are the switches of forward gradients and of hooks on
saved tensors, which the graph may change.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

from dynascope.compiler.capture.torch_private.availability import guarded

Undo = Callable[[], None]


def device_types() -> list[str]:
    """The types of the devices on which a graph can run here: the CPU, and the accelerator if one is available."""
    import torch

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return ["cpu"] if accelerator is None else ["cpu", accelerator.type]


@contextlib.contextmanager
def neutral() -> Iterator[None]:
    """Turn off modes, transforms, gradients and autocast; make the CPU the default device, and float32 the default dtype."""
    import torch

    with contextlib.ExitStack() as stack:
        for name, remove in _REMOVED.items():
            with guarded(f"{name}, for a graph that is run alone"):
                stack.callback(remove())
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float32)
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.no_grad())
        for kind in device_types():
            stack.enter_context(torch.autocast(kind, enabled=False))
        yield


def _function_modes() -> Undo:
    """Remove the `TorchFunctionMode`s, of which the default device is one."""
    from torch._C import _len_torch_function_stack, _pop_torch_function_stack, _push_on_torch_function_stack

    modes = [_pop_torch_function_stack() for _ in range(_len_torch_function_stack())]

    def undo() -> None:
        while _len_torch_function_stack():
            _pop_torch_function_stack()
        while modes:
            _push_on_torch_function_stack(modes.pop())

    return undo


def _dispatch_modes() -> Undo:
    from torch.utils._python_dispatch import _disable_current_modes

    stack = contextlib.ExitStack()
    stack.enter_context(_disable_current_modes())
    return stack.close


def _transforms() -> Undo:
    """Leave transforms such as vmap and grad; the undo first leaves those that a failing graph has entered and not left."""
    from torch._C import _functorch

    outer = []
    while _functorch.peek_interpreter_stack() is not None:
        outer.append(_functorch.pop_dynamic_layer_stack())
    allowed = _functorch.get_inplace_requires_grad_allowed()

    def undo() -> None:
        while _functorch.peek_interpreter_stack() is not None:
            _functorch.pop_dynamic_layer_stack()
        while outer:
            _functorch.push_dynamic_layer_stack(outer.pop())
        _functorch.set_inplace_requires_grad_allowed(allowed)

    return undo


def _saved_tensors_hooks() -> Undo:
    from torch._C import _autograd

    forbidden = _autograd._saved_tensors_hooks_get_disabled_error_message()
    if forbidden is None:
        return _autograd._saved_tensors_hooks_enable
    return lambda: _autograd._saved_tensors_hooks_disable(forbidden)


def _forward_gradients() -> Undo:
    from torch._C import _exit_dual_level, _is_fwd_grad_enabled, _set_fwd_grad_enabled
    from torch.autograd import forward_ad

    enabled, level = _is_fwd_grad_enabled(), forward_ad._current_level

    def undo() -> None:
        _set_fwd_grad_enabled(enabled)
        if level < 0:
            with contextlib.suppress(RuntimeError):  # the graph entered no level, or has left it
                _exit_dual_level(level=0)

    return undo


def _trace() -> Undo:
    """Keep the compiles of this thread out of the user's TORCH_TRACE log, which is about the program."""
    from torch._logging import _internal

    this_thread = threading.get_ident()

    def keep(record: logging.LogRecord) -> bool:
        metadata: Any = getattr(record, "metadata", None)
        # a `str` record is written once in a process, and later records refer to it
        return threading.get_ident() != this_thread or next(iter(metadata or ()), "") == "str"

    _internal.trace_log.addFilter(keep)
    return lambda: _internal.trace_log.removeFilter(keep)


#: name of a setting of the caller's -> turns it off, where needed, and returns a function that restores it
_REMOVED: dict[str, Callable[[], Undo]] = {
    "functions' modes": _function_modes,
    "dispatch modes": _dispatch_modes,
    "transforms": _transforms,
    "hooks of saved tensors": _saved_tensors_hooks,
    "forward gradients": _forward_gradients,
    "the trace": _trace,
}


def compiled_graph(backend: str, module: Any, inputs: list[Any]) -> Callable[..., Any]:
    """Compile an FX graph with a backend, as Dynamo does, but with static sizes; raises what the backend raises."""
    import torch
    from torch._dynamo import lookup_backend
    from torch._guards import TracingContext, tracing
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    # with a ShapeEnv, numbers that are read from tensors (`.item()`) become symbols instead of failing the compile
    mode = FakeTensorMode(shape_env=ShapeEnv())
    fakes = [mode.from_tensor(x, static_shapes=True) if isinstance(x, torch.Tensor) else x for x in inputs]
    with tracing(TracingContext(mode)):
        made: Callable[..., Any] = lookup_backend(backend)(module, fakes)
    return made
