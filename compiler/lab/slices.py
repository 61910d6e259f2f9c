"""Cuts each profiled call into slices, and says what each slice is and which break causes it.

The slices are computed from the profiler's events, in the same way for a CPU and a GPU; the report gives their frames, graphs
and breaks.  The slices cover the whole call.  Each slice is a compiled graph, a check of guards ("lookup"), a compiled region's
own code around its graph or before it returns ("prologue"), eager code, including the region's own after a break ("gap"), or
waiting for the device; the rest is "unaccounted".

A slice that is not a graph can have a cause: the break without which it would not be there.  In a compiled region, the cause
of what runs before the region's graph is the break after which the region was entered; the cause of what runs after the graph
is the break that ended the graph.  So a region that continues after a break, and a function that is called after one, are
charged to that break; entering the outermost region and the call's first graph is charged to no break.  A backward has the
cause of the forward with the same autograd sequence number.

`plain_events()` reads the Chrome trace that `torch.profiler` exports: a public format, the same for every torch and device.
`trees()` nests the events of each thread as they nest in time.

Makes the Profile from a profiler's events: segments, shares, and what breaks and guards cost.

The segments are the slices of one call, the one nearest to the median, and the work of the devices in that call.

The cost of a break is the time that would be saved without the break *and* its cause (the code that cannot be compiled): the
guard checks, prologues and eager Python between the graphs before and after the break, and a copy to Python (`.item()`).  The
tensor ops in the gap would still have to run, inside a graph; how fast is unknown, and so is what fusing the two graphs would
gain.  So the cost is a lower bound; the time of these ops is reported beside it.  If the call used a device, the cost is at
most the time in which the devices were idle.  The cost of a break that only makes Dynamo skip frames is unknown.
"""

from __future__ import annotations

import bisect
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from dynascope.compiler.report import (
    BreakCost,
    EagerOp,
    Frame,
    GuardCosts,
    Profile,
    Report,
    Segment,
    SegmentKind,
)
from dynascope.compiler.report.overview import is_by_design

#: names of the marks that `measure` puts around each call, each captured graph, and the final wait for the device
CALL, GRAPH, DRAIN = "dynascope call", "dynascope graph", "dynascope wait"
#: torch's names of events; REGION, BACKEND and ENGINE are prefixes of names
GUARD_CHECK = "TorchDynamo Cache Lookup"
REGION = "Torch-Compiled Region: "
PREGRAPH = "Pregraph bytecode"
WRAPPER = "AOTDispatcher Runtime Wrapper Prologue"
BACKEND = "## Call CompiledFxGraph "
#: the forward of a graph that AOTAutograd compiled with its backward, and that backward
FORWARD, BACKWARD = "CompiledFunction", "CompiledFunctionBackward"
#: autograd's engine; it runs in the calling thread on the CPU, and in a thread of its own for each accelerator
ENGINE = "autograd::engine::evaluate_function"

#: operations, but not what autograd's engine evaluates
_OPERATION = re.compile(r"(?!autograd)\w+::\w+")
#: runtime calls that block until the device is done; asynchronous ones (`cudaMemcpyAsync`) are followed by a separate wait
_BLOCKING = ("cudaMemcpy", "hipMemcpy", "hipMemcpyWithStream", "urEventWait", "urQueueFinish")
#: at most this many characters of a name are kept: kernels from C++ templates can have names of thousands of characters
_LONGEST = 200
#: category in the trace -> kind of event
_KINDS = {
    "cpu_op": "cpu", "user_annotation": "cpu", "cuda_runtime": "runtime", "cuda_driver": "runtime", "xpu_runtime": "runtime",
    "xpu_driver": "runtime", "privateuse1_runtime": "runtime", "privateuse1_driver": "runtime", "kernel": "kernel",
    "gpu_memcpy": "copy", "gpu_memset": "copy",
}  # fmt: skip


@dataclass
class Event:
    """One event; times are whole nanoseconds, so that sums are exact."""

    name: str
    #: "cpu" (an op or a mark), "runtime" (a call of the device's runtime), "kernel" or "copy" (on the device)
    kind: str
    start: int
    end: int
    thread: int | str | None = None
    device: int | None = None
    #: a number that a runtime call and the device work that it launched have in common
    correlation: int | None = None
    #: autograd's number that a differentiable op and its backward have in common
    sequence: int | None = None
    #: the events nested in this one, set by `trees`
    inside: list[Event] = field(default_factory=list)

    @property
    def duration(self) -> int:
        return self.end - self.start

    @property
    def region(self) -> str | None:
        """The compile id if this is a compiled region, else None."""
        return self.name.removeprefix(REGION).split(" ", 1)[0] if self.name.startswith(REGION) else None

    @property
    def is_wait(self) -> bool:
        """Whether the CPU only waits for the device here."""
        if self.name == DRAIN:
            return True
        return self.kind == "runtime" and ("Synchronize" in self.name or self.name in _BLOCKING)


