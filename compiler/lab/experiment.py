"""Collects the outcome of one replay: the call's result, its effects on arguments and modules, and gradients.

The modules are those that the target or its arguments can reach.  Gradients are those of the result with respect to the tensors
and parameters that either can reach and that require gradients, and those that the call leaves in their `.grad`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from dynascope.compiler.capture.torch_private.tensors import Precisions, version_of
from dynascope.compiler.lab.comparison import PLAIN, Part, Rounding, largest, parts_of
from dynascope.compiler.lab.objects import fingerprint
from dynascope.compiler.lab.reachable import Reachable
from dynascope.compiler.lab.recorded_call import Clones, Prepare
from dynascope.compiler.lab.snapshot import torch_random_states
from dynascope.compiler.patching import value_or_absent
from dynascope.compiler.source.code import names_used


@dataclass
class Outcome:
    """The result and the effects of one call, copied."""

    #: "values", "effects" and "gradients" -> their parts, each with a name
    parts: dict[str, list[Part]]
    #: whether the call drew random numbers from torch's default generators, on any device that was used before it
    drew: bool
    #: names of the classes of objects in the result that cannot be compared
    opaque: list[str]
    #: names of the numbers and strings in modules that the call did not change
    unchanged: set[str]
    #: (group, name) of each part -> the lowest precision on the way to it, a dtype or None; empty if it was not followed
    precisions: dict[tuple[str, str], Any] = field(default_factory=dict)
    #: the lowest precision of all, a dtype; None if it was not followed
    lowest: Any = None

    def rounding(self, what: str, name: str) -> Rounding:
        """The rounding that a part may show; gradients of one size come out of sums of another: they share a scale."""
        if (what, name) not in self.precisions:
            return Rounding()
        scale = max(largest(value) for _, value in self.parts[what]) if what == "gradients" else None
        return Rounding(self.precisions[what, name], scale)


def replay(
    target: Any,
    entry: Callable[..., Any],
    prepare: Prepare,
    namespace: dict[str, Any] | None = None,
    names: Iterable[str] = (),
    precisions: Precisions | None = None,
) -> Outcome:
    """Run `entry`, the compiled `target`, once more, and return the outcome.

    `namespace`: the namespace of a cell's statements; `names`: the names in it that count as the statements' arguments and
    results.  If `names` is empty, the names that `target` uses are compared, only as effects.  `precisions`: those of a block
    around this call.
    """
    used = () if namespace is None else names or target.__code__.co_names

    def bound() -> dict[str, Any]:
        return {name: namespace[name] for name in used if namespace is not None and name in namespace}

    args, kwargs = prepare()
    given = bound() if names else {}
    before = _Before(target, args, kwargs, given)
    generators = torch_random_states()
    result = entry(*args, **kwargs)
    drew = any(not generator.same(generator.read(), generator.before) for generator in generators)
    result = result if namespace is None else result[1]
    opaque: dict[str, None] = {}
    values = list(parts_of("the value", result, opaque))
    new = {name: value for name, value in bound().items() if names and value is not given.get(name)}
    results = [*values, *(part for name, value in new.items() for part in parts_of(name, value))]
    groups = {"values": values, "effects": before.effects(bound()), "gradients": before.gradients(results)}
    lowest = {(what, name): precisions.of(value) for what in groups for name, value in groups[what]} if precisions else {}
    parts = {what: [(name, _copied(value)) for name, value in group] for what, group in groups.items()}
    return Outcome(parts, drew, list(opaque), before.unchanged(), lowest, precisions.lowest if precisions else None)


def _copied(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return Clones()(value.detach())
    return value if isinstance(value, PLAIN) else value.copy()


class _Before:
    """State that a call may change, as it is before the call."""

    def __init__(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], bound: dict[str, Any]) -> None:
        """`bound`: the values of the names that count as arguments of a cell's statements."""
        import torch

        reached = Reachable([target, args, kwargs])
        self._given = [*((f"argument {i}", value) for i, value in enumerate(args)), *kwargs.items()]
        names = _names_of(target, dict(self._given))
        self._modules, self._names = reached.modules(), names
        parameters = [value for _, value in self._of_modules() if isinstance(value, torch.nn.Parameter)]
        self._fingerprints = {id(value): fingerprint(value) for value in parameters}
        self._numbers = {(name, value) for name, value in self._of_modules() if isinstance(value, PLAIN)}
        leaves = [(names.get(id(t), f"a tensor of shape {tuple(t.shape)}"), t) for t in reached.with_gradient()]
        own = {name: value for name, value in bound.items() if not isinstance(value, torch.nn.Parameter)}
        of_names = [part for name, value in own.items() for part in parts_of(f"argument {name}", value)]
        parts = [*parts_of("argument", [*args, kwargs]), *of_names, *leaves]
        asking = [part for part in parts if isinstance(part[1], torch.Tensor)]
        first = {id(t): (name, t) for name, t in reversed(asking) if t.requires_grad}
        self._asking = [(name, t, version_of(t), _gradient_of(t)) for name, t in reversed(first.values())]

    def effects(self, bound: dict[str, Any]) -> list[Part]:
        """The present contents of arguments, names in `bound` and modules, without parameters that have not changed."""
        given = [(name, value) for name, value in self._given if not isinstance(value, PLAIN)]  # a number cannot change
        return [
            *(part for name, value in [*given, *bound.items()] for part in parts_of(name, value)),
            *((name, value) for name, value in self._of_modules() if not self._is_untouched(value)),
        ]

    def _is_untouched(self, value: Any) -> bool:
        """Whether the value is a parameter that the call has not changed; such a parameter is left out."""
        import torch

        return isinstance(value, torch.nn.Parameter) and self._fingerprints.get(id(value)) == fingerprint(value)

    def unchanged(self) -> set[str]:
        """Names of the numbers and strings in modules that have not changed."""
        return {name for name, value in self._of_modules() if isinstance(value, PLAIN) and (name, value) in self._numbers}

    def gradients(self, values: list[Part]) -> list[Part]:
        """The gradients that the call left in `.grad`, and those of its results."""
        left = [
            (f"gradient left in {name}", t.grad)
            for name, t, _, before in self._asking
            if t.is_leaf and t.grad is not None and _gradient_of(t) != before
        ]
        # leave out computed tensors that the call changed in place: for autograd they are other tensors than before
        return left + _gradients(
            values, [(name, t) for name, t, version, _ in self._asking if t.is_leaf or version_of(t) == version]
        )

    def _of_modules(self) -> Iterator[Part]:
        """The parameters, buffers, numbers and strings in the modules, with their names.

        Private numbers and strings of torch's own modules are left out.
        """
        done: set[int] = set()
        for module in self._modules:
            own, kind = vars(module), type(module).__name__
            for name, value in {**own.get("_parameters", {}), **own.get("_buffers", {})}.items():
                if value is not None and id(value) not in done:
                    done.add(id(value))
                    yield self._names.get(id(value), f"{kind}.{name}"), value
            is_torchs = type(module).__module__.partition(".")[0] == "torch"  # then private attributes are internal to torch
            numbers = [(n, v) for n, v in own.items() if isinstance(v, PLAIN) and not (is_torchs and n.startswith("_"))]
            yield from ((f"{kind}.{n}", v) for n, v in numbers)


