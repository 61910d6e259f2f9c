"""Reads and sets how torch compiles: backends, modes, options, settings and regions; handles the compiler's errors and logs."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import logging
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dynascope.compiler.capture.torch_private import if_present, note_missing
from dynascope.compiler.patching import ABSENT, patched


def backends() -> list[str]:
    """Names of all backends that torch.compile accepts."""
    import torch._dynamo

    return sorted(torch._dynamo.list_backends(exclude_tags=()))


def compiles_nothing(*, has_compiled: bool = False) -> str | None:
    """Why code that is called now runs eagerly, in the past tense; None if torch.compile compiles it.

    `has_compiled`: whether it has been compiled, as a stance may still use that.
    """
    with if_present("the stance"):
        from torch._dynamo import eval_frame

        stance = eval_frame._stance.stance
        if stance == "force_eager" or (stance == "eager_on_recompile" and not has_compiled):
            return f'torch.compiler.set_stance("{stance}") was in force'
    with if_present("the switch of Dynamo"):
        if importlib.import_module("torch._dynamo.config").disable:
            return "Dynamo was switched off (TORCH_COMPILE_DISABLE=1, or torch._dynamo.config.disable)"
    return None


def modes() -> list[str]:
    """The modes that Inductor knows; [] if this torch does not list them."""
    import torch._inductor

    with if_present("Inductor's modes"):
        return list(torch._inductor.list_mode_options())
    return []


def options_for_backend(options: dict[str, Any]) -> dict[str, Any]:
    """The options that torch.compile passes on to the backend; the others it takes itself."""
    return {name: value for name, value in options.items() if name not in ("guard_filter_fn", "use_aoti")}


def refused_option(options: dict[str, Any]) -> str | None:
    """Why Inductor would refuse one of these options, in one line; None if it accepts them all."""
    if not options:
        return None
    config = importlib.import_module("torch._inductor.config")
    with if_present("Inductor's options"):
        known = config.get_config_copy()
        for name, value in options.items():
            name = str(name).replace("-", "_")
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                return f"Inductor has no option {name!r}" + (f": did you mean {close[0]}?" if close else "")
            kind = config.get_type(name)
            if typing.get_origin(kind) is None and not isinstance(value, kind):
                article = "an" if kind.__name__[0] in "aeiou" else "a"
                return f"Inductor's option {name} takes {article} {kind.__name__}, not {' '.join(repr(value).split())[:60]}"
    return None


def nested_graph_breaks() -> bool | None:
    """Whether Dynamo is set to resume a break's function and all its callers at once; None if this torch lacks the setting."""
    return getattr(importlib.import_module("torch._dynamo.config"), "nested_graph_breaks", None)


def dynamo_setting(name: str) -> Any:
    """The value in torch._dynamo.config; ABSENT if this torch lacks it."""
    return getattr(importlib.import_module("torch._dynamo.config"), name, ABSENT)


def dynamo_config(**values: Any) -> Any:
    """A context manager that sets these values in torch._dynamo.config, and restores them exactly."""
    return importlib.import_module("torch._dynamo.config").patch(**values)


@contextlib.contextmanager
def no_caches() -> Iterator[None]:
    """Turn off Inductor's and AOTAutograd's caches for the duration; restored exactly.

    torch's `force_disable_caches` is not used because it shows a warning in the user's notebook.
    """
    caches = {
        "torch._inductor.config": ("fx_graph_cache", "fx_graph_remote_cache"),
        "torch._functorch.config": ("enable_autograd_cache", "enable_remote_autograd_cache"),
    }
    with contextlib.ExitStack() as stack:
        for module, names in caches.items():
            config = importlib.import_module(module)
            stack.enter_context(config.patch({name: False for name in names if hasattr(config, name)}))
        yield


def refusals() -> tuple[type[BaseException], ...]:
    """The exceptions that Dynamo raises if it, or a backend, refuses the user's code."""
    import torch._dynamo.exc as exc

    names = ("Unsupported", "UserError", "InternalTorchDynamoError", "BackendCompilerFailed")
    if absent := [name for name in names if not hasattr(exc, name)]:
        note_missing("the compiler's exceptions", f"no {', '.join(absent)}")
    return tuple(getattr(exc, name) for name in names if name not in absent)


