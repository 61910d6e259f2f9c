"""A Python number that changes from call to call becomes a tensor, so that compiled code does not depend on its value."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from dynascope.compiler.fixes.candidate import RECOMPILE, Candidate, Problem
from dynascope.compiler.fixes.syntax.conditions import grouped
from dynascope.compiler.fixes.syntax.names import dotted, uses
from dynascope.compiler.fixes.syntax.source_text import Change, Source, candidate, parse
from dynascope.compiler.fixes.syntax.torch_names import Torch


def candidates(problem: Problem) -> list[Candidate]:
    """For a recompile because of the number that the problem's reason names: `self.steps`, an argument, a global."""
    source = parse(problem.source) if problem.kind == RECOMPILE else None
    if source is None:
        return []
    name = problem.reason
    if name.startswith("self."):
        attribute = f"self.{name.rpartition('.')[2]}"
        words = (f"Keep {name} in a tensor", f"{name} is a tensor; int() or float() of it gives the number.")
        return _made(problem, source, _bindings(source, attribute), *words, attribute)
    given = _given(source, problem.function.split(".")[-1], name)
    if given is not None:
        return _made(problem, source, given, f"Pass {name} as a tensor", f"{name} is a tensor inside {problem.function}.")
    words = (f"Keep {name} in a tensor", f"{name} is a tensor wherever it is used.")
    return _made(problem, source, _bindings(source, name), *words, name)


def _made(
    problem: Problem, source: Source, values: list[cst.BaseExpression], title: str, assumption: str, name: str = ""
) -> list[Candidate]:
    """The candidate in which these expressions are tensors.

    `name`: the name that is bound to them.  `name += 1` becomes `name = name + 1`, because a graph may have kept the tensor for
    its backward pass.
    """
    torch = Torch(source, source.module)
    changes: list[Change] = [(source.start(v), source.end(v), f"{torch('tensor')}({source.text_of(v)})") for v in values]
    if not changes:
        return []
    for node in source.all_of(cst.AugAssign):
        if name and dotted(node.target) == name:
            operator = source.module.code_for_node(node.operator).strip().removesuffix("=")
            value = source.text_of(node.value)
            value = value if _is_number(node.value) else grouped(node.value, value)
            changes.append((source.start(node), source.end(node), f"{name} = {name} {operator} {value}"))
    made = candidate(problem, source, title, [*changes, *torch.changes()], assumption)
    return [replace(one, tensors=(problem.reason,)) for one in made]


def _bindings(source: Source, name: str) -> list[cst.BaseExpression]:
    """The numbers that assignments (`name = 0`) give to a name; none if an assignment gives it anything else."""
    bound: list[cst.BaseExpression] = []
    nodes: list[cst.Assign | cst.AnnAssign] = [*source.all_of(cst.Assign), *source.all_of(cst.AnnAssign)]
    for node in nodes:
        targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]
        if any(isinstance(t, cst.Tuple | cst.List) and name in {dotted(e.value) for e in t.elements} for t in targets):
            return []
        if node.value is not None and name in map(dotted, targets):
            bound.append(node.value)
    return bound if all(_is_number(value) for value in bound) else []


def _given(source: Source, function: str, name: str) -> list[cst.BaseExpression] | None:
    """The arguments for this parameter that may differ from call to call.

    None unless the file has exactly one function of this name, and it takes this parameter by position.
    """
    functions = [f for f in source.all_of(cst.FunctionDef) if f.name.value == function]
    if len(functions) != 1:
        return None
    parameters = functions[0].params
    order = [p.name.value for p in (*parameters.posonly_params, *parameters.params)]
    if name not in order:
        return None
    calls = [c for c in source.all_of(cst.Call) if dotted(c.func).split(".")[-1] == function]
    given = [(c, _argument(c, name, order.index(name))) for c in calls if functions[0] not in source.ancestors(c)]
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
