"""What of a cell's outputs a docs test compares: the shape of its reports, and whether it raised.

Of a report that is its outline (`compiler.report.outline`).  Text, values and times are not compared.
`compare` is pure: stored and new outputs in, differences out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dynascope.compiler.report import plural
from dynascope.compiler.report.outline import MIME

#: raised by `--expect`: what an author wrote down did not hold, so no tag permits it
NEVER_PERMITTED = ("ExpectationError", "ExpectationFailed")
#: IPython prints this one instead of sending an error
_USAGE = "UsageError: "


@dataclass(frozen=True)
class Difference:
    """One way in which a cell now differs from what was stored.  `line` counts in the cell."""

    what: str
    detail: str = ""
    line: int | None = None


def structures(outputs: Iterable[Any]) -> list[dict[str, Any]]:
    """The structure of each report among a cell's outputs, in order."""
    found = []
    for output in outputs:
        for holder in (output.get("data", {}), output.get("metadata", {})):
            value = holder.get(MIME)
            if isinstance(value, dict):
                found.append(value)
                break
    return found


def error_name(outputs: Iterable[Any]) -> str | None:
    """The type of the exception that the cell ended with, or None."""
    for output in outputs:
        if output.get("output_type") == "error":
            return str(output.get("ename", ""))
        if output.get("output_type") == "stream" and any(t.startswith(_USAGE) for t in output["text"].splitlines()):
            return "UsageError"
    return None


def compare(stored: Iterable[Any], now: Iterable[Any]) -> list[Difference]:
    """How the structure of a cell's outputs differs from what was stored.  Empty: it does not."""
    stored, now = list(stored), list(now)
    found = _compare_errors(error_name(stored), error_name(now))
    before, after = structures(stored), structures(now)
    if len(before) != len(after):
        found.append(Difference(f"{plural(len(after), 'report')} (stored: {len(before)})"))
    for index, (old, new) in enumerate(zip(before, after, strict=False)):
        place = f"report {index + 1}: " if len(before) > 1 else ""
        if _release(old) != _release(new):
            continue  # another torch may rightly find other graphs
        found += [Difference(place + d.what, d.detail, d.line) for d in _compare_reports(old, new)]
    return found


def _release(structure: dict[str, Any]) -> list[str]:
    return str(structure.get("torch", "")).split(".")[:2]


def _compare_errors(before: str | None, after: str | None) -> list[Difference]:
    if before == after:
        return []
    if after is None:
        return [Difference("an error is gone", f"stored: {before}; now the cell raises nothing")]
    if before is None:
        return [Difference("a new error", f"stored: none; now the cell raises {after}")]
    return [Difference("another error", f"stored: {before}; now: {after}")]


def _compare_reports(old: dict[str, Any], new: dict[str, Any]) -> list[Difference]:
    found = _compare_breaks(old.get("breaks", []), new.get("breaks", []))
    before, after = old.get("summary", {}), new.get("summary", {})
    # the breaks were named one by one
    names = [n for n in before if n in after and not n.endswith("seconds") and n not in ("breaks", "unexpected")]
    changed = [f"{name}: {after[name]} (stored: {before[name]})" for name in names if before[name] != after[name]]
    if changed:
        found.append(Difference("other counts", ", ".join(changed)))
    return found


def _compare_breaks(old: list[Any], new: list[Any]) -> list[Difference]:
    """Match equal breaks first, then those of one type by place, then by outcome: the rest came or went."""
    gone = list(old)
    come = []
    for entry in new:
        if entry in gone:
            gone.remove(entry)
        else:
            come.append(entry)
    found = []
    for entry in list(come):
        twin = next((g for g in gone if g.get("line") == entry.get("line") and g.get("type") == entry.get("type")), None)
        if twin is not None:
            what = f"a graph break now {entry.get('outcome')}, stored as {twin.get('outcome')}"
            found.append(Difference(what, str(entry.get("type", "")), entry.get("line")))
        else:
            twin = next((g for g in gone if g.get("type") == entry.get("type")), None)
            if twin is None:
                continue
            what = f"a graph break in another place: line {entry.get('line')} (stored: line {twin.get('line')})"
            found.append(Difference(what, str(entry.get("type", "")), entry.get("line")))
        gone.remove(twin)
        come.remove(entry)
    found += [Difference("a new graph break", _words(e), e.get("line")) for e in come]
    # its line may hold something else now: none is marked
    found += [Difference("a lost graph break", _words(e)) for e in gone]
    return found


def _words(entry: Any) -> str:
    return f"{entry.get('type')} ({entry.get('outcome')}) at line {entry.get('line')}"
