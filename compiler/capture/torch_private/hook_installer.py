"""Installs the hooks into torch, once for all recordings, and removes them again.

Each hook observes functions of torch (`hooks` has them all) and does not change what torch compiles.  A hook that
does not fit the installed torch is left out.  `report.hooks` has the reason, and the errors of hooks, which never reach the
user.

Recordings can begin and end in any order and in any thread: the first to begin installs the hooks, and the last to end removes
them.  Code objects are kept alive while a recording runs, so that the uids by which events name them stay unique.

`watch` observes a function of torch from inside: it replaces the function's code by code that also calls an observer.

torch reads Python's stack (`disable(recursive=False)`, the start of a compile, logs), and a backend may do so, too; both would
see the frame of a wrapper.  So the function object is kept, and only its code is replaced temporarily.  The new code is
compiled from the function's source with calls of the observer added, at the lines and columns of the original.  As a check, the
unchanged source is compiled first: if the result differs from the function's code, the function is not observed.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import linecache
import re
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from dynascope.compiler.builder.events import Code, Event, FrameEnd, Paused, Stop
from dynascope.compiler.patching import interrupts_deferred
from dynascope.compiler.source import edited
from dynascope.compiler.source.code import code_key, last_line, nested_code
from dynascope.compiler.source.code_swap import Swaps, recompiled
from dynascope.compiler.source.lines import OldFunction

#: placeholder for the observer in code that is not installed yet
_OBSERVER = "the observer of dynascope"

#: (original code, its file, the added texts) -> code with calls of the observer
_rewritten: dict[tuple[CodeType, str, tuple[str, str, str]], CodeType] = {}


def watch(function: Any, observer: Any, *, before: str = "", returned: str = "", failed: str = "") -> Callable[[], None]:
    """Call `observer` from inside `function`; returns a function that restores the original code.

    `before` runs first, `returned` is a call that replaces each return value, which is its first argument, `result`, and
    `failed` runs when an exception leaves the function.  All are Python text that may use `observer` and the function's
    parameters.  Raises an exception, such as OSError or ValueError, if the function cannot be observed in this way.
    """
    original = function.__code__
    key = (original, original.co_filename, (before, returned, failed))
    if key not in _rewritten:
        _rewritten[key] = _rewrite(function, before, returned, failed)
    code = _rewritten[key]
    swaps = Swaps()
    swaps.put(function, code.replace(co_consts=tuple(observer if c == _OBSERVER else c for c in code.co_consts)))
    return swaps.undo


def _rewrite(function: Any, before: str, returned: str, failed: str) -> CodeType:
    original = function.__code__
    module, definition = _parse(function)
    if _plain(_compile(module, original)) != _plain(original):
        # newer Pythons compile a call of an imported module's function differently; only now, as finding imports takes long
        called = _called(definition) & _imported(original.co_filename)
        module.body[:0] = ast.parse(f"import {', '.join(sorted(called))}" if called else "").body
        if _plain(_compile(module, original)) != _plain(original):
            raise ValueError(f"the source of {function.__qualname__} is not the code that runs")
    parameters = {node.arg for node in ast.walk(definition.args) if isinstance(node, ast.arg)}
    for text in (before, returned, failed):
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        if unknown := names - parameters - {"observer", "result"}:
            raise ValueError(f"{function.__qualname__} has no parameter {', '.join(sorted(unknown))}")

    start = int(ast.get_docstring(definition, clean=False) is not None)
    docstring, body = definition.body[:start], definition.body[start:]
    first = body[0]
    if returned:
        body = [_Returns(returned).visit(s) for s in [*body, ast.copy_location(ast.Return(None), body[-1])]]
    if failed:
        (attempt,) = _added(f"try: body\nexcept:\n    {failed}\n    raise", first)
        attempt.body, body = body, [attempt]
    definition.body = [*docstring, *_added(before, first), *body]
    return _compile(module, original)


def _parse(function: Any) -> tuple[ast.Module, Any]:
    """A module that contains the function's definition, and the definition.

    Lines and columns are those of the file.  The definition is inside its classes, because of name mangling.
    """
    code = function.__code__
    lines, _ = inspect.getsourcelines(code)
    *around, name = function.__qualname__.split(".")
    classes = [f"{' ' * depth}class {outer}:\n" for depth, outer in enumerate(around)]
    module = ast.parse("".join(["\n" * (code.co_firstlineno - 1 - len(around)), *classes, *lines]))
    definition: Any = module
    for _ in (*around, name):
        (definition,) = definition.body
    if not isinstance(definition, ast.FunctionDef) or definition.name != name:
        raise ValueError(f"the source of {function.__qualname__} is not its definition")
    return module, definition


def _called(definition: ast.FunctionDef) -> set[str]:
    """The names in the definition on which a method is called, as in `name.something()`."""
    functions = [node.func for node in ast.walk(definition) if isinstance(node, ast.Call)]
    return {f.value.id for f in functions if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name)}


@functools.cache
def _imported(file: str) -> set[str]:
    """Names that a module imports at its top level; only the import statements are parsed, because torch's modules are long."""
    statements = re.findall(r"^(?:import|from) [^(\n]*(?:\([^)]*\))?", "".join(linecache.getlines(file)), re.M)
    aliases = [alias for statement in statements for alias in ast.parse(statement).body[0].names]
    return {(alias.asname or alias.name).partition(".")[0] for alias in aliases}