def plain_events(trace: dict[str, Any]) -> list[Event]:
    """The events of an exported trace that show where time goes (`_KINDS`), sorted by start."""
    events = []
    for record in trace.get("traceEvents", ()):
        kind = _KINDS.get(str(record.get("cat", "")).lower())
        if record.get("ph") != "X" or kind is None:
            continue
        more, start = record.get("args") or {}, _nanoseconds(record["ts"])
        on_device = kind in ("kernel", "copy")
        events.append(Event(
            name=str(record["name"])[:_LONGEST], kind=kind, start=start, end=start + _nanoseconds(record.get("dur", 0)),
            thread=f"stream {more.get('stream', record.get('tid'))}" if on_device else record.get("tid"),  # XPU: a queue
            device=more.get("device") if on_device else None,
            correlation=more.get("correlation") if kind != "cpu" else None,
            sequence=more.get("Sequence number") if kind == "cpu" else None,
        ))  # fmt: skip
    return sorted(events, key=_order)


def _order(event: Event) -> tuple[int, int]:
    """Sort key: by start, and of two events with the same start the outer one first."""
    return event.start, -event.end


def _nanoseconds(microseconds: float | str) -> int:
    return round(float(microseconds) * 1000)


def trees(events: Iterable[Event]) -> list[Event]:
    """The outermost events of all CPU threads, copied, with the other events nested in them."""
    roots: list[Event] = []
    stacks: dict[Any, list[Event]] = defaultdict(list)
    for event in sorted(events, key=_order):
        if event.kind not in ("cpu", "runtime"):
            continue
        event, stack = replace(event, inside=[]), stacks[event.thread]
        while stack and stack[-1].end <= event.start:
            stack.pop()
        if stack:
            event.end = min(event.end, stack[-1].end)  # it may seem to end later: clocks are read one after the other
        (stack[-1].inside if stack else roots).append(event)
        stack.append(event)
    return roots


def adopt(root: Event, event: Event) -> None:
    """Insert an event of another thread below `root`, at the place where root's thread waited for it.

    The event is not inserted if root's thread was busy at that time.
    """
    host: Event | None = root
    while host is not None:
        meanwhile = [e for e in host.inside if e.start < event.end and event.start < e.end]
        if not meanwhile:
            host.inside = sorted([*host.inside, event], key=_order)
            return
        around = meanwhile[0]
        host = around if around.start <= event.start and event.end <= around.end else None


#: prefixes of the events of a graph, forward or backward: dynascope's mark, and Inductor's for the code that it generated
_GRAPH_OR_BACKEND = (GRAPH, BACKEND)


@dataclass
class Slice:
    """A part of a call on the calling thread; times are the trace's, in nanoseconds."""

    kind: SegmentKind
    start: int
    end: int
    frame: str | None = None
    graph: str | None = None
    break_: str | None = None
    #: number of the entry into a region or a backward, from the start of the call; 0: outside.  Slices of different entries are
    #: never merged
    entry: int = 0
    label: str = ""
    #: operations in a gap or a graph, without kernels of the backend: name -> [nanoseconds, count]
    ops: dict[str, list[int]] = field(default_factory=dict)
    #: number of starts and ends of events in the slice: recording each of them takes the profiler a moment
    edges: int = 0

    @property
    def duration(self) -> int:
        return self.end - self.start

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.kind, self.frame, self.graph, self.break_, self.entry, self.label)


@dataclass
class Call:
    """One call: its slices in order, and the work that it launched on devices."""

    start: int
    end: int
    slices: list[Slice]
    #: kernels and copies, each with the time of its launch (None: unknown)
    device: list[tuple[Event, int | None]] = field(default_factory=list)
    #: compile ids of regions that the report lacks
    unknown: set[str] = field(default_factory=set)

    @property
    def duration(self) -> int:
        return self.end - self.start

    @property
    def path(self) -> tuple[Any, ...]:
        """The keys of the slices other than waits: for equal ones, two calls ran the same code in the same order.

        A wait inside a slice cuts it into two.
        """
        return tuple(s.key for s in self.slices if s.kind != "wait")


def read_calls(events: list[Event], report: Report, compiled_meanwhile: Collection[str] = ()) -> list[Call]:
    """The marked calls in these events, cut into slices.

    `compiled_meanwhile`: ids of compiles that are not in the report because repeating the call needed them.
    """
    calls = []
    roots = trees(events)
    engines = [event for event in roots if event.name.startswith(ENGINE)]
    for root in roots:
        if root.name == CALL:
            for engine in engines:
                if root.start <= engine.start and engine.end <= root.end:
                    adopt(root, engine)
            cutter = _Cutter(report, compiled_meanwhile)
            calls.append(Call(root.start, root.end, cutter.cut(root), unknown=cutter.unknown))
    calls.sort(key=lambda c: c.start)
    launches: dict[int | None, int] = {e.correlation: e.start for e in events if e.kind == "runtime"}
    launches.pop(None, None)
    for event in events:
        if event.kind in ("kernel", "copy"):
            launched = launches.get(event.correlation)
            at = event.start if launched is None else launched
            call = next((c for c in calls if c.start <= at < c.end), None)
            if call is not None:
                call.device.append((event, launched))
    return calls


class _Cutter:
    """Cuts one call into slices."""

    def __init__(self, report: Report, compiled_meanwhile: Collection[str]) -> None:
        self.compiled_meanwhile = compiled_meanwhile
        self.frames = {f.compile_id: f for f in report.frames if f.compile_id is not None}
        # a compile id without its last number -> frame: gives the function, though not the graph, of a region whose compile the
        # report lacks
        self.numbers = {id.rpartition("/")[0]: f for id, f in self.frames.items()}
        self.unknown: set[str] = set()
        #: frame -> the break that ended it
        self.ended = {h.frame: b.id for b in report.breaks for h in b.hits if h.outcome == "resumed"}
        self.ended |= {g.frame: g.break_ for g in report.graphs if g.break_ is not None}
        #: frame of a resume function -> the break after which it continues
        self.resumed = {frame: b.id for b in report.breaks for h in b.hits for frame in h.resumes}
        self.outer = _skipped_root(report)
        self.order = {g.id: number for number, g in enumerate(report.graphs)}
        #: sequence number of a graph's forward -> (fields of the graph's slices, the break after which it was entered)
        self.forwards: dict[int, tuple[dict[str, Any], str | None]] = {}
        self.slices: list[Slice] = []
        self.entries = 0
        self.has_graph = False
        #: the event that follows the current one at the same depth
        self.following: Event | None = None

    def cut(self, call: Event) -> list[Slice]:
        if (skipped := self.outer) is None:
            self._inside(call, {"kind": "gap", "label": "eager code"}, {"kind": "unaccounted"})
        else:
            eager = {"kind": "gap", "label": f"{skipped.name}, skipped", "frame": skipped.id, "break_": skipped.stopped_by}
            self._inside(call, eager, eager)
        self._count_edges(call)
        return self.slices

    def _count_edges(self, call: Event) -> None:
        """Count the starts and ends of events in each slice.

        The profiler works before the start that it records and after the end that it records.  So where two slices meet, a
        start belongs to the earlier slice, and an end to the later one.
        """
        ends = [s.end for s in self.slices]
        last = len(ends) - 1
        todo = list(call.inside)
        while todo:
            span = todo.pop()
            todo.extend(span.inside)
            self.slices[min(last, bisect.bisect_left(ends, span.start))].edges += 1
            self.slices[min(last, bisect.bisect_right(ends, span.end))].edges += 1

    def _add(self, start: int, end: int, fields: dict[str, Any], op: str | None = None) -> None:
        """Append a slice, or extend the last one if it has the same key and ends at `start`."""
        if end <= start:
            return
        added = Slice(start=start, end=end, **fields)
        last = self.slices[-1] if self.slices else None
        if last is not None and last.key == added.key and last.end == start:
            last.end, added = end, last
        else:
            self.slices.append(added)
        if op is not None:
            added.ops.setdefault(op, [0, 0])[0] += end - start

    def _stretches(self, span: Event) -> Iterator[tuple[int, int, Event | None]]:
        """(start, end, event) of the events inside this one, and of the stretches around them, which have no event."""
        at = span.start
        for child, self.following in zip_longest(span.inside, span.inside[1:]):
            yield at, child.start, None
            yield child.start, child.end, child
            at = child.end
        yield at, span.end, None

    # -- outside all compiled regions ------------------------------------------------------------------------

    def _inside(self, span: Event, eager: dict[str, Any], own: dict[str, Any], op: str | None = None) -> None:
        """Add the slices of an event: those of the events inside it, and `own` around them."""
        for start, end, inner in self._stretches(span):
            if inner is None:
                self._add(start, end, own, op)
            else:
                self._event(inner, eager, op)

    def _event(self, span: Event, eager: dict[str, Any], op: str | None = None) -> None:
        """Add the slices of one event in eager code: a check of guards, a compiled region, a wait, a backward, or an op."""
        cause = {"break_": eager.get("break_")}
        if span.name == GUARD_CHECK:
            found = self.following.region if self.following is not None else None  # a region follows its guards
            frame = self._frame(found) if found is not None else None
            fields = {"kind": "lookup", "entry": eager.get("entry", 0), "frame": frame.id if frame else None}
            self._add(span.start, span.end, fields | cause)
        elif span.region is not None:
            self._region(span, span.region, cause["break_"])
        elif span.is_wait:
            self._add(span.start, span.end, {"kind": "wait", "label": "" if span.name == DRAIN else span.name, **cause})
        elif span.name == BACKWARD or span.name.startswith(_GRAPH_OR_BACKEND):
            self._backward(span, cause["break_"])
        else:
            outermost = op or (span.name if span.kind == "cpu" else None)
            self._inside(span, eager, eager, outermost)
            if op is None and outermost is not None and self.slices and outermost in self.slices[-1].ops:
                self.slices[-1].ops[outermost][1] += 1

    # -- a compiled region -----------------------------------------------------------------------------------

    def _region(self, span: Event, region: str, cause: str | None) -> None:
        """Add the slices of a compiled region; `cause`: the break after which the region was entered."""
        frame = self._frame(region)
        if region not in self.frames:
            self.unknown.add(region)
        self.entries += 1
        entry: dict[str, Any] = {"frame": frame.id if frame else None, "entry": self.entries}
        ended = self._ended(span)
        # True until the region's graph has run; a region without a graph is past that point from the start
        entering = any(s.name.startswith(_GRAPH_OR_BACKEND) for s in span.inside)
        after = {"kind": "gap", **entry, "break_": ended or cause}
        # one graph remains even without any break, so entering the first graph has no cause
        before = {"kind": "prologue", **entry, "break_": cause if self.has_graph or not entering else None}
        self.has_graph |= entering
        # if the region calls compiled code, a break ended its graph, even if the report does not know which one
        broken = ended is not None or any(s.name == GUARD_CHECK or s.region is not None for s in span.inside)
        at_the_end = after if broken else before | {"label": "return"}
        for start, end, inner in self._stretches(span):
            if inner is None:
                self._add(start, end, before if entering else at_the_end)
            elif entering and inner.name.startswith(_GRAPH_OR_BACKEND):
                self._graph(inner, frame, region, before)
                entering = False
            elif entering or inner.name in (PREGRAPH, WRAPPER):
                self._add(start, end, before)
            else:
                self._event(inner, after)

    def _frame(self, region: str) -> Frame | None:
        return self.frames.get(region) or self.numbers.get(region.rpartition("/")[0])

    def _ended(self, span: Event) -> str | None:
        """The break that ended a region; if the report lacks the region, the break of the resume function that it calls."""
        frame = self.frames.get(span.region or "")
        if frame is not None:
            return self.ended.get(frame.id)
        called = [self._frame(inner.region) for inner in span.inside if inner.region is not None]
        return next((self.resumed[f.id] for f in called if f is not None and f.id in self.resumed), None)

    def _graph(self, span: Event, frame: Frame | None, region: str, before: dict[str, Any]) -> None:
        """Add the slices of a captured graph; `before`: the fields of the prologue's slices."""
        graph: dict[str, Any] = {"kind": "graph", "frame": before["frame"], "entry": before["entry"]}
        if region in self.frames:
            graph["graph"] = frame.graph if frame else None
        else:
            meanwhile = region in self.compiled_meanwhile
            graph["label"] = f"{'compiled while measuring' if meanwhile else 'compiled code the report lacks'} ({region})"
        for forward in _outermost(span, lambda s: s.name.startswith(FORWARD)):
            if forward.name == FORWARD and forward.sequence is not None:
                self.forwards[forward.sequence] = (graph, before["break_"])
        self._backend(span, graph, before)

    def _backward(self, span: Event, cause: str | None) -> None:
        """Add the slices of a backward; its graph and cause are those of the forward with the same sequence number."""
        forward, because = self.forwards.get(span.sequence, ({}, cause)) if span.sequence is not None else ({}, cause)
        graph, label = forward.get("graph"), forward.get("label")
        if graph in self.order:
            label = f"graph {self.order[graph]}"
        self.entries += 1
        entry = {"frame": forward.get("frame"), "entry": self.entries}
        label = f"backward of {label}" if label else "compiled backward"
        backward = {"kind": "graph", **entry, "graph": graph, "label": label}
        self._backend(span, backward, {"kind": "prologue", **entry, "break_": because})

    def _backend(self, span: Event, graph: dict[str, Any], prologue: dict[str, Any]) -> None:
        """Add the backend's code (all of `span` if the backend does not mark it) as graph and waits, the rest as prologue."""
        backend = _outermost(span, lambda s: s.name.startswith(BACKEND)) or [span]
        start, end = backend[0].start, backend[-1].end
        self._add(span.start, start, prologue)
        waits = [wait for s in backend for wait in _outermost(s, lambda s: s.is_wait)]
        for at, until, wait in self._stretches(Event("", "cpu", start, end, inside=waits)):
            self._add(at, until, graph if wait is None else graph | {"kind": "wait", "label": wait.name})
        if self.slices and self.slices[-1].kind == "graph":
            for op in _outermost(span, lambda s: s.kind == "cpu" and bool(_OPERATION.fullmatch(s.name))):
                spent = self.slices[-1].ops.setdefault(op.name, [0, 0])
                spent[0] += op.end - op.start
                spent[1] += 1
        self._add(end, span.end, prologue)


def _skipped_root(report: Report) -> Frame | None:
    """The frame that the call enters, if Dynamo skipped it: the frame's code then runs eagerly, outside all regions."""
    roots = [f for f in report.frames if f.parent is None and f.continues is None and f.status not in ("ignored", "empty")]
    return roots[0] if roots and all(f.status == "skipped" for f in roots) else None


def _outermost(span: Event, matches: Callable[[Event], bool]) -> list[Event]:
    """The outermost events that match: the event itself, or events inside it."""
    return [span] if matches(span) else [found for inner in span.inside for found in _outermost(inner, matches)]


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
    median = statistics.median_low(totals)  # that of a call, as the parts of one call are shown beside it
    drawn = min(chosen, key=lambda c: abs(c.duration * _SECOND - median))
    result = Profile(calls=len(calls), median_seconds=median, spread=quartiles(totals), profiled_seconds=median)
    result.segments = [*_segments(drawn, report), *_device_segments(drawn)]
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
            "function twice"
        )
    return result


def graphs_in(events: Iterable[Event], report: Report) -> list[str | None]:
    """Ids of the graphs that the calls in these events run, each once, in order; None for those that the report lacks."""
    slices = [s for call in read_calls(list(events), report) for s in call.slices]
    return list(dict.fromkeys(s.graph for s in slices if s.kind == "graph"))


