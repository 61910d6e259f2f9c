"""Compares a cell's outputs with the stored ones: the outlines of reports (`compiler.report.comparison`), and the error's type.

Text, values and times are not compared.  These are pure functions: stored and new outputs in, differences out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dynascope.compiler.report import plural
from dynascope.compiler.report.comparison import MIME, ExpectationFailed

#: the exception for an expectation that does not hold; only the tag `expect-exception` permits it, `raises-exception` does not
EXPECTATION_ERROR = ExpectationFailed.__name__
#: start of the line that IPython prints for a UsageError, instead of sending an error output
_USAGE = "UsageError: "


@dataclass(frozen=True)
class Difference:
    """One difference between a cell's outputs and the stored ones; `line` is a line of the cell."""

    what: str
    detail: str = ""
    line: int | None = None


def outlines(outputs: Iterable[Any]) -> list[dict[str, Any]]:
    """The outline of each report among a cell's outputs, in order."""
    candidates = [output.get("data", {}).get(MIME) or output.get("metadata", {}).get(MIME) for output in outputs]
    return [value for value in candidates if isinstance(value, dict)]


def error_name(outputs: Iterable[Any]) -> str | None:
    """The type of the exception that the cell ended with, or None."""
    for output in outputs:
        if output.get("output_type") == "error":
            return str(output.get("ename", ""))
        if output.get("name") == "stderr" and any(t.startswith(_USAGE) for t in output["text"].splitlines()):
            return "UsageError"
    return None


def compare(stored: Iterable[Any], now: Iterable[Any]) -> list[Difference]:
    """The differences between the stored outputs of a cell and the new ones."""
    stored, now = list(stored), list(now)
    differences = _compare_errors(error_name(stored), error_name(now))
    before, after = outlines(stored), outlines(now)
    if len(before) != len(after):
        differences.append(Difference(f"{plural(len(after), 'report')} (stored: {len(before)})"))
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        if _release(old) != _release(new):
            continue  # different compilers, which may capture different graphs and name other lines
        prefix = f"report {number}: " if len(before) > 1 else ""
        differences += [Difference(prefix + d.what, d.detail, d.line) for d in _compare_reports(old, new)]
    return differences


def _release(outline: dict[str, Any]) -> tuple[list[str], bool]:
    """torch's release, and whether the Python is 3.10, whose bytecode has lines but no columns."""
    return str(outline.get("torch", "")).split(".")[:2], str(outline.get("python", "")).startswith("3.10")


def _compare_errors(before: str | None, after: str | None) -> list[Difference]:
    if before == after:
        return []
    what = "an error is gone" if after is None else "a new error" if before is None else "another error"
    return [Difference(what, f"stored: {before or 'none'}; now the cell raises {after or 'nothing'}")]


def _compare_reports(old: dict[str, Any], new: dict[str, Any]) -> list[Difference]:
    differences = _compare_breaks(old.get("breaks", []), new.get("breaks", []))
    before, after = old.get("summary", {}), new.get("summary", {})
    # breaks are compared one by one
    names = [n for n in before if n in after and not n.endswith("seconds") and n not in ("breaks", "unexpected")]
    changed = [f"{name}: {after[name]} (stored: {before[name]})" for name in names if before[name] != after[name]]
    return [*differences, Difference("other counts", ", ".join(changed))] if changed else differences


def _compare_breaks(old: list[Any], new: list[Any]) -> list[Difference]:
    added, lost = list(new), []
    for entry in old:
        if entry in added:
            added.remove(entry)
        else:
            lost.append(entry)
    differences = [Difference("a new graph break", _describe(e), e.get("line")) for e in added]
    # no line is marked: another statement may be there now
    return differences + [Difference("a lost graph break", _describe(e)) for e in lost]


def _describe(entry: Any) -> str:
    return f"{entry.get('type')} ({entry.get('outcome')}) at line {entry.get('line')}"
