"""The hooks with which dynascope observes torch: one function for each hook.

Each function in `POINTS` installs one hook and returns a function that removes it.  If a hook does not fit the installed
torch, its function raises: the hook is left out, and `report.hooks` has the reason.  torch's functions are observed from inside
(`hook_installer`), so that no frame of dynascope's is on the stack while torch, a backend or the user's code runs.  One
exception: torch's functions that make the content of a trace record may run below `sift` (`_quiet_trace`).
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from types import CodeType, SimpleNamespace
from typing import Any

from dynascope.compiler.builder.events import (
    CompiledCall,
    FrameEnd,
    GraphCaptured,
    GraphEnd,
    GuardsMade,
    ResumeMade,
    Stop,
    Trace,
)
from dynascope.compiler.builder.trace_records import NOT_MADE_LIVE, SHAPES, reads_artifact, record_compile_id, timed
from dynascope.compiler.capture.torch_private import if_present, translators
from dynascope.compiler.capture.torch_private.hook_installer import Attempt, Hooks, Undo, watch
from dynascope.compiler.capture.torch_private.translators import graph_nodes
from dynascope.compiler.report import Node
from dynascope.compiler.source.origin import in_torch, origin


def _observer(hooks: Hooks, **handlers: Callable[..., None]) -> SimpleNamespace:
    """The object that watched code calls; its attributes are the handlers.

    Errors of a handler never reach torch; each call returns its first argument, such as the observed result.
    """
    return SimpleNamespace(**{name: functools.partial(hooks.safely, handler) for name, handler in handlers.items()})


def _structured_trace(hooks: Hooks) -> Undo:
    """Observe the structured trace: the same records that TORCH_TRACE writes to files."""
    from torch._logging import _internal

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            hooks.safely(trace_record, record)

        def handleError(self, record: logging.LogRecord) -> None:
            """Print nothing: `safely` has recorded the error."""

    def trace_record(record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None)
        if metadata is None or next(iter(metadata), "") in NOT_MADE_LIVE:
            return
        if "chromium_event" in metadata:
            if not hooks.sifts:
                emit_timed(hooks, getattr(record, "payload", None))
            return
        begins = "dynamo_start" in metadata or metadata.get("artifact", {}).get("name") == "recompile_reasons"
        attempt = hooks.attempt() if begins else None
        hooks.emit(Trace(
            metadata, getattr(record, "payload", None),
            callers=None if attempt is None else translators.callers(attempt.caller),
            call=hooks.call() if begins else None,
            compile_id=record_compile_id(metadata),
        ))  # fmt: skip

    hooks.sifts = False
    handler = hooks.trace_handler = Handler(logging.DEBUG)
    log = _internal.trace_log
    # pytest adds the handlers of the root logger to others, too: they would show each record as an empty line
    of_root = [other for other in log.handlers if other in logging.root.handlers]
    for other in of_root:
        log.removeHandler(other)
    log.addHandler(handler)

    def undo() -> None:
        log.removeHandler(handler)
        for other in of_root:
            if other in logging.root.handlers:  # else pytest has removed it meanwhile
                log.addHandler(other)

    return undo


def emit_timed(hooks: Hooks, event: Any) -> None:
    """Send a chromium event of torch's to the recordings, if it begins or ends a phase."""
    found = timed(event)
    if found is not None:
        hooks.emit(found)


