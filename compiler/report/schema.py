"""The data of a Report (`ReportData`) and its recorded parts, such as frames, graphs and breaks, as plain data.

`None` means *unknown* or *does not apply*; for a flag, it never means False.  Line numbers start at 1 (0: unknown); columns
start at 0 and count characters (`ast` counts bytes); times are seconds.  Import these names from `dynascope.compiler.report`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import field

from dynascope.compiler.report.data import FailedGuard, GuardSite, LazyPart, Part, PerhapsPlaced, Place, StackEntry, Symbol
from dynascope.compiler.report.measurements import Check, CompileTime, Fix, FixSet, GraphRun, InputRun, Profile, Trial

#: version of the data; `upgrade` converts older data.  A new field with a default needs no new version.
SCHEMA = 2
#: the value of one setting; `options` is a dict
Setting = bool | int | float | str | list[str] | dict[str, bool | int | float | str | None] | None

FrameKind = Literal["function", "resume", "statements", "autograd"]
#: "empty": nothing to compile in it; "skipped": runs eagerly; "failed": its compile raised an error; "ignored": left out of the
#: counts; "cached": compiled, or skipped, before the recording; "unfinished": its compile has no recorded end
FrameStatus = Literal["compiled", "empty", "skipped", "failed", "ignored", "cached", "unfinished"]
Outcome = Literal["resumed", "skipped", "raised"]
Backward = Literal["none", "pending", "compiled", "from cache"]
FlagOriginKind = Literal["default", "run", "with", "decorator", "option", "unknown"]


class FlagOrigin(PerhapsPlaced, kw_only=True):
    """What set the `error_on_graph_break` that is in force at a place; its own place is that of a `with` block."""

    #: "default": torch; "run": the settings of the run; "with": a `with` block; "decorator"; "option": a `--region` option
    kind: FlagOriginKind = "unknown"
    #: name of the decorated function, or target of the option as written ("9-12", "Net.forward")
    name: str | None = None

    @property
    def is_region(self) -> bool:
        """Whether a region set the flag, rather than the run or torch."""
        return self.kind in ("with", "decorator", "option")


class Resume(Part, kw_only=True):
    """Where a resume function continues, and what Dynamo passes to it."""

    line: int
    column: int | None = None
    #: names of the locals that Dynamo passes to it; [] if there are none, or if they are unknown
    locals: list[str] = []
    #: number of values on Python's value stack that Dynamo passes to it; they have no names
    stack: int | None = None


class InlinedFunction(Place, kw_only=True):
    """A function that was traced into the graph of another frame."""

    #: name with the class of a method ("Block.forward")
    name: str | None = None


class Frame(LazyPart, Place, kw_only=True):
    """One compile of a Python code object: in the recording, or before it if the code ran in the recording.

    `line` is the first line of the function; for a resume function, the line at which it continues.
    """

    id: str
    compile_id: str | None
    #: the user's name of the function; for a resume function, the name of the function that it continues
    name: str
    #: the compiler's name of the function (`torch_dynamo_resume_in_f_at_4`)
    code_name: str
    #: the function's name in the source, with the class of a method ("Block.forward"); None: unknown
    qualname: str | None = None
    kind: FrameKind = "function"
    status: FrameStatus = "compiled"
    #: why the frame's status is not "compiled", or why the rest of a compiled frame runs eagerly
    reason: str | None = None
    #: whether it runs eagerly only because the recording suppressed the compiler's exception, which `reason` gives
    suppressed: bool = False
    #: id of the break after which a resume function continues; for any other frame, the same as `stopped_by`
    break_: str | None = None
    #: id of the break because of which the frame was skipped or failed
    stopped_by: str | None = None
    #: id of the frame that this one continues after a break
    continues: str | None = None
    #: id of the frame that called this one
    parent: str | None = None
    #: line of that call
    called_from: int | None = None
    #: id of the frame's graph; None: it has none
    graph: str | None = None
    #: for a recompile, id of the frame of the previous compile of the same code object
    recompile_of: str | None = None
    resume: Resume | None = None
    compile_seconds: float | None = None
    guard_count: int | None = None
    #: the frame's guards by the line that made them
    guard_sites: list[GuardSite] = []
    #: the symbols in the frame's shapes
    symbols: list[Symbol] = []
    #: functions that were traced into this frame's graph; only those with an operation on their own lines are known, or with
    #: the break that the frame failed at
    inlined: list[InlinedFunction] = []
    fullgraph: bool | None = None
    error_on_graph_break: bool | None = None
    thread: int | None = None
    #: whether a thread other than the recording's compiled the frame
    foreign: bool = False
    bytecode: str | None = None
    modified_bytecode: str | None = None

    @property
    def code(self) -> tuple[str, int, str]:
        """What the versions of a code object have in common."""
        return self.file, self.line, self.code_name


class Node(Part, kw_only=True, gc=False):
    """One node of an FX graph: plain data without cycles, and thousands of them, so the garbage collector passes them by."""

    name: str
    #: FX's opcode: placeholder, get_attr, call_function, call_method, call_module, output
    op: str
    target: str
    #: names of the nodes that are arguments of this one
    inputs: list[str] = []
    #: the place according to the compiler: in the user's code, or in torch's code for the operations inside a function of torch
    file: str | None = None
    line: int | None = None
    dtype: str | None = None
    shape: list[int | str] | None = None
    stride: list[int | str] | None = None
    device: str | None = None
    #: class of a tensor subclass, with a DTensor's placements as torch prints them ("DTensor(S(0), R)"); None: a plain tensor
    subclass: str | None = None
    #: the expression or statement in the compiler's text (`x.sin()`, `return (sin,)`); "" for a placeholder
    code: str = ""
    #: path of the nn.Module that the node ran in ("encoder.layers.0"); None: in none, or unknown
    module: str | None = None


class GraphSplit(Part, kw_only=True):
    """One of the graphs into which DDPOptimizer split a graph; there is one for each bucket of gradients."""

    name: str
    code: str = ""


class Graph(Part, kw_only=True):
    """An FX graph captured from one frame, with the results of later stages."""

    id: str
    frame: str
    #: number of nodes other than placeholder, get_attr and output; None: compiled before the recording
    ops: int | None
    nodes: list[Node] = []
    code: str = ""
    inputs: list[str] = []
    outputs: list[str] = []
    #: how the graph ended: "return", "break", or the compiler's word for another end
    end: str | None = None
    #: id of the break that ended the graph
    break_: str | None = None
    #: the graphs into which DDPOptimizer split the graph
    splits: list[GraphSplit] = []
    aot_forward: str | None = None
    aot_backward: str | None = None
    backend_code: str | None = None
    backward: Backward = "none"
    from_cache: bool | None = None
    #: cache of the compiler -> its different answers ("hit", "miss", "bypass"), as in {"aot": "bypass", "fx": "miss, hit"}
    caches: dict[str, str] = {}
    #: sentences on later stages, such as skipped CUDA graphs, and on unrolled loops
    notes: list[str] = []
    #: known values of the symbols in the graph's shapes when it was captured: {"s77": 8}
    sizes: dict[str, int | float] = {}
    #: the result of `report.run_graph`; None: it was not called for this graph
    run: GraphRun | None = None


class Hit(Part, kw_only=True):
    """One frame that ran into a break."""

    frame: str
    #: line of the break in that frame; if the break is in an inlined function, line of the call that leads to it
    line: int | None
    outcome: Outcome
    #: ids of the frames of the resume functions made for the break (two functions after a data-dependent `if`), recompiles
    #: included
    resumes: list[str] = []
    #: the first line of the `try` because of which Dynamo skipped the frame; None: not because of one, or unknown
    block: StackEntry | None = None


class Undecided(Part, kw_only=True):
    """A condition or a number that depends on data, so that tracing could not evaluate it."""

    #: the condition or number in the compiler's symbols ("u0 > 3"); the frame's `symbols` say what u0 is
    expression: str
    #: what tracing needed: "condition": whether the expression is true; "integer": its value
    needed: Literal["condition", "integer"] = "condition"
    #: the calls of `torch._check` that the compiler suggests, in the program's names; [] if it suggests none
    checks: list[str] = []


class Break(StackEntry, kw_only=True):
    """One place in the user's code where a graph had to stop: the innermost entry of its stack."""

    id: str
    gb_ids: list[str] = []
    type: str = ""
    reason: str = ""
    explanation: str = ""
    #: the error in tracing that caused the break, `TypeError: argument 'is_causal' must be bool, not SymBool`; "": none known
    error: str = ""
    #: the compiler's hints; where one assigns a setting to `torch._dynamo`, the name is corrected to `torch._dynamo.config`;
    #: without the one to capture a number on which the line branches, as the branch breaks, too
    hints: list[str] = []
    #: URL of torch's page on each GB id
    urls: list[str] = []
    #: the worst outcome among its hits
    outcome: Outcome = "resumed"
    #: value of `error_on_graph_break` at the break; None: unknown
    error_on_graph_break: bool | None = None
    fullgraph: bool | None = None
    #: what set `error_on_graph_break`
    region: FlagOrigin = field(default_factory=FlagOrigin)
    #: whether regions explicitly allow graph breaks there, at all of its hits; None: unknown
    allowed: bool | None = None
    #: whether the break was absent when the same calls were traced again from the state that they had left; None: unknown, or
    #: it was, but as many others were there, and as many functions ran eagerly, or its own code did as a whole
    first_call_only: bool | None = None
    stack: list[StackEntry] = []
    hits: list[Hit] = []
    #: the compiler's whole message
    text: str = ""
    #: the expression that depends on data, if that is the reason for the break; None: another reason, or unknown
    undecided: Undecided | None = None
    #: what data decides there: to leave a loop, by its condition, or by `break` or `return` in an `if` ("break"); to raise
    #: ("raise"); or something else than which value a name gets or is returned ("other"); "": that, or unknown
    decides: str = ""


