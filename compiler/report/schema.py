"""What a Report is made of: frames, graphs, breaks and the rest, as plain dataclasses.

`None` always means *unknown* (or *does not apply*), never "no".  Line numbers start at 1; columns are 0-based
character offsets, as in `ast`; times are seconds.  Import these names from `dynascope.compiler.report`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

FrameKind = Literal["function", "resume", "statements", "autograd"]
FrameStatus = Literal["compiled", "empty", "skipped", "failed", "ignored", "cached", "unfinished"]
Outcome = Literal["resumed", "skipped", "raised"]
Backward = Literal["none", "pending", "compiled", "from cache"]
SegmentKind = Literal["graph", "gap", "lookup", "prologue", "wait", "unaccounted", "kernel", "copy"]


@dataclass(kw_only=True)
class StackEntry:
    """One line of a stack in the user's code, outermost first in a list of them."""

    file: str
    line: int
    function: str
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    cell: int | None = None
    source: str = ""


@dataclass(kw_only=True)
class Resume:
    """Where a resume function goes on, and what Dynamo hands it."""

    line: int
    column: int | None = None
    #: names of the locals it receives; what lies on the value stack is counted, it has no names
    locals: list[str] = field(default_factory=list)
    stack: int | None = None


@dataclass(kw_only=True)
class Frame:
    """A Python code object that Dynamo was asked to compile, once per compile id."""

    id: str
    compile_id: str | None
    #: the user's name for it; a resume function bears the name of the function that it continues
    name: str
    #: the name in the compiler (`torch_dynamo_resume_in_f_at_4`)
    code_name: str
    file: str
    #: first line of the function (of a resume function: the line it goes on from)
    line: int
    end_line: int | None = None
    cell: int | None = None
    kind: FrameKind = "function"
    status: FrameStatus = "compiled"
    reason: str | None = None
    #: of a resume function: the break that it follows; of another that was skipped or failed: the break that caused it
    break_: str | None = None
    #: the frame that this one continues after a break
    continues: str | None = None
    #: the frame that called this one, and from which line
    parent: str | None = None
    called_from: int | None = None
    graph: str | None = None
    #: a recompile: the frame (same code object) that was compiled before
    recompile_of: str | None = None
    resume: Resume | None = None
    compile_seconds: float | None = None
    #: seconds by phase, as the compiler names them ("dynamo", "backend", "inductor", "codegen", "guards")
    phases: dict[str, float] = field(default_factory=dict)
    guards: list[str] = field(default_factory=list)
    guard_count: int | None = None
    #: inputs that were traced with symbolic sizes at once because runs before the recording had seen other sizes
    dynamic_before: list[str] = field(default_factory=list)
    #: functions that were traced into this frame's graph: [{"name", "file", "line"}]
    inlined: list[dict[str, Any]] = field(default_factory=list)
    fullgraph: bool | None = None
    error_on_graph_break: bool | None = None
    thread: int | None = None
    #: compiled by a thread other than the one that recorded
    foreign: bool = False
    rank: int | None = None
    bytecode: str | None = None
    modified_bytecode: str | None = None


@dataclass(kw_only=True)
class Node:
    """One node of an FX graph."""

    name: str
    #: FX's own opcode: placeholder, get_attr, call_function, call_method, call_module, output
    op: str
    target: str
    #: names of the nodes that it reads
    inputs: list[str] = field(default_factory=list)
    #: the place that the compiler names: in the user's code, or in torch's where an operation is put together of others
    file: str | None = None
    line: int | None = None
    dtype: str | None = None
    shape: list[int | str] | None = None
    stride: list[int | str] | None = None
    device: str | None = None
    #: what the compiler printed for it
    code: str = ""
    #: path of the nn.Module that it ran in, where known ("encoder.layers.0")
    module: str | None = None


