"""Forces conditions of a program, so that a change of a branch is held to eager on both of its sides.

Where the source text of a condition stands in the functions that changed, it is put into a call of a helper that replaces its
value.  The same is done in the original and in the changed text.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

HELPER = "__dynascope_force_{}"


def force_true(value: Any) -> Any:
    """The condition as if it held."""
    import torch

    return torch.ones_like(value, dtype=torch.bool) if isinstance(value, torch.Tensor) else True


def force_false(value: Any) -> Any:
    """The condition as if it did not hold."""
    import torch

    return torch.zeros_like(value, dtype=torch.bool) if isinstance(value, torch.Tensor) else False


HELPERS: Mapping[str, Any] = {HELPER.format("true"): force_true, HELPER.format("false"): force_false}


def forced(text: str, condition: str, changed: list[tuple[int, int]], *, to: bool) -> str | None:
    """The text with a condition forced, in the functions around the changed lines; None if it is not there as a value.

    A condition of a `while` cannot be forced to hold.
    """
    try:
        tree, wanted = ast.parse(text), ast.dump(ast.parse(condition.strip(), mode="eval").body)
    except (SyntaxError, ValueError):
        return None
    spans = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in tree.body
        if any(node.lineno <= last and first <= (node.end_lineno or node.lineno) for first, last in changed)
    ]
    loops = {id(node.test) for node in ast.walk(tree) if isinstance(node, ast.While)}
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.expr)
        and any(first <= node.lineno <= last for first, last in spans)
        and not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
        and ast.dump(node) == wanted
    ]
    if not found or any(id(node) in loops for node in found):
        return None
    return _wrapped(text, found, HELPER.format(str(to).lower()))


def is_loop(text: str, condition: str) -> bool:
    """Whether a `while` of this text has the condition."""
    try:
        wanted = ast.dump(ast.parse(condition.strip(), mode="eval").body)
        return any(isinstance(node, ast.While) and ast.dump(node.test) == wanted for node in ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        return False


def _wrapped(text: str, nodes: list[ast.expr], helper: str) -> str:
    """The text with each of these expressions as the argument of a call; lines stay what they are."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    places = [(n.lineno, n.col_offset, b"%s(" % helper.encode()) for n in nodes]
    places += [(n.end_lineno or n.lineno, n.end_col_offset or 0, b")") for n in nodes]
    for line, column, inserted in sorted(places, reverse=True):
        lines[line - 1] = lines[line - 1][:column] + inserted + lines[line - 1][column:]
    return b"".join(lines).decode()
