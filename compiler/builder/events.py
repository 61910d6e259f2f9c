"""The types of all events in a recording, and what a Report needs besides them (`RecordingFacts`).

A live recording makes them, most of them in its hooks; a TORCH_TRACE file yields `Trace` events only.  Events hold plain data:
none of the user's code objects, exceptions or graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from dynascope.compiler.report import Node, StackEntry
from dynascope.compiler.settings import Settings
from dynascope.compiler.source import lines
from dynascope.compiler.source.code import user_name

Outcome = Literal["compiled", "skipped", "raised"]


class Position(NamedTuple):
    """Position of an instruction in its file; columns in bytes.  None: unknown (Python 3.10 keeps lines only)."""

    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


@dataclass(slots=True)
class Location:
    """One entry of a stack: a place in a function.  Columns are in bytes.  Line 0, and None: unknown."""

    file: str
    line: int
    function: str
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    #: start and end of the columns that a printed traceback marks with carets, counted without the line's indentation; a start
    #: or end that is None is unknown, but (0, None) means that nothing is marked (see `source.lines.caret_columns`)
    carets: tuple[int | None, int | None] | None = None

    def entry(self, cell_of: lines.CellResolver) -> StackEntry:
        """The place as the report has it: the user's name of the function, the text of the line, columns in characters."""
        source, start, end = lines.source_line(self.file, self.line), self.column, self.end_column
        if start is None and self.carets is not None and source.strip():
            start, end = lines.caret_columns(source, self.carets)
        # torch's stacks do not have the line on which the expression ends
        end_line = self.end_line or lines.expression_end(self.file, self.line, start, end)
        return StackEntry(
            file=self.file, line=self.line, function=user_name(self.function), cell=cell_of(self.file), source=source.strip(),
            column=lines.character_column(self.file, self.line, start), end_line=end_line,
            end_column=lines.character_column(self.file, end_line, end) if end_line is not None else None,
        )  # fmt: skip


@dataclass(slots=True)
class Code:
    """A code object.  `uid` identifies it in a live recording; None: it is known only from the structured trace."""

    name: str
    file: str
    line: int
    end_line: int | None = None
    uid: int | None = None


@dataclass(slots=True)
class Error:
    """An exception that Dynamo swallowed or raised, with the user's stack that is attached to it, outermost first."""

    type: str
    message: str
    stack: list[Location] = field(default_factory=list)


@dataclass(slots=True)
class Region:
    """A `with error_on_graph_break(flag)` block that is being traced.

    `line` is in the user's code only if the `with` itself is traced.  A decorator's `with` is in one of torch's wrappers.  A
    resume function that enters the region again has no line for it, or the line at which the function continues.
    """

    flag: bool
    file: str
    line: int | None


@dataclass(slots=True)
class TracedCall:
    """A function being traced (the frame's own, or an inlined one), with its active regions, outermost first."""

    function: str
    uid: int
    regions: list[Region]


@dataclass(slots=True)
class Stop:
    """A function that an exception passed through during tracing; lists of them are ordered innermost first."""

    type: str
    message: str
    location: Location
    error_on_graph_break: bool | None
    call: TracedCall
    #: id of the exception: equal for all functions that it passed through
    error: int = 0
    #: whether the instruction is in a `try` inside which Dynamo cannot resume
    in_try: bool = False


@dataclass(slots=True, kw_only=True)
class _Event:
    #: id of the compile that the event belongs to, as torch prints it (`3/0`); None: no compile
    compile_id: str | None = None
    #: id of the thread; in a log, which does not name threads, id of the process
    thread: int | None = None


@dataclass(slots=True)
class Trace(_Event):
    """A record of torch's structured trace.  `payload` is None if the record has none, or if it is not needed.

    `callers`: the Python stack around a compile, outermost first, without the entries inside an enclosing compile.
    `call`: which call of the compiled function needed the compile, counted from 1.
    Only records of a live run that start a compile or give the reasons of a recompile have these two.
    """

    metadata: dict[str, Any]
    payload: str | None = None
    callers: list[Location] | None = None
    call: int | None = None


@dataclass(slots=True)
class Timed(_Event):
    """The compiler begins a phase (`begins`) or ends it, `at` seconds since the epoch.

    `function` is the phase's name in `torch._dynamo.utils.compile_times()`, if it has another name there.
    """

    name: str
    begins: bool
    at: float
    function: str | None = None


