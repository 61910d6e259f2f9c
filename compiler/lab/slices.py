"""Cuts each profiled call into slices, and says what each slice is and which break causes it.

The slices are computed from the profiler's events, in the same way for a CPU and a GPU; the report gives their frames, graphs
and breaks.  The slices cover the whole call.  Each slice is a compiled graph, a check of guards ("lookup"), a compiled region's
own code around its graph or before it returns ("prologue"), eager code, including the region's own after a break ("gap"), or
waiting for the device; the rest is "unaccounted".

A slice that is not a graph can have a cause: the break without which it would not be there.  In a compiled region, the cause
of what runs before the region's graph is the break after which the region was entered; the cause of what runs after the graph
is the break that ended the graph.  So a region that continues after a break, and a function that is called after one, are
charged to that break; entering the outermost region and the call's first graph is charged to no break.  If what follows a
break runs eagerly because of a later one, all of it is charged to the later one.  A backward has the cause of the forward with
the same autograd sequence number.

`plain_events()` reads the Chrome trace that `torch.profiler` exports: a public format, the same for every torch and device.
`trees()` nests the events of each thread as they nest in time.

Makes the Profile from a profiler's events: segments, shares, and what breaks and guards cost.

The segments are the slices of one call, the one nearest to the median, and the work of the devices in that call.

The cost of a break is the time that would be saved without the break *and* its cause (the code that cannot be compiled): the
guard checks, prologues and eager Python between the graphs before and after the break, and a copy to Python (`.item()`).  The
tensor ops in the gap would still have to run, inside a graph; how fast is unknown, and so is what fusing the two graphs would
gain.  So the cost is a lower bound; the time of these ops is reported beside it.  If the call used a device, the cost is at
most the time in which the devices were idle.  The cost of a break is unknown if a frame that is entered there runs eagerly, for
whatever reason: because of the break itself or a later one, a backend that failed, or the recompile limit.
"""

from __future__ import annotations

import re
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from dynascope.compiler.report import BreakCost, EagerOp, Frame, Profile, Report, Segment, SegmentKind
from dynascope.compiler.report.measurements import MEANWHILE
from dynascope.compiler.report.overview import eager_in_torch, is_by_design

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


class _Timed:
    start: int
    end: int

    @property
    def duration(self) -> int:
        return self.end - self.start


@dataclass
class Event(_Timed):
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
    def region(self) -> str | None:
        """The compile id if this is a compiled region, else None."""
        return self.name.removeprefix(REGION).split(" ", 1)[0] if self.name.startswith(REGION) else None

    @property
    def is_graph(self) -> bool:
        """Whether this is a graph, forward or backward: dynascope's mark, or Inductor's for the code that it generated."""
        return self.name.startswith((GRAPH, BACKEND))

    @property
    def is_wait(self) -> bool:
        """Whether the CPU only waits for the device here."""
        return self.name == DRAIN or (self.kind == "runtime" and ("Synchronize" in self.name or self.name in _BLOCKING))


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


def adopt(host: Event, event: Event) -> None:
    """Insert an event of another thread below `host`, at the place where the host's thread waited for it.

    The event is not inserted if the host's thread was busy at that time.
    """
    while host.start <= event.start and event.end <= host.end:
        meanwhile = [e for e in host.inside if e.start < event.end and event.start < e.end]
        if not meanwhile:
            host.inside = sorted([*host.inside, event], key=_order)
            return
        host = meanwhile[0]


def _outermost(span: Event, matches: Callable[[Event], bool]) -> list[Event]:
    """The outermost events that match: the event itself, or events inside it."""
    return [span] if matches(span) else [found for inner in span.inside for found in _outermost(inner, matches)]


