"""`--check`: does compiled code do what eager code does?

The last call of what was compiled runs again twice without a trace (`repeat`): compiled, and with torch's stance
"force_eager", each on fresh copies of its arguments and with the same random numbers.  Compared (`compared`) are what it
returns, what it leaves in its arguments, in the modules that it reaches (and, for a cell's statements, in the names they
bind) and the gradients of the tensors and parameters that ask for one, wherever the call reaches them: those of its values,
and those that it leaves in `.grad`; with the tolerances of `torch.testing.assert_close` for their dtypes.

A backend may draw random numbers of its own (Inductor does).  Where any were drawn, a difference tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from types import FunctionType
from typing import Any

from dynascope.compiler.accuracy.compare import Part, difference, parts_of
from dynascope.compiler.replay.clone import Copies
from dynascope.compiler.replay.replay import Repeat, random_state, watching
from dynascope.compiler.replay.restore import content_of
from dynascope.compiler.replay.snapshot import World, names_used
from dynascope.compiler.report import plural
from dynascope.compiler.torch_private import hooks

#: differences that are told
TOLD = 5
_NUMBERS = (bool, int, float, complex, str, bytes)


@dataclass
class Checked:
    """What comparing gave; `agrees` is None where nothing could be compared, or a difference need not mean anything."""

    agrees: bool | None = None
    #: how many tensors, arrays, numbers and strings were compared: {"values", "effects", "gradients"}
    compared: dict[str, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    why_not: str = ""
    #: classes of what it returns that could not be looked into
    not_compared: list[str] = field(default_factory=list)

    def words(self) -> str:
        """One sentence for the report."""
        if self.agrees is None and self.differences:
            return f"check: unknown whether compiled and eager agree: {self.why_not}."
        if self.agrees is None:
            return f"check: nothing was compared: {self.why_not}."
        if not self.agrees:
            return f"check: compiled and eager differ: {'; '.join(self.differences)}."
        told = ", ".join(plural(many, what.removesuffix("s")) for what, many in self.compared.items() if many)
        if self.not_compared:
            told += f"; not compared: {', '.join(self.not_compared[:3])}"
        return f"check: compiled and eager agree ({told})."

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class LastCall:
    """Keeps the last call of a run's entry points, and compares."""

    def __init__(self) -> None:
        self._last: tuple[Any, Callable[..., Any], Repeat, dict[str, Any] | None] | None = None

    def watch(self, target: Any, entry: Callable[..., Any], namespace: dict[str, Any] | None = None) -> Callable[..., Any]:
        """`entry`, the compiled `target`, with its calls remembered."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self._last = None  # a call that raises is not compared
            repeat = Repeat(target, args, kwargs, namespace)
            result = entry(*args, **kwargs)
            self._last = (target, entry, repeat, namespace)
            return result

        return watching(call, entry)

    def compare(self) -> Checked:
        """Run the last call again, compiled and eagerly; lets go of its arguments."""
        last, self._last = self._last, None
        if last is None:
            return Checked(why_not="nothing that this run compiles was called, or the call raised")
        if last[2].why_not is not None:
            return Checked(why_not=last[2].why_not)
        try:
            return _compare(*last)
        except Exception as error:
            return Checked(why_not=f"run again it raised {type(error).__name__}: {error}")


@dataclass
class _Outcome:
    """What one call gave and left, copied."""

    parts: dict[str, list[Part]]
    drew: bool
    opaque: list[str]
    #: attributes of modules that are what they were before the call
    still: set[str]


def _compare(target: Any, entry: Callable[..., Any], repeat: Repeat, namespace: dict[str, Any] | None) -> Checked:
    import torch

    names = list(target.__code__.co_names) if namespace is not None else []

    def run() -> _Outcome:
        args, kwargs = prepare()
        watch = _Watch(target, args, kwargs)
        torch.manual_seed(0)
        seeded = torch.get_rng_state()
        result = entry(*args, **kwargs)
        drew = not torch.equal(seeded, torch.get_rng_state())
        left = {name: namespace[name] for name in names if namespace is not None and name in namespace}
        opaque: dict[str, None] = {}
        values = list(parts_of("the value", result[1] if namespace is not None else result, opaque))
        found = {"values": values, "effects": watch.effects(left), "gradients": watch.gradients(values)}
        kept = {what: [(name, _kept(value)) for name, value in parts] for what, parts in found.items()}
        return _Outcome(kept, drew, list(opaque), watch.still())

    with hooks.HOOKS.paused(), repeat.without_trace() as prepare:
        with random_state():
            compiled = run()
        with random_state(), torch.compiler.set_stance("force_eager"):
            eager = run()
    return _told(compiled, eager)


class _Watch:
    """Looks, before a call, at what it may change; tells afterwards what it has left there."""

    def __init__(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._target, self._args, self._kwargs = target, args, kwargs
        self._reached = World([target], values=False)
        self._leaves = list(_wanting(target, self._reached, args, kwargs))
        self._gradients = [_gradient_of(t) for _, t in self._leaves]
        self._leaf_versions = [t._version for _, t in self._leaves]
        self._versions = {id(value): _version(value) for _, value in _state(target, self._reached)}
        self._attributes = self._numbers()

    def effects(self, left: dict[str, Any]) -> list[Part]:
        """What is in the arguments, in names that were bound, and in modules."""
        given = [(f"argument {i}", value) for i, value in enumerate(self._args)] + list(self._kwargs.items())
        given = [(name, value) for name, value in given if not isinstance(value, _NUMBERS)]  # a number stays what it is
        found = [part for name, value in [*given, *left.items()] for part in parts_of(name, value)]
        return found + [(n, v) for n, v in _state(self._target, self._reached) if not self._is_untouched(v)]

    def _is_untouched(self, value: Any) -> bool:
        """Parameters only: a model's weights are not copied for nothing."""
        import torch

        return isinstance(value, torch.nn.Parameter) and self._versions.get(id(value)) == _version(value)

    def gradients(self, values: list[Part]) -> list[Part]:
        """Those that the call has left in `.grad`, and those of its values."""
        left = [
            (f"gradient left in {name}", t.grad.clone())
            for (name, t), (gradient, version) in zip(self._leaves, self._gradients, strict=True)
            if t.is_leaf and t.grad is not None and (t.grad is not gradient or t.grad._version != version)
        ]
        # changed in place, a tensor that was computed is another one
        asked = [
            (name, t)
            for (name, t), version in zip(self._leaves, self._leaf_versions, strict=True)
            if t.is_leaf or t._version == version
        ]
        return left + _gradients(values, asked)

    def still(self) -> set[str]:
        """Names of numbers in modules that are what they were."""
        return {name for name, _ in self._attributes & self._numbers()}

    def _numbers(self) -> set[Part]:
        return {(name, value) for name, value in _state(self._target, self._reached) if isinstance(value, _NUMBERS)}


