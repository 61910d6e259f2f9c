"""Reads a profiler's trace into plain events, and nests them.

`plain_events()` reads the Chrome trace that `torch.profiler` exports: a public format, the same for every torch and device.
`trees()` nests the events of each thread as they nest in time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

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