class Recompile(Part, kw_only=True):
    """A frame compiled again because a guard failed, or refused because it had been compiled too often."""

    #: id of the frame
    frame: str
    #: id of the frame of the previous compile
    of: str | None
    #: the compiler's reasons, one for each compiled version that was tried; those of torch's global state come last
    reasons: list[str] = []
    #: the reasons as structured facts: of each version, the first guard that failed
    failed_guards: list[FailedGuard] = []
    #: stack of the call that needed the recompile, outermost first
    stack: list[StackEntry] = []
    #: number of the call in progress, from 1, among the calls of the function that was called compiled (this one, or one that
    #: leads to it) in this recording (with those of a recording around it, if there is one)
    call: int | None = None
    #: number of compiled versions of the code object after the recompile
    entries: int | None = None
    #: how many compiled versions the code object may have at most
    limit: int | None = None
    #: the limit in `torch._dynamo.config` that refused the recompile, so that the frame runs eagerly from then on; None: not
    #: refused
    refused_by: str | None = None


class Failure(PerhapsPlaced, kw_only=True):
    """The error that ended the run, or one of the compiler's that did not, as it was caught or in another thread."""

    type: str
    message: str
    break_: str | None = None
    frame: str | None = None
    #: "compiler": the compiler refused the code; "user": an error in the user's code
    origin: Literal["compiler", "user"] = "compiler"
    #: whether the run went on after the error: it was caught, or in another thread
    caught: bool = False
    #: whether an operation of a graph raised the error when the graph ran
    in_graph: bool = False
    #: the places outside torch, in the user's code or a library, that the error passed through, outermost first; [] if unknown
    calls: list[StackEntry] = []


