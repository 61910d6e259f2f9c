"""The objects of the user's program that a call can reach and change: one case for each kind of object.

`states_of` reads and writes the state of an object, `places_of` names what it holds, `Reachable` finds the objects that a call
can reach, and `watched` is the state whose changes are found, but not restored.

Inspecting an object avoids the user's code: attributes are read from `__dict__`, containers with the methods of the built-in
class, and their contents are compared by identity, not by equality.

The search goes from the function and its arguments through everything that they refer to.  It follows arguments, functions,
their closures and defaults, the globals that the user's functions name, classes, modules, optimizers, containers, attributes,
gradients, and the leaves from which a tensor was computed.  It does not follow the internals of libraries' functions, nor
objects that are shared with other code: files, sockets, queues, threads and locks.  Python does not show the state of every
object, so effects on these cannot be undone: they are reported (`Reachable.side_effects`), or make `RecordedCall` refuse the
call.  What classes hold under names that the code of the call does not have comes last: it is restored, but the call does not
use it.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import gc
import inspect
import io
import operator
import random
import sys
import threading
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from types import CellType, CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any, NamedTuple

import torch

from dynascope.compiler.capture.torch_private import marks, tensors
from dynascope.compiler.patching import ABSENT, own, put, value_or_absent
from dynascope.compiler.report import listed
from dynascope.compiler.source.code import globals_used, names_called, names_used
from dynascope.compiler.source.origin import is_users, module_of

PLAIN = (bool, int, float, complex, str, bytes)
CONTAINERS = (OrderedDict, dict, list, set, deque)
#: class attributes of these types hold no state
DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType,
               types.MethodDescriptorType, types.ClassMethodDescriptorType)  # fmt: skip


class NotRestored(Exception):
    """A change was detected and cannot be undone; the message is a whole sentence."""


def identical(now: Any, before: Any) -> bool:
    """Whether two sequences hold the same objects in the same order."""
    return len(now) == len(before) and all(map(operator.is_, now, before))


def same_numbers(now: Any, before: Any) -> bool:
    """Whether two states of a generator of random numbers, of Python or NumPy, are equal."""
    return bool(_numbers(now) == _numbers(before))


@dataclass(slots=True)
class State:
    """One piece of state that a call can change, and its value when this `State` was created."""

    read: Callable[[], Any]
    write: Callable[[Any], Any]
    same: Callable[[Any, Any], bool] = operator.is_
    #: copies a value that can be changed in place
    keep: Callable[[Any], Any] = lambda now: now
    before: Any = field(init=False)

    def __post_init__(self) -> None:
        self.before = self.keep(self.read())

    def restore(self, copied: Callable[[Any], Any] = lambda kept: kept) -> bool:
        """Write the earlier value, or a copy of it, unless it is the current one; returns whether it was written."""
        value = copied(self.before)
        if self.same(self.read(), value):
            return False
        self.write(value)
        return True


class GlobalName(NamedTuple):
    """A name in a namespace, bound or not."""

    namespace: dict[str, Any]
    name: str


def states_of(value: Any) -> Iterator[State]:
    """All state of one object that can be restored, except the bytes of tensors (`storage_state`)."""
    if isinstance(value, GlobalName):
        yield State(functools.partial(own, *value), functools.partial(put, *value))
    elif isinstance(value, CellType):
        yield _optional(*(functools.partial(f, value, "cell_contents") for f in (getattr, setattr, delattr)))
    elif isinstance(value, type):
        yield State(functools.partial(_class_values, value), functools.partial(_set_class_values, value), identical)
    else:
        yield State(lambda: type(value), lambda kept: object.__setattr__(value, "__class__", kept))  # first: it has the slots
        if isinstance(value, torch.Tensor):
            yield from _tensor_states(value)
        elif isinstance(value, CONTAINERS):
            yield State(functools.partial(contents_of, value), functools.partial(_refill, value), identical)
        else:
            yield from library_states(value)
        if attributes_of(value) is not None:
            yield State(lambda: contents_of(attributes_of(value)), lambda kept: _refill(attributes_of(value), kept), identical)
        for slot in slots_of(type(value)):
            yield _optional(*(functools.partial(f, value) for f in (slot.__get__, slot.__set__, slot.__delete__)))


# -- Python's objects ----------------------------------------------------------------------------------------------


def _optional(get: Callable[[], Any], write: Callable[[Any], None], delete: Callable[[], None]) -> State:
    """The state of a place that can be empty."""
    return State(functools.partial(value_or_absent, get), lambda value: delete() if value is ABSENT else write(value))


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The object's own attributes, without calling its `__getattr__`."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except Exception:  # no `__dict__`, or a property of the user's that raises
        return None
    return attributes if type(attributes) is dict else None


def slots_of(kind: type) -> list[Any]:
    """Descriptors of a class's `__slots__`, inherited ones included."""
    kinds = [vars(c) for c in kind.__mro__ if "__slots__" in vars(c)]
    return [d for names in kinds for d in list(names.values()) if isinstance(d, types.MemberDescriptorType)]


