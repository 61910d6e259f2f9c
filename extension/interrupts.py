"""An interrupt stops the user's code and the compiler, never our own setting up and putting back.

While a run is on, Ctrl-C (the kernel's interrupt) raises at once where code under `interruptible` runs.  Anywhere else it is
kept and raised when everything has been restored.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


def interruptible(function: Callable[..., Any], *args: Any) -> Any:
    """Call the user's code: here an interrupt raises at once."""
    return function(*args)


_OPEN = interruptible.__code__


class Interrupts:
    """A context for one whole run; only the main thread gets interrupts, elsewhere it does nothing."""

    def __init__(self) -> None:
        self._before: Any = None
        self._kept: int | None = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):
                self._before = before
                signal.signal(signal.SIGINT, self._heard)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is None:
            return
        if signal.getsignal(signal.SIGINT) == self._heard:  # else the user's code has set its own
            signal.signal(signal.SIGINT, self._before)
        if self._kept is not None and error[0] is None:
            self._before(self._kept, None)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code is _OPEN:
                self._before(number, frame)
                return
            frame = frame.f_back
        self._kept = number