def _quiet_trace(hooks: Hooks) -> Undo:
    """Keep torch from making numerous or large trace records that are not read: they would be most of the cost of a recording.

    Not made are the kinds in `NOT_MADE_LIVE`, artifacts that no report needs, bytecode that no recording keeps, and chromium
    events, which are read before torch makes records of them.  Records of graphs, shapes and graph breaks are made smaller.
    torch's modules import `trace_structured` by name, so the function's code is replaced.  It stays as it is if another handler
    reads the trace, such as that of the user's TORCH_TRACE log.
    """
    from torch._logging import _internal

    others = [h for h in _internal.trace_log.handlers if h is not hooks.trace_handler]
    if any(getattr(h, "root_dir", "") is not None for h in others):
        return lambda: None  # the other handler must get every record

    Make = Callable[[], Any]

    def sift(name: str, metadata_fn: Make, payload_fn: Make) -> tuple[Make | None, Make]:
        """The functions that make a record's metadata and payload; None for the first if torch is to make no record."""
        if name == "chromium_event":  # there are hundreds, and only a few of their fields are needed
            hooks.safely(emit_timed, hooks, payload_fn())
        if _internal.trace_log.handlers != [hooks.trace_handler]:
            return metadata_fn, payload_fn
        if name in NOT_MADE_LIVE or name == "chromium_event":
            return None, payload_fn
        if name == "dynamo_output_graph":
            return dict, payload_fn  # the sizes of all tensors: the graph's nodes are copied with theirs
        if name in SHAPES:
            return functools.partial(translators.shape_record, name, metadata_fn), payload_fn
        if name != "artifact":
            return metadata_fn, payload_fn
        metadata = metadata_fn()
        label = str(metadata.get("name"))
        if not reads_artifact(label) or (label.endswith("_BYTECODE") and not hooks.bytecode):
            return None, payload_fn
        if label == "dynamo_graph_break_reason":
            payload_fn = functools.partial(translators.without_traceback, payload_fn)
        return lambda: metadata, payload_fn

    undo = watch(
        _internal.trace_structured,
        SimpleNamespace(sift=sift),
        before="metadata_fn, payload_fn = observer.sift(name, metadata_fn, payload_fn)\nif metadata_fn is None: return",
    )
    hooks.sifts = True
    return undo


def _frames(hooks: Hooks) -> Undo:
    """Observe the outcome of each frame that Dynamo is called for, except frames of torch's that are never traced.

    Dynamo skips a frame of dynascope's, and all that it calls: what captures or shows the program's output, for example, runs
    where compiled code prints.
    """
    from torch._dynamo import bytecode_transformation, convert_frame, types

    # before Python 3.11, code objects whose line numbers differ only after the first one are equal: Dynamo's cache then returns
    # instructions, with the lines, of a function that was compiled earlier, such as an earlier version of the same cell
    instructions = getattr(bytecode_transformation, "_cached_cleaned_instructions", None)
    forget = getattr(instructions, "cache_clear", None) if not hasattr(CodeType, "co_positions") else None

    def begin(frame: Any) -> None:
        if forget is not None:
            forget()
        caller = sys._getframe(3)  # 0: this handler, 1: `safely`, 2: the watched function
        attempt = Attempt(hooks.code(frame.f_code), frame, caller)
        hooks.attempts().append(attempt)
        attempt.runs_for = translators.runs_for(frame)

    def end(result: Any, frame: Any, failed: bool) -> None:
        error, attempts = sys.exc_info()[1] if failed else None, hooks.attempts()
        if not any(attempt.frame is frame for attempt in attempts):
            return  # its start was not observed; or this is its second end, by an interrupt after the first
        while (attempt := attempts.pop()).frame is not frame:
            pass  # the end of this attempt was not observed, because of an interrupt
        compiled = getattr(result, "guarded_code", None) is not None
        if attempt.compile_id is None and not compiled and error is None and in_torch(attempt.code.file):
            return  # an internal frame of torch's, which is never traced
        cause = error if error is not None else attempt.error
        hooks.emit(FrameEnd(
            attempt.code,
            "raised" if error is not None else "compiled" if compiled else "skipped",
            skip_reason=getattr(result, "skip_reason", None),
            error=None if cause is None else translators.describe(cause),
            stopped=attempt.stopped,
            fullgraph=attempt.fullgraph,
            error_on_graph_break=attempt.error_on_graph_break,
            runs_for=attempt.runs_for[0],
            target=attempt.runs_for[1],
            compile_id=attempt.compile_id,
        ))  # fmt: skip

    observer = _observer(hooks, begin=begin, end=end)
    observer.is_own = lambda frame: origin(frame.f_code.co_filename) == "dynascope"
    private: Any = types
    skip = private.FrameExecStrategy(private.FrameAction.SKIP, private.FrameAction.SKIP)
    observer.skipped = private.ConvertFrameReturn(frame_exec_strategy=skip)
    return watch(
        convert_frame.CatchErrorsWrapper.__call__, observer,
        before="if observer.is_own(frame): return observer.skipped\nobserver.begin(frame)",
        returned="observer.end(result, frame, False)", failed="observer.end(None, frame, True)",
    )  # fmt: skip