def members_of(value: Any) -> list[tuple[str, Any]]:
    """(name, object) of an object's slots, without the empty ones, and attributes, or of a class's attributes."""
    attributes = vars(value) if isinstance(value, type) else attributes_of(value) or {}
    slots = ((d.__name__, value_or_absent(functools.partial(d.__get__, value))) for d in slots_of(type(value)))
    return [*((name, inner) for name, inner in slots if inner is not ABSENT), *attributes.items()]


def items_of(value: Any) -> list[tuple[str, Any]]:
    """(`[0]` or `[key]`, object) of what a dict or sequence holds; `[...]` stands for a key that is no number or string."""
    if isinstance(value, dict):
        return [(f"[{key!r}]" if type(key) in PLAIN else "[...]", inner) for key, inner in _base(value).items(value)]
    items = _base(value).__iter__(value) if isinstance(value, (list, tuple, deque)) else ()
    return [(f"[{index}]", inner) for index, inner in enumerate(items)]


def places_of(value: Any) -> list[tuple[str, Any]]:
    """(place, object) of all that an object holds: its items, and `.name` of its members; "" for a name or a closure cell."""
    if isinstance(value, (GlobalName, CellType)):
        return [("", next(states_of(value)).before)]
    return [*items_of(value), *((f".{name}", inner) for name, inner in members_of(value))]


def variables_of(target: Any) -> dict[str, Any]:
    """The values of the globals and closure variables that a function or method names; of other objects, none."""
    function = getattr(target, "__func__", target)
    if not isinstance(function, FunctionType):
        return {}
    code, cells = function.__code__, function.__closure__ or ()
    found = {name: function.__globals__.get(name) for name in sorted(globals_used(code))}
    read = [value_or_absent(functools.partial(getattr, cell, "cell_contents")) for cell in cells]
    return found | dict(zip(code.co_freevars, read, strict=True))


def contents_of(container: Any) -> tuple[Any, ...]:
    """The items of a container, read with the built-in class's own methods; for a dict: key, value, key, value, ..."""
    if isinstance(container, dict):
        return tuple(part for item in _base(container).items(container) for part in item)
    return tuple(_base(container).__iter__(container))


def _base(container: Any) -> Any:
    """The built-in class of a container; for an OrderedDict not `dict`, whose methods ignore its order."""
    return next(kind for kind in (*CONTAINERS, tuple) if isinstance(container, kind))


def _refill(container: Any, contents: tuple[Any, ...]) -> None:
    base = _base(container)
    base.clear(container)
    if isinstance(container, dict):
        for key, value in zip(contents[::2], contents[1::2], strict=True):
            base.__setitem__(container, key, value)
    elif isinstance(container, set):
        set.update(container, contents)
    else:
        base.extend(container, contents)


