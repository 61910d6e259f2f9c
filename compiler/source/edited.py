"""Which of the user's files were edited after their code was loaded, and where that code stands in them now.

Code keeps the line numbers of the text that it was compiled from: a function that was not loaded again, or that IPython's
autoreload left alone because it did not change itself, would be shown with the lines of the present text at the old numbers.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import sys
from collections.abc import Iterable
from types import CodeType, FunctionType, ModuleType

from dynascope.compiler.source.code import REGION, is_resume, nested_code, same_code
from dynascope.compiler.source.code_swap import FUTURE_FLAGS, recompiled
from dynascope.compiler.source.origin import is_users

#: modification time and size of a file; None: there is no such file
_State = tuple[int, int] | None

#: each user's file -> its state when its code was loaded, as far as that is known
_loaded: dict[str, _State] = {}
#: the files that are known to be nobody's to edit
_others: set[str] = set()


def note_loaded(files: Iterable[str] | None = None) -> None:
    """Remember the present state of these files, or of those of all modules, unless an earlier state is remembered."""
    if files is None:
        modules = [m.__dict__ for m in list(sys.modules.values()) if type(m) is ModuleType]
        files = [file for module in modules if type(file := module.get("__file__")) is str]
    for file in set(files).difference(_loaded, _others):
        if file.endswith(".py") and is_users(file):
            _loaded[file] = _state(file)
        else:
            _others.add(file)


def refresh() -> set[str]:
    """The files that were edited since their code was loaded; torch, which reads linecache, then sees their present texts."""
    edited = {file for file, state in _loaded.items() if state is not None and _state(file) != state}
    for file in edited:
        linecache.checkcache(file)
    return edited


def located(function: FunctionType) -> CodeType | None:
    """Its code with the lines of its file's present text: its own if it has them; None if that text has no such code.

    The code that autoreload gives to an edited method is that of the text, but has other lines, and the name of another class:
    the function still has its own name.
    """
    code = function.__code__
    return _in_text(code, function.__qualname__) if is_outdated(code) else code


def _in_text(code: CodeType, *names: str) -> CodeType | None:
    """The equal code in its file's present text, the nearest if there are several of its name, or of `names`; else None."""
    text = "".join(linecache.getlines(code.co_filename))
    same = [c for c in _codes(text, code.co_filename, code.co_flags & FUTURE_FLAGS) if c.co_name == code.co_name]
    same = [c for c in same if _qualified(c) in (_qualified(code), *names) and same_code(c, code)]
    return min(same, key=lambda c: abs(c.co_firstlineno - code.co_firstlineno), default=None)


def is_outdated(code: CodeType) -> bool:
    """Whether the lines of the code are not those of its file's present text."""
    state = _loaded.get(code.co_filename)
    if state is None or _state(code.co_filename) == state or is_resume(code.co_name) or REGION in code.co_names:
        return False  # the code of a region is compiled from the present text
    now = _in_text(code)
    return now is None or (now.co_firstlineno, now.co_linetable) != (code.co_firstlineno, code.co_linetable)


def _qualified(code: CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)  # since Python 3.11


@functools.lru_cache(64)
def _codes(text: str, file: str, flags: int) -> list[CodeType]:
    """The code of the text, and of each statement by itself: Python calls what the same text imports by other instructions."""
    try:
        tree = ast.parse(text)
        trees = [tree, *(ast.Module([statement], []) for statement in tree.body)]
        return [code for one in trees for code in nested_code(recompiled(one, file, flags))]
    except (SyntaxError, ValueError):
        return []


def _state(file: str) -> _State:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
