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
from dynascope.compiler.source.code import code_key, first_line, map_constants, nested_code
from dynascope.compiler.source.origin import origin

#: constant of rewritten code that the EntryPoints object replaces
_PLACEHOLDER = "\0dynascope.entry_points"

#: id of each code object -> (the code, the name of its definition); the code is kept alive, so that no other object gets its id
_Names = dict[int, tuple[CodeType, str]]


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
        self._classes = {(d.name, first_line(d.node)) for d in accepted if d.kind == "module"}
        self._compiles_others = others
        self._make_entry = make_entry
        self._retrace = retrace
        self._function_codes: _Names = {}
        self._method_codes: _Names = {}
        #: id of each registered function or class -> (the object, the name of its definition); needed because `retrace`
        #: replaces the code objects of functions, which are the keys of `_function_codes`
        self._registered: dict[int, tuple[Any, str]] = {}
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
        code = map_constants(code, lambda c: self if isinstance(c, str) and c == _PLACEHOLDER else c)
        for inner in nested_code(code):
            if code_key(inner) in self._functions:
                self._function_codes[id(inner)] = (inner, inner.co_name)
            elif code_key(inner) in self._classes:
                methods = [c for c in inner.co_consts if isinstance(c, CodeType)]
                self._method_codes.update({id(method): (method, inner.co_name) for method in methods})
        return code

    # -- at run time ------------------------------------------------------------------------------

    def register(self, value: Any) -> None:
        """Make the compiler forget, once, what it knows of a function or class that the cell has just defined."""
        if isinstance(value, type):
            self._registered[id(value)] = (value, value.__name__)  # it may have no methods of its own
            self._register_methods(value)
        else:
            self._register_function(marks.undecorated(value), self._function_codes)

    def _register_methods(self, kind: type) -> None:
        for member in list(vars(kind).values()):
            self._register_function(member, self._method_codes)

    def _register_function(self, function: Any, names: _Names) -> str | None:
        """Register the function, once; returns the name of the definition that it comes from, or None if it comes from none."""
        if type(function) is not FunctionType:
            return None
        if id(function) in self._registered:
            return self._registered[id(function)][1]
        if id(function.__code__) not in names:
            return None
        name = names[id(function.__code__)][1]
        self._registered[id(function)] = (function, name)
        self._retrace(function)
        return name

    def __matmul__(self, callee: Any) -> Any:
        """What to call in place of `callee`: its compiled entry point, or `callee` itself."""
        if type(callee) is partial:
            function = self @ callee.func
            return callee if function is callee.func else partial(function, *callee.args, **callee.keywords)
        entry = self._of_definition(callee)
        return entry if entry is not callee else self._of_other(callee)

    def _of_definition(self, callee: Any) -> Any:
        kind = type(callee)
        if kind is FunctionType:
            return self._for_function(callee)
        if kind is MethodType:
            name = self._register_function(callee.__func__, self._method_codes)
            if name is None or not is_module(callee.__self__):
                return callee
            return self._entry(name, callee, callee.__self__, callee.__func__)
        if isinstance(callee, type) or not is_module(callee) or marks.is_compiled_in_place(callee):
            return callee  # the user's own `model.compile()` keeps its own settings
        self._register_methods(kind)
        # a class that is bound to no name is recognized by its methods, one of which may be an inherited `forward`
        parts = [kind, getattr(kind, "forward", None), *vars(kind).values()]
        name = next((self._registered[id(part)][1] for part in parts if id(part) in self._registered), None)
        return callee if name is None else self._entry(name, callee, callee)

    def _for_function(self, callee: FunctionType) -> Any:
        inner = marks.undecorated(callee)
        name = self._register_function(inner, self._function_codes)
        if name is None:
            return callee
        if inner is not callee and id(callee) not in self._registered:
            # all wrappers of a decorator share one code object: without a copy of it, runs would fill its cache
            self._registered[id(callee)] = (callee, name)
            self._retrace(callee)
        return self._entry(name, callee, callee)

    def _of_other(self, callee: Any) -> Any:
        target = underlying(callee)
        parts = (target.__self__, target.__func__) if type(target) is MethodType else (target,)
        key = (id(parts[0]), id(parts[-1]))
        if key in self._entries:
            return self._entries[key][1]
        name = self._name_of_other(target, parts[0], parts[-1])
        if name is not None and self._compiles_others:
            self._retrace(target)
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
        for table in (self._function_codes, self._method_codes, self._registered, self._entries):
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
