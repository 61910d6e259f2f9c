"""A Report's data, `ReportData`, and its recorded parts: frames, graphs, breaks and the rest, as plain dataclasses.

`None` always means *unknown* (or *does not apply*), never "no".  Line numbers start at 1; columns are 0-based
character offsets, as in `ast`; times are seconds.  Import these names from `dynascope.compiler.report`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dynascope.compiler.report.fixes import Fix, FixSet
from dynascope.compiler.report.guards import FailedGuard, GuardSite, StackEntry, Symbol
from dynascope.compiler.report.measurements import Check, CompileTime, GraphRun, InputRun, Profile

#: version of the data; `upgrade` converts older ones.  A new field with a default needs no new version.
SCHEMA = 2
#: the value of one setting; `options` is a dict
Setting = bool | int | float | str | list[str] | dict[str, bool | int | float | str | None] | None

FrameKind = Literal["function", "resume", "statements", "autograd"]
FrameStatus = Literal["compiled", "empty", "skipped", "failed", "ignored", "cached", "unfinished"]
Outcome = Literal["resumed", "skipped", "raised"]
Backward = Literal["none", "pending", "compiled", "from cache"]
FlagOriginKind = Literal["default", "run", "with", "decorator", "option", "unknown"]


@dataclass(kw_only=True)
class FlagOrigin:
    """Who set the `error_on_graph_break` that is in force somewhere."""

    #: torch's default, the settings of the run, a `with` block, a decorator, a `--region` option; or unknown
    kind: FlagOriginKind = "unknown"
    #: the decorated function of a decorator, or the target of an option, as written ("9-12", "Net.forward")
    name: str | None = None
    #: the place of a `with` block
    file: str | None = None
    line: int | None = None
    cell: int | None = None

    @property
    def is_region(self) -> bool:
        """Whether a region set the flag, rather than the run or torch."""
        return self.kind in ("with", "decorator", "option")


@dataclass(kw_only=True)
class Resume:
    """Where a resume function continues, and what Dynamo passes to it."""

    line: int
    column: int | None = None
    #: names of the locals that it receives; `stack` counts the values on Python's value stack, which have no names
    locals: list[str] = field(default_factory=list)
    stack: int | None = None


@dataclass(kw_only=True)
class InlinedFunction:
    """A function that was traced into the graph of another frame."""

    #: with its class, if the source shows it ("Block.forward"); None: unknown
    name: str | None = None
    file: str
    line: int
    end_line: int | None = None
    cell: int | None = None


@dataclass(kw_only=True)
class Frame:
    """A Python code object that Dynamo was asked to compile, once per compile id."""

    id: str
    compile_id: str | None
    #: the user's name for it; a resume function has the name of the function that it continues
    name: str
    #: the name in the compiler (`torch_dynamo_resume_in_f_at_4`)
    code_name: str
    #: its function with the class of a method, as the source has it ("Block.forward"); None: unknown
    qualname: str | None = None
    file: str
    #: first line of the function (of a resume function: the line it continues from)
    line: int
    end_line: int | None = None
    cell: int | None = None
    kind: FrameKind = "function"
    status: FrameStatus = "compiled"
    reason: str | None = None
    #: the break that a resume function continues after, or that made another frame be skipped or fail
    break_: str | None = None
    #: the frame that this one continues after a break
    continues: str | None = None
    #: the frame that called this one, and the line of the call
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
    #: its guards by the line that made them; those of unknown origin first
    guard_sites: list[GuardSite] = field(default_factory=list)
    #: the symbols in its shapes
    symbols: list[Symbol] = field(default_factory=list)
    #: inputs that were traced with symbolic sizes at once because runs before the recording had seen other sizes
    dynamic_before: list[str] = field(default_factory=list)
    #: functions that were traced into this frame's graph; only those with an operation on their own lines are known
    inlined: list[InlinedFunction] = field(default_factory=list)
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
    #: the place that the compiler names: in the user's code, or in torch's if an operation is composed of others
    file: str | None = None
    line: int | None = None
    dtype: str | None = None
    shape: list[int | str] | None = None
    stride: list[int | str] | None = None
    device: str | None = None
    #: class of a tensor subclass, with the placements of a DTensor ("DTensor(Shard(0), Replicate())"); None: a plain tensor
    subclass: str | None = None
    #: what the compiler printed for it
    code: str = ""
    #: path of the nn.Module that it ran in, where known ("encoder.layers.0")
    module: str | None = None


@dataclass(kw_only=True)
class GraphSplit:
    """One of the graphs into which DDP's optimizer split a graph: one for each bucket of gradients."""

    name: str
    code: str = ""
    #: the module parameters among its inputs, and their bytes; where `Graph.bucket_limits` are known, those that DDP counts:
    #: neither frozen nor ignored
    parameters: list[str] = field(default_factory=list)
    parameter_bytes: int | None = None


