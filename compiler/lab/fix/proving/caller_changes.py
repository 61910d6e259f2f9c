"""Applies the part of a fix that the repeated calls do not run.

A fix may edit `__init__` or the caller.  This module does directly what such edits would do: it makes tensors of numbers in
arguments, attributes and globals, and marks dimensions of arguments as dynamic.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dynascope.compiler.capture.torch_private.tensors import mark_dynamic
from dynascope.compiler.lab.fix.text_edits import NotApplicable


@contextlib.contextmanager
def numbers_as_tensors(target: Any, names: Sequence[str]) -> Iterator[None]:
    """Turn the numbers with these names (`self.steps`, or globals of the target) into tensors; back into numbers afterwards.

    Names of the target's arguments are left out.
    """
    owners = [found for name in names if (found := _owner(target, name)) is not None]
    numbers = [owner[name] for owner, name in owners]
    for owner, name in owners:
        owner[name] = _tensor(owner[name])
    try:
        yield
    finally:
        for (owner, name), number in zip(owners, numbers, strict=True):
            now = _number(owner[name])
            owner[name] = number if now == _number(_tensor(number)) else now  # if unchanged, the exact one: a tensor rounds 0.1


def with_number_tensors(target: Any, entry: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Wrap `entry` (`target`, compiled or not) so that the named numbers, arguments included, are tensors during a call."""
    if not names:
        return entry
    signature = _signature(target)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        for name in set(names) & given.arguments.keys():
            given.arguments[name] = _tensor(given.arguments[name])
        with numbers_as_tensors(target, names):
            return entry(*given.args, **given.kwargs)

    return call


def with_marks(target: Any, entry: Callable[..., Any], marks: Sequence[str]) -> Callable[..., Any]:
    """Wrap `entry` (the compiled `target`) so that dimensions of its arguments are marked as dynamic.

    The mark `"x, 0"` is for dimension 0 of `x`; what is wrapped is the attribute `unmarked`.  Raises NotApplicable if `target`
    has no such argument.
    """
    if not marks:
        return entry
    import torch

    signature = _signature(target)
    wanted = [mark.split(", ") for mark in marks]
    for name, _ in wanted:
        if name not in signature.parameters:
            raise NotApplicable(f"{name} is not a parameter of the compiled function")

    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        for name, dimension in wanted:
            value = given.get(name)
            if isinstance(value, torch.Tensor) and value.dim() > int(dimension):
                mark_dynamic(value, int(dimension))
        return entry(*args, **kwargs)

    vars(call)["unmarked"] = entry
    return call


def _signature(target: Any) -> inspect.Signature:
    return inspect.signature(getattr(target, "forward", target))


def _owner(target: Any, name: str) -> tuple[dict[str, Any], str] | None:
    """The namespace that holds the value with this name, and the key there; None for an argument or an unknown name."""
    first, _, path = name.partition(".")
    if first != "self":
        function = getattr(target, "__func__", target)
        namespace = getattr(function, "__globals__", {})
        return (namespace, name) if name in namespace and name not in _signature(target).parameters else None
    value = getattr(target, "__self__", target)
    *parts, last = path.split(".")
    for part in parts:
        value = getattr(value, part, None)
    return (vars(value), last) if hasattr(value, "__dict__") and last in vars(value) else None


def _tensor(value: Any) -> Any:
    import torch

    return torch.tensor(value) if type(value) in (int, float, bool) else value


def _number(value: Any) -> Any:
    import torch

    return value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value
