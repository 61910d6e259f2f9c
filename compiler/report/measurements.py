"""The measured parts of a Report: profile, inputs, graphs run alone, compile time, compiled against eager.

`None` means *unknown* or *does not apply*; times are seconds; a `share` is a fraction; a `spread` is the
first and the third quartile.  The data is mostly numbers and enums, from which the views make sentences; notes and error
messages are text.

A change that `--fix` considers is a fix only if its verdict is "verified"; otherwise `reason` says why it is not.
"""

from __future__ import annotations

import math
from typing import Literal

from msgspec import field

from dynascope.compiler.report.data import FailedGuard, LazyPart, Part, PerhapsPlaced, SparsePart

SegmentKind = Literal["graph", "gap", "lookup", "prologue", "wait", "unaccounted", "kernel", "copy"]
#: how the cost of a break was computed.  "gap": guards, prologues, Python and synchronisation between two graphs, without
#: the eager ops; "device idle": as "gap", but at most the time in which the devices were idle; "eager frame": not computed,
#: because a frame runs eagerly there, and the speed of its compiled code is unknown; "unknown": the profile does not tell
#: what comes from the break: the call did not run into it, or did so in eager code or in code that the report lacks
CostMethod = Literal["gap", "device idle", "eager frame", "unknown"]
#: where half of the calls differ by more than this factor, their times are rough
UNEVEN = 1.5
#: in the reasons of refused changes, the break for which they were tried: these say nothing of what a setting does to others
THE_BREAK = "the graph break"
#: why a change is refused whose break is still there, and how the label of a graph begins that only a repeated call compiled
STAYS, MEANWHILE = f"{THE_BREAK} stays", "compiled while measuring"
#: whether compiling pays off.  "calls": after `payback_calls` calls; "compile time unknown": after an unknown number of calls;
#: "no gain": never, as compiled code is about as fast as eager code; "slower": never, as compiled code is slower; "faster":
#: after a number of calls that rough times do not tell; "unclear": the times vary by more than they differ
Payback = Literal["calls", "compile time unknown", "no gain", "slower", "faster", "unclear"]
#: what the compiler does in a phase.  "backend": the whole call of the backend, other phases included; "compiler": the
#: C++ and Triton compilers
PhaseKind = Literal[
    "dynamo", "guards", "backend", "aot", "passes", "lowering", "codegen", "compiler", "autotuning", "cache", "other"
]
#: breaks that together take a smaller part of a call are not worth fixing to save time
LEAST_WORTH = 1 / 20
InputOutcome = Literal["reused", "recompiled", "compiled", "eager", "failed"]


class OpTime(Part, kw_only=True):
    """One operation of a graph that was run alone: the median of its times."""

    #: name of the graph's node
    node: str
    seconds: float


class GraphRun(Part, kw_only=True):
    """One graph that was run on its own, eagerly and compiled, on synthetic data of the recorded shapes.

    It runs without gradients, unless the graph itself takes derivatives (`torch.func`).
    """

    device: str
    device_name: str
    backend: str
    calls: int
    #: median time of a call, and its spread; eager and compiled calls alternate
    eager_seconds: float
    eager_spread: list[float] = []
    #: None: the backend could not compile or run the graph (a note says why)
    compiled_seconds: float | None = None
    compiled_spread: list[float] = []
    #: `eager_seconds` / `compiled_seconds`
    speed_up: float | None = None
    #: each operation of the eager graph, in order
    ops: list[OpTime] = []
    #: how far the figures can be trusted, one sentence each
    notes: list[str] = []


class Payoff(Part, kw_only=True):
    """Whether compiling pays off for a call."""

    #: median time of a call in eager mode
    eager_seconds: float | None = None
    #: None: nothing was compiled for it, or the calls were not timed
    payback: Payback | None = None
    payback_calls: int | None = None


class InputRun(Payoff, kw_only=True):
    """One of several inputs: what the compiler did because of it, and what a call with it takes.  None: unknown."""

    #: `float32[7, 3], scale=2`
    arguments: str
    #: reused (ran from compiled code), recompiled (a guard failed), compiled (code that no input had reached before), eager (no
    #: compiled code runs, for example because of the recompile limit), failed (see `error`)
    outcome: InputOutcome = "reused"
    #: frames that the compiler worked on because of this input, and the number of recompiles
    frames: list[str] = []
    recompiles: int = 0
    #: for each recompile, the guards that failed, of each earlier version the first
    failed_guards: list[FailedGuard] = []
    #: why the call, or a part of it if the outcome is "reused", runs eagerly, in the compiler's words
    reasons: list[str] = []
    compile_seconds: float = 0.0
    #: median time of a later call, and the spread
    seconds: float | None = None
    spread: list[float] = []
    #: the graphs that a call with this input runs, each once, in order
    graphs: list[str] = []
    error: str | None = None


