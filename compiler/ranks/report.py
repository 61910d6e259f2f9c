"""The RanksReport and its methods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from dynascope.compiler.lowerings import lower
from dynascope.compiler.ranks.schema import SOFT_KINDS, Difference, Rank, RankGroup, RunTimeSkew, StepTime
from dynascope.compiler.report.data import Part, load
from dynascope.compiler.report.expect import Expectation, ExpectationFailed, check, parse
from dynascope.compiler.report.formatting import encodable
from dynascope.compiler.report.report import Report

#: suffixes of the files that `save` can write
SUFFIXES = (".html", ".json", ".svg", ".txt")
SCHEMA = 1
#: terms of `expect` that require all ranks to be alike; all others are about counts
ALIKE = ("ranks=alike", "ranks==alike")


class RanksReport(Part, kw_only=True, omit_defaults=False):
    """What all ranks of a job compiled: groups of equal ranks, the first difference of each group, and what else differs."""

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
    #: graphs for which Inductor's estimate of the run time differs between ranks, the largest difference first
    skew: list[RunTimeSkew] = []
    notes: list[str] = []

    # -- looking up ---------------------------------------------------------------------------

    def rank(self, number: int) -> Rank:
        """The rank with this number; raises KeyError if there is none."""
        for rank in self.ranks:
            if rank.rank == number:
                return rank
        raise KeyError(number)

    def report_of(self, number: int) -> Report:
        """The Report of the rank's group, which says what the rank compiled; raises KeyError if there is none."""
        index = self.rank(number).group
        report = self.groups[index].report if index is not None else None
        if report is None:
            raise KeyError(number)
        return report

    @property
    def alike(self) -> bool:
        """Whether all ranks finished, and compiled the same code in the same order with the same versions."""
        ended = all(r.status == "finished" for r in self.ranks)
        return ended and len(self.groups) == 1 and not any(d.kind not in SOFT_KINDS for d in self.differences)

    # -- saving and loading -------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RanksReport:
        """Load a report from the data that `to_dict` returned; raises ValueError with a one-line message if it is not one."""
        report = load(cls, data, "report of ranks", "ranks_schema", SCHEMA)
        for rank in report.ranks:
            if rank.group is not None and not 0 <= rank.group < len(report.groups):
                raise ValueError(
                    f"not a dynascope report of ranks: rank {rank.rank} is in group {rank.group}, which is missing"
                )
        return report

    def save(self, path: str | Path) -> Path:
        """Write the report to a file: .html, .json, .svg or .txt; raises ValueError for any other suffix."""
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix not in SUFFIXES:
            raise ValueError(f"cannot save a report of ranks as {suffix or path.name}: use one of {', '.join(SUFFIXES)}")
        text = json.dumps(self.to_dict()) if suffix == ".json" else str(lower(f"ranks {suffix[1:]}", self))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

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
            raise ExpectationFailed(f"expected ranks=alike, but {lower('ranks unmet', self)}")
        for group in self.groups:
            if group.report is None and expectations:
                raise ExpectationFailed(f"expected {expected}, but the report of rank {group.ranks[0]} is missing")
            if group.report is not None:
                check(group.report, expectations)
        return self

    # -- showing ------------------------------------------------------------------------------

    def headline(self) -> str:
        """One line: `4 ranks: 0-2 alike; 3 differs`."""
        return encodable(lower("ranks headline", self))

    def to_html(self) -> str:
        """A stand-alone page, interactive without a network."""
        return str(lower("ranks html", self))

    def to_svg(self) -> str:
        """The groups and the matrix of compile times as one SVG picture."""
        return str(lower("ranks svg", self))

    def view(self) -> Any:
        """The live view, an anywidget."""
        return lower("ranks view", self)

    def __str__(self) -> str:
        return encodable(lower("ranks txt", self))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        bundle: dict[str, Any] = lower("ranks mimebundle", self)
        return bundle


def read_terms(expected: str) -> tuple[list[Expectation], bool]:
    """Parse `ranks=alike,breaks<=1`: returns the expected counts, and whether the ranks must be alike.

    Raises ValueError if a term cannot be read or there are no terms.
    """
    terms = [t.strip() for t in expected.split(",") if t.strip()]
    counts = [t for t in terms if t.replace(" ", "") not in ALIKE]
    return (parse(",".join(counts)) if counts or not terms else []), len(counts) < len(terms)