@dataclass(kw_only=True)
class Graph:
    """An FX graph captured from one frame, and what later stages made of it."""

    id: str
    frame: str
    #: number of nodes that are neither placeholder, get_attr nor output; None: compiled before the recording
    ops: int | None
    nodes: list[Node] = field(default_factory=list)
    code: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    #: how the graph ended: "return", "break", or the compiler's own word
    end: str | None = None
    #: the break that ended it
    break_: str | None = None
    #: the graphs that DDP's optimizer made of it, one for each bucket of gradients: {"name", "code"}
    splits: list[dict[str, str]] = field(default_factory=list)
    aot_forward: str | None = None
    aot_backward: str | None = None
    backend_code: str | None = None
    backward: Backward = "none"
    from_cache: bool | None = None
    #: {"aot": "hit" | "miss" | "bypass", "fx": ...}
    caches: dict[str, str] = field(default_factory=dict)
    #: sentences on later stages (CUDA graphs that were skipped) and on loops that were unrolled
    notes: list[str] = field(default_factory=list)
    #: what the symbols of its shapes stood for when it was captured, where known: {"s77": 8}
    sizes: dict[str, int | float] = field(default_factory=dict)
    #: run again on its own; only where it was asked for (`report.run_graph`)
    run: GraphRun | None = None


@dataclass(kw_only=True)
class GraphRun:
    """One graph run again on its own: made-up data of the recorded shapes, eager against compiled, without gradients."""

    device: str
    device_name: str
    backend: str
    calls: int
    #: of one call: median, and the middle half; timed in turns
    eager_seconds: float
    eager_spread: list[float] = field(default_factory=list)
    #: None: the backend could not compile it (a note tells why)
    compiled_seconds: float | None = None
    compiled_spread: list[float] = field(default_factory=list)
    #: eager by compiled
    speed_up: float | None = None
    #: what torch's allocators held at most during a call, beside the inputs; None: unknown
    eager_peak_bytes: int | None = None
    compiled_peak_bytes: int | None = None
    #: each operation of the eager graph in order, median over the calls: [{"node": name, "seconds"}]
    ops: list[dict[str, Any]] = field(default_factory=list)
    #: how far the figures can be trusted, one sentence each
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Hit:
    """One frame that ran into a break."""

    frame: str
    #: the line in that frame (a call further out, where the break is deeper)
    line: int | None
    outcome: Outcome
    #: the resume functions made for it (two after a data-dependent `if`)
    resumes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Break:
    """One place in the user's code where a graph had to stop."""

    id: str
    file: str
    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    function: str = ""
    cell: int | None = None
    source: str = ""
    gb_ids: list[str] = field(default_factory=list)
    type: str = ""
    reason: str = ""
    explanation: str = ""
    hints: list[str] = field(default_factory=list)
    #: page of each GB id, as the compiler names it
    urls: list[str] = field(default_factory=list)
    #: the worst of its hits
    outcome: Outcome = "resumed"
    #: the flag in force at the break; None where the source cannot know it
    error_on_graph_break: bool | None = None
    fullgraph: bool | None = None
    #: who set the flag: None (unknown), "default", "this run" or a region's place ("In[3]:4", "block")
    region: str | None = None
    #: True: inside an explicit allow; False: not; None: unknown
    allowed: bool | None = None
    stack: list[StackEntry] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    #: the compiler's own text, whole
    text: str = ""


@dataclass(kw_only=True)
class Recompile:
    """A frame compiled again because a guard failed."""

    frame: str
    of: str | None
    reasons: list[str] = field(default_factory=list)
    #: the same, in words a newcomer understands
    words: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class InputRun:
    """One of several inputs: what it made the compiler do, and what a call with it takes.  None: unknown."""

    #: `float32[7, 3], scale=2`
    arguments: str
    #: reused (ran from compiled code), recompiled (a guard failed), compiled (code that no input had reached), eager (nothing
    #: compiled runs: the recompile limit, say), failed (see `error`)
    outcome: Literal["reused", "recompiled", "compiled", "eager", "failed"] = "reused"
    #: frames that the compiler worked on because of it; how many of them were recompiles, and why
    frames: list[str] = field(default_factory=list)
    recompiles: int = 0
    reasons: list[str] = field(default_factory=list)
    compile_seconds: float = 0.0
    #: its first call, compiling included
    first_seconds: float | None = None
    #: a later call: median and the middle half; and eager
    seconds: float | None = None
    spread: list[float] = field(default_factory=list)
    eager_seconds: float | None = None
    #: that a call with it runs, in order
    graphs: list[str] = field(default_factory=list)
    #: calls after which compiling for it has paid for itself; None: unknown, or never
    payback_calls: int | None = None
    error: str | None = None
    words: str = ""


