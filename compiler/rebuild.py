"""Makes an FX graph that runs again from the text that a report keeps of it.

The text names every node, its operation and its arguments, so each becomes a node of a new `torch.fx.Graph`, under its own
name.  The text is read, never executed: it may come from a file.  A name in it is looked up in torch, and taken only where it
is an operation on tensors (`operation`); what cannot be written again is refused in one sentence.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynascope.compiler.graphtext import OPERATORS, is_store

if TYPE_CHECKING:
    import torch.fx


class NotRunnable(ValueError):
    """Why a graph cannot be run again, in one sentence."""


#: in a node's `meta`: the name that the report has for it
RECORDED = "recorded"
#: how the modules are called that hold operations on tensors, beside the builtin functions of `torch` itself
_MODULES = (
    "torch._ops.", "torch.ops.", "torch.nn.functional", "torch.functional", "torch._jit_internal", "torch._functorch",
    "torch._higher_order_ops", "torch._C._nn", "torch._C._linalg", "torch._C._fft", "torch._C._special", "torch._C._sparse",
    "torch._C._nested", "torch._C._functorch",
)  # fmt: skip
#: further functions that Dynamo writes into graphs
_FUNCTIONS = frozenset({
    "torch._C._set_grad_enabled", "torch._C._log_api_usage_once", "torch._C._set_fwd_grad_enabled",
    "torch._C._autograd._saved_tensors_hooks_disable", "torch._C._autograd._saved_tensors_hooks_enable",
    "torch.amp.autocast_mode._enter_autocast", "torch.amp.autocast_mode._exit_autocast",
})  # fmt: skip
#: builtin functions of `torch` that are no operation on tensors: they reach files or settings
_NOT_THESE = ("from_file", "set_", "compile", "import_")
#: calls a kernel of the program's own, by its number in this process
_KERNELS = "triton_kernel_wrapper"
_BUILTINS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "pow", "round", "sum"})
_CONSTANTS = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "Ellipsis": ...}


def rebuild(text: str, attribute: Callable[[str], Any] | None = None, device: str | None = None) -> torch.fx.GraphModule:
    """The graph of a report's text (`Graph.code`), ready to be called.

    `attribute` makes the tensor that the graph keeps under a name; `device`: where the graph shall make its own tensors, in
    place of the recorded device.  Raises NotRunnable.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise NotRunnable(f"its text cannot be read: {error}") from None
    tree = next((s for s in body if isinstance(s, ast.ClassDef)), None)
    if tree is None:
        raise NotRunnable("its text holds no graph")
    return _Builder(tree, attribute, device).module()


def operation(name: str) -> Callable[..., Any]:
    """The operation that a graph's text calls by this name; raises NotRunnable for anything else."""
    import torch

    root, _, rest = name.partition(".")
    if not rest and root in _BUILTINS:
        return getattr(builtins, root)  # type: ignore[no-any-return]
    for prefix, library in (("math_", math), ("_operator_", operator)):
        if not rest and name.startswith(prefix) and hasattr(library, name.removeprefix(prefix)):
            return getattr(library, name.removeprefix(prefix))  # type: ignore[no-any-return]
    found: Any = torch if root == "torch" and rest else None
    for part in rest.split("."):
        found = getattr(found, part, None)
    if found is None or not callable(found):
        raise NotRunnable(f"it calls {name}, which this process does not know by that name")
    if "c10d" in name or ".distributed." in name:
        raise NotRunnable(f"it calls {name}, which waits for other processes")
    module, last = str(getattr(found, "__module__", None)), name.rpartition(".")[2]
    if last.startswith(_KERNELS):
        raise NotRunnable("it calls a Triton kernel of the program's own, which the report does not keep")
    builtin = isinstance(found, type(torch.relu)) and not last.startswith(_NOT_THESE)
    own = module == "torch" and (builtin or last.startswith(("sym_", "_check")))
    if own or module.startswith(_MODULES) or name in _FUNCTIONS:
        return found  # type: ignore[no-any-return]
    raise NotRunnable(f"it calls {name}, which is no operation on tensors that a report could run")


_Made = tuple[str, Any, tuple[Any, ...], dict[str, Any]]


