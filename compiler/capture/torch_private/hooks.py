"""The hooks with which dynascope observes torch: the places, and the handlers that are called there.

Each function in `POINTS` installs one hook and returns a function that removes it; most name a place and its handlers.  If a
hook does not fit the installed torch, its function raises: the hook is left out, and `report.hooks` has the reason.  torch's
functions are observed from inside (`hook_installer`), so that no frame of dynascope's is on the stack while torch, a backend or
the user's code runs.  One exception: torch's functions that make the content of a trace record may run below `sift`
(`_quiet_trace`).
"""

from __future__ import annotations

import functools
import importlib
import logging
import operator
import sys
import time
from collections.abc import Callable, Mapping
from types import CodeType, MethodType, SimpleNamespace
from typing import Any

from dynascope.compiler.builder import events
from dynascope.compiler.builder.trace_records import NOT_MADE_LIVE, SHAPES, reads_artifact, record_compile_id, timed
from dynascope.compiler.capture.torch_private import if_present, translators
from dynascope.compiler.capture.torch_private.hook_installer import Attempt, Hooks, Undo, watch
from dynascope.compiler.report import Node
from dynascope.compiler.source.origin import in_torch, origin


def _watching(
    place: str, *handlers: Callable[..., None], also: Mapping[str, Any] | None = None, **texts: str
) -> Callable[[Hooks], Undo]:
    """Installs a hook whose handlers are called from inside the function at this place in `torch._dynamo`.

    The texts of `watch` call them as attributes of `observer`, which also has those in `also`.  Errors of a handler never reach
    torch; each call returns its first argument, such as the observed result.
    """
    module, _, name = place.partition(".")

    def install(hooks: Hooks) -> Undo:
        function = operator.attrgetter(name)(importlib.import_module(f"torch._dynamo.{module}"))
        called = {handler.__name__: functools.partial(hooks.safely, MethodType(handler, hooks)) for handler in handlers}
        return watch(getattr(function, "__func__", function), SimpleNamespace(**called, **(also or {})), **texts)

    return install


class _TraceHandler(logging.Handler):
    def __init__(self, hooks: Hooks) -> None:
        super().__init__(logging.DEBUG)
        self._hooks = hooks

    def emit(self, record: logging.LogRecord) -> None:
        self._hooks.safely(trace_record, self._hooks, record)


def trace_record(hooks: Hooks, record: Any) -> None:
    metadata, payload = getattr(record, "metadata", None), getattr(record, "payload", None)
    if metadata is None or next(iter(metadata), "") in NOT_MADE_LIVE:
        return
    if "chromium_event" in metadata:
        emit_timed(hooks, payload)
        return
    begins = "dynamo_start" in metadata or metadata.get("artifact", {}).get("name") == "recompile_reasons"
    attempt = hooks.attempt() if begins else None
    hooks.emit(events.Trace(
        metadata, payload,
        callers=None if attempt is None else translators.callers(attempt.caller),
        call=hooks.call() if begins else None,
        compile_id=record_compile_id(metadata),
    ))  # fmt: skip


def emit_timed(hooks: Hooks, event: Any) -> None:
    """Send a chromium event of torch's to the recordings, if it begins or ends a phase."""
    if (found := timed(event)) is not None:
        hooks.emit(found)


def _structured_trace(hooks: Hooks) -> Undo:
    """Observe the structured trace: the same records that TORCH_TRACE writes to files."""
    from torch._logging._internal import trace_log as log

    # pytest adds the handlers of the root logger to others, too: they would show each record as an empty line
    of_root = [other for other in log.handlers if other in logging.root.handlers]
    for other in of_root:
        log.removeHandler(other)
    handler = _TraceHandler(hooks)
    log.handlers.insert(0, handler)  # torch's own removes itself at its first record, which the one behind it then does not get

    def undo() -> None:
        log.removeHandler(handler)
        for other in of_root:
            if other in logging.root.handlers:  # else pytest has removed it meanwhile
                log.addHandler(other)

    return undo


