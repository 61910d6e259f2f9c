"""Objects of Python's own machinery through which a call leaves something behind, and what `world` does about them.

`inside_of()` tells what can be reached through one (the contents of a queue, of a weak dictionary), so that it is put back;
`told_of()` names those of which no one can undo what a call does with them: files, loggers, queues that others read.
"""

from __future__ import annotations

import contextvars
import functools
import gc
import io
import logging
import os
import queue
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

from dynascope.compiler.torch_private import custom_operators

_NOT_SET = object()
_LOCK, _RLOCK = type(threading.Lock()), type(threading.RLock())
_CACHE = type(functools.lru_cache(len))
_KINDS = (io.IOBase, threading.Semaphore, logging.Logger, logging.Handler, queue.Queue, weakref.ReferenceType,
          weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)  # fmt: skip
_LOGGING = frozenset(("debug", "info", "warning", "error", "exception", "critical", "log"))
_ENVIRONMENT = frozenset(("environ", "environb", "putenv", "unsetenv"))
#: what is in packages like these is shared with others: processes, sockets, pools of threads
_SHARED = frozenset(("multiprocessing", "socket", "subprocess", "concurrent", "zmq", "asyncio"))


#: names whose calls reach outside Python's objects
OUTSIDE = frozenset((
    "open", "unlink", "rmtree", "rename", "mkdir", "makedirs", "touch", "mknod", "symlink", "symlink_to", "hardlink_to",
    "chmod", "copyfile", "copytree", "NamedTemporaryFile", "mkstemp", "mkdtemp", "system", "subprocess", "Popen",
    "check_call", "check_output", "fork", "kill", "urlopen", "urlretrieve", "requests", "httpx", "write_text",
    "write_bytes", "savefig", "imsave", "imwrite", "to_csv", "to_parquet", "to_pickle", "to_sql", "save", "savez",
    "savez_compressed", "savetxt", "tofile", "save_file", "save_pretrained", "push_to_hub", "dump",
))  # fmt: skip
#: cannot be repeated without the user noticing
ASKS = frozenset(("input", "getpass", "breakpoint"))


class Lost(Exception):
    """What could not be put back; the message is a whole sentence."""


def concerns(kind: type) -> bool:
    """Whether objects of this class are told of or looked into here."""
    known = (_CACHE, _LOCK, _RLOCK, threading.local, contextvars.ContextVar, type(os.environ))
    if kind in known or issubclass(kind, _KINDS):
        return True
    return kind.__module__ in ("torch._ops", "torch._library.custom_ops") or _is_shared(kind)


def _is_shared(kind: type) -> bool:
    package = kind.__module__.partition(".")[0]
    return package in _SHARED and not issubclass(kind, (types.FunctionType, type))


def told_of(value: Any) -> str | None:
    """An object whose changes no one can undo, in words; None for every other."""
    kind = type(value)
    if issubclass(kind, io.IOBase):
        return None if kind in (io.StringIO, io.BytesIO) or _is_only_read(value) else f"a file ({_name_of(value)})"
    if issubclass(kind, logging.Logger):
        return f"a logger ({value.name})" if _is_heard(value) else None
    if issubclass(kind, logging.Handler):
        return f"a {kind.__name__} of logs"
    if issubclass(kind, queue.Queue):
        return "a queue"
    return f"a {kind.__module__}.{kind.__name__}" if _is_shared(kind) else None


def _is_only_read(file: Any) -> bool:
    """Whether only the position of a file can change, and can be told."""
    try:
        return bool(file.readable() and not file.writable() and file.seekable() and file.tell() >= 0)
    except Exception:  # a closed one; a text that is being iterated over does not tell
        return False


def how_taken(value: Any) -> Any:
    """How a lock or a semaphore is; None for all else.  For one that a call takes and keeps the next call would wait."""
    kind = type(value)
    if kind is _LOCK:
        return value.locked()
    if kind is _RLOCK:
        return value._is_owned()
    return value._value if issubclass(kind, threading.Semaphore) else None