class EagerOp(Part, kw_only=True):
    """One kind of eager op in a gap."""

    name: str
    seconds: float
    count: int = 1


class Segment(Part, kw_only=True):
    """One stretch of a call on one lane.  The segments of the first lane follow one another, with no time between them."""

    #: graph, gap (eager code and its ops), lookup (guards are checked to find compiled code), prologue (code of a compiled
    #: frame around its graph), wait (for the device), unaccounted; on the lane of a device: kernel or copy
    kind: SegmentKind
    lane: str
    #: start, in seconds from the start of the call, and duration, both in the one call that is drawn
    start: float
    duration: float
    #: short name for display
    label: str
    frame: str | None = None
    graph: str | None = None
    #: the break without which this stretch would not be there
    break_: str | None = None
    #: the eager ops of a gap, or the operations that a graph calls (not the backend's own kernels), slowest first
    ops: list[EagerOp] = []
    #: number of eager ops that ran in a gap, including those that `ops` leaves out; None: not a gap, or unknown
    op_count: int | None = None


class BreakCost(Part, kw_only=True):
    """What one break costs a call."""

    break_: str
    #: what a call would save without the break: median over the calls; None: unknown
    seconds: float | None
    #: fraction of the call's time
    share: float | None = None
    spread: list[float] = []
    #: how `seconds` was computed
    method: CostMethod = "gap"
    #: time of the gap's eager ops: without the break they would still run, in a graph, at an unknown speed; 0 where torch
    #: breaks on purpose, as at `backward`: they run eagerly all the same
    ops_seconds: float = 0.0
    #: if a frame that is entered at the break runs eagerly, or the break calls a disabled function: what a call spends there
    eager_seconds: float | None = None
    #: how often a call runs into the break; 0 if the method is "eager frame" or "unknown"
    times: float = 0.0

    @property
    def most(self) -> float:
        """What a call spends between graphs because of the break, with the eager ops."""
        return (self.seconds or 0.0) + self.ops_seconds + (self.eager_seconds or 0.0)


class Verdict(Payoff, kw_only=True):
    """Eager against compiled, timed without the profiler; None: unknown."""

    compiled_seconds: float | None = None
    compile_seconds: float | None = None


class Profile(Part, kw_only=True):
    """What a call takes, and where its time goes, from more calls without the profiler, and `calls` under torch.profiler."""

    calls: int
    #: the function or module that was called; "" if the run called no other
    function: str = ""
    #: median time of a warm call in a loop, without the profiler, and its spread
    median_seconds: float
    spread: list[float] = []
    #: median time of a call under the profiler, which slows it down: `segments` and `shares` are those of such calls
    profiled_seconds: float | None = None
    lanes: list[str] = []
    segments: list[Segment] = []
    #: shares of a profiled call, from medians: graphs, gaps, lookups, prologue, waiting, unaccounted, device busy
    shares: dict[str, float] = {}
    #: the most expensive first; unknown ones last
    breaks: list[BreakCost] = []
    verdict: Verdict = field(default_factory=Verdict)
    #: median time that a call spends on evaluating guards (the profiler's "TorchDynamo Cache Lookup"); None: it evaluated none,
    #: or this torch does not mark that
    guard_seconds: float | None = None
    #: names of the CPU and of the accelerators, if the program uses any
    devices: list[str] = []
    #: what repeating the call could not undo, and how far the figures can be trusted
    notes: list[str] = []

    @property
    def seconds_of_breaks(self) -> float:
        """All that a call spends between graphs because of breaks, with the eager ops."""
        return sum(c.most for c in self.breaks)

    @property
    def call_seconds(self) -> float:
        """What a call takes, where its parts are compared with it.

        The profiler only adds time: a profiled call that takes less shows that something else disturbed the others.
        """
        return min(self.median_seconds, self.profiled_seconds or self.median_seconds)

    @property
    def is_worth_fixing(self) -> bool:
        """Whether breaks take so much of a call that fixing them pays."""
        return self.seconds_of_breaks >= LEAST_WORTH * self.call_seconds


