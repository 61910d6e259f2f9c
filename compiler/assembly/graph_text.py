"""Reads the Python text that torch prints for an FX graph back into nodes.

The text is the one form that a live run and a TORCH_TRACE file share, so both give the same nodes.
"""

from __future__ import annotations

import ast
import re

from dynascope.compiler.report import Node

_COMMENT = re.compile(r"^\s*# File: (?P<file>.*):(?P<line>\d+) in (?P<function>[^,]*)(?:, code: (?P<code>.*))?$")
_NO_STACK = re.compile(r"^\s*# No stacktrace found")
_TYPE = re.compile(r"^(?P<dtype>[a-z]+[0-9a-z]*)\[(?P<shape>[^\]]*)\](?:\[(?P<stride>[^\]]*)\])?(?P<device>[a-z]*(?::\d+)?)?$")

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and_", ast.BitOr: "or_",
    ast.BitXor: "xor", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not_", ast.Is: "is_", ast.IsNot: "is_not",
}  # fmt: skip

_DTYPES = {
    "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "b8": "bool", "c32": "complex32",
    "c64": "complex64", "c128": "complex128", "f8e5m2": "float8_e5m2", "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2fnuz": "float8_e5m2fnuz", "f8e4m3fnuz": "float8_e4m3fnuz",
}  # fmt: skip


def read(text: str) -> tuple[list[Node], list[str]]:
    """The nodes of the outermost `forward` in order, and the names that it returns.

    Raises ValueError where the text is no FX graph.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"not an FX graph: {error}") from None
    forward = _forward(tree)
    if forward is None:
        raise ValueError("not an FX graph: no forward() in it")
    return _Reader(text, forward).read()


def ops(nodes: list[Node]) -> int:
    """Number of operations: everything but inputs, attributes and the output."""
    return sum(n.op.startswith("call_") for n in nodes)


def _forward(tree: ast.Module) -> ast.FunctionDef | None:
    for statement in tree.body:
        body = statement.body if isinstance(statement, ast.ClassDef) else [statement]
        for item in body:
            if isinstance(item, ast.FunctionDef) and item.name == "forward":
                return item
    return None


class _Reader:
    def __init__(self, text: str, forward: ast.FunctionDef) -> None:
        self.lines = text.splitlines()
        self.forward = forward
        self.nodes: list[Node] = []
        self.by_name: dict[str, Node] = {}

    def read(self) -> tuple[list[Node], list[str]]:
        arguments = self.forward.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            if argument.arg != "self":
                self.add(Node(name=argument.arg, op="placeholder", target=argument.arg), argument.annotation)
        places = self.places()
        outputs: list[str] = []
        pending: ast.stmt | None = None
        for statement in self.forward.body:
            if isinstance(statement, ast.Return):
                outputs = self.names(statement.value)
                self.add(
                    Node(name=self.free("output"), op="output", target="output", inputs=outputs, code=ast.unparse(statement)),
                    None,
                )
            elif isinstance(statement, ast.AugAssign) or is_store(statement):
                pending = statement
            else:
                self.statement(statement, pending, places.get(statement.lineno))
                pending = None
        return self.nodes, outputs

    def free(self, name: str) -> str:
        """`name`, or `name_1` where a node has it: torch prints no name for the output, and gives it the next free number."""
        if name not in self.by_name:
            return name
        numbers = [int(n[len(name) + 1 :]) for n in self.by_name if re.fullmatch(rf"{name}_[1-9]\d*", n)]
        return f"{name}_{max(numbers, default=0) + 1}"

    def places(self) -> dict[int, tuple[str, int]]:
        """For each line of the text, the user's line that the last comment above it names."""
        found: dict[int, tuple[str, int]] = {}
        place: tuple[str, int] | None = None
        for number in range(self.forward.lineno, (self.forward.end_lineno or self.forward.lineno) + 1):
            line = self.lines[number - 1]
            comment = _COMMENT.match(line)
            if comment:
                place = (comment["file"], int(comment["line"]))
            elif _NO_STACK.match(line):
                place = None
            elif place:
                found[number] = place
        return found

    def statement(self, statement: ast.stmt, pending: ast.stmt | None, place: tuple[str, int] | None) -> None:
        annotation = None
        target: ast.expr
        value: ast.expr | None
        if isinstance(statement, ast.AnnAssign):
            target, value, annotation = statement.target, statement.value, statement.annotation
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        else:
            return  # `a = b = None` frees names; it is no node
        if not isinstance(target, ast.Name) or value is None:
            return
        if isinstance(value, ast.Constant) and value.value is None and target.id in self.by_name:
            return
        if isinstance(value, ast.Name) and pending is None and self.rename(target.id, value.id):
            return
        op, function = _operation(value, self.by_name) if pending is None else ("call_function", _in_place(pending))
        read = pending if pending is not None else value
        file, line = place or (None, None)
        inputs = self.names(read)
        node = Node(name=target.id, op=op, target=function, inputs=inputs, code=ast.unparse(read), file=file, line=line)
        self.add(node, annotation)

    def rename(self, name: str, placeholder: str) -> bool:
        """`l_x_ = L_x_`: the placeholder's node has another name than its argument."""
        node = self.by_name.get(placeholder)
        if node is None or node.op != "placeholder":
            return False
        node.name = name
        self.by_name[name] = node
        return True

    def add(self, node: Node, annotation: ast.expr | None) -> None:
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            found = _TYPE.match(annotation.value)
            if found:
                node.dtype = _DTYPES.get(found["dtype"], found["dtype"])
                node.shape, node.stride = _sizes(found["shape"]), _sizes(found["stride"])
                node.device = found["device"] or None
            elif node.dtype is None:
                node.dtype = annotation.value
        self.nodes.append(node)
        self.by_name[node.name] = node

    def names(self, value: ast.AST | None) -> list[str]:
        """The nodes that an expression reads, in order, each once."""
        if value is None:
            return []
        found = (n.id for n in ast.walk(value) if isinstance(n, ast.Name) and n.id in self.by_name)
        return list(dict.fromkeys(self.by_name[name].name for name in found))


