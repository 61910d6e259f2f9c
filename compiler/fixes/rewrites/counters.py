"""A Python number that counts up from call to call becomes a tensor, which the compiled code does not depend on."""

from __future__ import annotations

import re

import libcst as cst

from dynascope.compiler.fixes.candidate import Candidate, Problem
from dynascope.compiler.fixes.syntax.names import dotted, uses
from dynascope.compiler.fixes.syntax.source_text import Change, Source, candidate, parse
from dynascope.compiler.fixes.syntax.torch_names import Torch

_ATTRIBUTE = re.compile(r"self'?\]?\.(\w+)(?:\.\w+)* *==")
_LOCAL = re.compile(r"L\['(\w+)'\] *==")


def candidates(problem: Problem) -> list[Candidate]:
    """For a recompile: a tensor in the attribute that the reason names, or as the argument that it names."""
    source = parse(problem.source)
    if source is None or "recompile" not in problem.kind.lower():
        return []
    attribute = _ATTRIBUTE.search(problem.reason)
    local = _LOCAL.search(problem.reason)
    return [
        *(_attribute(problem, source, attribute[1]) if attribute else []),
        *(_argument(problem, source, local[1]) if local else []),
    ]


def _attribute(problem: Problem, source: Source, name: str) -> list[Candidate]:
    """`self.step = 0` as `self.step = torch.tensor(0)`, where the class adds to it."""
    counted = [a for a in source.all_of(cst.AugAssign) if dotted(a.target) == f"self.{name}"]
    begun = [
        a
        for a in source.all_of(cst.Assign)
        if [dotted(t.target) for t in a.targets] == [f"self.{name}"] and isinstance(a.value, cst.Integer | cst.Float)
    ]
    if not counted or not begun:
        return []
    torch = Torch(source, source.scope_of(begun[0]))
    changes: list[Change] = [
        (source.start(a.value), source.end(a.value), f"{torch('tensor')}({source.text_of(a.value)})") for a in begun
    ]
    assumption = f"self.{name} is a tensor; int() of it gives the number."
    return candidate(problem, source, f"Count self.{name} in a tensor", [*changes, *torch.changes()], assumption)


def _argument(problem: Problem, source: Source, name: str) -> list[Candidate]:
    """`f(x, step)` as `f(x, torch.tensor(step))`, where a loop counts `step`."""
    called = problem.function.split(".")[-1]
    functions = [f for f in source.all_of(cst.FunctionDef) if f.name.value == called]
    if len(functions) != 1:
        return []
    given = functions[0].params
    order = [p.name.value for p in (*given.posonly_params, *given.params)]
    if name not in order:
        return []
    changes: list[Change] = []
    torch = Torch(source, source.module)
    for call in source.all_of(cst.Call):
        if dotted(call.func).split(".")[-1] != called or functions[0] in source.ancestors(call):
            continue
        argument = _given(call, name, order.index(name))
        if argument is None or not _counts(source, call, argument):
            continue
        changes.append((source.start(argument), source.end(argument), f"{torch('tensor')}({source.text_of(argument)})"))
    if not changes:
        return []
    assumption = f"{name} is a tensor inside {called}."
    return candidate(problem, source, f"Pass {name} as a tensor", [*changes, *torch.changes()], assumption)


def _given(call: cst.Call, name: str, index: int) -> cst.BaseExpression | None:
    for at, argument in enumerate(call.args):
        if argument.star:
            return None
        if argument.keyword.value == name if argument.keyword is not None else at == index:
            return argument.value
    return None


def _counts(source: Source, call: cst.Call, argument: cst.BaseExpression) -> bool:
    """Whether a number differs from call to call: it is made of what a loop around the call changes, or is a number itself."""
    if isinstance(argument, cst.Integer | cst.Float):
        return True
    loops = [a for a in source.ancestors(call) if isinstance(a, cst.For | cst.While)]
    return bool(uses(argument).reads & uses(*loops).writes)
