"""Reads and writes the state of objects that a call can change; one case for each kind of object.

Inspecting an object avoids the user's code: attributes are read from `__dict__`, containers with the methods of the built-in
class, and their contents are compared by identity, not by equality.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import random
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CellType
from typing import Any, NamedTuple

import torch

from dynascope.compiler.capture.torch_private import tensors
from dynascope.compiler.patching import ABSENT, value_or_absent

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

    def restore(self) -> bool:
        """Write the earlier value, unless it is the current one; returns whether it was written."""
        return self.set(self.before)

    def set(self, value: Any) -> bool:
        """Write this value, unless it is the current one; returns whether it was written."""
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
        names = value.namespace
        yield _optional(
            *(functools.partial(f, names, value.name) for f in (dict.__getitem__, dict.__setitem__, dict.__delitem__))
        )
    elif isinstance(value, CellType):
        yield _optional(*(functools.partial(f, value, "cell_contents") for f in (getattr, setattr, delattr)))
    elif isinstance(value, type):
        yield State(functools.partial(_class_values, value), functools.partial(_set_class_values, value), identical)
    else:
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


def _optional(get: Callable[[], Any], put: Callable[[Any], None], delete: Callable[[], None]) -> State:
    """The state of a place that can be empty."""
    return State(functools.partial(value_or_absent, get), lambda value: delete() if value is ABSENT else put(value))


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


def slot_values(value: Any) -> list[tuple[str, Any]]:
    """(name, value) of an object's slots, without the empty ones."""
    values = [(d.__name__, value_or_absent(functools.partial(d.__get__, value))) for d in slots_of(type(value))]
    return [(name, inner) for name, inner in values if inner is not ABSENT]


def items_of(container: Any) -> list[tuple[str, Any]]:
    """(`[0]` or `[key]`, object) of what a dict or sequence holds; `[...]` stands for a key that is no number or string."""
    if isinstance(container, dict):
        kind = OrderedDict if isinstance(container, OrderedDict) else dict  # dict.items() ignores an OrderedDict's order
        return [(f"[{key!r}]" if type(key) in PLAIN else "[...]", value) for key, value in kind.items(container)]
    base: Any = next(kind for kind in (list, tuple, deque) if isinstance(container, kind))
    return [(f"[{index}]", value) for index, value in enumerate(base.__iter__(container))]


def members_of(value: Any) -> list[tuple[str, Any]]:
    """(name, object) of an object's slots and attributes, or of a class's attributes."""
    attributes = vars(value) if isinstance(value, type) else attributes_of(value) or {}
    return [*slot_values(value), *attributes.items()]


def contents_of(container: Any) -> tuple[Any, ...]:
    """The items of a container, read with the built-in class's own methods; for a dict: key, value, key, value, ..."""
    base: Any = next(c for c in CONTAINERS if isinstance(container, c))
    if isinstance(container, dict):
        return tuple(part for item in base.items(container) for part in item)
    return tuple(base.__iter__(container))


def _refill(container: Any, contents: tuple[Any, ...]) -> None:
    base: Any = next(c for c in CONTAINERS if isinstance(container, c))
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
    own = [(name, v) for name, v in list(vars(kind).items()) if not isinstance(v, DESCRIPTORS) and name != "_abc_impl"]
    return tuple(part for name, v in own if not (name.startswith("__") and name.endswith("__")) for part in (name, v))


def _set_class_values(kind: type, kept: tuple[Any, ...]) -> None:
    before = dict(zip(kept[::2], kept[1::2], strict=True))
    for name in set(_class_values(kind)[::2]) - before.keys():
        type.__delattr__(kind, name)
    for name, value in before.items():
        if vars(kind).get(name, ABSENT) is not value:
            type.__setattr__(kind, name, value)


# -- objects implemented in C ------------------------------------------------------------------------------------------


