"""The RanksReport: what the ranks of one job compiled, as plain data, with its methods.

`None` means unknown or not applicable.  A *step* is one compile of a rank; steps are numbered from 0, thread by thread, in the
order in which they began.
"""

from __future__ import annotations

from typing import Any, Literal

from dynascope.compiler.formats import make
from dynascope.compiler.report import Part, PerhapsPlaced, Report, StackEntry, found, load
from dynascope.compiler.report.comparison import Expectation, ExpectationFailed, check_expectations, parse_expectations
from dynascope.compiler.report.report import Shown

#: suffixes of the files that `save` can write
SUFFIXES = (".html", ".json", ".txt")
SCHEMA = 2
#: terms of `expect` that require all ranks to be alike; all others are about counts
ALIKE = ("ranks=alike", "ranks==alike")
#: how the rank ended, as far as its file shows; "no end": the file lacks the end, because the rank was killed or is still
#: running; "missing": the rank has no file that can be read
RankStatus = Literal["finished", "failed", "no end", "missing"]
DifferenceKind = Literal[
    "function", "recompile", "skip", "error", "cached", "break", "collective", "size", "dtype", "device", "placement",
    "constant", "graph", "ends", "versions", "settings", "environment",
]  # fmt: skip
#: kinds of differences that ranks which compiled the same code may have: `RanksReport.alike` ignores them
SOFT_KINDS = frozenset({"settings", "environment"})


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
    #: hash of what was compiled; equal for the steps, in any group, that compiled the same code up to integers in graphs
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


class Difference(PerhapsPlaced, kw_only=True):
    """A difference between a group, or some ranks, and the reference: the largest group, or the most frequent value.

    Its place is in the user's code that the difference comes from.
    """

    kind: DifferenceKind
    #: index of the group that differs; None: the ranks that differ can be of several groups
    group: int | None = None
    #: index of the group that is the reference, or that contains the reference ranks; None: these can be of several groups
    reference_group: int | None = None
    #: the ranks that differ, if they are not a whole group
    ranks: list[int] = []
    #: number of the first step that differs; None: the difference is not in a step, or the step is unknown
    step: int | None = None
    #: id of the step's frame in the group's report
    frame: str | None = None
    #: id of the step's frame in the reference's report
    reference_frame: str | None = None
    function: str | None = None
    #: text of the line
    source: str = ""
    #: the side whose code `file` and `line` refer to
    place_of: Literal["group", "reference"] = "group"
    #: what is compared: a setting, an input, an operation
    subject: str | None = None
    #: value of the subject in the group
    value: str | None = None
    #: value of the subject in the reference
    reference: str | None = None
    #: the compiler's reason for the break, the skip, the recompile or the error
    reason: str | None = None
    #: number of the collective among all collectives of the rank, from 0; None: the difference is not in one collective
    position: int | None = None


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


class RanksReport(Shown, Part, kw_only=True):
    """What all ranks of a job compiled: groups of equal ranks, the first difference of each group, and what else differs."""

    _prefix = "ranks "
    _suffixes = SUFFIXES

    #: version of this format; the name of the field distinguishes a RanksReport from a Report
    ranks_schema: int = SCHEMA
    world_size: int = 0
    versions: dict[str, str | None] = {}
    ranks: list[Rank] = []
    #: groups of ranks that compiled the same, the largest first; the first group is the reference
    groups: list[RankGroup] = []
    differences: list[Difference] = []
    #: steps in which one rank took much longer than the others of its group
    slow: list[StepTime] = []
    notes: list[str] = []

    # -- looking up ---------------------------------------------------------------------------

    def rank(self, number: int) -> Rank:
        """The rank with this number; raises KeyError if there is none."""
        return found({rank.rank: rank for rank in reversed(self.ranks)}, number)

    def report_of(self, number: int) -> Report:
        """The Report of the rank's group, which says what the rank compiled; raises KeyError if there is none."""
        index = self.rank(number).group
        report = self.groups[index].report if index is not None else None
        if report is None:
            raise KeyError(f"the report of rank {number} is missing")
        return report

    @property
    def alike(self) -> bool:
        """Whether all ranks finished, and compiled the same code in the same order with the same versions."""
        ended = all(r.status == "finished" for r in self.ranks)
        return ended and len(self.groups) == 1 and not any(d.kind not in SOFT_KINDS for d in self.differences)

    # -- saving and loading -------------------------------------------------------------------

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RanksReport:
        """Load a report from the data that `to_dict` returned; raises ValueError with a one-line message if it is not one."""
        report = load(cls, data, "report of ranks", "ranks_schema", SCHEMA)
        for rank in report.ranks:
            if rank.group is not None and not 0 <= rank.group < len(report.groups):
                missing = f"rank {rank.rank} is in group {rank.group}, which is missing"
                raise ValueError(f"not a dynascope report of ranks: {missing}")
        return report

    # -- expectations -------------------------------------------------------------------------

    def expect(self, expected: str = "ranks=alike", /) -> RanksReport:
        """Fail if a term does not hold: if the ranks are not alike, or the counts of a group's report are not as expected.

        Args:
            expected: `ranks=alike`, or terms such as `breaks<=1`, which the report of each group must meet, or both.

        Returns:
            The report itself.

        Raises:
            ExpectationFailed: an AssertionError that names the differences between ranks, the unmet counts or a missing report.
            ValueError: a term cannot be read, or nothing is expected.

        Example:
            dynascope.load("trace_dir").expect("ranks=alike,breaks=0")
        """
        __tracebackhide__ = True
        expectations, alike = read_terms(expected)
        if alike and not self.alike:
            raise ExpectationFailed(f"expected ranks=alike, but {make('ranks unmet', self)}")
        for group in self.groups if expectations else ():
            if group.report is None:
                raise ExpectationFailed(f"expected {expected}, but the report of rank {group.ranks[0]} is missing")
            check_expectations(group.report, expectations)
        return self


def read_terms(expected: str) -> tuple[list[Expectation], bool]:
    """Parse `ranks=alike,breaks<=1`: returns the expected counts, and whether the ranks must be alike.

    Raises ValueError if a term cannot be read or there are no terms.
    """
    terms = [t.strip() for t in expected.split(",") if t.strip()]
    counts = [t for t in terms if t.replace(" ", "") not in ALIKE]
    return (parse_expectations(",".join(counts)) if counts or not terms else []), len(counts) < len(terms)