@dataclass(unsafe_hash=True)
class Slice(_Timed):
    """A part of a call on the calling thread; times are the trace's, in nanoseconds.

    Two are equal if the same code ran in them.
    """

    kind: SegmentKind
    label: str
    frame: str | None = None
    graph: str | None = None
    break_: str | None = None
    #: number of the entry into a region or a backward, from the start of the call; 0: outside.  Slices of different entries are
    #: never merged
    entry: int = 0
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)
    #: operations in a gap or a graph, without kernels of the backend: name -> [nanoseconds, count]
    ops: dict[str, list[int]] = field(default_factory=dict, compare=False)
    #: number of starts and ends of events in the slice: recording each of them takes the profiler a moment
    edges: int = field(default=0, compare=False)

    def add_op(self, name: str, spent: int, count: int) -> None:
        before = self.ops.get(name, [0, 0])
        self.ops[name] = [before[0] + spent, before[1] + count]


@dataclass
class Call(_Timed):
    """One call: its slices in order, and the work that it launched on devices."""

    start: int
    end: int
    slices: list[Slice]
    #: kernels and copies, each with the time of its launch (None: unknown)
    device: list[tuple[Event, int | None]] = field(default_factory=list)

    @property
    def path(self) -> tuple[Slice, ...]:
        """The slices other than waits: for equal ones, two calls ran the same code in the same order.

        A wait inside a slice cuts it into two.
        """
        return tuple(s for s in self.slices if s.kind != "wait")


def read_calls(events: list[Event], report: Report, compiled_meanwhile: Collection[str] = (), function: str = "") -> list[Call]:
    """The marked calls in these events, cut into slices.

    `compiled_meanwhile`: ids of compiles that are not in the report because repeating the call needed them.
    `function`: name of the function that was called; "": the report has no other one.
    """
    roots = trees(events)
    calls = []
    for root in (root for root in roots if root.name == CALL):
        for event in roots:
            if event.name.startswith(ENGINE):
                adopt(root, event)
        calls.append(Call(root.start, root.end, _Cutter(report, compiled_meanwhile, function).cut(root)))
    calls.sort(key=lambda c: c.start)
    launches = {e.correlation: e.start for e in events if e.kind == "runtime" and e.correlation is not None}
    for event in events:
        if event.kind in ("kernel", "copy"):
            launched = launches.get(event.correlation) if event.correlation is not None else None
            at = event.start if launched is None else launched
            for call in calls:
                if call.start <= at < call.end:
                    call.device.append((event, launched))
    return calls