def _swallowed_errors(hooks: Hooks) -> Undo:
    """Observe the exception that Dynamo swallows when it skips a frame, and the fullgraph and error_on_graph_break flags."""
    from torch._dynamo import convert_frame

    def began(converter: Any) -> None:
        attempt = hooks.attempt()
        if attempt is not None:
            attempt.fullgraph = getattr(converter, "_one_graph", None)

    def failed(converter: Any) -> None:
        attempt = hooks.attempt()
        if attempt is not None:
            attempt.error = sys.exc_info()[1]
            attempt.error_on_graph_break = getattr(getattr(converter, "_box", None), "error_on_graph_break", None)

    return watch(
        convert_frame.ConvertFrameAssert.__call__, _observer(hooks, began=began, failed=failed),
        before="observer.began(self)", failed="observer.failed(self)",
    )  # fmt: skip


def _stops(hooks: Hooks) -> Undo:
    """Observe the traced functions, and those that an exception passes through, with lines and columns, innermost first."""
    from torch._dynamo import symbolic_convert

    def began(translator: Any) -> None:
        hooks.code(translator.f_code)

    def stopped(translator: Any) -> None:
        error = sys.exc_info()[1]
        attempt = hooks.attempt()
        name = type(error).__name__
        if attempt is None or name.endswith("RestartAnalysis"):
            return
        chain = attempt.stopped
        if chain and chain[0].error != id(error):
            chain.clear()
        chain.append(Stop(
            name, str(error).split("\n", 1)[0],
            translators.location(translator),
            getattr(translator, "error_on_graph_break", None),
            translators.traced_call(translator),
            error=id(error),
            in_try=translators.in_try(translator),
        ))  # fmt: skip

    run = symbolic_convert.InstructionTranslatorBase.run
    observer = _observer(hooks, began=began, stopped=stopped)
    return watch(run, observer, before="observer.began(self)", failed="observer.stopped(self)")


def _graph_ends(hooks: Hooks) -> Undo:
    """Observe the end of each graph: why, at which instruction, and with which flags in force."""
    from torch._dynamo import output_graph

    def ended(translator: Any, reason: Any) -> None:
        attempt = hooks.attempt()
        if attempt is not None:
            # Dynamo's lists, not the code objects: Dynamo rewrites some instructions, and its offsets refer to its own lists
            attempt.instructions = {id(t.f_code): getattr(t, "instructions", ()) for t in translators.chain(translator)}
        hooks.emit(GraphEnd(
            str(reason.reason),
            bool(getattr(reason, "graph_break", False)),
            hooks.code(translators.chain(translator)[-1].f_code),
            translators.location(translator),
            stack=translators.summaries(getattr(reason, "user_stack", None)),
            error_on_graph_break=getattr(translator, "error_on_graph_break", None),
            fullgraph=getattr(translator, "one_graph", None),
            around=[translators.traced_call(t) for t in translators.chain(translator)],
            stopped=list(attempt.stopped) if attempt is not None else [],
            compile_id=translators.current_compile_id(),
        ))  # fmt: skip

    compile_subgraph = output_graph.OutputGraph.compile_subgraph
    return watch(compile_subgraph, _observer(hooks, ended=ended), before="observer.ended(tx, reason)")


