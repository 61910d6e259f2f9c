"""Observes a function of torch from inside: `watch` replaces the function's code by code that also calls an observer.

torch reads Python's stack (`disable(recursive=False)`, the start of a compile, logs), and a backend may do so, too; both would
see the frame of a wrapper.  So the function object is kept, and only its code is replaced temporarily.  The new code is
compiled from the function's source with calls of the observer added, at the lines and columns of the original.  As a check, the
unchanged source is compiled first: if the result differs from the function's code, the function is not observed.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import re
from collections.abc import Callable
from types import CodeType
from typing import Any

from dynascope.compiler.source.code import nested_code
from dynascope.compiler.source.code_swap import Swaps, recompiled

#: placeholder for the observer in code that is not installed yet
_OBSERVER = "the observer of dynascope"

#: (original code, its file, the added texts) -> code with calls of the observer
_rewritten: dict[tuple[CodeType, str, tuple[str, str, str]], CodeType] = {}


def watch(function: Any, observer: Any, *, before: str = "", returned: str = "", failed: str = "") -> Callable[[], None]:
    """Call `observer` from inside `function`; returns a function that restores the original code.

    `before` runs first, `returned` is an expression that replaces each return value and refers to it as `result`, and `failed`
    runs when an exception leaves the function.  All are Python text that may use `observer` and the function's parameters.
    Raises an exception, such as OSError or ValueError, if the function cannot be observed in this way.
    """
    original = function.__code__
    key = (original, original.co_filename, (before, returned, failed))
    if key not in _rewritten:
        _rewritten[key] = _rewrite(function, before, returned, failed)
    code = _rewritten[key]
    swaps = Swaps()
    swaps.put(function, code.replace(co_consts=tuple(observer if c == _OBSERVER else c for c in code.co_consts)))
    return swaps.undo


def _rewrite(function: Any, before: str, returned: str, failed: str) -> CodeType:
    original = function.__code__
    for imports in (False, True):  # finding the imports takes long, and only newer Pythons need them
        module, definition = _parse(function, imports)
        if _plain(_compile(module, original)) == _plain(original):
            break
    else:
        raise ValueError(f"the source of {function.__qualname__} is not the code that runs")
    parameters = {node.arg for node in ast.walk(definition.args) if isinstance(node, ast.arg)}
    for text in (before, returned, failed):
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        unknown = names - parameters - {"observer", "result"}
        if unknown:
            raise ValueError(f"{function.__qualname__} has no parameter {', '.join(sorted(unknown))}")

    start = int(ast.get_docstring(definition, clean=False) is not None)
    docstring, body = definition.body[:start], definition.body[start:]
    first = body[0]
    if returned:
        nothing = ast.copy_location(ast.Return(None), body[-1])
        body = [_Returns(returned).visit(s) for s in [*body, nothing]]
    if failed:
        (attempt,) = _added(f"try: body\nexcept:\n    {failed}\n    raise", first)
        attempt.body, body = body, [attempt]
    definition.body = [*docstring, *_added(before, first), *body]
    return _compile(module, original)


def _parse(function: Any, imports: bool) -> tuple[ast.Module, Any]:
    """A module that contains the function's definition, with the file's `imports` that it calls, and the definition.

    Lines and columns are those of the file.  The definition is inside its classes, because of name mangling.
    """
    code = function.__code__
    lines, _ = inspect.getsourcelines(code)
    *around, name = function.__qualname__.split(".")
    text = "".join(f"{' ' * depth}class {outer}:\n" for depth, outer in enumerate(around)) + "".join(lines)
    module = ast.parse(text)
    ast.increment_lineno(module, code.co_firstlineno - 1 - len(around))
    definition: Any = module
    for _ in (*around, name):
        definition = definition.body[0] if len(definition.body) == 1 else None
        if definition is None:
            break
    if not isinstance(definition, ast.FunctionDef) or definition.name != name:
        raise ValueError(f"the source of {function.__qualname__} is not its definition")
    called = _called(definition) & _imported(code.co_filename) if imports else set()
    if called:  # Python compiles a call of an imported module's function differently
        module.body[:0] = ast.parse(f"import {', '.join(sorted(called))}").body
    return module, definition


def _called(definition: ast.FunctionDef) -> set[str]:
    """The names in the definition on which a method is called, as in `name.something()`."""
    functions = [node.func for node in ast.walk(definition) if isinstance(node, ast.Call)]
    return {f.value.id for f in functions if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name)}


@functools.cache
def _imported(file: str) -> set[str]:
    """Names that a module imports at its top level; only the import statements are parsed, because torch's modules are long."""
    statements = re.findall(r"^(?:import|from) [^(\n]*(?:\([^)]*\))?", "".join(linecache.getlines(file)), re.M)
    aliases = [alias for statement in statements for alias in ast.parse(statement).body[0].names]
    return {(alias.asname or alias.name).partition(".")[0] for alias in aliases}


def _compile(module: ast.Module, original: CodeType) -> CodeType:
    """Compile `module`, and return the code of the definition that is at the place of `original`."""
    compiled = recompiled(module, original.co_filename, original.co_flags)
    name, line = original.co_name, original.co_firstlineno
    return next(c for c in nested_code(compiled) if c.co_name == name and c.co_firstlineno == line)


def _plain(code: CodeType) -> CodeType:
    """The code without its table of lines and columns, because an option of Python leaves out columns."""
    constants = (_plain(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=tuple(constants))


def _added(text: str, at: ast.AST) -> list[Any]:
    """The statements of `text`, at the place of another node, with the name `observer` replaced by the placeholder."""
    module = _Replaced("observer", ast.Constant(_OBSERVER)).visit(ast.parse(text))
    for node in ast.walk(module):
        ast.copy_location(node, at)
    return list(module.body)


class _Replaced(ast.NodeTransformer):
    """Replaces a name by an expression."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == self.name else node


class _Returns(ast.NodeTransformer):
    """Replaces each value that a function returns by an expression; does not visit functions and classes defined inside it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def visit_Return(self, node: ast.Return) -> ast.Return:
        value = node.value or ast.copy_location(ast.Constant(None), node)
        (statement,) = _added(self.text, node)
        node.value = _Replaced("result", value).visit(statement.value)
        return node

    def visit_FunctionDef(self, node: ast.AST) -> ast.AST:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef
