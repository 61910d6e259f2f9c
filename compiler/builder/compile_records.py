"""Groups events by compile, as the first step from events to a Report.

Compile ids restart when the user's code calls `torch._dynamo.reset()`, and an event can come long after its compile (a backward
graph is compiled in a later cell).  So an event that starts a compile opens a `CompileRecord`, and later events find the record
by the compile's id.

The functions below say what became of a frame, and why it was skipped or failed.  A live run has the exception that Dynamo
swallowed or raised; a trace file has the printed traceback and the metrics.  Both may have the text of a graph break that led
to the exception.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dynascope.compiler.builder import dynamo_texts, events
from dynascope.compiler.builder.trace_records import CACHE_LOOKUPS, IGNORED, SHAPES, USED, record_name, timed
from dynascope.compiler.report import FrameStatus, GraphSplit, Node
from dynascope.compiler.source.origin import is_plumbing, is_used_by_compiler

#: lines of ^^^^ in a printed stack, with which Python marks columns
_MARKS = re.compile(r"^ +~*\^+~*$", re.M)
#: kind of record, or name of an artifact -> the attribute of `CompileRecord` that has its text
_TEXTS = {
    "dynamo_output_graph": "graph_text", "dynamo_cpp_guards_str": "guard_text", "recompile_reasons": "recompile_text",
    "dynamo_error": "error_text",
}  # fmt: skip
#: the last step of a compile, after which at most its metrics are still to come
_LAST = ("dynamo_cpp_guards_str", "dynamo_error")


@dataclass(slots=True)
class CompileRecord:
    """Everything recorded about one compile."""

    compile_id: str | None
    #: index among the records
    order: int = 0
    thread: int | None = None
    #: how often compile ids had restarted (`torch._dynamo.reset()`): they are unique between two resets, and compiled code
    #: calls only code of the same period
    reset_period: int = 0
    code: events.Code | None = None
    #: the Python stack at the start, outermost first, the frame itself last
    stack: list[events.Location] = field(default_factory=list)
    break_texts: list[str] = field(default_factory=list)
    error_text: str | None = None
    recompile_text: str | None = None
    graph_text: str | None = None
    guard_text: str | None = None
    #: torch's CompilationMetrics of the frame, and of its backward graph
    metrics: dict[str, Any] = field(default_factory=dict)
    backward_metrics: dict[str, Any] = field(default_factory=dict)
    graph_end: events.GraphEnd | None = None
    frame_end: events.FrameEnd | None = None
    #: copies of the nodes of the captured graph; in a log, they are read from its text
    nodes: list[Node] = field(default_factory=list)
    #: symbol of the graph -> its value in the traced call
    sizes: dict[str, int | float] = field(default_factory=dict)
    #: records about symbols in shapes, of the last attempt: (name, fields)
    shapes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    #: guarded expression -> the stacks at which guards on it were made, as lists of `traceback.FrameSummary`
    guard_stacks: dict[str, list[list[Any]]] = field(default_factory=dict)
    #: the Python stack around the compile, and the number of the call that needed the compile (see `Trace`)
    callers: list[events.Location] = field(default_factory=list)
    call: int | None = None
    resumes: list[events.ResumeMade] = field(default_factory=list)
    #: kind of record -> AOTAutograd's graphs in the records of that kind
    aot_graphs: dict[str, list[str]] = field(default_factory=dict)
    #: the graphs into which DDP's optimizer split the graph, one for each bucket of gradients
    splits: list[GraphSplit] = field(default_factory=list)
    output_codes: list[str] = field(default_factory=list)
    #: "original" or "modified" -> the text of the bytecode
    bytecode: dict[str, str] = field(default_factory=dict)
    #: stage -> the different answers of its cache, in order: {"aot" | "fx": {"hit" | "miss" | "bypass": None}}
    caches: dict[str, dict[str, None]] = field(default_factory=dict)
    #: whether a `dynamo_start` is recorded
    started: bool = False
    #: whether its end is recorded: an event that starts a compile with the same id then opens another record
    closed: bool = False
    #: whether its last step is recorded, and its thread has started another compile since
    over: bool = False

    @property
    def unfinished(self) -> bool:
        """Whether no event shows that this compile has ended; torch writes metrics whenever one ends."""
        if self.compile_id is None or self.frame_end is not None or self.metrics or self.over:
            return False
        return self.started or self.recompile_text is not None  # torch.export may record neither a start nor metrics

    @property
    def files(self) -> set[str]:
        """Names of the files in the stack at its start and in its graph."""
        return {self.file, *(s.file for s in self.stack), *(n.file for n in self.nodes if n.file is not None)}

    @property
    def guarded_files(self) -> set[str]:
        """Names of the files in the stacks of its guards and symbols."""
        made = {s.filename for stacks in self.guard_stacks.values() for stack in stacks for s in stack}
        return made | {str(s["filename"]) for _, fields in self.shapes for s in fields.get("user_stack") or ()}

    @property
    def name(self) -> str:
        """The compiler's name for the frame."""
        return self.code.name if self.code is not None else "?"

    @property
    def file(self) -> str:
        return self.code.file if self.code is not None else "?"