def _resumes(hooks: Hooks) -> Undo:
    """Observe which resume function continues which code object, at which instruction, and what Dynamo passes to it."""
    import inspect

    from torch._dynamo import resume_execution

    cache = resume_execution.ContinueExecutionCache
    names = list(inspect.signature(cache.generate).parameters)

    def made(resume: CodeType, code: CodeType, *further: Any) -> None:
        given = dict(zip(names, (code, *further), strict=False))
        metadata = cache.generated_code_metadata
        original = metadata[code].code if code in metadata else code
        attempt = hooks.attempt()
        instructions = attempt.instructions.get(id(code), ()) if attempt is not None else ()
        hooks.emit(ResumeMade(
            hooks.code(code),
            hooks.code(resume),
            hooks.code(original),
            translators.offset_positions(instructions, given["resume_offset"]),
            [str(n) for n in given.get("argnames", ())],
            given.get("nstack"),
            compile_id=translators.current_compile_id(),
        ))  # fmt: skip

    lookup = vars(cache)["lookup"].__func__
    return watch(lookup, _observer(hooks, made=made), returned="observer.made(result, code, lineno, init_offset, *key)")


def _graphs(hooks: Hooks) -> Undo:
    """Observe captured graphs: their nodes, the values of symbols."""
    from torch._dynamo import output_graph

    def captured(gm: Any) -> None:
        nodes: list[Node] = []
        with if_present("nodes of live graphs"):
            nodes = graph_nodes(gm.graph)
        hooks.emit(GraphCaptured(translators.symbol_sizes(gm.graph), nodes, compile_id=translators.current_compile_id()))

    call_user_compiler = output_graph.OutputGraph.call_user_compiler
    return watch(call_user_compiler, _observer(hooks, captured=captured), before="observer.captured(gm)")


def _guards(hooks: Hooks) -> Undo:
    """Observe the guards of a compile with their stacks: the trace has only the innermost line of each."""
    from torch._dynamo import guards

    def built(made: Any) -> None:
        stacks = [(guard.name, guard.user_stack) for guard in made if guard.user_stack]
        hooks.emit(GuardsMade(stacks, compile_id=translators.current_compile_id()))

    observer = _observer(hooks, built=built)
    return watch(guards.CheckFunctionManager.build_guards, observer, before="observer.built(sorted_guards)")


def _entries(hooks: Hooks) -> Undo:
    """Observe calls of compiled functions; nothing else shows that compiled code was used again."""
    from torch._dynamo import eval_frame

    def called(callback: Any) -> None:
        caller = sys._getframe(3)  # 0: this handler, 1: `safely`, 2: the watched function
        function, name, target = translators.entered_function(caller.f_locals.get("fn"))
        for watcher in hooks.call_watchers:
            watcher(caller.f_locals.get("fn"), target, caller.f_locals.get("args", ()), caller.f_locals.get("kwargs", {}))
        code = getattr(function, "__code__", None)
        hooks.enter(id(code), caller)
        if isinstance(code, CodeType) and (id(code), name, id(target)) not in hooks.called_as:
            hooks.called_as.add((id(code), name, id(target)))
            hooks.entered.setdefault(id(code), (code, function.__globals__))
            hooks.emit(CompiledCall(hooks.code(code), name, id(target)))

    # torch.compiler.disable uses this function, too, thousands of times
    before = "if callback.__class__.__name__ == 'CatchErrorsWrapper': observer.called(callback)"
    return watch(eval_frame._callback_from_stance, _observer(hooks, called=called), before=before)


#: name in `report.hooks` -> installs the hook
POINTS: dict[str, Callable[[Hooks], Undo]] = {
    "structured trace": _structured_trace,
    "quiet trace": _quiet_trace,
    "frames": _frames,
    "swallowed errors": _swallowed_errors,
    "stops": _stops,
    "graph ends": _graph_ends,
    "resume functions": _resumes,
    "graphs": _graphs,
    "guards": _guards,
    "entries": _entries,
}
