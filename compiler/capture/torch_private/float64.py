"""Follows the operations of a run, and computes each of them a second time in float64.

Every tensor of the run has a counterpart in float64 (complex numbers: complex128), which is computed from the counterparts of
the operation's inputs: an error of the run does not enter it.  The run itself is not changed.  Shapes, integers, random numbers
and branches are those of the run, so the two always take the same way; `decided_otherwise` names the operations whose integers
or truth values would be others in float64.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from dynascope.compiler.capture.torch_private.tensors import Precisions, each_operation, tensors_in

#: after so many new storages, those that no tensor uses any more are dropped
_PURGE = 256
#: the counterparts may take at most this much memory: a large model must not end the process
MOST_BYTES = 4 << 30


class Float64:
    """The counterparts in float64 of the tensors and numbers of a run."""

    def __init__(self, moved: float = 0.0) -> None:
        """`moved`: the relative amount by which each input is moved up or down, at random."""
        self.precisions = Precisions()
        #: sentences on why a counterpart was begun anew with the run's own value
        self.limits: dict[str, None] = {}
        #: names of operations whose integers or truth values are others in float64
        self.decided_otherwise: dict[str, None] = {}
        self._moved = moved
        #: address of a storage -> a weak reference to it, and its elements in float64; a complex number is two elements
        self._storages: dict[int, tuple[Any, Any]] = {}
        #: numbers that were taken out of tensors
        self._numbers: dict[float, float] = {}
        self._generator: Any = None

    def of(self, value: Any) -> Any:
        """The counterpart of a tensor or number of floating point: a view that later operations may change; None for others."""
        if isinstance(value, float):
            return self._numbers.get(value)
        if not isinstance(value, torch.Tensor) or not _is_followed(value):
            return None
        elements = self._elements(value)
        if elements is None:
            return None
        if value.is_complex():
            elements = torch.view_as_complex(elements.view(-1, 2))
        made = elements.as_strided(value.size(), value.stride(), value.storage_offset())
        made = torch._conj(made) if value.is_conj() else made
        return torch._neg_view(made) if value.is_neg() else made

    def copy_of(self, value: Any) -> Any:
        """A copy of the counterpart of a tensor or number, made while operations may be followed; None if it has none."""
        from torch.utils._python_dispatch import _disable_current_modes

        with torch.no_grad(), _disable_current_modes():
            made = self.of(value)
            return made.clone() if isinstance(made, torch.Tensor) else made

    def follow(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Run one operation, and compute what it makes in float64."""
        from torch.utils._pytree import tree_leaves, tree_map

        leaves = tree_leaves((args, kwargs))
        given = list(tensors_in(leaves))
        special = next((t for t in given if type(t) not in (torch.Tensor, torch.nn.Parameter)), None)
        if special is not None:
            self.limits[f"{function.name()} gets a {type(special).__name__}"] = None
        # `set_` gives a tensor another storage, which has its own counterpart
        if special is not None or function.name().startswith("aten::set_"):
            return function(*args, **kwargs)
        is_mutable, may_draw = function._schema.is_mutable, torch.Tag.nondeterministic_seeded in function.tags
        counterparts = [self.of(t) for t in given]  # also makes those of new inputs, before they are changed

        def raised(value: Any) -> Any:
            if isinstance(value, torch.dtype):
                return getattr(torch, _HIGHER[str(value)]) if str(value) in _HIGHER else value
            if not isinstance(value, torch.Tensor):
                return self._numbers.get(value, value) if isinstance(value, float) else value
            counterpart = self.of(value)
            return counterpart if counterpart is not None else value.clone() if is_mutable else value

        exact_args, exact_kwargs = tree_map(raised, (args, kwargs))
        before = _generators(leaves) if may_draw else []
        result = self.precisions.follow(function, args, kwargs)
        made = list(tensors_in(result))
        if function.name().startswith("aten::_local_scalar_dense"):
            if isinstance(result, float) and counterparts[0] is not None:
                self._numbers[result] = counterparts[0].item()
        elif may_draw and not all(map(torch.equal, before, _generators(leaves))):
            self._begin_anew([*made, *(given if is_mutable else ())], known=is_mutable)
            if any(c is not None for c in counterparts) and not is_mutable:
                self._dropped(function, args, result)
        elif (not function.is_view and any(c is not None for c in counterparts)) or any(map(_is_followed, made)):
            self._compute(function, exact_args, exact_kwargs, made, given if is_mutable else [])
        return result

    def _compute(self, function: Any, args: Any, kwargs: Any, made: list[Any], changed: list[Any]) -> None:
        known = [t for t in made if _is_followed(t) and _address(t) in self._storages]
        if function.is_view and len(known) == len(made):
            return
        options = {a.name: a for a in function._schema.arguments}
        if made and made[0].is_floating_point() and "dtype" in options and next(tensors_in(args), None) is None:
            kwargs = {**kwargs, "dtype": torch.float64}  # otherwise it would be the default dtype
        names = list(options)
        args = [False if names[i] == "half_to_float" else value for i, value in enumerate(args)]
        try:
            raised = list(tensors_in(function(*args, **kwargs)))
        except Exception as error:
            self.limits[f"{function.name()} does not run in float64 ({type(error).__name__})"] = None
            self._begin_anew([*made, *changed], known=True)
            return
        for mine, exact in zip(made, raised, strict=False):
            if not _is_followed(mine):
                if mine.shape != exact.shape or (mine.dtype == exact.dtype and not torch.equal(mine, exact)):
                    self.decided_otherwise[function.name()] = None
            elif mine.shape != exact.shape:
                self.limits[f"{function.name()} makes another shape in float64"] = None
                self._begin_anew([mine], known=True)
            elif not any(mine is t for t in known):
                self._begin_anew([mine], known=False)
                counterpart = self.of(mine)
                if counterpart is not None and exact.dtype == counterpart.dtype:
                    counterpart.copy_(exact)

    def _dropped(self, function: Any, args: Any, result: Any) -> None:
        """Set the counterpart of what dropout makes; other random operations on values begin anew."""
        if function.name() == "aten::native_dropout" and isinstance(result, tuple):
            value, target, scale = self.of(args[0]), self.of(result[0]), 1 / (1 - args[1]) if args[1] < 1 else 0.0
            target.copy_(value * result[1] * (scale if args[2] is not False else 1.0))
        else:
            self.limits[f"{function.name()} draws random numbers"] = None

    def _begin_anew(self, tensors: list[Any], *, known: bool) -> None:
        """Make the counterparts of these tensors from the run's own values; `known`: also if they have one."""
        for tensor in tensors:
            if _is_followed(tensor) and (known or _address(tensor) not in self._storages):
                self._storages.pop(_address(tensor), None)
                self._elements(tensor, moved=0.0)

    def _bytes(self) -> int:
        return sum(elements.nbytes for _, elements in self._storages.values())

    def _elements(self, tensor: Any, moved: float | None = None) -> Any:
        """The elements of a tensor's storage in float64; None if it has none, such as a sparse tensor."""
        storage, address = tensor.untyped_storage(), _address(tensor)
        real = torch.view_as_real(torch.empty(0, dtype=tensor.dtype)).dtype if tensor.is_complex() else tensor.dtype
        number = storage.nbytes() // real.itemsize
        if address in self._storages:
            reference, elements = self._storages[address]
            if not reference.expired() and elements.numel() == number:
                return elements
        if len(self._storages) % _PURGE == _PURGE - 1 or self._bytes() + 8 * number > MOST_BYTES:
            self._storages = {a: held for a, held in self._storages.items() if not held[0].expired()}
            if self._bytes() + 8 * number > MOST_BYTES:
                raise MemoryError(f"in float64, it needs more than {MOST_BYTES >> 30} GiB")
        with torch.no_grad():
            own = torch.empty(0, dtype=real, device=tensor.device).set_(storage, 0, (number,), (1,))
            elements = own.double()
            elements = elements.clone() if elements.data_ptr() == own.data_ptr() else elements
            moved = self._moved if moved is None else moved
            if moved:
                self._generator = self._generator or torch.Generator().manual_seed(0)
                sides = torch.randint(0, 2, (number,), generator=self._generator, dtype=torch.int8).to(elements.device)
                elements *= 1 + moved * (2 * sides.double() - 1)
        from torch.multiprocessing.reductions import StorageWeakRef

        self._storages[address] = (StorageWeakRef(storage), elements)
        return elements


#: dtypes -> the dtype of their counterparts
_HIGHER = {
    "torch.float32": "float64", "torch.float16": "float64", "torch.bfloat16": "float64", "torch.complex64": "complex128",
    "torch.complex32": "complex128",
}  # fmt: skip


def _is_followed(tensor: Any) -> bool:
    is_plain = tensor.layout is torch.strided and tensor.device.type != "meta" and not tensor.is_quantized
    is_plain = is_plain and not tensor._is_zerotensor()  # which forward-mode differentiation makes: its storage has no memory
    return bool(is_plain and (tensor.is_floating_point() or tensor.is_complex()) and tensor.dtype.itemsize > 1)


def _generators(leaves: list[Any]) -> list[Any]:
    """The states of the generators that an operation with these arguments can draw from."""
    own = [value.get_state() for value in leaves if isinstance(value, torch.Generator)]
    return [*own, torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else ())]


def _address(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


@contextlib.contextmanager
def followed_in_float64(moved: float = 0.0) -> Iterator[Float64]:
    """Follow all operations in the block, those of the backward included."""
    followed = Float64(moved)
    with each_operation("computing in float64", followed.follow):
        yield followed
