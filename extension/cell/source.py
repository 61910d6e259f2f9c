"""Turns a cell's text into code and runs it, with the line numbers that the user sees.

A line number in a traceback, a report, `inspect` or the debugger is the line of the cell as its editor shows it: the
`%%compile` line is line 1, or further down if there are lines above it.  To this end, the `%%compile` line and the lines above
it stay in the text that is parsed and registered with IPython, as comments.  Statements are compiled and run one by one, as
IPython does it.  So `__doc__` and the names bound before an error are the same with and without a magic; but a cell that Python
refuses as a whole, such as one with a `return` outside a function, fails before any of it runs.
"""

from __future__ import annotations

import ast
import contextlib
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import CodeType
from typing import Any

from IPython.core.error import UsageError

from dynascope.cell.interrupts import interruptible
from dynascope.compiler.source.code import map_constants
from dynascope.compiler.source.syntax import SCOPES
from dynascope.shell import raw_cell, running_cell_number

Namespace = dict[str, Any]
#: compiles a syntax tree with the regions of the run in it, with a function that compiles one without
CompileWithRegions = Callable[[ast.AST, Callable[[ast.AST], CodeType]], CodeType]
#: constant of rewritten code that is replaced by what calls go through
_PLACEHOLDER = "\0dynascope.through"


@dataclass(frozen=True)
class Cell:
    """One parsed cell, or the parsed expression of a line magic."""

    #: IPython's file name for the code; tracebacks and `inspect` look the text up by it
    file: str
    text: str
    statements: list[ast.stmt]
    #: None: the run has no regions
    compile_with_regions: CompileWithRegions | None = None

    @property
    def last_expression(self) -> ast.Expr | None:
        """The expression that is the cell's result, if its last statement is one."""
        last = self.statements[-1]
        return last if isinstance(last, ast.Expr) else None


def read_cell(shell: Any, body: str, magic: str, line: str = "") -> Cell:
    """Parse the body of a cell magic.

    Raises UsageError, with a one-line message, if the body has no code or cannot be run by this magic, and SyntaxError as a
    plain cell would.
    """
    first = body.lstrip()
    if first.startswith("%%"):
        other = first.split(None, 1)[0]
        raise UsageError(f"put {other} on the line above {magic}: a cell magic cannot be inside {magic}")
    raw, above = _lines_above(shell, body, f"{magic} {line}".rstrip())
    return _parse(shell, _as_comments(above) + shell.transform_cell(body), raw, f"{magic}: the cell has no code in it")


def read_expression(shell: Any, expression: str, magic: str) -> Cell:
    """Parse the expression of a line magic; the expression gets the line number of the magic."""
    nothing = f"{magic} needs an expression: {magic} f(x)"
    if not expression.strip():
        raise UsageError(nothing)
    lines = raw_cell(shell).split("\n")
    same = [i for i, text in enumerate(lines) if magic in text and expression.strip() in text]
    index = min(same, key=lambda i: abs(i - _running_line(shell, lines)), default=0)
    return _parse(shell, f"{_as_comments(lines[:index])}{expression.strip()}\n", None, nothing)


def _running_line(shell: Any, lines: list[str]) -> int:
    """The index of the line that the cell, which consists of these lines, is executing."""
    running = (line for frame, line in traceback.walk_stack(sys._getframe()) if frame.f_globals is shell.user_global_ns)
    return _blank_lines(lines) + next(running, 1) - 1


def _blank_lines(lines: list[str]) -> int:
    """How many blank lines come first: IPython drops these."""
    return next((index for index, text in enumerate(lines) if text.strip()), len(lines))


def _as_comments(lines: list[str]) -> str:
    return "".join(f"# {line}\n" if line.strip() else "\n" for line in lines)


