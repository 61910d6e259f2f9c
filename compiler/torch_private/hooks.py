"""The hooks' machinery: installed once for all recordings, undone exactly.

A hook adds eyes to one point of TorchDynamo (`hook_points` has them all).  Each is installed on its own; one that does not fit
the installed torch is left out and named, with the reason, in `report.hooks`.  A hook passes
everything through, swallows its own errors (they are named in `report.hooks`, never raised) and is undone exactly.

All recordings share one installation: the first one installs the hooks, the last one removes them,
in whichever order and threads they come and go.  Events are plain dicts; code objects appear in them
as `CodeInfo` dicts with a `uid`, and are kept alive while a recording runs so that the uids stay unique.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from dynascope.compiler.torch_private.translators import current_compile_id

Sink = Callable[[dict[str, Any]], None]
Undo = Callable[[], None]


class Hooks:
    """The one installation of all hooks; `attach` and `detach` a sink."""

    def __init__(self) -> None:
        self.sinks: list[Sink] = []
        self.status: dict[str, bool | str] = {}
        #: how many recordings keep bytecode; printing it is slow, so it is done only where it is asked for
        self.bytecode = 0
        #: ours among the handlers of the structured trace
        self.trace_handler: logging.Handler | None = None
        self._undo: list[Undo] = []
        #: threads that measure, or run a graph on its own, just now
        self._pausing = 0
        self._lock = threading.RLock()
        self._local = threading.local()
        self._codes: dict[int, tuple[CodeType, dict[str, Any]]] = {}
        #: code objects that were called compiled while hooks were on, with their globals
        self.entered: dict[int, tuple[CodeType, dict[str, Any]]] = {}

    def attach(self, sink: Sink) -> dict[str, bool | str]:
        """Send events to `sink` from now on; returns which hooks took."""
        with self._lock:
            try:
                if not self.sinks and not self._pausing:
                    self._install()
                elif self._pausing:
                    sink({"kind": "paused", "thread": None, "cid": None})
                self.sinks = [*self.sinks, sink]
            except BaseException:  # an interrupt, between any two lines
                self.detach(sink)
                raise
            return self.status

    def detach(self, sink: Sink) -> None:
        """Stop sending to `sink`; with the last one gone, torch is as it was."""
        with self._lock:
            self.sinks = [s for s in self.sinks if s != sink]  # a bound method is a new object each time
            if not self.sinks:
                self._remove()

    # -- installing --------------------------------------------------------------------------------

    def _install(self) -> None:
        from dynascope.compiler.torch_private.hook_points import POINTS

        self._uninstall()
        self.status.clear()
        for name, install in POINTS.items():
            try:
                self._undo.append(install(self))
                self.status[name] = True
            except Exception as error:  # a private API that is not there, or not as it was
                self.status[name] = f"{type(error).__name__}: {error}"

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Torch as it is without us, for the duration; what is known stays known.

        It is so for all threads; recordings hear of it, because they miss what other threads compile meanwhile.
        """
        with self._lock:
            self._pausing += 1
            self._uninstall()
        try:
            self.emit("paused", cid=None)
            yield
        finally:
            with self._lock:
                self._pausing -= 1
                if self.sinks and not self._undo and not self._pausing:
                    self._install()

    def _uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _remove(self) -> None:
        self._uninstall()
        self._codes.clear()
        self.entered = {}
        self._local = threading.local()

    def emit(self, kind: str, **data: Any) -> None:
        """Give one event to every sink."""
        data["kind"] = kind
        data["thread"] = threading.get_ident()
        if "cid" not in data:
            data["cid"] = self.compile_id()
        attempt = self.attempt()
        if attempt is not None and attempt.get("cid") is None and data["cid"] is not None:
            attempt["cid"] = data["cid"]
        for sink in self.sinks:
            sink(data)

    def safely(self, handler: Callable[..., None], *args: Any) -> None:
        """Run a handler of ours: an error in it must never reach the user's code."""
        try:
            handler(*args)
        except Exception as error:
            self.status[f"handler {handler.__name__}"] = f"{type(error).__name__}: {error}"

    # -- what is going on in this thread ---------------------------------------------------------------

    def attempts(self) -> list[dict[str, Any]]:
        """Stack of frames that Dynamo is being asked about in this thread."""
        stack: list[dict[str, Any]] | None = getattr(self._local, "attempts", None)
        if stack is None:
            stack = self._local.attempts = []
        return stack

    def attempt(self) -> dict[str, Any] | None:
        stack = self.attempts()
        return stack[-1] if stack else None

    def compile_id(self) -> str | None:
        return current_compile_id()

    def code(self, code: CodeType) -> dict[str, Any]:
        """What is known of a code object, the same dict for the same object."""
        known = self._codes.get(id(code))
        if known is None:
            known = self._codes[id(code)] = (code, code_info(code))
        return known[1]


HOOKS = Hooks()


def code_info(code: CodeType) -> dict[str, Any]:
    """Plain data about a code object: names, file and the lines that it spans."""
    return {
        "uid": id(code), "name": code.co_name, "qualname": getattr(code, "co_qualname", code.co_name),
        "file": code.co_filename, "line": code.co_firstlineno, "end_line": last_line(code),
    }  # fmt: skip


def last_line(code: CodeType) -> int:
    """The last line that any instruction of `code`, or of a function in it, stands on."""
    last = max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)
    return max([last, *(last_line(c) for c in code.co_consts if isinstance(c, CodeType))])