class _Builder:
    """One class of the text, with the classes in it, as one GraphModule."""

    def __init__(self, tree: ast.ClassDef, attribute: Callable[[str], Any] | None, device: str | None) -> None:
        import torch.fx

        self.tree, self.attribute, self.device = tree, attribute, device
        self.graph = torch.fx.Graph()
        self.nodes: dict[str, torch.fx.Node] = {}
        self.children = {c.name: c for c in tree.body if isinstance(c, ast.ClassDef)}
        self.attributes: dict[str, Any] = {}

    def module(self) -> torch.fx.GraphModule:
        import torch.fx

        forward = next((s for s in self.tree.body if isinstance(s, ast.FunctionDef) and s.name == "forward"), None)
        if forward is None:
            raise NotRunnable(f"its text has no forward() in {self.tree.name}")
        for argument in [*forward.args.posonlyargs, *forward.args.args, *forward.args.kwonlyargs]:
            if argument.arg != "self":
                self.nodes[argument.arg] = self.graph.placeholder(argument.arg)
                self.nodes[argument.arg].meta[RECORDED] = argument.arg
        pending: ast.stmt | None = None
        for statement in forward.body:
            if isinstance(statement, ast.Return):
                self.graph.output(self.value(statement.value) if statement.value else None)
            elif isinstance(statement, ast.AugAssign) or is_store(statement):
                pending = statement  # torch prints `y += 1` before the node's own name
            elif self.statement(statement, pending):
                pending = None
        return torch.fx.GraphModule(self.attributes, self.graph, class_name=self.tree.name)

    def statement(self, statement: ast.stmt, pending: ast.stmt | None) -> bool:
        """Add the node of `name = ...`; False for what is no node (`a = b = None` frees names)."""
        name, value = _assigned(statement)
        if name is None or value is None:
            return False
        if pending is not None:
            made = self.in_place(pending)
        elif isinstance(value, ast.Constant) and value.value is None and name in self.nodes:
            return False
        elif isinstance(value, ast.Name) and value.id in self.nodes:
            self.nodes[name] = self.nodes[value.id]  # `l_x_ = L_x_`: a placeholder's node has another name than its argument
            self.nodes[name].meta[RECORDED] = name
            return True
        else:
            made = self.node(value)
        op, target, args, kwargs = made
        self.nodes[name] = self.graph.create_node(op, target, args, kwargs, name=name)
        self.nodes[name].meta[RECORDED] = name
        return True

    def in_place(self, statement: ast.stmt) -> _Made:
        if isinstance(statement, ast.AugAssign):
            function = getattr(operator, "i" + OPERATORS[type(statement.op)].rstrip("_"))
            return "call_function", function, (self.value(statement.target), self.value(statement.value)), {}
        assert isinstance(statement, ast.Assign)
        place = statement.targets[0]
        assert isinstance(place, ast.Subscript)
        args = (self.value(place.value), self.value(place.slice), self.value(statement.value))
        return "call_function", operator.setitem, args, {}

    def node(self, value: ast.expr) -> _Made:
        """(opcode, target, args, kwargs) of the expression that a node is printed as."""
        if isinstance(value, ast.Call):
            return self.call(value)
        if isinstance(value, ast.BinOp):
            return "call_function", _operator(value.op), (self.value(value.left), self.value(value.right)), {}
        if isinstance(value, ast.UnaryOp):
            return "call_function", _operator(value.op), (self.value(value.operand),), {}
        if isinstance(value, ast.Compare) and len(value.ops) == 1:
            return "call_function", _operator(value.ops[0]), (self.value(value.left), self.value(value.comparators[0])), {}
        if isinstance(value, ast.Subscript):
            return "call_function", operator.getitem, (self.value(value.value), self.value(value.slice)), {}
        if isinstance(value, ast.Attribute):
            dotted = ast.unparse(value)
            if dotted.startswith("self."):
                return "get_attr", self.kept(dotted.removeprefix("self.")), (), {}
            if not value.attr.startswith("_"):
                return "call_function", getattr, (self.value(value.value), value.attr), {}
        raise NotRunnable(f"it has a node that is written in no known way: {_short(value)}")

    def call(self, value: ast.Call) -> _Made:
        args = tuple(self.value(a) for a in value.args)
        kwargs = {k.arg: self.value(k.value) for k in value.keywords if k.arg is not None}
        function = value.func
        root = ast.unparse(function).partition(".")[0]
        if isinstance(function, ast.Attribute) and (root in self.nodes or not _is_dotted(function)):
            if function.attr.startswith("_"):
                raise NotRunnable(f"it calls {function.attr}() of a tensor, which is none of its public methods")
            args = (self.value(function.value), *args)
            if self.device is not None:
                function, args, kwargs = _moved(function, args, kwargs, self.device)
            return "call_method", function.attr, args, kwargs
        name = ast.unparse(function)
        if root == "self":
            name = name.removeprefix("self.")
            if name not in self.children:
                raise NotRunnable(f"it calls the module {name}, whose parameters the report does not keep")
            return "call_module", self.kept(name), args, kwargs
        if self.device is not None and name.endswith("._enter_autocast"):
            args = (self.device.partition(":")[0], *args[1:])
        return "call_function", operation(name), args, kwargs

    def kept(self, name: str) -> str:
        """What the graph keeps under a name: a graph of its own, or a tensor; its name in the module."""
        if name not in self.attributes:
            if name in self.children:
                self.attributes[name] = _Builder(self.children[name], None, self.device).module()
            elif self.attribute is not None:
                self.attributes[name] = self.attribute(name)
            else:
                raise NotRunnable(f"a graph inside it keeps {name}, which the report does not describe")
        return name

    def value(self, value: ast.expr) -> Any:
        """An argument: nodes, constants, and tuples, lists, dicts and slices of them."""
        if isinstance(value, ast.Constant):
            return value.value
        if isinstance(value, ast.Name) and value.id in self.nodes:
            return self.nodes[value.id]
        if isinstance(value, ast.Name) and value.id in _CONSTANTS:
            return _CONSTANTS[value.id]
        if isinstance(value, ast.Tuple):
            return tuple(self.value(v) for v in value.elts)
        if isinstance(value, ast.List):
            return [self.value(v) for v in value.elts]
        if isinstance(value, ast.Dict):
            return {self.value(k): self.value(v) for k, v in zip(value.keys, value.values, strict=True) if k is not None}
        if isinstance(value, ast.Slice):
            return slice(*(None if v is None else self.value(v) for v in (value.lower, value.upper, value.step)))
        if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
            inner = self.value(value.operand)
            if isinstance(inner, (int, float, complex)):
                return -inner
        return self.special(value)

    def special(self, value: ast.expr) -> Any:
        """A device, a dtype and their like; a slice; a complex number."""
        import torch

        if isinstance(value, ast.Call):
            name, args = ast.unparse(value.func), [self.value(a) for a in value.args]
            kwargs = {str(k.arg): self.value(k.value) for k in value.keywords}
            if name in ("device", "torch.device"):
                return torch.device(self.device) if self.device is not None else torch.device(*args, **kwargs)
            if name == "slice":
                return slice(*args)
            if name == "torch.Size":
                return torch.Size(*args)
        if isinstance(value, ast.Attribute) and ast.unparse(value.value) == "torch":
            found = getattr(torch, value.attr, None)
            if isinstance(found, (torch.dtype, torch.memory_format, torch.layout)):
                return found
        try:
            return complex(ast.literal_eval(value))
        except (ValueError, TypeError, SyntaxError, RecursionError):
            raise NotRunnable(f"it has an argument that only the program itself could make: {_short(value)}") from None