class Excerpt(Part, kw_only=True):
    """Successive lines of a source; `line` is the number of the first."""

    line: int
    text: str


class RegionLines(Part, kw_only=True):
    """Lines for which a region set `error_on_graph_break`."""

    first: int
    last: int
    error_on_graph_break: bool
    set_by: FlagOrigin


class Source(Part, kw_only=True):
    """The text of one file or cell that the report refers to, as excerpts."""

    file: str
    #: short name for display ("In[3]", "model.py")
    label: str
    cell: int | None = None
    #: excerpts in order of their lines; they do not overlap
    excerpts: list[Excerpt] = []
    regions: list[RegionLines] = []


class Summary(Part, kw_only=True):
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
    #: breaks that no region explicitly allows, including those for which that is unknown
    unexpected: int = 0
    #: graph breaks that are known only from their effects, because no record has their place and reason
    unknown_breaks: int = 0


class ReportData(LazyPart, kw_only=True):
    """All facts of one recording: the data that is saved, loaded and compared."""

    schema: int = SCHEMA
    versions: dict[str, str | None] = {}
    #: names of the functions and modules that were compiled, or ["the cell's statements"]
    compiled: list[str] = []
    settings: dict[str, Setting] = {}
    #: name of each hook into torch -> True, or why it is not installed; also the names of parts that this torch lacks and of
    #: hooks that failed, with the error
    hooks: dict[str, bool | str] = {}
    summary: Summary = field(default_factory=Summary)
    frames: list[Frame] = []
    graphs: list[Graph] = []
    breaks: list[Break] = []
    #: graph breaks in the code of DDP and FSDP that wraps a module; they split no graph and are not among `breaks`
    wrapper_breaks: list[Break] = []
    recompiles: list[Recompile] = []
    error: Failure | None = None
    sources: list[Source] = []
    #: where the time of the compiles went; None: the compiler recorded no times, or nothing was compiled
    compile_time: CompileTime | None = None
    #: where the time of a call goes; only with `--profile`
    profile: Profile | None = None
    #: one entry for each input of a list; only with `--inputs`
    inputs: list[InputRun] | None = None
    #: comparison of compiled with eager; only with `--check`
    check: Check | None = None
    #: what tracing the calls again showed, first without a change; only with `--second-call`, and with `--profile` if breaks
    #: are expensive
    trials: list[Trial] | None = None
    #: the changes that were considered for each graph break and recompile; only with `--fix`
    fixes: list[Fix] | None = None
    #: the verified fixes, applied together; only with `--fix`
    fix_set: FixSet | None = None
    #: the verified and the conditional fixes, applied together; None: there is no conditional one
    conditional_fix_set: FixSet | None = None
    #: remarks for the user, one sentence each
    notes: list[str] = []
    #: number of log records that are unknown or damaged, by kind
    unread: dict[str, int] = {}
    #: source of the events: "live": a recording; "trace": TORCH_TRACE logs; "partial": a recording that was interrupted
    origin: Literal["live", "trace", "partial"] = "live"

    @property
    def of_inputs(self) -> set[str]:
        """Ids of the frames that the compiler worked on because of inputs of `--inputs`, not for the program's own calls."""
        return {id for run in self.inputs or () for id in run.frames}

    @property
    def own_breaks(self) -> list[Break]:
        """The graph breaks of the program's own calls: without those that only inputs of `--inputs` run into."""
        return [b for b in self.breaks if not b.hits or self.own_hits(b)]

    def own_hits(self, b: Break) -> list[Hit]:
        """Where the program's own calls run into a break."""
        return [h for h in b.hits if h.frame not in self.of_inputs]

    def seen_from(self, b: Break) -> set[tuple[str, int, str]]:
        """The code that runs into a break: the versions of a function are one."""
        frames = {h.frame for h in self.own_hits(b) or b.hits}
        return {f.code for f in self.frames if f.id in frames}
