"""The private torch APIs that dynascope uses to *steer*, beside the `hook_points` with which it observes.

What is not there in the installed torch is left out, and `missing` says so in words for the report.
"""

from __future__ import annotations

import contextlib
import difflib
import logging
import sys
import typing
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from dynascope.compiler.source.places import in_torch
from dynascope.compiler.torch_private.marks import ORIGINAL
from dynascope.compiler.torch_private.marks import missing as missing


def known_codes() -> list[CodeType]:
    """The user's code objects that Dynamo has been asked about and may hold compiled code or skip marks for."""
    convert_frame = sys.modules.get("torch._dynamo.convert_frame")
    if convert_frame is None:
        return []
    try:
        # functions that were only ever inlined are known through their resume functions (nested graph breaks)
        resumed = sys.modules["torch._dynamo.resume_execution"].ContinueExecutionCache.cache.refs.values()
        codes = [reference() for reference in [*convert_frame.input_codes.seen, *resumed]]
    except (AttributeError, KeyError, TypeError) as error:
        missing["codes Dynamo knows"] = str(error)
        return []
    return [c for c in codes if c is not None and (not in_torch(c.co_filename) or _wraps_users_code(c))]


def _wraps_users_code(code: CodeType) -> bool:
    """The wrapper that torch puts around every function decorated with error_on_graph_break: all share one code object."""
    return code.co_name == "inner" and code.co_filename.endswith("external_utils.py")


def is_known(code: CodeType) -> bool:
    """Whether Dynamo has been asked about this code object before."""
    convert_frame = sys.modules.get("torch._dynamo.convert_frame")
    return convert_frame is not None and code in convert_frame.input_codes


def compiled_versions(code: CodeType) -> list[tuple[str, CodeType]]:
    """(compile id, compiled code object) of every version that Dynamo holds for a code object."""
    eval_frame = sys.modules.get("torch._dynamo.eval_frame")
    if eval_frame is None:
        return []
    try:
        entries = eval_frame._debug_get_cache_entry_list(code)
        return [(str(entry.compile_id), entry.code) for entry in entries]
    except Exception as error:
        missing["compiled versions"] = f"{type(error).__name__}: {error}"
        return []


#: how often `forgotten_shapes` was entered
times_forgotten = 0


@contextlib.contextmanager
def forgotten_shapes() -> Iterator[None]:
    """Automatic dynamic shapes of the user's code, forgotten for the duration and put back afterwards.

    Dynamo keys them by file, line and name, so without this the third run of a cell with other sizes would
    trace symbolically because of the first two.
    """
    global times_forgotten
    times_forgotten += 1
    pgo = sys.modules.get("torch._dynamo.pgo")
    try:
        state = None if pgo is None else pgo.get_code_state()
    except Exception as error:
        missing["automatic dynamic shapes"] = f"{type(error).__name__}: {error}"
        state = None
    if state is None:
        yield
        return
    saved = {key: state.pop(key) for key in [k for k in state if not in_torch(k.filename)]}
    try:
        yield
    finally:
        # the user's code may have reset torch, which replaces the table
        state = pgo.get_code_state() if pgo is not None else state
        for key in [k for k in state if not in_torch(k.filename)]:
            del state[key]
        state.update(saved)


def _fast_mark() -> Callable[[str], contextlib.AbstractContextManager[Any]]:
    import torch

    fast = getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", None)
    return fast if fast is not None else torch.profiler.record_function


def profiler_mark(name: str) -> contextlib.AbstractContextManager[Any]:
    """Shows a block in the profiler; where torch has it, without the microseconds that `record_function` takes."""
    return _fast_mark()(name)


