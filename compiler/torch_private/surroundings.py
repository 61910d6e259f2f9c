"""Torch as it is without what the caller has set: for a graph that is run alone, and put back exactly afterwards.

Modes, inference mode, gradient mode, autocast, transforms, default device and dtype are the caller's, and so is a trace that
is being written.  Private names of torch, guarded: what is not there in the installed torch is named in `missing`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

from dynascope.compiler.torch_private.marks import missing

Undo = Callable[[], None]


@contextlib.contextmanager
def neutral() -> Iterator[None]:
    """No mode, no transform, no gradients, no autocast; on the CPU, in float32, where nothing else is said."""
    import torch

    accelerator = torch.accelerator.current_accelerator()
    kinds = {"cpu", accelerator.type if accelerator is not None else "cpu"}
    with contextlib.ExitStack() as stack:
        for name, take_away in _TAKEN_AWAY.items():
            try:
                undo = take_away()
            except (ImportError, AttributeError) as error:
                missing[f"{name}, for a graph that is run alone"] = str(error)
            else:
                stack.callback(undo)
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.no_grad())
        for kind in kinds:
            stack.enter_context(torch.autocast(kind, enabled=False))
        yield


def profiler_is_on() -> bool:
    """Whether a profiler runs already, in any thread: there can be only one, and starting a second ends the first."""
    try:
        from torch.autograd import _profiler_enabled, profiler  # type: ignore[attr-defined]

        return bool(_profiler_enabled() or profiler._is_profiler_enabled)
    except (ImportError, AttributeError) as error:
        missing["whether a profiler is on"] = str(error)
        return False


def _dtype() -> Undo:
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    return lambda: torch.set_default_dtype(before)


def _function_modes() -> Undo:
    """A default device is one of them."""
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
    """vmap and grad; a graph that fails between entering and leaving one must not leave it entered."""
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
            with contextlib.suppress(RuntimeError):  # none was left entered
                _exit_dual_level(level=0)

    return undo


def _trace() -> Undo:
    """A trace that the user writes (TORCH_TRACE) tells of what the program compiled: not of what this thread compiles now."""
    from torch._logging import _internal

    mine = threading.get_ident()

    def is_the_programs(record: logging.LogRecord) -> bool:
        metadata: Any = getattr(record, "metadata", None)
        # each text is written once in a process, and later records refer to it
        return threading.get_ident() != mine or next(iter(metadata or ()), "") == "str"

    _internal.trace_log.addFilter(is_the_programs)
    return lambda: _internal.trace_log.removeFilter(is_the_programs)


_TAKEN_AWAY: dict[str, Callable[[], Undo]] = {
    "the default dtype": _dtype,
    "functions' modes": _function_modes,
    "dispatch modes": _dispatch_modes,
    "transforms": _transforms,
    "hooks of saved tensors": _saved_tensors_hooks,
    "forward gradients": _forward_gradients,
    "the trace": _trace,
}
