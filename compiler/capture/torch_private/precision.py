"""Finds the lowest precision on the way to each tensor that code computes.

Under autocast, a float32 loss comes out of bfloat16 products: compiled code, which fuses operations, rounds them in other
places than eager code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dynascope.compiler.capture.torch_private.availability import guarded


class Precisions:
    """The lowest precision, a dtype, that values have passed through; None: no floating point, or not followed."""

    def __init__(self) -> None:
        #: by storage
        self._lowest: dict[int, Any] = {}
        #: the lowest of all
        self.lowest: Any = None

    def of(self, value: Any) -> Any:
        """The lowest precision on the way to a tensor, or, for any other value, to any tensor."""
        import torch

        if isinstance(value, torch.Tensor):
            return _lower(value.dtype, self._lowest.get(_storage(value)))
        return self.lowest

    def follow(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Run one operation."""
        before = {_storage(tensor): self.of(tensor) for tensor in _tensors((args, kwargs))}
        result = function(*args, **kwargs)
        changed = (args, kwargs) if function._schema.is_mutable else ()
        for tensor in _tensors((changed, result)):
            self._lowest.pop(_storage(tensor), None)  # it may be a new storage at the address of an old one
            self._lowest[_storage(tensor)] = lowest = _lower(self.of(tensor), *before.values())
            self.lowest = _lower(self.lowest, lowest)
        return result


@contextlib.contextmanager
def followed_precisions() -> Iterator[Precisions]:
    """Follow all operations in the block; they may be computed in another way than otherwise."""
    precisions = Precisions()
    with contextlib.ExitStack() as stack:
        with guarded("precisions"):
            from torch.utils._python_dispatch import TorchDispatchMode

            class Mode(TorchDispatchMode):
                def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                    return precisions.follow(func, args, kwargs or {})

            stack.enter_context(Mode())  # type: ignore[no-untyped-call]
        yield precisions


def _tensors(values: Any) -> Iterator[Any]:
    import torch

    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (tuple, list, dict)):
        for value in values.values() if isinstance(values, dict) else values:
            yield from _tensors(value)


def _storage(tensor: Any) -> int:
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):  # sparse, for example
        return id(tensor)


def _lower(*dtypes: Any) -> Any:
    """The dtype with the largest rounding error among those with floating point; None if there is none."""
    import torch

    known = [dtype for dtype in dtypes if dtype is not None and (dtype.is_floating_point or dtype.is_complex)]
    return max(known, key=lambda dtype: torch.finfo(dtype).eps, default=None)