def is_array(value: Any) -> bool:
    """Whether this is a NumPy array; does not import NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def size_of(value: Any) -> int:
    """The bytes that a copy of an array takes; 0 for a read-only array, which is not copied, and for other objects."""
    return int(value.nbytes) if is_array(value) and value.flags.writeable else 0


def library_states(value: Any) -> Iterator[State]:
    """State that is neither in attributes nor in items: of arrays, byte arrays and generators of random numbers."""
    if isinstance(value, bytearray):
        yield State(lambda: value, functools.partial(operator.setitem, value, slice(None)), operator.eq, bytes)
    elif isinstance(value, random.Random):
        if not isinstance(value, random.SystemRandom):
            yield State(lambda: random.Random.getstate(value), lambda kept: random.Random.setstate(value, kept), operator.eq)
    elif isinstance(value, torch.Generator):
        yield State(value.get_state, value.set_state, torch.equal)
    elif "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        # a read-only array cannot change; if it is a view, its base is visited as well
        if isinstance(value, numpy.ndarray) and value.flags.writeable:
            copy = functools.partial(numpy.array, order="K", subok=False)
            yield State(lambda: value.view(numpy.ndarray), functools.partial(numpy.copyto, value), _same_array, copy)
        elif isinstance(value, numpy.random.RandomState):
            yield State(value.get_state, value.set_state, same_numbers)
        elif isinstance(value, (numpy.random.Generator, numpy.random.BitGenerator)):
            bits = getattr(value, "bit_generator", value)
            yield State(lambda: bits.state, functools.partial(setattr, bits, "state"), same_numbers)


def is_generator(value: Any) -> bool:
    """Whether this is a generator of random numbers, of Python, NumPy or torch."""
    numpy = sys.modules.get("numpy")
    kinds = () if numpy is None else (numpy.random.RandomState, numpy.random.Generator, numpy.random.BitGenerator)
    return isinstance(value, (random.Random, torch.Generator, *kinds))


def digest(value: Any) -> str:
    """A short text for the state of a generator of random numbers, to be compared within this process."""
    return f"{hash(_numbers(value)) & (1 << 64) - 1:x}"


def _numbers(value: Any) -> Any:
    if isinstance(value, int):
        return value
    if isinstance(value, dict):
        return tuple((key, _numbers(inner)) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(_numbers, value))
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
        data = tensor.data
        yield State(functools.partial(_geometry, tensor), lambda _: setattr(tensor, "data", data), operator.eq)
    if tensor.is_leaf:
        yield State(lambda: tensor.requires_grad, lambda kept: tensor.is_leaf and tensor.requires_grad_(kept))
    if has_gradient(tensor):
        yield State(lambda: tensor.grad if has_gradient(tensor) else None, functools.partial(setattr, tensor, "grad"))
    yield State(functools.partial(tensors.hooks_of, tensor), functools.partial(_clear_new_hooks, tensor), identical)
    if tensor.layout is not torch.strided:
        write = functools.partial(_set_values, tensor)  # always: most layouts cannot be compared
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


def _clear_new_hooks(tensor: Any, before: tuple[dict[int, Any], ...]) -> None:
    for hooks in tensors.hooks_of(tensor):
        if not any(hooks is kept for kept in before):
            hooks.clear()


def _set_values(tensor: Any, kept: Any) -> None:
    with torch.no_grad():
        tensor.copy_(kept)  # writing to `tensor.data` would change only a copy


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
    if hasattr(type(tensor), "__tensor_flatten__") or tensor.layout is not torch.strided or tensor.device.type == "meta":
        return None
    storage = tensor.untyped_storage()
    return storage if storage.nbytes() else None


def storage_state(storage: Any) -> State:
    """The bytes of a storage; restoring them does not change the versions of the tensors that use it."""
    return State(lambda: storage, functools.partial(_set_bytes, storage), _same_bytes, lambda now: now.clone())


def fingerprint(tensor: Any) -> tuple[Any, ...]:
    """A value that changes when the tensor does, even if its version does not: when `tensor.data` is changed or replaced."""
    storage = storage_of(tensor)
    return tensors.version_of(tensor), tensor.shape, None if storage is None else int(_words(storage).sum())


def _set_bytes(storage: Any, kept: Any) -> None:
    if storage.nbytes() != kept.nbytes():
        storage.resize_(kept.nbytes())
    storage.copy_(kept)


def _same_bytes(storage: Any, kept: Any) -> bool:
    return storage.nbytes() == kept.nbytes() and torch.equal(_words(storage), _words(kept))


def _words(storage: Any) -> Any:
    aligned = storage.nbytes() % 8 == 0 and storage.data_ptr() % 8 == 0
    dtype, size = (torch.int64, storage.nbytes() // 8) if aligned else (torch.uint8, storage.nbytes())
    with torch.no_grad():
        return torch.empty(0, dtype=dtype, device=storage.device).set_(storage, 0, (size,), (1,))