class CompilePhase(SparsePart, kw_only=True):
    """All phases of one name in the compiles of one frame; time of a phase nested in one of the same name is counted once."""

    #: as the compiler names it ("bytecode_tracing")
    name: str
    kind: PhaseKind = "other"
    #: the phase's name in `torch._dynamo.utils.compile_times()`, if different
    function: str | None = None
    #: the frame; None: unknown, or the compile is of no frame that the report has
    frame: str | None = None
    count: int = 0
    #: with the phases nested in these, and without them
    seconds: float = 0.0
    self_seconds: float = 0.0


class RepeatedBlock(SparsePart, PerhapsPlaced, kw_only=True):
    """A block of operations that was compiled several times: in one graph, or in several that are equal."""

    count: int
    #: number of operations in one copy, and the fraction of the graphs' operations that are in a copy
    ops: int
    share: float = 0.0
    graphs: list[str] = []
    #: paths of the modules that are one block each ("layers.0", "layers.1"); [] if unknown
    modules: list[str] = []
    #: up to five functions that the block's operations are in, in order
    functions: list[str] = []


class CompileTime(LazyPart, kw_only=True):
    """Where the time of the compiles went, from the events that the compiler writes for its own time line."""

    #: sum of the outermost phases over all threads
    seconds: float = 0.0
    #: the time that passed while at least one thread compiled
    elapsed: float = 0.0
    #: sorted by name, kind and frame, so that reports of one program have the same order
    phases: list[CompilePhase] = []
    #: names of phases that began and have no recorded end: their time is not counted
    unfinished: list[str] = []
    #: the blocks that were compiled several times, the largest first
    repeats: list[RepeatedBlock] = []


class NumberError(SparsePart, kw_only=True):
    """How far one result is from the same result in float64."""

    #: the largest error, as a share of the largest value, or of the largest gradient; None: that is 0, and the error is not, or
    #: nothing is finite
    relative: float | None = None
    #: how many elements are NaN or infinite where float64 has another value, or the other way round
    not_finite: int = 0


#: "rounding": both are right; "compiled" and "eager": this one is wrong; "both": both are, as the computation loses digits;
#: "unknown": they cannot be compared with float64
NumbersVerdict = Literal["rounding", "compiled", "eager", "both", "unknown"]


class NumbersOf(Part, kw_only=True):
    """One result, effect or gradient against the same computation in float64."""

    name: str
    #: "values", "effects" or "gradients"
    what: str
    dtype: str = ""
    elements: int = 1
    compiled: NumberError
    eager: NumberError
    #: what moving each input by one unit in the last place changes; None: not measured, as nothing differs
    noise: NumberError | None = None
    verdict: NumbersVerdict = "unknown"


class NodeNumbers(SparsePart, kw_only=True):
    """How far the value of one node of a graph is from float64: errors as shares of its largest value, 1 at most."""

    node: str
    file: str | None = None
    line: int | None = None
    eager: float = 0.0
    compiled: float = 0.0


class NumbersOrigin(PerhapsPlaced, kw_only=True):
    """The first operation whose result is wrong."""

    source: str = ""
    #: name of the operation, and of its node in the graph; of the operations, `cos or sin`, and of the node that they use, if
    #: one of several derivatives is wrong
    operation: str = ""
    node: str = ""
    #: whether its result is right, and its derivative is wrong
    is_backward: bool = False
    #: whether its result is right at first, and wrong after another tensor was changed in place
    is_later: bool = False
    #: number of the graph in the order of the call, and of the run of this graph, from 0; how many runs it has
    graph: int = 0
    run: int = 0
    runs: int = 1
    compiled: NumberError
    eager: NumberError
    #: the largest magnitude among its inputs and in its result; None: unknown
    inputs_size: float | None = None
    result_size: float | None = None
    #: the nodes whose values were compared, in order
    path: list[NodeNumbers] = []


class NumbersStage(Part, kw_only=True):
    """The part of the compiler that makes the compiled result wrong, as torch's bisector names it."""

    #: the first of "eager" (Dynamo), "aot_eager", "aot_eager_decomp_partition" and "inductor" that is wrong, or another backend
    backend: str
    #: such as "post_grad_passes" or "lowerings", or the name of a setting; "" if it is unknown
    part: str = ""
    #: which application of that part it is, from 0
    number: int | None = None
    #: name of the pass or node
    detail: str = ""


