"""Finds effects of a replayed call that cannot be undone: they are reported, or make `replay` refuse the call.

Files, loggers, sockets, queues, threads and locks are shared with other code, and Python does not show the state of every
object.  State that is not restored, but whose change is cheap to detect (`watched`), is reported after the replays.
"""

from __future__ import annotations

import contextvars
import dis
import functools
import io
import logging
import operator
import threading
import types
from types import FunctionType
from typing import Any

from dynascope.compiler.lab.replay.object_state import (
    CONTAINERS,
    DESCRIPTORS,
    NotRestored,
    State,
    attributes_of,
    is_array,
    library_states,
)
from dynascope.compiler.patching import ABSENT
from dynascope.compiler.source.code import nested_code

#: names of functions and modules whose effects are outside the process
OUTSIDE = frozenset((
    "open", "unlink", "rmtree", "rename", "mkdir", "makedirs", "touch", "mknod", "symlink", "symlink_to", "hardlink_to",
    "chmod", "copyfile", "copytree", "NamedTemporaryFile", "mkstemp", "mkdtemp", "system", "subprocess", "Popen",
    "check_call", "check_output", "fork", "kill", "urlopen", "urlretrieve", "requests", "httpx", "write_text",
    "write_bytes", "savefig", "imsave", "imwrite", "to_csv", "to_parquet", "to_pickle", "to_sql", "save", "savez",
    "savez_compressed", "savetxt", "tofile", "save_file", "save_pretrained", "push_to_hub", "dump",
))  # fmt: skip
#: built-in functions that wait for the user
_WAITING = frozenset(("input", "breakpoint"))
#: names of methods that log
LOGGING = frozenset(("debug", "info", "warning", "error", "exception", "critical", "log"))
#: packages whose objects are shared with other threads and processes, or shown to the user
_SHARED = frozenset((
    "_queue", "_thread", "anywidget", "asyncio", "concurrent", "ipywidgets", "matplotlib", "multiprocessing", "queue", "socket",
    "sqlite3", "subprocess", "threading", "zmq",
))  # fmt: skip
#: packages whose objects are tools, not the program's state
_TOOLS = frozenset(("IPython", "contextlib", "dynascope", "ipykernel", "logging", "traitlets"))
_LOCK, _RLOCK = type(threading.Lock()), type(threading.RLock())
_CACHE = type(functools.lru_cache(len))
_CODE_OF_LIBRARIES = ("builtins", "operator", "functools", "numpy", "torch", "itertools")
_SINGLE_USE = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
#: types whose objects have no state beyond what is restored
_NOTHING_HIDDEN = (
    *CONTAINERS, *DESCRIPTORS, tuple, frozenset, memoryview, property, staticmethod, classmethod,
    type, types.FunctionType, types.CellType, types.MethodType, types.BuiltinFunctionType,
    types.MappingProxyType, types.MethodWrapperType, functools.partial, type(...), type(NotImplemented),
)  # fmt: skip


def waiting_calls(function: FunctionType, names: set[str]) -> set[str]:
    """Names of functions that wait for the user, among those that a function uses; `self.input` is not one of them."""
    found = _WAITING & names - function.__globals__.keys()
    instructions = (i for code in nested_code(function.__code__) for i in dis.get_instructions(code)) if found else ()
    read = {i.argval for i in instructions if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return {"getpass"} & names | found & read


def described(value: Any) -> str | None:
    """A description of an object whose changes are not undone; None for any other object."""
    kind = type(value)
    if issubclass(kind, io.IOBase):
        return f"a file ({_file_name(value)})"
    if issubclass(kind, logging.Handler):
        return f"a log handler ({kind.__name__})"
    if issubclass(kind, logging.Logger):
        return f"a logger ({value.name})" if _is_heard(value) else None
    if lock_state(value) is None and (_package(kind) in _SHARED or _is_hidden(value)):
        return f"a {kind.__module__}.{kind.__qualname__}"
    return None


def is_opaque(value: Any) -> bool:
    """Whether an object is not followed, because what it refers to is not part of the user program's state."""
    kind = type(value)
    is_foreign = issubclass(kind, io.IOBase) or _package(kind) in _SHARED | _TOOLS or kind.__module__.startswith("torch._")
    return is_foreign and next(library_states(value), None) is None


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _is_heard(logger: Any) -> bool:
    """Whether a handler gets the logger's records; otherwise they go to the error stream, which is held back."""
    while logger is not None:
        if any(type(handler) is not logging.NullHandler for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def _file_name(file: Any) -> str:
    try:
        return str(getattr(file, "name", type(file).__name__))[:80]
    except Exception:  # the file is closed or detached
        return type(file).__name__


def _is_hidden(value: Any) -> bool:
    """Whether an object without attributes and slots may have state that Python does not show."""
    kind = type(value)
    if kind is object or isinstance(value, _NOTHING_HIDDEN) or kind.__module__ == "torch":
        return False
    if attributes_of(value) is not None:
        return False
    if any("__slots__" in vars(c) for c in kind.__mro__) or next(library_states(value), None) or is_array(value):
        return False
    if _package(kind) == "functools" or (callable(value) and _package(kind) in _CODE_OF_LIBRARIES):
        return False
    # a class that defines a hash of its own is compared by value, and so is not meant to be changed
    return _defined(kind, "__hash__") in (None, object.__hash__)


def _defined(kind: type, name: str) -> Any:
    return next((vars(c)[name] for c in kind.__mro__ if name in vars(c)), None)


def is_single_use(value: Any) -> bool:
    """Whether an object is a generator, a coroutine, or an iterator written in C: what a call uses up cannot be restored."""
    if isinstance(value, io.IOBase):
        return False
    return isinstance(value, _SINGLE_USE) or isinstance(_defined(type(value), "__next__"), types.WrapperDescriptorType)


def lock_state(value: Any) -> Any:
    """Whether a lock is held (an RLock: by this thread), or the counter of a semaphore; None for any other object."""
    kind = type(value)
    if kind is _LOCK:
        return value.locked()
    if kind is _RLOCK:
        return value._is_owned()
    return value._value if issubclass(kind, threading.Semaphore) else None


def is_spoiled(value: Any, before: Any) -> str | None:
    """Why the call cannot run again: a lock or semaphore is not in the state `before`, or a file was closed; None if it can."""
    if isinstance(value, io.IOBase):
        return f"it needs a file ({_file_name(value)}) that is closed now" if value.closed and not before else None
    if lock_state(value) == before:
        return None
    return "a lock or a semaphore is in another state than before the call, and the next call could wait for it forever"


def watched(value: Any) -> State | None:
    """State of a `functools` cache or a context variable, whose changes are only reported; None for any other object."""
    if type(value) is _CACHE:
        name = getattr(getattr(value, "__wrapped__", None), "__name__", "a function")
        sentence = f"the cache of {name} keeps what repeated calls have put into it"
        return State(lambda: value.cache_info().misses, functools.partial(_report, sentence), operator.eq)
    if type(value) is contextvars.ContextVar:
        sentence = f"the context variable {value.name} keeps what repeated calls have set"
        return State(lambda: value.get(ABSENT), functools.partial(_report, sentence))
    return None


def _report(sentence: str, _: Any) -> None:
    raise NotRestored(sentence)
