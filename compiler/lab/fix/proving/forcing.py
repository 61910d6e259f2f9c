"""Forces conditions of a program, so that a changed branch is compared with eager on both sides.

In the edited text and in the original, each occurrence of a condition in a top-level statement that the edits touch, except in
the condition of a `while`, is wrapped in a call to a helper that replaces the condition's value.  If the edits rewrite the
condition, only those in changed lines are: elsewhere, one text would have it and the other would not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dynascope.compiler.source.lines import split_lines

_HELPER = "_dynascope_force_{}"  # not with two underscores, which mean another name in a class


class Sides:
    """The side to which each condition is forced, by number.  Switching the side of a tensor condition needs no recompile."""

    def __init__(self, count: int) -> None:
        import torch

        self._flags = [torch.zeros((), dtype=torch.bool) for _ in range(count)]
        self._values = [False] * count
        #: the helpers that forced texts call, by name
        self.helpers: Mapping[str, Any] = {
            _HELPER.format(number): _helper(flag, self._values, number) for number, flag in enumerate(self._flags)
        }

    def force(self, sides: tuple[bool, ...]) -> None:
        """Force the conditions to these sides from now on."""
        for number, side in enumerate(sides):
            self._values[number] = side
            self._flags[number].fill_(side)


def _helper(flag: Any, values: list[bool], number: int) -> Callable[[Any], Any]:
    import torch

    def force(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.zeros_like(value, dtype=torch.bool) | flag
        return values[number]

    return force


def with_forced(text: str, conditions: Sequence[tuple[str, bool]], changed: list[tuple[int, int]]) -> str | None:
    """The text with conditions forced in the top-level statements that contain changed lines, or in these lines alone.

    Args:
        text: the original or the edited text.
        conditions: the text of each, and whether the edits rewrite it.
        changed: the first and the last line of each change, counted from 1.

    Returns:
        None if a condition does not occur there outside of `while` conditions (a forced loop might not end) or occurs in a
        changed one, or if the text cannot be parsed.
    """
    made: str | None = text
    for number, (condition, is_rewritten) in enumerate(conditions):
        made = None if made is None else _with_one_forced(made, condition, changed, is_rewritten, _HELPER.format(number))
    return made


def _with_one_forced(text: str, condition: str, changed: list[tuple[int, int]], is_rewritten: bool, helper: str) -> str | None:
    """`with_forced` for one condition."""
    try:
        tree, wanted = ast.parse(text), ast.dump(ast.parse(condition.strip(), mode="eval").body)
    except (SyntaxError, ValueError):
        return None
    touched = [(n.lineno, n.end_lineno or n.lineno) for n in tree.body if _overlaps(n, changed)]
    spans = changed if is_rewritten else touched
    tests = _while_conditions(tree)
    in_loops = {id(part) for test in tests for part in ast.walk(test)}
    edited = {id(part) for test in tests if _overlaps(test, changed) for part in ast.walk(test)}
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.expr)
        and _overlaps(node, spans)
        and not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
        and ast.dump(node) == wanted
    ]
    forced = [node for node in found if id(node) not in in_loops]
    if not forced or any(id(node) in edited for node in found):
        return None
    return _wrapped(text, forced, helper)


def _overlaps(node: ast.stmt | ast.expr, spans: list[tuple[int, int]]) -> bool:
    return any(node.lineno <= last and first <= (node.end_lineno or node.lineno) for first, last in spans)


def _while_conditions(tree: ast.AST) -> list[ast.expr]:
    return [node.test for node in ast.walk(tree) if isinstance(node, ast.While)]


def is_in_while_condition(text: str, condition: str, changed: list[tuple[int, int]]) -> bool:
    """Whether this is the condition of a `while` in changed lines, or part of one."""
    try:
        wanted = ast.dump(ast.parse(condition.strip(), mode="eval").body)
        tests = [test for test in _while_conditions(ast.parse(text)) if _overlaps(test, changed)]
        return any(ast.dump(part) == wanted for test in tests for part in ast.walk(test))
    except (SyntaxError, ValueError):
        return False


def _wrapped(text: str, nodes: list[ast.expr], helper: str) -> str:
    """The text with each of these expressions as the argument of a call; line numbers stay the same."""
    lines = [line.encode() for line in split_lines(text)]
    places = [(n.lineno, n.col_offset, b"%s(" % helper.encode()) for n in nodes]
    places += [(n.end_lineno or n.lineno, n.end_col_offset or 0, b")") for n in nodes]
    for line, column, inserted in sorted(places, reverse=True):
        lines[line - 1] = lines[line - 1][:column] + inserted + lines[line - 1][column:]
    return b"".join(lines).decode()