@dataclass(kw_only=True)
class Kernel:
    """A kernel, or a library's function, that Inductor's code for a graph calls."""

    name: str
    #: how often the code calls it for these nodes
    count: int = 1
    #: ATen ops that it computes, and nodes of the graph that they come from, where the code's comments name them
    ops: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Graph:
    """An FX graph captured from one frame, with the results of later stages."""

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
    #: the graphs into which DDP's optimizer split it
    splits: list[GraphSplit] = field(default_factory=list)
    #: bytes at which its first bucket, which is that of the last split, and the others are full; []: unknown
    bucket_limits: list[int] = field(default_factory=list)
    aot_forward: str | None = None
    aot_backward: str | None = None
    backend_code: str | None = None
    #: what that code calls, in order; [] if it is not Inductor's
    kernels: list[Kernel] = field(default_factory=list)
    backward: Backward = "none"
    from_cache: bool | None = None
    #: {"aot": "hit" | "miss" | "bypass", "fx": ...}
    caches: dict[str, str] = field(default_factory=dict)
    #: sentences on later stages (CUDA graphs that were skipped) and on loops that were unrolled
    notes: list[str] = field(default_factory=list)
    #: values of the symbols in its shapes when it was captured, as far as known: {"s77": 8}
    sizes: dict[str, int | float] = field(default_factory=dict)
    #: the graph run again on its own; only after `report.run_graph`
    run: GraphRun | None = None


@dataclass(kw_only=True)
class Hit:
    """One frame that ran into a break."""

    frame: str
    #: the line in that frame; if the break is deeper, the line of the call that leads to it
    line: int | None
    outcome: Outcome
    #: the resume functions made for it (two after a data-dependent `if`)
    resumes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Undecided:
    """A condition or a number that depends on data, which tracing needed and could not know."""

    #: in the compiler's symbols ("u0 > 3"); the frame's symbols say what u0 is
    expression: str
    #: "condition": whether it holds; "integer": its value
    needed: Literal["condition", "integer"] = "condition"
    #: the calls of `torch._check` that the compiler suggests, in the program's names; [] if it suggests none
    checks: list[str] = field(default_factory=list)


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
    #: the flag in force at the break; None: unknown
    error_on_graph_break: bool | None = None
    fullgraph: bool | None = None
    #: who set that flag
    region: FlagOrigin = field(default_factory=FlagOrigin)
    #: True: inside an explicit allow; False: not; None: unknown
    allowed: bool | None = None
    #: whether the same calls, traced again from the state that they had left, did not run into it; None: not tried
    first_call_only: bool | None = None
    stack: list[StackEntry] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    #: the compiler's own text, whole
    text: str = ""
    #: what depends on data, if the break is because of that; None: another reason, or unknown
    undecided: Undecided | None = None


