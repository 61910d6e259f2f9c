"""The parts of a RanksReport, as plain dataclasses.

`None` means unknown, or does not apply.  A *step* is one compile of a rank; steps are numbered in the order in which they
began, from 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dynascope.compiler.report import Report, StackEntry

#: "no end": the rank was killed, or is still running: the last thing it wrote is not an end
RankStatus = Literal["finished", "failed", "no end", "missing"]
DifferenceKind = Literal[
    "function", "recompile", "skip", "error", "cached", "break", "collective", "size", "dtype", "device", "placement",
    "constant", "graph", "ends", "versions", "settings", "environment", "cache",
]  # fmt: skip
#: differences that do not make two ranks compile different code
SOFT_KINDS = frozenset({"settings", "environment", "cache"})


@dataclass(kw_only=True)
class Collective:
    """One collective operation in a graph."""

    #: as the compiler names it, without its overload: "all_reduce", "all_gather_into_tensor"
    kind: str
    #: "sum", "avg"; None for collectives that do not reduce
    reduction: str | None = None
    #: name of the process group, and what the program calls it, where known ("mesh_tp")
    group: str | None = None
    group_name: str | None = None
    #: ranks of the process group, where known
    ranks: list[int] | None = None
    dtype: str | None = None
    shape: list[int | str] | None = None
    #: position in the step's graph of the `wait_tensor` that follows; None: there is none
    waited: int | None = None
    backward: bool = False


@dataclass(kw_only=True)
class Rank:
    """One process of the job."""

    rank: int
    #: index of the group of ranks that compiled the same; None: nothing is known of what it compiled
    group: int | None = None
    status: RankStatus = "finished"
    #: what ended it, in one line
    error: str | None = None
    #: the user's code that ran when the rank last wrote, outermost first, and for how many seconds it had not moved
    at: list[StackEntry] = field(default_factory=list)
    at_seconds: float | None = None
    #: the function that was being compiled then
    compiling: str | None = None
    host: str | None = None
    pid: int | None = None
    #: pid of the process that started it
    parent: int | None = None
    local_rank: int | None = None
    node: int | None = None
    #: how many times torchrun had restarted the job
    restarts: int = 0
    #: seconds since the epoch of the first and the last write
    started: float | None = None
    written: float | None = None
    compile_seconds: float = 0.0
    #: for each step, the seconds of its compile; None: unknown
    seconds: list[float | None] = field(default_factory=list)
    #: for each step, "hit", "miss" or "bypass" of the compiler's caches; "" where none was asked
    caches: list[str] = field(default_factory=list)
    #: for each step, the run time in seconds of each graph that Inductor made of it, as Inductor estimates it; []: not logged
    run_times: list[list[float]] = field(default_factory=list)
    #: records that could not be used, counted by kind
    unread: dict[str, int] = field(default_factory=dict)


@dataclass(kw_only=True)
class StepSummary:
    """One compile, as all ranks of a group did it."""

    #: ids in the group's report
    frame: str
    name: str
    file: str
    line: int
    cell: int | None = None
    kind: str = "function"
    status: str = "compiled"
    recompile: bool = False
    #: equal for steps that compiled the same
    hash: str = ""
    #: into how many graphs DDP's optimizer split its graph, one for each bucket of gradients; 0: not split
    splits: int = 0
    collectives: list[Collective] = field(default_factory=list)


@dataclass(kw_only=True)
class RankGroup:
    """Ranks that compiled the same code in the same order."""

    ranks: list[int]
    steps: list[StepSummary] = field(default_factory=list)
    #: the report of one of these ranks; None: left out, or damaged
    report: Report | None = None
    #: constants of the graphs that are each rank's own number, as the compiler printed them
    rank_constants: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class GuardPair:
    """A guard of the same compile that is not the same in both groups; None: that group has no such guard."""

    here: str | None = None
    there: str | None = None


@dataclass(kw_only=True)
class Difference:
    """What one group did otherwise than the reference, which is the largest group."""

    kind: DifferenceKind
    group: int | None = None
    reference: int | None = None
    #: ranks that differ, where these are not a group
    ranks: list[int] = field(default_factory=list)
    #: the first step that differs; None: the difference is not in a step
    step: int | None = None
    #: ids of the frames in the two reports
    frame: str | None = None
    reference_frame: str | None = None
    #: the place in the user's code, and which of the two groups was there
    file: str | None = None
    line: int | None = None
    cell: int | None = None
    function: str | None = None
    source: str = ""
    place_of: Literal["group", "reference"] = "group"
    #: what is compared (a setting, an input, an operation), and its value in the group and in the reference
    subject: str | None = None
    here: str | None = None
    there: str | None = None
    #: the compiler's own reason: of the break, the skip, the recompile or the error
    reason: str | None = None
    #: a collective's number among all of its rank, from 0
    position: int | None = None
    #: guards of this step that are not the same in both
    guards: list[GuardPair] = field(default_factory=list)


@dataclass(kw_only=True)
class StepTime:
    """Compile times of one step that is the same in several ranks."""

    group: int
    step: int
    median: float
    slowest: float
    slowest_rank: int
    #: of all ranks of the group, how long the others could at most have waited for the slowest
    waited: float


@dataclass(kw_only=True)
class RunTimeSkew:
    """A graph whose run time, as Inductor estimates it, is not the same on all ranks."""

    #: its number among the graphs of a rank for which there are estimates
    graph: int
    #: the step of the slowest rank
    step: int
    fastest_rank: int
    fastest: float
    slowest_rank: int
    slowest: float
