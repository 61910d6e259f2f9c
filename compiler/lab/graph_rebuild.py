"""Rebuilds a runnable FX graph from its text in a report, and makes synthetic inputs from their descriptions there.

The text has the name, function and arguments of every node, from which a node with the same name is made in a new
`torch.fx.Graph`.  Functions are looked up by name, so the text must come from this process, where the same operators are
registered.

An input has the recorded shape, dtype, stride and device.  Floating-point numbers are drawn from N(0, 1), or from [0, 1) if
`well_conditioned`.  Booleans are random; integers are 0 or 1, or all 0 if `well_conditioned`, and so mostly valid as indices.
The numbers come from a separate generator with a fixed seed, so they are always the same, and no
other random state changes.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dynascope.compiler.builder.graph_parser import ParsedGraph, Statement, parse
from dynascope.compiler.capture.torch_private.tensors import OF_TORCH
from dynascope.compiler.report import Node

if TYPE_CHECKING:
    import torch.fx
if TYPE_CHECKING:
    import torch
    import torch.fx


class NotRunnable(ValueError):
    """A graph cannot be run again; the message is one sentence that says why."""


#: key in a node's `meta` for its name in the report
RECORDED = "recorded"
#: prefix of the operators that call a Triton kernel of the program, which they name by its number in a table of torch's
_KERNELS = "triton_kernel_wrapper"
#: prefix of Dynamo's wrappers of NumPy functions, operators and methods: `wrapped_sum` may be `numpy.sum` or an array's method
_NUMPY = "torch__dynamo_utils_"
#: operators that wait for other processes
_DISTRIBUTED = re.compile(r"c10d|\bfsdp\b|symm_mem|\.distributed\.")
#: prefix of a function's printed name -> its module: `math_sqrt`, where FX prints an underscore for the dot, or `operator.add`
_PREFIXES = {"math_": math, "_operator_": operator, "operator.": operator, "": builtins}


class _Key:
    def __getitem__(self, key: Any) -> Any:
        return key


def rebuild(text: str, attribute: Callable[[str], Any] | None = None, device: str | None = None) -> torch.fx.GraphModule:
    """Build a callable module from the text of a graph in a report (`Graph.code`); raises NotRunnable if that is impossible.

    `attribute`: makes a tensor that is an attribute of the graph, given its name.  `device`: the device on which the graph
    creates tensors, in place of the recorded one.
    """
    try:
        return _Builder(parse(text), attribute, device).module()
    except NotRunnable:
        raise
    except Exception as error:
        first_line = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise NotRunnable(f"no graph can be built from its text: {first_line}") from None


class _Builder:
    """Builds one GraphModule from a parsed graph and its inner graphs."""

    def __init__(self, parsed: ParsedGraph, attribute: Callable[[str], Any] | None, device: str | None) -> None:
        import torch.fx

        self.parsed, self.attribute, self.device = parsed, attribute, device
        self.graph = torch.fx.Graph()
        self.attributes: dict[str, Any] = {}
        #: names that arguments may use: FX's constants, and the nodes so far
        self.names: dict[str, Any] = {
            "torch": torch, "inf": math.inf, "nan": math.nan, "NoneType": type(None), "Ellipsis": ..., "slice": slice,
            "device": torch.device if device is None else lambda *_, **__: torch.device(device), "_key": _Key(),
            "__builtins__": {},
        }  # fmt: skip

    def module(self) -> torch.fx.GraphModule:
        import torch.fx

        for statement in self.parsed.statements:
            node = statement.node
            op, target, args, kwargs = self.call(statement)
            made = self.graph.create_node(op, target, args, kwargs, name=None if op == "output" else node.name)
            made.meta[RECORDED] = node.name
            self.names[node.name] = made
            if op == "placeholder":  # `l_x_ = L_x_`: the text uses the argument's name as well as the node's
                self.names[node.target] = made
        return torch.fx.GraphModule(self.attributes, self.graph)

    def call(self, statement: Statement) -> tuple[str, Any, tuple[Any, ...], dict[str, Any]]:
        """Opcode, target and arguments of one node."""
        op, target = statement.node.op, statement.node.target
        args = tuple(map(self.value, statement.args))
        kwargs = {name: self.value(value) for name, value in statement.kwargs.items()}
        if op in ("get_attr", "call_module"):
            return op, self.set_attribute(op, target), args, kwargs
        if self.device is not None:
            target, args, kwargs = _moved(op, target, args, kwargs, self.device)
        return op, function(target) if op == "call_function" else target, args, kwargs

    def set_attribute(self, op: str, name: str) -> str:
        """Make the module's attribute with this name, an inner graph or a tensor, and return the name."""
        if name in self.attributes:
            return name
        if name in self.parsed.inner:
            self.attributes[name] = _Builder(parse(self.parsed.inner[name]), None, self.device).module()
        elif op == "call_module":
            raise NotRunnable(f"it calls the module {name}, whose parameters the report does not keep")
        elif self.attribute is None:
            raise NotRunnable(f"a graph inside it uses the attribute {name}, which the report does not describe")
        else:
            self.attributes[name] = self.attribute(name)
        return name

    def value(self, expression: ast.expr) -> Any:
        """Evaluate an argument: a node, a constant, or a tuple, list, dict or slice of arguments."""
        # evaluate it inside `_key[...]`, the only place where Python's syntax allows a slice
        key = ast.Expression(ast.Subscript(ast.Name("_key", ast.Load()), expression, ast.Load()))
        try:
            return eval(compile(ast.fix_missing_locations(key), "<graph>", "eval"), self.names)
        except Exception:
            text = ast.unparse(expression)
            text = text if len(text) <= 80 else text[:79] + "…"
            raise NotRunnable(f"it has an argument that only the program could create: {text}") from None


