"""Times calls, and measures the memory that they take.

All times of a call are taken in one way: those of warm calls, one after the other, as in a loop.  Python's garbage collector is
disabled meanwhile (`no_collection`), as in `timeit`.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from dynascope.compiler.lab.replay.replay import Prepare
from dynascope.compiler.report import plural

#: number of turns in which calls of several kinds alternate, because the load of the machine changes
TURNS = 5
#: at most this many calls warm up each kind of call in a turn: the first calls after those of another kind, after state was
#: restored, or after the profiler has started, find the CPU's caches cold
WARM_UP = 30
#: at most this many seconds of warming up, unless one call takes longer; filling the caches takes less
WARM_BUDGET = 0.05
#: calls that take more than these seconds are all made in one turn
SLOW = 0.2
#: "Device Type" of the CPU in the profiler's memory events; other devices have higher numbers
_CPU = 0


def turns(calls: int, most: int = TURNS) -> list[int]:
    """How many of `calls` to make in each turn."""
    count = min(most, calls)
    return [calls // count + (number < calls % count) for number in range(count)]


def prepared(function: Callable[..., Any], prepare: Prepare, fully: bool = False) -> Callable[[], Callable[[], Any]]:
    """A function that prepares and returns the next call of a turn.

    It restores all state before the first call, and later only the state that calls were seen to change; with `fully`, all
    state before each call.
    """
    numbers = itertools.count()

    def call() -> Callable[[], Any]:
        args, kwargs = prepare(only_changed=next(numbers) > 0 and not fully)
        return functools.partial(function, *args, **kwargs)

    return call


def pace(
    function: Callable[..., Any], prepare: Prepare, wait: Callable[[], None], calls: int, *, is_harmless: bool
) -> tuple[list[int], int]:
    """How many of `calls` to make in each turn, and how many more warm up each turn.

    Makes two calls, which may still compile: a guard can fail on the second.  `is_harmless`: whether all that a call does is
    undone; if not, few calls are made.
    """
    seconds = timed_calls(prepared(function, prepare, fully=True), wait, 1, warm_up=1)[0]
    warm_up = max(1, min(WARM_UP if is_harmless else 2, int(WARM_BUDGET / seconds)))
    return turns(calls, TURNS if is_harmless and seconds <= SLOW else 1), warm_up


def timed_loop(
    function: Callable[..., Any], prepare: Prepare, wait: Callable[[], None], count: int, warm_up: int
) -> list[float]:
    """Seconds of each of `count` warm calls in a loop, or of `warm_up` if that is more."""
    return timed_calls(prepared(function, prepare), wait, max(count, warm_up), warm_up)


def timed_calls(
    prepared: Callable[[], Callable[[], Any]], wait: Callable[[], None], count: int, warm_up: int = 0
) -> list[float]:
    """Seconds of each of `count` calls, after some to warm up; `prepared` returns the next call, and is not timed."""
    return [timed(prepared(), wait) for _ in range(warm_up + count)][warm_up:]


def timed(call: Callable[[], Any], wait: Callable[[], None]) -> float:
    """Seconds of one call; its result is freed after the clock has stopped."""
    wait()
    start = time.perf_counter()
    result = call()
    wait()
    seconds = time.perf_counter() - start
    del result
    return seconds


def quartiles(values: list[float]) -> list[float]:
    """The first and the third quartile; for a single value, this value twice; [] without values."""
    if len(values) < 2:
        return values * 2
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return [first, third]


def waiter(device: str) -> Callable[[], None]:
    """A function that waits until the device (`cuda`: the current one) has finished; `nothing` for the CPU."""
    import torch

    return nothing if torch.device(device).type == "cpu" else functools.partial(torch.accelerator.synchronize, device)


def nothing() -> None:
    """Do nothing: the waiter where there is no device to wait for."""


def device_name(device: str) -> str:
    """`CPU, 8 threads`; for another device the name that it reports, or else `device`."""
    import torch

    kind = torch.device(device).type
    if kind == "cpu":
        return f"CPU, {plural(torch.get_num_threads(), 'thread')}"
    name = getattr(getattr(torch, kind, None), "get_device_name", None)
    return str(name(device)) if name is not None else device


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Disable Python's garbage collector: its pauses would be charged to whatever runs just then."""
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
    """Run the block under torch.profiler; yields a dict that holds the trace once the block has ended.

    `kinds`: kinds of devices to watch besides the CPU ("cuda", "xpu"); `memory`: whether to record torch's allocations.
    """
    import torch
    from torch.profiler import ProfilerActivity

    activities = [ProfilerActivity.CPU, *(getattr(ProfilerActivity, kind.upper()) for kind in kinds)]
    trace: dict[str, Any] = {}
    profiler = torch.profiler.profile(activities=activities, profile_memory=memory)
    with _silent():
        profiler.start()
    try:
        yield trace
    finally:
        with _silent():
            profiler.stop()
    with tempfile.TemporaryDirectory(prefix="dynascope") as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        trace.update(json.loads(file.read_text(encoding="utf-8")))


def peak_bytes(call: Callable[[], Any], device: str) -> int | None:
    """The most bytes that torch's allocators for this device held during a call, beyond those held before it.

    Read from the memory events of torch.profiler, so that torch's memory statistics, which belong to the user, need no reset.
    What a library allocates itself (scratch space for a matrix product) is not counted.  None if there are no memory events.
    """
    import torch

    kind = torch.device(device).type
    with profiled([kind] if kind in ("cuda", "xpu") else [], memory=True) as trace:
        result = call()
    del result
    return highest(trace.get("traceEvents", []), on_cpu=kind == "cpu")


def highest(events: list[dict[str, Any]], on_cpu: bool) -> int | None:
    """The highest running sum of allocations and frees on the CPU, or on all other devices; None without such events."""
    memory = [e for e in events if e.get("name") == "[memory]" and "Bytes" in e.get("args", {})]
    mine = [e for e in memory if (e["args"].get("Device Type") == _CPU) == on_cpu]
    held = most = 0
    for event in sorted(mine, key=lambda e: (float(e["ts"]), e["args"].get("Ev Idx", 0))):
        held += int(event["args"]["Bytes"])
        most = max(most, held)
    return most if mine else None


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Silence file descriptor 2: the profiler's C++ library writes to it directly, not to `sys.stderr`."""
    if sys.stderr is not None:  # it is None under pythonw
        sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # there is no descriptor 2
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
