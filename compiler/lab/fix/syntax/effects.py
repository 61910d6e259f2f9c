"""What code does besides computing values."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
from libcst import matchers

from dynascope.compiler.lab.fix.syntax.names import dotted, parameters, uses
from dynascope.compiler.lab.fix.syntax.source_text import Source
from dynascope.compiler.lab.fix.syntax.torch_names import Torch

#: builtins that change nothing
_PURE_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "dict", "float", "getattr", "hasattr", "int", "isinstance", "len", "list", "max", "min",
    "pow", "range", "round", "str", "sum", "tuple", "zip", "enumerate",
})  # fmt: skip
#: methods that are taken to change something, whatever their object is
_CHANGING_METHODS = frozenset({
    "append", "extend", "update", "pop", "popitem", "insert", "remove", "discard", "clear", "setdefault", "write",
    "writelines", "flush", "put", "send", "close", "backward", "step", "zero_grad", "register_hook",
})  # fmt: skip
#: methods whose result may share the memory of their tensor
_SAME_MEMORY = frozenset({
    "bfloat16", "contiguous", "cpu", "cuda", "detach", "double", "expand", "flatten", "float", "half", "int", "long", "narrow",
    "permute", "ravel", "reshape", "select", "squeeze", "t", "to", "transpose", "type", "type_as", "unsqueeze", "view",
    "view_as",
})  # fmt: skip
_RANDOM = ("rand", "dropout", "bernoulli", "multinomial", "normal", "poisson", "seed", "exponential", "uniform", "rrelu")
_CHANGING_TORCH = ("set_", "save", "manual_", "seed", "compile", "_assert", "_check", "load")


def is_pure(torch: Torch, *nodes: cst.CSTNode | None, unknown: bool = False) -> bool:
    """Whether code only computes values and binds names (also by `x += 1`), without random numbers.

    `unknown`: as for `is_pure_call`.
    """
    found = uses(*nodes)
    return not found.stores and not found.jumps and all(is_pure_call(torch, c, unknown) for c in found.calls)


def computes(node: cst.CSTNode) -> bool:
    """Whether code contains a call, an operator or a subscript."""
    works = isinstance(node, cst.Call | cst.BinaryOperation | cst.UnaryOperation | cst.Comparison | cst.Subscript)
    return works or any(computes(child) for child in node.children)


def looks_around(*nodes: cst.CSTNode) -> bool:
    """Whether code depends on the function around it (`super`, `locals`), so that it cannot move to another function."""
    return bool(uses(*nodes).reads & {"super", "locals", "__class__", "eval", "exec", "vars", "dir"})


def changes_argument(source: Source, at: cst.CSTNode, *nodes: cst.CSTNode) -> bool:
    """Whether code at the statement `at` may change an argument of its function by `x += 1`: no `x = ...` stands above it."""
    scope = source.scope_of(at)
    given = parameters(scope) if isinstance(scope, cst.FunctionDef) else set()
    bound = [t.target for t in source.inside(scope, cst.AssignTarget) if source.start(t) < source.start(at)]
    given -= {dotted(target) for target in bound}
    return any(dotted(a.target) in given for node in nodes for a in source.inside(node, cst.AugAssign))


def is_pure_call(torch: Torch, call: cst.Call, unknown: bool = False) -> bool:
    """Whether a call only computes a value; methods are judged by their names.

    `unknown`: whether to assume the same of unknown functions, and of methods of `self`, `cls` and imported modules.
    """
    if any(a.keyword is not None and a.keyword.value in ("out", "inplace") for a in call.args):
        return False
    function = call.func
    full = torch.is_torch(function)
    if full is not None:
        last = full.split(".")[-1]
        return not (
            last.endswith("_")
            or any(word in last for word in _RANDOM)
            or last.startswith(_CHANGING_TORCH)
            or full.startswith(("torch._dynamo", "torch.compiler", "torch.distributed", "torch.utils"))
        )
    if isinstance(function, cst.Name):
        return function.value in _PURE_BUILTINS or (
            unknown and function.value not in ("print", "setattr", "exec", "eval", "next")
        )
    if isinstance(function, cst.Attribute):
        method = function.attr.value
        changes = (method.endswith("_") and not method.endswith("__")) or method in _CHANGING_METHODS
        if changes or any(word in method for word in _RANDOM):
            return False
        root = _root(function)
        if root in ("logging", "logger", "warnings", "sys", "os", "time", "random"):
            return False
        return unknown or (root not in ("self", "cls", "super") and root not in torch.imports)
    return unknown


def _root(expression: cst.BaseExpression) -> str:
    """The name with which an expression such as `self.blocks[0].forward` begins; "" if it begins otherwise."""
    while isinstance(expression, cst.Attribute | cst.Subscript):
        expression = expression.value
    return expression.value if isinstance(expression, cst.Name) else ""


def changed_in_place(names: set[str], *nodes: cst.CSTNode) -> bool:
    """Whether code changes an object that one of these names is bound to, by `x += 1`, `x[0] = 1`, `x.add_(1)` or the like.

    A function to which `x` is passed is assumed not to change it.
    """
    watch = _InPlace(names)
    for node in nodes:
        node.visit(watch)
    return watch.found


def may_change_in_place(value: cst.BaseExpression, scope: cst.CSTNode) -> bool:
    """Whether the tensor that is the value of an expression may be changed in place somewhere in `scope`.

    Code that keeps this tensor instead of its number (`x` for `x.item()`) must then clone it: the number keeps the old value.
    """
    assigns: list[cst.Assign] = matchers.findall(scope, matchers.Assign())  # type: ignore[assignment]
    bound = [pair for one in assigns for target in one.targets for pair in _pairs(target.target, one.value)]
    names: set[str] = set()
    pending = [value]
    while pending:
        one = pending.pop()
        while isinstance(one, cst.Call) and isinstance(one.func, cst.Attribute) and one.func.attr.value in _SAME_MEMORY:
            one = one.func.value
        if isinstance(one, cst.Attribute | cst.Subscript):
            return True
        if isinstance(one, cst.Tuple | cst.List):
            pending += [element.value for element in one.elements]
        elif isinstance(one, cst.Name) and one.value not in names:
            names.add(one.value)
            pending += [other for target, other in bound if dotted(target) == one.value]
    return changed_in_place(names, scope)


def _pairs(target: cst.BaseExpression, value: cst.BaseExpression) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What an assignment binds, each with its value, or with the whole value if that has no part for each target."""
    if not isinstance(target, cst.Tuple | cst.List):
        return [(target, value)]
    parts: Sequence[cst.BaseExpression] = [value] * len(target.elements)
    if isinstance(value, cst.Tuple | cst.List) and len(value.elements) == len(target.elements):
        starred = any(isinstance(e, cst.StarredElement) for e in (*target.elements, *value.elements))
        parts = parts if starred else [element.value for element in value.elements]
    return [pair for t, part in zip(target.elements, parts, strict=True) for pair in _pairs(t.value, part)]


class _InPlace(cst.CSTVisitor):
    def __init__(self, names: set[str]) -> None:
        self.names, self.found = names, False

    def _touch(self, target: cst.BaseExpression) -> None:
        while isinstance(target, cst.Attribute | cst.Subscript | cst.Call):
            target = target.func if isinstance(target, cst.Call) else target.value
        self.found = self.found or (isinstance(target, cst.Name) and target.value in self.names)

    def _assign(self, target: cst.BaseExpression) -> None:
        """Touch what an assignment or deletion changes: the object of `x[0]` or `x.a`; a name alone is only bound."""
        if isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._assign(element.value)
        elif not isinstance(target, cst.Name):
            self._touch(target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._touch(node.target)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._assign(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target)

    def visit_For(self, node: cst.For) -> None:
        self._assign(node.target)

    def visit_AsName(self, node: cst.AsName) -> None:
        self._assign(node.name)

    def visit_Del(self, node: cst.Del) -> None:
        self._assign(node.target)

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute):
            method = node.func.attr.value
            if method in _CHANGING_METHODS or (method.endswith("_") and not method.endswith("__")):
                self._touch(node.func)
