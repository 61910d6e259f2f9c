"""Finds the functions in this process whose code is from a given file."""

from __future__ import annotations

import contextlib
import gc
import itertools
import sys
import weakref
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextvars import ContextVar
from types import CodeType, FunctionType, ModuleType

#: makes the code of a function from a changed text of its file
FromText = Callable[[str], CodeType]
#: functions that no `def` in their file's text defines, because they run a cell's statements -> how to make their code
_from_text: weakref.WeakKeyDictionary[FunctionType, FromText] = weakref.WeakKeyDictionary()

_References = dict[str, list["weakref.ref[FunctionType]"]]


def functions_of(files: Collection[str]) -> list[FunctionType]:
    """All existing functions whose code is from one of these files; outside of `found_once`, each call searches all objects."""
    index = _index.get()
    living: Iterable[object] = gc.get_objects() if index is None else index.living(files)
    objects = itertools.chain(living, _in_modules(files))
    # check the type first: reading attributes of other objects may run code
    found = [f for f in objects if type(f) is FunctionType and f.__code__.co_filename in files]
    return list({id(function): function for function in found}.values())


def set_from_text(function: FunctionType, make: FromText) -> None:
    """Register `make`, which makes the code from a changed text, for a function that no `def` in its file's text defines."""
    _from_text[function] = make


def from_text(function: FunctionType) -> FromText | None:
    """What `set_from_text` registered for a function; None for a function that a `def` in its file's text defines."""
    return _from_text.get(function)


def _in_modules(files: Collection[str]) -> Iterator[object]:
    """The values in the modules of these files and in their classes; gc.get_objects() omits those that gc.freeze() froze."""
    for module in list(sys.modules.values()):
        if type(module) is ModuleType and vars(module).get("__file__") in files:
            for value in list(vars(module).values()):
                yield value
                # not `isinstance`, which reads `__class__`: that of a lazy object runs code
                yield from list(vars(value).values()) if issubclass(type(value), type) else ()


@contextlib.contextmanager
def found_once() -> Iterator[None]:
    """In this block, search all objects only at the first use and after each import.

    Functions created after such a search are found only among the values of modules and their classes, until the next one.
    """
    token = _index.set(_Index())
    try:
        yield
    finally:
        _index.reset(token)


class _Index:
    """Weak references to all functions by file, collected at first use and again after each import."""

    def __init__(self) -> None:
        self._references: _References = {}
        self._modules = 0

    def living(self, files: Collection[str]) -> Iterator[FunctionType | None]:
        """The functions of these files; None for each that no longer exists."""
        return (reference() for file in files for reference in self._known().get(file, ()))

    def _known(self) -> _References:
        if self._modules != len(sys.modules):
            found: _References = defaultdict(list)
            for function in gc.get_objects():
                if type(function) is FunctionType:
                    found[function.__code__.co_filename].append(weakref.ref(function))
            self._references, self._modules = found, len(sys.modules)
        return self._references


_index: ContextVar[_Index | None] = ContextVar("functions found once", default=None)