def _parse(shell: Any, text: str, raw: str | None, nothing: str) -> Cell:
    # the debugger looks breakpoints up by the raw text
    file = shell.compile.cache(text, running_cell_number(shell), raw_code=raw)
    tree = shell.transform_ast(shell.compile.ast_parse(text, filename=file))
    if not tree.body:
        raise UsageError(nothing)
    cell = Cell(file=file, text=text, statements=tree.body)
    try:
        _compile_whole(shell, cell)
    except SyntaxError:
        with contextlib.suppress(SyntaxError):
            _compile_whole(shell, cell, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            instead = "in a plain cell, it works, also in `with dynascope.observe() as recording:`"
            raise UsageError(f"top-level await is not supported here: {instead}") from None
        raise
    return cell


def reread(shell: Any, cell: Cell) -> Cell:
    """Parse a cell again for another run: the first run may have changed the syntax tree."""
    tree = shell.transform_ast(shell.compile.ast_parse(cell.text, filename=cell.file))
    return replace(cell, statements=tree.body, compile_with_regions=None)


def _lines_above(shell: Any, body: str, magic_line: str) -> tuple[str | None, list[str]]:
    """The whole cell as the user wrote it, or None if that is not known, and the lines above the magic's body."""
    blank = [""] * _blank_lines(body.splitlines())
    raw = raw_cell(shell)
    start = raw.rfind(body.rstrip()) if body.strip() else -1  # some magics pass the text on without its last newline
    above = raw[: start - 1].split("\n") if start > 0 and raw[start - 1] == "\n" else None
    return (None, [magic_line, *blank]) if above is None else (raw, above + blank)


def _compile_whole(shell: Any, cell: Cell, flags: int = 0) -> None:
    """Raise SyntaxError if Python refuses the cell as a module: for `return` outside a function, for example."""
    with shell.compile.extra_flags(flags):
        compile(ast.Module(body=cell.statements, type_ignores=[]), cell.file, "exec", shell.compile.flags, dont_inherit=True)


def run_statements(shell: Any, cell: Cell, through: Any = None, after: Callable[..., Any] = lambda statement: None) -> Any:
    """Run the statements one by one in the user's namespace; returns the value of the cell's last expression.

    `after` is called after each statement; `through`: as for `run_statement`.
    """
    value = None
    for statement in cell.statements:
        value = run_statement(shell, cell, statement, through)
        after(statement)
    return value


def run_statement(shell: Any, cell: Cell, statement: ast.stmt, through: Any = None) -> Any:
    """Run one statement in the user's namespace; returns its value if it is the cell's last expression, else None.

    `through`: each of its own calls `F(...)`, not those in functions, calls what `through @ F` returns.
    """
    last = cell.last_expression if statement is cell.last_expression else None
    tree = ast.Expression(body=last.value) if last else ast.Module(body=[statement], type_ignores=[])
    code = compile_tree(shell, cell, _CallRewriter().visit(tree) if through else tree, "eval" if last else "exec")
    code = map_constants(code, lambda c: through if isinstance(c, str) and c == _PLACEHOLDER else c)
    return interruptible(eval, code, shell.user_global_ns, shell.user_ns)


class _CallRewriter(ast.NodeTransformer):
    """`F(...)` to `(<through> @ F)(...)`, in the cell's own statements only."""

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, SCOPES) else super().visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.IfExp, ast.BoolOp, ast.NamedExpr)):
            placeholder = ast.copy_location(ast.Constant(value=_PLACEHOLDER), node.func)
            operation = ast.BinOp(left=placeholder, op=ast.MatMult(), right=node.func)
            node.func = ast.copy_location(operation, node.func)
        return node


def compile_tree(shell: Any, cell: Cell, tree: ast.AST, mode: str) -> CodeType:
    """Compile a tree, with its regions, as IPython compiles a cell: with the `__future__` flags that earlier cells set."""
    with_ipython = partial(shell.compile, filename=cell.file, symbol=mode)
    code: CodeType = cell.compile_with_regions(tree, with_ipython) if cell.compile_with_regions else with_ipython(tree)
    # torch's tables compare code by value, without its file: an equal function of an earlier cell has to be another one
    return map_constants(code, lambda c: c.replace(co_consts=(*c.co_consts, cell.file)) if isinstance(c, CodeType) else c)
