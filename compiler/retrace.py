"""Makes Dynamo retrace functions that it has compiled before.

Dynamo keeps compiled code, skip marks and resume functions for the code object of each function, so a second run that calls
the same functions would compile nothing.  During a run, `retracing()` replaces the code objects of such functions with copies.
Afterwards it restores the originals, so that the code compiled before the run is used again.  Dynamo is never reset.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import itertools
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from dynascope.compiler.capture.torch_private import caches, marks
from dynascope.compiler.patching import interrupts_deferred
from dynascope.compiler.source import edited
from dynascope.compiler.source.code import STATEMENTS, is_resume, nested_code
from dynascope.compiler.source.code_swap import Swaps, functions_of
from dynascope.compiler.source.origin import in_torch


@contextlib.contextmanager
def retracing(keep: bool = False) -> Iterator[Callable[[Any], None]]:
    """Replace the code objects in `caches.known_codes()`; yields `trace_anew`, which replaces those of a target.

    A target is a function, a bound method, or an object such as an `nn.Module`: then all methods of its class and its bases,
    except torch's.  With `keep`, targets and what is inlined in them keep their new code, and with it what is compiled for it.
    Dynamo also forgets, for the duration, which sizes are dynamic because of earlier runs, and then those of the copies.
    """
    run = _Retraced()
    targets, gone = list[FunctionType](), list[CodeType]()

    def trace_anew(target: Any) -> None:
        for function in _functions_of(target):
            targets.append(function)
            run.swap(function)

    with caches.forgotten_shapes(gone):
        try:
            run.swap_known()
            yield trace_anew
        finally:
            with interrupts_deferred():
                gone += run.undo(targets if keep else [])


def _functions_of(target: Any) -> list[FunctionType]:
    """The function of a function or method, or all methods of an object's class and its bases, except torch's."""
    target = marks.inner_function(target)
    function = getattr(target, "__func__", target)
    if isinstance(function, FunctionType):
        return [function]
    methods = (v for cls in type(target).__mro__ for v in list(vars(cls).values()) if isinstance(v, FunctionType))
    return [method for method in methods if not in_torch(method.__code__.co_filename)]


_runs = itertools.count()
#: up to so many code objects, what refers to them is found faster than all functions
_FEW = 50


class _Retraced:
    """The functions that one run has given copies of their code objects."""

    def __init__(self) -> None:
        self.swaps = Swaps()
        #: ids of the original and of the code whose lines the copy has -> (original, copy)
        self.copies: dict[tuple[int, int], tuple[CodeType, CodeType]] = {}
        #: id of a code whose file was edited -> equal code of the present text, whose lines and name the copy has
        self.places: dict[int, CodeType] = {}

    def swap_known(self) -> None:
        """Swap the code of functions if Dynamo knows it or that of a function defined in it, or if its lines are outdated."""
        known = {id(code): code for code in caches.known_codes() if not is_resume(code.co_name)}
        files = {code.co_filename for code in known.values()}
        edited.note_loaded(files)
        files |= (now_edited := edited.refresh())
        # a function that defines a nested one does not refer to its code, but to a tuple that the garbage collector leaves out
        is_any_nested = any(code.co_flags & inspect.CO_NESTED for code in known.values())
        codes = () if now_edited or is_any_nested or len(known) > _FEW else known.values()
        for function in functions_of(files, codes) if files else ():
            code = function.__code__
            is_known = any(id(inner) in known for inner in nested_code(code))
            if is_known or (code.co_filename in now_edited and edited.is_outdated(code)):
                self.swap(function)

    def swap(self, function: FunctionType) -> None:
        if function in self.swaps:
            return
        before = function.__code__
        now = edited.located(function)
        if now is not None and now is not before:
            self.places |= {id(old): new for old, new in zip(nested_code(before), nested_code(now), strict=False)}
        self.swaps.put(function, self.copy(before))

    def copy(self, code: CodeType) -> CodeType:
        """An equivalent code object that is new to Dynamo, as are the code objects of the functions defined in it."""
        at = self.places.get(id(code), code)
        key = id(code), id(at)  # of functions with one code, perhaps only one has the name by which the text has it
        if key not in self.copies:
            constants = tuple(self.copy(c) if isinstance(c, CodeType) else c for c in code.co_consts)
            # code objects are compared by value, also as keys of torch's tables: the unused constant makes the copy differ
            self.copies[key] = (code, at.replace(co_consts=(*constants, f"run {next(_runs)}")))
        return self.copies[key][1]

    def undo(self, keep: list[FunctionType]) -> list[CodeType]:
        """Restore all code, also that of functions which copied code has created during the run and which still exist.

        The functions in `keep` are left as they are, but for a cell's statements, which do not run again, and so are those
        whose code is inlined there: what is compiled is used only while they have that code.  Returns what is gone, with its
        resume functions.
        """
        codes = [function.__code__ for function in keep if function.__code__.co_name != STATEMENTS]
        guarded = caches.codes_in_guards(inner for code in codes for inner in nested_code(code))
        kept = [inner for code in self.swaps.keep(guarded.union(map(id, codes))) for inner in nested_code(code)]
        left = set(map(id, kept))
        self.copies = {key: pair for key, pair in self.copies.items() if id(pair[1]) not in left}
        self.swaps.undo()
        gone = caches.forget_resumes([copy for _, copy in self.copies.values()])
        constants = {id(constant) for _, copy in self.copies.values() for constant in copy.co_consts}
        inner = [(original, weakref.ref(copy)) for original, copy in self.copies.values() if id(copy) in constants]
        self.copies.clear()
        # without the run, only such a function, or another run that has not ended, keeps a copy alive
        alive = {id(copy): (copy, original) for original, reference in inner if (copy := reference()) is not None}
        copies = [copy for copy, _ in alive.values()]
        for function in gc.get_referrers(*copies) if copies else ():  # slow: it searches all objects
            if type(function) is FunctionType and id(function.__code__) in alive:
                function.__code__ = alive[id(function.__code__)][1]
        return gone
