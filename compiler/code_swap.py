"""Makes Dynamo retrace functions that it has compiled before.

Dynamo keeps compiled code, skip marks and resume functions for the code object of each function, so a second run that calls
the same functions would compile nothing.  During a run, `retracing()` replaces the code objects of such functions with copies.
Afterwards it restores the originals, so that the code compiled before the run is used again.  Dynamo is never reset.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from dynascope.compiler.capture.torch_private import caches, marks
from dynascope.compiler.source import edited
from dynascope.compiler.source.code import is_resume, nested_code
from dynascope.compiler.source.functions import functions_of
from dynascope.compiler.source.origin import in_torch


@contextlib.contextmanager
def retracing() -> Iterator[Callable[[Any], None]]:
    """Replace the code objects in `caches.known_codes()`; yields `trace_anew`, which replaces those of a target.

    A target is a function, a bound method, or an object such as an `nn.Module`: then all methods of its class and its bases,
    except torch's.  Dynamo also forgets, for the duration, which sizes are dynamic because of earlier runs.
    """
    swaps = _Swaps()
    try:
        with caches.forgotten_shapes():
            swaps.swap_known()
            yield swaps.trace_anew
    finally:
        swaps.undo()


_runs = itertools.count()
_lock = threading.RLock()
#: id of each copy that is in use -> (the copy, the code that it replaced)
_replaced: dict[int, tuple[CodeType, CodeType]] = {}


class _Swaps:
    """The code objects that one run has swapped; runs can be nested or in several threads, and can end in any order."""

    def __init__(self) -> None:
        self.done: dict[int, tuple[FunctionType, CodeType]] = {}  # id of the function -> (function, its copy)
        self.copies: dict[int, tuple[CodeType, CodeType]] = {}  # id of the original -> (original, copy)
        #: id of a code whose file was edited -> equal code of the present text, whose line numbers the copy gets
        self.places: dict[int, CodeType] = {}

    def swap_known(self) -> None:
        """Swap the code of functions if Dynamo knows it or that of a function defined in it, or if its lines are outdated."""
        known = {id(code): code for code in caches.known_codes() if not is_resume(code.co_name)}
        files = {code.co_filename for code in known.values()}
        edited.note_loaded(*files)
        files |= (now_edited := edited.refresh())
        for function in functions_of(files) if files else ():
            code = function.__code__
            if _holds(code, known) or (code.co_filename in now_edited and edited.is_outdated(code)):
                self.swap(function)

    def trace_anew(self, target: Any) -> None:
        """Swap the code of one function or method, or of all methods of an object's class and its bases, except torch's."""
        target = marks.inner_function(target)
        function = getattr(target, "__func__", target)
        if isinstance(function, FunctionType):
            self.swap(function)
            return
        for cls in type(target).__mro__:
            for value in list(vars(cls).values()):
                if isinstance(value, FunctionType) and not in_torch(value.__code__.co_filename):
                    self.swap(value)

    def swap(self, function: FunctionType) -> None:
        if id(function) in self.done:
            return
        with _lock:
            before = function.__code__
            now = edited.located(before)
            if now is not None and now is not before:
                self.places |= {id(old): new for old, new in zip(nested_code(before), nested_code(now), strict=False)}
            copy = self.copy(before)  # before anything is changed: an interrupt may lead to `undo` at any moment
            self.done[id(function)] = (function, copy)
            _replaced[id(copy)] = (copy, before)
            function.__code__ = copy

    def copy(self, code: CodeType) -> CodeType:
        """An equivalent code object that is new to Dynamo, as are the code objects of the functions defined in it."""
        known = self.copies.get(id(code))
        if known is None:
            constants = tuple(self.copy(c) if isinstance(c, CodeType) else c for c in code.co_consts)
            at = self.places.get(id(code), code)
            # code objects are compared by value, also as keys of torch's tables: the unused constant makes the copy differ
            copy = code.replace(
                co_consts=(*constants, f"run {next(_runs)}"), co_firstlineno=at.co_firstlineno, co_linetable=at.co_linetable
            )
            known = self.copies[id(code)] = (code, copy)
        return known[1]

    def undo(self) -> None:
        self._restore_codes()
        caches.forget_resumes([copy for _, copy in self.copies.values()])
        inner = self._inner_copies()
        self.done.clear()
        self.copies.clear()
        _restore_made(inner)

    def _restore_codes(self) -> None:
        with _lock:
            ended = {id(copy) for _, copy in self.done.values()}
            before = {key: _replaced.pop(key)[1] for key in ended if key in _replaced}
            for function, copy in self.done.values():
                if function.__code__ is copy:  # otherwise another run, or the user's code, has replaced the copy
                    function.__code__ = before[id(copy)]
            for key, (copy, replaced) in _replaced.items():  # other runs are to restore the code from before this run
                _replaced[key] = (copy, before.get(id(replaced), replaced))

    def _inner_copies(self) -> list[tuple[CodeType, weakref.ref[CodeType]]]:
        """(original, weak reference to its copy) for each swapped function, and each function that is defined in one."""
        return [(original, weakref.ref(copy)) for original, copy in self.copies.values()]


def _restore_made(inner: list[tuple[CodeType, weakref.ref[CodeType]]]) -> None:
    """Restore the original code of functions that were created during the run and still exist.

    Once the run has released its copies, only such a function, or another run that has not ended, keeps a copy alive.
    """
    alive = [(copy, original) for original, reference in inner if (copy := reference()) is not None]
    originals = {id(copy): original for copy, original in alive}
    copies = [copy for copy, _ in alive]
    for function in gc.get_referrers(*copies) if copies else ():  # slow: it searches all objects
        if type(function) is FunctionType and id(function.__code__) in originals:
            function.__code__ = originals[id(function.__code__)]


def _holds(code: CodeType, known: dict[int, CodeType]) -> bool:
    return any(id(c) in known for c in nested_code(code))
