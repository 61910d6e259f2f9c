"""Clones the tensors among a call's arguments, so that a replay does not change the originals' autograd history.

A clone has its original's values, device, dtype, `requires_grad`, `is_leaf` and, for a leaf, `grad`.  Clones of plain strided
tensors also have the strides and offset, and share memory where the originals do.  A tensor that occurs twice has one clone.
Parameters are not cloned, because compiled code is bound to them; their state is restored.  Tensors with a `__del__` method
are not cloned, either.
"""

from __future__ import annotations

import copy
from typing import Any

from dynascope.compiler.lab.replay import object_state


class NotRepeatable(Exception):
    """The call cannot be run twice; the message says why, as the end of a sentence."""


class Clones:
    """Clones tensors, and rebuilds the tuples and frozensets that hold them; returns every other object unchanged."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any]] = {}  # id of an original -> (the original, to keep it alive; its clone)
        self._memo: dict[int, Any] = {}  # `copy.deepcopy`'s memo: each storage is cloned once

    def __call__(self, value: Any) -> Any:
        """Clone one value; raises NotRepeatable for a tensor whose copy is of another class."""
        import torch

        if isinstance(value, (tuple, frozenset)):
            parts = [self(part) for part in value]
            if object_state.identical(parts, tuple(value)):
                return value
            return _rebuilt(value, parts)
        if not isinstance(value, torch.Tensor) or isinstance(value, torch.nn.Parameter):
            return value
        if any("__del__" in vars(c) for c in type(value).__mro__):
            return value
        if id(value) not in self._made:
            self._made[id(value)] = (value, self._tensor(value))
        return self._made[id(value)][1]

    @property
    def originals(self) -> set[int]:
        """Ids of the tensors that were cloned."""
        return set(self._made)

    @property
    def made(self) -> list[Any]:
        """The clones."""
        return [clone for _, clone in self._made.values()]

    def _tensor(self, value: Any) -> Any:
        import torch

        with torch.no_grad(), torch.inference_mode(value.is_inference()):
            made = self._strided(value) if _is_plain(value) else value.detach().clone()
        if type(made) is not type(value):
            raise NotRepeatable(f"one of its arguments is a {type(value).__name__}, which torch cannot copy")
        # attributes set by mark_dynamic and the like; a cloned tensor subclass keeps its own inner tensors
        vars(made).update({name: inner for name, inner in vars(value).items() if name not in vars(made)})
        if value.requires_grad and not value.is_leaf:
            return computed(made)
        made.requires_grad_(value.requires_grad)
        if value.is_leaf and value.grad is not None:
            made.grad = self(value.grad)
        return made

    def _strided(self, value: Any) -> Any:
        """A tensor with the same view on a clone of the storage."""
        import torch

        storage = copy.deepcopy(value.untyped_storage(), self._memo)
        made = torch.empty(0, dtype=value.dtype, device=value.device)
        return made.set_(storage, value.storage_offset(), value.size(), value.stride())


def _rebuilt(value: Any, parts: list[Any]) -> Any:
    """A tuple or frozenset of the same class and with the same attributes, but with these parts."""
    if hasattr(type(value), "n_sequence_fields"):  # torch.return_types: only its own constructor can make it
        return type(value)(parts)
    base: Any = tuple if isinstance(value, tuple) else frozenset
    made = base.__new__(type(value), parts)
    getattr(made, "__dict__", {}).update(getattr(value, "__dict__", {}))
    return made


def computed(tensor: Any) -> Any:
    """Make this tensor the result of an operation, so that it can be changed in place: a leaf that requires grad cannot be."""
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


def _is_plain(value: Any) -> bool:
    import torch

    if type(value) is not torch.Tensor or value.layout is not torch.strided:
        return False
    return not (value.is_quantized or value.is_neg() or value.is_conj())