def _class_values(kind: type) -> tuple[Any, ...]:
    """A class's attributes and methods, without inherited and `__special__` ones: name, value, name, value, ..."""
    values = [(name, v) for name, v in list(vars(kind).items()) if not isinstance(v, DESCRIPTORS) and name != "_abc_impl"]
    return tuple(part for name, v in values if not (name.startswith("__") and name.endswith("__")) for part in (name, v))


def _set_class_values(kind: type, kept: tuple[Any, ...]) -> None:
    before = dict(zip(kept[::2], kept[1::2], strict=True))
    for name in {*_class_values(kind)[::2], *before}:
        if own(kind, name) is not (value := before.get(name, ABSENT)):
            put(kind, name, value)


# -- objects implemented in C ------------------------------------------------------------------------------------------


def is_array(value: Any) -> bool:
    """Whether this is a NumPy array; does not import NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def library_states(value: Any) -> Iterator[State]:
    """State that is neither in attributes nor in items: of arrays, byte arrays and generators of random numbers."""
    numpy = sys.modules.get("numpy")
    if isinstance(value, bytearray):
        yield State(lambda: value, functools.partial(operator.setitem, value, slice(None)), operator.eq, bytes)
    elif isinstance(value, torch.Generator):
        yield State(value.get_state, value.set_state, same_numbers)
    elif isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        yield State(lambda: random.Random.getstate(value), lambda kept: random.Random.setstate(value, kept), same_numbers)
    elif numpy is None:
        return
    elif isinstance(value, numpy.ndarray) and value.flags.writeable:  # the base of a read-only view is visited as well
        copy = functools.partial(numpy.array, order="K", subok=False)
        yield State(lambda: value.view(numpy.ndarray), functools.partial(numpy.copyto, value), _same_array, copy)
    elif isinstance(value, numpy.random.RandomState):
        yield State(value.get_state, value.set_state, same_numbers)
    elif isinstance(value, (numpy.random.Generator, numpy.random.BitGenerator)):
        bits = getattr(value, "bit_generator", value)
        yield State(lambda: bits.state, functools.partial(setattr, bits, "state"), same_numbers)


def digest(value: Any) -> str:
    """A short text for the state of a generator of random numbers, to be compared within this process."""
    return f"{hash(_numbers(value)) & (1 << 64) - 1:x}"


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        value = tuple(value.items())
    if isinstance(value, (list, tuple)):
        return tuple(each if type(each) is int else _numbers(each) for each in value)  # Python's generator has 625 of them
    inner = value.numpy() if isinstance(value, torch.Tensor) else value
    return inner.tobytes() if hasattr(inner, "tobytes") else inner


def _same_array(now: Any, kept: Any) -> bool:
    return not kept.dtype.hasobject and now.tobytes() == kept.tobytes()  # -0.0 is not 0.0


# -- tensors -------------------------------------------------------------------------------------------------------


def _tensor_states(tensor: Any) -> Iterator[State]:
    """A tensor's state except the bytes of its storage; the version is restored after everything that may change it."""
    if hasattr(type(tensor), "__tensor_flatten__"):
        return  # the state is that of its inner tensors
    if tensor.device.type != "meta":
        yield State(functools.partial(_geometry, tensor), functools.partial(_set_data, tensor, tensor.data), operator.eq)
    if tensor.is_leaf:
        yield State(lambda: tensor.requires_grad, lambda kept: tensor.is_leaf and tensor.requires_grad_(kept))
    if has_gradient(tensor):
        yield State(lambda: tensor.grad if has_gradient(tensor) else None, functools.partial(setattr, tensor, "grad"))
    yield State(functools.partial(tensors.hooks_of, tensor), functools.partial(_clear_new_hooks, tensor), identical)
    if storage_of(tensor) is None:
        write = torch.no_grad()(tensor.copy_)  # writing to `tensor.data` would change only a copy
        # always: most layouts cannot be compared
        yield State(lambda: tensor, write, lambda now, before: False, lambda now: now.detach().clone())
    version, set_version = (functools.partial(f, tensor) for f in (tensors.version_of, tensors.set_version))
    yield State(version, set_version, operator.eq)
    yield State(lambda: tensor.grad_fn, functools.partial(_set_history, tensor))


