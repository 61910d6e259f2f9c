"""Rule 2: the functions and `nn.Module` classes that a cell defines are compiled where its own statements call them.

Every name stays bound to the plain object, and nothing is put into the user's namespace, not even while the
cell runs.  Instead each call `F(...)` in the cell's own statements is compiled as `(<entries> @ F)(...)`, where
`<entries>` is a constant of the code object: an `Entries`, which answers with the compiled entry point if F is one
and with F itself if not.  The call is made by the cell's own frame, so whatever inspects frames
(`super`, `locals`, `eval`, warnings) sees what it sees in a plain cell; line and column numbers are F's own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType, MethodType
from typing import Any

from dynascope.cell.source import SCOPES
from dynascope.compiler.torch_private import marks
from dynascope.selection.definitions import Definition

#: stands for the Entries in the syntax tree, until the code object exists
_MARK = "\0dynascope.entries"

Freshen = Callable[[Any], None]


class Entries:
    """Answers what to call in place of an object that the cell calls."""

    def __init__(self, found: Iterable[Definition], enter: Callable[[Any, str], Any], freshen: Freshen) -> None:
        """`enter` makes the compiled entry point of a target with this name; `freshen` makes a function new to the compiler."""
        wanted = [d for d in found if d.refused is None]
        self._functions = {(d.name, _first_line(d.node)) for d in wanted if d.kind == "function"}
        self._classes = {(d.name, _first_line(d.node)) for d in wanted if d.kind == "module"}
        self._enter = enter
        self._freshen = freshen
        #: code objects by id; they are kept alive here, so an id means one object
        self._codes: dict[int, tuple[CodeType, str]] = {}
        self._class_codes: dict[int, tuple[CodeType, str]] = {}
        #: functions whose code is known, by id: freshening puts another code object under them
        self._known: dict[int, tuple[Any, str]] = {}
        self._made: dict[tuple[int, int], tuple[tuple[Any, ...], Any]] = {}
        #: names of the definitions that the cell has called
        self.called: list[str] = []

    # -- from tree to code ------------------------------------------------------------------------

    def rewrite(self, tree: ast.AST) -> ast.AST:
        """The tree with every call of the cell's own statements going through `self`."""
        rewritten: ast.AST = _Calls().visit(tree)
        return rewritten

    def bind(self, code: CodeType) -> CodeType:
        """The code of a rewritten tree, with `self` in its constants; notes the definitions that it makes."""
        code = _with_constant(code, self)
        self._note(code)
        return code

    def _note(self, code: CodeType) -> None:
        for constant in code.co_consts:
            if not isinstance(constant, CodeType):
                continue
            place = (constant.co_name, constant.co_firstlineno)
            if place in self._functions:
                self._codes[id(constant)] = (constant, constant.co_name)
            elif place in self._classes:
                for method in constant.co_consts:
                    if isinstance(method, CodeType):
                        self._class_codes[id(method)] = (method, constant.co_name)
            else:
                self._note(constant)  # Python 3.12 and later put a function with type parameters one level down

    # -- at run time ------------------------------------------------------------------------------

    def learn(self, value: Any) -> None:
        """Make a function or class that the cell has just defined new to the compiler, once."""
        if isinstance(value, type):
            for member in list(vars(value).values()):
                self._learn_function(member, self._class_codes)
        else:
            self._learn_function(marks.undecorated(value), self._codes)

    def _learn_function(self, function: Any, codes: dict[int, tuple[CodeType, str]]) -> str | None:
        if type(function) is not FunctionType:
            return None
        if id(function) in self._known:
            return self._known[id(function)][1]
        if id(function.__code__) not in codes:
            return None
        name = codes[id(function.__code__)][1]
        self._known[id(function)] = (function, name)
        self._freshen(function)
        return name

    def __matmul__(self, callee: Any) -> Any:
        """What to call in place of `callee`: its compiled entry point, or `callee` itself."""
        kind = type(callee)
        if kind is FunctionType:
            inner = marks.undecorated(callee)
            name = self._learn_function(inner, self._codes)
            if name is None:
                return callee
            if inner is not callee and id(callee) not in self._known:
                # The decorator's wrappers share one code object: without a copy, runs would fill its cache.
                self._known[id(callee)] = (callee, name)
                self._freshen(callee)
            return self._entry(name, callee, callee)
        if kind is MethodType:
            name = self._learn_function(callee.__func__, self._class_codes)
            if name is None or not _is_module(callee.__self__):
                return callee
            return self._entry(name, callee, callee.__self__, callee.__func__)
        if not isinstance(callee, type) and _is_module(callee):
            if marks.is_compiled_in_place(callee):
                return callee  # the user's `model.compile()`, with settings of its own
            self.learn(kind)
            forward = getattr(kind, "forward", None)
            known = self._known.get(id(forward))
            name = known[1] if known else self._class_name(kind)
            return callee if name is None else self._entry(name, callee, callee)
        return callee

    def _class_name(self, kind: type) -> str | None:
        """The cell's name for a class that inherits its `forward`."""
        for member in vars(kind).values():
            if id(member) in self._known:
                return self._known[id(member)][1]
        return None

    def _entry(self, name: str, callee: Any, *parts: Any) -> Any:
        if name not in self.called:
            self.called.append(name)
        key = (id(parts[0]), id(parts[-1]))
        if key not in self._made:
            self._made[key] = (parts, self._enter(callee, name))
        return self._made[key][1]

    def plain(self, entry: Any) -> Any:
        """What `entry` is the compiled entry point of; None where it is none of ours."""
        return next((parts[0] for parts, made in self._made.values() if made is entry and len(parts) == 1), None)

    def kept(self) -> dict[int, Any]:
        """Compiled entry points by the id of the plain function or module, for `--keep`."""
        return {id(parts[0]): made for parts, made in self._made.values() if len(parts) == 1}

    def close(self) -> None:
        """Let go of everything of the user's; code that still holds this (a generator expression) calls plainly."""
        for table in (self._codes, self._class_codes, self._known, self._made):
            table.clear()
        # these know the run and its report, and Dynamo keeps the cell's code, which holds this
        self._enter = self._freshen = _unchanged


class _Calls(ast.NodeTransformer):
    """`F(...)` to `(<entries> @ F)(...)`, in the cell's own statements only."""

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, SCOPES):
            return node
        result: ast.AST = super().visit(node)
        return result

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.IfExp, ast.NamedExpr)):
            mark = ast.copy_location(ast.Constant(value=_MARK), node.func)
            func = ast.BinOp(left=mark, op=ast.MatMult(), right=node.func)
            node.func = ast.copy_location(func, node.func)
        return node


def _with_constant(code: CodeType, value: Any) -> CodeType:
    constants = tuple(
        value if isinstance(c, str) and c == _MARK else _with_constant(c, value) if isinstance(c, CodeType) else c
        for c in code.co_consts
    )
    if all(new is old for new, old in zip(constants, code.co_consts, strict=True)):
        return code
    return code.replace(co_consts=constants)


def _unchanged(target: Any, name: str = "") -> Any:
    return target


def _first_line(node: ast.AST) -> int:
    """`co_firstlineno` of what this definition makes: the first decorator's line."""
    lines: list[int] = [d.lineno for d in getattr(node, "decorator_list", [])]
    return min([*lines, int(getattr(node, "lineno", 0))])


def _is_module(value: Any) -> bool:
    import torch

    return isinstance(value, torch.nn.Module)
