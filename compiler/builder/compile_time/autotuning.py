"""What autotuning found for an operation: how many kernels were timed, and which was the fastest.

Damaged statistics are counted, and the phase is kept without them.  A value that torch did not record is None.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from dynascope.compiler.builder.events.chromium import AUTOTUNING
from dynascope.compiler.report import AutotuneChoice, CompilePhase


def autotune_choice(phase: CompilePhase, noted: dict[str, Any], unread: Counter[str]) -> AutotuneChoice:
    """The choice that torch recorded at the end of a phase; `unread` counts damaged statistics."""
    statistics = _statistics(noted["autotune_choices_stats"], unread)
    count: Any = statistics.get("num_choices")
    milliseconds: Any = statistics.get("best_time")
    timed = type(milliseconds) in (int, float) and 0 <= milliseconds < 1e12  # infinite: no kernel could be run
    shapes, dtypes = _text(noted["autotune_shape"]), _text(noted["autotune_dtypes"])
    return AutotuneChoice(
        op=phase.name.removesuffix(AUTOTUNING), shapes=shapes, dtypes=dtypes and dtypes.replace("torch.", ""),
        choices=count if type(count) is int and 0 < count < 1e9 else None,
        best=_text(statistics.get("best_kernel")) if timed else None,
        best_description=_text(statistics.get("best_kernel_desc")) if timed else None,
        best_ms=milliseconds if timed else None,
        seconds=phase.seconds, compile_id=phase.compile_id, frame=phase.frame,
    )  # fmt: skip


def _statistics(text: Any, unread: Counter[str]) -> dict[str, Any]:
    """torch's statistics, from JSON; empty if damaged, or if torch made none (see `max_autotune_report_choices_stats`)."""
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        unread["chromium_event: damaged autotuning statistics"] += 1
        return {}
    return found


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
