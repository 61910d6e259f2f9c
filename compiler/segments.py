"""Profiler events of N calls in, the segments of a call out: a pure function, the same for a CPU and a GPU.

`profile_of(events, report)` cuts each call into stretches that follow one another without a hole, and tells of each
what it is: a compiled graph, eager code between two graphs, the lookup of guards, the prologue of a graph, waiting for
the device.  What belongs to none of them is "unaccounted", and shown as such.

Each stretch that is no graph has a cause: the break without which it would not be there.  Inside a compiled
region that is, before its graph, the break after which the region was entered, and behind its graph the break that ended
it.  So a region that goes on after a break, and a function that is called after one, are charged to that break; the
outermost region's own entry is charged to nobody.
"""

from __future__ import annotations

import bisect
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dynascope.compiler.break_costs import break_costs
from dynascope.compiler.profiler_trace import BACKEND, CALL, GRAPH, LOOKUP, PREGRAPH, WRAPPER, Event, Span, trees
from dynascope.compiler.report import Frame, Profile, Report, Segment, SegmentKind

_SECOND = 1e-9
_SHARES = {
    "graph": "graphs", "gap": "gaps", "lookup": "lookups", "prologue": "prologue", "wait": "waiting",
    "unaccounted": "unaccounted",
}  # fmt: skip


@dataclass
class Piece:
    """A stretch of the calling thread, in nanoseconds of the trace."""

    kind: SegmentKind
    start: int
    end: int
    frame: str | None = None
    graph: str | None = None
    break_: str | None = None
    #: which entry of the region (counted in the call): pieces of two entries are never one
    entry: int = 0
    label: str = ""
    #: eager ops in it: name -> [nanoseconds, count]
    ops: dict[str, list[int]] = field(default_factory=dict)
    #: starts and ends of the profiler's events in it, each of which takes the profiler a moment
    edges: int = 0

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.kind, self.frame, self.graph, self.break_, self.entry, self.label)


@dataclass
class Call:
    """One call: its pieces in order, and what ran on the devices meanwhile."""

    start: int
    end: int
    pieces: list[Piece]
    #: (lane, kind, name, start, end, time of its launch or None)
    device: list[tuple[str, str, str, int, int, int | None]] = field(default_factory=list)
    #: compile ids that the report does not have
    unknown: set[str] = field(default_factory=set)

    @property
    def duration(self) -> int:
        return self.end - self.start

    @property
    def path(self) -> tuple[Any, ...]:
        """Two calls that went the same way have the same path."""
        return tuple(p.key for p in self.pieces if p.kind != "wait")


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
            "because a guard failed when the call was repeated"
        )
    return result


def graphs_in(events: Iterable[Event], report: Report) -> list[str]:
    """Ids of the graphs that the calls in these events run, each once, in order."""
    pieces = [p for call in read_calls(list(events), report) for p in call.pieces]
    return list(dict.fromkeys(p.graph for p in pieces if p.kind == "graph" and p.graph is not None))


def middle_half(values: list[float]) -> list[float]:
    """[first quartile, third quartile]; of a single value that value twice."""
    if len(values) < 2:
        return values * 2
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return [low, high]


# -- reading --------------------------------------------------------------------------------------------------


def read_calls(events: list[Event], report: Report) -> list[Call]:
    """The marked calls in these events, cut into pieces."""
    calls = []
    for roots in trees(events).values():
        for span in roots:
            if span.name == CALL:
                cutter = _Cutter(report)
                calls.append(Call(span.start, span.end, cutter.cut(span), unknown=cutter.unknown))
    calls.sort(key=lambda c: c.start)
    launches = {e["correlation"]: e["start"] for e in events if e["kind"] == "runtime" and e["correlation"] is not None}
    for event in events:
        if event["kind"] not in ("kernel", "copy"):
            continue
        launched = launches.get(event["correlation"])
        at = event["start"] if launched is None else launched
        call = next((c for c in calls if c.start <= at < c.end), None)
        if call is not None:
            lane, start = f"GPU {event['device']} {event['thread']}", event["start"]
            call.device.append((lane, event["kind"], event["name"], start, start + event["duration"], launched))
    return calls


