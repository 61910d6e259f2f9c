"""Compiles a cell's entry points (the functions and `nn.Module` classes that it defines) where its own statements call them.

Every name stays bound to the plain object, and nothing is put into the user's namespace, not even while the cell runs.
Instead each call `F(...)` in the cell's own statements is compiled as `(<entry points> @ F)(...)`, where `<entry points>` is a
constant of the code object: an `EntryPoints`, whose `@` returns the compiled entry point of F, or F itself if it has none.  The
cell's own frame makes the call, so code that inspects frames (`super`, `locals`, `eval`, warnings) sees what it sees in a plain
cell; line and column numbers are F's own.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection, Sequence
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from dynascope.cell.source import Cell, compile_tree
from dynascope.cell.syntax import SCOPES
from dynascope.cell.targets import Definition, underlying, why_not_compilable
from dynascope.compiler.capture.torch_private import marks
from dynascope.compiler.compiling import target_name
from dynascope.compiler.source.code import code_key, first_line, map_constants
from dynascope.compiler.source.origin import origin

#: constant of rewritten code that the EntryPoints object replaces
_PLACEHOLDER = "\0dynascope.entry_points"


class EntryPoints:
    """Decides what is called in place of each object that the cell calls."""

    def __init__(
        self, shell: Any, cell: Cell, definitions: Sequence[Definition], make_entry: Callable[[Any, str], Any],
        retrace: Callable[[Any], None], others: bool = False,
    ) -> None:  # fmt: skip
        """`make_entry` compiles a target under a name; `retrace` makes the compiler forget what it knows of a function.

        `others`: whether to compile all modules, and all functions of the user's, that the cell calls, whoever defines them.
        """
        self._shell, self._cell = shell, cell
        accepted = [d for d in definitions if d.refused is None]
        self._functions = {(d.name, first_line(d.node)) for d in accepted if d.kind == "function"}
        self._classes = {d.name for d in accepted if d.kind == "module"}
        self._compiles_others = others
        self._make_entry = make_entry
        self._retrace = retrace
        #: (id of a bound method's object, id of its function), or (id, id) of another callee -> (these objects, entry point)
        self._entries: dict[tuple[int, int], tuple[tuple[Any, ...], Any]] = {}
        #: names of the entry points that the cell has called
        self.called: list[str] = []
        #: names of what the cell has called that `-f` could compile
        self.uncompiled: list[str] = []

    # -- from tree to code ------------------------------------------------------------------------

    def compile(self, tree: ast.AST, mode: str) -> CodeType:
        """Compile a tree of the cell with every call of its own statements going through `self`."""
        code = compile_tree(self._shell, self._cell, _CallRewriter().visit(tree), mode)
        return map_constants(code, lambda c: self if isinstance(c, str) and c == _PLACEHOLDER else c)

    # -- at run time ------------------------------------------------------------------------------

    def register(self, value: Any) -> None:
        """Make the compiler forget what it knows of a function or class that the cell has just defined."""
        for function in vars(value).values() if isinstance(value, type) else (marks.undecorated(value),):
            if type(function) is FunctionType:
                self._retrace(function)

    def __matmul__(self, callee: Any) -> Any:
        """What to call in place of `callee`: its compiled entry point, or `callee` itself."""
        if type(callee) is partial:
            function = self @ callee.func
            return callee if function is callee.func else partial(function, *callee.args, **callee.keywords)
        entry = self._of_definition(callee)
        return entry if entry is not callee else self._of_other(callee)

    def _of_definition(self, callee: Any) -> Any:
        inner = marks.undecorated(callee)
        if type(inner) is FunctionType:
            code = inner.__code__
            is_own = code.co_filename == self._cell.file and code_key(code) in self._functions
            return self._entry(code.co_name, callee, callee) if is_own else callee
        owner, function = (callee.__self__, callee.__func__) if type(callee) is MethodType else (callee, callee)
        kind = type(owner)
        if not is_module(owner) or kind.__name__ not in self._classes or kind.__module__ != self._shell.user_ns.get("__name__"):
            return callee
        if owner is callee:
            # the user's own `model.compile()` keeps its own settings
            return callee if marks.is_compiled_in_place(callee) else self._entry(kind.__name__, callee, callee)
        is_own = isinstance(function, FunctionType) and function.__code__.co_filename == self._cell.file
        return self._entry(kind.__name__, callee, owner, function) if is_own else callee

    def _of_other(self, callee: Any) -> Any:
        target = underlying(callee)
        parts = (target.__self__, target.__func__) if type(target) is MethodType else (target,)
        key = (id(parts[0]), id(parts[-1]))
        if key in self._entries:
            return self._entries[key][1]
        name = self._name_of_other(target, parts[0], parts[-1])
        if name is not None and self._compiles_others:
            return self._entry(name, target, *parts)
        if name is not None and name.partition(".")[0] in self._shell.user_ns and name not in self.uncompiled:
            self.uncompiled.append(name)
        return callee

    def _name_of_other(self, target: Any, owner: Any, function: Any) -> str | None:
        """The name of a module, of a module's method or of a function or method of the user's; None for anything else."""
        if is_module(target):
            if marks.is_compiled_in_place(target) or marks.inner_function(target) is not target:
                return None
        elif not _is_compilable(function, ("user", "library") if is_module(owner) else ("user",)):
            return None
        names = (n for n, value in self._shell.user_ns.items() if value is owner and not n.startswith("_"))
        name = next(names, target_name(owner))
        return name if owner is function or function.__name__ == "__call__" else f"{name}.{function.__name__}"

    def _entry(self, name: str, callee: Any, *parts: Any) -> Any:
        if name not in self.called:
            self.called.append(name)
        key = (id(parts[0]), id(parts[-1]))
        if key not in self._entries:
            # also the wrapper of a decorator: all of these share one code object, and runs would fill its cache
            for target in (callee, marks.undecorated(callee)):
                self._retrace(target)
            self._entries[key] = (parts, self._make_entry(callee, name))
        return self._entries[key][1]

    @property
    def has_called_a_module(self) -> bool:
        return any(is_module(parts[-1]) for parts, _ in self._entries.values())

    def to_keep(self) -> dict[int, Any]:
        """Compiled entry points by the id of the plain function or module, for `--keep`."""
        return {id(parts[0]): entry for parts, entry in self._entries.values() if len(parts) == 1}

    def close(self) -> None:
        """Release the user's objects; code that still holds `self` (a generator expression) makes plain calls afterwards."""
        for table in (self._functions, self._classes, self._entries):
            table.clear()
        # these refer to the run and its report, and Dynamo keeps the cell's code, which refers to `self`
        self._make_entry, self._retrace = lambda target, name: target, lambda target: None


def _is_compilable(function: Any, origins: Collection[str]) -> bool:
    """Whether this is a function whose code is of one of these origins, and that the user does not keep from the compiler."""
    if type(function) is not FunctionType:
        return False
    inner: Any = inspect.unwrap(function)
    is_plain = all(
        type(f) is FunctionType and not marks.is_compiled(f) and not why_not_compilable(f) for f in (function, inner)
    )
    return is_plain and origin(inner.__code__.co_filename) in origins


class _CallRewriter(ast.NodeTransformer):
    """`F(...)` to `(<entry points> @ F)(...)`, in the cell's own statements only."""

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, SCOPES):
            return node
        result: ast.AST = super().visit(node)
        return result

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.IfExp, ast.BoolOp, ast.NamedExpr)):
            placeholder = ast.copy_location(ast.Constant(value=_PLACEHOLDER), node.func)
            operation = ast.BinOp(left=placeholder, op=ast.MatMult(), right=node.func)
            node.func = ast.copy_location(operation, node.func)
        return node


def is_module(value: Any) -> bool:
    """Whether this is an `nn.Module`."""
    import torch

    return isinstance(value, torch.nn.Module)