class _Cutter:
    """Cuts one call into slices.

    What surrounds an event is given to the methods as slices without times, from which `_add` makes those with times.
    """

    def __init__(self, report: Report, compiled_meanwhile: Collection[str], function: str) -> None:
        self.frames = {f.compile_id: f for f in report.frames if f.compile_id is not None}
        # a compile id without its last number -> frame: gives the function, though not the graph, of a region whose compile the
        # report lacks
        self.numbers = {id.rpartition("/")[0]: f for id, f in self.frames.items()}
        #: frame -> the break that ended it
        self.ended = {h.frame: b.id for b in report.breaks for h in b.hits if h.outcome == "resumed"}
        self.ended |= {g.frame: g.break_ for g in report.graphs if g.break_ is not None}
        #: frame of a resume function -> the break after which it continues
        self.resumed = {frame: b.id for b in report.breaks for h in b.hits for frame in h.resumes}
        skipped = [f for f in report.frames if f.status == "skipped"]
        #: frame -> the rest of it that runs eagerly because of a later break; where it starts leaves no mark in the trace
        self.rests = {f.continues: f for f in skipped if f.kind == "resume" and f.stopped_by is not None}
        #: break -> its line of code
        self.codes = {b.id: " ".join(b.source.split())[:60] or f"line {b.line}" for b in report.breaks}
        # the frame that the call enters, if Dynamo skipped it: the frame's code then runs eagerly, outside all regions
        roots = [f for f in report.frames if f.parent is None and f.continues is None and f.status not in ("ignored", "empty")]
        roots = [f for f in roots if f.name == (function or f.name)]
        self.skipped = roots[0] if roots and all(f.status == "skipped" for f in roots) else None
        labels: dict[str | None, str] = {g.id: f"graph {number}" for number, g in enumerate(report.graphs)}
        #: region -> id and label of its graph
        self.graphs = {region: (None, f"{MEANWHILE} ({region})") for region in compiled_meanwhile} | {
            region: (f.graph, labels.get(f.graph, "compiled code")) for region, f in self.frames.items()
        }
        #: sequence number of a graph's forward -> the graph's slice, the break after which it was entered
        self.forwards: dict[int | None, tuple[Slice, str | None]] = {}
        self.slices: list[Slice] = []
        self.entries = 0
        self.has_graph = False

    def cut(self, call: Event) -> list[Slice]:
        eager, own = Slice("gap", "eager code"), Slice("unaccounted", "unaccounted")
        if (skipped := self.skipped) is not None:
            eager = own = Slice("gap", f"{skipped.name}, skipped", frame=skipped.id, break_=skipped.stopped_by)
        self._inside(call.start, call.end, call.inside, eager, own)
        self._count_edges(call.inside)
        return self.slices

    def _count_edges(self, events: list[Event]) -> None:
        """Count the starts and ends of events in each slice.

        The profiler works before the start that it records and after the end that it records.  So where two slices meet, a
        start belongs to the earlier slice, and an end to the later one.
        """
        inner_ends = [s.end for s in self.slices[:-1]]
        todo = list(events)
        while todo:
            span = todo.pop()
            todo.extend(span.inside)
            self.slices[bisect_left(inner_ends, span.start)].edges += 1
            self.slices[bisect_right(inner_ends, span.end)].edges += 1

    def _add(self, start: int, end: int, like: Slice, op: str | None = None) -> None:
        """Append a slice like this one, or extend the last one if it is equal and ends at `start`."""
        if end <= start:
            return
        if self.slices and self.slices[-1] == like and self.slices[-1].end == start:
            self.slices[-1].end = end
        else:
            self.slices.append(replace(like, start=start, end=end, ops={}))
        if op is not None:
            self.slices[-1].add_op(op, end - start, 0)

    def _inside(
        self, start: int, end: int, events: list[Event], eager: Slice, own: Slice, op: str | None = None,
        prologue: Slice | None = None,
    ) -> None:  # fmt: skip
        """Add the slices of these events, which run in code like `eager`, and around them slices like `own`, up to `end`.

        `op`: the outermost op that the events are in; `prologue`: of the region that they are in.
        """
        for event, following in zip_longest(events, events[1:]):
            self._add(start, event.start, own, op)
            if prologue is not None and event.name in (PREGRAPH, WRAPPER):
                self._add(event.start, event.end, prologue)
            else:
                self._event(event, following, eager, op)
            start = event.end
        self._add(start, end, own, op)

    def _event(self, span: Event, following: Event | None, eager: Slice, op: str | None) -> None:
        """Add the slices of one event in eager code: a check of guards, a compiled region, a wait, a backward, or an op."""
        if span.name == GUARD_CHECK:
            frame = self._frame(following)  # a region follows its guards
            self._add(span.start, span.end, replace(eager, kind="lookup", label="guards", frame=frame.id if frame else None))
        elif span.region is not None:
            self._region(span, eager.break_)
        elif span.is_wait:
            label = "waiting for the device" if span.name == DRAIN else span.name
            self._add(span.start, span.end, replace(eager, kind="wait", label=label))
        elif span.name == BACKWARD or span.is_graph:
            self._backward(span, eager.break_)
        else:
            outermost = op or (span.name if span.kind == "cpu" else None)
            self._inside(span.start, span.end, span.inside, eager, eager, outermost)
            if op is None and outermost is not None and self.slices and outermost in self.slices[-1].ops:
                self.slices[-1].add_op(outermost, 0, 1)

    def _region(self, span: Event, cause: str | None) -> None:
        """Add the slices of a compiled region; `cause`: the break after which the region was entered."""
        frame, ended, start = self._frame(span), self._ended(span), span.start
        self.entries += 1
        first = next((event for event in span.inside if event.is_graph), None)
        # one graph remains even without any break, so entering the first graph has no cause
        entered = cause if self.has_graph or first is None else None
        before = Slice("prologue", "prologue", frame.id if frame else None, break_=entered, entry=self.entries)
        if first is not None:
            self.has_graph = True
            self._add(start, first.start, before)
            unknown = None, f"compiled code the report lacks ({span.region})"
            id, label = self.graphs.get(span.region or "", unknown)
            graph = replace(before, kind="graph", graph=id, label=label, break_=None)
            for forward in _outermost(first, lambda s: s.name == FORWARD and s.sequence is not None):
                self.forwards[forward.sequence] = (graph, entered)
            self._backend(first, graph, before)
            start = first.end
        broken, rest = ended or cause, self.rests.get(before.frame)
        label = f"after the break at {self.codes[broken]}" if broken in self.codes else "eager code"
        after = own = replace(before, kind="gap", label=label, break_=broken)
        if rest is not None:
            after = own = replace(after, label=f"{rest.name}, skipped", frame=rest.id, break_=rest.stopped_by)
        # if the region calls compiled code, a break ended its graph, even if the report does not know which one
        if ended is None and not any(event.name == GUARD_CHECK or event.region is not None for event in span.inside):
            own = replace(before, label="return")
        self._inside(start, span.end, [event for event in span.inside if event.start >= start], after, own, None, before)

    def _frame(self, span: Event | None) -> Frame | None:
        """The frame of a region; None for another event."""
        region = (span.region if span is not None else None) or ""
        return self.frames.get(region) or self.numbers.get(region.rpartition("/")[0])

    def _ended(self, span: Event) -> str | None:
        """The break that ended a region; if the report lacks the region, the break of the resume function that it calls."""
        frame = self.frames.get(span.region or "")
        if frame is not None:
            return self.ended.get(frame.id)
        return next((self.resumed[f.id] for f in map(self._frame, span.inside) if f and f.id in self.resumed), None)

    def _backward(self, span: Event, cause: str | None) -> None:
        """Add the slices of a backward; its graph and cause are those of the forward with the same sequence number."""
        self.entries += 1
        forward, cause = self.forwards.get(span.sequence, (None, cause))
        graph = Slice("graph", "compiled backward", entry=self.entries)
        if forward is not None:
            graph = replace(forward, label=f"backward of {forward.label}", entry=self.entries)
        self._backend(span, graph, replace(graph, kind="prologue", label="prologue", graph=None, break_=cause))

    def _backend(self, span: Event, graph: Slice, prologue: Slice) -> None:
        """Add the backend's code (all of `span` if the backend does not mark it) as graph and waits, the rest as prologue."""
        backend = _outermost(span, lambda s: s.name.startswith(BACKEND)) or [span]
        start, end = backend[0].start, backend[-1].end
        self._add(span.start, start, prologue)
        self._inside(start, end, [w for s in backend for w in _outermost(s, lambda s: s.is_wait)], graph, graph)
        if self.slices and self.slices[-1].kind == "graph":
            for op in _outermost(span, lambda s: s.kind == "cpu" and bool(_OPERATION.fullmatch(s.name))):
                self.slices[-1].add_op(op.name, op.duration, 1)
        self._add(end, span.end, prologue)


