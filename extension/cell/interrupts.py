"""Interrupts stop the user's code and the compiler, never our own setup and cleanup.

During a run, Ctrl-C (the kernel's interrupt) raises immediately where code under `interruptible` runs.  Anywhere else it is
kept pending: it is raised where the user's code would continue, or at the end, when everything has been restored.  If an error
ends the run, a pending interrupt is dropped.

An interrupt that Python or torch would discard is sent again.  Python prints and drops what is raised in a weak reference's
callback or in `__del__`, which is where an interrupt can be raised during a garbage collection, and what is raised while it
prints that.  In CPython 3.10, an interrupt in torch's evaluation of a frame can become the cause of a SystemError;
`interruptible` then raises the interrupt.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any


def interruptible(function: Callable[..., Any], *args: Any) -> Any:
    """Call the user's code: an interrupt during the call raises immediately, and a pending one raises before the call."""
    if _active and threading.current_thread() is threading.main_thread():
        pending = [run.pending for run in _active if run.pending is not None]
        for run in _active:
            run.pending = None
        if pending:
            _active[0].previous(pending[0], None)
    try:
        return function(*args)
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__.with_traceback(error.__traceback__) from None
        raise


_INTERRUPTIBLE_CODE = interruptible.__code__
#: the file in which torch evaluates the guards that it has just made: torch discards exceptions raised there
_DISCARDING_FILE = os.path.join("torch", "_dynamo", "guards.py")
#: seconds until an interrupt that was or would be discarded is sent again
_RETRY_SECONDS = 0.02
#: runs in progress in the main thread, nested ones last
_active: list[Interrupts] = []


class Interrupts:
    """Handles the interrupts of one whole run, as a context manager.

    Does nothing outside the main thread, the only one that gets interrupts, or if no Python function handles SIGINT.
    """

    def __init__(self) -> None:
        #: the signal handler that `_on_signal` replaced; None if it replaced none
        self.previous: Any = None
        self.pending: int | None = None
        #: interrupts to be sent again; if the run ends first, `__exit__` takes them all out and raises one
        self._due: list[int] = []
        self._sending = threading.Lock()
        self._owner: FrameType | None = None
        self._unraisablehook: Any = None

    def __enter__(self) -> Interrupts:
        previous = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(previous):
            self.previous = previous
            self._owner = sys._getframe(1)
            signal.signal(signal.SIGINT, self._on_signal)
            self._unraisablehook, sys.unraisablehook = sys.unraisablehook, self._on_unraisable
            _active.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        if self.previous is None:
            return
        with self._sending:  # one that a timer is about to send still comes to this run
            while self._due:
                self.pending = self._due.pop()
        _active.remove(self)
        self._owner = None
        if signal.getsignal(signal.SIGINT) == self._on_signal:  # else the user's code has set its own
            signal.signal(signal.SIGINT, self.previous)
        if sys.unraisablehook == self._on_unraisable:
            sys.unraisablehook = self._unraisablehook
        if self.pending is not None and error[0] is None:
            self.previous(self.pending, sys._getframe())

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        while frame is not None and frame is not self._owner:  # the owner's callers belong to the run around this one
            if frame.f_code.co_filename.endswith(_DISCARDING_FILE) or frame.f_code is Interrupts._on_unraisable.__code__:
                self._send_again(number)
                return
            if frame.f_code is _INTERRUPTIBLE_CODE:
                self.previous(number, frame)
                return
            frame = frame.f_back
        self.pending = number

    def _on_unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        frames = traceback.walk_tb(unraisable.exc_traceback)
        if any(frame.f_code is Interrupts._on_signal.__code__ for frame, _ in frames):
            self._send_again(signal.SIGINT)
        else:
            self._unraisablehook(unraisable)

    def _send_again(self, number: int) -> None:
        """Send an interrupt a little later, when the code that would discard it has returned, and before the run ends."""

        def send() -> None:
            with self._sending:
                if self._due:
                    os.kill(os.getpid(), self._due.pop())

        self._due.append(number)
        timer = threading.Timer(_RETRY_SECONDS, send)
        timer.daemon = True
        timer.start()
