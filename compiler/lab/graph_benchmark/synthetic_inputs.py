"""Makes synthetic inputs for a graph from their descriptions in the report: shape, dtype, stride, device.

Floating-point numbers are drawn from N(0, 1), or from [0, 1) if `well_conditioned`.  Booleans are random, integers are 0 or 1;
an integer input that is used as an index (into an embedding, say) gets valid indices.  The numbers come from a separate
generator with a fixed seed, so they are always the same, and no other random state changes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dynascope.compiler.lab.graph_benchmark.rebuild import RECORDED, NotRunnable
from dynascope.compiler.report import Node

if TYPE_CHECKING:
    import torch
    import torch.fx

Sizes = Mapping[str, int | float]

#: functions in the text of a size (sympy's names)
_FUNCTIONS: dict[str, Callable[..., Any]] = {"Max": max, "Min": min, "Mod": operator.mod, "FloorDiv": operator.floordiv}
#: operations whose result consists of values of their first argument (for `cat`, a list of tensors)
_SAME_VALUES = frozenset({
    "view", "reshape", "expand", "to", "long", "int", "transpose", "permute", "flatten", "unsqueeze", "squeeze", "contiguous",
    "clone", "getitem", "t", "detach", "repeat", "cat", "roll", "slice",
})  # fmt: skip
#: operations with the arguments (x, dim, index, ...)
_BY_DIMENSION = frozenset({
    "index_select", "gather", "take_along_dim", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy",
    "index_fill",
})  # fmt: skip


class SyntheticInputs:
    """Creates the inputs of one graph, always the same ones; `sizes`: the values of the symbols in its shapes.

    `well_conditioned`: floats between 0 and 1, square matrices positive definite (probabilities, covariances).
    """

    def __init__(self, sizes: Sizes, device: str | None, well_conditioned: bool = False) -> None:
        import torch

        self.sizes, self.device, self.well_conditioned = sizes, device, well_conditioned
        #: name of an input -> the first integer that is too large for it (`index_limits`)
        self.limits: Mapping[str, int] = {}
        self.generator = torch.Generator().manual_seed(0)

    def __call__(self, node: Node) -> Any:
        """A value like the one that was recorded for this input; raises NotRunnable if that is impossible."""
        import torch

        if node.dtype is None:
            raise NotRunnable(f"its input {node.name} is not a tensor, and the report does not describe it")
        if node.subclass is not None:
            raise NotRunnable(f"its input {node.name} is a {node.subclass}, which cannot be synthesized")
        if node.dtype.startswith("Sym("):
            return size(node.dtype.removeprefix("Sym(").removesuffix(")"), self.sizes, node.name)
        dtype = getattr(torch, node.dtype, None)
        if node.shape is None or not isinstance(dtype, torch.dtype):
            raise NotRunnable(f"its input {node.name} is a {node.dtype}, which cannot be synthesized")
        shape = [int(size(s, self.sizes, node.name)) for s in node.shape]
        stride = [int(size(s, self.sizes, node.name)) for s in node.stride] if node.stride is not None else None
        device = self.device or node.device
        if device is None:
            raise NotRunnable(f"the report does not say on which device its input {node.name} was")
        limit = self.limits.get(node.name, 2)
        try:
            if stride is None or 0 in shape:
                value = self.numbers(math.prod(shape), dtype, limit).to(device).reshape(shape)
            else:
                reach = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
                value = torch.as_strided(self.numbers(reach, dtype, limit).to(device), shape, stride)
            is_square = len(shape) > 1 and shape[-2] == shape[-1]
            if self.well_conditioned and dtype.is_floating_point and is_square and 0 not in value.stride():
                # diagonally dominant
                value.add_(torch.eye(shape[-1], dtype=dtype, device=device) * shape[-1]).div_(shape[-1] + 1)
            return value
        except (RuntimeError, OverflowError, TypeError, ValueError) as error:  # e.g. out of memory, or no such tensor exists
            first = str(error).partition("\n")[0]
            raise NotRunnable(f"its input {node.name} cannot be synthesized: {first}"[:300]) from None

    def numbers(self, count: int, dtype: torch.dtype, limit: int) -> torch.Tensor:
        import torch

        if dtype.is_floating_point or dtype.is_complex:
            drawn = torch.complex64 if dtype.is_complex else torch.float64 if dtype == torch.float64 else torch.float32
            draw = torch.rand if self.well_conditioned else torch.randn
            return draw(count, generator=self.generator, dtype=drawn, device="cpu").to(dtype)
        most = 2 if dtype == torch.bool else max(1, limit)
        return torch.randint(most, (count,), generator=self.generator, dtype=torch.int64, device="cpu").to(dtype)


def size(text: int | str, sizes: Sizes, name: str) -> int | float:
    """The value of a size (`12`, `2*s0**2 + 1`, `Max(1, u0)`); raises NotRunnable if it is unknown."""
    if isinstance(text, (int, float)):
        return text
    try:
        value = eval(text, {"__builtins__": {}, **_FUNCTIONS}, dict(sizes))
        if isinstance(value, (int, float)):
            return value
    except Exception:
        pass
    raise NotRunnable(f"its input {name} has a size, {text}, whose value was not recorded")


# -- indices ---------------------------------------------------------------------------------------------------


def index_limits(graph: torch.fx.Graph, nodes: Mapping[str, Node], sizes: Sizes) -> dict[str, int]:
    """For each node (an input, for example) whose values are used as indices: the first integer that would be too large.

    The limits follow from the recorded shapes.  Nodes are read from the last to the first: if an operation passes the values of
    an index through (`_SAME_VALUES`), its first argument has the same limit.
    """
    limits: dict[str, int] = {}

    def shape(value: Any) -> list[int]:
        node = nodes.get(_name(value))
        try:
            return [int(size(s, sizes, "")) for s in (node.shape if node and node.shape is not None else ())]
        except NotRunnable:
            return []

    def is_index(value: Any) -> bool:
        node = nodes.get(_name(value))
        return node is not None and (node.dtype or "").startswith(("int", "uint"))

    def lower(value: Any, limit: int) -> None:
        limits[_name(value)] = min(limit, limits.get(_name(value), limit))

    for node in reversed(graph.nodes):
        for index, limit in _indexed(node, shape, is_index):
            lower(index, limit)
        if _name(node) in limits and _operation(node) in _SAME_VALUES and node.args:
            for source in node.args[0] if isinstance(node.args[0], (list, tuple)) else [node.args[0]]:
                if is_index(source):
                    lower(source, limits[_name(node)])
    return limits


def _indexed(
    node: torch.fx.Node, shape: Callable[[Any], list[int]], is_index: Callable[[Any], bool]
) -> Iterator[tuple[Any, int]]:
    """(index, number of rows that it can select) for each index that this node uses."""
    name, args = _operation(node), list(node.args)
    if name in ("embedding", "embedding_bag") and len(args) > 1:
        # F.embedding(index, table), torch.embedding(table, index)
        index, table = args[:2] if is_index(args[0]) else args[1::-1]
        if shape(table):
            yield index, shape(table)[0]
        offsets = args[2] if len(args) > 2 else node.kwargs.get("offsets")
        if name == "embedding_bag" and is_index(offsets):
            yield offsets, 1  # all 0: the first must be 0, and offsets must not decrease
    elif name in _BY_DIMENSION:
        table = args[0] if args else node.kwargs.get("input")
        values = [*args[1:], *(value for key, value in node.kwargs.items() if key != "input")]
        dimension = next((a for a in values if isinstance(a, int)), None)
        index = next((a for a in values if is_index(a)), None)
        if dimension is not None and index is not None and -len(shape(table)) <= dimension < len(shape(table)):
            yield index, shape(table)[dimension]
    elif name in ("getitem", "setitem") and len(args) > 1:
        parts = args[1] if isinstance(args[1], tuple) else (args[1],)
        at = 0
        for number, part in enumerate(parts):
            if is_index(part) and at < len(shape(args[0])):
                yield part, shape(args[0])[at]
            if part is ...:  # the dimensions of the parts after it are counted from the last one
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
    """The name of a node's operation, the same for a function, a method and an aten operator: `embedding`."""
    name = node.target if isinstance(node.target, str) else str(getattr(node.target, "__name__", ""))
    return name.partition(".")[0].strip("_")
