"""Reads and restores what torch.compile leaves on functions and modules, and finds the original functions behind it.

It also watches torch enter compiled code.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType
from typing import Any

from dynascope.compiler.capture.torch_private import note_missing
from dynascope.compiler.patching import own, patched, put

#: attribute of a compiled or disabled function: the original function
ORIGINAL = "_torchdynamo_orig_callable"
_COMPILED_CALL = "_compiled_call_impl"
#: modules of torch's decorators whose wrappers keep the function in a variable named `func`
_DECORATORS = ("torch._dynamo.external_utils", "torch.utils._contextlib", "torch.amp.autocast_mode")


def inner_function(compiled: Any) -> Any:
    """The function or module from which `torch.compile` or `disable` made `compiled`; else `compiled` itself."""
    return getattr(compiled, "_orig_mod", None) or getattr(compiled, ORIGINAL, None) or compiled  # a module's has both


def is_compiled(function: Any) -> bool:
    """Whether `torch.compile` made this function, and not `torch.compiler.disable`, which sets the same attribute."""
    return hasattr(function, ORIGINAL) and not is_disabled(function)


def is_compiled_in_place(module: Any) -> bool:
    """Whether this is a module whose compiled call `nn.Module.compile` has set."""
    return getattr(module, "__dict__", {}).get(_COMPILED_CALL) is not None


def is_disabled(function: Any) -> bool:
    """Whether `torch.compiler.disable` keeps this function out of the compiler."""
    return bool(getattr(function, "_torchdynamo_disable", False))


def undecorated(function: Any) -> Any:
    """The function under `error_on_graph_break`, `no_grad`, `autocast` and torch's other decorators with such a wrapper."""
    while type(function) is FunctionType and function.__globals__.get("__name__") in _DECORATORS:
        names = function.__code__.co_freevars
        if "func" not in names or function.__closure__ is None:
            break
        function = function.__closure__[names.index("func")].cell_contents
    return function


def compiled_call(module: Any) -> Callable[[Any], None]:
    """A function that sets the module's compiled call, as `nn.Module.compile` does.

    If its argument is None, it restores the compiled call that the module has now.
    """
    attributes = module.__dict__
    before = own(attributes, _COMPILED_CALL)
    if not hasattr(type(module), _COMPILED_CALL):
        note_missing("compiled modules", f"no {_COMPILED_CALL}: a module named by -f runs as it is")
    return lambda call: put(attributes, _COMPILED_CALL, before if call is None else call)


def plain_call(module: Any) -> Any:
    """The module's call as `nn.Module.compile` compiles it: it does not go to the compiled call that the module may have."""
    call = getattr(module, "_call_impl", None)
    if call is None:
        note_missing("compiled modules", "no _call_impl: of a module that is compiled in place, hooks do not run")
    return call or module.forward


def mark_of(module: Any) -> Callable[[], None]:
    """A function that restores the present state of the attribute with which torch.compile marks a module."""
    attributes, name = getattr(module, "__dict__", {}), "_is_torch_compile"
    return functools.partial(put, attributes, name, own(attributes, name))


@contextlib.contextmanager
def around_compiled_code(enter: Callable[[], None], leave: Callable[[], None]) -> Iterator[None]:
    """For the duration, call `enter` whenever torch enters compiled code from eager code, and `leave` when torch leaves it.

    Both are called in the thread that does so; several threads may be in compiled code at once.  If this torch has no function
    that can be observed for that, nothing is called.
    """
    import torch._dynamo.eval_frame as eval_frame

    original: Any = getattr(eval_frame, "_maybe_set_eval_frame", None)
    if original is None:
        note_missing("entering compiled code", "no _maybe_set_eval_frame")
    outermost: dict[int, FrameType] = {}  # by thread: the frame of torch's that entered compiled code; the same one leaves it

    def switch(callback: Any) -> Any:
        caller, thread = sys._getframe(1), threading.get_ident()
        if caller is outermost.get(thread):
            del outermost[thread]
            before = original(callback)
            leave()
            return before
        if thread not in outermost and callback is not None and caller.f_code.co_name not in ("__enter__", "__exit__"):
            outermost[thread] = caller
            enter()
        return original(callback)

    with patched(eval_frame, {} if original is None else {"_maybe_set_eval_frame": switch}):
        yield
