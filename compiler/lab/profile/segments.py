"""Makes the Profile from a profiler's events: segments, shares, and what breaks and guards cost.

The segments are the slices of one call, the one nearest to the median, and the work of the devices in that call.  Each slice
has the median and the spread of its duration over all calls that ran the same code in the same order.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable

from dynascope.compiler.lab.profile.attribution import Call, Slice, read_calls
from dynascope.compiler.lab.profile.costs import break_costs, guard_costs
from dynascope.compiler.lab.profile.profiler_trace import Event
from dynascope.compiler.lab.profile.timing import quartiles
from dynascope.compiler.report import EagerOp, Profile, Report, Segment

_SECOND = 1e-9
#: kind of slices -> name in a Profile's shares
_SHARES = {
    "graph": "graphs", "gap": "gaps", "lookup": "lookups", "prologue": "prologue", "wait": "waiting",
    "unaccounted": "unaccounted",
}  # fmt: skip


def profile_of(events: Iterable[Event], report: Report, overhead: float = 0.0) -> Profile:
    """The Profile of the calls in these events; compile ids are those of `report`.

    Its times are those under the profiler; the caller replaces `median_seconds` and `spread`.
    `overhead`: seconds by which the profiler makes a call longer; subtracted from what breaks cost, and from nothing else.
    Raises ValueError if no call is marked in the events.
    """
    calls = read_calls(list(events), report)
    if not calls:
        raise ValueError("no call in the profiler's trace")
    path, same = Counter(c.path for c in calls).most_common(1)[0]
    chosen = [c for c in calls if c.path == path]
    totals = [c.duration * _SECOND for c in chosen]
    median = statistics.median(totals)
    drawn = min(chosen, key=lambda c: abs(c.duration * _SECOND - median))
    result = Profile(calls=len(calls), median_seconds=median, spread=quartiles(totals), profiled_seconds=median)
    result.segments = [*_segments(drawn, chosen, report), *_device_segments(drawn)]
    result.lanes = list(dict.fromkeys(s.lane for s in result.segments))
    result.shares = _shares(chosen)
    result.breaks = break_costs(chosen, report, overhead)
    result.guards = guard_costs(chosen)
    if same < len(calls):
        result.notes.append(f"{same} of {len(calls)} calls went the same way through the compiled code; the figures are theirs")
    unknown = sorted(set().union(*(c.unknown for c in chosen)))
    if unknown:
        result.notes.append(
            f"the profiled calls ran compiled code that the report lacks ({', '.join(unknown[:5])}): compiled before it, or "
            "because a guard failed when the call was repeated; its time belongs to none of the report's graphs. To have it in "
            "the report, call the function twice in the cell"
        )
    return result


def graphs_in(events: Iterable[Event], report: Report) -> list[str | None]:
    """Ids of the graphs that the calls in these events run, each once, in order; None for those that the report lacks."""
    slices = [s for call in read_calls(list(events), report) for s in call.slices]
    return list(dict.fromkeys(s.graph for s in slices if s.kind == "graph"))


def _segments(drawn: Call, calls: list[Call], report: Report) -> list[Segment]:
    segments = [
        Segment(
            kind=s.kind, lane="CPU", start=(s.start - drawn.start) * _SECOND, duration=s.duration * _SECOND,
            label=s.label or _label(s, report), frame=s.frame, graph=s.graph, break_=s.break_, ops=_ops(s),
            op_count=sum(count for _, count in s.ops.values()) if s.kind == "gap" else None,
        )
        for s in drawn.slices
    ]  # fmt: skip
    # calls that took the same path can differ in their waits; then the slices do not correspond, and medians stay unknown
    if all([s.key for s in c.slices] == [s.key for s in drawn.slices] for c in calls):
        for position, segment in enumerate(segments):
            times = [c.slices[position].duration * _SECOND for c in calls]
            segment.median, segment.spread = statistics.median(times), quartiles(times)
    return segments


def _device_segments(drawn: Call) -> list[Segment]:
    segments = []
    lanes = [(f"GPU {event.device} {event.thread}", event, launched) for event, launched in drawn.device]
    for lane, event, launched in sorted(lanes, key=lambda item: (item[0], item[1].start)):
        owner = next((s for s in drawn.slices if launched is not None and s.start <= launched < s.end), None)
        segments.append(Segment(
            kind="kernel" if event.kind == "kernel" else "copy", lane=lane, start=(event.start - drawn.start) * _SECOND,
            duration=(event.end - event.start) * _SECOND, label=event.name, frame=owner.frame if owner else None,
            graph=owner.graph if owner else None, break_=owner.break_ if owner and owner.kind == "gap" else None,
        ))  # fmt: skip
    return segments


def _ops(slice_: Slice) -> list[EagerOp]:
    ops = sorted(slice_.ops.items(), key=lambda item: -item[1][0])
    return [EagerOp(name=name, seconds=time * _SECOND, count=count) for name, (time, count) in ops[:20]]


def _label(slice_: Slice, report: Report) -> str:
    if slice_.kind == "graph":
        number = next((n for n, g in enumerate(report.graphs) if g.id == slice_.graph), None)
        return "compiled code" if number is None else f"graph {number}"
    if slice_.kind == "gap":
        cause = next((b for b in report.breaks if b.id == slice_.break_), None)
        return "eager code" if cause is None else f"after the break in line {cause.line}"
    return {"lookup": "guards", "prologue": "prologue", "wait": "waiting for the device"}.get(slice_.kind, "unaccounted")


def _shares(calls: list[Call]) -> dict[str, float]:
    """The share of each kind of slice, from medians over the calls: they add up to 1.  "device busy" overlaps with them."""
    medians = {
        name: statistics.median(sum(s.duration for s in call.slices if s.kind == kind) for call in calls)
        for kind, name in _SHARES.items()
    }
    whole = sum(medians.values())
    shares = {name: value / whole if whole else 0.0 for name, value in medians.items()}
    devices = [_busy(call) / call.duration for call in calls if call.device and call.duration]
    if devices:
        shares["device busy"] = statistics.median(devices)
    return shares


def _busy(call: Call) -> int:
    """Nanoseconds in which at least one device computes or copies."""
    total, until = 0, 0
    for event, _ in sorted(call.device, key=lambda d: d[0].start):
        total += max(0, event.end - max(event.start, until))
        until = max(until, event.end)
    return total