def _gradient_of(tensor: Any) -> tuple[int, int | None]:
    """Identity and version of a leaf's `.grad`; other tensors count as having none."""
    gradient = tensor.grad if tensor.is_leaf else None
    return id(gradient), None if gradient is None else version_of(gradient)


def _names_of(target: Any, given: dict[str, Any]) -> dict[int, str]:
    """id -> name of the tensors in a module, in the closure and globals of a function, or in modules among its arguments."""
    import torch

    function = getattr(target, "__func__", target)
    known = {"": getattr(target, "__self__", target)}
    if isinstance(function, FunctionType):
        code = function.__code__
        known |= {name: function.__globals__.get(name) for name in names_used(code)}
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        known |= {name: value_or_absent(functools.partial(getattr, cell, "cell_contents")) for name, cell in cells}
    known |= {name: value for name, value in given.items() if isinstance(value, torch.nn.Module)}
    names: dict[int, str] = {}
    for name, value in known.items():
        if isinstance(value, torch.Tensor):
            names.setdefault(id(value), name)
        elif isinstance(value, torch.nn.Module):
            for inner, tensor in [*value.named_parameters(), *value.named_buffers()]:
                names.setdefault(id(tensor), f"{name}.{inner}".removeprefix("."))
    return names


def _gradients(values: list[Part], leaves: list[Part]) -> list[Part]:
    """The gradients of the sum of all computed floating-point values with respect to the leaves; [] if there are none."""
    import torch

    tensors = [t for _, t in values if isinstance(t, torch.Tensor) and t.is_floating_point()]
    outputs = [t.float().sum() for t in tensors if t.requires_grad and t.grad_fn is not None]
    if not outputs or not leaves:
        return []
    try:
        gradients = torch.autograd.grad(outputs, [t for _, t in leaves], allow_unused=True)
    except RuntimeError:  # mostly because the call has run backward itself: only the gradients in `.grad` are compared
        return []
    return [(f"gradient of {name}", g) for (name, _), g in zip(leaves, gradients, strict=True) if g is not None]
