"""Finds the objects that a call can reach: from the function and its arguments through everything that they refer to.

The search follows arguments, functions, their closures and defaults, the globals that the user's functions name, classes,
modules, optimizers, containers, attributes, gradients, and the leaves from which a tensor was computed.  It does not follow
the internals of libraries' functions, nor objects that are shared with other code: files, loggers, sockets, queues, threads and
locks.  Python does not show the state of every object, so effects on these cannot be undone: they are reported
(`Reachable.side_effects`), or make `RecordedCall` refuse the call.
"""

from __future__ import annotations

import contextvars
import functools
import gc
import inspect
import io
import operator
import sys
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

import torch

from dynascope.compiler.capture.torch_private import marks, tensors
from dynascope.compiler.lab.objects import (
    CONTAINERS,
    DESCRIPTORS,
    GlobalName,
    NotRestored,
    State,
    attributes_of,
    has_gradient,
    is_array,
    library_states,
    slot_values,
)
from dynascope.compiler.patching import ABSENT
from dynascope.compiler.source.code import globals_used, names_used
from dynascope.compiler.source.origin import is_users

#: at most this many objects are inspected
MOST_OBJECTS = 200_000

_LEAVES = (type(None), bool, int, float, complex, str, bytes, range, slice, ModuleType, CodeType, FrameType, TracebackType)
_LIBRARY_MODULES = frozenset(("builtins", "torch", "collections", "typing", "numpy", *sys.builtin_module_names)) - {"__main__"}
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
    type(inspect.FullArgSpec.args),  # a field of a named tuple's class
)  # fmt: skip


class Reachable:
    """The objects that can be reached from `roots`; those for which `enters` is false are left out."""

    def __init__(self, roots: Iterable[Any], enters: Callable[[Any], bool] = lambda value: True) -> None:
        #: the objects that the user's program can change
        self.objects: list[Any] = []
        self._seen: dict[int, Any] = {}
        self._enters = enters
        self._global_names: dict[tuple[int, str], GlobalName] = {}
        self._nodes: dict[int, Any] = {}  # nodes of autograd's graphs that were visited
        self._effects: dict[str, None] = {}
        #: names of globals and attributes in the code of the user's functions
        self.names: set[str] = set()
        #: functions that wait for the user, which the user's functions call
        self.waiting: set[str] = set()
        #: generators, coroutines, and other iterators that a call could use up
        self.single_use: list[Any] = []
        #: locks, semaphores and files, with the state that they must have for another call
        self.fragile: list[tuple[Any, Any]] = []
        self.is_complete = True
        self.add(roots)

    def add(self, roots: Iterable[Any], without: Collection[int] = ()) -> None:
        """Also follow these roots; objects whose id is in `without` are left out."""
        todo = deque(roots)
        while todo and len(self._seen) < MOST_OBJECTS:
            value = todo.popleft()
            is_new = not (isinstance(value, _LEAVES) or id(value) in self._seen or id(value) in without)
            if is_new and value is not ABSENT and self._enters(value):
                self._seen[id(value)] = value
                todo.extend(self._referents(value))
        self.is_complete = self.is_complete and not todo

    def names_in(self, namespace: dict[str, Any]) -> list[str]:
        """The names that the user's functions may read or bind in this namespace."""
        return [entry.name for entry in self._global_names.values() if entry.namespace is namespace]

    def side_effects(self) -> list[str]:
        """Sentences on effects that a call may have and that are not undone."""
        sentences = []
        called = sorted(OUTSIDE & self.names)
        if called:
            words = ", ".join(f"{name}()" for name in called)
            sentences.append(f"the call uses {words}: what that does outside Python is done again by each repeated call")
        if not self.is_complete:
            sentences.append("the call can reach very many objects: not everything that it changes is restored")
        if self._effects:
            first, more = list(self._effects)[:4], ["others"] if len(self._effects) > 4 else []
            sentences.append(f"the call can reach {', '.join([*first, *more])}: what it changes there is not undone")
        return sentences

    # -- one object ------------------------------------------------------------------------------------------------

    def _referents(self, value: Any) -> Iterable[Any]:
        """The objects that `value` leads to; adds `value` to `objects` unless it is library code, shared, or single-use."""
        if isinstance(value, GlobalName):
            self.objects.append(value)
            return [value.namespace.get(value.name)]
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if isinstance(value, type) and not _is_users_module(value.__module__):
            return []
        if is_single_use(value):
            self.single_use.append(value)
            return []
        self._note(value)
        if is_opaque(value):
            return [_compiled_from(value), tensors.python_function(value)]
        self.objects.append(value)
        if isinstance(value, type):
            return [*vars(value).values(), *value.__bases__]
        inside = self._of_tensor(value) if isinstance(value, torch.Tensor) else _plain_referents(value)
        return [*inside, *_attributes(value), *(held for _, held in slot_values(value))]

    def _note(self, value: Any) -> None:
        effect, lock = described(value), lock_state(value)
        if effect is not None:
            self._effects[effect] = None
        if lock is not None or isinstance(value, io.IOBase):
            self.fragile.append((value, value.closed if isinstance(value, io.IOBase) else lock))

    def _of_function(self, function: FunctionType) -> Iterator[Any]:
        yield marks.original_in(vars(function)) or vars(function).get("__wrapped__")
        if not is_users(function.__code__.co_filename):
            return  # the closure and globals of a library's function are not followed
        self.objects.append(function)
        yield from (function.__defaults__, function.__kwdefaults__, *_attributes(function), *(function.__closure__ or ()))
        names, own = names_used(function.__code__), globals_used(function.__code__)
        self.names |= names
        # `self.input` waits for nobody
        self.waiting |= {"getpass"} & names | (_WAITING & own - function.__globals__.keys())
        for name in sorted(own):
            named = self._name(function.__globals__, name)
            yield named
            if isinstance(value := function.__globals__.get(name), ModuleType):
                yield from self._of_module(value, names)

    def _of_module(self, module: ModuleType, names: set[str]) -> Iterator[Any]:
        """The objects that a function with these names in its code can reach through a Python module."""
        if _is_users_module(module.__name__):
            yield from (self._name(vars(module), name) for name in sorted(names))
        elif module.__name__ == "torch.ops" or (module.__name__ == "torch" and "ops" in names):
            operators = [f"the operators torch.ops.{n}" for n in tensors.namespaces(names)]
            self._effects.update(dict.fromkeys(operators))

    def _name(self, namespace: dict[str, Any], name: str) -> GlobalName:
        return self._global_names.setdefault((id(namespace), name), GlobalName(namespace, name))

    def _of_tensor(self, tensor: Any) -> list[Any]:
        flatten = getattr(type(tensor), "__tensor_flatten__", None)
        if flatten is not None:
            return [vars(tensor).get(name) for name in flatten(tensor)[0]]
        gradient = tensor.grad if has_gradient(tensor) else None
        return [gradient, *tensors.hooks_of(tensor), *self._leaves_behind(tensor)]

    def _leaves_behind(self, tensor: Any) -> Iterator[Any]:
        """The leaves from which a tensor was computed: calling backward on it changes their gradients."""
        todo = [tensor.grad_fn]
        while todo:
            node = todo.pop()
            if node is not None and id(node) not in self._nodes:
                self._nodes[id(node)] = node
                yield getattr(node, "variable", None)
                todo.extend(before for before, _ in node.next_functions)


