"""Installs the hooks into torch, once for all recordings, and removes them again.

Each hook observes functions of torch (`hooks` has them all) and does not change what torch compiles.  A hook that
does not fit the installed torch is left out.  `report.hooks` has the reason, and the errors of hooks, which never reach the
user.

Recordings can begin and end in any order and in any thread: the first to begin installs the hooks, and the last to end removes
them.  Code objects are kept alive while a recording runs, so that the uids by which events name them stay unique.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from dynascope.compiler.builder.events.schema import Code, Event, Paused, Stop
from dynascope.compiler.source import edited
from dynascope.compiler.source.code import last_line
from dynascope.compiler.source.lines import OldFunction

Sink = Callable[[Event], None]
Undo = Callable[[], None]
#: name of a hook -> installs it, and returns the function that removes it
Points = Mapping[str, Callable[["Hooks"], Undo]]


@dataclass(slots=True)
class Attempt:
    """A frame that Dynamo is working on."""

    code: Code
    frame: FrameType
    #: the Python frame from which Dynamo was called
    caller: FrameType
    compile_id: str | None = None
    fullgraph: bool | None = None
    error_on_graph_break: bool | None = None
    runs_for: tuple[str | None, int | None] = None, None
    #: the exception that Dynamo swallows if it skips the frame
    error: BaseException | None = None
    #: the functions that the latest exception of tracing passed through, innermost first
    stopped: list[Stop] = field(default_factory=list)
    #: id of a code object -> Dynamo's instructions for it, at the latest end of a graph
    instructions: dict[int, Any] = field(default_factory=dict)


class Hooks:
    """The one installation of all hooks; events go to the sinks that are attached."""

    def __init__(self) -> None:
        self.sinks: list[Sink] = []
        self._points: Points = {}
        self.status: dict[str, bool | str] = {}
        #: number of recordings that keep bytecode; if there are none, torch does not print bytecode, which would be slow
        self.bytecode = 0
        #: the handler of the structured trace that a hook installed
        self.trace_handler: logging.Handler | None = None
        #: whether a hook takes chromium events before torch makes records of them
        self.sifts = False
        self._undo: list[Undo] = []
        #: number of `paused` blocks, in all threads
        self._pausing = 0
        self._lock = threading.RLock()
        self._local = threading.local()
        self._codes: dict[int, tuple[CodeType, Code]] = {}
        #: uid -> (code, globals) of the compiled functions that were called while hooks were installed
        self.entered: dict[int, tuple[CodeType, dict[str, Any]]] = {}
        #: (uid, name) of the compiled functions that were called since the latest recording began: only the first call of each
        #: becomes an event; a uid can have several names, because all functions that a torch wrapper wraps share its code
        self.called_as: set[tuple[int, str, int]] = set()
        #: called before a compiled function runs, with the function that torch enters, the user's object, and the arguments
        self.call_watchers: list[Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], None]] = []
        #: uid -> number of calls of the compiled function
        self._calls: dict[int, int] = {}

    def attach(self, sink: Sink, points: Points) -> dict[str, bool | str]:
        """Send events to `sink` from now on; returns the status of each hook: True, or why it is not installed."""
        with self._lock:
            try:
                self._points = points
                self.status = self.status if self.sinks else {}
                if not self.sinks and not self._pausing:
                    self._install()
                elif self._pausing:
                    sink(Paused())
                self.sinks = [*self.sinks, sink]
                self.called_as.clear()
            except BaseException:  # an interrupt can come between any two lines
                self.detach(sink)
                raise
            return self.status

    def detach(self, sink: Sink) -> None:
        """Stop sending to `sink`; when the last one is detached, all hooks are removed."""
        with self._lock:
            self.sinks = [s for s in self.sinks if s != sink]  # not by identity: a bound method is a new object each time
            if not self.sinks:
                self._uninstall()
                self._codes.clear()
                self.entered, self.called_as, self._calls = {}, set(), {}
                self._local = threading.local()

    # -- installing --------------------------------------------------------------------------------

    def _install(self) -> None:
        self._uninstall()
        for name, install in self._points.items():
            try:
                self._undo.append(install(self))
                self.status[name] = True
            except Exception as error:  # a private API that is missing or has changed
                self.status[name] = f"{type(error).__name__}: {error}"

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Remove the hooks in all threads for the duration; the events so far are kept.

        Recordings get a `Paused` event, because they miss the compiles of other threads meanwhile.
        """
        is_paused = False  # an interrupt may come at any moment
        try:
            with self._lock:
                self._pausing += 1
                is_paused = True
                self._uninstall()
            self.emit(Paused())
            yield
        finally:
            with self._lock:
                self._pausing -= is_paused
                if self.sinks and not self._undo and not self._pausing:
                    self._install()

    def _uninstall(self) -> None:
        while self._undo:
            self._undo[-1]()  # can run twice, if an interrupt comes before it is removed
            self._undo.pop()

    def emit(self, event: Event) -> None:
        """Send one event to every sink."""
        event.thread = threading.get_ident()
        attempt = self.attempt()
        if attempt is not None and attempt.compile_id is None:
            attempt.compile_id = event.compile_id
        for sink in self.sinks:
            sink(event)

    def safely(self, handler: Callable[..., None], *args: Any) -> Any:
        """Run a handler, and return its first argument; an error in the handler is noted and never reaches the user's code."""
        try:
            handler(*args)
        except Exception as error:
            self.status[f"handler {handler.__name__}"] = f"{type(error).__name__}: {error}"
        return args[0] if args else None

    # -- what this thread is compiling ------------------------------------------------------------------

    def attempts(self) -> list[Attempt]:
        """The frames that Dynamo is working on in this thread, outermost first."""
        attempts: list[Attempt] = vars(self._local).setdefault("attempts", [])
        return attempts

    def attempt(self) -> Attempt | None:
        """The innermost frame that Dynamo is working on in this thread."""
        stack = self.attempts()
        return stack[-1] if stack else None

    def enter(self, uid: int, frame: FrameType) -> None:
        """Count a call of a compiled function, which runs below `frame`."""
        self._calls[uid] = self._calls.get(uid, 0) + 1
        calls: dict[int, tuple[CodeType, int]] = vars(self._local).setdefault("calls", {})
        calls[id(frame)] = frame.f_code, self._calls[uid]

    def call(self) -> int | None:
        """The innermost call in progress, by its number (from 1) among the calls of its compiled function; None without one."""
        calls: dict[int, tuple[CodeType, int]] = getattr(self._local, "calls", {})
        frame: FrameType | None = sys._getframe(1) if calls else None
        while frame is not None:
            code, number = calls.get(id(frame), (None, None))
            if frame.f_code is code:  # else this frame has the address of one that has ended
                return number
            frame = frame.f_back
        return None

    def code(self, code: CodeType) -> Code:
        """The `Code` for a code object, the same one each time."""
        known = self._codes.get(id(code))
        if known is None:
            known = self._codes[id(code)] = (code, code_info(code))
        return known[1]

    def old_functions(self) -> list[OldFunction]:
        """The functions seen whose lines are not those of their files' present texts."""
        codes = [code for code, _ in list(self._codes.values()) if edited.is_outdated(code)]
        return [OldFunction(c.co_name, c.co_filename, c.co_firstlineno, last_line(c), edited.earlier_lines(c)) for c in codes]


HOOKS = Hooks()


def code_info(code: CodeType) -> Code:
    return Code(code.co_name, code.co_filename, code.co_firstlineno, last_line(code), uid=id(code))
