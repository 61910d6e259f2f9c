"""What a call compiles, as a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynascope.compiler.capture.recording import observe
from dynascope.compiler.report import Report


def seen(call: Callable[[], Any]) -> Report:
    """The report of a call under `observe()`."""
    with observe() as recording:
        call()
    return recording.report
