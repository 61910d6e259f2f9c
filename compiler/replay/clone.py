"""Copies of a call's arguments on which the call can be run again.

Promises: a copied tensor has the values, device, dtype, strides, offset, `requires_grad` and `is_leaf` of its original; tensors
that share memory share memory in the copies too; an object that occurs twice is one object in the copies.  Parameters and
modules are not copied (compiled code is bound to them), nor are objects that do something when they go (`__del__`): what a
call does to them is undone instead (`world`).
"""

from __future__ import annotations

import copy
import dataclasses
import io
import sys
import types
from typing import Any

from dynascope.compiler.replay import states

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type, range, slice, types.FunctionType, types.BuiltinFunctionType,
          types.ModuleType, types.MethodType, types.CodeType, type(...), type(NotImplemented))  # fmt: skip

#: iterators of which a copy is independent
_REWOUND = frozenset(map(type, (iter([]), iter(()), iter(""), iter(b""), iter(range(0)), iter(bytearray()))))


class NotRepeatable(Exception):
    """The call cannot be run twice; the message says why, as the end of a sentence."""


class Copies:
    """Copies values; what is shared among everything that one object copied stays shared."""

    def __init__(self) -> None:
        self._done: dict[int, tuple[Any, Any]] = {}  # id -> (original, kept alive; copy)
        self._storages: dict[int, tuple[Any, Any]] = {}

    def __call__(self, value: Any) -> Any:
        """A copy of `value`; raises NotRepeatable where something in it can be used only once."""
        import torch

        if isinstance(value, (*_PLAIN, torch.nn.Module, torch.nn.Parameter, torch.dtype, torch.device, torch.Size)):
            return value
        if id(value) in self._done:
            return self._done[id(value)][1]
        made = self._tensor(value) if isinstance(value, torch.Tensor) else self._other(value)
        self._done[id(value)] = (value, made)
        return made

    @property
    def made(self) -> set[int]:
        """Ids of the copies."""
        return {id(copy) for _, copy in self._done.values()}

    @property
    def replaced(self) -> set[int]:
        """Ids of the originals that the copies stand for."""
        return {key for key, (original, copy) in self._done.items() if copy is not original}

    def _other(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)):
            raise NotRepeatable(f"one of its arguments is a {kind.__name__}, which runs only once")
        if isinstance(value, io.IOBase):
            raise NotRepeatable("one of its arguments is a file")
        if _has_destructor(kind):
            return value  # a copy that goes would close what the original holds; `world` puts it back
        if isinstance(value, (list, set, dict)):
            made = copy.copy(value)  # keeps the class and its other state
            self._done[id(value)] = (value, made)
            self._fill(value, made)
            return made
        if isinstance(value, (tuple, frozenset)):
            parts = [self(v) for v in value]
            if all(new is old for new, old in zip(parts, value, strict=True)):
                return value
            return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
        if states.runs_once(value):
            if kind not in _REWOUND:  # copies of the others take from the same source
                raise NotRepeatable(f"one of its arguments is a {kind.__name__}, which runs only once")
            return copy.copy(value)
        if isinstance(value, bytearray):
            return copy.copy(value)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray):
            return self._array(numpy, value)
        return self._object(value)

    def _fill(self, value: Any, made: Any) -> None:
        if isinstance(value, list):
            made[:] = [self(v) for v in value]
        elif isinstance(value, dict):
            for key, inner in value.items():
                made[key] = self(inner)
        # elements of a set are hashable: no containers of the user's among them
        if states.attributes_of(value) is not None:
            vars(made).update({k: self(v) for k, v in vars(value).items()})

    def _object(self, value: Any) -> Any:
        """An object of a class with plain attributes; any other one is used as it is, and put back by `world`."""
        if states.attributes_of(value) is None or type(value).__module__.partition(".")[0] in ("dynascope", "torch"):
            return value
        try:
            made = copy.copy(value)
        except Exception:  # the user's __copy__ or __reduce__ may raise anything
            return value
        if made is value or type(made) is not type(value):
            return value
        self._done[id(value)] = (value, made)
        if dataclasses.is_dataclass(value) or vars(made).keys() == vars(value).keys():
            vars(made).update({k: self(v) for k, v in vars(value).items()})
        return made

    def _array(self, numpy: Any, value: Any) -> Any:
        """A copy of an array; a view of another one is a view of that one's copy."""
        root = value
        while isinstance(root.base, numpy.ndarray):
            root = root.base
        if root.base is not None and not (root.flags.writeable or value.flags.writeable):
            return value  # it lies in memory that no one can write, most often a file of gigabytes
        is_plain = type(value) is type(root) is numpy.ndarray and not (root.dtype.hasobject or value.dtype.hasobject)
        if root is not value and is_plain and root.flags.c_contiguous:
            offset = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
            made = numpy.ndarray(value.shape, value.dtype, self(root), offset, value.strides)
            made.flags.writeable = value.flags.writeable
            return made
        made = value.copy(order="K")
        if value.dtype == object:
            flat = numpy.asarray(made).reshape(-1)
            inside = [self(v) for v in flat.tolist()]
            for i, new in enumerate(inside):
                flat[i] = new
            if not numpy.shares_memory(flat, made):
                numpy.asarray(made)[...] = flat.reshape(made.shape)
        made.flags.writeable = value.flags.writeable
        return made

    def _tensor(self, value: Any) -> Any:
        import torch

        if _has_destructor(type(value)):
            return value
        with torch.no_grad(), torch.inference_mode(value.is_inference()):
            made = self._strided(value) if _is_strided(value) else value.detach().clone()
        if type(made) is not type(value):
            raise NotRepeatable(f"one of its arguments is a {type(value).__name__}, of which torch makes no copy")
        # mark_dynamic and the like; what the copy of a tensor subclass has of itself are its own inner tensors
        vars(made).update({name: inner for name, inner in vars(value).items() if name not in vars(made)})
        if value.requires_grad and not value.is_leaf:
            return _computed(made)
        made.requires_grad_(value.requires_grad)
        return made

    def _strided(self, value: Any) -> Any:
        """The same view of a copied storage."""
        import torch

        storage = value.untyped_storage()
        key = storage.data_ptr() or id(value)
        if key not in self._storages:
            self._storages[key] = (storage, storage.clone())
        made = torch.empty(0, dtype=value.dtype, device=value.device)
        made.set_(self._storages[key][1], value.storage_offset(), value.size(), value.stride())
        return made


def _has_destructor(kind: type) -> bool:
    return any("__del__" in vars(c) for c in kind.__mro__)


def _computed(tensor: Any) -> Any:
    """The same tensor as the result of an operation: only such a one can ask for a gradient and be changed in place."""
    import torch

    class Computed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, tensor: Any, seed: Any) -> Any:
            ctx.mark_dirty(tensor)
            return tensor

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return None, None

    compute: Any = Computed.apply
    with torch.enable_grad():
        return compute(tensor, torch.zeros((), requires_grad=True))


def _is_strided(value: Any) -> bool:
    import torch

    return (
        type(value) is torch.Tensor
        and value.layout is torch.strided
        and not (value.is_quantized or value.is_neg() or value.is_conj())
    )
