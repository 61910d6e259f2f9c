"""Runs a graph on its own, isolated from the caller's settings in torch, and marks calls and graphs in the profiler.

The caller's settings are modes, inference mode, gradient mode, autocast, transforms, default device and dtype, and the
TORCH_TRACE log that is being written.  They are restored exactly, and so are the switches of forward gradients and of hooks on
saved tensors, which the graph may change.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterator
from types import FrameType
from typing import Any

import torch

from dynascope.compiler.capture.torch_private import if_present
from dynascope.compiler.patching import patched

Undo = Callable[[], None]


def device_types() -> list[str]:
    """The types of the devices on which a graph can run here: the CPU, and the accelerator if one is available."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return ["cpu"] if accelerator is None else ["cpu", accelerator.type]


def present_modes() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """The present inference mode, gradient mode and autocast, to be entered again."""
    is_inference, has_gradients = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
    casts = [(kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)) for kind in device_types()]

    @contextlib.contextmanager
    def entered() -> Iterator[None]:
        with torch.inference_mode(is_inference), torch.set_grad_enabled(has_gradients), contextlib.ExitStack() as stack:
            for kind, dtype, is_on in casts:
                stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=is_on))
            yield

    return entered


@contextlib.contextmanager
def neutral() -> Iterator[None]:
    """Turn off modes, transforms, gradients and autocast; make the CPU the default device, and float32 the default dtype."""
    with contextlib.ExitStack() as stack:
        for name, remove in _REMOVED.items():
            with if_present(f"{name}, for a graph that is run alone"):
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

    if (forbidden := _autograd._saved_tensors_hooks_get_disabled_error_message()) is None:
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


def _trace_log() -> Undo:
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
    "the trace": _trace_log,
}


def compiled_graph(backend: str, module: Any, inputs: list[Any]) -> Callable[..., Any]:
    """Compile an FX graph with a backend, as Dynamo does, but with static sizes; raises what the backend raises."""
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


def aot_eager(graph: Any, inputs: list[Any]) -> Callable[..., Any]:
    """The backend of this name for inputs that nobody asked for: a graph with an LSTM is compiled with "eager".

    On a CPU, AOTAutograd replaces an LSTM by oneDNN's, which divides by the size of the batch in C: that ends the process where
    the batch is empty.  No rule about the inputs prevents it, as a mask, too, may leave nothing of a batch; no other
    operation is known to do so.
    """
    from torch._dynamo import lookup_backend

    parts = (part.graph for part in graph.modules() if isinstance(part, torch.fx.GraphModule))
    has_lstm = any(node.target is torch.lstm for part in parts for node in part.nodes)
    made: Callable[..., Any] = lookup_backend("eager" if has_lstm else "aot_eager")(graph, inputs)
    return made


def profiler_mark(name: str) -> contextlib.AbstractContextManager[Any]:
    """A context manager that names a block in the profiler, if possible without the overhead of `record_function`."""
    fast = getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", None)
    return fast(name) if fast is not None else torch.profiler.record_function(name)


@contextlib.contextmanager
def marked_graphs(namespaces: Collection[dict[str, Any]], mark: str) -> Iterator[bool]:
    """Make each captured graph appear in the profiler as `mark` and its name, for any backend, for the duration.

    Compiled code looks up its graphs as globals `__compiled_fn_...`, so those in these namespaces are replaced by wrappers.
    Yields whether there are any.
    """
    import torch._dynamo.eval_frame as eval_frame

    def marked(name: str, graph: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            with profiler_mark(f"{mark} {name}"):
                return graph(*args, **kwargs)

        skip = getattr(eval_frame, "skip_code", None)
        if skip is None:
            return torch.compiler.disable(run)
        for function in (run, profiler_mark):  # otherwise Dynamo would compile them, because compiled code calls `run`
            skip(function.__code__)
        return run

    with contextlib.ExitStack() as patches:
        found = False
        for namespace in namespaces:
            graphs = {n: graph for n, graph in namespace.items() if isinstance(n, str) and n.startswith("__compiled_fn_")}
            patches.enter_context(patched(namespace, {name: marked(name, graph) for name, graph in graphs.items()}))
            found = found or bool(graphs)
        yield found


def profiler_is_on() -> bool:
    """Whether a profiler is already running, in any thread; starting a second one would stop it."""
    with if_present("the profiler's state"):
        from torch.autograd import _profiler_enabled, profiler  # type: ignore[attr-defined]

        return bool(_profiler_enabled() or profiler._is_profiler_enabled)
    return False


def ends_the_process(frame: FrameType | None) -> bool:
    """Whether an exception raised in this frame could end the process.

    Where torch's C++ must not throw, it asks a tensor of a mode or subclass for its device (autograd's InputMetadata does).
    The functions of higher-order operators, such as a `torch.while_loop`, are called from C++ that passes exceptions on.
    """
    while frame is not None:
        if frame.f_code.co_name in ("find_torch_dispatch_rule", "__torch_dispatch__"):
            return not any(isinstance(value, torch._ops.HigherOrderOperator) for value in frame.f_locals.values())
        frame = frame.f_back
    return False