def _version(value: Any) -> int | None:
    """How often a tensor was changed in place; None for what does not tell."""
    import torch

    return value._version if isinstance(value, torch.Tensor) and not value.is_inference() else None


def _gradient_of(tensor: Any) -> tuple[Any, int]:
    """Which gradient a leaf has, and in which version."""
    gradient = tensor.grad if tensor.is_leaf else None
    return gradient, 0 if gradient is None else gradient._version


def _kept(value: Any) -> Any:
    import torch

    return Copies()(value.detach() if isinstance(value, torch.Tensor) else value)


def _told(compiled: _Outcome, eager: _Outcome) -> Checked:
    checked = Checked(not_compared=eager.opaque)
    for what, expected in eager.parts.items():
        found = compiled.parts[what]
        checked.compared[what] = sum(name not in eager.still for name, _ in expected)
        names, wanted = [name for name, _ in found], [name for name, _ in expected]
        only = [f"{n} is there only compiled" for n in names if n not in wanted]
        only += [f"{n} is there only eager" for n in wanted if n not in names]
        if only or len(names) != len(wanted):
            checked.differences += only or [f"{len(names)} parts among the {what}, eager {len(wanted)}"]
            continue
        for (name, a), (_, b) in zip(found, expected, strict=True):
            told = difference(a, b)
            if told is not None:
                checked.differences.append(f"{name} ({what}): {told}")
    if checked.differences and (compiled.drew or eager.drew):
        checked.why_not = (
            f"they differ ({checked.differences[0]}), but the call draws random numbers, and a backend may draw others than "
            "eager code does; with Inductor, torch._inductor.config.fallback_random = True makes them the same"
        )
    elif not checked.differences and not any(checked.compared.values()):
        checked.why_not = "the call gives and leaves nothing that can be compared" + (
            f" ({', '.join(checked.not_compared[:3])})" if checked.not_compared else ""
        )
    else:
        checked.agrees = not checked.differences
    del checked.differences[TOLD:]
    return checked