@dataclass(kw_only=True)
class Recompile:
    """A frame compiled again because a guard failed, or refused because it had been compiled too often."""

    frame: str
    of: str | None
    #: the compiler's reasons, one for each compiled version that was tried
    reasons: list[str] = field(default_factory=list)
    #: the reasons as structured facts
    failed_guards: list[FailedGuard] = field(default_factory=list)
    #: the call that needed it, innermost last
    stack: list[StackEntry] = field(default_factory=list)
    #: which call of the compiled function that was in this recording, from 1
    call: int | None = None
    #: compiled versions of the code object after it, and the limit for them
    entries: int | None = None
    limit: int | None = None
    #: the setting of `torch._dynamo.config` whose limit refused it: the frame runs eagerly from now on; None: it was compiled
    refused_by: str | None = None


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
    #: "compiler": the compiler refused the code; "user": an error in the user's code
    origin: Literal["compiler", "user"] = "compiler"
    #: the user's code caught it and continued
    caught: bool = False
    #: the calls that it passed in the user's code, outermost first; [] if unknown
    calls: list[StackEntry] = field(default_factory=list)


@dataclass(kw_only=True)
class Excerpt:
    """Lines of a source, from `line` on."""

    line: int
    text: str


@dataclass(kw_only=True)
class RegionLines:
    """Lines for which the run set another `error_on_graph_break`."""

    first: int
    last: int
    error_on_graph_break: bool
    set_by: FlagOrigin


@dataclass(kw_only=True)
class Source:
    """The text of one file or cell that the report refers to, as excerpts."""

    file: str
    #: short name to show ("In[3]", "model.py")
    label: str
    cell: int | None = None
    #: in order, not overlapping
    excerpts: list[Excerpt] = field(default_factory=list)
    regions: list[RegionLines] = field(default_factory=list)


@dataclass(kw_only=True)
class LateBackward:
    """A backward graph compiled in this recording whose forward was compiled before it."""

    compile_id: str
    seconds: float | None = None
    code: str = ""
    from_cache: bool = False


@dataclass(kw_only=True)
class Summary:
    """The counts of a report; `ignored` frames are not counted."""

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
    #: frames whose compile has no recorded end: the log was cut off, the run was interrupted, or it is still running
    unfinished: int = 0
    #: breaks that no explicit allow covers (unknown counts as unexpected)
    unexpected: int = 0
    #: graph breaks that are known only by what came after them: there is no record of their place and reason
    unknown_breaks: int = 0


@dataclass(kw_only=True)
class ReportData:
    """Everything one recording learned: what is saved, loaded and compared."""

    schema: int = SCHEMA
    versions: dict[str, str | None] = field(default_factory=dict)
    #: what was compiled: names of functions and modules, or ["the cell's statements"]
    compiled: list[str] = field(default_factory=list)
    settings: dict[str, Setting] = field(default_factory=dict)
    #: each hook into torch: True, or why it does not fit this torch
    hooks: dict[str, bool | str] = field(default_factory=dict)
    summary: Summary = field(default_factory=Summary)
    frames: list[Frame] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    #: graph breaks in the code of DDP and FSDP around a module, which cut no graph; not among `breaks`
    wrapper_breaks: list[Break] = field(default_factory=list)
    recompiles: list[Recompile] = field(default_factory=list)
    error: Failure | None = None
    sources: list[Source] = field(default_factory=list)
    #: where the time of the compiles went; None: the compiler recorded no times, or nothing was compiled
    compile_time: CompileTime | None = None
    #: where the time of a call goes; only with `--profile`
    profile: Profile | None = None
    #: one entry for each input of a list; only with `--inputs`
    inputs: list[InputRun] | None = None
    #: compiled against eager; only with `--check`
    check: Check | None = None
    #: what was tried for each graph break; only with `--fix`
    fixes: list[Fix] | None = None
    #: the proved fixes that were chosen, together; only with `--fix`
    fix_set: FixSet | None = None
    #: remarks for the user, one sentence each
    notes: list[str] = field(default_factory=list)
    late_backwards: list[LateBackward] = field(default_factory=list)
    #: records that could not be used, counted by kind
    unread: dict[str, int] = field(default_factory=dict)
    #: "live", "trace" (TORCH_TRACE files) or "partial" (interrupted)
    origin: Literal["live", "trace", "partial"] = "live"
