"""Every private torch API that dynascope touches to *observe*: one function for each hook.

A point installs one hook and returns what undoes it; it may raise where it does not fit the installed torch,
and is then left out and named in `report.hooks`.  Each passes `*args, **kwargs` through.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from dynascope.compiler.events import schema
from dynascope.compiler.events.records import QUIET, record_compile_id
from dynascope.compiler.source.origin import in_torch
from dynascope.compiler.torch_private.hooks import Attempt, Hooks, Undo
from dynascope.compiler.torch_private.translators import (
    describe,
    entered_function,
    instructions_around,
    module_path,
    offset_positions,
    outermost,
    positions,
    regions_around,
    regions_of,
    summaries,
    symbol_sizes,
    without_traceback,
)


def _patch(owner: Any, name: str, wrap: Callable[[Any], Any]) -> Undo:
    """Replace `owner.name` by `wrap(original)`; the Undo puts back the very same object, or its absence."""
    present = name in vars(owner)
    raw = vars(owner)[name] if present else getattr(owner, name)
    kind = type(raw) if isinstance(raw, (classmethod, staticmethod)) else None
    function = raw.__func__ if kind else raw
    wrapped = wrap(function)
    setattr(owner, name, kind(wrapped) if kind else wrapped)

    def undo() -> None:
        if present:
            setattr(owner, name, raw)
        else:
            delattr(owner, name)

    return undo


def _structured_trace(hooks: Hooks) -> Undo:
    """All facts and texts: the same records that TORCH_TRACE writes to files."""
    from torch._logging import _internal

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            hooks.safely(trace_record, record)

        def handleError(self, record: logging.LogRecord) -> None:
            """Never torch's or the user's trouble; `safely` names what went wrong."""

    def trace_record(record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None)
        if metadata is None or next(iter(metadata), "") in QUIET:
            return
        hooks.emit(schema.Trace(metadata, getattr(record, "payload", None), compile_id=record_compile_id(metadata)))

    handler = hooks.trace_handler = Handler(logging.DEBUG)
    _internal.trace_log.addHandler(handler)
    return functools.partial(_internal.trace_log.removeHandler, handler)


def _quiet_trace(hooks: Hooks) -> Undo:
    """Do not even make the trace's records that nobody reads: they are most of what recording would cost.

    torch's modules hold the function itself, so its code is what changes; a log that the user asked for gets all.
    """
    from torch._logging import _internal

    others = [h for h in _internal.trace_log.handlers if h is not hooks.trace_handler]
    if any(getattr(h, "root_dir", "") is not None for h in others):
        return lambda: None  # a log that the user asked for stays as it is, to the letter

    function: Any = _internal.trace_structured
    original = function.__code__
    passes: Any = FunctionType(original, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    passes.__kwdefaults__ = function.__kwdefaults__

    def gate(name: str, metadata_fn: Callable[[], Any], payload_fn: Callable[[], Any], rest: dict[str, Any]) -> None:
        if _internal.trace_log.handlers == [hooks.trace_handler]:
            if name in QUIET:
                return
            if name == "artifact":
                metadata = metadata_fn()
                label = str(metadata.get("name"))
                if label.endswith("_BYTECODE") and not hooks.bytecode:
                    return
                if label == "dynamo_graph_break_reason":
                    payload_fn = functools.partial(without_traceback, payload_fn)
                passes(name, lambda: metadata, payload_fn=payload_fn, **rest)
                return
        passes(name, metadata_fn, payload_fn=payload_fn, **rest)

    def shim(name: str, metadata_fn: Callable[[], Any] = dict, *, payload_fn: Any = None, **rest: Any) -> None:
        passed_on: Any = "gate"  # the constant is replaced by the function
        passed_on(name, metadata_fn, payload_fn, rest)

    code = shim.__code__
    function.__code__ = code.replace(co_consts=tuple(gate if c == "gate" else c for c in code.co_consts))

    def undo() -> None:
        function.__code__ = original

    return undo


def _frames(hooks: Hooks) -> Undo:
    """The outcome of every frame that Dynamo is asked about."""
    from torch._dynamo import convert_frame

    def begin(frame: Any) -> None:
        hooks.attempts().append(Attempt(hooks.code(frame.f_code)))

    def end(result: Any, error: BaseException | None) -> None:
        attempt = hooks.attempts().pop()
        compiled = getattr(result, "guarded_code", None) is not None
        if attempt.compile_id is None and not compiled and error is None and in_torch(attempt.code.file):
            return  # torch's own plumbing, met on the way and never traced
        cause = error if error is not None else attempt.error
        hooks.emit(schema.FrameEnd(
            attempt.code,
            "raised" if error is not None else "compiled" if compiled else "skipped",
            skip_reason=getattr(result, "skip_reason", None),
            error=None if cause is None else describe(cause),
            stopped=attempt.stopped,
            fullgraph=attempt.fullgraph,
            error_on_graph_break=attempt.error_on_graph_break,
            compile_id=attempt.compile_id,
        ))  # fmt: skip

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def __call__(self: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
            hooks.safely(begin, frame)
            try:
                result = original(self, frame, *args, **kwargs)
            except BaseException as error:
                hooks.safely(end, None, error)
                raise
            hooks.safely(end, result, None)
            return result

        return __call__

    return _patch(convert_frame.CatchErrorsWrapper, "__call__", wrap)


def _swallowed_errors(hooks: Hooks) -> Undo:
    """The exception that a skip swallows, and the frame's fullgraph."""
    from torch._dynamo import convert_frame

    def note(converter: Any, error: BaseException | None) -> None:
        attempt = hooks.attempt()
        if attempt is None:
            return
        attempt.fullgraph = getattr(converter, "_one_graph", None)
        if error is not None:
            attempt.error = error
            attempt.error_on_graph_break = getattr(getattr(converter, "_box", None), "error_on_graph_break", None)

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            hooks.safely(note, self, None)
            try:
                return original(self, *args, **kwargs)
            except BaseException as error:
                hooks.safely(note, self, error)
                raise

        return __call__

    return _patch(convert_frame.ConvertFrameAssert, "__call__", wrap)