def _quiet_trace(hooks: Hooks) -> Undo:
    """Keep torch from making numerous or large trace records that are not read: they would be most of the cost of a recording.

    Not made are the kinds in `NOT_MADE_LIVE`, artifacts that no report needs, bytecode that no recording keeps, and chromium
    events, which are read before torch makes records of them.  Records of graphs, shapes and graph breaks are made smaller.
    torch's modules import `trace_structured` by name, so the function's code is replaced.  All records are made as they are if
    another handler reads the trace, such as that of the user's TORCH_TRACE log.
    """
    from torch._logging import _internal

    Make = Callable[[], Any]

    def sift(name: str, metadata_fn: Make, payload_fn: Make) -> tuple[Make | None, Make]:
        """The functions that make a record's metadata and payload; None for the first if torch is to make no record."""
        if any(type(handler) is not _TraceHandler for handler in _internal.trace_log.handlers):
            return metadata_fn, payload_fn
        if name == "chromium_event":  # there are hundreds, and only a few of their fields are needed
            hooks.safely(emit_timed, hooks, payload_fn())
            return None, payload_fn
        if name == "artifact":
            metadata = metadata_fn()
            label = str(metadata.get("name"))
            if label == "dynamo_graph_break_reason":
                payload_fn = functools.partial(translators.without_traceback, payload_fn)
            is_made = reads_artifact(label) and (hooks.keeps_bytecode or not label.endswith("_BYTECODE"))
            return (lambda: metadata) if is_made else None, payload_fn
        if name == "dynamo_output_graph":
            return dict, payload_fn  # the sizes of all tensors: the graph's nodes are copied with theirs
        if name in SHAPES:
            return functools.partial(translators.shape_record, name, metadata_fn), payload_fn
        return None if name in NOT_MADE_LIVE else metadata_fn, payload_fn

    return watch(
        _internal.trace_structured,
        SimpleNamespace(sift=sift),
        before="metadata_fn, payload_fn = observer.sift(name, metadata_fn, payload_fn)\nif metadata_fn is None: return",
    )


def _frames(hooks: Hooks) -> Undo:
    """Observe the outcome of each frame that Dynamo is called for, except frames of torch's that are never traced.

    Dynamo skips a frame of dynascope's, and all that it calls: what captures or shows the program's output, for example, runs
    where compiled code prints.
    """
    from torch._dynamo import types

    private: Any = types
    skip = private.FrameExecStrategy(private.FrameAction.SKIP, private.FrameAction.SKIP)
    own = {
        "is_own": lambda frame: origin(frame.f_code.co_filename) == "dynascope",
        "skipped": private.ConvertFrameReturn(frame_exec_strategy=skip),
    }
    return _watching(
        "convert_frame.CatchErrorsWrapper.__call__", frame_began, frame_ended, also=own,
        before="if observer.is_own(frame): return observer.skipped\nobserver.frame_began(frame)",
        returned="observer.frame_ended(result, frame, False)", failed="observer.frame_ended(None, frame, True)",
    )(hooks)  # fmt: skip


def frame_began(hooks: Hooks, frame: Any) -> None:
    if not hasattr(CodeType, "co_positions"):
        # before Python 3.11, code objects whose line numbers differ only after the first one are equal: Dynamo's cache then
        # returns instructions, with the lines, of a function compiled earlier, such as an earlier version of the same cell
        from torch._dynamo import bytecode_transformation

        getattr(getattr(bytecode_transformation, "_cached_cleaned_instructions", None), "cache_clear", int)()
    caller = sys._getframe(3)  # 0: this handler, 1: `safely`, 2: the watched function
    attempt = Attempt(events.FrameEnd(hooks.code(frame.f_code), "skipped"), frame, caller)
    hooks.thread.attempts.append(attempt)
    attempt.end.runs_for, attempt.end.target = translators.runs_for(frame)


