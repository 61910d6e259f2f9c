"""Every private torch API that dynascope touches to *observe*, in one place.

A hook adds eyes to one point of TorchDynamo.  Each is installed on its own; one that does not fit
the installed torch is left out and named, with the reason, in `report.hooks`.  A hook passes
everything through, swallows its own errors (they are counted, never raised) and is undone exactly.

All recordings share one installation: the first one installs the hooks, the last one removes them,
in whichever order and threads they come and go.  Events are plain dicts; code objects appear in them
as `CodeInfo` dicts with a `uid`, and are kept alive while a recording runs so that the uids stay unique.
"""

from __future__ import annotations

import functools
import logging
import sys
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

from dynascope.compiler.places import in_torch

Sink = Callable[[dict[str, Any]], None]
Undo = Callable[[], None]

_QUIET_TRACE_EVENTS = frozenset({
    "str", "chromium_event", "describe_tensor", "describe_storage", "describe_source", "create_symbol", "create_unbacked_symbol",
    "guard_added", "guard_added_fast", "propagate_real_tensors_provenance", "expression_created", "symbolic_shape_specialization",
    "dump_file", "link", "torch_version", "exported_program", "dynamo_side_effects",
})  # fmt: skip


class Hooks:
    """The one installation of all hooks; `attach` and `detach` a sink."""

    def __init__(self) -> None:
        self.sinks: list[Sink] = []
        self.status: dict[str, bool | str] = {}
        self.errors = 0
        self._undo: list[Undo] = []
        self._lock = threading.RLock()
        self._local = threading.local()
        self._codes: dict[int, tuple[CodeType, dict[str, Any]]] = {}
        #: code objects that were called compiled while hooks were on, with their globals
        self.entered: dict[int, tuple[CodeType, dict[str, Any]]] = {}

    def attach(self, sink: Sink) -> dict[str, bool | str]:
        """Send events to `sink` from now on; returns which hooks took."""
        with self._lock:
            if not self.sinks:
                self._install()
            self.sinks = [*self.sinks, sink]
            return self.status

    def detach(self, sink: Sink) -> None:
        """Stop sending to `sink`; with the last one gone, torch is as it was."""
        with self._lock:
            self.sinks = [s for s in self.sinks if s is not sink]
            if not self.sinks:
                self._remove()

    # -- installing --------------------------------------------------------------------------------

    def _install(self) -> None:
        self.status = {}
        for name, install in _HOOKS.items():
            try:
                self._undo.append(install(self))
                self.status[name] = True
            except Exception as error:  # a private API that is not there, or not as it was
                self.status[name] = f"{type(error).__name__}: {error}"

    def _remove(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._codes.clear()
        self.entered = {}
        self._local = threading.local()

    def emit(self, kind: str, **data: Any) -> None:
        """Give one event to every sink."""
        data["kind"] = kind
        data["thread"] = threading.get_ident()
        if "cid" not in data:
            data["cid"] = self.compile_id()
        attempt = self.attempt()
        if attempt is not None and attempt.get("cid") is None and data["cid"] is not None:
            attempt["cid"] = data["cid"]
        for sink in self.sinks:
            sink(data)

    def safely(self, handler: Callable[..., None], *args: Any) -> None:
        """Run a handler of ours: an error in it must never reach the user's code."""
        try:
            handler(*args)
        except Exception as error:
            self.errors += 1
            self.status[f"handler {handler.__name__}"] = f"{type(error).__name__}: {error}"

    # -- what is going on in this thread ---------------------------------------------------------------

    def attempts(self) -> list[dict[str, Any]]:
        """Stack of frames that Dynamo is being asked about in this thread."""
        stack: list[dict[str, Any]] | None = getattr(self._local, "attempts", None)
        if stack is None:
            stack = self._local.attempts = []
        return stack

    def attempt(self) -> dict[str, Any] | None:
        stack = self.attempts()
        return stack[-1] if stack else None

    def compile_id(self) -> str | None:
        guards = sys.modules.get("torch._guards")
        current = guards.CompileContext.current_compile_id() if guards else None
        return None if current is None else str(current)

    def code(self, code: CodeType) -> dict[str, Any]:
        """What is known of a code object, the same dict for the same object."""
        known = self._codes.get(id(code))
        if known is None:
            known = self._codes[id(code)] = (code, code_info(code))
        return known[1]


HOOKS = Hooks()


def code_info(code: CodeType) -> dict[str, Any]:
    """Plain data about a code object: names, file and the lines that it spans."""
    return {
        "uid": id(code), "name": code.co_name, "qualname": getattr(code, "co_qualname", code.co_name),
        "file": code.co_filename, "line": code.co_firstlineno, "end_line": last_line(code),
    }  # fmt: skip


def last_line(code: CodeType) -> int:
    """The last line that any instruction of `code`, or of a function in it, stands on."""
    last = max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)
    return max([last, *(last_line(c) for c in code.co_consts if isinstance(c, CodeType))])


