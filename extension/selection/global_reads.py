"""The notebook's global names that a statement may read, directly or through the functions that it uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from dynascope.cell.source import Namespace
from dynascope.compiler.replay.reachable import names_used


def names_read(statement: ast.stmt, skip: list[list[ast.stmt]]) -> set[str]:
    """Global names that the statement reads or deletes, at once or later in a lambda; `skip`: blocks in it to leave out."""
    visitor = _Reads({id(s) for block in skip for s in block})
    visitor.visit(statement)
    return visitor.names


class _Reads(ast.NodeVisitor):
    """Collects the global names that are read.

    The standard `symtable` takes only text, and IPython's AST transformers may have changed the tree.
    """

    def __init__(self, skip: set[int]) -> None:
        self.skip = skip
        self.names: set[str] = set()

    def visit(self, node: ast.AST) -> None:
        if id(node) not in self.skip:
            super().visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Store):
            self.names.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.names.add(node.target.id)
        self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_scope(node, {child.arg for child in ast.iter_child_nodes(node.args) if isinstance(child, ast.arg)})

    def visit_comprehension_scope(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        """Visit a comprehension; its first iterable is evaluated outside of its scope."""
        self._visit_scope(node, {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)})
        self.visit(node.generators[0].iter)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_scope

    def _visit_scope(self, node: ast.AST, local: set[str]) -> None:
        """Visit an expression that has a scope of its own with these local names."""
        outer, self.names = self.names, set()
        self.generic_visit(node)
        self.names = outer | (self.names - local)


class GlobalReads:
    """The global names that are read by functions, starting from the names that a statement uses."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self._of_all_functions: set[str] | None = None

    def through(self, names: set[str]) -> set[str]:
        """Every global name that may be read through these names, by the functions behind them and whatever those use."""
        read: set[str] = set()
        todo, seen = list(names), set(names)
        while todo:
            direct = self._directly_through(todo.pop())
            read |= direct
            todo += direct - seen
            seen |= direct
        return read

    def _directly_through(self, name: str) -> set[str]:
        value = self.namespace.get(name)
        if isinstance(value, FunctionType):
            return names_used(value.__code__) if value.__globals__ is self.namespace else set()
        if _is_inert(value):
            return set()
        if self._of_all_functions is None:  # a container or one of the user's objects may give access to any function
            self._of_all_functions = set().union(*(names_used(f.__code__) for f in _functions(self.namespace)))
        return self._of_all_functions


def _is_inert(value: Any, depth: int = 0) -> bool:
    """Whether using this value never runs the user's code."""
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        inner = value.values() if isinstance(value, dict) else value
        return depth < 3 and len(value) < 100 and all(_is_inert(v, depth + 1) for v in inner)
    kind = value if isinstance(value, type) else type(value)
    return kind.__module__.partition(".")[0] in ("builtins", "torch", "numpy")


def _functions(namespace: Namespace) -> Iterator[FunctionType]:
    for value in list(namespace.values()):
        for function in list(vars(value).values()) if isinstance(value, type) else [value]:
            if isinstance(function, FunctionType) and function.__globals__ is namespace:
                yield function
