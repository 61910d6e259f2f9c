"""Tabs of a frame's detail: its versions, its symbols, what its guards cost, and its guards.

Promises: a guard is listed with the line that made it, if that is known; guards of one line that the report counts
together are one row.
"""

from __future__ import annotations

from collections.abc import Iterator

from dynascope.compiler.report import Frame, Guard, Recompile, Report, seconds, site_place, time_text
from dynascope.widgets.labels.recompiles import (
    constraint_words,
    failures,
    line_words,
    symbol_words,
    wanted_by,
)
from dynascope.widgets.labels.run_time import guard_switches
from dynascope.widgets.labels.words import Places, printable, shorten
from dynascope.widgets.model.recompiles import VALUES
from dynascope.widgets.wire import Part

#: one list has at most this many rows
ROWS = 500


def guard_parts(report: Report, frame: Frame, row: list[Frame], places: Places) -> list[Part]:
    """The tabs of a frame; `row`: all versions of its code, in order."""
    parts: list[Part] = []
    if len(row) > 1:
        again = {r.frame: r for r in report.recompiles if r.refused_by is None}
        rows = [_version(f, again.get(f.id), places) for f in row]
        parts.append({"key": "versions", "name": f"Versions ({len(row)})", "kind": "list", "body": rows[:ROWS]})
    if frame.symbols:
        rows = list(_symbols(frame, places))
        parts.append({"key": "symbols", "name": f"Symbols ({len(frame.symbols)})", "kind": "list", "body": rows[:ROWS]})
    rows = list(_costs(report, frame))
    if rows:
        parts.append({"key": "guard_costs", "name": "Cost of guards", "kind": "list", "body": rows[:ROWS]})
    rows = [_guard(guard, place) for place, guard in _sorted(frame, places)]
    if rows or frame.guards:
        rows = rows or [[printable(g, 1000), "", "", ""] for g in frame.guards]
        count = frame.guard_count if frame.guard_count is not None else len(rows)
        parts.append({"key": "guards", "name": f"Guards ({count})", "kind": "list", "body": rows[:ROWS]})
    return parts


def _costs(report: Report, frame: Frame) -> Iterator[list[str]]:
    """Rows on what a frame's guards cost a call and, for the most expensive frame, on torch's switches."""
    profile = report.profile
    costs = profile.guards if profile is not None else None
    one = next((f for f in costs.frames if f.frame == frame.id), None) if costs is not None else None
    if profile is None or costs is None or one is None:
        return
    times = f", in {one.times:.3g} evaluations" if one.times > 1.01 else ""
    yield [
        "guards",
        time_text(one.lookups),
        f"a call{times}; together with the code around the graph, {100 * one.share:.0f}% of the call",
        "",
    ]
    yield ["code around the graph", time_text(one.prologue), "a call", ""]
    if one is costs.frames[0] and guard_switches(profile):
        yield ["", "", guard_switches(profile), ""]


def _version(frame: Frame, recompile: Recompile | None, places: Places) -> list[str]:
    """The row of one version: the guard that failed before it was compiled, and how long compiling took."""
    why = "; ".join(failures(recompile, places)[:1]) if recompile is not None else "the first version"
    took = seconds(frame.compile_seconds) if frame.compile_seconds is not None else ""
    return [printable(frame.compile_id or frame.id, 40), printable(why, 400), took.replace(" ", "\N{NO-BREAK SPACE}"), frame.id]


def _symbols(frame: Frame, places: Places) -> Iterator[list[str]]:
    """A row for each symbol, followed by rows for the conditions on it."""
    for symbol in frame.symbols:
        title, range_, why = symbol_words(symbol)
        first = line_words(symbol.at, places)
        yield [
            printable(title, 200),
            printable(range_, 200),
            printable(why + (f"; first used at {first}" if first else ""), 500),
            "",
        ]
        for constraint in symbol.constraints[:50]:
            words, because = constraint_words(constraint, places)
            pins = "one value" if constraint.value is not None else ""
            yield ["    " + printable(words, 300), pins, printable(because, 400), ""]


def _sorted(frame: Frame, places: Places) -> list[tuple[str, Guard]]:
    """(words for its line, guard) for each guard of a frame: guards on values first, then by line, unknown lines last."""
    found: list[tuple[tuple[bool, bool, str, int], str, Guard]] = []
    for index, site in enumerate(frame.guard_sites):
        at = site_place(frame.guard_sites, index)
        words, place = line_words(at, places), (at is None, at.file if at else "", at.line if at else 0)
        found += [((guard.kind not in VALUES, *place), words, guard) for guard in site.guards]
    return [(words, guard) for _, words, guard in sorted(found, key=lambda entry: entry[0])]


def _guard(guard: Guard, place: str) -> list[str]:
    times = f" ({guard.count} of this kind)" if guard.count > 1 else ""
    return [shorten(guard.text, 300) + times, printable(place, 300), printable(wanted_by(guard), 120), ""]