def positions(instruction: Any) -> list[int | None]:
    """[line, column, end line, end column] of a Dynamo instruction; None where Python keeps none (3.10)."""
    at = getattr(instruction, "positions", None)
    if at is None:
        return [getattr(instruction, "starts_line", None), None, None, None]
    return [at.lineno, at.col_offset, at.end_lineno, at.end_col_offset]


def offset_positions(code: CodeType, offset: int) -> list[int | None]:
    """The same for the instruction at a byte offset of a code object."""
    if hasattr(code, "co_positions"):
        for i, (line, end_line, column, end_column) in enumerate(code.co_positions()):
            if 2 * i == offset:
                return [line, column, end_line, end_column]
    line = next((line for start, end, line in code.co_lines() if start <= offset < end), None)
    return [line, None, None, None]


def region_of(translator: Any) -> dict[str, Any] | None:
    """The `with error_on_graph_break(...)` that a translator stands in, innermost; None where there is none.

    The decorator is a `with` too, in a wrapper of torch's: `line` is then not the user's.
    """
    lines = {block.stack_index: positions(block.inst)[0] for block in getattr(translator, "block_stack", ())}
    stack = getattr(translator, "stack", ())
    for index in reversed(range(len(stack))):
        context = getattr(stack[index], "ctx", None)  # of the WithExitFunctionVariable that an entered `with` leaves there
        if hasattr(context, "is_realized"):
            context = context.unwrap() if context.is_realized() else None
        if type(context).__name__ == "ErrorOnGraphBreakVariable":
            code = translator.f_code
            flag, line = context.target_values[0], lines.get(index + 1)
            return {"flag": flag, "file": code.co_filename, "line": line, "function": code.co_name}
    return None


def regions_around(translator: Any) -> list[dict[str, Any]]:
    """The translator and its callers, innermost first, each with the region that it stands in."""
    chain = []
    while translator is not None:
        chain.append({"function": translator.f_code.co_name, "region": region_of(translator)})
        translator = getattr(translator, "parent", None)
    return chain


def summaries(stack: Any) -> list[dict[str, Any]]:
    """traceback.FrameSummary objects as plain stack entries, outermost first."""
    return [
        {
            "file": s.filename, "line": s.lineno, "function": s.name,
            "column": getattr(s, "colno", None), "end_column": getattr(s, "end_colno", None),
        }
        for s in stack or ()
    ]  # fmt: skip


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


# -- the hooks ----------------------------------------------------------------------------------------


def _structured_trace(hooks: Hooks) -> Undo:
    """All facts and texts: the same records that TORCH_TRACE writes to files."""
    from torch._logging import _internal

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            hooks.safely(trace_record, record)

        def handleError(self, record: logging.LogRecord) -> None:
            hooks.errors += 1

    def trace_record(record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None)
        if metadata is None or next(iter(metadata), "") in _QUIET_TRACE_EVENTS:
            return
        hooks.emit("trace", metadata=metadata, payload=getattr(record, "payload", None), cid=record_compile_id(metadata))

    handler = Handler(logging.DEBUG)
    _internal.trace_log.addHandler(handler)
    return functools.partial(_internal.trace_log.removeHandler, handler)


def record_compile_id(metadata: dict[str, Any]) -> str | None:
    """`3/0` of a structured-trace record; `!1` marks compiled autograd, as torch prints it."""
    frame, compiled = metadata.get("frame_id"), metadata.get("frame_compile_id")
    autograd = metadata.get("compiled_autograd_id")
    inner = None if frame is None else f"{frame}/{compiled}"
    if autograd is None:
        return inner
    return f"!{autograd}" if inner is None else f"!{autograd}/{inner}"


