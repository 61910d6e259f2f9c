"""The Profile of the calls in a profiler's events: their segments, shares, and what each break costs.

`profile_of(events, report)` draws the call nearest to the median, as `cutting` cuts it, with the median and the spread of
each segment over the calls that went the same way.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable

from dynascope.compiler.profile.attribution import Call, Piece, read_calls
from dynascope.compiler.profile.break_costs import break_costs
from dynascope.compiler.profile.profiler_trace import Event
from dynascope.compiler.profile.timing import middle_half
from dynascope.compiler.report import EagerOp, Profile, Report, Segment

_SECOND = 1e-9
_SHARES = {
    "graph": "graphs", "gap": "gaps", "lookup": "lookups", "prologue": "prologue", "wait": "waiting",
    "unaccounted": "unaccounted",
}  # fmt: skip


def profile_of(events: Iterable[Event], report: Report, own: float = 0.0) -> Profile:
    """The Profile of the calls in these events; compile ids are those of `report`.

    `own`: seconds by which the profiler makes a call longer.  What breaks cost is told without it; segments are as recorded.
    Raises ValueError where no call is marked in them.
    """
    calls = read_calls(list(events), report)
    if not calls:
        raise ValueError("no call in the profiler's trace")
    paths = Counter(c.path for c in calls)
    path, same = paths.most_common(1)[0]
    chosen = [c for c in calls if c.path == path]
    totals = [c.duration * _SECOND for c in chosen]
    median = statistics.median(totals)
    drawn = min(chosen, key=lambda c: abs(c.duration * _SECOND - median))
    result = Profile(calls=len(calls), median_seconds=median, spread=middle_half(totals))
    result.segments = _segments(drawn, chosen, report)
    result.lanes = list(dict.fromkeys(s.lane for s in result.segments))
    result.shares = _shares(chosen)
    result.breaks = break_costs(chosen, report, own)
    if same < len(calls):
        result.notes.append(f"{same} of {len(calls)} calls went the same way through the compiled code; the figures are theirs")
    unknown = sorted(set().union(*(c.unknown for c in chosen)))
    if unknown:
        result.notes.append(
            f"the profiled calls ran compiled code that the report lacks ({', '.join(unknown[:5])}): compiled before it, or "
            "because a guard failed when the call was repeated; its time is that of none of the report's graphs. A second "
            "call in the cell has it in the report"
        )
    return result


def graphs_in(events: Iterable[Event], report: Report) -> list[str | None]:
    """Ids of the graphs that the calls in these events run, each once, in order; None for those that the report lacks."""
    pieces = [p for call in read_calls(list(events), report) for p in call.pieces]
    return list(dict.fromkeys(p.graph for p in pieces if p.kind == "graph"))


# -- telling ----------------------------------------------------------------------------------------------------


def _segments(drawn: Call, calls: list[Call], report: Report) -> list[Segment]:
    segments = [
        Segment(
            kind=p.kind, lane="CPU", start=(p.start - drawn.start) * _SECOND, duration=(p.end - p.start) * _SECOND,
            label=p.label or _label(p, report), frame=p.frame, graph=p.graph, break_=p.break_, ops=_ops(p),
        )
        for p in drawn.pieces
    ]  # fmt: skip
    if all(len(c.pieces) == len(drawn.pieces) for c in calls):
        for position, segment in enumerate(segments):
            times = [(c.pieces[position].end - c.pieces[position].start) * _SECOND for c in calls]
            segment.median, segment.spread = statistics.median(times), middle_half(times)
    for lane, kind, name, start, end, launched in sorted(drawn.device, key=lambda d: (d[0], d[3])):
        owner = next((p for p in drawn.pieces if launched is not None and p.start <= launched < p.end), None)
        segments.append(Segment(
            kind="kernel" if kind == "kernel" else "copy", lane=lane, start=(start - drawn.start) * _SECOND,
            duration=(end - start) * _SECOND, label=name, frame=owner.frame if owner else None,
            graph=owner.graph if owner else None, break_=owner.break_ if owner and owner.kind == "gap" else None,
        ))  # fmt: skip
    return segments


def _ops(piece: Piece) -> list[EagerOp]:
    ops = sorted(piece.ops.items(), key=lambda item: -item[1][0])
    return [EagerOp(name=name, seconds=time * _SECOND, count=count) for name, (time, count) in ops[:20]]


def _label(piece: Piece, report: Report) -> str:
    if piece.kind == "graph":
        number = next((n for n, g in enumerate(report.graphs) if g.id == piece.graph), None)
        return "compiled code" if number is None else f"graph {number}"
    if piece.kind == "gap":
        found = next((b for b in report.breaks if b.id == piece.break_), None)
        return "eager code" if found is None else f"after the break in line {found.line}"
    return {"lookup": "guards", "prologue": "prologue", "wait": "waiting for the device"}.get(piece.kind, "unaccounted")


def _shares(calls: list[Call]) -> dict[str, float]:
    """Each kind's part of the call: its median over the calls; the parts add up to one."""
    parts: dict[str, list[int]] = {name: [] for name in _SHARES.values()}
    for call in calls:
        sums: dict[str, int] = defaultdict(int)
        for piece in call.pieces:
            sums[_SHARES[piece.kind]] += piece.end - piece.start
        for name, values in parts.items():
            values.append(sums[name])
    medians = {name: statistics.median(values) for name, values in parts.items()}
    whole = sum(medians.values())
    shares = {name: value / whole if whole else 0.0 for name, value in medians.items()}
    devices = [_busy(call) / call.duration for call in calls if call.device and call.duration]
    if devices:
        shares["device busy"] = statistics.median(devices)
    return shares


def _busy(call: Call) -> int:
    """Nanoseconds in which at least one device computes or copies."""
    total, until = 0, 0
    for _, _, _, start, end, _ in sorted(call.device, key=lambda d: d[3]):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total