def function(name: str) -> Callable[..., Any]:
    """The function that torch prints under this name; raises NotRunnable if it cannot be called."""
    last = name.rpartition(".")[2]
    if _DISTRIBUTED.search(name):
        raise NotRunnable(f"it calls {name}, which waits for other processes")
    if last.startswith(_KERNELS):
        raise NotRunnable("it calls a Triton kernel of the program, which the report does not keep")
    if last.startswith(_NUMPY):
        raise NotRunnable(
            f"it calls NumPy ({last.removeprefix(_NUMPY)}), and the graph's text does not say which of NumPy's functions"
        )
    import torch

    target: Any = torch
    if name.startswith("torch."):
        for part in name.split(".")[1:]:
            target = getattr(target, part, None)
    else:
        prefix, module = next((p, m) for p, m in _PREFIXES.items() if name.startswith(p))
        target = getattr(module, name.removeprefix(prefix), None)
    if not callable(target):
        raise NotRunnable(f"it calls {name}, which cannot be found by this name")
    return target  # type: ignore[no-any-return]


def is_from_outside_torch(name: str) -> bool:
    """Whether the name is that of an operator that does not come with torch."""
    parts = name.split(".")
    return parts[:2] == ["torch", "ops"] and len(parts) > 3 and parts[2] not in OF_TORCH


def _moved(
    op: str, target: str, args: tuple[Any, ...], kwargs: dict[str, Any], device: str
) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """The target and arguments of a call, with `device` in place of each device among them."""
    if op == "call_function" and target.endswith("._enter_autocast"):
        return target, (device.partition(":")[0], *args[1:]), kwargs
    if op == "call_method" and target in ("cpu", "cuda", "xpu"):
        return "to", (args[0], device), {}
    if op == "call_method" and target == "to":
        args = (args[0], *(device if isinstance(a, str) else a for a in args[1:]))
    return target, args, {k: device if k == "device" and isinstance(v, str) else v for k, v in kwargs.items()}


Sizes = Mapping[str, int | float]

#: functions in the text of a size (sympy's names)
_FUNCTIONS: dict[str, Callable[..., Any]] = {"Max": max, "Min": min, "Mod": operator.mod, "FloorDiv": operator.floordiv}


class SyntheticInputs:
    """Creates the inputs of one graph, always the same ones; `sizes`: the values of the symbols in its shapes.

    `well_conditioned`: floats between 0 and 1, square matrices positive definite (probabilities, covariances), integers 0.
    """

    def __init__(self, sizes: Sizes, device: str | None, well_conditioned: bool = False) -> None:
        import torch

        self.sizes, self.device, self.well_conditioned = sizes, device, well_conditioned
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
        try:
            if stride is None or 0 in shape:
                value = self.numbers(math.prod(shape), dtype).to(device).reshape(shape)
            else:
                reach = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
                value = torch.as_strided(self.numbers(reach, dtype).to(device), shape, stride)
            is_square = len(shape) > 1 and shape[-2] == shape[-1]
            if self.well_conditioned and dtype.is_floating_point and is_square and 0 not in value.stride():
                # diagonally dominant
                value.add_(torch.eye(shape[-1], dtype=dtype, device=device) * shape[-1]).div_(shape[-1] + 1)
            return value
        except (RuntimeError, OverflowError, TypeError, ValueError) as error:  # e.g. out of memory, or no such tensor exists
            first = str(error).partition("\n")[0]
            raise NotRunnable(f"its input {node.name} cannot be synthesized: {first}"[:300]) from None

    def numbers(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        import torch

        if dtype.is_floating_point or dtype.is_complex:
            drawn = torch.complex64 if dtype.is_complex else torch.float64 if dtype == torch.float64 else torch.float32
            draw = torch.rand if self.well_conditioned else torch.randn
            return draw(count, generator=self.generator, dtype=drawn, device="cpu").to(dtype)
        most = 1 if self.well_conditioned and dtype != torch.bool else 2
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
