"""State that lies elsewhere than in attributes and containers, kept so that `world` can put it back.

Tensors' storages, NumPy arrays, byte buffers, generators of random numbers, `__slots__`, attributes of classes; and the
question whether an object has state that Python does not show.  None of it runs the user's code to look at an object.
"""

from __future__ import annotations

import array
import mmap
import random
import sys
import types
from collections.abc import Callable
from typing import Any

_ABSENT = object()
_ONCE = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
#: modules whose callable objects are functions; another one's may be a connection to a database
_WITH_FUNCTIONS = ("builtins", "operator", "functools", "numpy", "torch", "itertools")
#: descriptors in a class that hold no state of it
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType,
                types.MethodDescriptorType, types.ClassMethodDescriptorType)  # fmt: skip


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The object's own attributes, its `__getattr__` not asked."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except Exception:  # most often there are none; `__dict__` may be the user's property
        return None
    return attributes if type(attributes) is dict else None


def slots_of(kind: type) -> list[Any]:
    """Descriptors of the `__slots__` of a class and those it inherits."""
    return [
        d
        for c in kind.__mro__
        if "__slots__" in vars(c)
        for d in list(vars(c).values())
        if isinstance(d, types.MemberDescriptorType)
    ]


def slot_values(value: Any) -> list[tuple[Any, Any]]:
    """(descriptor, value) of each slot of an object that is set."""
    return [(d, v) for d in slots_of(type(value)) if (v := _slot(d, value)) is not _ABSENT]


def _slot(descriptor: Any, value: Any) -> Any:
    try:
        return descriptor.__get__(value)
    except AttributeError:
        return _ABSENT


def slots_putter(value: Any) -> Callable[[], bool]:
    """Puts an object's slots back as they are now; tells whether they had changed."""
    kept = [(d, _slot(d, value)) for d in slots_of(type(value))]

    def put() -> bool:
        changed = [(d, before) for d, before in kept if _slot(d, value) is not before]
        for descriptor, before in changed:
            if before is _ABSENT:
                descriptor.__delete__(value)
            else:
                descriptor.__set__(value, before)
        return bool(changed)

    return put


def class_values(kind: type) -> dict[str, Any]:
    """What a class itself holds: its methods and its values."""
    return {
        name: value
        for name, value in list(vars(kind).items())
        if not (name.startswith("__") and name.endswith("__")) and name != "_abc_impl" and not isinstance(value, _DESCRIPTORS)
    }


def class_putter(kind: type) -> Callable[[], bool]:
    """Puts a class's attributes back as they are now; tells whether they had changed."""
    kept = class_values(kind)

    def put() -> bool:
        now = class_values(kind)
        added = now.keys() - kept.keys()
        changed = [(name, value) for name, value in kept.items() if now.get(name, _ABSENT) is not value]
        for name in added:
            type.__delattr__(kind, name)
        for name, value in changed:
            type.__setattr__(kind, name, value)
        return bool(added or changed)

    return put


# -- kinds of objects whose state is known ------------------------------------------------------------------------


def size_of(value: Any) -> int | None:
    """Bytes that keeping the object's state takes; None where `putter` does not know its kind."""
    import torch

    if isinstance(value, bytearray):
        return len(value)
    if isinstance(value, array.array):
        return len(value) * value.itemsize
    if isinstance(value, mmap.mmap):
        return None if value.closed else 0 if _is_only_read(value) else len(value)
    if isinstance(value, (random.Random, torch.Generator)):
        return 0
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(value, numpy.ndarray):
        return int(value.nbytes) if value.flags.writeable else 0
    is_random = isinstance(value, (numpy.random.Generator, numpy.random.RandomState, numpy.random.BitGenerator))
    return 0 if is_random else None