class CompileRecords:
    """All compiles of a recording, in the order in which they started; `unread` counts what was not understood, by kind."""

    def __init__(self, recorded: Iterable[events.Event], strings: dict[int, str]) -> None:
        """`strings`: the structured trace's table of interned strings."""
        self.records: list[CompileRecord] = []
        self.unread: Counter[str] = Counter()
        self.cache_hits: list[events.CacheHit] = []
        #: beginnings and ends of the compiler's phases, each with its compile, if that had begun
        self.timed: list[tuple[events.Timed, CompileRecord | None]] = []
        #: (uid of the code of a compiled function, id of the function or object) -> its name, in order of the calls
        self.entries: dict[tuple[int | None, int | None], str] = {}
        self._strings = strings
        #: uid of a resume function's code -> the sources of the values on the stack that it receives
        self._passed: dict[int | None, list[str]] = {}
        self._open: dict[str, CompileRecord] = {}  # by compile id
        #: by thread: compiles of which at most the metrics are still to come
        self._ending: dict[int | None, list[CompileRecord]] = {}
        #: how often compile ids have restarted, and the highest number of a frame since
        self._latest = (0, -1)
        for event in recorded:
            try:
                self._add(event)
            except Exception as error:  # a record of an unknown form must not keep out the others
                name = record_name(event.metadata) if isinstance(event, events.Trace) else type(event).__name__
                self.unread[f"{name}: {type(error).__name__}"] += 1
        stacks = (t.split("\nTraceback (most recent call last)", 1)[0] for record in self.records for t in record.break_texts)
        #: whether any stack of this recording marks columns
        self.marks_columns = any(map(_MARKS.search, stacks))

    def code_like(self, record: CompileRecord) -> events.Code | None:
        """The code of an earlier compile of the same frame: its compile id differs only after the last slash."""
        frame = str(record.compile_id).rpartition("/")[0]
        known = (r for r in reversed(self.records[: record.order]) if r.code and r.reset_period == record.reset_period)
        return next((other.code for other in known if str(other.compile_id).rpartition("/")[0] == frame), None)

    def record(self, event: events.Event, *, opens: bool = False) -> CompileRecord:
        """The record that an event belongs to.

        It is a new record if the event has no compile id, if no record has this id, or if the event starts a compile (`opens`)
        and the latest record with this id has ended.
        """
        key = str(event.compile_id)
        record = self._open.get(key) if event.compile_id is not None else None
        if record is None or (opens and record.closed):
            record = CompileRecord(event.compile_id, len(self.records), event.thread)
            record.reset_period = self._reset_period(event, opens)
            self.records.append(record)
            if record.compile_id is not None:
                self._open[key] = record
        return record

    def _reset_period(self, event: events.Event, starts: bool) -> int:
        """How often compile ids have restarted before this event, which starts a compile or belongs to one without a record.

        Frames are numbered in the order of their first compiles: a new frame whose number is not the highest shows a restart.
        """
        frame, _, compiled = str(event.compile_id).rpartition("/")
        number = frame.rpartition("/")[2]  # the ids of compiled autograd have three parts: !1/3/0
        if starts and number.isdigit():
            restarted = compiled == "0" and int(number) <= self._latest[1]
            self._latest = max(self._latest, (self._latest[0] + restarted, int(number)))
        return self._latest[0]

    def _add(self, event: events.Event) -> None:
        if isinstance(event, events.Trace):
            self._trace(event)
        elif isinstance(event, events.Timed):
            self.timed.append((event, self._open.get(str(event.compile_id))))
        elif isinstance(event, events.CacheHit):
            self.cache_hits.append(event)
        elif isinstance(event, events.CompiledCall):
            self.entries.setdefault((event.code.uid, event.target), event.name)
        elif isinstance(event, events.FrameEnd):
            record = self.record(event)
            record.frame_end, record.closed, record.code, record.thread = event, True, event.code, event.thread
            if passed := self._passed.get(event.code.uid):
                named = partial(dynamo_texts.with_sources, sources=passed)
                texts = record.guard_text, record.recompile_text
                record.guard_text, record.recompile_text = (text and named(text) for text in texts)
                record.guard_stacks = {named(about): stacks for about, stacks in record.guard_stacks.items()}
                record.shapes = [(kind, {**at, "source": named(str(at.get("source") or ""))}) for kind, at in record.shapes]
        elif isinstance(event, events.GraphEnd):
            record = self.record(event)
            record.graph_end = event
            record.code = record.code or event.code  # torch.export traces without a frame
        elif isinstance(event, events.GraphCaptured):
            record = self.record(event)
            record.nodes, record.sizes = event.nodes, event.sizes
        elif isinstance(event, events.GuardsMade):
            stacks = self.record(event).guard_stacks = {}
            for about, stack in event.stacks:
                stacks.setdefault(about, []).append(stack)
        elif isinstance(event, events.ResumeMade):
            self.record(event).resumes.append(event)
            own = self._passed.get(event.code.uid, [])
            self._passed[event.resume.uid] = [dynamo_texts.with_sources(source, own) for source in event.sources]

    def _trace(self, event: events.Trace) -> None:
        """Add one structured-trace record to its compile."""
        kind = record_name(event.metadata)
        if kind == "chromium_event":
            if (found := timed(event.payload)) is not None:
                found.thread = event.thread
                self._add(found)
            return
        if event.compile_id is None or kind not in USED:
            self.unread.update({kind} - USED - IGNORED)
            return
        fields, text = event.metadata[kind], event.payload or ""
        name = str(fields.get("name")) if kind == "artifact" else kind
        opens = name == "recompile_reasons" or (name == "dynamo_start" and not event.metadata.get("attempt"))
        record = self.record(event, opens=opens)
        if event.callers is not None:
            record.callers, record.call = event.callers, event.call
        ending = self._ending.setdefault(event.thread, [])
        if name in _LAST:
            ending.append(record)
        if name in _TEXTS:
            setattr(record, _TEXTS[name], text)
        elif name == "dynamo_start":
            record.started = True
            record.stack = [events.Location(s["filename"], s["line"], s["name"]) for s in self._stack(fields.get("stack"))]
            if event.callers is not None:  # a live run records the whole stack
                record.stack[:-1] = event.callers
            record.shapes.clear()  # they are from an earlier attempt
            for before in ending:  # their thread has started another compile, so they must have ended
                before.over = before is not record
            ending.clear()
        elif name in SHAPES:
            stacks = {which: self._stack(fields.get(which)) for which in ("stack", "user_stack")}
            record.shapes.append((name, {**fields, **stacks}))
            value = str(fields.get("val"))
            if value.lstrip("-").isdigit():
                record.sizes[str(fields["symbol"])] = int(value)
        elif name == "bwd_compilation_metrics" or (name == "compilation_metrics" and fields.get("is_forward") is False):
            record.backward_metrics = dict(fields)
        elif name == "compilation_metrics":
            record.metrics, record.closed = dict(fields), True
            if record.code is None and fields.get("co_name"):
                name, file, line = (fields[f"co_{key}"] for key in ("name", "filename", "firstlineno"))
                record.code = events.Code(str(name), str(file), int(line or 0))
        elif name == "inductor_output_code":
            record.output_codes.append(_without_counters(text))
        elif name == "optimize_ddp_split_child":
            record.splits.append(GraphSplit(name=str(fields.get("name")), code=text))
        elif name == "dynamo_graph_break_reason":
            record.break_texts.append(text)
        elif name.startswith(CACHE_LOOKUPS):
            stage, _, answer = name.replace("aotautograd", "aot").replace("fx_graph", "fx").partition("_cache_")
            record.caches.setdefault(stage, {})[answer] = None
        elif name.endswith("_BYTECODE"):
            record.bytecode[name.rsplit("_", 2)[-2].lower()] = _capped(_without_counters(text))
        elif text and kind.startswith("aot_"):
            record.aot_graphs.setdefault(kind, []).append(text)

    def _stack(self, entries: Iterable[dict[str, Any]] | None) -> list[dict[str, Any]]:
        """A record's stack with file names, for which torch writes the numbers of interned strings ("?" if unknown)."""
        names = [(e, e["filename"]) for e in entries or ()]
        self.unread.update("string missing" for _, f in names if isinstance(f, int) and f not in self._strings)
        return [{**e, "filename": self._strings.get(f, "?") if isinstance(f, int) else str(f)} for e, f in names]


