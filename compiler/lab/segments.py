"""Makes the Profile from a profiler's events: segments, shares, and what breaks and guards cost.

The segments are the slices of one call, the one nearest to the median, and the work of the devices in that call.  Each slice
has the median and the spread of its duration over all calls that ran the same code in the same order.

The cost of a break is the time that would be saved without the break *and* its cause (the code that cannot be compiled): the
guard checks, prologues and eager Python between the graphs before and after the break, and a copy to Python (`.item()`).  The
tensor ops in the gap would still have to run, inside a graph; how fast is unknown, and so is what fusing the two graphs would
gain.  So the cost is a lower bound; the time of these ops is reported beside it.  If the call used a device, the cost is at
most the time in which the devices were idle.  The cost of a break that only makes Dynamo skip frames is unknown.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynascope.compiler.lab.slices import Call, Event, Slice, read_calls
from dynascope.compiler.report import BreakCost, CostParts, EagerOp, FrameGuards, GuardCosts, Profile, Report, Segment

if TYPE_CHECKING:
    from dynascope.compiler.lab.slices import Call, Slice

_SECOND = 1e-9
#: kind of slices -> name in a Profile's shares
_SHARES = {
    "graph": "graphs", "gap": "gaps", "lookup": "lookups", "prologue": "prologue", "wait": "waiting",
    "unaccounted": "unaccounted",
}  # fmt: skip


def profile_of(
    events: Iterable[Event], report: Report, overhead: float = 0.0, compiled_meanwhile: Collection[str] = ()
) -> Profile:
    """The Profile of the calls in these events; compile ids are those of `report`.

    Its times are those under the profiler; the caller replaces `median_seconds` and `spread`.
    `overhead`: seconds by which the profiler makes a call longer; subtracted from what breaks cost, and from nothing else.
    `compiled_meanwhile`: ids of compiles that the repeated calls needed.  Raises ValueError if no call is marked in the events.
    """
    calls = read_calls(list(events), report, compiled_meanwhile)
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
    unknown = sorted(set().union(*(c.unknown for c in chosen)).difference(compiled_meanwhile))
    if unknown:
        result.notes.append(
            f"the profiled calls ran compiled code that the report lacks ({', '.join(unknown[:5])}): compiled before it, or "
            "when the call was repeated; its time belongs to none of the report's graphs. To have it in the report, call the "
            "function twice in the cell"
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


#: recording one start or end of an event is charged at most this many nanoseconds; further overhead is spread evenly over the
#: call
_MOST_EDGE = 3000
#: ops that copy a value from a tensor to Python; without their break they would not run
_TO_PYTHON = ("aten::item", "aten::is_nonzero", "aten::_local_scalar_dense", "aten::equal")


def quartiles(values: list[float]) -> list[float]:
    """The first and the third quartile; for a single value, this value twice; [] without values."""
    if len(values) < 2:
        return values * 2
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return [first, third]


def break_costs(calls: list[Call], report: Report, overhead: float = 0.0) -> list[BreakCost]:
    """The cost of each break that the calls ran into; the most expensive first, unknown costs last.

    `overhead`: seconds by which the profiler makes each call longer; they are subtracted, so that the rest adds up to the call
    without a profiler.
    """
    costs = []
    unprofiled = _Unprofiled.of(calls, overhead)
    for b in report.breaks:
        slices = [[s for s in call.slices if s.break_ == b.id] for call in calls]
        if not any(slices):
            continue
        skips = b.outcome == "skipped" and not any(h.outcome == "resumed" for h in b.hits)
        costs.append(_skipped(b.id, slices) if skips else _resumed(b.id, calls, slices, unprofiled))
    return sorted(costs, key=lambda c: (c.seconds is None, -(c.seconds or 0), -(c.eager_seconds or 0)))


@dataclass
class _Unprofiled:
    """Estimates how long slices take without the profiler."""

    #: nanoseconds of the whole call without the profiler
    call: float
    #: nanoseconds to subtract for each start or end of an event
    edge: float
    #: factor for what is left
    factor: float

    @classmethod
    def of(cls, calls: list[Call], overhead: float) -> _Unprofiled:
        duration = statistics.median(call.duration for call in calls)
        edges = statistics.median(sum(s.edges for s in call.slices) for call in calls)
        excess = min(max(0.0, overhead) * 1e9, duration)
        edge = min(_MOST_EDGE, excess / edges) if edges else 0.0
        left = duration - edge * edges
        return cls(duration - excess, edge, (duration - excess) / left if left else 0.0)

    def length(self, slice_: Slice) -> float:
        return max(0.0, slice_.duration - slice_.edges * self.edge) * self.factor


def _skipped(break_: str, slices: list[list[Slice]]) -> BreakCost:
    eager = _median([sum(s.duration for s in of_call if s.kind == "gap") for of_call in slices])
    return BreakCost(break_=break_, seconds=None, eager_seconds=eager, method="eager frame", calls=len(slices))


def _resumed(break_: str, calls: list[Call], slices: list[list[Slice]], unprofiled: _Unprofiled) -> BreakCost:
    names = ("lookups", "prologue", "python", "synchronisation")
    parts: dict[str, list[float]] = {name: [] for name in names}
    ops, totals = [], []
    for call, of_call in zip(calls, slices, strict=True):
        sums = dict.fromkeys(names, 0.0)
        still_runs = 0.0
        for s in of_call:
            length = unprofiled.length(s)
            if s.kind in ("lookup", "prologue"):
                sums["lookups" if s.kind == "lookup" else "prologue"] += length
            elif s.kind == "gap":
                in_ops = sum(t for t, _ in s.ops.values())
                gone = sum(t for name, (t, _) in s.ops.items() if name in _TO_PYTHON)
                sums["python"] += max(0, length - in_ops)
                sums["synchronisation"] += gone
                still_runs += in_ops - gone
        total = min(sum(sums.values()), unprofiled.call)
        for name in names:
            parts[name].append(sums[name])
        totals.append(min(total, _idle(call, of_call)) if call.device else total)
        ops.append(still_runs)
    return BreakCost(
        break_=break_, seconds=_median(totals), share=statistics.median(totals) / unprofiled.call if unprofiled.call else None,
        spread=quartiles([t * 1e-9 for t in totals]),
        method="device idle" if any(call.device for call in calls) else "gap", calls=len(calls),
        parts=CostParts(**{name: _median(values) for name, values in parts.items()}), ops_seconds=_median(ops),
        times=statistics.median(map(_times, slices)),
    )  # fmt: skip


def _times(slices: list[Slice]) -> int:
    """How often the call ran into the break: entries of the frame that was entered most often in the break's gaps."""
    entries: dict[str | None, set[int]] = {}
    for s in slices:
        if s.kind == "gap":
            entries.setdefault(s.frame, set()).add(s.entry)
    return max(map(len, entries.values()), default=0)


