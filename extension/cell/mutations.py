"""Finds the objects that a cell's own statements change in place: running the cell again would change them again."""

from __future__ import annotations

import ast

from dynascope.cell.ast_tools import own_nodes
from dynascope.cell.source import Cell

_MUTATING_METHODS = frozenset(
    ("append", "extend", "insert", "pop", "remove", "clear", "update", "add", "discard", "setdefault", "step", "backward",
     "load_state_dict")
)  # fmt: skip


def mutated_names(cell: Cell) -> list[str]:
    """Names of the objects that the cell changes in place, in order, without names that the cell has assigned before."""
    names: dict[str, None] = {}
    created: set[str] = set()
    for statement in cell.statements:
        for node in own_nodes(statement):
            name = _mutated_by(node)
            if name is not None and name not in created:
                names[name] = None
        if isinstance(statement, ast.Assign):
            created.update(t.id for t in statement.targets if isinstance(t, ast.Name) and t.id not in names)
    return list(names)


def _mutated_by(node: ast.AST) -> str | None:
    """The name at the root of what this node changes: `x` for `x += 1`, `x.a[0] = 1` and `x.add_(1)`."""
    target: ast.AST | None = None
    if isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        target = node
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method in _MUTATING_METHODS or (method.endswith("_") and not method.startswith("_")):
            target = node.func.value
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None
