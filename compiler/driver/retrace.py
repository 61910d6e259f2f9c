"""Every run traces anew.

Dynamo remembers, on the code object of each function: compiled code, skip marks, resume functions.  A second run of the same
cell would silently do nothing.  `retracing()` gives the user's functions that Dynamo knows new code objects that do the same
for the duration and restores the original ones afterwards, so the user's own compiled code is a cache hit again.  Never a
global reset.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from dynascope.compiler.source.code import is_resume, nested_code
from dynascope.compiler.source.origin import in_torch
from dynascope.compiler.torch_private import caches, marks


@contextlib.contextmanager
def retracing() -> Iterator[Callable[[Any], None]]:
    """Make what Dynamo knows of the user's functions new to it; yields `trace_anew(target)`, which does so for one more.

    A target is a function, a bound method, or an object whose class has a `forward`.
    """
    swaps = _Swaps()
    try:
        with caches.forgotten_shapes():
            swaps.swap_known()
            yield swaps.trace_anew
    finally:
        swaps.undo()


_runs = itertools.count()


@dataclass
class _Swapped:
    """A function that one or more runs, nested or in several threads, have given code of their own."""

    function: FunctionType
    runs: int = 0
    #: code of runs that have ended while another had swapped it again -> what was there before them
    ended: dict[int, tuple[CodeType, CodeType]] = field(default_factory=dict)


_lock = threading.RLock()
_swapped: dict[int, _Swapped] = {}


class _Swaps:
    """The swaps of one run; in whichever order runs end, the code that was there before them comes back."""

    def __init__(self) -> None:
        self.done: dict[int, tuple[_Swapped, CodeType, CodeType]] = {}  # the function, its code before, its copy
        self.copies: dict[int, tuple[CodeType, CodeType]] = {}  # id of the original -> (original, copy)

    def swap_known(self) -> None:
        """Swap every function that has, or contains, a code object that Dynamo knows."""
        known = {id(code): code for code in caches.known_codes() if not is_resume(code.co_name)}
        if not known:
            return
        files = {code.co_filename for code in known.values()}
        for candidate in gc.get_objects():
            if type(candidate) is FunctionType:
                code = candidate.__code__
                if code.co_filename in files and _holds(code, known):
                    self.swap(candidate)

    def trace_anew(self, target: Any) -> None:
        """Swap the code of one function, method, or of an object's own methods."""
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
            entry = _swapped.setdefault(id(function), _Swapped(function))
            before = function.__code__
            copy = self.copy(before)  # made first: `undo` may come at any moment
            self.done[id(function)] = (entry, before, copy)
            entry.runs += 1
            function.__code__ = copy

    def copy(self, code: CodeType) -> CodeType:
        """A code object that does the same and that Dynamo has never seen; so for the functions defined in it."""
        known = self.copies.get(id(code))
        if known is None:
            constants = tuple(self.copy(c) if isinstance(c, CodeType) else c for c in code.co_consts)
            # Code objects compare by value, and torch keeps some of what it knows of them by value: nothing uses the constant.
            known = self.copies[id(code)] = (code, code.replace(co_consts=(*constants, f"run {next(_runs)}")))
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
            for key, (entry, before, copy) in self.done.items():
                entry.ended[id(copy)] = (copy, before)
                if entry.function.__code__ is copy:  # else another run, or the user's code, has given it another one
                    while id(before) in entry.ended:
                        before = entry.ended[id(before)][1]
                    entry.function.__code__ = before
                entry.runs -= 1
                if entry.runs <= 0:
                    _swapped.pop(key, None)

    def _inner_copies(self) -> list[tuple[CodeType, weakref.ref[CodeType]]]:
        """(original, copy) of the functions that are defined in the swapped ones; the copies are not kept alive."""
        own = {id(copy) for _, _, copy in self.done.values()}
        return [(original, weakref.ref(copy)) for original, copy in self.copies.values() if id(copy) not in own]


def _restore_made(inner: list[tuple[CodeType, weakref.ref[CodeType]]]) -> None:
    """Give functions that the run has made, and that live on, the code that they would have without it.

    Once the run lets go of its copies, only such a function keeps one alive, or another run that has not ended.
    """
    alive = [(copy, original) for original, reference in inner if (copy := reference()) is not None]
    originals = {id(copy): original for copy, original in alive}
    copies = [copy for copy, _ in alive]
    for function in gc.get_referrers(*copies) if copies else ():  # looks at every object: only where there is one
        if type(function) is FunctionType and id(function.__code__) in originals:
            function.__code__ = originals[id(function.__code__)]


def _holds(code: CodeType, known: dict[int, CodeType]) -> bool:
    return any(id(c) in known for c in nested_code(code))