def _stops(hooks: Hooks) -> Undo:
    """Where tracing stopped by an exception: innermost line and column, then the calls around it."""
    from torch._dynamo import symbolic_convert

    restarts = (
        "SpeculationRestartAnalysis",
        "RestartAnalysis",
        "UnspecializeRestartAnalysis",
        "TensorifyScalarRestartAnalysis",
    )

    def stopped(translator: Any, error: BaseException) -> None:
        attempt = hooks.attempt()
        name = type(error).__name__
        if attempt is None or name in restarts:
            return
        chain = attempt.stopped
        if chain and chain[0].error != id(error):
            chain.clear()
        code = translator.f_code
        chain.append(schema.Stop(
            name, str(error).split("\n", 1)[0],
            schema.Location.at(code.co_filename, code.co_name, positions(translator.current_instruction)),
            getattr(translator, "error_on_graph_break", None),
            schema.TracedCall(code.co_name, id(code), regions_of(translator)),
            error=id(error),
        ))  # fmt: skip

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(self, *args, **kwargs)
            except BaseException as error:
                hooks.safely(stopped, self, error)
                raise

        return run

    return _patch(symbolic_convert.InstructionTranslatorBase, "run", wrap)


def _graph_ends(hooks: Hooks) -> Undo:
    """The end of each graph: why, at which instruction, and the flag in force there."""
    from torch._dynamo import output_graph

    def ended(translator: Any, args: Any, kwargs: Any) -> None:
        reason = kwargs.get("reason", args[0] if args else None)
        code, attempt = translator.f_code, hooks.attempt()
        if attempt is not None:
            attempt.instructions = instructions_around(translator)
        hooks.emit(schema.GraphEnd(
            str(reason.reason),
            bool(getattr(reason, "graph_break", False)),
            hooks.code(outermost(translator).f_code),
            schema.Location.at(code.co_filename, code.co_name, positions(translator.current_instruction)),
            stack=summaries(getattr(reason, "user_stack", None)),
            error_on_graph_break=getattr(translator, "error_on_graph_break", None),
            fullgraph=getattr(translator, "one_graph", None),
            around=regions_around(translator),
            stopped=list(attempt.stopped) if attempt is not None else [],
            compile_id=hooks.compile_id(),
        ))  # fmt: skip

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def compile_subgraph(self: Any, tx: Any, *args: Any, **kwargs: Any) -> Any:
            hooks.safely(ended, tx, args, kwargs)
            return original(self, tx, *args, **kwargs)

        return compile_subgraph

    return _patch(output_graph.OutputGraph, "compile_subgraph", wrap)