def frame_ended(hooks: Hooks, result: Any, frame: Any, failed: bool) -> None:
    error, attempts = sys.exc_info()[1] if failed else None, hooks.thread.attempts
    if not any(attempt.frame is frame for attempt in attempts):
        return  # its start was not observed; or this is its second end, by an interrupt after the first
    while (attempt := attempts.pop()).frame is not frame:
        pass  # the end of this attempt was not observed, because of an interrupt
    compiled = getattr(result, "guarded_code", None) is not None
    end, cause = attempt.end, error if error is not None else attempt.error
    if end.compile_id is None and not compiled and error is None and in_torch(end.code.file):
        return  # an internal frame of torch's, which is never traced
    end.outcome = "raised" if error is not None else "compiled" if compiled else "skipped"
    end.skip_reason = getattr(result, "skip_reason", None)
    end.error = None if cause is None else translators.describe(cause)
    hooks.emit(end)


def conversion_began(hooks: Hooks, converter: Any) -> None:
    """Note the fullgraph flag of a frame."""
    if (attempt := hooks.attempt()) is not None:
        attempt.end.fullgraph = getattr(converter, "_one_graph", None)


def conversion_failed(hooks: Hooks, converter: Any) -> None:
    """Note the exception that Dynamo swallows when it skips a frame, and the flag error_on_graph_break."""
    if (attempt := hooks.attempt()) is not None:
        attempt.error = sys.exc_info()[1]
        attempt.end.error_on_graph_break = getattr(getattr(converter, "_box", None), "error_on_graph_break", None)


def trace_began(hooks: Hooks, translator: Any) -> None:
    """Note a traced function."""
    code = hooks.code(translator.f_code)
    hooks.traced[code.file, code.name] = time.perf_counter()


def trace_stopped(hooks: Hooks, translator: Any) -> None:
    """Note the functions that an exception passes through, with lines and columns, innermost first."""
    error = sys.exc_info()[1]
    attempt, name = hooks.attempt(), type(error).__name__
    if attempt is None:
        return
    _note_jump(attempt, translator)
    if name.endswith("RestartAnalysis"):
        return
    chain = attempt.end.stopped
    if chain and chain[0].error != id(error):
        chain.clear()
    chain.append(events.Stop(
        name, str(error).split("\n", 1)[0],
        translators.location(translator),
        getattr(translator, "error_on_graph_break", None),
        translators.traced_call(translator),
        error=id(error),
        in_try=translators.in_try(translator),
    ))  # fmt: skip
    if not name.startswith("Observed"):
        attempt.failed = list(chain)


def _note_jump(attempt: Attempt, translator: Any) -> None:
    # tracing may begin again, and end its graph where the line begins
    if (tested := translators.tested(translator)) is not None:
        at = translators.location(translator)
        attempt.end.jumps[at.file, at.line, at.function] = tested


def graph_ended(hooks: Hooks, translator: Any, reason: Any) -> None:
    """The end of a graph: why, at which instruction, and with which flags in force."""
    attempt, chain = hooks.attempt(), translators.chain(translator)
    if attempt is not None:
        _note_jump(attempt, translator)
        # Dynamo's lists, not the code objects: Dynamo rewrites some instructions, and its offsets refer to its own lists
        attempt.instructions = {id(t.f_code): getattr(t, "instructions", ()) for t in chain}
    hooks.emit(events.GraphEnd(
        str(reason.reason),
        bool(getattr(reason, "graph_break", False)),
        hooks.code(chain[-1].f_code),
        translators.location(translator),
        stack=translators.summaries(getattr(reason, "user_stack", None)),
        error_on_graph_break=getattr(translator, "error_on_graph_break", None),
        fullgraph=getattr(translator, "one_graph", None),
        around=[translators.traced_call(t) for t in chain],
        stopped=list(attempt.failed or attempt.end.stopped) if attempt is not None else [],
        compile_id=translators.current_compile_id(),
    ))  # fmt: skip