def _segments(drawn: Call, report: Report) -> list[Segment]:
    return [
        Segment(
            kind=s.kind, lane="CPU", start=(s.start - drawn.start) * _SECOND, duration=s.duration * _SECOND,
            label=s.label or _label(s, report), frame=s.frame, graph=s.graph, break_=s.break_, ops=_ops(s),
            op_count=sum(count for _, count in s.ops.values()) if s.kind == "gap" else None,
        )
        for s in drawn.slices
    ]  # fmt: skip


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
        if is_by_design(b):
            costs[-1].ops_seconds = 0.0
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
    ops, totals = [], []
    for call, of_call in zip(calls, slices, strict=True):
        total = still_runs = 0.0
        for s in of_call:
            length = unprofiled.length(s)
            if s.kind in ("lookup", "prologue"):
                total += length
            elif s.kind == "gap":
                in_ops = sum(t for t, _ in s.ops.values())
                gone = sum(t for name, (t, _) in s.ops.items() if name in _TO_PYTHON)
                total += max(0, length - in_ops) + gone
                still_runs += in_ops - gone
        total = min(total, unprofiled.call)
        totals.append(min(total, _idle(call, of_call)) if call.device else total)
        ops.append(still_runs)
    return BreakCost(
        break_=break_, seconds=_median(totals), share=statistics.median(totals) / unprofiled.call if unprofiled.call else None,
        spread=quartiles([t * 1e-9 for t in totals]),
        method="device idle" if any(call.device for call in calls) else "gap", calls=len(calls),
        ops_seconds=_median(ops), times=statistics.median(map(_times, slices)),
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
    """Medians over the calls; None if most of them check no guards: torch does not mark that, or no compiled code ran."""
    lookups, prologue = (
        _median([sum(s.duration for s in call.slices if s.kind == kind) for call in calls]) for kind in ("lookup", "prologue")
    )
    if not lookups:
        return None
    whole = _median([call.duration for call in calls])
    return GuardCosts(lookups=lookups, prologue=prologue, share=(lookups + prologue) / whole)
