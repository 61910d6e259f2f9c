"""The measured parts of a Report: profile, inputs, graphs run alone, compiled against eager.

`None` means *unknown* (or *does not apply*); times are seconds.  Numbers and enums only: the views make the sentences.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dynascope.compiler.report.guards import FailedGuard

SegmentKind = Literal["graph", "gap", "lookup", "prologue", "wait", "unaccounted", "kernel", "copy"]
#: how the cost of a break was computed: the time between two graphs on the CPU, the time in which a device was idle; or not
#: at all, because its frame runs eagerly and nobody knows how fast it would be compiled
CostMethod = Literal["gap", "device idle", "eager frame"]
#: when compiling has paid for itself: after `payback_calls`; unknown, because the compile time is; never, because compiled
#: code is about as fast as eager code, or slower
Payback = Literal["calls", "compile time unknown", "no gain", "slower"]
#: what the compiler does in a phase.  "backend": of which only the total is known; "compiler": C++ and Triton compilers
PhaseKind = Literal[
    "dynamo", "guards", "backend", "aot", "passes", "lowering", "codegen", "compiler", "autotuning", "cache", "other"
]
#: functions of torch.compiler for `guard_filter_fn`, settings of torch._dynamo.config, an argument of torch.compiler.set_stance
SwitchName = Literal[
    "skip_guard_on_inbuilt_nn_modules_unsafe", "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
    "use_recursive_dict_tags_for_guards", "install_free_tensors", "skip_guard_eval_unsafe",
]  # fmt: skip
InputOutcome = Literal["reused", "recompiled", "compiled", "eager", "failed"]


@dataclass(kw_only=True)
class OpTime:
    """One operation of a graph that was run alone: the median of its times."""

    #: name of the graph's node
    node: str
    seconds: float


@dataclass(kw_only=True)
class GraphRun:
    """One graph run again on its own: synthetic data of the recorded shapes, eager against compiled, without gradients."""

    device: str
    device_name: str
    backend: str
    calls: int
    #: of one call: median, and the middle half; eager and compiled calls alternate
    eager_seconds: float
    eager_spread: list[float] = field(default_factory=list)
    #: None: the backend could not compile it (a note says why)
    compiled_seconds: float | None = None
    compiled_spread: list[float] = field(default_factory=list)
    #: eager by compiled
    speed_up: float | None = None
    #: the most that torch's allocators held during a call, beside the inputs; None: unknown
    eager_peak_bytes: int | None = None
    compiled_peak_bytes: int | None = None
    #: each operation of the eager graph, in order
    ops: list[OpTime] = field(default_factory=list)
    #: how far the figures can be trusted, one sentence each
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class InputRun:
    """One of several inputs: what the compiler did because of it, and what a call with it takes.  None: unknown."""

    #: `float32[7, 3], scale=2`
    arguments: str
    #: reused (ran from compiled code), recompiled (a guard failed), compiled (code that no input had reached), eager (nothing
    #: compiled runs: the recompile limit, say), failed (see `error`)
    outcome: InputOutcome = "reused"
    #: frames that the compiler worked on because of it, and how many of them were recompiles
    frames: list[str] = field(default_factory=list)
    recompiles: int = 0
    #: of each recompile, the guard that failed
    failed_guards: list[FailedGuard] = field(default_factory=list)
    #: why it runs eagerly, in the compiler's words
    reasons: list[str] = field(default_factory=list)
    compile_seconds: float = 0.0
    #: its first call, compiling included
    first_seconds: float | None = None
    #: a later call: median and the middle half; and eager
    seconds: float | None = None
    spread: list[float] = field(default_factory=list)
    eager_seconds: float | None = None
    #: the graphs that a call with it runs, in order
    graphs: list[str] = field(default_factory=list)
    #: whether compiling for it pays; None: nothing was compiled for it, or not timed
    payback: Payback | None = None
    payback_calls: int | None = None
    error: str | None = None


@dataclass(kw_only=True)
class EagerOp:
    """One kind of eager op in a gap."""

    name: str
    seconds: float
    count: int = 1


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
    #: its short name
    label: str
    frame: str | None = None
    graph: str | None = None
    #: the break without which this stretch would not be there
    break_: str | None = None
    #: over all calls that took the same path: median, and the middle half of them
    median: float | None = None
    spread: list[float] = field(default_factory=list)
    #: of a gap: its eager ops, slowest first
    ops: list[EagerOp] = field(default_factory=list)
    #: of a gap: how many eager ops ran in it, also those that `ops` leaves out; None: unknown
    op_count: int | None = None


@dataclass(kw_only=True)
class CostParts:
    """What the cost of a break is made of: seconds a call, medians."""

    lookups: float = 0.0
    prologue: float = 0.0
    python: float = 0.0
    synchronisation: float = 0.0


@dataclass(kw_only=True)
class BreakCost:
    """What one break costs a call."""

    break_: str
    #: what would be gone without the break: median over the calls; None: unknown
    seconds: float | None
    #: of the call's time
    share: float | None = None
    spread: list[float] = field(default_factory=list)
    #: how `seconds` was computed
    method: CostMethod = "gap"
    #: calls that it is the median of
    calls: int = 0
    parts: CostParts | None = None
    #: eager ops of the gap: they would still have to run, in a graph, how fast is unknown
    ops_seconds: float = 0.0
    #: where the break makes Dynamo skip a frame: how long it runs eagerly
    eager_seconds: float | None = None
    #: how often a call meets it
    times: float = 0.0


@dataclass(kw_only=True)
class FrameGuards:
    """What guards and the code around the graph of one compiled frame take: seconds a call; frames add up."""

    #: None: compiled code that the report lacks, or a search that found none
    frame: str | None
    #: evaluating guards, until compiled code is found
    lookups: float = 0.0
    prologue: float = 0.0
    #: of the call's time, both together
    share: float = 0.0
    #: lookups a call
    times: float = 0.0


@dataclass(kw_only=True)
class GuardTime:
    """Some of a frame's guards: on one object and all that is in it, or on several alike (`self.layers.*`)."""

    frame: str
    source: str
    guards: int
    #: of one evaluation, without the profiler
    seconds: float
    #: of the evaluation of all guards of the frame
    share: float


