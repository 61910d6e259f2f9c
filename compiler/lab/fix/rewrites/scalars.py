"""Rewrites `x.item()` and the like: a value that is used only in tensor arithmetic stays a tensor without dimensions."""

from __future__ import annotations

import libcst as cst

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.syntax.conditions import grouped, number_of
from dynascope.compiler.lab.fix.syntax.effects import may_change_in_place
from dynascope.compiler.lab.fix.syntax.names import dotted, parameters
from dynascope.compiler.lab.fix.syntax.source_text import Change, Source, candidate, parse
from dynascope.compiler.lab.fix.syntax.torch_names import Torch

_ASSUMPTION = (
    "Arithmetic on this value has the tensor's precision instead of Python's, "
    "and gives inf or NaN where Python raises an exception."
)
#: functions of torch and methods of tensors that accept a 0-dimensional tensor for each number that they accept
_TAKE_TENSORS = frozenset({
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "pow", "clamp", "clamp_min", "clamp_max",
    "clip", "where", "maximum", "minimum", "lerp", "masked_fill", "eq", "ne", "lt", "le", "gt", "ge", "add_", "sub_", "mul_",
    "div_", "fill_", "masked_fill_", "remainder", "fmod", "floor_divide", "atan2", "abs", "exp", "log", "sqrt", "tanh", "sin",
    "cos",
})  # fmt: skip
_MATH = {"sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "tanh", "floor", "ceil"}
_MATH_NAMES = {"fabs": "abs"}


def candidates(problem: Problem) -> list[Candidate]:
    """`x.item()` and `float(x)` as `x.detach()`, `int(x)` as `x.detach().long()`, `bool(x)` as `x.detach().bool()`.

    If there is a `float(x)`, a second candidate has `x.detach().float()` for it.
    """
    source = parse(problem.source)
    if source is None:
        return []
    found = source.innermost(problem, cst.Call, lambda n: n if number_of(n) is not None else None)
    if found is None:
        return []
    scope, statement = source.scope_of(found), source.statement_of(found)
    assert statement is not None
    calls = [n for n in source.inside(statement, cst.Call) if number_of(n) is not None and source.statement_of(n) is statement]
    flows = [(n, _Flow(source, scope)) for n in calls]  # one for each call: if `feeds` fails, its edits are dropped with it
    flows = [(n, flow) for n, flow in flows if flow.is_outermost_number(n) and flow.feeds(n)]
    if not any(source.is_inside(found, n) for n, _ in flows):
        return []
    made: list[Candidate] = []
    for ending in ("", ".float()") if any((number_of(n) or (n, ""))[1] == "float" for n, _ in flows) else ("",):
        changes = [c for n, flow in flows for c in (flow.change(n, ending), *flow.functions, *flow.torch.changes())]
        made += candidate(problem, source, "Keep the value in a tensor", dict.fromkeys(changes), _ASSUMPTION)
    return made


class _Flow:
    """Follows a number through the expressions of one function, or of a module's own code."""

    def __init__(self, source: Source, scope: cst.FunctionDef | cst.Module) -> None:
        self.source, self.scope = source, scope
        self.torch = Torch(source, scope)
        #: edits that replace `math.sqrt` and the like by `torch.sqrt`
        self.functions: list[Change] = []
        #: the answers of `_all_uses`; True while a name is being checked (`y = y * x`)
        self._answers: dict[str, bool] = {}
        #: names that `is_number` is checking
        self._open: set[str] = set()
        self._bindings: dict[str, list[cst.CSTNode]] = {}
        for target in source.inside(scope, cst.AssignTarget):
            if isinstance(target.target, cst.Name) and source.scope_of(target) is scope:
                self._bindings.setdefault(target.target.value, []).append(target)
        for other in source.inside(scope, cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr, cst.AsName):
            name = getattr(other, "target", getattr(other, "name", None))
            if isinstance(name, cst.Name) and source.scope_of(other) is scope:
                self._bindings.setdefault(name.value, []).append(other)

    def is_outermost_number(self, call: cst.Call) -> bool:
        """Whether a call takes a number out of a tensor, and is not nested in another call that does."""
        number = number_of(call)
        if number is None or self._is_of_a_module(number[0]):
            return False
        above = self.source.parent(call)
        outer = self.source.parent(above) if isinstance(above, cst.Arg) else None
        return not (
            isinstance(outer, cst.Call) and (number_of(outer) or (None, ""))[0] in (call, (number_of(call) or (None,))[0])
        )

    def _is_of_a_module(self, value: cst.BaseExpression) -> bool:
        """Whether a value comes from a function of an imported module other than torch: `np.random.rand()`."""
        root = dotted(value.func if isinstance(value, cst.Call) else value).split(".")[0]
        return root in self.torch.imports and not self.torch.imports[root].startswith("torch")

    def change(self, call: cst.Call, ending: str) -> Change:
        inner, kind = number_of(call) or (call, "")
        text = grouped(inner, self.source.text_of(inner))
        tail = {"int": ".long()", "bool": ".bool()", "float": ending}.get(kind, "")
        copied = ".clone()" if may_change_in_place(inner, self.scope) else ""
        return self.source.start(call), self.source.end(call), f"{text}.detach(){copied}{tail}"

    def is_number(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is a Python number, as far as the text shows."""
        if isinstance(node, cst.Integer | cst.Float) or number_of(node) is not None:
            return True
        if isinstance(node, cst.UnaryOperation):
            return self.is_number(node.expression)
        if isinstance(node, cst.BinaryOperation):
            return self.is_number(node.left) and self.is_number(node.right)
        if isinstance(node, cst.Subscript):
            return isinstance(node.value, cst.Attribute) and node.value.attr.value == "shape"
        if isinstance(node, cst.Attribute):
            return node.attr.value in ("ndim", "eps", "epsilon") or self.torch.imports.get(dotted(node).split(".")[0]) == "math"
        if isinstance(node, cst.Call):
            name = dotted(node.func)
            last = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
            return name in ("len", "max", "min", "round") or name.startswith("math.") or last in ("numel", "size", "dim")
        if isinstance(node, cst.Name):
            bound = self._bindings.get(node.value, [])
            if node.value in self._open:  # `x = x + 1`: its other bindings decide
                return not isinstance(self.scope, cst.FunctionDef) or node.value not in parameters(self.scope)
            values = [getattr(self.source.parent(b), "value", None) for b in bound if isinstance(b, cst.AssignTarget)]
            self._open.add(node.value)
            try:
                return (
                    bool(bound)
                    and len(values) == len(bound)
                    and all(isinstance(v, cst.BaseExpression) and self.is_number(v) for v in values)
                )
            finally:
                self._open.discard(node.value)
        return False

    def feeds(self, node: cst.CSTNode) -> bool:
        """Whether a value is used only in arithmetic with tensors; adds to `functions` the edits that this needs."""
        above = self.source.parent(node)
        if isinstance(above, cst.BinaryOperation):
            other = above.right if above.left is node else above.left
            if isinstance(other, cst.BaseString | cst.List | cst.Tuple):
                return False
            return not self.is_number(other) or self.feeds(above)
        if isinstance(above, cst.UnaryOperation):
            return not isinstance(above.operator, cst.Not) and self.feeds(above)
        if isinstance(above, cst.IfExp) and node is not above.test:
            return self.feeds(above)
        if isinstance(above, cst.ComparisonTarget | cst.Comparison):
            comparison = self.source.parent(above) if isinstance(above, cst.ComparisonTarget) else above
            assert isinstance(comparison, cst.Comparison)
            sides = [comparison.left, *(c.comparator for c in comparison.comparisons)]
            inside = self.source.parent(comparison)
            return isinstance(inside, cst.Assign | cst.Arg) and any(s is not node and not self.is_number(s) for s in sides)
        if isinstance(above, cst.Arg):
            call = self.source.parent(above)
            return isinstance(call, cst.Call) and self._takes(call, above)
        if isinstance(above, cst.AugAssign):
            return above.value is node
        if isinstance(above, cst.Assign):
            target = above.targets[0].target if len(above.targets) == 1 else None
            return isinstance(target, cst.Name) and self._all_uses(target.value)
        return False

    def _takes(self, call: cst.Call, argument: cst.Arg) -> bool:
        if number_of(call) is not None and (number_of(call) or (None,))[0] is argument.value:
            return self.feeds(call)
        name = dotted(call.func)
        full = self.torch.is_torch(call.func)
        if full is not None:
            return full.split(".")[-1] in _TAKE_TENSORS and full.count(".") <= 2
        if name == "abs":
            return self.feeds(call)
        first, _, function = name.partition(".")
        if self.torch.imports.get(first) == "math" and function in (*_MATH, *_MATH_NAMES) and len(call.args) == 1:
            new = self.torch(_MATH_NAMES.get(function, function))
            if not self.feeds(call):
                return False
            self.functions.append((self.source.start(call.func), self.source.end(call.func), new))
            return True
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in _TAKE_TENSORS and not name.startswith("self.")

    def _all_uses(self, name: str) -> bool:
        """Whether a local name is bound once and used only in arithmetic with tensors."""
        if name in self._answers:
            return self._answers[name]
        if isinstance(self.scope, cst.Module) or len(self._bindings.get(name, [])) != 1:
            return False
        self._answers[name] = True
        used = [n for n in self.source.inside(self.scope, cst.Name) if n.value == name]
        reads = [n for n in used if not isinstance(self.source.parent(n), cst.AssignTarget | cst.Attribute | cst.Param)]
        reads += [n for n in used if isinstance(a := self.source.parent(n), cst.Attribute) and a.value is n]
        reads = [n for n in reads if not (isinstance(a := self.source.parent(n), cst.Arg) and a.keyword is n)]
        self._answers[name] = bool(reads) and all(self.source.scope_of(n) is self.scope and self.feeds(n) for n in reads)
        return self._answers[name]
