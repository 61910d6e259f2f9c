"""Compiles a cell's entry points (the functions and `nn.Module` classes that it defines) where its own statements call them.

A module that contains one of such a class is an entry point, too.

Every name stays bound to the plain object, and nothing is put into the user's namespace, not even while the cell runs.
Instead each call `F(...)` in the cell's own statements is compiled as `(<entry points> @ F)(...)`, where `<entry points>` is a
constant of the code object: an `EntryPoints`, whose `@` returns the compiled entry point of F, or F itself if it has none.  The
cell's own frame makes the call, so code that inspects frames (`super`, `locals`, `eval`, warnings) sees what it sees in a plain
cell; line and column numbers are F's own.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from functools import partial
from types import FunctionType
from typing import Any

from dynascope.cell.source import Cell
from dynascope.cell.targets import Definition, parts_of, underlying, why_not_compilable
from dynascope.compiler.capture.torch_private import marks
from dynascope.compiler.compiling import target_name
from dynascope.compiler.driver import Run
from dynascope.compiler.source.code import code_key, first_line
from dynascope.compiler.source.origin import origin
from dynascope.compiler.source.syntax import DEFINITIONS, bound_names, own_statements


class EntryPoints:
    """Decides what is called in place of each object that the cell calls."""

    def __init__(self, shell: Any, cell: Cell, run: Run, definitions: Sequence[Definition]) -> None:
        """Without `definitions`, all modules, and all functions of the user's, that the cell calls are compiled."""
        self._shell, self._cell = shell, cell
        self._run: Run | None = run
        self._compiles_others = not definitions
        self._accepted = [d for d in definitions if d.refused is None]
        #: (id of a bound method's object, id of its function), or (id,) of another callee -> (these objects, entry point, name)
        self._entries: dict[tuple[int, ...], tuple[tuple[Any, ...], Any, str]] = {}
        #: names of the entry points that the cell has called
        self.called: list[str] = []
        #: names of modules, methods, and functions that the cell makes, which it has called uncompiled; `-f` compiles them
        self.uncompiled: list[str] = []

    # -- at run time ------------------------------------------------------------------------------

    def register(self, statement: ast.stmt) -> None:
        """Make the compiler forget what it knows of the functions and classes that this statement has just defined."""
        for node in own_statements([statement]):
            if isinstance(node, DEFINITIONS) and any(d.node is node for d in self._accepted):
                value = self._shell.user_ns.get(node.name)
                for function in vars(value).values() if isinstance(value, type) else (marks.undecorated(value),):
                    if type(function) is FunctionType and self._run is not None:
                        self._run.retrace(function)

    def __matmul__(self, callee: Any) -> Any:
        """What to call in place of `callee`: its compiled entry point, or `callee` itself."""
        if self._run is None:
            return callee
        if type(callee) is partial:
            function = self @ callee.func
            return callee if function is callee.func else partial(function, *callee.args, **callee.keywords)
        target = underlying(callee)
        parts = parts_of(target)
        key = tuple(map(id, parts))
        if key not in self._entries:
            name = self._name_of_definition(target)
            if name is None:
                name = self._name_of_other(target, parts[0], parts[-1])
                if name is None or not (self._compiles_others or self._has_own_part(target)):
                    if name is not None and name not in self.uncompiled and self._is_found_by(name, parts[0]):
                        self.uncompiled.append(name)
                    return callee
            # also the wrapper of a decorator: all of these share one code object, and runs would fill its cache
            for function in (target, marks.undecorated(target)):
                self._run.retrace(function)
            self._entries[key] = parts, self._run.entry_point(target, name=name), name
        _, entry, called = self._entries[key]
        self.called += [called] if called not in self.called else []
        return entry

    def _name_of_definition(self, target: Any) -> str | None:
        """The name of the cell's definition that a call of `target` runs; None if it is no entry point of the cell's."""
        inner, owner = marks.undecorated(target), parts_of(target)[0]
        if type(inner) is FunctionType:
            code = inner.__code__
            functions = ((d.name, first_line(d.node)) for d in self._accepted if d.kind == "function")
            return code.co_name if code.co_filename == self._cell.file and code_key(code) in functions else None
        kind = type(owner)
        is_own = any(d.name == kind.__name__ for d in self._accepted if d.kind == "module")
        if not is_own or not is_module(owner) or kind.__module__ != self._shell.user_ns.get("__name__"):
            return None
        if owner is target:
            is_own = not marks.is_compiled_in_place(target)  # the user's own `model.compile()` keeps its own settings
        else:
            is_own = type(target.__func__) is FunctionType and target.__func__.__code__.co_filename == self._cell.file
        return kind.__name__ if is_own else None

    def _has_own_part(self, target: Any) -> bool:
        """Whether this is a module that contains one of a class of the cell, such as an `nn.Sequential`."""
        return is_module(target) and any(self._name_of_definition(part) is not None for part in target.modules())

    def _name_of_other(self, target: Any, owner: Any, function: Any) -> str | None:
        """The name of a module, of a module's method or of a function or method of the user's; None for anything else.

        None, too, for what the user compiles or keeps from the compiler.
        """
        if is_module(target):
            is_own = marks.is_compiled_in_place(target) or marks.is_compiled(type(target).__call__)
            if is_own or marks.inner_function(target) is not target or why_not_compilable(target):
                return None
        else:
            inner: Any = inspect.unwrap(function) if type(function) is FunctionType else None
            if type(inner) is not FunctionType or any(marks.is_compiled(f) or why_not_compilable(f) for f in (function, inner)):
                return None
            if origin(inner.__code__.co_filename) not in (("user", "library") if is_module(owner) else ("user",)):
                return None
        names = (n for n, value in self._shell.user_ns.items() if value is owner and not n.startswith("_"))
        name = next(names, target_name(owner))
        return name if owner is function or function.__name__ == "__call__" else f"{name}.{function.__name__}"

    def _is_found_by(self, name: str, owner: Any) -> bool:
        """Whether `-f` compiles it by this name, if it is a module, a method, or a function that the cell binds.

        Other functions, and class methods, may not be worth it.
        """
        if not isinstance(owner, (FunctionType, type)):
            return name.partition(".")[0] in self._shell.user_ns
        return name in bound_names(self._cell.statements) and self._shell.user_ns.get(name) is owner

    def to_keep(self) -> dict[int, Any]:
        """Compiled entry points by the id of the plain function or module, for `--keep`."""
        return {id(parts[0]): entry for parts, entry, _ in self._entries.values() if len(parts) == 1}

    def close(self) -> None:
        """Release the user's objects; code that still holds `self` (a generator expression) makes plain calls afterwards."""
        self._entries.clear()
        self._run = None  # it refers to its report, and Dynamo keeps the cell's code, which refers to `self`


def is_module(value: Any) -> bool:
    """Whether this is an `nn.Module`."""
    import torch

    return isinstance(value, torch.nn.Module)
