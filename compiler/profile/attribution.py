"""Profiler events of N calls in, each call cut into pieces out: a pure function, the same for a CPU and a GPU.

The pieces of a call follow one another without a hole, and each tells what it is: a compiled graph, eager code between two
graphs, the lookup of guards, the prologue of a graph, waiting for the device.  What belongs to none of them is
"unaccounted".

Each piece that is no graph has a cause: the break without which it would not be there.  Inside a compiled
region that is, before its graph, the break after which the region was entered, and behind its graph the break that ended
it.  So a region that goes on after a break, and a function that is called after one, are charged to that break; the
outermost region's own entry, and that of the call's first graph, are charged to nobody.  A backward is charged as its
forward is: autograd gives both the same sequence number.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import Any

from dynascope.compiler.profile.profiler_trace import (
    BACKEND,
    BACKWARD,
    CALL,
    ENGINE,
    FORWARD,
    GRAPH,
    LOOKUP,
    PREGRAPH,
    WRAPPER,
    Event,
    Span,
    adopt,
    trees,
)
from dynascope.compiler.report import Frame, Report, SegmentKind


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


def read_calls(events: list[Event], report: Report) -> list[Call]:
    """The marked calls in these events, cut into pieces."""
    calls = []
    roots = [span for of_thread in trees(events).values() for span in of_thread]
    engines = [span for span in roots if span.name.startswith(ENGINE)]
    for span in roots:
        if span.name == CALL:
            for engine in engines:
                if span.start <= engine.start and engine.end <= span.end:
                    adopt(span, engine)
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
        # a version that the report lacks is one of the same function, by the number of its frame, but not the same graph
        self.numbers = {id.split("/")[0]: f for id, f in self.frames.items()}
        self.unknown: set[str] = set()
        self.ids = {f.id: f for f in report.frames}
        self.ended = {h.frame: b.id for b in report.breaks for h in b.hits if h.outcome == "resumed"}
        for graph in report.graphs:
            if graph.break_ is not None:
                self.ended[graph.frame] = graph.break_
        self.resumed = {frame: b.id for b in report.breaks for h in b.hits for frame in h.resumes}
        self.outer = self._outermost(report)
        self.order = {g.id: number for number, g in enumerate(report.graphs)}
        #: sequence number of a graph that ran forward -> its place, and the break after which it was entered
        self.forwards: dict[int, tuple[dict[str, Any], str | None]] = {}
        self.pieces: list[Piece] = []
        self.entries = 0
        self.has_graph = False

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
        elif span.name == BACKWARD or span.name.startswith((GRAPH, BACKEND)):
            self._backward(span, cause)
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
        frame = self._frame(region)
        if region not in self.frames:
            self.unknown.add(region)
        self.entries += 1
        entry = self.entries
        place: dict[str, Any] = {"frame": frame.id if frame else None, "entry": entry}
        ended = self._ended(span)
        # before its graph; a frame that has none is at its break at once
        entering = any(s.name.startswith((GRAPH, BACKEND)) for s in span.inside)
        # what calls compiled code behind its graph was broken there, even where the report does not know by what
        broken = ended is not None or any(s.name == LOOKUP or s.region is not None for s in span.inside)
        after = ended or cause
        # one graph remains whatever is mended: entering the first one is no break's fault
        fault = None if entering and not self.has_graph else cause
        self.has_graph |= entering
        at = span.start
        for inner in span.inside:
            self._own(at, inner.start, entering, broken, fault, after, place)
            at = inner.end
            if entering and inner.name.startswith((GRAPH, BACKEND)):
                self._graph(inner, frame, span.region, fault, entry)
                entering = False
            elif entering or inner.name in (PREGRAPH, WRAPPER):
                self._add("prologue", inner.start, inner.end, break_=fault, **place)
            else:
                self._eager(inner, {**place, "break_": after}, after)
        self._own(at, span.end, entering, broken, fault, after, place)

    def _frame(self, region: str) -> Frame | None:
        return self.frames.get(region) or self.numbers.get(region.split("/")[0])

    def _ended(self, span: Span) -> str | None:
        """The break that ended a region; of one that the report lacks, the resume function that it calls tells."""
        frame = self.frames.get(span.region or "")
        if frame is not None:
            return self.ended.get(frame.id)
        called = [self._frame(inner.region) for inner in span.inside if inner.region is not None]
        return next((self.resumed[f.id] for f in called if f is not None and f.id in self.resumed), None)

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

    def _graph(self, span: Span, frame: Frame | None, region: str | None, cause: str | None, entry: int) -> None:
        """A captured graph; what wraps the backend's code in it is prologue, waiting for the device is waiting."""
        graph: dict[str, Any] = {"frame": frame.id if frame else None, "entry": entry}
        if region in self.frames:
            graph["graph"] = frame.graph if frame else None
        else:
            graph["label"] = f"compiled code the report lacks ({region})"
        for forward in _named(span, FORWARD):
            if forward.name == FORWARD and forward.sequence is not None:
                self.forwards[forward.sequence] = (graph, cause)
        self._backend(span, graph, cause)

    def _backward(self, span: Span, cause: str | None) -> None:
        """Of the graph whose forward has the same sequence number; what wraps it is there because of the same break."""
        forward, because = self.forwards.get(span.sequence, ({}, cause)) if span.sequence is not None else ({}, cause)
        graph, label = forward.get("graph"), forward.get("label")
        if graph in self.order:
            label = f"graph {self.order[graph]}"
        self.entries += 1
        place = {"frame": forward.get("frame"), "graph": graph, "entry": self.entries}
        self._backend(span, {**place, "label": f"backward of {label}" if label else "compiled backward"}, because)

    def _backend(self, span: Span, graph: dict[str, Any], cause: str | None) -> None:
        """A graph, forward or backward: the backend's code, or all of it where the backend does not mark its own."""
        place = {"frame": graph["frame"], "entry": graph["entry"]}
        backend = [] if span.name.startswith(BACKEND) else _named(span, BACKEND)
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


def _named(span: Span, name: str) -> list[Span]:
    """The outermost spans inside whose name starts so."""
    return [s for inner in span.inside for s in ([inner] if inner.name.startswith(name) else _named(inner, name))]


def _waits(span: Span) -> list[Span]:
    found = []
    for inner in span.inside:
        found += [inner] if inner.is_wait else _waits(inner)
    return found