class _Cutter:
    """Cuts one call into pieces."""

    def __init__(self, report: Report) -> None:
        self.frames = {f.compile_id: f for f in report.frames if f.compile_id is not None}
        # a version that was compiled while the call was repeated: the same function, by the number of its frame
        self.numbers = {id.split("/")[0]: f for id, f in self.frames.items()}
        self.unknown: set[str] = set()
        self.ids = {f.id: f for f in report.frames}
        self.ended = {h.frame: b.id for b in report.breaks for h in b.hits if h.outcome == "resumed"}
        for graph in report.graphs:
            if graph.break_ is not None:
                self.ended[graph.frame] = graph.break_
        self.outer = self._outermost(report)
        self.pieces: list[Piece] = []
        self.entries = 0

    def _outermost(self, report: Report) -> Frame | None:
        """The frame that the call enters, where Dynamo skipped it: its own code runs eagerly, outside all regions."""
        roots = [f for f in report.frames if f.parent is None and f.continues is None and f.status not in ("ignored", "empty")]
        if roots and all(f.status == "skipped" for f in roots):
            return roots[0]
        return None

    def cut(self, call: Span) -> list[Piece]:
        self._outside(call)
        self._count_edges(call)
        return self.pieces

    def _count_edges(self, call: Span) -> None:
        """The profiler works before the start that it notes, and behind the end."""
        ends = [p.end for p in self.pieces]
        last = len(ends) - 1
        todo = list(call.inside)
        while todo:
            span = todo.pop()
            todo.extend(span.inside)
            self.pieces[min(last, bisect.bisect_left(ends, span.start))].edges += 1
            self.pieces[min(last, bisect.bisect_right(ends, span.end))].edges += 1

    def _add(self, kind: SegmentKind, start: int, end: int, **more: Any) -> None:
        """A piece; one that goes on where an equal one ended is the same piece."""
        if end <= start:
            return
        op = more.pop("op", None)
        piece = Piece(kind, start, end, **more)
        last = self.pieces[-1] if self.pieces else None
        if last is not None and last.key == piece.key and last.end == start:
            last.end, piece = end, last
        else:
            self.pieces.append(piece)
        if op is not None:
            total = piece.ops.setdefault(op, [0, 0])
            total[0] += end - start

    # -- what is outside all compiled regions ----------------------------------------------------------------

    def _outside(self, call: Span) -> None:
        skipped = self.outer
        eager: dict[str, Any] = {"label": f"{skipped.name}, skipped" if skipped else "eager code"}
        if skipped is not None:
            eager |= {"frame": skipped.id, "break_": skipped.break_}
        own: tuple[SegmentKind, dict[str, Any]] = ("gap", eager) if skipped else ("unaccounted", {})
        at = call.start
        for span in call.inside:
            self._add(own[0], at, span.start, **own[1])
            self._eager(span, eager, skipped.break_ if skipped else None)
            at = span.end
        self._add(own[0], at, call.end, **own[1])

    def _eager(self, span: Span, gap: dict[str, Any], cause: str | None, op: str | None = None) -> None:
        """One thing that happens in eager code: an op, waiting, or compiled code that it calls."""
        if span.name == LOOKUP:
            self._add("lookup", span.start, span.end, break_=cause, entry=gap.get("entry", 0))
        elif span.region is not None:
            self._region(span, cause)
        elif span.is_wait:
            self._add("wait", span.start, span.end, label=span.name, break_=cause)
        elif span.name.startswith((GRAPH, BACKEND)):
            self._graph(span, None, None, cause)  # of a backward: the profiler does not tell which
        else:
            if op is None and span.kind == "cpu":
                op = span.name
            before, at = len(self.pieces), span.start
            for inner in span.inside:
                self._add("gap", at, inner.start, op=op, **gap)
                self._eager(inner, gap, cause, op)
                at = inner.end
            self._add("gap", at, span.end, op=op, **gap)
            if op == span.name and len(self.pieces) >= before and self.pieces and op in self.pieces[-1].ops:
                self.pieces[-1].ops[op][1] += 1

    # -- a compiled region -----------------------------------------------------------------------------------

    def _region(self, span: Span, cause: str | None) -> None:
        """`cause`: the break after which it was entered."""
        region = span.region or ""
        frame = self.frames.get(region) or self.numbers.get(region.split("/")[0])
        if region not in self.frames:
            self.unknown.add(region)
        self.entries += 1
        entry = self.entries
        place: dict[str, Any] = {"frame": frame.id if frame else None, "entry": entry}
        ended = self.ended.get(frame.id) if frame else None
        # before its graph; a frame that has none is at its break at once
        entering = any(s.name.startswith((GRAPH, BACKEND)) for s in span.inside)
        # what calls compiled code behind its graph was broken there, even where the report does not know by what
        broken = ended is not None or any(s.name == LOOKUP or s.region is not None for s in span.inside)
        after = ended or cause
        at = span.start
        for inner in span.inside:
            self._own(at, inner.start, entering, broken, cause, after, place)
            at = inner.end
            if entering and inner.name.startswith((GRAPH, BACKEND)):
                self._graph(inner, frame, span.region, cause, entry)
                entering = False
            elif entering or inner.name in (PREGRAPH, WRAPPER):
                self._add("prologue", inner.start, inner.end, break_=cause, **place)
            else:
                self._eager(inner, {**place, "break_": after}, after)
        self._own(at, span.end, entering, broken, cause, after, place)

    def _own(
        self, start: int, end: int, entering: bool, broken: bool, cause: str | None, after: str | None, place: dict[str, Any]
    ) -> None:
        """The region's own code: on the way to its graph, behind the break that ended it, or on the way back."""
        if entering:
            self._add("prologue", start, end, break_=cause, **place)
        elif broken:
            self._add("gap", start, end, break_=after, **place)
        else:
            self._add("prologue", start, end, break_=cause, label="return", **place)

    def _graph(self, span: Span, frame: Frame | None, region: str | None, cause: str | None, entry: int = 0) -> None:
        """A captured graph; what wraps the backend's code in it is prologue, waiting for the device is waiting."""
        place: dict[str, Any] = {"frame": frame.id if frame else None, "entry": entry}
        label = "" if frame else "compiled backward" if region is None else f"region {region}"
        graph = {**place, "graph": frame.graph if frame else None, "label": label}
        backend = [s for s in span.inside if s.name.startswith(BACKEND)] if not span.name.startswith(BACKEND) else []
        if backend:
            self._add("prologue", span.start, backend[0].start, break_=cause, **place)
            self._inside_graph(Span("", "cpu", backend[0].start, backend[-1].end, inside=backend), graph)
            self._add("prologue", backend[-1].end, span.end, break_=cause, **place)
        else:
            self._inside_graph(span, graph)

    def _inside_graph(self, span: Span, graph: dict[str, Any]) -> None:
        at = span.start
        for wait in _waits(span):
            self._add("graph", at, wait.start, **graph)
            self._add("wait", wait.start, wait.end, **{**graph, "label": wait.name})
            at = wait.end
        self._add("graph", at, span.end, **graph)


def _waits(span: Span) -> list[Span]:
    found = []
    for inner in span.inside:
        found += [inner] if inner.is_wait else _waits(inner)
    return found


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


def _ops(piece: Piece) -> list[dict[str, Any]]:
    ops = sorted(piece.ops.items(), key=lambda item: -item[1][0])
    return [{"name": name, "seconds": time * _SECOND, "count": count} for name, (time, count) in ops[:20]]


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