@dataclass(kw_only=True)
class GuardSwitch:
    """A documented switch that leaves out guards, tried on the recorded call."""

    name: SwitchName
    #: guards and prologue of a call, in a trace of the call with the backend "eager": without it, and with it
    before: float | None = None
    seconds: float | None = None
    #: why it could not be tried
    failed: str | None = None


@dataclass(kw_only=True)
class GuardCosts:
    """What guards cost a call."""

    #: seconds a call: all guard evaluation (the profiler's "TorchDynamo Cache Lookup"), and the code around graphs; medians
    lookups: float
    prologue: float
    #: of the call's time, both together
    share: float
    #: the most expensive first
    frames: list[FrameGuards] = field(default_factory=list)
    #: the most expensive first; [] if they could not be timed
    guards: list[GuardTime] = field(default_factory=list)
    #: [] if guards take too little to matter
    switches: list[GuardSwitch] = field(default_factory=list)


@dataclass(kw_only=True)
class Verdict:
    """Eager against compiled, timed without the profiler; None: unknown."""

    eager_seconds: float | None = None
    compiled_seconds: float | None = None
    #: the compiled call without what its breaks cost
    without_breaks_seconds: float | None = None
    compile_seconds: float | None = None
    #: whether compiling pays; None: not timed
    payback: Payback | None = None
    payback_calls: int | None = None


@dataclass(kw_only=True)
class Profile:
    """Where the time of a call goes, from `calls` more calls under torch.profiler."""

    calls: int
    #: of one call under the profiler: median, and the middle half
    median_seconds: float
    spread: list[float] = field(default_factory=list)
    lanes: list[str] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    #: of the call's time, median over the calls: graphs, gaps, lookups, prologue, waiting, unaccounted, device busy
    shares: dict[str, float] = field(default_factory=dict)
    #: the most expensive first; unknown ones last
    breaks: list[BreakCost] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)
    #: None: unknown, as this torch does not mark the evaluation of guards
    guards: GuardCosts | None = None
    #: names of the devices it ran on
    devices: list[str] = field(default_factory=list)
    #: what repeating the call could not undo, and how far the figures can be trusted
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class CompilePhase:
    """One phase of the compiler, from its beginning to its end; a list of them has those inside a phase after it."""

    #: as the compiler names it ("bytecode_tracing")
    name: str
    kind: PhaseKind = "other"
    #: seconds since the first phase began; how long it took; how long without the phases inside it
    start: float = 0.0
    seconds: float = 0.0
    self_seconds: float = 0.0
    #: the lane that it is on, as an index, and in how many phases it lies
    lane: int = 0
    depth: int = 0
    compile_id: str | None = None
    frame: str | None = None
    #: it belongs to the compile of a backward graph
    backward: bool = False