def _frames(hooks: Hooks) -> Undo:
    """The outcome of every frame that Dynamo is asked about."""
    from torch._dynamo import convert_frame

    def begin(frame: Any) -> None:
        hooks.attempts().append({"code": hooks.code(frame.f_code), "cid": None, "stopped": [], "fullgraph": None, "flag": None})

    def end(result: Any, error: BaseException | None) -> None:
        attempt = hooks.attempts().pop()
        swallowed = attempt.pop("error", None)
        compiled = getattr(result, "guarded_code", None) is not None
        if attempt["cid"] is None and not compiled and error is None and in_torch(attempt["code"]["file"]):
            return  # torch's own plumbing, met on the way and never traced
        hooks.emit(
            "frame", cid=attempt["cid"], code=attempt["code"], stopped=attempt["stopped"], fullgraph=attempt["fullgraph"],
            error_on_graph_break=attempt["flag"],
            outcome="raised" if error is not None else "compiled" if compiled else "skipped",
            skip_reason=getattr(result, "skip_reason", None),
            error=None if error is None and swallowed is None else _describe(error if error is not None else swallowed),
        )  # fmt: skip

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
        attempt["fullgraph"] = getattr(converter, "_one_graph", None)
        if error is not None:
            attempt["error"] = error
            attempt["flag"] = getattr(getattr(converter, "_box", None), "error_on_graph_break", None)

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
        chain = attempt["stopped"]
        if chain and chain[0]["error"] != id(error):
            chain.clear()
        chain.append({
            "error": id(error), "type": name, "function": translator.f_code.co_name, "file": translator.f_code.co_filename,
            "at": positions(translator.current_instruction), "flag": getattr(translator, "error_on_graph_break", None),
            "region": region_of(translator),
        })  # fmt: skip

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
        instruction = translator.current_instruction
        hooks.emit(
            "graph_end",
            reason=str(reason.reason),
            graph_break=bool(getattr(reason, "graph_break", False)),
            stack=summaries(getattr(reason, "user_stack", None)),
            at=positions(instruction),
            function=translator.f_code.co_name,
            file=translator.f_code.co_filename,
            error_on_graph_break=getattr(translator, "error_on_graph_break", None),
            fullgraph=getattr(translator, "one_graph", None),
            around=regions_around(translator),
            stopped=list((hooks.attempt() or {}).get("stopped", ())),
        )

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
        # offsets are those of the user's function, also when the code that breaks is itself a resume function
        original = metadata[code].code if code in metadata else code
        hooks.emit(
            "resume",
            code=hooks.code(code),
            resume=hooks.code(resume),
            original=hooks.code(original),
            break_at=offset_positions(original, given["init_offset"]),
            resume_at=offset_positions(original, given["resume_offset"]),
            receives=[str(n) for n in given.get("argnames", ())],
            stack=given.get("nstack"),
        )

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def lookup(cls: Any, code: CodeType, *args: Any, **kwargs: Any) -> Any:
            resume = original(cls, code, *args, **kwargs)
            hooks.safely(made, code, args, kwargs, resume)
            return resume

        return lookup

    return _patch(cache, "lookup", wrap)


def _node_modules(hooks: Hooks) -> Undo:
    """For each node of a captured graph the nn.Module that it ran in (the trace does not name it)."""
    from torch._dynamo import output_graph

    def captured(gm: Any) -> None:
        paths = {n.name: _module_path(n.meta.get("nn_module_stack")) for n in gm.graph.nodes}
        hooks.emit("nodes", modules={name: path for name, path in paths.items() if path})

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def call_user_compiler(self: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
            hooks.safely(captured, gm)
            return original(self, gm, *args, **kwargs)

        return call_user_compiler

    return _patch(output_graph.OutputGraph, "call_user_compiler", wrap)


def _module_path(stack: Any) -> str | None:
    if not stack:
        return None
    path, _ = list(stack.values())[-1]
    return str(path)


def _entries(hooks: Hooks) -> Undo:
    """Which compiled functions are called: a cache hit leaves no other trace."""
    from torch._dynamo import eval_frame

    def called(frame: Any) -> None:
        function = frame.f_locals.get("fn")
        module = getattr(function, "__self__", None)
        if module is not None and function.__name__ in ("__call__", "_call_impl", "_wrapped_call_impl"):
            function = module.forward  # what Dynamo traces of a module's call
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType) and id(code) not in hooks.entered:
            hooks.entered[id(code)] = (code, function.__globals__)

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def _callback_from_stance(*args: Any, **kwargs: Any) -> Any:
            hooks.safely(called, sys._getframe(1))
            return original(*args, **kwargs)

        return _callback_from_stance

    return _patch(eval_frame, "_callback_from_stance", wrap)


def _bytecode(hooks: Hooks) -> Undo:
    """Original and compiled code object of each frame."""
    from torch._dynamo import convert_frame

    def compiled(code: CodeType, new: CodeType) -> None:
        hooks.emit("bytecode", code=hooks.code(code), compiled=hooks.code(new))

    handle = convert_frame.register_bytecode_hook(lambda code, new: hooks.safely(compiled, code, new))
    return handle.remove


def _describe(error: BaseException) -> dict[str, Any]:
    stack = summaries(getattr(error, "real_stack", None))  # outermost first, with columns
    return {"type": type(error).__name__, "module": type(error).__module__, "message": str(error), "stack": stack}


_HOOKS: dict[str, Callable[[Hooks], Undo]] = {
    "structured trace": _structured_trace,
    "frames": _frames,
    "swallowed errors": _swallowed_errors,
    "stops": _stops,
    "graph ends": _graph_ends,
    "resume functions": _resumes,
    "node modules": _node_modules,
    "bytecode": _bytecode,
    "entries": _entries,
}
