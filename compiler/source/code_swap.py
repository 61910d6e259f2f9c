"""Finds the functions in this process whose code is from a file, compiles code for them, and puts it in place of theirs.

The function object stays, so that the new code is run whichever name, attribute or container leads to the function.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import gc
import sys
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextvars import ContextVar
from types import CodeType, FunctionType, ModuleType

from dynascope.compiler.parsing import no_syntax_warnings
from dynascope.compiler.patching import interrupts_deferred

#: functions that no `def` in their file's text defines, because they run a cell's statements -> what makes their code from a
#: changed text of the file
code_from_text: weakref.WeakKeyDictionary[FunctionType, Callable[[str], CodeType]] = weakref.WeakKeyDictionary()

_References = dict[str, list["weakref.ref[FunctionType]"]]
#: in `found_once`: how many modules there were when all objects were searched -> the functions by file
_found: ContextVar[dict[int, _References] | None] = ContextVar("functions found once", default=None)


def functions_of(files: Collection[str], codes: Collection[CodeType] = ()) -> list[FunctionType]:
    """All existing functions whose code is from one of these files; outside of `found_once`, each call searches all objects.

    With `codes`, it may leave out functions that run none of these: to search for what refers to few objects is faster.
    """
    known, modules = _found.get(), len(sys.modules)
    if known is not None and modules not in known:
        known.clear()
        references = known[modules] = defaultdict(list)
        for function in gc.get_objects():
            if type(function) is FunctionType:
                references[function.__code__.co_filename].append(weakref.ref(function))
    if known is not None:
        living = [reference() for file in files for reference in known[modules].get(file, ())]
    else:
        living = gc.get_referrers(*codes) if codes else gc.get_objects()
    hidden = (f for o in _in_modules(files) if type(o) is FunctionType for f in _with_wrapped(o))
    # check the type first: reading attributes of other objects may run code
    found = [o for o in (*living, *hidden) if type(o) is FunctionType and o.__code__.co_filename in files]
    return list({id(function): function for function in found}.values())


def _with_wrapped(function: FunctionType) -> Iterator[FunctionType]:
    """A function and those that its decorators (`functools.wraps`) have put into it: no name is bound to them."""
    seen = set[int]()
    value: object = function
    while type(value) is FunctionType and id(value) not in seen:
        seen.add(id(value))
        yield value
        value = vars(value).get("__wrapped__")


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
    token = _found.set({})
    try:
        yield
    finally:
        _found.reset(token)


# -- swapping ----------------------------------------------------------------------------------------------------------

#: the flags of code objects that stand for `from __future__ import ...`
FUTURE_FLAGS = functools.reduce(int.__or__, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))


def recompiled(source: str | ast.Module, file: str, flags: int) -> CodeType:
    """The code of a file's module from a changed text or tree; `flags`: those of code from the file, for its future imports."""
    with no_syntax_warnings():
        code: CodeType = compile(source, file, "exec", flags & FUTURE_FLAGS, dont_inherit=True)
        return code


class Swaps:
    """Code objects that one owner has put in place of functions' own.

    Owners can be nested or in several threads, and can end in any order: each function gets back what was there before all of
    the owners that have ended.  Code that the user's program has set meanwhile stays.
    """

    def __init__(self) -> None:
        self._put: dict[int, tuple[FunctionType, CodeType]] = {}  # id of the function -> (function, the code put into it)

    def __contains__(self, function: FunctionType) -> bool:
        return id(function) in self._put

    def put(self, function: FunctionType, code: CodeType) -> None:
        """Give a function, once for each owner, another code object."""
        with interrupts_deferred(), _lock:
            self._put[id(function)] = (function, code)
            _replaced[id(function), id(code)] = function.__code__
            function.__code__ = code

    def keep(self, ids: Collection[int]) -> list[CodeType]:
        """Leave the functions these code objects, and return those left: none that has replaced another owner's code."""
        with interrupts_deferred(), _lock:
            put = [(id(function), id(code)) for function, code in self._put.values() if id(code) in ids]
            kept = [key for key in put if (key[0], id(_replaced[key])) not in _replaced]
            for key in kept:
                del _replaced[key]
            return [self._put.pop(function)[1] for function, _ in kept]

    def undo(self) -> None:
        """Restore all functions; for those that other owners have swapped since, let these restore them."""
        with interrupts_deferred(), _lock:
            for function, code in self._put.values():
                before = _replaced.pop((id(function), id(code)))
                if function.__code__ is code:
                    function.__code__ = before
                for key, replaced in _replaced.items():
                    if key[0] == id(function) and replaced is code:
                        _replaced[key] = before
            self._put.clear()


_lock = threading.RLock()
#: (id of a function, id of the code put into it) -> the code that was there; an owner keeps both alive
_replaced: dict[tuple[int, int], CodeType] = {}
