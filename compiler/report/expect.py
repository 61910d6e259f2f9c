"""Checks that a report has the expected counts, for docs tests and CI.

In `graphs=2,breaks<=1,unexpected=0`, the names are those of the summary's counts.  If a count is not as expected, an error says
what was found and where.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from dynascope.compiler.lowerings import lower
from dynascope.compiler.report.schema import ReportData, Summary

#: names that can be expected
COUNTS = tuple(name for name in Summary.__struct_fields__ if name not in ("compile_seconds", "unknown_breaks"))
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
        """The count in the report."""
        return int(getattr(report.summary, self.name))

    def holds(self, report: ReportData) -> bool:
        """Whether the count is as expected; if some breaks are unknown, only `>=` can hold for `breaks` and `unexpected`."""
        if self.name in ("breaks", "unexpected") and report.summary.unknown_breaks and self.sign != ">=":
            return False
        return _SIGNS[self.sign](self.actual(report), self.number)

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.number}"


def parse(text: str) -> list[Expectation]:
    """Parse expectations such as `graphs=2,breaks<=1`.

    Raises ValueError, with a one-line message, if there is no term, or one that is not a count with a sign and a number.
    """
    expectations = []
    for term in filter(str.strip, text.split(",")):
        match = _TERM.match(term)
        if match is None or match["name"] not in COUNTS:
            raise ValueError(
                f"cannot expect {term.strip()!r}: write NAME=NUMBER, NAME<=NUMBER or NAME>=NUMBER with {', '.join(COUNTS)}"
            )
        expectations.append(Expectation(match["name"], match["sign"], int(match["number"])))
    if not expectations:
        raise ValueError("nothing is expected: write for example graphs=1,breaks=0")
    return expectations


def read(expected: str = "", /, **counts: int | str) -> list[Expectation]:
    """The expectations in text and keywords, as in `read("breaks<=1", graphs=2, skipped="<=3")`; raises what `parse` raises."""
    terms = [expected, *(f"{k}={v}" if isinstance(v, int) else f"{k}{v}" for k, v in counts.items())]
    return parse(",".join(t for t in terms if t))


def check(report: ReportData, expectations: list[Expectation]) -> None:
    """Raise ExpectationFailed if an expectation does not hold; the message has the actual counts and their places."""
    __tracebackhide__ = True  # pytest ends its traceback at the user's line
    failed = [e for e in expectations if not e.holds(report)]
    if failed:
        raise ExpectationFailed("\n".join(str(lower("unmet", report, e)) for e in failed))