@contextlib.contextmanager
def marked_graphs(namespaces: Iterable[dict[str, Any]], mark: str) -> Iterator[bool]:
    """For the duration, each captured graph shows up in the profiler as `mark` and its name, whatever the backend.

    Yields whether there is any.

    Compiled code finds its graphs as globals, `__compiled_fn_...`; there, and nowhere else, they are wrapped.
    """
    import torch
    import torch._dynamo.eval_frame as eval_frame

    def marked(name: str, graph: Any) -> Any:
        label = f"{mark} {name}"

        def run(*args: Any, **kwargs: Any) -> Any:
            with record(label):
                return graph(*args, **kwargs)

        skip = getattr(eval_frame, "skip_code", None)
        if skip is None:
            return torch.compiler.disable(run)
        skip(run.__code__)  # else Dynamo would compile it: it is called from compiled code
        return run

    record = _fast_mark()

    wrapped: list[tuple[dict[str, Any], str, Any, Any]] = []
    for namespace in {id(n): n for n in namespaces}.values():
        for name in [n for n in list(namespace) if isinstance(n, str) and n.startswith("__compiled_fn_")]:
            graph = namespace[name]
            namespace[name] = wrapper = marked(name, graph)
            wrapped.append((namespace, name, graph, wrapper))
    try:
        yield bool(wrapped)
    finally:
        for namespace, name, graph, wrapper in wrapped:
            if namespace.get(name) is wrapper:
                namespace[name] = graph


def interned_strings() -> dict[int, str]:
    """The structured trace's table of strings (they are sent once per process, perhaps before we listened)."""
    structured = sys.modules.get("torch._logging.structured")
    table = getattr(structured, "INTERN_TABLE", None) or {}
    return {number: text for text, number in table.items()}


def compiles() -> int:
    """How often Dynamo has set about compiling a frame since it was reset, in any thread."""
    counter = getattr(sys.modules.get("torch._dynamo.convert_frame"), "FRAME_COMPILE_COUNTER", None)
    if counter is None:
        missing["counting compiles"] = "no FRAME_COMPILE_COUNTER"
        return 0
    return sum(counter.values())


def generation() -> object:
    """An object that is another one after each `torch._dynamo.reset()`, with which compile ids start anew."""
    pgo = sys.modules.get("torch._dynamo.pgo")
    return getattr(pgo, "_CODE_STATE", None)


Sizes = dict[tuple[str, int, str], dict[str, bool]]


def known_sizes() -> Sizes:
    """(file, first line, name) of the user's code -> inputs whose sizes Dynamo has noted, and whether they are dynamic now."""
    pgo = sys.modules.get("torch._dynamo.pgo")
    state = getattr(pgo, "_CODE_STATE", None) or {}
    found: Sizes = {}
    try:
        for code, known in list(state.items()):
            if not in_torch(code.filename):
                names = {n: _is_dynamic(pgo, entry) for n, entry in known.automatic_dynamic.items()}
                found[(code.filename, code.firstlineno, code.name)] = names
    except Exception as error:
        missing["automatic dynamic shapes"] = f"{type(error).__name__}: {error}"
    return found


def _is_dynamic(pgo: Any, entry: Any) -> bool:
    dynamic = pgo.auto_dynamic
    return entry.scalar is dynamic or (isinstance(entry.size, tuple) and any(size is dynamic for size in entry.size))


def has_nested_graph_breaks() -> bool:
    """Whether this torch can resume all callers of a break at once."""
    import torch._dynamo

    return hasattr(torch._dynamo.config, "nested_graph_breaks")


@contextlib.contextmanager
def dynamo_config(**values: Any) -> Iterator[None]:
    """torch._dynamo.config with these values, restored exactly."""
    import torch._dynamo

    config: Any = torch._dynamo.config
    with config.patch(**values):
        yield


@contextlib.contextmanager
def flag_kept() -> Iterator[None]:
    """`error_on_graph_break` is afterwards what it was, also where an interrupt hit torch while it was setting it."""
    import torch._dynamo.decorators as decorators

    get = getattr(decorators, "_get_error_on_graph_break", None)
    put = getattr(decorators, "_set_error_on_graph_break", None)
    if get is None or put is None:
        yield
        return
    before = get()
    try:
        yield
    finally:
        if get() != before:
            put(before)


@contextlib.contextmanager
def no_caches() -> Iterator[None]:
    """Inductor's and AOTAutograd's caches off, restored exactly.

    Not torch's `force_disable_caches`: that one warns in the user's notebook.
    """
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    off = {
        inductor: ("fx_graph_cache", "fx_graph_remote_cache"),
        functorch: ("enable_autograd_cache", "enable_remote_autograd_cache"),
    }
    with contextlib.ExitStack() as stack:
        for module, names in off.items():
            config: Any = module
            stack.enter_context(config.patch({name: False for name in names if hasattr(config, name)}))
        yield