def has_gradient(tensor: Any) -> bool:
    """Whether autograd may store a gradient in this tensor's `.grad`: a leaf may be made to require one at any time."""
    return bool(tensor.is_leaf or (tensor.requires_grad and tensor.retains_grad))


def _geometry(tensor: Any) -> tuple[Any, ...]:
    """Where and how a tensor's values are stored; `resize_` and assigning `tensor.data` change it."""
    try:
        return (tensor.data_ptr(), tensor.storage_offset(), tensor.size(), tensor.stride(), tensor.dtype, tensor.device)
    except (RuntimeError, NotImplementedError):  # sparse tensors, for example, have no data pointer or strides
        return (tensor.size(), tensor.dtype, tensor.device)


def _set_data(tensor: Any, data: Any, _: Any) -> None:
    if has_memory(storage_of(data)):  # otherwise `storage_state` has given the tensor a new one
        tensor.data = data


def _clear_new_hooks(tensor: Any, before: tuple[dict[int, Any], ...]) -> None:
    for hooks in tensors.hooks_of(tensor):
        if not any(hooks is kept for kept in before):
            hooks.clear()


def _set_history(tensor: Any, before: Any) -> None:
    if before is None:
        with contextlib.suppress(RuntimeError):  # a view cannot be detached in place
            tensor.detach_()
            return
    raise NotRestored(
        f"the autograd history of a tensor of shape {tuple(tensor.shape)}, which the call changes in place, is not restored"
    )


def storage_of(tensor: Any) -> Any:
    """The tensor's storage; None for a tensor without a single storage or on the meta device, and if the storage is empty."""
    if hasattr(type(tensor), "__tensor_flatten__") or tensor.device.type == "meta":
        return None
    try:
        storage = tensor.untyped_storage()
    except NotImplementedError:  # of another layout, or kept from within a transform of torch.func
        return None
    return storage if storage.nbytes() else None


def storage_state(tensors: list[Any]) -> State:
    """The bytes of the storage of these tensors; restoring them does not change the tensors' versions.

    If it has lost its memory, as that of a CUDA graph's results has when the graph runs again, the tensors get a new one.
    """
    storage = tensors[0].untyped_storage()

    def write(kept: Any) -> None:
        nonlocal storage
        if has_memory(storage):
            if storage.nbytes() != kept.nbytes():
                storage.resize_(kept.nbytes())
            storage.copy_(kept)
            return
        storage = kept.clone()
        for tensor in tensors:
            place = tensor.storage_offset(), tensor.size(), tensor.stride()
            with torch.inference_mode(tensor.is_inference()):
                tensor.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage, *place)

    return State(lambda: storage, write, _same_bytes, lambda now: now.clone())


def has_memory(storage: Any) -> bool:
    """Whether the bytes of a storage, if any, can be read: a CUDA graph that runs again takes the memory of its results."""
    try:
        return storage is None or storage.data_ptr() is not None
    except RuntimeError:
        return False


def fingerprint(tensor: Any) -> tuple[Any, ...]:
    """A value that changes when the tensor does, even if its version does not: when `tensor.data` is changed or replaced."""
    storage = storage_of(tensor)
    return tensors.version_of(tensor), tensor.shape, None if storage is None else int(_words(storage).sum())


def _same_bytes(storage: Any, kept: Any) -> bool:
    return has_memory(storage) and storage.nbytes() == kept.nbytes() and torch.equal(_words(storage), _words(kept))


