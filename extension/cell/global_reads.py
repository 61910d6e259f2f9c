"""Finds the global names of the notebook that a statement may read, directly or through the functions that it uses."""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from dynascope.cell.source import Namespace
from dynascope.cell.syntax import copy_compound, generated
from dynascope.compiler.patching import value_or_absent
from dynascope.compiler.source.code import names_used, nested_code

_READS = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "DELETE_NAME", "DELETE_GLOBAL")
_HOLDERS = (MethodType, staticmethod, classmethod, property)


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
        read: set[str] = set()
        for value in _with_held([self.namespace.get(name)]):
            if isinstance(value, FunctionType):
                read |= names_used(value.__code__) if value.__globals__ is self.namespace else set()
            elif not _is_inert(value):  # a container or one of the user's objects may give access to any function
                return self._through_anything()
        return read

    def _through_anything(self) -> set[str]:
        if self._read_by_all_functions is None:
            self._read_by_all_functions = set().union(*(names_used(f.__code__) for f in _functions(self.namespace)))
        return self._read_by_all_functions


def _is_inert(value: Any, depth: int = 0) -> bool:
    """Whether using this value is assumed never to run the user's code."""
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        inner = value.values() if isinstance(value, dict) else value
        return depth < 3 and len(value) < 100 and all(_is_inert(v, depth + 1) for v in inner)
    if isinstance(value, Iterator) or (depth and isinstance(value, (FunctionType, *_HOLDERS))):
        return False
    kind = value if isinstance(value, type) else type(value)
    if kind.__module__.partition(".")[0] not in ("builtins", "torch", "numpy"):
        return False
    modules = getattr(value, "__dict__", {}).get("_modules")  # an nn.Sequential may hold the user's modules
    return not isinstance(modules, dict) or all(_is_inert(module) for module in modules.values())


def _functions(namespace: Namespace) -> Iterator[FunctionType]:
    """The functions defined in the notebook, also in its classes and below decorators."""
    values = list(namespace.values())
    in_classes = (v for value in values if isinstance(value, type) for v in vars(value).values())
    for value in _with_held([*values, *in_classes]):
        if isinstance(value, FunctionType) and value.__globals__ is namespace:
            yield value


def _with_held(values: list[Any]) -> Iterator[Any]:
    """Each value; with a function, also what it wraps or holds in closures; in place of a method or property, what it holds."""
    todo, seen = list(values), set()
    while todo:
        value = todo.pop()
        if id(value) in seen or value is None:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            todo.append(vars(value).get("__wrapped__"))
            todo += [value_or_absent(partial(getattr, cell, "cell_contents")) for cell in value.__closure__ or ()]
        if isinstance(value, _HOLDERS):
            todo += [getattr(value, name, None) for name in ("__self__", "__func__", "fget", "fset", "fdel")]
        else:
            yield value
