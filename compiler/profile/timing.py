"""Timing calls fairly, and watching the memory that they take.

Nothing is left behind: the garbage collector, held off as `timeit` does it, is on again, and the profiler, which tells the
memory, is gone.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from dynascope.compiler.report import plural

#: torch's number for the processor's memory in the profiler's events; every other device has one above it
_PROCESSOR = 0


def waiter(device: str) -> Callable[[], None]:
    """What waits until the device has done all that it was given; `nothing` for the processor."""
    import torch

    kind = torch.device(device).type
    module = getattr(torch, kind, None) if kind != "cpu" else None
    return getattr(module, "synchronize", nothing)


def nothing() -> None:
    """There is no device to wait for."""


def device_name(device: str) -> str:
    """`CPU, 8 threads`, or what a device calls itself."""
    import torch

    kind = torch.device(device).type
    if kind == "cpu":
        return f"CPU, {plural(torch.get_num_threads(), 'thread')}"
    name = getattr(getattr(torch, kind, None), "get_device_name", None)
    return str(name(device)) if name is not None else device


def timed(call: Callable[[], Any], wait: Callable[[], None]) -> float:
    """Seconds of one call; what it returns is let go of behind the clock."""
    wait()
    start = time.perf_counter()
    kept = call()
    wait()
    taken = time.perf_counter() - start
    del kept
    return taken


def middle_half(values: list[float]) -> list[float]:
    """The first and the third quartile."""
    ordered = sorted(values)
    return [ordered[(len(ordered) - 1) // 4], ordered[-1 - (len(ordered) - 1) // 4]] if ordered else []


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Python's garbage collector, held off: its pauses would be charged to whatever runs just then."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextlib.contextmanager
def profiled(kinds: Iterable[str] = (), memory: bool = False) -> Iterator[dict[str, Any]]:
    """Everything in the block under torch.profiler; the dict holds its trace when the block has ended.

    `kinds`: of the devices to watch beside the processor ("cuda", "xpu"); `memory`: with what the allocators do.
    """
    import torch
    from torch.profiler import ProfilerActivity

    activities = [ProfilerActivity.CPU, *(getattr(ProfilerActivity, kind.upper()) for kind in kinds)]
    trace: dict[str, Any] = {}
    profiler = torch.profiler.profile(activities=activities, profile_memory=memory)
    with silent():
        profiler.start()
    try:
        yield trace
    finally:
        with silent():
            profiler.stop()
    with tempfile.TemporaryDirectory(prefix="dynascope") as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        trace.update(json.loads(file.read_text(encoding="utf-8")))


def peak_bytes(call: Callable[[], Any], device: str) -> int | None:
    """What torch's allocators for this device held at most during a call, above what they held before it.

    Read from the memory events of torch.profiler, which change no statistics of the user's.  What a library takes beside
    torch's allocators (the scratch space of a matrix product) is not in it.  None where no event came.
    """
    import torch

    kind = torch.device(device).type
    with profiled([kind] if kind in ("cuda", "xpu") else [], memory=True) as trace:
        kept = call()
    del kept
    return highest(trace.get("traceEvents", []), on_processor=kind == "cpu")


def highest(events: list[dict[str, Any]], on_processor: bool) -> int | None:
    """The highest sum of what the memory events of a trace took and gave back."""
    told = [e for e in events if e.get("name") == "[memory]" and "Bytes" in e.get("args", {})]
    mine = [e for e in told if (e["args"].get("Device Type") == _PROCESSOR) == on_processor]
    held = most = 0
    for event in sorted(mine, key=lambda e: (float(e["ts"]), e["args"].get("Ev Idx", 0))):
        held += int(event["args"]["Bytes"])
        most = max(most, held)
    return most if mine else None


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """The profiler's library writes on the error stream below Python's."""
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # there is none
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
