"""Finds the statements, nodes and names of one scope in a syntax tree, and gives generated code a location.

`mutated_names` finds what a cell's own statements change in place: running the cell again would change it again.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TypeVar

from dynascope.cell.source import Cell, Namespace

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
#: nodes with a scope of their own
SCOPES = (*DEFINITIONS, ast.Lambda)

Node = TypeVar("Node", bound=ast.AST)


def block_fields(statement: ast.stmt) -> list[tuple[ast.AST, str]]:
    """(node, field) of each list of statements inside a compound statement, in the order of the text.

    A definition has none: its body is another scope.
    """
    if isinstance(statement, DEFINITIONS):
        return []
    fields: list[tuple[ast.AST, str]] = []
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        value = getattr(statement, field, None)
        if value and field in ("handlers", "cases"):
            fields += [(part, "body") for part in value]
        elif value:
            fields.append((statement, field))
    return fields


def blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The lists of statements inside a compound statement."""
    return [getattr(node, field) for node, field in block_fields(statement)]


def copy_compound(statement: ast.stmt) -> tuple[ast.stmt, list[tuple[ast.AST, str]]]:
    """A copy of a statement, and the copy's `block_fields`, which can be set without changing the original."""
    statement = copy.copy(statement)
    for field in ("handlers", "cases"):
        if hasattr(statement, field):
            setattr(statement, field, [copy.copy(part) for part in getattr(statement, field)])
    return statement, block_fields(statement)


def own_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of one scope, including those inside compound statements such as `if`, `for` and `try`."""
    todo = list(body)[::-1]  # no recursion: a chain of `elif` may be longer than Python's recursion limit
    while todo:
        statement = todo.pop()
        yield statement
        todo += [s for block in blocks(statement) for s in block][::-1]


def own_nodes(root: ast.AST) -> Iterator[ast.AST]:
    """`root` and every node below it that is evaluated in the same scope.

    The bodies and type parameters of definitions and lambdas are left out; their decorators, defaults and bases are not.  Of a
    comprehension, only the variables are left out.
    """
    todo = [root]  # no recursion: a sum may have more terms than Python's recursion limit
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, SCOPES):
            node = copy.copy(node)
            vars(node).update(body=[], type_params=[])
        todo += [*([node.iter, *node.ifs] if isinstance(node, ast.comprehension) else ast.iter_child_nodes(node))][::-1]


def names_bound_by(node: ast.AST) -> list[str]:
    """Names that this node itself binds or deletes, not those of the nodes inside it."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, DEFINITIONS):
        return [node.name]
    if isinstance(node, ast.alias):
        return [] if node.name == "*" else [node.asname or node.name.split(".")[0]]
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return []


def bound_names(statements: Iterable[ast.AST]) -> list[str]:
    """Names that these statements bind or delete in their own scope, in order, each once."""
    return list(dict.fromkeys(name for s in statements for node in own_nodes(s) for name in names_bound_by(node)))


def dotted_name(node: ast.AST) -> str | None:
    """`a.b.c` for a name or a chain of attributes that starts with one; None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def is_generator(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the function's own body yields."""
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for s in node.body for n in own_nodes(s))


def is_string(statement: ast.stmt) -> bool:
    """Whether the statement is just a string, such as a docstring."""
    return (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    )


def located(node: Node, at: ast.stmt) -> Node:
    """Give generated code a location: `node`, and every node below it without one, is placed at the start of `at`."""
    for name, value in (("lineno", at.lineno), ("col_offset", at.col_offset)):
        setattr(node, name, value)
        setattr(node, f"end_{name}", value)
    return ast.fix_missing_locations(node)


def generated(text: str, at: ast.stmt) -> ast.stmt:
    """The statement in `text`, with each of its nodes located at the start of `at`."""
    statement = ast.parse(text).body[0]
    for node in ast.walk(statement):
        if "lineno" in node._attributes:
            located(node, at)
    return statement


# -- what a cell changes in place ------------------------------------------------------------------


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
