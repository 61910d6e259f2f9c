"""Other values for what conditions ask about: `mode` in `if mode == "mean"`, `self.step` in `if self.step % 10 == 0`.

Numbers and strings are made from the constants in the condition, so that its other side runs, too; a number without such a
constant is varied, a bool is inverted, and of an enum all other members are tried.
"""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.proving.variations import Variation, other_numbers, with_random_values
from dynascope.compiler.lab.fix.text_edits import edits_between
from dynascope.compiler.lab.objects import GlobalName, attributes_of
from dynascope.compiler.lab.reachable import Reachable
from dynascope.compiler.lab.recorded_call import Arguments, RecordedCall

#: (namespace, name) of attributes, globals and entries of dicts
_Places = list[tuple[dict[str, Any], str]]
_KINDS = (bool, int, float, str)
#: at most this many variations
_MOST = 6
#: larger constants are left out: they are often numbers of iterations
_LARGEST = 10_000


def variations_for(plan: Plan, call: RecordedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Variation]:
    """At most `_MOST` variations of arguments, attributes, globals and entries of dicts that conditions ask about.

    All conditions in the edited files count; those nearest to a file's first edit come first.
    """
    tested = _tested(plan)
    if not tested:
        return []
    try:
        values = dict(_arguments(call, args, kwargs))
    except (TypeError, ValueError):  # the call's arguments do not fit, or its target has no signature
        return []
    places: dict[str, _Places] = {}
    for namespace, name in _found(call, args, kwargs, set(tested)):
        places.setdefault(name, []).append((namespace, name))
        values.setdefault(name, namespace[name])
    made = (
        Variation(f"{name} = {other!r:.60}", functools.partial(_vary, call, name, other, places.get(name, [])), True, True)
        for name, constants in tested.items()
        if name in values
        for other in _others(values[name], constants)
    )
    return list(itertools.islice(made, _MOST))


def _tested(plan: Plan) -> dict[str, list[Any]]:
    """Name of a variable, attribute or entry of a dict -> the constants in conditions that ask about it."""
    found: list[tuple[int, set[str], list[Any]]] = []
    for file, text in plan.texts.items():
        before = plan.originals[file]
        first = min((edit.first_line for edit in edits_between(file, before, text)), default=0)
        for node in ast.walk(ast.parse(before)):
            for asked in _conditions(node):
                inside = list(ast.walk(asked))
                names = {n.id for n in inside if isinstance(n, ast.Name)}
                names |= {n.attr for n in inside if isinstance(n, ast.Attribute)}
                keys = [n.slice for n in inside if isinstance(n, ast.Subscript)]
                names |= {k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)}
                constants = [n.value for n in inside if isinstance(n, ast.Constant)]
                found.append((abs(getattr(asked, "lineno", 0) - first), names, constants))
    tested: dict[str, list[Any]] = {}
    for _, names, constants in sorted(found, key=lambda one: one[0]):
        for name in sorted(names):
            tested.setdefault(name, []).extend(constants)
    return tested


def _conditions(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        return [node.test]
    if isinstance(node, ast.Match):
        asked: list[Any] = [node.subject, *(case.pattern for case in node.cases)]
        return [ast.Tuple(asked, ast.Load(), lineno=node.lineno)]
    return [node] if isinstance(node, ast.Compare | ast.BoolOp) else [*node.ifs] if isinstance(node, ast.comprehension) else []


def _others(value: Any, constants: list[Any]) -> list[Any]:
    """Other values of the same type (numbers and strings made from the constants), and None if the constants contain it."""
    nothing = [None] if None in constants and value is not None else []
    return [*_of_same_type(value, constants), *nothing]


def _of_same_type(value: Any, constants: list[Any]) -> list[Any]:
    if isinstance(value, enum.Enum):
        return [other for other in type(value) if other is not value]
    if type(value) is str:
        texts = [c for c in constants if isinstance(c, str)]
        return [c for c in dict.fromkeys([*texts, "another"] if texts else []) if c != value]
    if type(value) is bool or type(value) not in _KINDS:
        return [not value] if type(value) is bool else []
    numbers = [c for c in constants if type(c) in (int, type(value)) and abs(c) <= _LARGEST]
    near = [type(value)(n) for c in numbers for n in (c, c + 1)]
    return [n for n in dict.fromkeys(near or other_numbers(value)) if n != value]


def _arguments(call: RecordedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, also those left to their defaults; for a cell's statements, the values of the names they use."""
    if call.namespace is not None:
        return kwargs
    bound = inspect.signature(getattr(call.target, "forward", call.target)).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


def _found(
    call: RecordedCall, args: tuple[Any, ...], kwargs: dict[str, Any], names: set[str]
) -> Iterator[tuple[dict[str, Any], str]]:
    for owner in Reachable([call.target, args, kwargs]).objects:
        held = owner.namespace if isinstance(owner, GlobalName) else owner if type(owner) is dict else attributes_of(owner)
        own = names & {owner.name} if isinstance(owner, GlobalName) else names.intersection(held or ())
        for name in sorted(own):
            if held is not None and (type(held.get(name)) in _KINDS or isinstance(held.get(name), enum.Enum)):
                yield held, name


def _vary(
    call: RecordedCall, name: str, value: Any, places: _Places, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Arguments:
    # a repeated call starts from the state that the recorded one left: with the same values, a lost store would not show
    args, kwargs = with_random_values(call.target if call.namespace is None else None, args, kwargs)
    for namespace, key in places:  # a replay restores them
        if value is None or type(namespace.get(key)) is type(value):
            namespace[key] = value
    given = _arguments(call, args, kwargs)
    if name not in given or (value is not None and type(given[name]) is not type(value)):
        return args, kwargs
    if call.namespace is not None:
        return args, {**kwargs, name: value}
    bound = inspect.signature(getattr(call.target, "forward", call.target)).bind(*args, **kwargs)
    bound.arguments[name] = value
    return bound.args, bound.kwargs