def _capped(text: str, limit: int = 5000) -> str:
    """Shorten bytecode, because each resume function repeats that of the function that it continues."""
    return text if len(text) <= limit else text[:limit].rsplit("\n", 1)[0] + "\n... (cut; TORCH_LOGS=bytecode prints all)\n"


_COUNTERS = re.compile(
    r"(__compiled_fn)_\d+(?:_[0-9a-f]{8}(?:_[0-9a-f]{4}){3}_[0-9a-f]{12})?|(__resume_at_\d+)_\d+|# AOT ID: .*\n"
)


def _without_counters(text: str) -> str:
    """Remove the numbers that torch counts up in a process, so that the same code gives the same report."""
    return _COUNTERS.sub(lambda m: m.group(1) or m.group(2) or "", text)


#: types of exceptions that are graph breaks ("": unknown); any other exception is a break only if its text has a break's id,
#: and otherwise an error of a backend, of Dynamo or of the user's code
_BREAKS = ("", "Unsupported", "SkipFrame", "UserError", "UncapturedHigherOrderOpError", "ObservedException")
#: beginnings of the names of exceptions that Dynamo swallows
_SWALLOWED = ("Unsupported", "UserError", "SkipFrame", "RecompileLimitExceeded", "Observed")
_NOTHING = ("no content in function call", "No ops traced for the FX graph")