def _attributes(value: Any) -> list[Any]:
    if is_array(value) and isinstance(value, sys.modules["numpy"].memmap):
        return []  # a memmap's attributes lead to its open file, whose contents are restored with the array's values
    return list((attributes_of(value) or {}).values())


def _plain_referents(value: Any) -> list[Any]:
    """The objects that an object refers to: for most kinds of objects, those that Python's garbage collector knows."""
    if is_array(value):
        base = [value.base] if is_array(value.base) else []
        return [*base, *(sys.modules["numpy"].asarray(value).ravel().tolist() if value.dtype.hasobject else ())]
    if isinstance(value, weakref.ReferenceType):
        return [value()]
    if isinstance(value, types.BuiltinFunctionType):
        return [value.__self__]
    referents = gc.get_referents(value)
    if isinstance(value, (*CONTAINERS, tuple, frozenset, types.CellType)):
        return referents
    # a dict that an object implemented in C holds is internal to it: follow only the dict's values
    return [inner for v in referents for inner in (v.values() if type(v) is dict else [v])]


def _compiled_from(value: Any) -> Any:
    """The module or function from which a compiled object was made; None for any other object."""
    attributes = attributes_of(value) or {}
    modules = attributes.get("_modules")
    inner = modules.get("_orig_mod") if type(modules) is dict else None
    return inner if inner is not None else marks.original_in(attributes)


def _is_users_module(name: str) -> bool:
    """Whether the module of this name is the user's: not a library's, and not part of Python."""
    if name.partition(".")[0] in _LIBRARY_MODULES:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or is_users(file)


# -- what is not restored ------------------------------------------------------------------------------------------


def described(value: Any) -> str | None:
    """A description of an object whose changes are not undone; None for any other object."""
    kind = type(value)
    if issubclass(kind, io.IOBase):
        return f"a file ({_file_name(value)})"
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