class NumbersRemedy(Part, kw_only=True):
    """A change with which compiled and eager code agree, or with which both are right; it was tried."""

    #: a statement that sets a setting, or the call that replaces the formula, with the names of the graph's nodes; or in words
    change: str
    #: the errors of the formula that replaces another one; None for a setting
    eager: NumberError | None = None
    compiled: NumberError | None = None


class Numbers(Part, kw_only=True):
    """Which is right, compiled or eager: both against the same computation in float64."""

    verdict: NumbersVerdict = "unknown"
    #: why the verdict is unknown; else empty
    why_not: str = ""
    #: the verdict in words
    sentence: str = ""
    #: the lowest precision that the call computes with
    precision: str = ""
    parts: list[NumbersOf] = []
    #: where it begins; only with `--check=where`
    origin: NumbersOrigin | None = None
    #: why that is unknown; else empty
    origin_unknown: str = ""
    #: what in the compiler makes it; only with `--check=where`, and only if compiled is wrong
    stage: NumbersStage | None = None
    #: text for an issue, with a script that shows on its own what the compiler makes wrong; "" if there is none
    issue: str = ""
    #: what helps; only with `--check=where`
    remedies: list[NumbersRemedy] = []


class Check(Part, kw_only=True):
    """Compiled against eager: the outcome of `--check`."""

    #: None: nothing could be compared, or differences are inconclusive
    agrees: bool | None = None
    #: how many tensors, arrays, numbers and strings were compared, by part: "values", "effects" and "gradients"; numbers and
    #: strings in modules count only if the call changed them
    compared: dict[str, int] = {}
    differences: list[str] = []
    #: names of values that were judged by a precision lower than their own, because it was used on the way -> that dtype
    judged_by: dict[str, str] = {}
    #: why `agrees` is None; else empty
    why_not: str = ""
    #: classes of returned values, and names of tensors, that could not be compared
    not_compared: list[str] = []
    #: which of the two is right; None: nothing was compared
    numbers: Numbers | None = None


#: verified: agrees with eager on every input tried; conditional: so do all values, gradients and effects, but in the cases that
#: `Fix.condition` names, messages, exceptions or checks differ; refused: anything else differs, or nothing gets better
FixVerdict = Literal["verified", "conditional", "refused", "untried"]
FixKind = Literal["setting", "wrap", "rewrite"]
#: full name of a setting (`torch._dynamo.config.NAME`), or argument of torch.compile -> the value; a list holds dotted names of
#: functions.  `torch._dynamo.mark_dynamic` -> the sizes to mark before each call: "x, 0" is dimension 0 of x
FixSettings = dict[str, bool | int | float | str | list[str] | None]


def setting_lines(settings: FixSettings) -> list[str]:
    """Settings as lines of Python."""
    lines = []
    for name, value in settings.items():
        if name == "torch.compiler.set_stance":
            lines.append(f'with {name}("{value}"): ...  # the recorded calls, before the first compiled one')
        elif isinstance(value, list):
            call = name if name == "torch._dynamo.mark_dynamic" else f"{name}.add"
            lines += [f"{call}({argument.removeprefix('builtins.')})" for argument in value]
        else:
            lines.append(f"{name} = {value!r}" if "." in name else f"torch.compile(..., {name}={value!r})")
    return lines


class Trial(Part, kw_only=True):
    """One more trace of the recorded calls, without the backend, from the state that the run has left."""

    #: as in `Fix.settings`; {}: nothing was changed, so what is missing occurs only in the first call
    settings: FixSettings = {}
    #: counts of the trace; None: it ended with an error
    breaks: int | None = None
    graphs: int | None = None
    recompiles: int | None = None
    skipped: int | None = None
    #: ids of the run's breaks that the trace does not have, but for those in code that it runs eagerly as a whole
    removes: list[str] = []
    #: why it is not advised, as a clause: an exception, no fewer breaks, other results or effects of a call, or that calls
    #: in a row go on compiling
    harm: str | None = None

    def no_gain_over(self, other: Trial) -> str | None:
        """The counts, as a clause, unless breaks and eager frames are fewer in sum, and breaks too, or graphs are more."""
        (breaks, skipped), (before, eager) = ((t.breaks or 0, t.skipped or 0) for t in (self, other))
        if (breaks, -(self.graphs or 0)) < (before, -(other.graphs or 0)) and breaks + skipped < before + eager:
            return None
        more = f", frames that run eagerly {eager} → {skipped}" if skipped > eager else ""
        return f"graph breaks {before} → {breaks}{more}"