def error_of(record: CompileRecord) -> events.Error:
    """The exception that stopped the frame; its type and message are "" if they are unknown.

    Without an observed exception, as in a trace file: the type in the metrics, and the message of the printed traceback or else
    of the metrics.
    """
    end = record.frame_end
    if end is not None and end.error is not None:
        return end.error
    if end is not None and end.stopped and end.stopped[0].type == "SkipFrame" and not record.error_text:  # torch 2.9
        return events.Error("SkipFrame", end.stopped[0].message or "the code asked to skip the frame")
    message = dynamo_texts.message_of(record.error_text or "") or str(record.metrics.get("fail_reason") or "")
    return events.Error(str(record.metrics.get("fail_type") or ""), message)


def interrupted(record: CompileRecord) -> bool:
    """Whether an interrupt ended the compile."""
    kind, metrics = error_of(record).type, record.metrics
    if kind or record.frame_end is not None:
        return kind == "KeyboardInterrupt"
    # metrics do not record an interrupt; it shows as a graph that reached the backend and never got guards
    captured = record.graph_text is not None and not record.break_texts
    return captured and bool(metrics) and metrics.get("guard_count") is None and record.guard_text is None


def is_break(record: CompileRecord) -> bool:
    """Whether a graph break stopped the frame, rather than another kind of error."""
    error = error_of(record)
    if nothing_to_compile(record):
        return False
    return error.type in _BREAKS or any(p.gb_id for p in dynamo_texts.read_break(error.message).parts)