def _idle(call: Call, slices: list[Slice]) -> int:
    """Nanoseconds in which the devices were idle because of these slices; adjacent slices count as one."""
    total = 0
    for start, end in _runs(slices):
        launched = [(d.start if launch is None else launch, d) for d, launch in call.device]
        free = max([start, *(d.end for at, d in launched if at < start)])
        until = min((d.start for at, d in launched if at >= end), default=end)
        busy = sum(max(0, d.end - max(d.start, free)) for at, d in launched if start <= at < end)
        total += max(0, until - free - busy)
    return total


def _runs(slices: list[Slice]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for s in slices:
        if runs and runs[-1][1] == s.start:
            runs[-1] = (runs[-1][0], s.end)
        else:
            runs.append((s.start, s.end))
    return runs


def _median(nanoseconds: Sequence[float]) -> float:
    return statistics.median(nanoseconds) * 1e-9


def guard_costs(calls: list[Call]) -> GuardCosts | None:
    """The costs by frame; None if most calls have no guard checks: this torch does not mark them, or no compiled code ran.

    The totals are medians over the calls, like the shares of a profile.  They are divided among the frames in proportion to the
    frames' sums over all calls.
    """
    frames: dict[str | None, FrameGuards] = {}
    (lookups, lookup_sum), (prologue, prologue_sum) = _taken(calls, "lookup"), _taken(calls, "prologue")
    if not lookups:
        return None
    for piece in (s for call in calls for s in call.slices if s.kind in ("lookup", "prologue")):
        one = frames.setdefault(piece.frame, FrameGuards(frame=piece.frame))
        if piece.kind == "lookup":
            one.lookups += lookups * piece.duration / lookup_sum
            one.times += 1 / len(calls)
        else:
            one.prologue += prologue * piece.duration / prologue_sum
    whole = _median([call.duration for call in calls])
    for one in frames.values():
        one.share = (one.lookups + one.prologue) / whole
    ranked = sorted(frames.values(), key=lambda one: -one.lookups - one.prologue)
    return GuardCosts(lookups=lookups, prologue=prologue, share=(lookups + prologue) / whole, frames=ranked)


def _taken(calls: list[Call], kind: str) -> tuple[float, float]:
    """The time in slices of one kind: median over the calls, in seconds, and sum over all calls, in nanoseconds."""
    taken = [sum(s.duration for s in call.slices if s.kind == kind) for call in calls]
    return _median(taken), sum(taken)