def inside_of(value: Any) -> list[Any]:
    """What can be reached through an object of a kind that `size_of` knows."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray):
        return []
    return [value.base, *(numpy.asarray(value).ravel().tolist() if value.dtype == object else ())]


def putter(value: Any) -> Callable[[], Any]:
    """Puts the state of an object of a kind that `size_of` knows back as it is now; False: it had not changed."""
    import torch

    if isinstance(value, (bytearray, array.array)):
        return _buffer_putter(value)
    if isinstance(value, mmap.mmap):
        return _map_putter(value)
    if isinstance(value, random.SystemRandom):
        return lambda: None
    if isinstance(value, random.Random):
        python = random.Random.getstate(value)
        return lambda: random.Random.setstate(value, python)
    if isinstance(value, torch.Generator):
        state = value.get_state().clone()
        return lambda: _call(value.set_state, state)
    numpy = sys.modules["numpy"]
    if isinstance(value, numpy.ndarray):
        # of one that cannot be written only the base, which is reached too, can change
        return _array_putter(numpy, value) if value.flags.writeable else lambda: False
    if isinstance(value, numpy.random.RandomState):
        legacy = value.get_state()
        return lambda: value.set_state(legacy)
    bits = value.bit_generator if isinstance(value, numpy.random.Generator) else value
    kept = bits.state
    return lambda: setattr(bits, "state", kept)


def _call(function: Callable[[Any], Any], argument: Any) -> None:
    function(argument)


def _buffer_putter(value: bytearray | array.array[Any]) -> Callable[[], bool]:
    kept = value[:]

    def put() -> bool:
        if value[:] == kept:
            return False
        value[:] = kept  # type: ignore[assignment]
        return True

    return put


def _is_only_read(value: mmap.mmap) -> bool:
    with memoryview(value) as view:
        return view.readonly


def _map_putter(value: mmap.mmap) -> Callable[[], bool]:
    kept, place = value[:] if not _is_only_read(value) else None, value.tell()

    def put() -> bool:
        is_same = value.tell() == place and kept in (None, value[:])
        if kept is not None and not is_same:
            value[:] = kept
        value.seek(place)
        return not is_same

    return put


def _array_putter(numpy: Any, value: Any) -> Callable[[], bool]:
    kept = numpy.array(value, copy=True, order="K", subok=False)

    def put() -> bool:
        plain = value.view(numpy.ndarray)
        if value.dtype == kept.dtype and kept.dtype != object and numpy.array_equal(plain, kept):
            return False  # with a NaN in it it never is
        if value.dtype != kept.dtype:
            value.dtype = kept.dtype
        if value.shape != kept.shape:
            if value.size != kept.size:
                value.resize(kept.shape, refcheck=False)
            value.shape = kept.shape
        numpy.copyto(value.view(numpy.ndarray), kept)
        return True

    return put


def values_putter(tensor: Any) -> Callable[[], None]:
    """Puts a tensor's values back where they do not lie in one storage (a sparse one's)."""
    import torch

    kept = tensor.detach().clone()

    def put() -> None:
        with torch.no_grad():
            tensor.copy_(kept)  # through `data` only a copy of it would get them

    return put


class Storage:
    """The bytes of a tensor's storage; put back without a trace in the tensor's version."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self._kept = storage.clone()

    def put(self) -> bool:
        """Tells whether they had changed."""
        import torch

        if self._storage.nbytes() != self._kept.nbytes():
            self._storage.resize_(self._kept.nbytes())
        with torch.no_grad():
            is_same = torch.equal(_words(self._storage), _words(self._kept))
        if not is_same:  # else it may be memory that cannot be written
            self._storage.copy_(self._kept)
        return not is_same


def _words(storage: Any) -> Any:
    import torch

    aligned = storage.nbytes() % 8 == 0 and storage.data_ptr() % 8 == 0
    dtype, size = (torch.int64, storage.nbytes() // 8) if aligned else (torch.uint8, storage.nbytes())
    return torch.empty(0, dtype=dtype, device=storage.device).set_(storage, 0, (size,), (1,))


def hooks_of(tensor: Any) -> list[dict[int, Any]]:
    """The functions that run in a tensor's backward, as torch keeps them: by the number of each."""
    kept = [getattr(tensor, name, None) for name in ("_backward_hooks", "_post_accumulate_grad_hooks")]
    return [hooks for hooks in kept if hooks is not None]


def hooks_putter(tensor: Any) -> Callable[[], bool]:
    """Takes away the hooks that a tensor gets; those that it had are put back as contents of their dict."""
    before = hooks_of(tensor)

    def put() -> bool:
        new = [hooks for hooks in hooks_of(tensor) if hooks and not any(hooks is b for b in before)]
        for hooks in new:
            hooks.clear()
        return bool(new)

    return put


def leaves_behind(tensor: Any, seen: dict[int, Any]) -> list[Any]:
    """Leaves from which a tensor was computed: a call that goes backward from it changes them; `seen`: nodes of graphs."""
    leaves, todo = [], [tensor.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and id(node) not in seen:
            seen[id(node)] = node
            leaves.append(getattr(node, "variable", None))
            todo.extend(before for before, _ in node.next_functions)
    return leaves


def geometry(tensor: Any) -> tuple[Any, ...]:
    """Where a tensor's values lie and how; other values where `tensor.data` was assigned, or `resize_` called."""
    try:
        return (tensor.data_ptr(), tensor.storage_offset(), tensor.size(), tensor.stride(), tensor.dtype, tensor.device)
    except (RuntimeError, NotImplementedError):  # sparse ones and the like
        return (tensor.size(), tensor.dtype, tensor.device)


# -- what cannot be seen -------------------------------------------------------------------------------------------


def runs_once(value: Any) -> bool:
    """A generator, or an iterator written in C: what is taken from it cannot be put back."""
    if isinstance(value, _ONCE):
        return True
    return isinstance(_found(type(value), "__next__"), types.WrapperDescriptorType)


def is_hidden(value: Any) -> bool:
    """Whether an object without attributes and slots may have state that Python does not show."""
    kind = type(value)
    if kind is object or isinstance(value, (*_DESCRIPTORS, types.MethodWrapperType, property, type(...), type(NotImplemented))):
        return False
    if any("__slots__" in vars(c) for c in kind.__mro__) or kind.__module__ == "torch":
        return False
    if callable(value) and kind.__module__.partition(".")[0] in _WITH_FUNCTIONS:
        return False
    # equal by value, and with a hash: not made to be changed
    return _found(kind, "__hash__") in (None, object.__hash__)


def _found(kind: type, name: str) -> Any:
    return next((vars(c)[name] for c in kind.__mro__ if name in vars(c)), None)
