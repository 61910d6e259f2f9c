"""Compares a report with an earlier one of the same code (`diff`), or with expected counts; and the outline for docs tests.

Two breaks are the same if they have the same file, function, type and text of the line; if the line number differs, the break
has moved.  Columns only tell apart the breaks of one line.  Every edit gives a cell another file name, so all cells count as
one file.

In `graphs=2,breaks<=1,unexpected=0`, the names are those of the summary's counts.  If a count is not as expected, an error says
what was found and where.

The outline is the counts, the versions of torch and Python, and the type, line, outcome and file or cell of each graph break.
The output of a cell contains it, under the mime type `MIME`, for docs tests to compare; nothing displays it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Literal

from dynascope.compiler.formats import make
from dynascope.compiler.report.formatting import encodable, label
from dynascope.compiler.report.schema import Break, ReportData, Summary

#: counts of `Summary` that are compared; their words are in `widgets.features.comparisons._COUNTS`
COUNTS = ("graphs", "breaks", "resumes", "skipped", "recompiles")


@dataclass(kw_only=True)
class Diff:
    """The changes from one report to a later one."""

    #: breaks of the earlier report that the later run did not meet: fixed, on a way that it did not take, behind its end, or in
    #: code that was compiled before it
    not_met: list[Break] = field(default_factory=list)
    #: breaks that the earlier run did not meet: not there, on a way that it did not take, or behind its end
    new: list[Break] = field(default_factory=list)
    #: (before, now) of breaks with another line number
    moved: list[tuple[Break, Break]] = field(default_factory=list)
    #: (before, now) of breaks with another `outcome`, or another known `allowed`
    changed: list[tuple[Break, Break]] = field(default_factory=list)
    #: counts that differ: name -> (before, now)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: compile time in seconds, before and now
    compile_seconds: tuple[float, float] = (0.0, 0.0)
    #: which of the two runs do not show all of their breaks, and why; what such a report lacks is not known to be gone, or new
    partial: dict[Literal["now", "before"], str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything but times differs."""
        return any((self.not_met, self.new, self.moved, self.changed, self.counts, self.partial))

    @property
    def lines(self) -> list[str]:
        """One sentence for each change, the most important first."""
        return list(self.to_dict()["lines"])

    @property
    def summary(self) -> str:
        """What changed, in a few words."""
        return str(self.to_dict()["summary"])

    @property
    def times(self) -> str:
        """The compile times, now and before, as text."""
        return str(self.to_dict()["times"])

    def __str__(self) -> str:
        return encodable("\n".join([*self.lines, self.times]))

    def to_dict(self) -> dict[str, Any]:
        """The sentences on the changes, and a summary, as JSON-ready data."""
        return dict(make("diff dict", self))


def diff(before: ReportData, now: ReportData) -> Diff:
    """What changed from `before` to `now`."""
    not_met, new = before.own_breaks, now.own_breaks
    same = _pairs(not_met, new, lambda b: (*_identity(b), b.line, b.column, b.end_column))
    same += _pairs(not_met, new, lambda b: (*_identity(b), b.line))  # the line is indented otherwise, or its column was unknown
    moved = _pairs(not_met, new, _identity)
    counts = {name: (getattr(before.summary, name), getattr(now.summary, name)) for name in COUNTS}
    partial: dict[Literal["now", "before"], str] = {"now": _why_partial(now, not_met), "before": _why_partial(before, new)}
    return Diff(
        partial={name: why for name, why in partial.items() if why},
        not_met=not_met, new=[] if partial["before"] else new, moved=moved,
        changed=[(a, b) for a, b in [*same, *moved] if a.outcome != b.outcome or {a.allowed, b.allowed} == {True, False}],
        counts={name: pair for name, pair in counts.items() if pair[0] != pair[1]},
        compile_seconds=(before.summary.compile_seconds, now.summary.compile_seconds),
    )  # fmt: skip


def _why_partial(run: ReportData, lacks: list[Break]) -> str:
    """Why a run may have had breaks that its report lacks, or these, had it gone on; "" if nothing is known to be lacking."""
    if run.origin == "partial" or run.summary.unfinished:
        return "did not finish"
    if lacks and run.error is not None and not run.error.caught:
        return "ended with an error"
    if not (run.summary.frames or run.breaks):
        return "compiled nothing"
    return "ran code that was compiled before it" if run.summary.cached else ""


def _pairs(old: list[Break], new: list[Break], key: Callable[[Break], Hashable]) -> list[tuple[Break, Break]]:
    """Pair breaks with the same key, in order, and remove them from both lists."""
    pairs = []
    for b in list(new):
        before = next((a for a in old if key(a) == key(b)), None)
        if before is not None:
            pairs.append((before, b))
            old.remove(before)
            new.remove(b)
    return pairs


