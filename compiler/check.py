"""`--check`: does compiled code do what eager code does?

The last call of what was compiled runs again twice without a trace (`repeat`): compiled, and with torch's stance
"force_eager", each on fresh copies of its arguments and with the same random numbers.  Compared are what it returns, what
it leaves in its arguments (and, for a cell's statements, in the names they bind) and the gradients of the tensors and
parameters that ask for one, wherever the call reaches them: those of its values, and those that it leaves in `.grad`;
with the tolerances of `torch.testing.assert_close` for their dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from types import FunctionType
from typing import Any

from dynascope.compiler import hooks
from dynascope.compiler.copies import Copies
from dynascope.compiler.putting import content_of
from dynascope.compiler.repeat import Repeat, watching
from dynascope.compiler.world import World, names_used

#: differences that are told
TOLD = 5


@dataclass
class Checked:
    """What comparing gave; `agrees` is None where nothing could be compared."""

    agrees: bool | None = None
    #: how many tensors were compared: {"values", "effects", "gradients"}
    compared: dict[str, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    why_not: str = ""

    def words(self) -> str:
        """One sentence for the report."""
        if self.agrees is None:
            return f"check: nothing was compared: {self.why_not}."
        if not self.agrees:
            return f"check: compiled and eager differ: {'; '.join(self.differences)}."
        return f"check: compiled and eager agree ({', '.join(f'{n} {what}' for what, n in self.compared.items() if n)})."

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
            return Checked(why_not="no compiled function was called, or the call raised")
        if last[2].why_not is not None:
            return Checked(why_not=last[2].why_not)
        try:
            return _compare(*last)
        except Exception as error:
            return Checked(why_not=f"run again it raised {type(error).__name__}: {error}")


def _compare(target: Any, entry: Callable[..., Any], repeat: Repeat, namespace: dict[str, Any] | None) -> Checked:
    import torch

    names = list(target.__code__.co_names) if namespace is not None else []

    def run() -> dict[str, list[tuple[str, Any]]]:
        args, kwargs = prepare()
        leaves = list(_wanting(target, args, kwargs))
        before = [(t.grad, None if t.grad is None else t.grad._version) for _, t in leaves]
        torch.manual_seed(0)
        result = entry(*args, **kwargs)
        left = {name: namespace[name] for name in names if namespace is not None and name in namespace}
        values = list(_tensors("the value", result[1] if namespace is not None else result))
        grads = [
            (f"gradient left in {name}", t.grad)
            for (name, t), (grad, version) in zip(leaves, before, strict=True)
            if t.grad is not None and (t.grad is not grad or t.grad._version != version)
        ]
        grads = [(name, g.clone()) for name, g in grads] + _gradients(values, leaves)
        found = {"values": values, "effects": list(_tensors("argument", [*args, kwargs, left])), "gradients": grads}
        return {what: [(name, Copies()(t.detach())) for name, t in tensors] for what, tensors in found.items()}

    with hooks.HOOKS.paused(), repeat.without_trace() as prepare:
        compiled = run()
        with torch.compiler.set_stance("force_eager"):
            eager = run()
    checked = Checked(agrees=True)
    for what, expected in eager.items():
        found = compiled[what]
        checked.compared[what] = len(expected)
        if len(found) != len(expected):
            checked.differences.append(f"{len(found)} tensors among the {what}, eager {len(expected)}")
        for (name, a), (_, b) in zip(found, expected, strict=False):
            try:
                torch.testing.assert_close(a, b, equal_nan=True)
            except AssertionError as error:
                checked.differences.append(f"{name} ({what}): {' '.join(str(error).split())[:160]}")
    checked.agrees = not checked.differences
    del checked.differences[TOLD:]
    return checked


def _tensors(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every tensor in a value, with a name for each."""
    import torch

    if isinstance(value, torch.Tensor):
        yield name, value
    elif depth < 6 and isinstance(value, dict):
        for key, inner in value.items():
            yield from _tensors(f"{name}[{key!r}]", inner, depth + 1)
    elif depth < 6 and isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from _tensors(f"{name}[{i}]", inner, depth + 1)


def _wanting(target: Any, args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    """Leaves that ask for a gradient: arguments, parameters of the module, what closures and globals lead to."""
    done: set[int] = set()
    names = _names_of(target)
    reached = [(names.get(id(t), f"a tensor of shape {tuple(t.shape)}"), t) for t in World([target], values=False).leaves()]
    for name, tensor in [*_tensors("argument", [*args, kwargs]), *reached]:
        if tensor.requires_grad and tensor.is_leaf and id(tensor) not in done:
            done.add(id(tensor))
            yield name, tensor


def _names_of(target: Any) -> dict[int, str]:
    """Names of the tensors that a module holds, or that a function's closure and globals name themselves."""
    import torch

    owner = getattr(target, "__self__", target)
    found: dict[int, str] = {}
    if isinstance(owner, torch.nn.Module):
        found = {id(p): name for name, p in owner.named_parameters()}
    function = getattr(target, "__func__", target)
    if not isinstance(function, FunctionType):
        return found
    known = {name: function.__globals__.get(name) for name in names_used(function.__code__)}
    known |= {n: content_of(cell) for n, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)}
    for name, value in known.items():
        if isinstance(value, torch.Tensor):
            found.setdefault(id(value), name)
        elif isinstance(value, torch.nn.Module):
            for inner, parameter in value.named_parameters():
                found.setdefault(id(parameter), f"{name}.{inner}")
    return found


def _gradients(values: list[tuple[str, Any]], leaves: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    import torch

    outputs = [t.float().sum() for _, t in values if t.requires_grad and t.is_floating_point() and t.grad_fn is not None]
    if not outputs or not leaves:
        return []
    total = torch.stack(outputs).sum()
    try:
        grads = torch.autograd.grad(total, [t for _, t in leaves], allow_unused=True)
    except RuntimeError:  # the call has gone backward itself: what it left in `.grad` is compared
        return []
    return [(f"gradient of {name}", g) for (name, _), g in zip(leaves, grads, strict=True) if g is not None]