def _words(storage: Any) -> Any:
    aligned = storage.nbytes() % 8 == 0 and storage.data_ptr() % 8 == 0
    dtype, size = (torch.int64, storage.nbytes() // 8) if aligned else (torch.uint8, storage.nbytes())
    with torch.no_grad():
        return torch.empty(0, dtype=dtype, device=storage.device).set_(storage, 0, (size,), (1,))


# -- what a call can reach -----------------------------------------------------------------------------------------------


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
#: methods that run where the class is named, and functions that can read an attribute whose name the code does not have
_CONSTRUCTORS, _BY_TEXT = ("__new__", "__init__", "__post_init__"), frozenset(("getattr", "methodcaller"))
#: built-in functions that wait for the user
_WAITING = frozenset(("input", "breakpoint"))
#: packages whose objects are shared with other threads and processes, or shown to the user
_SHARED = frozenset((
    "_queue", "_thread", "anywidget", "asyncio", "concurrent", "ipywidgets", "matplotlib", "multiprocessing", "queue", "socket",
    "sqlite3", "subprocess", "threading", "zmq",
))  # fmt: skip
#: packages whose objects are tools, not the program's state
_TOOLS = frozenset(("IPython", "_abc", "contextlib", "dynascope", "ipykernel", "logging", "traitlets", "triton"))
#: types of locks -> whether one is held (an RLock: by this thread)
_LOCKS: dict[type, Callable[[Any], Any]] = {
    type(threading.Lock()): operator.methodcaller("locked"),
    type(threading.RLock()): operator.methodcaller("_is_owned"),
}
CACHE = type(functools.lru_cache(len))
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
        self._effects: dict[str, None] = {}
        #: names of globals and attributes in the code of the user's functions that the call may use
        self._names: set[str] = set()
        #: those of them that are globals or that the code calls, and names under which objects hold what cannot be called
        self._called, self._values = set[str](), set[str]()
        #: name -> what classes hold under it, not followed yet
        self._unnamed: dict[str, list[Any]] = {}
        #: whether the call may use what is followed now
        self._is_used = True
        #: why the call cannot be run again, each as the end of a sentence
        self.refusals: list[str] = []
        #: the state that locks, semaphores and files must have for another call
        self.fragile: list[State] = []
        self.has_files = False
        self.is_complete = True
        self.add(roots)

    def add(self, roots: Iterable[Any], without: Collection[int] = ()) -> None:
        """Also follow these roots; objects whose id is in `without` are left out."""
        todo = deque(roots)
        while (todo or self._unnamed) and len(self._seen) < MOST_OBJECTS:
            todo.extend(() if todo else self._next_members())
            value = todo.popleft()
            is_new = not (isinstance(value, _LEAVES) or id(value) in self._seen or id(value) in without)
            if is_new and value is not ABSENT and self._enters(value):
                self._seen[id(value)] = value
                todo.extend(self._followed(value))
        self.is_complete = self.is_complete and not (todo or self._unnamed)

    def _next_members(self) -> Iterator[Any]:
        """What classes hold under names in the code that was followed; if there is nothing more, all the rest."""
        named = {*self._unnamed} if self._names & _BY_TEXT else self._names & self._unnamed.keys()
        self._is_used = self._is_used and bool(named)
        for name in sorted(named if self._is_used else self._unnamed):
            yield from self._unnamed.pop(name)

    def side_effects(self) -> list[str]:
        """Sentences on effects that a call may have and that are not undone."""
        sentences = []
        if words := ", ".join(f"`{name}`" for name in sorted(OUTSIDE & (self._called | (self._names - self._values)))):
            sentences.append(f"the call may use {words}: what that does outside Python is done again by each repeated call")
        if not self.is_complete:
            sentences.append("the call can reach very many objects: not everything that it changes is restored")
        if self._effects:
            sentences.append(f"the call can reach {listed(self._effects, 4)}: what it changes there is not undone")
        return sentences

    # -- one object ------------------------------------------------------------------------------------------------

    def _followed(self, value: Any) -> Iterable[Any]:
        """The objects that `value` leads to; adds `value` to `objects` unless it is library code, shared, or single-use."""
        if isinstance(value, GlobalName):
            self.objects.append(value)
            return [value.namespace.get(value.name)]
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if isinstance(value, type) and not _is_users_module(module_of(value)):
            return []
        if is_single_use(value):
            self.refusals.append(f"it can reach a {type(value).__name__}, whose state cannot be restored")
            return []
        if hasattr(type(value), "next_functions"):  # a node of autograd's graph: backward changes the gradients of its leaves
            return [getattr(value, "variable", None), *(node for node, _ in value.next_functions)]
        if self._is_opaque(value):
            inside = attributes_of(value) or {}  # of a compiled object: the module or function from which it was made
            return [inside.get("_modules"), inside.get(marks.ORIGINAL), tensors.python_function(value)]
        self.objects.append(value)
        # a memmap's attributes lead to its open file, whose contents are restored with the array's values
        members = [] if is_array(value) and isinstance(value, sys.modules["numpy"].memmap) else members_of(value)
        self._values |= {name for name, held in members if name in OUTSIDE and not callable(held)}
        return [*_referents(value), *(self._of_class(value, members) if isinstance(value, type) else (h for _, h in members))]

    def _of_class(self, kind: type, members: list[tuple[str, Any]]) -> Iterator[Any]:
        """What Python or a library may use of a class: what overrides theirs; the rest waits until the call's code names it."""
        theirs = {name for k in kind.__mro__ if not _is_users_module(module_of(k)) for name in vars(k)}
        made = [(kind.__name__, vars(k)[name]) for k in kind.__mro__ for name in _CONSTRUCTORS if name in vars(k)]
        for name, held in [*members, *made]:
            if name not in _CONSTRUCTORS and (name in theirs or name.startswith("__")):
                yield held
            else:
                self._unnamed.setdefault(name, []).append(held)

    def _is_opaque(self, value: Any) -> bool:
        """Whether an object is not followed, because what it refers to is not part of the user program's state.

        Notes what cannot be undone, or must not change, there.
        """
        kind, state, is_file = type(value), watched(value), isinstance(value, io.IOBase)
        package = module_of(kind).partition(".")[0]
        if is_file:
            self.has_files = True
            self._effects[f"a file ({_file_name(value)})"] = None
        elif state is None and (package in _SHARED or (package not in _TOOLS and _is_hidden(value, package))):
            self._effects[f"a {module_of(kind)}.{kind.__qualname__}"] = None
        is_foreign = is_file or package in _SHARED | _TOOLS or module_of(kind).startswith("torch._")
        if not is_foreign or next(library_states(value), None) is not None:
            return False
        if state is not None:
            self.fragile.append(state)
        return True

    def _of_function(self, function: FunctionType) -> Iterator[Any]:
        yield vars(function).get(marks.ORIGINAL) or vars(function).get("__wrapped__")
        if not is_users(function.__code__.co_filename):
            return  # the closure and globals of a library's function are not followed
        self.objects.append(function)
        yield from (function.__defaults__, function.__kwdefaults__, *(function.__closure__ or ()), *[*vars(function).values()])
        names, own = names_used(function.__code__), globals_used(function.__code__)
        if self._is_used:
            self._names |= names
            self._called |= own | names_called(function.__code__)
            # `self.input` waits for nobody
            waiting = {"getpass"} & names | (_WAITING & own - function.__globals__.keys())
            self.refusals += [f"it can call {name}, which would wait for you" for name in sorted(waiting)]
        for name in sorted(own):
            yield self._name(function.__globals__, name)
            module = function.__globals__.get(name)
            if not isinstance(module, ModuleType):
                continue
            if _is_users_module(module.__name__):
                yield from (self._name(vars(module), name) for name in sorted(names))
            elif self._is_used and (module.__name__ == "torch.ops" or (module.__name__ == "torch" and "ops" in names)):
                self._effects.update(dict.fromkeys(f"the operators torch.ops.{n}" for n in tensors.namespaces(names)))

    def _name(self, namespace: dict[str, Any], name: str) -> GlobalName:
        return self._global_names.setdefault((id(namespace), name), GlobalName(namespace, name))


def _referents(value: Any) -> list[Any]:
    """What an object refers to, besides its members: for most kinds of objects, what Python's garbage collector knows."""
    if isinstance(value, type):
        return list(value.__bases__)
    if isinstance(value, torch.Tensor):
        flatten = getattr(type(value), "__tensor_flatten__", None)
        if flatten is not None:
            return [vars(value).get(name) for name in flatten(value)[0]]
        return [value.grad if has_gradient(value) else None, *tensors.hooks_of(value), value.grad_fn]
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


def _is_users_module(name: str) -> bool:
    """Whether the module of this name is the user's: not a library's, and not part of Python."""
    if name.partition(".")[0] in _LIBRARY_MODULES:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or is_users(file)


# -- what is not restored ------------------------------------------------------------------------------------------


def _file_name(file: Any) -> str:
    name = value_or_absent(lambda: file.name)  # it has none, or is closed or detached
    return type(file).__name__ if name is ABSENT else str(name)[:80]


def _is_hidden(value: Any, package: str) -> bool:
    """Whether an object without attributes and slots may have state that Python does not show."""
    kind = type(value)
    if kind is object or isinstance(value, _NOTHING_HIDDEN) or module_of(kind) == "torch" or is_array(value):
        return False
    if attributes_of(value) is not None or any("__slots__" in vars(c) for c in kind.__mro__):
        return False
    if package == "functools" or (callable(value) and package in _CODE_OF_LIBRARIES) or next(library_states(value), None):
        return False
    # a class that defines a hash of its own is compared by value, and so is not meant to be changed
    return getattr(kind, "__hash__", None) in (None, object.__hash__)


def is_single_use(value: Any) -> bool:
    """Whether an object is a generator, a coroutine, or an iterator written in C: what a call uses up cannot be restored."""
    is_in_c = isinstance(getattr(type(value), "__next__", None), types.WrapperDescriptorType)
    return isinstance(value, _SINGLE_USE) or (is_in_c and not isinstance(value, io.IOBase))


def watched(value: Any) -> State | None:
    """State whose changes are found, but not restored (`restore` raises NotRestored); None for any other object.

    If it is that of a file, a lock or a semaphore, the call cannot run again after the change.
    """
    kind = type(value)
    if issubclass(kind, io.IOBase):
        sentence = f"it needs a file ({_file_name(value)}) that is closed now"
        return _reported(sentence, lambda: value.closed, operator.le)
    held = operator.attrgetter("_value") if issubclass(kind, threading.Semaphore) else _LOCKS.get(kind)
    if held is not None:
        sentence = "a lock or a semaphore is in another state than before the call, and the next call could wait for it forever"
        return _reported(sentence, functools.partial(held, value), operator.eq)
    if kind is CACHE:
        name = getattr(getattr(value, "__wrapped__", None), "__name__", "a function")
        sentence = f"the cache of {name} keeps what repeated calls have put into it"
        return _reported(sentence, lambda: value.cache_info().misses, operator.eq)
    if kind is contextvars.ContextVar:
        sentence = f"the context variable {value.name} keeps what repeated calls have set"
        return _reported(sentence, lambda: value.get(ABSENT), operator.is_)
    return None


def _reported(sentence: str, read: Callable[[], Any], same: Callable[[Any, Any], bool]) -> State:
    def refuse(_: Any) -> None:
        raise NotRestored(sentence)

    return State(read, refuse, same)
