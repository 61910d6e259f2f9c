"""Calls `torch.compile` as the settings say."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from dynascope.compiler.capture.torch_private import config, marks, region_flag
from dynascope.compiler.driver.regions import region
from dynascope.compiler.settings import Settings


def compile(model: Any = None, *, error_on_graph_break: bool | None = None, **arguments: Any) -> Any:
    """`torch.compile` with one more argument: `error_on_graph_break`.

        compiled = dynascope.compile(f, error_on_graph_break=True)
        compiled(x)

    Args:
        model: a function or `nn.Module`; if it is not given, a decorator is returned.
        error_on_graph_break: whether a graph break in a call of the result is an error; None: the flag in force at the call.
        arguments: all other arguments of `torch.compile`.
    """
    import torch

    if model is None:
        return functools.partial(compile, error_on_graph_break=error_on_graph_break, **arguments)
    compiled = torch.compile(model, **arguments)
    if error_on_graph_break is None:
        return compiled
    if region_flag.set_flag_of(compiled, error_on_graph_break):
        return compiled  # a module has the flag as an attribute and needs no wrapper
    return region(error_on_graph_break=error_on_graph_break)(compiled)


def entry_point(target: Any, settings: Settings) -> Callable[..., Any]:
    """A callable that runs `target` (function, bound method, nn.Module) compiled as the settings say.

    The target is not changed.  If the user has compiled it already, the original function is compiled again.
    """
    import torch

    target = marks.inner_function(target)
    restore_mark = marks.mark_of(target)
    compiled: Callable[..., Any] = torch.compile(
        target, fullgraph=settings.fullgraph, dynamic=settings.dynamic, backend=settings.backend, mode=settings.mode,
        options=dict(settings.options) or None,
    )  # fmt: skip
    restore_mark()  # torch.compile marks a module as compiled, and the target must not change
    flag = settings.error_on_graph_break
    if flag is None or settings.fullgraph:
        return compiled

    @functools.wraps(compiled)
    def run(*args: Any, **kwargs: Any) -> Any:
        with region(error_on_graph_break=flag):
            return compiled(*args, **kwargs)

    return run


@contextlib.contextmanager
def environment(settings: Settings) -> Iterator[None]:
    """Set device, nested graph breaks, caches and error suppression as the settings say, for the duration of the block."""
    import torch

    with contextlib.ExitStack() as stack:
        if settings.device is not None:
            stack.enter_context(torch.device(settings.device))
        if settings.nested_graph_breaks is not None and config.nested_graph_breaks() is not None:
            stack.enter_context(config.dynamo_config(nested_graph_breaks=settings.nested_graph_breaks))
        if not settings.cache:
            stack.enter_context(config.no_caches())
        if not settings.fullgraph:
            # without this, exceptions and side effects of the user's code would differ from those of eager code
            stack.enter_context(config.suppressed_errors())
        stack.enter_context(region_flag.flag_kept())
        yield


def is_refusal(error: BaseException) -> bool:
    """Whether the error is the compiler's refusal of the code (fullgraph, error_on_graph_break, a failing backend)."""
    if isinstance(error, config.refusals()):
        return True
    # fullgraph=True on code that Dynamo skips raises a plain RuntimeError from torch 2.11 on
    return type(error) is RuntimeError and str(error).startswith("torch.compile with fullgraph=True found no compiled frames")


def target_name(target: Any) -> str:
    """The name of a compile target in reports: `f`, `Net.generate` for a bound method, `Net` for a module."""
    target = marks.undecorated(marks.inner_function(target))
    if inspect.ismethod(target):
        return f"{type(target.__self__).__name__}.{target.__name__}"
    return str(getattr(target, "__name__", None) or type(target).__name__)