def _state(target: Any, reached: World) -> Iterator[tuple[str, Any]]:
    """What the modules that a call reaches hold: parameters, buffers, numbers."""
    names = _names_of(target)
    done: set[int] = set()
    for module in reached.modules():
        own = vars(module)
        for name, value in {**own.get("_parameters", {}), **own.get("_buffers", {})}.items():
            if value is not None and id(value) not in done:
                done.add(id(value))
                yield names.get(id(value), f"{type(module).__name__}.{name}"), value
        for name, value in own.items():
            if isinstance(value, _NUMBERS) and not name.startswith("_"):
                yield f"{type(module).__name__}.{name}", value


def _wanting(target: Any, reached: World, args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    """What asks for a gradient: arguments, parameters of the module, leaves that closures and globals lead to."""
    import torch

    done: set[int] = set()
    names = _names_of(target)
    leaves = [(names.get(id(t), f"a tensor of shape {tuple(t.shape)}"), t) for t in reached.leaves()]
    for name, tensor in [*parts_of("argument", [*args, kwargs]), *leaves]:
        if isinstance(tensor, torch.Tensor) and tensor.requires_grad and id(tensor) not in done:
            done.add(id(tensor))
            yield name, tensor


def _held(module: Any) -> list[tuple[str, Any]]:
    return [*module.named_parameters(), *module.named_buffers()]


def _names_of(target: Any) -> dict[int, str]:
    """Names of the tensors that a module holds, or that a function's closure and globals name themselves."""
    import torch

    owner = getattr(target, "__self__", target)
    found: dict[int, str] = {}
    if isinstance(owner, torch.nn.Module):
        found = {id(p): name for name, p in _held(owner)}
    function = getattr(target, "__func__", target)
    if not isinstance(function, FunctionType):
        return found
    known = {name: function.__globals__.get(name) for name in names_used(function.__code__)}
    known |= {n: content_of(cell) for n, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)}
    for name, value in known.items():
        if isinstance(value, torch.Tensor):
            found.setdefault(id(value), name)
        elif isinstance(value, torch.nn.Module):
            for inner, parameter in _held(value):
                found.setdefault(id(parameter), f"{name}.{inner}")
    return found


def _gradients(values: list[Part], leaves: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    import torch

    tensors = [t for _, t in values if isinstance(t, torch.Tensor) and t.is_floating_point()]
    outputs = [t.float().sum() for t in tensors if t.requires_grad and t.grad_fn is not None]
    if not outputs or not leaves:
        return []
    total = torch.stack(outputs).sum()
    try:
        grads = torch.autograd.grad(total, [t for _, t in leaves], allow_unused=True)
    except RuntimeError:  # the call has gone backward itself: what it left in `.grad` is compared
        return []
    return [(f"gradient of {name}", g) for (name, _), g in zip(leaves, grads, strict=True) if g is not None]