def is_raised(record: CompileRecord) -> bool:
    """Whether an error stopped the frame that torch.compile raises, unless torch._dynamo.config.suppress_errors is set."""
    kind = error_of(record).type
    return bool(kind) and not kind.startswith(_SWALLOWED)


def nothing_to_compile(record: CompileRecord) -> bool:
    """Whether Dynamo found nothing to compile in the frame."""
    return any(words in error_of(record).message for words in _NOTHING)


def text_of(record: CompileRecord) -> dynamo_texts.BreakText:
    """The compiler's text about what stopped the frame, parsed."""
    # an error that is raised is not among the texts: they are about breaks that Dynamo had met before, and could not handle
    handled = record.break_texts if is_break(record) and outcome(record) != "raised" else []
    texts = dynamo_texts.read_breaks(handled)
    text = texts[-1] if texts else dynamo_texts.read_break(error_of(record).message)
    text.stack = text.stack or dynamo_texts.stack_of(record.error_text or "")
    return text


def reason_of(record: CompileRecord) -> str | None:
    """The reason and the explanation of the last break in the text, which is the one that stopped this frame."""
    parts = text_of(record).parts
    if not parts:
        return None
    last = parts[-1]
    first = last.explanation.split("\n", 1)[0]
    explanation = last.explanation.replace("\n", " ") if first.endswith(":") else first
    return f"{last.reason}: {explanation}" if explanation and explanation != last.reason else last.reason


def stack_of(record: CompileRecord) -> list[events.Location]:
    """The user's stack where tracing stopped, outermost first, as far as the exception or Dynamo's translators know it."""
    stack = list(error_of(record).stack)
    stopped = [s.location for s in record.frame_end.stopped] if record.frame_end is not None else []
    if len(stack) < len(stopped):
        return stopped[::-1]
    if stack and stopped and stack[-1].column is None and same_line(stack[-1], stopped[0]):
        # torch 2.9 and 2.11 give no columns, so those of the instruction are used
        stack[-1] = replace(stopped[0], function=stack[-1].function)
    return stack


def same_line(a: events.Location, b: events.Location) -> bool:
    return (a.file, a.line) == (b.file, b.line)


# -- what became of a frame ------------------------


def outcome(record: CompileRecord) -> str:
    if record.unfinished or interrupted(record):
        return "unfinished"
    if record.frame_end is not None:
        return record.frame_end.outcome
    metrics = record.metrics
    if metrics.get("guard_count") is not None or record.guard_text is not None:
        return "compiled"
    if record.error_text is not None and not record.break_texts:
        return "raised"  # a break that fullgraph or error_on_graph_break refuses is recorded as an error, not as a break
    if metrics and is_raised(record):
        return "raised"
    return "compiled" if record.graph_text is not None and not (record.break_texts or metrics) else "skipped"


def skipped(record: CompileRecord) -> tuple[FrameStatus, str | None]:
    reason = record.frame_end.skip_reason if record.frame_end else None
    if record.compile_id is None and (is_used_by_compiler(record.file) or is_plumbing(record.file)):
        return "ignored", reason_of(record) or reason  # a generator of the compiler's or the notebook's
    if record.break_texts or record.error_text or error_of(record).type:
        status: FrameStatus = "empty" if nothing_to_compile(record) else "skipped"
        return status, reason_of(record) or reason
    if record.compile_id is None:
        return "ignored", reason
    return "empty", reason or "nothing to compile in it"
