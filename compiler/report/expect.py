"""Expectations: counts that a report must have, for docs tests and CI.

`graphs=2,breaks<=1,unexpected=0` names counts of the summary; what does not hold fails with a message that tells
what was found, and where.
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Callable

from dynascope.compiler.report import Report, Summary
from dynascope.compiler.source.lines import label

COUNTS = tuple(f.name for f in dataclasses.fields(Summary) if f.name != "compile_seconds")
_TERM = re.compile(r"^\s*(?P<name>\w+)\s*(?P<sign><=|>=|==|=)\s*(?P<number>\d+)\s*$")
_SIGNS: dict[str, Callable[[int, int], bool]] = {"=": operator.eq, "==": operator.eq, "<=": operator.le, ">=": operator.ge}


class ExpectationFailed(AssertionError):
    """A report is not as it was expected to be."""


@dataclasses.dataclass(frozen=True)
class Expectation:
    """`breaks<=1`."""

    name: str
    sign: str
    number: int

    def holds(self, report: Report) -> bool:
        return _SIGNS[self.sign](getattr(report.summary, self.name), self.number)

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.number}"


def parse(text: str) -> list[Expectation]:
    """Read `graphs=2,breaks<=1`.

    Raises ValueError, in one line, where a term is no count with a number.
    """
    found = []
    for term in filter(str.strip, text.split(",")):
        match = _TERM.match(term)
        if match is None or match["name"] not in COUNTS:
            raise ValueError(
                f"cannot expect {term.strip()!r}: write NAME=NUMBER, NAME<=NUMBER or NAME>=NUMBER with {', '.join(COUNTS)}"
            )
        found.append(Expectation(match["name"], match["sign"], int(match["number"])))
    if not found:
        raise ValueError("nothing is expected: write for example graphs=1,breaks=0")
    return found


def read(expected: str = "", /, **counts: int | str) -> list[Expectation]:
    """Read `read("breaks<=1", graphs=2, skipped="<=3")`; raises ValueError as `parse` does."""
    terms = [expected, *(f"{k}={v}" if isinstance(v, int) else f"{k}{v}" for k, v in counts.items())]
    return parse(",".join(t for t in terms if t))


def check(report: Report, expectations: list[Expectation]) -> None:
    """Raise ExpectationFailed, naming what was found and where, for what does not hold."""
    __tracebackhide__ = True  # pytest ends its traceback at the user's line
    failed = [e for e in expectations if not e.holds(report)]
    if failed:
        raise ExpectationFailed("\n".join(line for e in failed for line in _told(report, e)))


def _told(report: Report, expected: Expectation) -> list[str]:
    lines = [f"expected {expected}, found {getattr(report.summary, expected.name)}"]
    name = expected.name
    if name in ("breaks", "unexpected"):
        lines += [
            f"  {label(b.file, b.cell)}:{b.line} {b.source.strip()} ({b.type})"
            for b in report.breaks
            if name == "breaks" or b.allowed is not True
        ]
    elif name in ("skipped", "empty", "cached", "failed", "unfinished"):
        lines += [
            f"  {label(f.file, f.cell)}:{f.line} {f.name} ({f.reason or name})" for f in report.frames if f.status == name
        ]
    elif name == "resumes":
        lines += [f"  {label(f.file, f.cell)}:{f.line} resume in {f.name}" for f in report.frames if f.kind == "resume"]
    elif name == "recompiles":
        lines += [f"  {report.frame(r.frame).name}: {'; '.join(r.words)}" for r in report.recompiles]
    elif name in ("graphs", "ops"):
        for graph in report.graphs:
            frame = report.frame(graph.frame)
            lines.append(f"  {graph.id} in {frame.name} at {label(frame.file, frame.cell)}:{frame.line}, {graph.ops} ops")
    return lines
