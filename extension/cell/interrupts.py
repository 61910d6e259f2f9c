"""An interrupt stops the user's code and the compiler, never our own setting up and putting back.

While a run is on, Ctrl-C (the kernel's interrupt) raises at once where code under `interruptible` runs.  Anywhere else it is
kept, and raised where the user's code would go on, or else when everything has been restored.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


def interruptible(function: Callable[..., Any], *args: Any) -> Any:
    """Call the user's code: here an interrupt raises at once, also one that came while it was not running."""
    if _on and threading.current_thread() is threading.main_thread():
        raise_kept()
    return function(*args)


def raise_kept() -> None:
    """Raise an interrupt that one of the runs has kept, if there is one."""
    kept = [run.kept for run in _on if run.kept is not None]
    for run in _on:
        run.kept = None
    if kept:
        _on[0].before(kept[0], None)


_OPEN = interruptible.__code__
#: while torch tries the guards that it has made, what is raised is lost; seconds until the interrupt comes again
_SWALLOWING, _LATER = os.path.join("torch", "_dynamo", "guards.py"), 0.02
#: runs that are on in the main thread, nested ones last
_on: list[Interrupts] = []


class Interrupts:
    """A context for one whole run; only the main thread gets interrupts, elsewhere it does nothing."""

    def __init__(self) -> None:
        self.before: Any = None
        self.kept: int | None = None
        self._owner: FrameType | None = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):
                self.before = before
                self._owner = sys._getframe(1)
                signal.signal(signal.SIGINT, self._heard)
                _on.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        if self.before is None:
            return
        _on.remove(self)
        self._owner = None
        if signal.getsignal(signal.SIGINT) == self._heard:  # else the user's code has set its own
            signal.signal(signal.SIGINT, self.before)
        if self.kept is not None and error[0] is None:
            self.before(self.kept, sys._getframe())

    def _heard(self, number: int, frame: FrameType | None) -> None:
        while frame is not None and frame is not self._owner:  # beyond it a run may go on that this one is nested in
            if frame.f_code.co_filename.endswith(_SWALLOWING):
                timer = threading.Timer(_LATER, os.kill, (os.getpid(), number))
                timer.daemon = True
                timer.start()
                return
            if frame.f_code is _OPEN:
                self.before(number, frame)
                return
            frame = frame.f_back
        self.kept = number
