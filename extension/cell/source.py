"""A cell's text becomes code to run, with the line numbers that the user sees.

Promises.  A line number anywhere (traceback, report, source lens, `inspect`, the debugger) is the line
of the notebook cell as its editor shows it: the `%%compile` line is line 1, or further down where other
lines stand above it.  To this end the text that is parsed and registered with IPython carries those
lines in front, as comments.  The cell's statements are compiled and run one by one, as IPython itself
does, so that a plain cell and a cell under a magic behave alike down to `__doc__`, names bound before
an error and errors that only compiling finds.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any, Protocol

from IPython.core.error import UsageError

from dynascope.cell.interrupts import interruptible
from dynascope.shell import raw_cell, running_cell_number

#: how the code of a jump is called, with the name of the function that it stands in for (`selection.named`)
JUMP = "<jump to {}>"

Namespace = dict[str, Any]
#: makes a statement's code from its syntax tree; the hook through which a rule rewrites it
Compile = Callable[[ast.AST, str], CodeType]

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
#: what sets its own scope: a walk over the cell's own statements stops here
SCOPES = (*DEFINITIONS, ast.Lambda)


class Regions(Protocol):
    """The regions of a run, as the code of its cell needs them (`dynascope.regions.active`)."""

    def compile(self, tree: ast.AST, make: Callable[[ast.AST], CodeType]) -> CodeType:
        """The code of a tree of the cell with its regions in it; `make` compiles a tree."""

    def around(self, statement: ast.stmt) -> contextlib.AbstractContextManager[None]:
        """Sets every region around an expression of the cell, which cannot stand in a `with`."""


@dataclass(frozen=True)
class Cell:
    """One cell (or the expression of a line magic), parsed."""

    #: what IPython knows the code by; tracebacks and `inspect` find the text under it
    file: str
    #: the execution count
    number: int
    text: str
    statements: list[ast.stmt]
    #: the regions of this run, where it has any
    regions: Regions | None = None

    @property
    def last_expression(self) -> ast.Expr | None:
        """The expression that is the cell's result, if its last statement is one."""
        last = self.statements[-1]
        return last if isinstance(last, ast.Expr) else None


def read_cell(shell: Any, body: str, magic: str, line: str = "") -> Cell:
    """Parse the body of a cell magic.

    Raises UsageError, in one line, where there is nothing to run or where it cannot be run this way, and
    SyntaxError as a plain cell would.
    """
    first = body.lstrip()
    if first.startswith("%%"):
        other = first.split(None, 1)[0]
        raise UsageError(f"put {other} on the line above {magic}: a cell magic cannot stand inside {magic}")
    raw, above = _lines_above(shell, body, f"{magic} {line}".rstrip())
    code = shell.transform_cell(body)
    text = "".join(f"# {text}\n" if text.strip() else "\n" for text in above) + code
    return _parse(shell, text, raw, nothing=f"{magic}: the cell has no code in it")


def read_expression(shell: Any, expression: str, magic: str) -> Cell:
    """Parse the expression of a line magic; its line is the line of the magic in the cell."""
    if not expression.strip():
        raise UsageError(f"{magic} needs an expression: {magic} f(x)")
    above = _lines_above_magic(shell, magic, expression)
    text = "".join(f"# {text}\n" if text.strip() else "\n" for text in above) + expression.strip() + "\n"
    return _parse(shell, text, None, nothing=f"{magic} needs an expression: {magic} f(x)")


def _parse(shell: Any, text: str, raw: str | None, nothing: str) -> Cell:
    # Under the raw text of the cell, a kernel's debugger finds its breakpoints too.
    number = running_cell_number(shell)
    file = shell.compile.cache(text, number, raw_code=raw)
    tree = shell.transform_ast(shell.compile.ast_parse(text, filename=file))
    if not tree.body:
        raise UsageError(nothing)
    cell = Cell(file=file, number=number, text=text, statements=tree.body)
    if awaits(shell, cell):
        raise UsageError("top-level await is not supported here: put it in a cell of its own, or use asyncio in a function")
    return cell


