"""The parts of a RanksReport, as plain data.

`None` means unknown or not applicable.  A *step* is one compile of a rank; steps are numbered from 0, thread by
thread, in the order in which they began.
"""

from __future__ import annotations

from typing import Literal

from dynascope.compiler.report import Report, StackEntry
from dynascope.compiler.report.data import Part

#: how the rank ended, as far as its file shows; "no end": the file lacks the end, because the rank was killed or is still
#: running; "missing": the rank has no file that can be read
RankStatus = Literal["finished", "failed", "no end", "missing"]
DifferenceKind = Literal[
    "function", "recompile", "skip", "error", "cached", "break", "collective", "size", "dtype", "device", "placement",
    "constant", "graph", "ends", "versions", "settings", "environment", "cache",
]  # fmt: skip
#: kinds of differences that ranks which compiled the same code may have: `RanksReport.alike` ignores them
SOFT_KINDS = frozenset({"settings", "environment", "cache"})


class Collective(Part, kw_only=True):
    """One collective operation in a graph."""

    #: the operation, without its overload: "all_reduce", "all_gather_into_tensor"
    kind: str
    #: the reduction: "sum", "avg"; None for collectives that do not reduce
    reduction: str | None = None
    #: torch's name of the process group
    group: str | None = None
    #: the program's name of the process group ("mesh_tp"); None: not known
    group_name: str | None = None
    #: ranks of the process group; None: not known
    ranks: list[int] | None = None
    dtype: str | None = None
    shape: list[int | str] | None = None
    #: line of the graph's code, from 0 and without comments, in which `wait_tensor` waits for the result; None: there is none
    waited: int | None = None
    #: whether the collective is in the backward graph
    backward: bool = False


class Rank(Part, kw_only=True):
    """One process of the job."""

    rank: int
    #: index of the rank's group in `groups` of the RanksReport; None: what the rank compiled is not known
    group: int | None = None
    status: RankStatus = "finished"
    #: the error that ended the rank, in one line
    error: str | None = None
    #: the user's code that ran when the rank last wrote its file, as a stack, outermost first
    at: list[StackEntry] = []
    #: seconds that the rank had spent at that place
    at_seconds: float | None = None
    #: the function that was being compiled when the rank last wrote its file
    compiling: str | None = None
    host: str | None = None
    #: process id of the rank
    pid: int | None = None
    #: process id of the process that started the rank
    parent: int | None = None
    #: number of the rank on its machine (torchrun's LOCAL_RANK)
    local_rank: int | None = None
    #: number of the machine in the job (torchrun's GROUP_RANK)
    node: int | None = None
    #: number of times that torchrun had restarted the job
    restarts: int = 0
    #: when the recording of the rank started, in seconds since the epoch
    started: float | None = None
    #: when the rank last wrote its file or log, in seconds since the epoch
    written: float | None = None
    #: seconds that all compiles of the rank took together
    compile_seconds: float = 0.0
    #: compile time of each step, in seconds
    seconds: list[float | None] = []
    #: answer of the compiler's caches for each step: "hit", "miss" or "bypass"; "" if no cache was asked
    caches: list[str] = []
    #: for each step, Inductor's estimate of the run time of each of its graphs, in seconds; []: not logged
    run_times: list[list[float]] = []
    #: number of log records that could not be used, by kind
    unread: dict[str, int] = {}


class StepSummary(Part, kw_only=True):
    """One step of a group: a compile that is the same on all its ranks."""

    #: id of the frame in the group's report
    frame: str
    name: str
    file: str
    line: int
    cell: int | None = None
    kind: str = "function"
    status: str = "compiled"
    recompile: bool = False
    #: hash of what was compiled; equal for the steps, in any group, that compiled the same code
    hash: str = ""
    #: number of graphs into which DDPOptimizer split the step's graph, one for each bucket of gradients; 0: not split
    splits: int = 0
    collectives: list[Collective] = []


class RankGroup(Part, kw_only=True):
    """Ranks that compiled the same code in the same order."""

    ranks: list[int]
    steps: list[StepSummary] = []
    #: the Report of one rank of the group; None: it was left out, or is damaged
    report: Report | None = None
    #: ids of the frames whose graphs contain the number of the rank as a constant, so that the ranks have different graphs
    rank_constants: list[str] = []


class GuardPair(Part, kw_only=True):
    """A guard of one step that differs between two groups."""

    #: the guard in the group that differs; None: the group has no such guard
    here: str | None = None
    #: the guard in the reference; None: the reference has no such guard
    there: str | None = None


class Difference(Part, kw_only=True):
    """A difference between a group, or some ranks, and the reference: the largest group, or the most frequent value."""

    kind: DifferenceKind
    #: index of the group that differs; None: the ranks that differ can be of several groups
    group: int | None = None
    #: index of the group that is the reference, or that contains the reference ranks; None: these can be of several groups
    reference: int | None = None
    #: the ranks that differ, if they are not a whole group
    ranks: list[int] = []
    #: number of the first step that differs; None: the difference is not in a step, or the step is unknown
    step: int | None = None
    #: id of the step's frame in the group's report
    frame: str | None = None
    #: id of the step's frame in the reference's report
    reference_frame: str | None = None
    #: file of the place in the user's code that the difference comes from
    file: str | None = None
    line: int | None = None
    cell: int | None = None
    function: str | None = None
    #: text of the line
    source: str = ""
    #: the side whose code `file` and `line` refer to
    place_of: Literal["group", "reference"] = "group"
    #: what is compared: a setting, an input, an operation
    subject: str | None = None
    #: value of the subject in the group
    here: str | None = None
    #: value of the subject in the reference
    there: str | None = None
    #: the compiler's reason for the break, the skip, the recompile or the error
    reason: str | None = None
    #: number of the collective among all collectives of the rank, from 0; None: the difference is not in one collective
    position: int | None = None
    #: guards of the step that differ between the group and the reference
    guards: list[GuardPair] = []


class StepTime(Part, kw_only=True):
    """A step whose compile took one rank much longer than the other ranks of its group."""

    #: index of the group
    group: int
    #: number of the step
    step: int
    #: median compile time of the other ranks, in seconds
    median: float
    #: compile time of the slowest rank, in seconds
    slowest: float
    slowest_rank: int
    #: seconds between the fastest and the slowest rank: the longest time that a rank can have waited for the slowest
    waited: float


class RunTimeSkew(Part, kw_only=True):
    """A graph for which Inductor's estimate of the run time differs between ranks."""

    #: number of the graph among the graphs of a rank that have an estimate, from 0
    graph: int
    #: number of the step on the slowest rank
    step: int
    fastest_rank: int
    #: estimate on the fastest rank, in seconds
    fastest: float
    slowest_rank: int
    #: estimate on the slowest rank, in seconds
    slowest: float
