"""A Python number that changes from call to call becomes a tensor, so that compiled code does not depend on its value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from dynascope.compiler.lab.fix.candidate import RECOMPILE, Candidate, Problem
from dynascope.compiler.lab.fix.syntax.conditions import grouped
from dynascope.compiler.lab.fix.syntax.flow import shared_names, statements
from dynascope.compiler.lab.fix.syntax.names import bound_in, dotted, parameters, uses
from dynascope.compiler.lab.fix.syntax.source_text import Change, Source, candidate, parse
from dynascope.compiler.lab.fix.syntax.torch_names import Torch


def candidates(problem: Problem) -> list[Candidate]:
    """For a recompile because of the number that the problem's reason names: `self.steps`, an argument, a global.

    An edit is made only where the file shows that it is this number, and not another one of the same name.
    """
    source = parse(problem.source) if problem.kind == RECOMPILE else None
    if source is None:
        return []
    name, function = problem.reason, _function_at(source, problem.line)
    title, assumption = f"Keep {name} in a tensor", f"{name} is a tensor wherever it is used."
    if isinstance(function, cst.FunctionDef) and name in parameters(function):
        title, assumption = f"Pass {name} as a tensor", f"{name} is a tensor inside {problem.function}."
        return _made(problem, source, _given(source, function, name), [], title, assumption)
    owners: Sequence[cst.CSTNode]
    if name.startswith("self."):
        assumption = f"{name} is a tensor; int() or float() of it gives the number."
        path, _, last = name.rpartition(".")
        name, owners = f"self.{last}", _classes(source, path, function)
        if any(_is_of_the_class(source, owner, last) for owner in owners):
            return []  # objects start with the class's number, and that one does not become a tensor
    else:
        owners = [_home(source, function, name.split(".")[0])]
    numbers = _values(source, name, owners)
    if not all(map(_is_number, numbers)):
        return []
    updates = [u for u in source.all_of(cst.AugAssign) if dotted(u.target) == name and _is_of(source, u, name, owners)]
    return _made(problem, source, numbers, updates, title, assumption)


def _made(
    problem: Problem,
    source: Source,
    values: list[cst.BaseExpression],
    updates: list[cst.AugAssign],
    title: str,
    assumption: str,
) -> list[Candidate]:
    """The candidate in which these expressions are tensors.

    `updates`: the statements that change the number in place.  `name += 1` becomes `name = name + 1`, because a graph may have
    kept the tensor for its backward pass.
    """
    torch = Torch(source, source.module)
    changes: list[Change] = [(source.start(v), source.end(v), f"{torch('tensor')}({source.text_of(v)})") for v in values]
    if not changes:
        return []
    for node in updates:
        name, operator = dotted(node.target), source.module.code_for_node(node.operator).strip().removesuffix("=")
        value = source.text_of(node.value)
        value = value if _is_number(node.value) else grouped(node.value, value)
        changes.append((source.start(node), source.end(node), f"{name} = {name} {operator} {value}"))
    made = candidate(problem, source, title, [*changes, *torch.changes()], assumption)
    return [replace(one, tensors=(problem.reason,)) for one in made]


# which number is meant


def _function_at(source: Source, line: int) -> cst.FunctionDef | cst.Module:
    """The innermost function that has this line, its decorators included, or else the module."""
    around = [f for f in source.all_of(cst.FunctionDef) if source.first_line(f) <= line <= source.lines(f)[1]]
    return around[-1] if around else source.module


def _is_of_the_class(source: Source, owner: cst.CSTNode, name: str) -> bool:
    """Whether the body of a class binds this attribute, and no `__init__` of the class does."""
    if not isinstance(owner, cst.ClassDef):
        return False
    own = [s for s in statements(owner.body) if not isinstance(s, cst.FunctionDef | cst.ClassDef)]
    made = [f for f in source.inside(owner, cst.FunctionDef) if f.name.value == "__init__"]
    targets = {dotted(t.target) for f in made for t in source.inside(f, cst.AssignTarget)}
    targets |= {dotted(a.target) for f in made for a in source.inside(f, cst.AnnAssign) if a.value is not None}
    return name in uses(*own).writes and f"self.{name}" not in targets


def _home(source: Source, node: cst.CSTNode, name: str) -> cst.CSTNode:
    """The function, or else the module, to which the name belongs in the code at `node`; a class for a name in its own body."""
    scope = next(a for a in (node, *source.ancestors(node)) if isinstance(a, cst.FunctionDef | cst.ClassDef | cst.Module))
    while isinstance(scope, cst.FunctionDef) and (name not in bound_in(scope) or name in shared_names(source, scope)):
        scope = source.scope_of(scope)
    return scope


def _class_around(source: Source, node: cst.CSTNode) -> cst.ClassDef | None:
    """The innermost class around some code."""
    return next((a for a in source.ancestors(node) if isinstance(a, cst.ClassDef)), None)


def _is_of(source: Source, node: cst.CSTNode, name: str, owners: Sequence[cst.CSTNode]) -> bool:
    """Whether a name in the code at `node` belongs to one of these functions or modules; for `self.x`, of these classes."""
    first = name.split(".")[0]
    return (_class_around(source, node) if first == "self" else _home(source, node, first)) in owners


def _values(source: Source, name: str, owners: Sequence[cst.CSTNode]) -> list[cst.BaseExpression]:
    """The values that assignments (`name = 0`) give to a name of these owners; none if one of them unpacks its value."""
    bound: list[cst.BaseExpression] = []
    nodes: list[cst.Assign | cst.AnnAssign] = [*source.all_of(cst.Assign), *source.all_of(cst.AnnAssign)]
    for node in nodes:
        targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]
        unpacked = [e.value for t in targets if isinstance(t, cst.Tuple | cst.List) for e in t.elements]
        if name in map(dotted, [*targets, *unpacked]) and _is_of(source, node, name, owners):
            if name in map(dotted, unpacked):
                return []
            bound += [node.value] if node.value is not None else []
    return bound


def _classes(source: Source, path: str, place: cst.CSTNode) -> list[cst.ClassDef]:
    """The class of `self`, `self.a` or `net` in the code at `place`, and its bases; none if the file does not show it."""
    base, _, last = path.rpartition(".")
    known = list(source.all_of(cst.ClassDef))
    if path == "self":
        found = [c for c in known if c is _class_around(source, place)]
    else:
        owners = _classes(source, base, place) if base else [_home(source, place, last)]
        made = _values(source, f"self.{last}" if base else last, owners)
        names = {dotted(value.func) if isinstance(value, cst.Call) else "" for value in made}
        found = [c for c in known if {c.name.value} == names]
    if len(found) != 1:
        return []
    for one in found:
        bases = {dotted(base.value) for base in one.bases}
        found += [c for c in known if c.name.value in bases and c not in found]
    return found


def _given(source: Source, function: cst.FunctionDef, name: str) -> list[cst.BaseExpression]:
    """The arguments for this parameter that may differ from call to call, in calls of the function by its own name.

    Empty if the parameter is not taken by position, or the name may stand for another function.
    """
    order = [p.name.value for p in (*function.params.posonly_params, *function.params.params)]
    called = function.name.value
    home = _home(source, source.parent(function) or source.module, called)
    named = [f for f in source.all_of(cst.FunctionDef) if f.name.value == called]
    if name not in order or len(named) != 1 or any(called not in uses(v).reads for v in _values(source, called, [home])):
        return []
    calls = [c for c in source.all_of(cst.Call) if dotted(c.func) == called and _home(source, c, called) is home]
    given = [(c, _argument(c, name, order.index(name))) for c in calls if function not in source.ancestors(c)]
    return [value for call, value in given if value is not None and _differs(source, call, value)]


def _argument(call: cst.Call, name: str, index: int) -> cst.BaseExpression | None:
    for at, argument in enumerate(call.args):
        if argument.star:
            return None
        if argument.keyword.value == name if argument.keyword is not None else at == index:
            return argument.value
    return None


def _differs(source: Source, call: cst.Call, argument: cst.BaseExpression) -> bool:
    """Whether other calls may pass another number: this one passes a literal, or reads what a loop around the call binds."""
    loops = [a for a in source.ancestors(call) if isinstance(a, cst.For | cst.While)]
    return _is_number(argument) or bool(uses(argument).reads & uses(*loops).writes)


def _is_number(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Integer | cst.Float) or (
        isinstance(value, cst.UnaryOperation) and isinstance(value.expression, cst.Integer | cst.Float)
    )
