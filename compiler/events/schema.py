"""Every event of a recording, typed.

A live recording makes them in torch's own call sites, a TORCH_TRACE file gives `Trace` events alone; `assembly` reads both.
They hold plain data: no code object, exception or graph of the user's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Outcome = Literal["compiled", "skipped", "raised"]


class Position(NamedTuple):
    """Where an instruction stands in its file; columns in bytes.  None is unknown (Python 3.10 keeps lines only)."""

    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


@dataclass(slots=True)
class Location:
    """One entry of a stack: a place in a function; columns in bytes, None where unknown."""

    file: str
    line: int
    function: str
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    #: columns that a printed traceback marks below the line, which it prints without its indent; the end None: unknown
    carets: tuple[int, int | None] | None = None

    @classmethod
    def at(cls, file: str, function: str, position: Position) -> Location:
        return cls(file, position.line or 0, function, *position[1:])


@dataclass(slots=True)
class Code:
    """A code object.  `uid` tells objects apart; a trace file has none, nor a last line."""

    name: str
    file: str
    line: int
    end_line: int | None = None
    uid: int | None = None


@dataclass(slots=True)
class Error:
    """An exception that Dynamo swallowed or raised, and the user's stack that it bears, outermost first."""

    type: str
    message: str
    stack: list[Location] = field(default_factory=list)


@dataclass(slots=True)
class Region:
    """A `with error_on_graph_break(flag)` that is in force.

    `line` is the user's only where the region stands in traced code: not for the decorator (a `with` in a wrapper of torch's),
    nor where a resume function enters the region again.
    """

    flag: bool
    file: str
    line: int | None


@dataclass(slots=True)
class TracedCall:
    """A function that Dynamo is tracing, the frame's own or one inlined into it, and the regions in it, outermost first."""

    function: str
    uid: int
    regions: list[Region]


@dataclass(slots=True)
class Stop:
    """A function that an exception left while it was traced.  A chain of them is innermost first."""

    type: str
    message: str
    location: Location
    error_on_graph_break: bool | None
    call: TracedCall
    #: id of the exception, to tell the chain of one from that of another
    error: int = 0


@dataclass(slots=True, kw_only=True)
class _Event:
    #: the compile that it belongs to, as torch prints it (`3/0`); None: of no compile
    compile_id: str | None = None
    thread: int | None = None
    #: of several trace files: which one
    process: int | None = None


@dataclass(slots=True)
class Trace(_Event):
    """A record of torch's structured trace: `metadata` is torch's own, `payload` its text.

    `callers`: at the start of a compile of a live run, the whole Python stack around it, outermost first.
    """

    metadata: dict[str, Any]
    payload: str | None = None
    callers: list[Location] | None = None


@dataclass(slots=True)
class FrameEnd(_Event):
    """Dynamo is done with a frame.  `stopped`: where tracing stopped last, if an exception stopped it."""

    code: Code
    outcome: Outcome
    skip_reason: str | None = None
    error: Error | None = None
    stopped: list[Stop] = field(default_factory=list)
    fullgraph: bool | None = None
    error_on_graph_break: bool | None = None


@dataclass(slots=True)
class GraphEnd(_Event):
    """Dynamo ends a graph: why, at which instruction, with which flags in force.

    `stack` is torch's own, outermost first; `around` are the calls that are being traced, innermost first; `stopped` is the
    chain of an inlined call whose tracing was given up just before.
    """

    reason: str
    graph_break: bool
    #: of the frame itself
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

    `modules`: node name -> path of the nn.Module that it ran in; `sizes`: symbol -> its value in this call.
    """

    modules: dict[str, str]
    sizes: dict[str, int | float]


@dataclass(slots=True)
class ResumeMade(_Event):
    """Dynamo continues `code` in the function `resume`, from `position` on.

    `original` is the user's code object at the root of the chain; `receives` names the arguments, `stack` counts the values
    that come from Python's stack.
    """

    code: Code
    resume: Code
    original: Code
    position: Position
    receives: list[str]
    stack: int | None


@dataclass(slots=True)
class CompiledCall(_Event):
    """A compiled function is called, for the first time in this recording; `name` is the user's for it.

    `target` is the id of the function or object that was compiled.
    """

    code: Code
    name: str
    target: int


@dataclass(slots=True)
class CacheHit(_Event):
    """A function ran without being compiled: from code compiled before the recording, or eagerly.

    `compile_id` is that of the compiled version, None where there is none; `continues` is the uid of the code whose resume
    function this is; `graphs` counts the graphs that the version calls.
    """

    code: Code
    continues: int | None = None
    graphs: int = 0


@dataclass(slots=True)
class Paused(_Event):
    """The hooks are off for a while (calls are being timed): what compiles meanwhile is missed."""


Event = Trace | FrameEnd | GraphEnd | GraphCaptured | ResumeMade | CompiledCall | CacheHit | Paused

#: (file, first line, name) of a code object -> inputs whose sizes Dynamo has noted, and whether they are dynamic now
Sizes = dict[tuple[str, int, str], dict[str, bool]]