_SECOND = 1e-9
#: kind of slices -> name in a Profile's shares
_SHARES = {
    "graph": "graphs", "gap": "gaps", "lookup": "lookups", "prologue": "prologue", "wait": "waiting",
    "unaccounted": "unaccounted",
}  # fmt: skip


def profile_of(
    events: list[Event], report: Report, overhead: float = 0.0, compiled_meanwhile: Collection[str] = (), function: str = ""
) -> Profile:
    """The Profile of the calls in these events; compile ids are those of `report`.

    Its times are those under the profiler; the caller replaces `median_seconds` and `spread`.
    `overhead`: seconds by which the profiler makes a call longer; subtracted from what breaks cost, and from nothing else.
    `compiled_meanwhile` and `function`: as for `read_calls`.  Raises ValueError if no call is marked in the events.
    """
    calls = read_calls(events, report, compiled_meanwhile, function)
    if not calls:
        raise ValueError("no call in the profiler's trace")
    path, same = Counter(c.path for c in calls).most_common(1)[0]
    chosen = [c for c in calls if c.path == path]
    totals = [c.duration * _SECOND for c in chosen]
    median = statistics.median_low(totals)  # that of a call, as the parts of one call are shown beside it
    drawn = min(chosen, key=lambda c: abs(c.duration * _SECOND - median))
    result = Profile(calls=len(calls), median_seconds=median, spread=quartiles(totals), profiled_seconds=median)
    result.segments = [*_segments(drawn), *_device_segments(drawn)]
    result.lanes = list(dict.fromkeys(s.lane for s in result.segments))
    spent = {kind: _median(sum(s.duration for s in call.slices if s.kind == kind) for call in chosen) for kind in _SHARES}
    whole = sum(spent.values())  # of medians: the shares add up to 1
    result.shares = {name: spent[kind] / whole if whole else 0.0 for kind, name in _SHARES.items()}
    busy = [_busy(call) / call.duration for call in chosen if call.device and call.duration]
    if busy:  # it overlaps with the others
        result.shares["device busy"] = statistics.median(busy)
    result.breaks = break_costs(chosen, report, overhead)
    result.guard_seconds = spent["lookup"] or None
    if same < len(calls):
        result.notes.append(f"{same} of {len(calls)} calls went the same way through the compiled code; the figures are theirs")
    known = {*compiled_meanwhile, *(f.compile_id for f in report.frames)}
    strange = [e for e in events if e.region is not None and e.region not in known]
    unknown = sorted({str(e.region) for e in strange if any(c.start <= e.start < c.end for c in chosen)})
    if unknown:
        result.notes.append(
            f"the profiled calls ran compiled code that the report lacks ({', '.join(unknown[:5])}): compiled before it, or "
            "when the call was repeated; its time belongs to none of the report's graphs"
        )
    return result


