"""Finds the global names of the notebook that a statement may read, directly or through the functions that it uses."""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from dynascope.cell.ast_tools import copy_compound, generated
from dynascope.cell.source import Namespace
from dynascope.compiler.replay.reachable import names_used
from dynascope.compiler.source.code import nested_code

_READS = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "DELETE_NAME", "DELETE_GLOBAL")


def names_read(statement: ast.stmt) -> set[str]:
    """Global names that the statement (if it is compound, its header) reads or deletes, now or later, as a lambda does."""
    if isinstance(statement, (ast.Break, ast.Continue)):
        return set()  # Python refuses to compile them outside a loop
    header, fields = copy_compound(statement)
    for node, field in fields:
        setattr(node, field, [generated("__body__", statement)])
    module = compile(ast.Module(body=[header], type_ignores=[]), "<header>", "exec", dont_inherit=True)
    instructions = (i for code in nested_code(module) for i in dis.get_instructions(code))
    return {i.argval for i in instructions if i.opname in _READS}


class GlobalReads:
    """Finds the global names that functions may read, starting from the names that a statement uses."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self._read_by_all_functions: set[str] | None = None

    def through(self, names: set[str]) -> set[str]:
        """Every global name that may be read by the functions behind these names, or by functions that those use in turn."""
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
        if self._read_by_all_functions is None:  # a container or one of the user's objects may give access to any function
            self._read_by_all_functions = set().union(*(names_used(f.__code__) for f in _functions(self.namespace)))
        return self._read_by_all_functions


def _is_inert(value: Any, depth: int = 0) -> bool:
    """Whether using this value is assumed never to run the user's code."""
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        inner = value.values() if isinstance(value, dict) else value
        return depth < 3 and len(value) < 100 and all(_is_inert(v, depth + 1) for v in inner)
    kind = value if isinstance(value, type) else type(value)
    if kind.__module__.partition(".")[0] not in ("builtins", "torch", "numpy"):
        return False
    modules = getattr(value, "__dict__", {}).get("_modules")  # an nn.Sequential may hold the user's modules
    return not isinstance(modules, dict) or all(_is_inert(module) for module in modules.values())


def _functions(namespace: Namespace) -> Iterator[FunctionType]:
    for value in list(namespace.values()):
        for function in list(vars(value).values()) if isinstance(value, type) else [value]:
            if isinstance(function, FunctionType) and function.__globals__ is namespace:
                yield function