@dataclass(slots=True)
class FrameEnd(_Event):
    """Dynamo has finished with a frame.  `stopped`: the functions that the last exception of tracing passed through, if any."""

    code: Code
    outcome: Outcome
    skip_reason: str | None = None
    error: Error | None = None
    stopped: list[Stop] = field(default_factory=list)
    fullgraph: bool | None = None
    error_on_graph_break: bool | None = None
    #: the jumps where tracing stopped: (file, line, function) -> the condition that was tested there
    jumps: dict[tuple[str, int, str], Location] = field(default_factory=dict)
    #: the class or function that a shared code object ran for: the code may be a `forward` that subclasses inherit, or a
    #: wrapper of torch's
    runs_for: str | None = None
    #: the id of that object or function
    target: int | None = None


@dataclass(slots=True)
class GraphEnd(_Event):
    """Dynamo ends a graph: why, at which instruction, and with which flags in force.

    `stack` is torch's user stack, outermost first; `around` are the calls being traced, innermost first.  `stopped` are the
    functions that the latest exception of tracing passed through, such as the failure of an inlined call at which the graph
    ends; the exception may also be older than this end.
    """

    reason: str
    graph_break: bool
    #: the code of the frame; `location` may be in an inlined function
    code: Code
    location: Location
    stack: list[Location] = field(default_factory=list)
    error_on_graph_break: bool | None = None
    fullgraph: bool | None = None
    around: list[TracedCall] = field(default_factory=list)
    stopped: list[Stop] = field(default_factory=list)


@dataclass(slots=True)
class GraphCaptured(_Event):
    """A graph goes to the backend.

    `nodes`: copies of the graph's nodes, with the compiler's paths of their modules; [] if they could not be copied.  `sizes`:
    symbol -> its value in this call.
    """

    sizes: dict[str, int | float]
    nodes: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class GuardsMade(_Event):
    """Dynamo builds the guards of a compile.

    `stacks`: for each guard that has a stack, the guarded expression and the stack.  A stack is a list of
    `traceback.FrameSummary`, outermost first; stacks are not converted, because few are needed.
    """

    stacks: list[tuple[str, list[Any]]]


@dataclass(slots=True)
class ResumeMade(_Event):
    """Dynamo makes or reuses the function `resume`, which continues `code` at `position`.

    `original` is the user's code object at the root of a chain of resume functions.  `receives` has the names of the arguments,
    and `stack` is the number of values passed from Python's value stack.  `sources` says what these are, as guards write it; a
    value that was computed has none ("").
    """

    code: Code
    resume: Code
    original: Code
    position: Position
    receives: list[str]
    stack: int | None
    sources: list[str] = field(default_factory=list)


@dataclass(slots=True)
class CompiledCall(_Event):
    """The first call of a compiled function or object under one of its names since the latest recording began.

    `name` is the user's name for the function; `target` is the id of the function or object that was compiled.
    """

    code: Code
    name: str
    target: int


@dataclass(slots=True)
class CacheHit(_Event):
    """A function or resume function that ran without a compile: one event for each version of it that ran.

    `compile_id`: id of the version's compile; None: no version ran, so the function ran eagerly.  `continues`: for a resume
    function, the uid of the code that it continues.  `graphs`: number of graphs that the version calls.  `is_full`: whether
    Dynamo holds as many versions as the recompile limit allows; None: it holds none.
    """

    code: Code
    continues: int | None = None
    graphs: int = 0
    is_full: bool | None = None


@dataclass(slots=True)
class Paused(_Event):
    """The hooks are off while dynascope itself repeats calls or runs a graph: compiles in this time are not recorded."""


Event = Trace | Timed | FrameEnd | GraphEnd | GraphCaptured | GuardsMade | ResumeMade | CompiledCall | CacheHit | Paused


@dataclass(slots=True)
class RecordingFacts:
    """Everything that the Report needs and the events do not contain."""

    origin: Literal["live", "trace"] = "live"
    #: id -> interned string of the structured trace, as far as the events need them so far
    strings: dict[int, str] = field(default_factory=dict)
    cell_of: lines.CellResolver = lambda file: None
    #: frames compiled by another thread than this one are foreign; None: unknown
    owner_thread: int | None = None
    settings: Settings | None = None
    #: the reason given for a compile whose end is not among the events
    no_end_words: str = "the log does not hold the end of this compile"
    #: names of what was compiled, which the report shows first
    compiled: list[str] = field(default_factory=list)
    #: sentences for the user
    notes: list[str] = field(default_factory=list)
    hooks: dict[str, bool | str] = field(default_factory=dict)
    versions: dict[str, str | None] = field(default_factory=dict)
    #: functions whose lines their files no longer have; more may be added
    old_functions: list[lines.OldFunction] = field(default_factory=list)
    #: uid of code -> number of calls of the compiled function
    calls: dict[int, int] = field(default_factory=dict)
    #: the error that ended the recorded block
    error: BaseException | None = None
    #: the user's stack, as torch prints it, of the operation of a graph that raised the error; "": unknown, or none did
    failed_operation: str = ""