def _assigned(statement: ast.stmt) -> tuple[str | None, ast.expr | None]:
    """(name, value) of an assignment to one name."""
    if isinstance(statement, ast.AnnAssign):
        target: ast.expr | None = statement.target
    else:
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return (target.id, getattr(statement, "value", None)) if isinstance(target, ast.Name) else (None, None)


def _operator(kind: ast.AST) -> Callable[..., Any]:
    if type(kind) not in OPERATORS:
        raise NotRunnable(f"it has an operator that is written in no known way: {type(kind).__name__}")
    return getattr(operator, OPERATORS[type(kind)])  # type: ignore[no-any-return]


def _is_dotted(value: ast.expr) -> bool:
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name)


def _moved(
    function: ast.Attribute, args: tuple[Any, ...], kwargs: dict[str, Any], device: str
) -> tuple[ast.Attribute, tuple[Any, ...], dict[str, Any]]:
    """A method call that names a device, with another device in its place."""
    if function.attr == "cuda":
        return ast.Attribute(function.value, "to", ast.Load()), (args[0], device), {}
    if function.attr != "to":
        return function, args, {k: device if k == "device" else v for k, v in kwargs.items()}
    args = (args[0], *(device if isinstance(a, str) else a for a in args[1:]))
    return function, args, {k: device if k == "device" else v for k, v in kwargs.items()}


def _short(value: ast.AST) -> str:
    text = ast.unparse(value)
    return text if len(text) <= 80 else text[:79] + "…"
