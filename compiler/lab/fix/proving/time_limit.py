"""Ends a call that takes too long: other inputs may make a loop of the user's program endless."""

from __future__ import annotations

import contextlib
import ctypes
import math
import sys
import threading
from collections.abc import Iterator

from dynascope.compiler.capture.torch_private import caches
from dynascope.compiler.lab.experiment import EndedFromOutside
from dynascope.compiler.patching import patched

#: seconds after which TookTooLong is raised again where Python has discarded it
_RETRY_SECONDS = 0.02


class TookTooLong(EndedFromOutside):
    """Raised in a call that takes too long; a BaseException, so that `except Exception` in the program does not catch it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in this thread after `seconds`, between two bytecode instructions.

    Python discards exceptions in a weak reference's callback and in `__del__`; TookTooLong is then raised again.  If the
    program itself catches it (with a bare `except:`), it is not.
    """
    if seconds == math.inf:
        yield
        return
    limit = _Limit(threading.get_ident())
    hook = sys.unraisablehook

    def on_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is TookTooLong:
            limit.reach_in(_RETRY_SECONDS)
        else:
            hook(unraisable)

    with caches.fx_restored(), patched(sys, {"unraisablehook": on_unraisable}):
        timer = limit.reach_in(seconds)
        try:
            yield
        finally:
            timer.cancel()
            limit.end()


class _Limit:
    def __init__(self, thread: int) -> None:
        self._thread, self._lock, self._ended = thread, threading.Lock(), False

    def reach_in(self, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self._reached)
        timer.daemon = True
        timer.start()
        return timer

    def _reached(self) -> None:
        with self._lock:
            if not self._ended:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(TookTooLong))

    def end(self) -> None:
        """Raise nothing after this method; a TookTooLong that is pending is raised in it.

        A pending exception must not be withdrawn (by setting None): Python would look for it at each instruction from then on,
        and the next call under a profile function would never end in Python 3.11.
        """
        with self._lock:
            self._ended = True
