"""`--check=where`: tries what could help, a setting of Inductor or another formula, and offers only what does."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dynascope.compiler.capture.torch_private.bisector import inductor_config, inductor_setting
from dynascope.compiler.lab import check
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.trial import Trials
from dynascope.compiler.lab.fix.variations import recorded
from dynascope.compiler.lab.numbers.graphs import CapturedGraph, Compile, Formula
from dynascope.compiler.lab.numbers.verdict import WORSE, error_of, share_of
from dynascope.compiler.lab.recorded_call import RecordedCall
from dynascope.compiler.report import NumbersRemedy, input_name

#: the settings of Inductor to try, one after the other; the last one keeps a product and a sum from becoming one operation
_SETTINGS = {
    "fallback_random": True, "emulate_precision_casts": True, "cpp.enable_floating_point_contract_flag": "off",
}  # fmt: skip
#: a change in words, the formula in place of a node's, and what is set meanwhile
Change = tuple[str, Formula | None, contextlib.AbstractContextManager[None]]


def settings_that_help(call: RecordedCall, trials: Trials, backend: Any) -> Iterator[NumbersRemedy]:
    """The settings with which compiled and eager code agree."""
    if backend != "inductor":
        return
    with trials.eagerly() as run:
        eager = run(call, recorded())
    for name, value in _SETTINGS.items():
        if inductor_setting(name) in (None, value):
            continue
        with trials.anew(), inductor_config(**{name: value}), trials.compiled(Plan(), backend, strict=False) as run:
            compiled = run(call, recorded())
        if compiled.error is None and eager.error is None and check.outcome(compiled, eager).agrees:
            yield NumbersRemedy(change=f"torch._inductor.config.{name} = {value!r}")
            return


def formulas_that_help(graph: CapturedGraph, name: str, compile: Compile) -> Iterator[NumbersRemedy]:
    """The formula or the precision with which this node has far smaller errors, compiled and in eager mode."""
    node = next((node for node in graph.module.graph.nodes if node.name == name), None)
    if node is None:
        return
    before = graph.cut(node).measure(lambda module: module)[0]
    formulas = [formula for matches in (_variance, _of_exponentials, _in_float32) if (formula := matches(node)) is not None]
    changes: list[Change] = [(_written(*formula), formula, contextlib.nullcontext()) for formula in formulas]
    for change, formula, setting in [*changes, *_in_full_precision(node)]:
        with setting:
            after = graph.cut(node, formula).measure(compile)[0]
        errors = [error_of(value, before.exact) for value in (after.eager, after.compiled)]
        if max(map(share_of, errors)) * WORSE < share_of(error_of(before.eager, before.exact)):
            yield NumbersRemedy(change=change, eager=errors[0], compiled=errors[1])
            return


def _in_full_precision(node: Any) -> Iterator[Change]:
    """How to turn off, if it is on, that products of float32 are computed with less precision."""
    cudnn: Any = torch.backends.cudnn
    with contextlib.suppress(RuntimeError):  # torch does not tell where a program uses both its old and its new settings
        if "conv" in str(node.target) and cudnn.allow_tf32:
            allow = functools.partial(setattr, cudnn, "allow_tf32")
            yield "torch.backends.cudnn.allow_tf32 = False", None, _set_to(allow, False, True)
        precision, change = torch.get_float32_matmul_precision(), torch.set_float32_matmul_precision
        if precision != "highest":
            yield "torch.set_float32_matmul_precision('highest')", None, _set_to(change, "highest", precision)


@contextlib.contextmanager
def _set_to(change: Callable[[Any], None], value: Any, before: Any) -> Iterator[None]:
    change(value)
    try:
        yield
    finally:
        change(before)


def _written(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    if isinstance(function, _InFloat32):
        return f"{function.__name__} in float32"
    named = [input_name(str(arg)) for arg in args]
    return f"torch.{function.__name__}({', '.join([*named, *(f'{k}={v}' for k, v in keywords.items())])})"


class _InFloat32:
    """Runs an operation in float32, also under autocast."""

    def __init__(self, target: Any, device: str) -> None:
        self._target, self._device = target, device
        self.__name__ = str(getattr(target, "__name__", target))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        raised = [arg.float() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg for arg in args]
        with torch.autocast(self._device, enabled=False):
            if isinstance(self._target, str):
                return getattr(raised[0], self._target)(*raised[1:], **keywords)
            return self._target(*raised, **keywords)


def _in_float32(node: Any) -> Formula | None:
    value = node.meta.get("example_value")
    if value is None or value.dtype.itemsize > 2 or node.op not in ("call_function", "call_method"):
        return None
    return _InFloat32(node.target, value.device.type), node.args, node.kwargs


def _called(node: Any, *names: str) -> bool:
    """Whether a node calls an operation with one of these names."""
    return str(getattr(getattr(node, "target", None), "__name__", getattr(node, "target", ""))) in names


def _squared(node: Any) -> Any:
    """What a node squares; None if it squares nothing."""
    if _called(node, "mul") and node.args[0] is node.args[1]:
        return node.args[0]
    return node.args[0] if _called(node, "square") or (_called(node, "pow") and node.args[1] == 2) else None


def _variance(node: Any) -> Formula | None:
    """E[x^2] - E[x]^2."""
    if not _called(node, "sub") or not _called(node.args[0], "mean"):
        return None
    squares, mean = node.args[0], _squared(node.args[1])
    x = _squared(squares.args[0])
    if x is None or not _called(mean, "mean") or mean.args[0] is not x:
        return None
    if (mean.args[1:], mean.kwargs) != (squares.args[1:], squares.kwargs):
        return None
    return torch.var, (x, *mean.args[1:2]), {**mean.kwargs, "correction": 0}


def _of_exponentials(node: Any) -> Formula | None:
    """Logarithms of a softmax, of a sum of exponentials and of 1 + x, and exp(x) - 1."""
    if _called(node, "sub") and _called(node.args[0], "exp") and node.args[1] == 1:
        return torch.expm1, node.args[0].args, {}
    inner: Any = node.args[0] if _called(node, "log") else None
    if _called(inner, "softmax"):
        return torch.log_softmax, inner.args, {k: v for k, v in inner.kwargs.items() if k in ("dim", "dtype") and v is not None}
    if _called(inner, "sum") and len(inner.args) > 1 and _called(inner.args[0], "exp"):
        return torch.logsumexp, (*inner.args[0].args, *inner.args[1:]), dict(inner.kwargs)
    if _called(inner, "add") and 1 in inner.args:
        return torch.log1p, tuple(arg for arg in inner.args if isinstance(arg, torch.fx.Node)), {}
    return None