def _resumes(hooks: Hooks) -> Undo:
    """Which resume function continues which code object, where, and what it receives."""
    import inspect

    from torch._dynamo import resume_execution

    cache = resume_execution.ContinueExecutionCache
    names = list(inspect.signature(cache.generate).parameters)

    def made(code: CodeType, args: Any, kwargs: Any, resume: CodeType) -> None:
        given = {**dict(zip(names, (code, *args), strict=False)), **kwargs}
        metadata = cache.generated_code_metadata
        original = metadata[code].code if code in metadata else code
        attempt = hooks.attempt()
        instructions = attempt.instructions.get(id(code), ()) if attempt is not None else ()
        hooks.emit(schema.ResumeMade(
            hooks.code(code),
            hooks.code(resume),
            hooks.code(original),
            offset_positions(instructions, given["resume_offset"]),
            [str(n) for n in given.get("argnames", ())],
            given.get("nstack"),
            compile_id=hooks.compile_id(),
        ))  # fmt: skip

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def lookup(cls: Any, code: CodeType, *args: Any, **kwargs: Any) -> Any:
            resume = original(cls, code, *args, **kwargs)
            hooks.safely(made, code, args, kwargs, resume)
            return resume

        return lookup

    return _patch(cache, "lookup", wrap)


def _node_modules(hooks: Hooks) -> Undo:
    """What the trace does not tell of a captured graph: the nn.Module that each node ran in, and what its symbols stand for."""
    from torch._dynamo import output_graph

    def captured(gm: Any) -> None:
        paths = {n.name: module_path(n.meta.get("nn_module_stack")) for n in gm.graph.nodes}
        modules = {name: path for name, path in paths.items() if path}
        hooks.emit(schema.GraphCaptured(modules, symbol_sizes(gm.graph), compile_id=hooks.compile_id()))

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def call_user_compiler(self: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
            hooks.safely(captured, gm)
            return original(self, gm, *args, **kwargs)

        return call_user_compiler

    return _patch(output_graph.OutputGraph, "call_user_compiler", wrap)


def _entries(hooks: Hooks) -> Undo:
    """Which compiled functions are called: a cache hit leaves no other trace."""
    from torch._dynamo import eval_frame

    def called(frame: Any) -> None:
        function, name = entered_function(frame.f_locals.get("fn"))
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType) and id(code) not in hooks.entered:
            hooks.entered[id(code)] = (code, function.__globals__)
            hooks.emit(schema.CompiledCall(hooks.code(code), name))

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def _callback_from_stance(*args: Any, **kwargs: Any) -> Any:
            if args and type(args[0]).__name__ == "CatchErrorsWrapper":  # torch.compiler.disable comes this way, too
                hooks.safely(called, sys._getframe(1))
            return original(*args, **kwargs)

        return _callback_from_stance

    return _patch(eval_frame, "_callback_from_stance", wrap)


POINTS: dict[str, Callable[[Hooks], Undo]] = {
    "structured trace": _structured_trace,
    "quiet trace": _quiet_trace,
    "frames": _frames,
    "swallowed errors": _swallowed_errors,
    "stops": _stops,
    "graph ends": _graph_ends,
    "resume functions": _resumes,
    "node modules": _node_modules,
    "entries": _entries,
}