def is_store(statement: ast.stmt) -> bool:
    """`x[0] = v` (setitem), which torch prints before the node's own name."""
    return isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript)


def _in_place(statement: ast.stmt) -> str:
    if isinstance(statement, ast.AugAssign):
        return "operator.i" + OPERATORS.get(type(statement.op), "op").rstrip("_")
    return "operator.setitem"


def _operation(value: ast.expr, known: dict[str, Node]) -> tuple[str, str]:
    """(opcode, target) of the expression that a node is printed as."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        base, root = value.func.value, _root(value.func.value)
        if not isinstance(root, ast.Name) or (isinstance(base, ast.Name) and base.id in known):
            return "call_method", value.func.attr
        if root.id == "self":
            return "call_module", ast.unparse(value.func).removeprefix("self.")
    if isinstance(value, ast.Call):
        return "call_function", ast.unparse(value.func)
    if isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Compare)):
        operator = value.ops[0] if isinstance(value, ast.Compare) else value.op
        return "call_function", "operator." + OPERATORS.get(type(operator), "op")
    if isinstance(value, ast.Subscript):
        return "call_function", "operator.getitem"
    if isinstance(value, ast.Attribute):
        root = _root(value)
        if isinstance(root, ast.Name) and root.id == "self":
            return "get_attr", ast.unparse(value).removeprefix("self.")
        return "call_function", "getattr"
    return "call_function", type(value).__name__


def _root(value: ast.expr) -> ast.expr:
    """What the attributes of an expression are taken from."""
    while isinstance(value, ast.Attribute):
        value = value.value
    return value


def _sizes(text: str | None) -> list[int | str] | None:
    if text is None:
        return None
    parts = [p.strip() for p in text.split(",") if p.strip()]
    return [int(p) if p.lstrip("-").isdigit() else p for p in parts]
