"""Which names code reads and binds."""

from __future__ import annotations

import libcst as cst

from dynascope.compiler.lab.fix.syntax.source_text import Source


class Uses(cst.CSTVisitor):
    """Names and effects of some code.

    Nested functions and classes are included, except for the names that they bind and their jumps.
    """

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        #: stores to attributes and items, deletions, `global` and `nonlocal`, imports, class definitions, `:=`
        self.stores: list[cst.CSTNode] = []
        #: return, raise, break, continue, yield, await
        self.jumps: list[cst.CSTNode] = []
        self.calls: list[cst.Call] = []
        self._depth = 0

    def visit_Name(self, node: cst.Name) -> None:
        self.reads.add(node.value)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_Param(self, node: cst.Param) -> bool:
        if node.default is not None:
            node.default.visit(self)
        return False

    def visit_Annotation(self, node: cst.Annotation) -> bool:
        return False

    def visit_Call(self, node: cst.Call) -> None:
        self.calls.append(node)

    def _bind(self, target: cst.BaseExpression) -> None:
        if isinstance(target, cst.Name):
            if not self._depth:
                self.writes.add(target.value)
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value)
        elif isinstance(target, cst.StarredElement):
            self._bind(target.value)
        else:
            self.stores.append(target)
            target.visit(self)

    def visit_Assign(self, node: cst.Assign) -> bool:
        for target in node.targets:
            self._bind(target.target)
        node.value.visit(self)
        return False

    def visit_AnnAssign(self, node: cst.AnnAssign) -> bool:
        if node.value is not None:
            self._bind(node.target)
            node.value.visit(self)
        return False

    def visit_AugAssign(self, node: cst.AugAssign) -> bool:
        self._bind(node.target)
        node.target.visit(self)
        node.value.visit(self)
        return False

    def visit_For(self, node: cst.For) -> bool:
        self._bind(node.target)
        node.iter.visit(self)
        node.body.visit(self)
        if node.orelse is not None:
            node.orelse.visit(self)
        return False

    def visit_AsName(self, node: cst.AsName) -> bool:
        self._bind(node.name)
        return False

    def visit_MatchAs(self, node: cst.MatchAs) -> None:
        self._capture(node.name)

    def visit_MatchStar(self, node: cst.MatchStar) -> None:
        self._capture(node.name)

    def visit_MatchMapping(self, node: cst.MatchMapping) -> None:
        self._capture(node.rest)

    def _capture(self, name: cst.Name | None) -> None:
        if name is not None:
            self._bind(name)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> bool:
        self._bind(node.target)
        self.stores.append(node)
        node.value.visit(self)
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self._bind(node.name)
        for decorator in node.decorators:
            decorator.visit(self)
        node.params.visit(self)
        self._nested(node.body)
        return False

    def _nested(self, body: cst.BaseSuite) -> None:
        self._depth += 1
        jumps = list(self.jumps)
        body.visit(self)
        self.jumps = jumps
        self._depth -= 1

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        self._bind(node.name)
        self.stores.append(node)
        for part in (*node.decorators, *node.bases, *node.keywords):
            part.visit(self)
        self._nested(node.body)
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        node.params.visit(self)
        node.body.visit(self)
        return False

    def visit_CompFor(self, node: cst.CompFor) -> bool:
        node.iter.visit(self)
        for test in node.ifs:
            test.visit(self)
        if node.inner_for_in is not None:
            node.inner_for_in.visit(self)
        return False

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        self.stores.append(node)
        name = node.asname.name if node.asname else _first_name(node.name)
        if isinstance(name, cst.Name):
            self._bind(name)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        if not isinstance(node.names, cst.ImportStar):
            for alias in node.names:
                alias.visit(self)
        return False

    def visit_Del(self, node: cst.Del) -> None:
        self.stores.append(node)

    def visit_Global(self, node: cst.Global) -> bool:
        self.stores.append(node)
        return False

    def visit_Nonlocal(self, node: cst.Nonlocal) -> bool:
        self.stores.append(node)
        return False

    def visit_Return(self, node: cst.Return) -> None:
        self.jumps.append(node)

    def visit_Raise(self, node: cst.Raise) -> None:
        self.jumps.append(node)

    def visit_Break(self, node: cst.Break) -> None:
        self.jumps.append(node)

    def visit_Continue(self, node: cst.Continue) -> None:
        self.jumps.append(node)

    def visit_Yield(self, node: cst.Yield) -> None:
        self.jumps.append(node)

    def visit_Await(self, node: cst.Await) -> None:
        self.jumps.append(node)


def _first_name(name: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(name, cst.Attribute):
        name = name.value
    return name


def uses(*nodes: cst.CSTNode | None) -> Uses:
    """What some code reads, binds and does."""
    result = Uses()
    for node in nodes:
        if node is not None:
            node.visit(result)
    return result


def dotted(expression: cst.BaseExpression) -> str:
    """The text of a name or of a dotted name such as `a.b.c`; "" for anything else."""
    if isinstance(expression, cst.Name):
        return expression.value
    if isinstance(expression, cst.Attribute):
        base = dotted(expression.value)
        return f"{base}.{expression.attr.value}" if base else ""
    return ""


def bound_in(function: cst.FunctionDef) -> set[str]:
    """All names that a function binds, its parameters included."""
    return parameters(function) | uses(function.body).writes


def parameters(function: cst.FunctionDef) -> set[str]:
    given = function.params
    named = [*given.posonly_params, *given.params, *given.kwonly_params]
    stars = [p for p in (given.star_arg, given.star_kwarg) if isinstance(p, cst.Param)]
    return {p.name.value for p in [*named, *stars]}


def names_in_order(source: Source, *nodes: cst.CSTNode) -> list[str]:
    """Each identifier in some code once, also attributes and keywords, in the order of the text."""
    return list(dict.fromkeys(name.value for one in nodes for name in source.inside(one, cst.Name)))


def unused_name(source: Source, wish: str, *others: str) -> str:
    """The name `wish`, with a number (`wish_2`) if the file or `others` already have it."""
    taken = {*source.names, *others}
    number, name = 2, wish
    while name in taken:
        name, number = f"{wish}_{number}", number + 1
    return name