@dataclass(kw_only=True)
class Failure:
    """What stopped the run."""

    type: str
    message: str
    break_: str | None = None
    frame: str | None = None
    file: str | None = None
    line: int | None = None
    cell: int | None = None
    #: "compiler": what the compiler refused; "user": an error of the user's own code
    origin: Literal["compiler", "user"] = "compiler"
    #: the user's code caught it and went on
    caught: bool = False


@dataclass(kw_only=True)
class Source:
    """The text of one file or cell that the report speaks of, as excerpts."""

    file: str
    #: short name to show ("In[3]", "model.py")
    label: str
    cell: int | None = None
    #: [{"line": first line, "text": str}], in order, not overlapping
    excerpts: list[dict[str, Any]] = field(default_factory=list)
    #: lines for which the run asked for another setting: [{"first", "last", "error_on_graph_break", "set_by"}]
    regions: list[dict[str, Any]] = field(default_factory=list)


@dataclass(kw_only=True)
class Segment:
    """One stretch of a call on one lane.  The segments of the first lane follow one another without a hole."""

    #: graph, gap (eager code and its ops), lookup (of guards in the cache), prologue (of a graph), wait (for the device),
    #: unaccounted; on the lane of a device: kernel or copy
    kind: SegmentKind
    lane: str
    #: seconds from the start of the call, and how long it took, in the one call that is drawn
    start: float
    duration: float
    label: str
    frame: str | None = None
    graph: str | None = None
    #: the break without which this stretch would not be there
    break_: str | None = None
    #: over all calls that went the same way: median, and the middle half of them
    median: float | None = None
    spread: list[float] = field(default_factory=list)
    #: of a gap: the eager ops in it, slowest first: [{"name", "seconds", "count"}]
    ops: list[dict[str, Any]] = field(default_factory=list)


@dataclass(kw_only=True)
class BreakCost:
    """What one break costs a call."""

    break_: str
    #: what would be gone without the break: median over the calls; None: unknown
    seconds: float | None
    #: of the call's time
    share: float | None = None
    spread: list[float] = field(default_factory=list)
    #: in plain words
    how: str = ""
    #: {"lookups", "prologue", "python", "synchronisation"}: what `seconds` is made of
    parts: dict[str, float] = field(default_factory=dict)
    #: eager ops of the gap: they would still have to run, in a graph, how fast is unknown
    ops_seconds: float = 0.0
    #: where the break makes Dynamo skip a frame: how long it runs eagerly
    eager_seconds: float | None = None
    #: how often a call meets it
    times: float = 0.0


@dataclass(kw_only=True)
class Verdict:
    """Compiled or not?  Timed without the profiler; None: unknown."""

    eager_seconds: float | None = None
    compiled_seconds: float | None = None
    #: the compiled call without what its breaks cost
    without_breaks_seconds: float | None = None
    compile_seconds: float | None = None
    #: calls after which compiling has paid for itself; None: unknown, or never
    payback_calls: int | None = None
    words: str = ""


@dataclass(kw_only=True)
class Profile:
    """Where the time of a call goes, from `calls` more calls under torch.profiler."""

    calls: int
    #: of one call under the profiler: median, and the middle half
    median_seconds: float
    spread: list[float] = field(default_factory=list)
    lanes: list[str] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    #: of the call's time, median over the calls: graphs, gaps, lookups, prologue, waiting, unaccounted
    shares: dict[str, float] = field(default_factory=dict)
    #: the dearest first; unknown ones last
    breaks: list[BreakCost] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)
    #: one sentence: which break to fix first; empty where there is none
    first: str = ""
    #: names of the devices it ran on
    devices: list[str] = field(default_factory=list)
    #: what repeating the call could not undo, and how far the figures can be trusted
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Summary:
    frames: int = 0
    graphs: int = 0
    ops: int = 0
    breaks: int = 0
    resumes: int = 0
    skipped: int = 0
    recompiles: int = 0
    compile_seconds: float = 0.0
    empty: int = 0
    cached: int = 0
    failed: int = 0
    #: frames whose compile has not ended, as far as is known: the log was cut, the run was interrupted, or it still goes on
    unfinished: int = 0
    #: breaks that no explicit allow covers (unknown counts as unexpected)
    unexpected: int = 0