def reread(shell: Any, cell: Cell) -> Cell:
    """The same cell parsed anew, to be run again: running it may have changed its syntax tree."""
    tree = shell.transform_ast(shell.compile.ast_parse(cell.text, filename=cell.file))
    return replace(cell, statements=tree.body, regions=None)


def _lines_above(shell: Any, body: str, magic_line: str) -> tuple[str | None, list[str]]:
    """The cell as the user wrote it, where that is known, and the lines of it above the magic's body."""
    blank = 0  # IPython drops empty lines in front
    for text in body.splitlines():
        if text.strip():
            break
        blank += 1
    raw = raw_cell(shell)
    start = raw.rfind(body.rstrip()) if body.strip() else -1  # some magics pass the text on without its last line end
    if start > 0 and raw[start - 1] == "\n":
        return raw, raw[: start - 1].split("\n") + [""] * blank
    return None, [magic_line] + [""] * blank


def _lines_above_magic(shell: Any, magic: str, expression: str) -> list[str]:
    lines = raw_cell(shell).split("\n")
    for i, text in enumerate(lines):
        if magic in text and expression.strip() in text:
            return lines[:i]
    return []


def compiles(shell: Any, cell: Cell, flags: int = 0) -> bool:
    """Whether Python itself accepts the cell as a module (`return` outside a function, say, it does not)."""
    module = ast.Module(body=cell.statements, type_ignores=[])
    try:
        with shell.compile.extra_flags(flags):
            compile(module, cell.file, "exec", shell.compile.flags, dont_inherit=True)
    except SyntaxError:
        return False
    return True


def awaits(shell: Any, cell: Cell) -> bool:
    """Whether the cell's own statements await something."""
    return not compiles(shell, cell) and compiles(shell, cell, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of the cell's own level, those inside `if`, `for`, `with`, `try` and `match` too."""
    for statement in body:
        yield statement
        if isinstance(statement, DEFINITIONS):
            continue
        for inner in blocks(statement):
            yield from own_statements(inner)


def blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a compound statement, in the order of the text."""
    found: list[list[ast.stmt]] = []
    if isinstance(statement, DEFINITIONS):
        return found
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        value = getattr(statement, field, None)
        if not value:
            continue
        if field in ("handlers", "cases"):
            found.extend(part.body for part in value)
        else:
            found.append(value)
    return found


def own_nodes(root: ast.AST) -> Iterator[ast.AST]:
    """Every node below `root` that belongs to the cell's own level: no bodies of functions and classes."""
    yield root
    if isinstance(root, SCOPES):
        return
    for child in ast.iter_child_nodes(root):
        yield from own_nodes(child)


def run_statements(
    shell: Any,
    cell: Cell,
    make: Compile | None = None,
    after: Callable[[ast.stmt], None] | None = None,
) -> Any:
    """Run the statements one by one in the user's namespace and return the last expression's value.

    `make` compiles one statement's tree ("exec" or "eval"); `after` is called after each statement.
    """
    make = make or (lambda tree, mode: compile_tree(shell, cell, tree, mode))
    value = None
    for statement in cell.statements:
        if statement is cell.last_expression:
            code = make(ast.Expression(body=cell.last_expression.value), "eval")
            with cell.regions.around(statement) if cell.regions else contextlib.nullcontext():
                value = run_code(shell, code)
        else:
            run_code(shell, make(ast.Module(body=[statement], type_ignores=[]), "exec"))
        if after is not None:
            after(statement)
    return value


def compile_tree(shell: Any, cell: Cell, tree: ast.AST, mode: str) -> CodeType:
    """Compile as IPython compiles a cell: with the `__future__` flags that earlier cells set."""

    def made(tree: ast.AST) -> CodeType:
        code: CodeType = shell.compile(tree, cell.file, mode)
        return code

    return made(tree) if cell.regions is None else cell.regions.compile(tree, made)


def run_code(shell: Any, code: CodeType) -> Any:
    """Run code in the user's namespace; the value of code compiled with mode "eval"."""
    return interruptible(eval, code, shell.user_global_ns, shell.user_ns)
