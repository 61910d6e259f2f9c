"""The compile time as a trace that Perfetto and chrome://tracing can open."""

from __future__ import annotations

from typing import Any

from dynascope.compiler.report import Report
from dynascope.widgets.labels.compile_time import KINDS


def to_compile_trace(report: Report) -> dict[str, Any]:
    """The trace, JSON-ready: one complete event for each phase, one thread for each lane, times in microseconds.

    Raises ValueError if the compile time is unknown.
    """
    time = report.compile_time
    if time is None or not time.phases:
        raise ValueError("the times of the compiler's phases are unknown: nothing was compiled, or torch did not record them")
    names = {f.id: f.name for f in report.frames}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": name}}
        for tid, name in enumerate(time.lanes, 1)
    ]  # fmt: skip
    for p in time.phases:
        about = {"compile_id": p.compile_id, "frame": names.get(p.frame or ""), "backward": p.backward or None}
        events.append({
            "ph": "X", "name": p.name, "cat": KINDS[p.kind][0], "pid": 1, "tid": p.lane + 1,
            "ts": round(p.start * 1e6, 1), "dur": round(p.seconds * 1e6, 1),
            "args": {"alone_us": round(p.self_seconds * 1e6, 1), **{k: v for k, v in about.items() if v is not None}},
        })  # fmt: skip
    return {"traceEvents": events, "displayTimeUnit": "ms"}
