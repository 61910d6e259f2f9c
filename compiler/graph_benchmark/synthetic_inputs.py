"""Made-up data for a graph's inputs, from what the report tells of them: shape, dtype, stride, device.

Floating-point numbers are drawn from N(0, 1), booleans by tossing a coin, integers are 0 or 1; where an integer input is used
to look something up (an embedding, an index), any of the numbers that are valid there.  Always the same numbers: they come
from a generator of their own, and no other random state is touched.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dynascope.compiler.graph_benchmark.operations import NotRunnable
from dynascope.compiler.graph_benchmark.rebuild import RECORDED
from dynascope.compiler.report import Node

if TYPE_CHECKING:
    import torch
    import torch.fx

Sizes = Mapping[str, int | float]

_ARITHMETIC: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {"Max": max, "Min": min, "Mod": operator.mod, "FloorDiv": operator.floordiv}
#: the highest power of a size, for the text may come from a file
_HIGHEST = 8
#: what hands on the numbers of its first input, in another shape
_SAME = frozenset({
    "view", "reshape", "expand", "to", "long", "int", "transpose", "permute", "flatten", "unsqueeze", "squeeze", "contiguous",
    "clone", "getitem", "t", "detach", "repeat", "cat", "roll", "slice",
})  # fmt: skip
#: (x, dim, index, ...)
_BY_DIMENSION = frozenset({
    "index_select", "gather", "take_along_dim", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy",
    "index_fill",
})  # fmt: skip


class MadeUp:
    """Makes the inputs of one graph, always the same ones.

    `sizes`: what the symbols of its shapes stood for; `limits`: see `limits`; `device`: in place of the recorded ones.
    `tame`: floats are between 0 and 1, and square matrices positive definite: probabilities, covariances.
    """

    def __init__(self, sizes: Sizes, limits: Mapping[str, int], device: str | None, tame: bool = False) -> None:
        import torch

        self.sizes, self.limits, self.device, self.tame = sizes, limits, device, tame
        self.generator = torch.Generator().manual_seed(0)

    def __call__(self, node: Node) -> Any:
        """A value like the one that was recorded for this input; raises NotRunnable."""
        import torch

        if node.dtype is None:
            raise NotRunnable(f"its input {node.name} is no tensor, and the report does not describe it")
        if node.dtype.startswith("Sym("):
            return size(node.dtype.removeprefix("Sym(").removesuffix(")"), self.sizes, node.name)
        dtype = getattr(torch, node.dtype, None)
        if node.shape is None or not isinstance(dtype, torch.dtype):
            raise NotRunnable(f"its input {node.name} is a {node.dtype}, which cannot be made up")
        shape = [int(size(s, self.sizes, node.name)) for s in node.shape]
        stride = [int(size(s, self.sizes, node.name)) for s in node.stride] if node.stride is not None else None
        device = self.device or node.device
        if device is None:
            raise NotRunnable(f"the report does not tell on which device its input {node.name} was")
        limit = self.limits.get(node.name, 2)
        try:
            if stride is None or 0 in shape:
                made = self.numbers(math.prod(shape), dtype, limit).to(device).reshape(shape)
            else:
                reach = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
                made = torch.as_strided(self.numbers(reach, dtype, limit).to(device), shape, stride)
            if self.tame and dtype.is_floating_point and shape[-2:-1] == shape[-1:] and 0 not in made.stride():
                # what stands beside the diagonal is less, in sum, than what stands on it
                made.add_(torch.eye(shape[-1], dtype=dtype, device=device) * shape[-1]).div_(shape[-1] + 1)
            return made
        except (RuntimeError, OverflowError, TypeError, ValueError) as error:  # no such memory, no such tensor
            first = str(error).partition("\n")[0]
            raise NotRunnable(f"its input {node.name} cannot be made up: {first}"[:300]) from None

    def numbers(self, count: int, dtype: torch.dtype, limit: int) -> torch.Tensor:
        import torch

        if dtype.is_floating_point or dtype.is_complex:
            drawn = torch.complex64 if dtype.is_complex else torch.float64 if dtype == torch.float64 else torch.float32
            draw = torch.rand if self.tame else torch.randn
            return draw(count, generator=self.generator, dtype=drawn, device="cpu").to(dtype)
        most = 2 if dtype == torch.bool else max(1, limit)
        return torch.randint(most, (count,), generator=self.generator, dtype=torch.int64, device="cpu").to(dtype)


def size(text: int | str, sizes: Sizes, name: str) -> int | float:
    """The number that a size stands for (`12`, `2*s0**2 + 1`, `Max(1, u0)`); raises NotRunnable where it is not known."""
    if isinstance(text, (int, float)):
        return text

    def number(node: ast.expr) -> int | float:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.Name) and node.id in sizes:
            return sizes[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return _ARITHMETIC[type(node.op)](number(node.left), number(node.right))  # type: ignore[no-any-return]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            power = node.right.value if isinstance(node.right, ast.Constant) else None
            if isinstance(power, int) and 0 <= power <= _HIGHEST:
                return math.prod([number(node.left)] * power)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            return functools.reduce(_FUNCTIONS[node.func.id], map(number, node.args))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -number(node.operand)
        raise ValueError

    try:
        return number(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError):
        raise NotRunnable(f"its input {name} has a size, {text}, whose value was not recorded") from None


# -- integers that look something up --------------------------------------------------------------------------


def limits(graph: torch.fx.Graph, nodes: Mapping[str, Node], sizes: Sizes) -> dict[str, int]:
    """For each input that is used to look something up, the first integer that would be too large.

    Read off the recorded shapes, from the last node to the first: what only changes an index's shape hands it on.
    """
    found: dict[str, int] = {}

    def shape(value: Any) -> list[int]:
        node = nodes.get(_name(value))
        try:
            return [int(size(s, sizes, "")) for s in (node.shape if node and node.shape is not None else ())]
        except NotRunnable:
            return []

    def is_index(value: Any) -> bool:
        node = nodes.get(_name(value))
        return node is not None and (node.dtype or "").startswith(("int", "uint"))

    for node in reversed(graph.nodes):
        for index, limit in _looked_up(node, shape, is_index):
            found[_name(index)] = min(limit, found.get(_name(index), limit))
        if _name(node) in found and _operation(node) in _SAME and node.args:
            sources = node.args[0] if isinstance(node.args[0], (list, tuple)) else [node.args[0]]
            for source in sources:
                if is_index(source):
                    found[_name(source)] = min(found[_name(node)], found.get(_name(source), found[_name(node)]))
    return found


def _looked_up(
    node: torch.fx.Node, shape: Callable[[Any], list[int]], is_index: Callable[[Any], bool]
) -> Iterator[tuple[Any, int]]:
    """(index, how many rows there are) for what this node looks up."""
    name, args = _operation(node), list(node.args)
    if name in ("embedding", "embedding_bag") and len(args) > 1:
        index, table = (
            args[:2] if is_index(args[0]) else args[1::-1]
        )  # F.embedding(index, table), torch.embedding(table, index)
        if shape(table):
            yield index, shape(table)[0]
        offsets = args[2] if len(args) > 2 else node.kwargs.get("offsets")
        if name == "embedding_bag" and is_index(offsets):
            yield offsets, 1  # the first has to be 0, and none is smaller than the one before
    elif name in _BY_DIMENSION:
        values = [*args, *node.kwargs.values()]
        dimension = next((a for a in values[1:] if isinstance(a, int)), None)
        index = next((a for a in values[1:] if is_index(a)), None)
        if dimension is not None and index is not None and -len(shape(args[0])) <= dimension < len(shape(args[0])):
            yield index, shape(args[0])[dimension]
    elif name in ("getitem", "setitem") and len(args) > 1:
        parts = args[1] if isinstance(args[1], tuple) else (args[1],)
        at = 0
        for number, part in enumerate(parts):
            if is_index(part) and at < len(shape(args[0])):
                yield part, shape(args[0])[at]
            if part is ...:  # what follows is counted from the end
                at = len(shape(args[0])) - sum(p is not None for p in parts[number + 1 :])
            elif part is not None:
                at += 1
    elif name in ("cross_entropy", "nll_loss", "cross_entropy_loss") and len(args) > 1 and is_index(args[1]) and shape(args[0]):
        yield args[1], shape(args[0])[min(1, len(shape(args[0])) - 1)]
    elif name == "one_hot" and args:
        classes = args[1] if len(args) > 1 else node.kwargs.get("num_classes", -1)
        if isinstance(classes, int) and classes > 0:
            yield args[0], classes


def _name(value: Any) -> str:
    return str(getattr(value, "meta", {}).get(RECORDED, ""))


def _operation(node: torch.fx.Node) -> str:
    """`embedding`, whether it is a function, a method or an aten operation."""
    name = node.target if isinstance(node.target, str) else str(getattr(node.target, "__name__", ""))
    return name.partition(".")[0].strip("_")