#: beginnings of the messages that torch logs about a failed attempt or a call of `.item()`; the report has the error or the
#: graph break
_FAILED_ATTEMPT = ("WON'T CONVERT", "failed while attempting to run meta", "Graph break from `Tensor.item()`")
_QUIET_LOGGERS = ("torch._dynamo.convert_frame", "torch._subclasses.fake_tensor", "torch._dynamo.variables.tensor")


@contextlib.contextmanager
def suppressed_errors() -> Iterator[None]:
    """Run a frame eagerly if compiling it fails, so that exceptions and side effects are those of the eager run.

    torch's messages about failed frames and calls of `.item()` are not shown: the report has the errors and graph breaks.
    """

    def is_shown(record: logging.LogRecord) -> bool:
        return not str(record.msg).lstrip().startswith(_FAILED_ATTEMPT)

    with dynamo_config(suppress_errors=True), _filtered(map(logging.getLogger, _QUIET_LOGGERS), is_shown):
        yield


def quiet_compiler() -> contextlib.AbstractContextManager[None]:
    """Drop the messages that torch logs to a stream, for the duration; the structured trace continues."""
    loggers = [logger for name, logger in list(logging.root.manager.loggerDict.items()) if name.partition(".")[0] == "torch"]
    own = [h for logger in loggers if isinstance(logger, logging.Logger) for h in logger.handlers]
    return _filtered([handler for handler in own if type(handler) is logging.StreamHandler], lambda record: False)


@contextlib.contextmanager
def _filtered(places: Iterable[logging.Filterer], is_shown: Callable[[logging.LogRecord], bool]) -> Iterator[None]:
    """Filter the messages of these loggers or handlers for the duration.

    A warning that torch gives once in a process, and that nobody would see now, is kept for the user's own compiles.
    """
    with contextlib.ExitStack() as stack:
        for place in places:
            stack.callback(place.removeFilter, is_shown)
            place.addFilter(is_shown)
        tensors = importlib.import_module("torch._dynamo.variables.tensor").TensorVariable
        stack.enter_context(_replaced(tensors, "_warn_capture_scalar_outputs", staticmethod(lambda: None)))
        yield


def unmeasured_guards() -> contextlib.AbstractContextManager[None]:
    """Keep torch from timing the guards of new compiles, for the duration: the timing evicts the CPU's caches."""
    return _replaced(importlib.import_module("torch._dynamo.guards"), "profile_guard_manager", lambda *_: 0.0)


def lenient_regions() -> contextlib.AbstractContextManager[None]:
    """For the duration, graph breaks are errors only with fullgraph, whatever the regions of the code say."""
    return _replaced(importlib.import_module("torch._dynamo.symbolic_convert"), "_get_error_on_graph_break", lambda: False)


def _replaced(owner: Any, name: str, value: Any) -> contextlib.AbstractContextManager[None]:
    """Replace an attribute for the duration, if this torch has it."""
    return patched(owner, {name: value} if hasattr(owner, name) else {})


def error_on_graph_break() -> Any:
    """torch's function that makes regions, which Dynamo recognizes in traced code; raises RuntimeError if torch lacks it."""
    import torch._dynamo

    region = getattr(torch._dynamo, "error_on_graph_break", None)
    if region is None:
        note_missing("error_on_graph_break", "not in this torch")
        raise RuntimeError(f"torch {torch.__version__} has no error_on_graph_break: regions need torch 2.9 or newer")
    return region


@contextlib.contextmanager
def flag_kept() -> Iterator[None]:
    """Restore the flag after the block, even if an interrupt keeps torch from restoring it."""
    decorators: Any = importlib.import_module("torch._dynamo.decorators")
    get = getattr(decorators, "_get_error_on_graph_break", lambda: None)
    before = get()
    try:
        yield
    finally:
        if get() != before:
            decorators._set_error_on_graph_break(before)


def set_flag_of(compiled: Any, flag: bool) -> bool:
    """Set error_on_graph_break on a compiled module; returns False for a function, or if modules of this torch lack it."""
    context = getattr(compiled, "dynamo_ctx", None)
    if context is None or not hasattr(context, "error_on_graph_break"):
        return False
    context.error_on_graph_break = flag
    return True
