"""The Python functions that live in this process, by the file of their code."""

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

#: makes a function's code from another text of its file
FromText = Callable[[str], CodeType]
#: for functions that their file does not define as such, such as a cell's statements
_from_text: weakref.WeakKeyDictionary[FunctionType, FromText] = weakref.WeakKeyDictionary()

_References = dict[str, list["weakref.ref[FunctionType]"]]


def functions_of(files: Collection[str]) -> list[FunctionType]:
    """Every living function whose code is from one of these files; looks at every object, unless `found_once` is in force."""
    index = _index.get()
    living: Iterable[object] = gc.get_objects() if index is None else index.living(files)
    more = _in_modules(files) if gc.get_freeze_count() else ()
    # the type is asked first: attributes of other objects may run code
    found = [f for f in itertools.chain(living, more) if type(f) is FunctionType and f.__code__.co_filename in files]
    return list({id(function): function for function in found}.values())


def set_from_text(function: FunctionType, make: FromText) -> None:
    """Register how the code of a function that its file does not define is made from another text of the file."""
    _from_text[function] = make


def from_text(function: FunctionType) -> FromText | None:
    """What `set_from_text` has registered; None for a function that its file defines."""
    return _from_text.get(function)


def _in_modules(files: Collection[str]) -> Iterator[object]:
    """What the modules of these files and their classes hold: gc.get_objects() lacks what was there at a gc.freeze()."""
    for module in list(sys.modules.values()):
        if type(module) is ModuleType and vars(module).get("__file__") in files:
            for value in list(vars(module).values()):
                yield value
                yield from list(vars(value).values()) if isinstance(value, type) else ()


@contextlib.contextmanager
def found_once() -> Iterator[None]:
    """Look for functions once for the duration, and again only after an import; what calls create meanwhile is not found."""
    token = _index.set(_Index())
    try:
        yield
    finally:
        _index.reset(token)


class _Index:
    """Weak references to all functions, made when they are first asked for."""

    def __init__(self) -> None:
        self._references: _References = {}
        self._modules = 0

    def living(self, files: Collection[str]) -> Iterator[FunctionType | None]:
        """The functions of these files; None for those that are gone."""
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
