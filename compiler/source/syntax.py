"""Finds the statements, nodes and names of one scope in a syntax tree, and gives generated code a location."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
TRIES = (ast.Try, *([ast.TryStar] if hasattr(ast, "TryStar") else []))
#: nodes with a scope of their own
SCOPES = (*DEFINITIONS, ast.Lambda)

Node = TypeVar("Node", bound=ast.AST)


def blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The lists of statements inside a compound statement, in the order of the text.

    A definition has none: its body is another scope.
    """
    if isinstance(statement, DEFINITIONS):
        return []
    found: list[list[ast.stmt]] = []
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        if value := getattr(statement, field, None):
            found += [part.body for part in value] if field in ("handlers", "cases") else [value]
    return found


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
    if isinstance(node, ast.alias):
        return [] if node.name == "*" else [node.asname or node.name.split(".")[0]]
    if isinstance(node, (*DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    return [node.rest] if isinstance(node, ast.MatchMapping) and node.rest else []


def bound_names(statements: Iterable[ast.AST]) -> list[str]:
    """Names that these statements bind or delete in their own scope, in order, each once."""
    return list(dict.fromkeys(name for s in statements for node in own_nodes(s) for name in names_bound_by(node)))


def dotted(node: ast.AST | None) -> str:
    """`a.b.c` for a name or a chain of attributes that starts with one; "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def is_generator(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the function's own body yields."""
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for s in node.body for n in own_nodes(s))


def is_string(statement: ast.stmt) -> bool:
    """Whether the statement is just a string, such as a docstring."""
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)


def copied(part: Any) -> Any:
    """A copy of a tree.  All trees share nodes such as `ast.Load()`, and IPython's tracebacks note other trees at them.

    `copy.deepcopy` would copy these, too.
    """
    if isinstance(part, list):
        return [copied(each) for each in part]
    if not isinstance(part, ast.AST):
        return part
    names = (*part._fields, *part._attributes)
    return type(part)(**{name: copied(getattr(part, name)) for name in names if hasattr(part, name)})


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
