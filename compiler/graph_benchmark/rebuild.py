"""Makes an FX graph that runs again from the text that a report keeps of it.

The text names every node, its operation and its arguments, so each becomes a node of a new `torch.fx.Graph`, under its own
name.  The text is read, never executed: it may come from a file.  A name in it is taken only where it is an operation on
tensors (`operations`); what cannot be written again is refused in one sentence.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynascope.compiler.assembly.graph_text import OPERATORS, is_store
from dynascope.compiler.graph_benchmark.operations import ATTRIBUTES, NotRunnable, method, operation, special_method

if TYPE_CHECKING:
    import torch.fx


#: in a node's `meta`: the name that the report has for it
RECORDED = "recorded"
#: text that a graph from a file may hand to an operation: never a path, and nothing that would end a string, or mean something
#: to a template, in the code that a backend makes (Inductor writes the message of an assertion into C++ as it is)
_HARMLESS = re.compile(r"(?!.*\{[{%#])[\w ,.:;(){}\[\]<>=!?|&%#~^’+*-]*", re.ASCII)
_CONSTANTS = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "Ellipsis": ...}


def rebuild(
    text: str, attribute: Callable[[str], Any] | None = None, device: str | None = None, own: bool = True
) -> torch.fx.GraphModule:
    """The graph of a report's text (`Graph.code`), ready to be called.

    `attribute` makes the tensor that the graph keeps under a name; `device`: where the graph shall make its own tensors, in
    place of the recorded device; `own`: whether the text was recorded in this process, so that it may call the program's own
    operators.  Raises NotRunnable.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise NotRunnable(f"its text cannot be read: {error}") from None
    tree = next((s for s in body if isinstance(s, ast.ClassDef)), None)
    if tree is None:
        raise NotRunnable("its text holds no graph")
    try:
        return _Builder(tree, attribute, device, own).module()
    except NotRunnable:
        raise
    except Exception as error:  # the text is a class with a forward(), and yet no graph
        raise NotRunnable(f"its text cannot be made a graph: {type(error).__name__}: {error}".partition("\n")[0]) from None


_Made = tuple[str, Any, tuple[Any, ...], dict[str, Any]]


class _Builder:
    """One class of the text, with the classes in it, as one GraphModule."""

    def __init__(self, tree: ast.ClassDef, attribute: Callable[[str], Any] | None, device: str | None, own: bool) -> None:
        import torch.fx

        self.tree, self.attribute, self.device, self.own = tree, attribute, device, own
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
            if value.attr in ATTRIBUTES:
                return "call_function", getattr, (self.receiver(value.value), value.attr), {}
        raise NotRunnable(f"it has a node that is written in no known way: {_short(value)}")

    def call(self, value: ast.Call) -> _Made:
        args = tuple(self.value(a) for a in value.args)
        kwargs = {k.arg: self.value(k.value) for k in value.keywords if k.arg is not None}
        function = value.func
        root = ast.unparse(function).partition(".")[0]
        if isinstance(function, ast.Attribute) and (root in self.nodes or not _is_dotted(function)):
            args = (self.receiver(function.value), *args)
            special = special_method(function.attr)
            if special is not None:
                operator_, swapped = special
                return "call_function", operator_, args[::-1] if swapped else args, kwargs
            if self.device is not None:
                function, args, kwargs = _moved(function, args, kwargs, self.device)
            return "call_function", method(function.attr), args, kwargs
        name = ast.unparse(function)
        if root == "self":
            name = name.removeprefix("self.")
            if name not in self.children:
                raise NotRunnable(f"it calls the module {name}, whose parameters the report does not keep")
            return "call_module", self.kept(name), args, kwargs
        if self.device is not None and name.endswith("._enter_autocast"):
            args = (self.device.partition(":")[0], *args[1:])
        return "call_function", operation(name, self.own), args, kwargs

    def receiver(self, value: ast.expr) -> torch.fx.Node:
        """What a method is called of: something that was computed, never a graph inside this one."""
        import torch.fx

        node = self.value(value)
        if not isinstance(node, torch.fx.Node) or (node.op == "get_attr" and node.target in self.children):
            raise NotRunnable(f"it calls a method of what is no tensor: {_short(value)}")
        return node

    def kept(self, name: str) -> str:
        """What the graph keeps under a name: a graph of its own, or a tensor; its name in the module."""
        if name not in self.attributes:
            if name in self.children:
                self.attributes[name] = _Builder(self.children[name], None, self.device, self.own).module()
            elif self.attribute is not None:
                self.attributes[name] = self.attribute(name)
            else:
                raise NotRunnable(f"a graph inside it keeps {name}, which the report does not describe")
        return name

    def value(self, value: ast.expr) -> Any:
        """An argument: nodes, constants, and tuples, lists, dicts and slices of them."""
        if isinstance(value, ast.Constant):
            return value.value if self.own or not isinstance(value.value, (str, bytes)) else _harmless(value)
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


def _harmless(value: ast.Constant) -> str:
    """A text that came from a file; an apostrophe ("don't") becomes one that ends no string."""
    text = str(value.value).replace("'", "’")
    if not isinstance(value.value, str) or not _HARMLESS.fullmatch(text):
        raise NotRunnable(f"it has a text that is not taken from a file: {_short(value)}")
    return text


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
