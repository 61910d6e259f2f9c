"""Finds the objects that a cell's own statements change in place: running the cell again would change them again."""

from __future__ import annotations

import ast
from types import ModuleType

from dynascope.cell.ast_tools import copy_compound, names_bound_by, own_nodes, own_statements
from dynascope.cell.source import Cell, Namespace

_MUTATING_METHODS = frozenset(
    ("append", "extend", "insert", "pop", "remove", "clear", "update", "add", "discard", "setdefault", "step", "backward",
     "load_state_dict")
)  # fmt: skip


def mutated_names(cell: Cell, namespace: Namespace) -> list[str]:
    """Names of the objects that the cell changes in place, in order, without names that the cell has bound before."""
    names: dict[str, None] = {}
    created: set[str] = set()
    for statement in own_statements(cell.statements):
        header, fields = copy_compound(statement)
        for part, field in fields:
            setattr(part, field, [])
        nodes = list(own_nodes(header))
        mutated = (_mutated_by(node, namespace) for node in nodes)
        names |= dict.fromkeys(name for name in mutated if name is not None and name not in created)
        created.update(name for node in nodes for name in names_bound_by(node) if name not in names)
    return list(names)


def _mutated_by(node: ast.AST, namespace: Namespace) -> str | None:
    """The name at the root of what this node changes: `x` for `x += 1`, `x.a[0] = 1`, `x.add_(1)` and `torch.relu_(x)`."""
    target: ast.AST | None = None
    if isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        target = node
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method in _MUTATING_METHODS or (method.endswith("_") and not method.startswith("_")):
            target = _root(node.func.value)
            if isinstance(target, ast.Name) and isinstance(namespace.get(target.id), ModuleType):
                target = node.args[0] if node.args else None
    target = _root(target)
    return target.id if isinstance(target, ast.Name) else None


def _root(target: ast.AST | None) -> ast.AST | None:
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
    return target