class _Quiet(logging.Filter):
    """Drops what torch logs of a failed trial: the eager run after it raises the same error, and the report tells."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = str(record.msg).lstrip()
        return not text.startswith(("WON'T CONVERT", "failed while attempting to run meta", "Graph break from `Tensor.item()`"))


_QUIET_LOGGERS = ("torch._dynamo.convert_frame", "torch._subclasses.fake_tensor", "torch._dynamo.variables.tensor")


@contextlib.contextmanager
def suppressed_errors() -> Iterator[None]:
    """Where compiling a frame fails, run it eagerly: the eager exception, effects and names come back.

    Dynamo logs a warning for each; the report tells of it instead.
    """
    quiet = _Quiet()
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).addFilter(quiet)
    try:
        with dynamo_config(suppress_errors=True):
            yield
    finally:
        for name in _QUIET_LOGGERS:
            logging.getLogger(name).removeFilter(quiet)


def backends() -> list[str]:
    """Names of every backend that torch.compile takes."""
    import torch._dynamo

    return sorted(torch._dynamo.list_backends(exclude_tags=()))


def modes() -> list[str]:
    """The modes that Inductor knows; [] where it does not say."""
    import torch._inductor

    try:
        return list(torch._inductor.list_mode_options())
    except (AttributeError, TypeError) as error:
        missing["Inductor's modes"] = str(error)
        return []


def refused_option(options: dict[str, Any]) -> str | None:
    """Why Inductor would refuse one of these options, in one line; None where it takes them all."""
    if not options:
        return None
    import torch._inductor.config as inductor

    config: Any = inductor
    try:
        known = config.get_config_copy()
        for name, value in options.items():
            name = name.replace("-", "_")
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                return f"Inductor has no option {name!r}" + (f": did you mean {close[0]}?" if close else "")
            kind = config.get_type(name)
            if typing.get_origin(kind) is None and not isinstance(value, kind):
                return f"Inductor's option {name} takes a {type(known[name]).__name__}, not {value!r}"
    except (AttributeError, TypeError) as error:
        missing["Inductor's options"] = str(error)
    return None


def inner_function(compiled: Any) -> Any:
    """What `torch.compile` was given to make `compiled`; `compiled` itself where it is not compiled."""
    return getattr(compiled, ORIGINAL, None) or getattr(compiled, "_orig_mod", None) or compiled


def error_on_graph_break() -> Any:
    """Torch's own region, the very object that Dynamo knows; RuntimeError where this torch has none."""
    import torch._dynamo

    found = getattr(torch._dynamo, "error_on_graph_break", None)
    if found is None:
        missing["error_on_graph_break"] = "not in this torch"
        raise RuntimeError(f"torch {torch.__version__} has no error_on_graph_break: regions need torch 2.9 or newer")
    return found


def refusals() -> tuple[type[BaseException], ...]:
    """What Dynamo raises where it, or a backend, refuses the user's code."""
    import torch._dynamo.exc as exc

    names = ("Unsupported", "UserError", "InternalTorchDynamoError", "BackendCompilerFailed")
    absent = [name for name in names if not hasattr(exc, name)]
    if absent:
        missing["the compiler's exceptions"] = f"no {', '.join(absent)}"
    return tuple(getattr(exc, name) for name in names if name not in absent)


@contextlib.contextmanager
def around_compiled_code(enter: Callable[[], None], leave: Callable[[], None]) -> Iterator[None]:
    """For the duration, call `enter` whenever torch enters compiled code from eager code, `leave` when it is back.

    Where torch has no such point, nothing is called.
    """
    import torch._dynamo.eval_frame as eval_frame

    original = getattr(eval_frame, "_maybe_set_eval_frame", None)
    if original is None:
        missing["entering compiled code"] = "no _maybe_set_eval_frame"
        yield
        return

    outermost: list[FrameType] = []  # torch's own frame that entered compiled code: the same one leaves it

    def switch(callback: Any) -> Any:
        caller = sys._getframe(1)
        if outermost and caller is outermost[0]:
            outermost.clear()
            before = original(callback)
            leave()
            return before
        if not outermost and callback is not None and caller.f_code.co_name not in ("__enter__", "__exit__"):
            outermost.append(caller)
            enter()
        return original(callback)

    vars(eval_frame)["_maybe_set_eval_frame"] = switch
    try:
        yield
    finally:
        vars(eval_frame)["_maybe_set_eval_frame"] = original
