"""Reads torch's chromium events, which time the compiler's phases."""

from __future__ import annotations

import json
import math
from typing import Any

from dynascope.compiler.builder.events.schema import Timed

#: end of the name of a phase in which Inductor times kernels for one operation
AUTOTUNING = "_template_autotuning"
#: arguments of the event that ends such a phase, as far as they are read
_TUNED = ("autotune_shape", "autotune_dtypes", "autotune_choices_stats")
#: microseconds; larger numbers are damaged times
_MOST = 1 << 62


def timed(event: Any) -> Timed | None:
    """The beginning or the end of a phase; None if the event is neither.

    `event`: the dict that torch makes, or its JSON text.  Raises ValueError if the event is damaged.
    """
    if isinstance(event, str):
        event = json.loads(event)
    try:
        name, phase, at, arguments = event["name"], event["ph"], event["ts"], event.get("args") or {}
        if phase not in ("B", "E"):
            return None
        compile_id, function = arguments.get("compile_id"), arguments.get("fn_name")
        if not (isinstance(name, str) and type(at) in (int, float) and math.isfinite(at) and abs(at) < _MOST):
            raise ValueError(f"not a chromium event: {name!r} at {at!r}")
        tuned = phase == "E" and name.endswith(AUTOTUNING)
        return Timed(
            name, phase == "B", at / 1e6, str(function) if function else None,
            {key: arguments.get(key) for key in _TUNED} if tuned else None,
            compile_id=None if compile_id in (None, "None") else str(compile_id),
        )  # fmt: skip
    except (AttributeError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"not a chromium event: {type(error).__name__}") from None