def _identity(broken: Break) -> tuple[Hashable, ...]:
    return ("cell" if broken.cell is not None else broken.file, broken.function, broken.type, broken.source.strip())


#: names that can be expected
EXPECTED = tuple(name for name in Summary.__struct_fields__ if name not in ("compile_seconds", "unknown_breaks"))
_TERM = re.compile(r"^\s*(?P<name>\w+)\s*(?P<sign><=|>=|==|=)\s*(?P<number>\d+)\s*$")
_SIGNS: dict[str, Callable[[int, int], bool]] = {"=": operator.eq, "==": operator.eq, "<=": operator.le, ">=": operator.ge}


class ExpectationFailed(AssertionError):
    """A report does not have the expected counts."""


@dataclass(frozen=True)
class Expectation:
    """One expectation, such as `breaks<=1`."""

    name: str
    sign: str
    number: int

    def actual(self, report: ReportData) -> int:
        """The count in the report; for `AGREES`, whether a check found that compiled and eager code agree."""
        if self == AGREES:
            return int(report.check is not None and report.check.agrees is True)
        return int(getattr(report.summary, self.name))

    def holds(self, report: ReportData) -> bool:
        """Whether the count is as expected; if breaks are unknown, as in cached frames, only `>=` can hold for them."""
        is_unknown = self.name in ("breaks", "unexpected") and (report.summary.unknown_breaks or report.summary.cached)
        if is_unknown and self.sign != ">=":
            return False
        return _SIGNS[self.sign](self.actual(report), self.number)

    def __str__(self) -> str:
        return "check=agrees" if self == AGREES else f"{self.name}{self.sign}{self.number}"


#: the expectation that `--check` finds no difference, written `check=agrees`
AGREES = Expectation("check", "=", 1)


def parse_expectations(text: str) -> list[Expectation]:
    """Parse expectations such as `graphs=2,breaks<=1` and `check=agrees`.

    Raises ValueError, with a one-line message, if there is no term, or one that is not a count with a sign and a number.
    """
    expectations = []
    for term in filter(str.strip, text.split(",")):
        match = _TERM.match(term)
        if term.strip() == str(AGREES):
            expectations.append(AGREES)
        elif match is not None and match["name"] in EXPECTED:
            expectations.append(Expectation(match["name"], match["sign"], int(match["number"])))
        else:
            raise ValueError(
                f"cannot expect {term.strip()!r}: write {AGREES}, or NAME=NUMBER, NAME<=NUMBER or NAME>=NUMBER with "
                f"{', '.join(EXPECTED)}"
            )
    if not expectations:
        raise ValueError("nothing is expected: write for example graphs=1,breaks=0")
    return expectations


def read_expectations(expected: str = "", /, **counts: int | str) -> list[Expectation]:
    """The expectations in text and keywords, as in `read("breaks<=1", graphs=2, skipped="<=3")`; raises what `parse` raises."""
    terms = [expected, *(f"{k}={v}" if isinstance(v, int) else f"{k}{v}" for k, v in counts.items())]
    return parse_expectations(",".join(t for t in terms if t))


def check_expectations(report: ReportData, expectations: list[Expectation]) -> None:
    """Raise ExpectationFailed if an expectation does not hold; the message has the actual counts and their places.

    If Dynamo met no frame, nothing was tested: all expectations fail, unless no frames or graphs are among what is expected.
    """
    __tracebackhide__ = True  # pytest ends its traceback at the user's line
    if not report.summary.frames and not any(e.name in ("frames", "graphs") and e.number == 0 for e in expectations):
        why = "\n  ".join(["nothing was compiled", *(note.removeprefix("nothing was compiled: ") for note in report.notes)])
        raise ExpectationFailed(f"expected {','.join(map(str, expectations))}, but {why}")
    failed = [e for e in expectations if not e.holds(report)]
    if failed:
        raise ExpectationFailed("\n".join(str(make("unmet", report, e)) for e in failed))


MIME = "application/vnd.dynascope.report+json"


def outline(report: dict[str, Any]) -> dict[str, Any]:
    """The outline of a report's data (`Report.to_dict`)."""
    summary = {k: v for k, v in report.get("summary", {}).items() if isinstance(v, int)}
    found = ((b, label(b.get("file", ""), b.get("cell"))) for b in report.get("breaks", []))
    breaks = [{**{name: b.get(name) for name in ("type", "line", "outcome")}, "place": place} for b, place in found]
    versions = {name: str((report.get("versions") or {}).get(name) or "").partition("+")[0] for name in ("torch", "python")}
    return {"summary": summary, "breaks": breaks, **{name: version for name, version in versions.items() if version}}