class FixEdit(Part):
    """Lines of one file that are replaced.

    `last_line` is `first_line - 1` if lines are only added.  The line numbers refer to the text in which all fixes chosen
    earlier have already been made; in `FixSet.edits`, they refer to the original text.
    """

    file: str
    first_line: int
    last_line: int
    before: str = ""
    after: str = ""


class Counts(Part, kw_only=True):
    """What the compiler makes of some calls, and what a call then costs."""

    breaks: int = 0
    graphs: int = 0
    #: None: unknown, as calls in a row go on to compile the code that guards what they change, or as they were not traced
    recompiles: int | None = 0
    #: what the fourth of four equal repeated calls still compiles, each function with a guard that failed
    compiled_again: list[str] = []
    #: how often the calls, made once more, enter a graph, and how many operations they run outside of graphs; None: unknown
    graph_runs: int | None = None
    eager_ops: int | None = None
    #: median time of the profiled call; None: not profiled, no fixes, or the call raises or takes too long
    seconds: float | None = None

    @property
    def cost(self) -> int:
        """What a warm call does outside of graphs, 0 if unknown: to enter a graph costs about as much as five operations."""
        return 5 * (self.graph_runs or 0) + (self.eager_ops or 0)


class Fix(Part, kw_only=True):
    """One change that was considered for one graph break or recompile."""

    id: str
    #: id of the break that the change is for
    break_: str | None = None
    #: id of the recompiled frame that the change is for
    recompile: str | None = None
    #: for a chosen change, ids of the breaks and of the recompiled frames that it removes, beyond those that the fixes chosen
    #: before it remove
    removes: list[str] = []
    #: ids of the breaks at whose lines another one appears with it, and stays
    moves: list[str] = []
    kind: FixKind = "rewrite"
    title: str = ""
    edits: list[FixEdit] = []
    settings: FixSettings = {}
    verdict: FixVerdict = "untried"
    #: why the change is refused; if it is not, what was compared
    reason: str = ""
    #: what the change assumes, and no comparison can show
    assumption: str = ""
    #: of a conditional change, the cases in which something else than a value, a gradient or an effect differs; sentences
    condition: str = ""
    #: of the repeated calls, without and with the change; the fixes chosen before it are in force for both
    before: Counts | None = None
    after: Counts | None = None

    @property
    def chosen(self) -> bool:
        """Whether the change is one of those that `report.patch()` or `report.patch(conditional=True)` applies."""
        return self.verdict in ("verified", "conditional")


class FixSet(Part, kw_only=True):
    """Chosen fixes, applied together: those that are verified, or these and the conditional ones."""

    #: ids of the fixes, in the order in which they are applied
    fixes: list[str] = []
    edits: list[FixEdit] = []
    settings: FixSettings = {}
    #: the fixes as a unified diff; settings of Dynamo and marks on sizes are statements in it where they can be written into a
    #: file; all other settings and marks are comments, which is all if no file changes
    patch: str = ""
    #: file name of each cell that changes -> its new text
    cells: dict[str, str] = {}
    #: of the repeated calls, without and with the fixes; where they come after calls in eager mode that do not belong to the
    #: set, what these remove is added
    before: Counts = field(default_factory=Counts)
    after: Counts = field(default_factory=Counts)
    #: how long the search took
    search_seconds: float = 0.0
    #: whether the search ended by itself, not because of the time limit or an interrupt
    is_complete: bool = True
    #: sentences for the user
    notes: list[str] = []

    @property
    def runs_no_less(self) -> bool:
        """Whether breaks remain with the fixes, and a call runs no fewer graphs and operations outside than without."""
        both, most = (self.before, self.after), math.inf  # calls go on compiling where they are unknown
        was, now = ((c.graphs, c.graph_runs, c.eager_ops, most if c.recompiles is None else c.recompiles) for c in both)
        return self.after.breaks > 0 and all(a is not None and b is not None and a <= b for a, b in zip(was, now, strict=True))