def _is_heard(logger: Any) -> bool:
    """Whether anything but the error stream, which is held back, gets the records."""
    while logger is not None:
        if any(type(handler) is not logging.NullHandler for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def _name_of(file: Any) -> str:
    try:
        return str(getattr(file, "name", type(file).__name__))[:80]
    except Exception:  # a closed or detached one
        return type(file).__name__


def inside_of(value: Any) -> list[Any]:
    """What can be reached through an object of Python's machinery."""
    kind = type(value)
    if issubclass(kind, queue.Queue):
        return [value.queue]
    if issubclass(kind, weakref.ReferenceType):
        return [value()]
    if issubclass(kind, weakref.WeakKeyDictionary):
        return [value.data, *value.keys()]  # kept alive until the references to them are put back
    if issubclass(kind, (weakref.WeakValueDictionary, weakref.WeakSet)):
        return [value.data, *(value.values() if isinstance(value, weakref.WeakValueDictionary) else value)]
    if kind is _CACHE:
        found = gc.get_referents(value)
        kept = [v for r in found for v in (r.values() if type(r) is dict else [r])]
        return [v for v in kept if not isinstance(v, type) and type(v).__name__ != "_lru_list_elem"]
    if kind is threading.local:
        return [value.__dict__]  # this thread's
    if kind is contextvars.ContextVar:
        return [value.get(None)]
    return custom_operators.functions_of(value)


def named(module: types.ModuleType, names: frozenset[str]) -> list[Any]:
    """What functions that use these names reach through a module of Python's or torch's own."""
    if module is os and names & _ENVIRONMENT:
        return [os.environ]
    if module is logging and names & _LOGGING:
        return [logging.getLogger()]
    return custom_operators.defined(names) if _has_operators(module, names) else []


def told_of_names(module: types.ModuleType, names: frozenset[str]) -> list[str]:
    """Custom operators that were not defined in Python, where Python's state behind them could be followed."""
    return custom_operators.foreign(names) if _has_operators(module, names) else []


def _has_operators(module: types.ModuleType, names: frozenset[str]) -> bool:
    return module.__name__ == "torch.ops" or (module.__name__ == "torch" and "ops" in names)


def putter(value: Any) -> Callable[[], Any] | None:
    """Puts such an object back as it is now; None where there is nothing to put back, or only what `inside_of` tells."""
    kind = type(value)
    if kind is type(os.environ):
        return _environment_putter(value)
    if kind is contextvars.ContextVar:
        return _variable_putter(value)
    if kind is _CACHE:
        return _cache_putter(value)
    if kind in (io.StringIO, io.BytesIO) and not value.closed:
        return _memory_putter(value)
    if issubclass(kind, io.IOBase) and _is_only_read(value):
        return _position_putter(value)
    if issubclass(kind, queue.Queue):
        return _attribute_putter(value, "unfinished_tasks")
    return None


def _environment_putter(environment: Any) -> Callable[[], bool]:
    kept = dict(environment)

    def put() -> bool:
        now = dict(environment)
        for name in now.keys() - kept.keys():
            del environment[name]
        for name, text in kept.items():
            if now.get(name) != text:
                environment[name] = text
        return now != kept

    return put


def _variable_putter(variable: contextvars.ContextVar[Any]) -> Callable[[], bool]:
    kept: Any = variable.get(_NOT_SET)

    def put() -> bool:
        if variable.get(_NOT_SET) is kept:
            return False
        if kept is not _NOT_SET:
            variable.set(kept)
            return True
        try:
            default = contextvars.Context().run(variable.get)
        except LookupError:
            raise Lost(f"the context variable {variable.name} was not set before: it keeps what repeated calls set") from None
        variable.set(default)
        return True

    return put


def _cache_putter(cache: Any) -> Callable[[], bool]:
    many = cache.cache_info().currsize

    def put() -> bool:
        if cache.cache_info().currsize > many:
            name = getattr(getattr(cache, "__wrapped__", None), "__name__", "a function")
            raise Lost(f"the cache of {name} keeps what repeated calls have put into it")
        return False

    return put


def _memory_putter(file: Any) -> Callable[[], bool]:
    kept, place = file.getvalue(), file.tell()

    def put() -> bool:
        if file.closed:
            raise Lost(f"a {type(file).__name__} could not be put back: it is closed")
        if file.tell() == place and file.getvalue() == kept:
            return False
        file.seek(0)
        file.truncate()
        file.write(kept)
        file.seek(place)
        return True

    return put


def _position_putter(file: Any) -> Callable[[], bool]:
    place = file.tell()

    def put() -> bool:
        if file.closed:
            raise Lost(f"a file ({_name_of(file)}) could not be put back: it is closed")
        if _is_only_read(file) and file.tell() == place:
            return False
        file.seek(place)
        return True

    return put


def _attribute_putter(owner: Any, name: str) -> Callable[[], bool]:
    kept = getattr(owner, name)

    def put() -> bool:
        if getattr(owner, name) == kept:
            return False
        setattr(owner, name, kept)
        return True

    return put