def resume_made(hooks: Hooks, resume: CodeType, code: CodeType, *further: Any) -> None:
    """Which resume function continues which code object, at which instruction, and what Dynamo passes to it."""
    from torch._dynamo.resume_execution import ContinueExecutionCache as cache

    given = dict(zip(cache.generate.__code__.co_varnames[1:], (code, *further), strict=False))
    metadata: Any = cache.generated_code_metadata
    attempt = hooks.attempt()
    instructions = attempt.instructions.get(id(code), ()) if attempt is not None else ()
    hooks.emit(events.ResumeMade(
        hooks.code(code),
        hooks.code(resume),
        hooks.code(metadata[code].code if code in metadata else code),
        next((translators.positions(i) for i in instructions if i.offset == given["resume_offset"]), events.Position()),
        [str(n) for n in given.get("argnames", ())],
        given.get("nstack"),
        # 0: this handler, 1: `safely`, 2: the watched function
        translators.stack_sources(sys._getframe(3).f_locals.get("self")),
        compile_id=translators.current_compile_id(),
    ))  # fmt: skip


def graph_captured(hooks: Hooks, gm: Any) -> None:
    """The nodes of a graph, the values of symbols."""
    nodes: list[Node] = []
    with if_present("nodes of live graphs"):
        nodes = translators.graph_nodes(gm.graph)
    hooks.emit(events.GraphCaptured(translators.symbol_sizes(gm.graph), nodes, compile_id=translators.current_compile_id()))


def guards_made(hooks: Hooks, guards: Any) -> None:
    """The guards of a compile with their stacks: the trace has only the innermost line of each."""
    stacks = [(guard.name, guard.user_stack) for guard in guards if guard.user_stack]
    hooks.emit(events.GuardsMade(stacks, compile_id=translators.current_compile_id()))


def entered(hooks: Hooks, callback: Any) -> None:
    """A call of a compiled function; nothing else shows that compiled code was used again."""
    caller = sys._getframe(3)  # 0: this handler, 1: `safely`, 2: the watched function
    given = caller.f_locals
    function, name, target = translators.entered_function(given.get("fn"))
    for watcher in hooks.call_watchers:
        watcher(given.get("fn"), target, given.get("args", ()), given.get("kwargs", {}))
    code = getattr(function, "__code__", None)
    hooks.enter(id(code), caller)
    if isinstance(code, CodeType) and (id(code), name, id(target)) not in hooks.called_as:
        hooks.called_as.add((id(code), name, id(target)))
        hooks.entered.setdefault(id(code), (code, function.__globals__))
        hooks.emit(events.CompiledCall(hooks.code(code), name, id(target)))


def untraced_ran(hooks: Hooks, callback: None) -> None:
    """A call of a function that is not traced: graphs are called as such functions."""
    hooks.ran[id(sys._getframe(3).f_locals.get("fn"))] = time.perf_counter()


#: name in `report.hooks` -> installs the hook
POINTS: dict[str, Callable[[Hooks], Undo]] = {
    "structured trace": _structured_trace,
    "quiet trace": _quiet_trace,
    "frames": _frames,
    "swallowed errors": _watching(
        "convert_frame.ConvertFrameAssert.__call__", conversion_began, conversion_failed,
        before="observer.conversion_began(self)", failed="observer.conversion_failed(self)",
    ),
    "stops": _watching(
        "symbolic_convert.InstructionTranslatorBase.run", trace_began, trace_stopped,
        before="observer.trace_began(self)", failed="observer.trace_stopped(self)",
    ),
    "graph ends": _watching(
        "output_graph.OutputGraph.compile_subgraph", graph_ended, before="observer.graph_ended(tx, reason)"
    ),
    "resume functions": _watching(
        "resume_execution.ContinueExecutionCache.lookup", resume_made,
        returned="observer.resume_made(result, code, lineno, init_offset, *key)",
    ),
    "graphs": _watching("output_graph.OutputGraph.call_user_compiler", graph_captured, before="observer.graph_captured(gm)"),
    "guards": _watching("guards.CheckFunctionManager.build_guards", guards_made, before="observer.guards_made(sorted_guards)"),
    "entries": _watching(
        "eval_frame._callback_from_stance", entered, untraced_ran,
        before="if callback is None: observer.untraced_ran(callback)\n"
        "elif callback.__class__.__name__ == 'CatchErrorsWrapper': observer.entered(callback)",
    ),
}  # fmt: skip