def graphs_in(events: list[Event], report: Report) -> list[str | None]:
    """Ids of the graphs that the calls in these events run, each once, in order; None for those that the report lacks."""
    slices = [s for call in read_calls(events, report) for s in call.slices]
    return list(dict.fromkeys(s.graph for s in slices if s.kind == "graph"))


def _segments(drawn: Call) -> Iterator[Segment]:
    for s in drawn.slices:
        ops = sorted(s.ops.items(), key=lambda item: -item[1][0])
        yield Segment(
            kind=s.kind, lane="CPU", start=(s.start - drawn.start) * _SECOND, duration=s.duration * _SECOND, label=s.label,
            frame=s.frame, graph=s.graph, break_=s.break_,
            ops=[EagerOp(name=name, seconds=time * _SECOND, count=count) for name, (time, count) in ops[:20]],
            op_count=sum(count for _, count in s.ops.values()) if s.kind == "gap" else None,
        )  # fmt: skip


def _device_segments(drawn: Call) -> Iterator[Segment]:
    lanes = [(f"GPU {event.device} {event.thread}", event, launched) for event, launched in drawn.device]
    for lane, event, launched in sorted(lanes, key=lambda item: (item[0], item[1].start)):
        owners = [s for s in drawn.slices if launched is not None and s.start <= launched < s.end]
        owner = owners[0] if owners else Slice("unaccounted", "")
        yield Segment(
            kind="kernel" if event.kind == "kernel" else "copy", lane=lane, start=(event.start - drawn.start) * _SECOND,
            duration=event.duration * _SECOND, label=event.name, frame=owner.frame, graph=owner.graph,
            break_=owner.break_ if owner.kind == "gap" else None,
        )  # fmt: skip


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
    """The cost of each break; the most expensive first, unknown costs last.

    `overhead`: seconds by which the profiler makes each call longer; they are subtracted, so that the rest adds up to the call
    without a profiler.
    """
    # each start or end of an event takes `edge` nanoseconds away, the rest of the overhead is a factor
    duration = statistics.median(call.duration for call in calls)
    edges = statistics.median(sum(s.edges for s in call.slices) for call in calls)
    whole = duration - min(max(0.0, overhead) / _SECOND, duration)
    edge = min(_MOST_EDGE, (duration - whole) / edges) if edges else 0.0
    left = duration - edge * edges
    scale = whole / left if left else 0.0

    def cost_in(call: Call, caused: list[Slice]) -> tuple[float, int]:
        """Nanoseconds of one call that would be saved without a break, and those of ops that would still have to run."""
        total, still_runs = 0.0, 0
        for s in caused:
            if s.kind != "wait":
                in_ops = sum(time for time, _ in s.ops.values())
                gone = sum(time for name, (time, _) in s.ops.items() if name in _TO_PYTHON)
                total += max(0.0, max(0.0, s.duration - s.edges * edge) * scale - in_ops) + gone
                still_runs += in_ops - gone
        return min(total, whole, _idle(call, caused) if call.device else whole), still_runs

    # the breaks after which skipped frames continue, and the calls of such frames: nothing marks their work in a break's gap
    eager = {at for f in report.frames if f.status == "skipped" for at in (f.break_, (f.parent, f.called_from))}
    costs = []
    for b in report.breaks:
        caused = [[s for s in call.slices if s.break_ == b.id] for call in calls]
        gaps = [[s for s in of_call if s.kind == "gap"] for of_call in caused]
        is_eager = b.outcome == "skipped" or not eager.isdisjoint([b.id, *((hit.frame, hit.line) for hit in b.hits)])
        if not any(caused) or eager_in_torch(b, report) is not None:
            # code that runs eagerly as a whole leaves no trace of its own, and what comes before it none of its end
            cost = BreakCost(break_=b.id, seconds=None, method="unknown")
        elif is_eager or "torch.compiler.disable()" in b.type:  # that work is no cost of the break
            cost = BreakCost(break_=b.id, seconds=None, method="eager frame")
            cost.eager_seconds = _median(sum(s.duration for s in of_call) for of_call in gaps)
        else:
            totals, ops = zip(*map(cost_in, calls, caused), strict=True)
            cost = BreakCost(break_=b.id, seconds=_median(totals))
            cost.share = statistics.median(totals) / whole if whole else None
            cost.spread = quartiles([total * _SECOND for total in totals])
            cost.method = "device idle" if any(call.device for call in calls) else "gap"
            cost.ops_seconds = 0.0 if is_by_design(b, report.breaks) else _median(ops)
            cost.times = statistics.median(map(_times, gaps))
        costs.append(cost)
    return sorted(costs, key=lambda c: (c.seconds is None, -(c.seconds or 0), -(c.eager_seconds or 0)))


def _times(gaps: list[Slice]) -> int:
    """How often the call ran into the break: entries of the frame that was entered most often in the break's gaps."""
    return max(Counter(frame for frame, _ in {(s.frame, s.entry) for s in gaps}).values(), default=0)


def _idle(call: Call, slices: list[Slice]) -> int:
    """Nanoseconds in which the devices were idle because of these slices; adjacent slices count as one."""
    total = 0
    launched = [(d.start if launch is None else launch, d) for d, launch in call.device]
    bounds = sorted({s.start for s in slices} ^ {s.end for s in slices})  # where two meet is none
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        free = max([start, *(d.end for at, d in launched if at < start)])
        until = min((d.start for at, d in launched if at >= end), default=end)
        total += max(0, until - free - sum(max(0, d.end - max(d.start, free)) for at, d in launched if start <= at < end))
    return total


def _median(nanoseconds: Iterable[float]) -> float:
    return statistics.median(nanoseconds) * _SECOND