@dataclass(kw_only=True)
class PhaseTotal:
    """All phases of one name; `seconds` counts one that lies in another of the same name once."""

    name: str
    kind: PhaseKind = "other"
    #: its name in `torch._dynamo.utils.compile_times()`, where it is another one
    function: str | None = None
    count: int = 0
    seconds: float = 0.0
    self_seconds: float = 0.0


@dataclass(kw_only=True)
class CacheLookup:
    """One lookup in a cache of the compiler."""

    cache: Literal["AOTAutograd", "FX graph"]
    #: "hit", "miss", "bypass", or the compiler's own word
    outcome: str
    frame: str | None = None
    compile_id: str | None = None
    #: why it was bypassed, in the compiler's words
    reason: str | None = None
    #: of a hit: how long the compile took whose result was used again, as the compiler noted it
    saved_seconds: float | None = None


@dataclass(kw_only=True)
class AutotuneChoice:
    """One operation for which Inductor timed several kernels, as it noted it."""

    #: "mm", and its inputs: "64x64, 64x64", "float32, float32"
    op: str
    shapes: str | None = None
    dtypes: str | None = None
    #: how many kernels were timed
    choices: int | None = None
    #: the fastest of them, what the compiler says of it, and how long it takes
    best: str | None = None
    best_description: str | None = None
    best_ms: float | None = None
    #: how long timing them all took
    seconds: float = 0.0
    compile_id: str | None = None
    frame: str | None = None


@dataclass(kw_only=True)
class RegionTrial:
    """A graph compiled as it is, and with a repeated block as one region that is compiled once; without caches."""

    backend: str
    seconds: float
    region_seconds: float
    #: with each block compiled by itself, all by the code of the first one, and the rest of the graph eager; None: not measured
    blocks_seconds: float | None = None


@dataclass(kw_only=True)
class RepeatedBlock:
    """A block of operations that was compiled several times: in one graph, or in several that are equal."""

    count: int
    #: operations of one of them, and the part of their graphs that they are together
    ops: int
    share: float = 0.0
    graphs: list[str] = field(default_factory=list)
    #: paths of the modules that are one block each ("layers.0", "layers.1"), where known
    modules: list[str] = field(default_factory=list)
    #: the first operation of the first of them, in the first graph
    first_node: str | None = None
    #: functions that its operations are in, in order
    functions: list[str] = field(default_factory=list)
    file: str | None = None
    line: int | None = None
    cell: int | None = None
    #: what one region would save; only after `report.try_region`
    trial: RegionTrial | None = None


@dataclass(kw_only=True)
class CompileTime:
    """Where the time of the compiles went, from the events that the compiler writes for its own time line."""

    #: of all phases that lie in no other, those of all threads added up
    seconds: float = 0.0
    lanes: list[str] = field(default_factory=list)
    #: by lane and start; of very many, the longest
    phases: list[CompilePhase] = field(default_factory=list)
    #: how many are left out of `phases`; the totals have them
    left_out: int = 0
    #: all phases by name, the most expensive (without the phases inside them) first
    totals: list[PhaseTotal] = field(default_factory=list)
    #: names of phases that began and have no recorded end: their time is not counted
    unfinished: list[str] = field(default_factory=list)
    caches: list[CacheLookup] = field(default_factory=list)
    #: what caches gave without timing anything is not among them
    autotuning: list[AutotuneChoice] = field(default_factory=list)
    #: the largest first
    repeats: list[RepeatedBlock] = field(default_factory=list)


@dataclass(kw_only=True)
class Check:
    """Compiled against eager: the outcome of `--check`."""

    #: None: nothing could be compared, or a difference need not mean anything
    agrees: bool | None = None
    #: how many tensors, arrays, numbers and strings were compared: of "values", "effects" and "gradients"
    compared: dict[str, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    #: why `agrees` is None; else empty
    why_not: str = ""
    #: classes of what the call returns that could not be looked into
    not_compared: list[str] = field(default_factory=list)
