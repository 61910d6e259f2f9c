"""Profile against CUDA events: `python measure.py FILE.md` writes a table.

Both watch the same program, one after the other: the profile's figures must be those of the device's own clock.  On a CPU
(DYNASCOPE_DEVICE=cpu) the clock is `time.perf_counter`, and what only a GPU has is left out.
"""

from __future__ import annotations

import contextlib
import io
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from device_programs import ON_GPU, broken, language, square, straight, training

import dynascope

CALLS, BLOCKS = 20, 9
torch.set_num_threads(1)


def clocked(call: Callable[[], Any]) -> float:
    """Seconds of a warm call in a loop, by the device's own clock: the median of BLOCKS loops of CALLS."""
    for _ in range(CALLS):
        call()
    times = []
    for _ in range(BLOCKS):
        if ON_GPU:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start.record()
            for _ in range(CALLS):
                call()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) / 1e3 / CALLS)
        else:
            began = time.perf_counter()
            for _ in range(CALLS):
                call()
            times.append((time.perf_counter() - began) / CALLS)
    return statistics.median(times)


def rows(name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[tuple[str, float, float]]:
    """What, by the clock, by the report."""
    torch._dynamo.reset()
    report = dynascope.explain(function, profile=CALLS)(*arguments)
    profile = report.profile
    assert profile is not None, report.notes
    verdict = profile.verdict
    torch._dynamo.reset()
    compiled = torch.compile(function)
    found = []
    if verdict.eager_seconds is not None and verdict.compiled_seconds is not None:
        found += [
            (f"{name}: eager, a call", clocked(lambda: function(*arguments)), verdict.eager_seconds),
            (f"{name}: compiled, a call", clocked(lambda: compiled(*arguments)), verdict.compiled_seconds),
        ]
    if ON_GPU:
        busy = sum(s.duration for s in profile.segments if s.kind in ("kernel", "copy"))
        found.append((f"{name}: device busy in a call", kernel_seconds(lambda: compiled(*arguments)), busy))
    return found


def kernel_seconds(call: Callable[[], Any]) -> float:
    """Seconds of the kernels and copies of a call, by torch's own summary of its profiler."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
    return sum(e.self_device_time_total for e in profiler.key_averages()) / 1e6 / CALLS


def main(out: Path) -> None:
    name = torch.cuda.get_device_name() if ON_GPU else "CPU (a rehearsal: nothing here is about a GPU)"
    lines = [
        "# On a device, measured", "",
        f"{name}; torch {torch.__version__}, Python {platform.python_version()}. Made by `make gpu`.", "",
        "| what | clock | report | ratio |", "|---|---|---|---|",
    ]  # fmt: skip
    cases = [
        (f"{function.__name__}, {size} x {size}", function, (square(size),))
        for size in ((512, 4096) if ON_GPU else (256,))
        for function in (broken, straight)
    ]
    for case in (*cases, ("a transformer", *language()), ("a step of training", *training())):
        with contextlib.redirect_stdout(io.StringIO()):
            found = rows(*case)
        lines += [f"| {what} | {a * 1e3:.3f} ms | {b * 1e3:.3f} ms | {b / a:.2f} |" for what, a, b in found]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
