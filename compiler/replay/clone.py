"""Clones of the tensors among a call's arguments: the call gets them, so that the tensors' autograd history stays as it is.

A clone has the values, device, dtype, strides, offset, `requires_grad` and `is_leaf` of its original; tensors that share
memory share memory in the clones, too; a tensor that occurs twice is one tensor in the clones.  Parameters are not cloned:
compiled code is bound to them, and their state is restored.  Neither are tensors that do something when they go (`__del__`).
"""

from __future__ import annotations

from typing import Any

from dynascope.compiler.replay import state


class NotRepeatable(Exception):
    """The call cannot be run twice; the message says why, as the end of a sentence."""


class Clones:
    """Clones tensors, and makes the tuples that hold them anew; every other object is given back as it is."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any]] = {}  # id -> (original, kept alive; clone)
        self._storages: dict[int, tuple[Any, Any]] = {}

    def __call__(self, value: Any) -> Any:
        """Raises NotRepeatable for a tensor of which torch makes no clone."""
        import torch

        if isinstance(value, (tuple, frozenset)):
            parts = [self(part) for part in value]
            if state.identical(parts, tuple(value)):
                return value
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
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

    def _tensor(self, value: Any) -> Any:
        import torch

        with torch.no_grad(), torch.inference_mode(value.is_inference()):
            made = self._strided(value) if _is_plain(value) else value.detach().clone()
        if type(made) is not type(value):
            raise NotRepeatable(f"one of its arguments is a {type(value).__name__}, of which torch makes no copy")
        # mark_dynamic and the like; what the clone of a tensor subclass has of itself are its own inner tensors
        vars(made).update({name: inner for name, inner in vars(value).items() if name not in vars(made)})
        if value.requires_grad and not value.is_leaf:
            return _computed(made)
        return made.requires_grad_(value.requires_grad)

    def _strided(self, value: Any) -> Any:
        """The same view of a cloned storage."""
        import torch

        storage = value.untyped_storage()
        key = storage.data_ptr() or id(value)
        if key not in self._storages:
            self._storages[key] = (storage, storage.clone())
        made = torch.empty(0, dtype=value.dtype, device=value.device)
        return made.set_(self._storages[key][1], value.storage_offset(), value.size(), value.stride())


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


def _is_plain(value: Any) -> bool:
    import torch

    if type(value) is not torch.Tensor or value.layout is not torch.strided:
        return False
    return not (value.is_quantized or value.is_neg() or value.is_conj())