def _compile(module: ast.Module, original: CodeType) -> CodeType:
    """Compile `module`, and return the code of the definition that is at the place of `original`."""
    compiled = recompiled(module, original.co_filename, original.co_flags)
    return next(c for c in nested_code(compiled) if code_key(c) == code_key(original))


def _plain(code: CodeType) -> CodeType:
    """The code without its table of lines and columns, because an option of Python leaves out columns."""
    constants = (_plain(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=tuple(constants))


def _added(text: str, at: ast.AST) -> list[Any]:
    """The statements of `text`, at the place of another node, with the placeholder as `observer`."""
    module = ast.parse(re.sub(r"\bobserver\b", repr(_OBSERVER), text))
    for node in ast.walk(module):
        ast.copy_location(node, at)
    return list(module.body)


class _Returns(ast.NodeTransformer):
    """Replaces each value that a function returns by an expression; does not visit functions and classes defined inside it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def visit_Return(self, node: ast.Return) -> ast.Return:
        value = node.value or ast.copy_location(ast.Constant(None), node)
        (statement,) = _added(self.text, node)
        statement.value.args[0], node.value = value, statement.value
        return node

    def visit_FunctionDef(self, node: ast.AST) -> ast.AST:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef


Sink = Callable[[Event], None]
Undo = Callable[[], None]
#: name of a hook -> installs it, and returns the function that removes it
Points = Mapping[str, Callable[["Hooks"], Undo]]


@dataclass(slots=True)
class Attempt:
    """A frame that Dynamo is working on."""

    #: what is known so far of its end, the event
    end: FrameEnd
    frame: FrameType
    #: the Python frame from which Dynamo was called
    caller: FrameType
    #: the exception that Dynamo swallows if it skips the frame
    error: BaseException | None = None
    #: id of a code object -> Dynamo's instructions for it, at the latest end of a graph
    instructions: dict[int, Any] = field(default_factory=dict)
    #: `end.stopped` of the latest exception of Dynamo's own, and not of the program's, which traced code may catch
    failed: list[Stop] = field(default_factory=list)


class _Thread(threading.local):
    """What a thread is compiling and calling."""

    def __init__(self) -> None:
        #: the frames that Dynamo is working on, outermost first
        self.attempts: list[Attempt] = []
        #: id of a frame that calls a compiled function -> the frame's code, and the number of the call
        self.calls: dict[int, tuple[CodeType, int]] = {}


class _Pause:
    """One `paused` block."""


class Hooks:
    """The one installation of all hooks; events go to the sinks that are attached."""

    def __init__(self) -> None:
        #: what gets the events -> whether its recording keeps bytecode
        self.sinks: dict[Sink, bool] = {}
        self._points: Points = {}
        self.status: dict[str, bool | str] = {}
        self._undo: list[Undo] = []
        #: the `paused` blocks in all threads; one that an interrupt ends before it is taken out goes with its frame
        self._pausing = weakref.WeakSet[_Pause]()
        self._lock = threading.RLock()
        self.thread = _Thread()
        self._codes: dict[int, tuple[CodeType, Code]] = {}
        #: uid -> (code, globals) of the compiled functions that were called while hooks were installed
        self.entered: dict[int, tuple[CodeType, dict[str, Any]]] = {}
        #: (uid, name) of the compiled functions that were called since the latest recording began: only the first call of each
        #: becomes an event; a uid can have several names, because all functions that a torch wrapper wraps share its code
        self.called_as: set[tuple[int, str, int]] = set()
        #: called before a compiled function runs, with the function that torch enters, the user's object, and the arguments
        self.call_watchers: list[Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], None]] = []
        #: uid -> number of calls of the compiled function
        self.calls: dict[int, int] = {}
        #: id of a function that is not traced, such as that of a compiled graph -> when it was last called
        self.ran: dict[int, float] = {}
        #: (file, name) of a function -> when Dynamo last began to trace it, as a frame of its own or inlined
        self.traced: dict[tuple[str, str], float] = {}

    def attach(self, sink: Sink, points: Points, *, keeps_bytecode: bool) -> dict[str, bool | str]:
        """Send events to `sink` from now on; returns the status of each hook: True, or why it is not installed.

        An interrupt can come between any two lines: the caller must call `detach` in any case.
        """
        with self._lock:
            self._points = points
            self.status = self.status if self.sinks else {}
            if self._pausing:
                sink(Paused())
            elif not self.sinks:
                self._install()
            self.sinks = {**self.sinks, sink: keeps_bytecode}
            self.called_as.clear()
            return self.status

    def detach(self, sink: Sink) -> None:
        """Stop sending to `sink`; when the last one is detached, all hooks are removed."""
        with self._lock:
            self.sinks = {other: keeps for other, keeps in self.sinks.items() if other != sink}
            if not self.sinks:
                self._uninstall()
                self._codes.clear()
                self.entered, self.called_as, self.calls, self.ran, self.traced = {}, set(), {}, {}, {}
                self.thread = _Thread()

    @property
    def keeps_bytecode(self) -> bool:
        """Whether a recording keeps bytecode; otherwise, torch does not print bytecode, which would be slow."""
        return any(self.sinks.values())

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
        pause = _Pause()
        try:
            with self._lock:
                self._pausing.add(pause)
                self._uninstall()
            self.emit(Paused())
            yield
        finally:
            with interrupts_deferred(), self._lock:
                self._pausing.discard(pause)
                if self.sinks and not self._undo and not self._pausing:
                    self._install()

    def _uninstall(self) -> None:
        while self._undo:
            self._undo[-1]()  # can run twice, if an interrupt comes before it is removed
            self._undo.pop()

    def emit(self, event: Event) -> None:
        """Send one event to every sink."""
        event.thread = threading.get_ident()
        if (attempt := self.attempt()) is not None and attempt.end.compile_id is None:
            attempt.end.compile_id = event.compile_id
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

    def attempt(self) -> Attempt | None:
        """The innermost frame that Dynamo is working on in this thread."""
        return self.thread.attempts[-1] if self.thread.attempts else None

    def enter(self, uid: int, frame: FrameType) -> None:
        """Count a call of a compiled function, which runs below `frame`."""
        self.calls[uid] = self.calls.get(uid, 0) + 1
        self.thread.calls[id(frame)] = frame.f_code, self.calls[uid]

    def call(self) -> int | None:
        """The innermost call in progress, by its number (from 1) among the calls of its compiled function; None without one."""
        for frame, _ in traceback.walk_stack(sys._getframe(1)) if self.thread.calls else ():
            code, number = self.thread.calls.get(id(frame), (None, None))
            if frame.f_code is code:  # else this frame has the address of one that has ended
                return number
        return None

    def code(self, code: CodeType) -> Code:
        """The `Code` for a code object, the same one each time."""
        if id(code) not in self._codes:
            self._codes[id(code)] = (code, code_info(code))
        return self._codes[id(code)][1]

    def old_functions(self) -> list[OldFunction]:
        """The functions seen whose lines are not those of their files' present texts."""
        codes = [code for code, _ in list(self._codes.values()) if edited.is_outdated(code)]
        return [OldFunction(c.co_name, c.co_filename, c.co_firstlineno, last_line(c)) for c in codes]


HOOKS = Hooks()


def code_info(code: CodeType) -> Code:
    return Code(code.co_name, code.co_filename, code.co_firstlineno, last_line(code), uid=id(code))
