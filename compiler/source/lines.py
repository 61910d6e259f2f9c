"""Facts about the lines of source files: text, columns, and the functions and expressions at a line.

A notebook cell is named by its execution count, which the extension supplies through a `CellResolver`.
"""

from __future__ import annotations

import ast
import bisect
import contextlib
import io
import itertools
import linecache
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import Context, ContextVar
from dataclasses import dataclass
from typing import NamedTuple

from dynascope.compiler.parsing import parsed
from dynascope.compiler.source.code import first_line
from dynascope.compiler.source.syntax import TRIES, blocks, own_statements

#: file name -> execution count of its cell; None if it is not a cell
CellResolver = Callable[[str], "int | None"]


class OldFunction(NamedTuple):
    """A function whose lines are not those of its file's present text: how they ran is not known."""

    name: str
    file: str
    first: int
    last: int


_old_functions: ContextVar[Sequence[OldFunction]] = ContextVar("functions with other lines than their files", default=())
_kept_lines: ContextVar[Mapping[str, list[str]]] = ContextVar("file -> its lines when they were recorded")


def file_lines(file: str) -> list[str]:
    """The lines of a file or cell; [] if it cannot be read, or is a device or a pipe, which a damaged log may name."""
    if (kept := _kept_lines.get(None)) is not None and file in kept:
        return kept[file]
    if file not in linecache.cache and os.path.exists(file) and not os.path.isfile(file):
        return []
    return linecache.getlines(file)


def as_it_is_now() -> Context:
    """A context in which the files that have been read, and the old functions, keep their present lines."""
    context = Context()  # not a copy: the user's context variables are not kept alive
    context.run(_kept_lines.set, {file: entry[2] for file, entry in list(linecache.cache.items()) if len(entry) == 4})
    context.run(_old_functions.set, _old_functions.get())
    return context


@contextlib.contextmanager
def with_old(functions: list[OldFunction]) -> Iterator[None]:
    """In this block, these functions do not have the lines of their files; more may be added to the list."""
    token = _old_functions.set(functions)
    try:
        yield
    finally:
        _old_functions.reset(token)


def old_function_at(file: str, line: int) -> OldFunction | None:
    """The function at this line whose lines are not those of the file."""
    return next((f for f in _old_functions.get() if f.file == file and f.first <= line <= f.last), None)


def source_line(file: str, line: int | None) -> str:
    """The text of one line without its line end; "" if it cannot be read, or if it is not known how it ran."""
    lines = file_lines(file) if line and old_function_at(file, line) is None else []
    return lines[line - 1].rstrip("\r\n") if line and 0 < line <= len(lines) else ""


def character_column(file: str, line: int, byte_column: int | None) -> int | None:
    """Convert a column in UTF-8 bytes, as Python counts, to one in characters, as in the Report; None stays None."""
    if byte_column is None:
        return None
    text = source_line(file, line)
    return byte_column if text.isascii() else len(text.encode()[:byte_column].decode(errors="replace"))


def caret_columns(source: str, carets: tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    """Start and end column, in bytes, of the part of a line that a traceback marks with carets.

    Python prints the line without its indentation, and two carets below a wide character.  If the carets reach the end of the
    line, the end is unknown (None), because an expression that ends on a later line looks the same.  `carets` is `(0, None)` if
    nothing is marked: this means the whole line, or, for some calls, that both columns are unknown.
    """
    if carets[0] is None or (carets == (0, None) and _is_unmarked_call(source)):
        return None, None
    indent = len(source) - len(source.lstrip())
    ends = list(itertools.accumulate(1 + (unicodedata.east_asian_width(c) in "WF") for c in source.strip()))

    def offset(caret: int) -> int:
        return len(source[: indent + bisect.bisect_right(ends, caret)].encode())

    start, end = carets
    return offset(start or 0), None if end is None or end >= ends[-1] else offset(end)


def _is_unmarked_call(source: str) -> bool:
    """Whether the statement returns a call of a name, or assigns a call: Python 3.13 and newer leave such a call unmarked.

    Older versions leave only whole lines unmarked.  The call may continue on later lines, which are not in `source`.
    """
    for rest in ("", ")", "])", "})", "))"):
        match parsed(source.strip() + rest):
            case ast.Module([ast.Return(value=ast.Call(func=ast.Name())) | ast.Assign(value=ast.Call())]):
                return True
    return False


@dataclass(frozen=True)
class _Parsed:
    """The syntax of a file: where its functions and classes are, and where nodes of several lines end."""

    lines: list[str]
    #: functions and classes as (name, first line, last line); a method's name includes its class
    functions: list[tuple[str, int, int]]
    #: expressions and statements of several lines: (line, column, end column) -> end line; columns are bytes
    ends: dict[tuple[int, int, int], int]
    #: `try` statements as ("try", first line, first line of the body, last line), outer ones first; for each error that one
    #: catches also (name of the error, first line, first line of the body, last line of the body)
    #: what a condition decides, as (kind, first line, first and last line of the condition): "break", a `while` or an `if` of
    #: which a side ends with `break` or, in a loop, with `return`; "raise", an `assert`, or an `if` of which one ends with
    #: `raise`; "item", one that depends on `x.item()`; "other", an `assert`, or one that does something else than `_chooses`;
    #: and ("lambda", first line, first line, last line) of code that runs elsewhere
    statements: list[tuple[str, int, int, int]]


_parsed_files: dict[str, _Parsed] = {}
_MOST_PARSED = 256


def _parsed(file: str) -> _Parsed:
    lines = file_lines(file)
    known = _parsed_files.get(file)
    if known is None or known.lines is not lines:
        if len(_parsed_files) >= _MOST_PARSED:
            _parsed_files.pop(next(iter(_parsed_files)), None)
        known = _parsed_files[file] = _parse(lines)
    return known


def _parse(lines: list[str]) -> _Parsed:
    found, tree = _Parsed(lines, [], {}, []), parsed("".join(lines)) or ast.Module([], [])
    nodes = [n for n in ast.walk(tree) if isinstance(n, (ast.expr, ast.stmt))]
    classes, in_loops = dict[ast.AST, str](), set[ast.AST]()
    for n in nodes:  # outer nodes first
        end = n.end_lineno or n.lineno
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = classes.get(n, "") + n.name
            found.functions.append((name, first_line(n), end))
            if isinstance(n, ast.ClassDef):
                classes |= dict.fromkeys(n.body, f"{name}.")
        if isinstance(n, TRIES):
            kinds = [h.type or ast.Name("BaseException") for h in n.handlers]
            errors = (e for kind in kinds for e in (kind.elts if isinstance(kind, ast.Tuple) else [kind]))
            names, last = (ast.unparse(e).rpartition(".")[2].lstrip("_") for e in errors), n.body[-1].end_lineno or n.lineno
            found.statements.append(("try", n.lineno, n.body[0].lineno, end))
            found.statements.extend((name, n.lineno, n.body[0].lineno, last) for name in names)
        if isinstance(n, (ast.Lambda, ast.GeneratorExp)):
            found.statements.append(("lambda", n.lineno, n.lineno, end))
        if isinstance(n, (ast.For, ast.While)):
            in_loops.update(own_statements(n.body))
        if isinstance(n, (ast.If, ast.While, ast.Assert)):
            ends = [ast.Break()] if isinstance(n, ast.While) else [block[-1] for block in blocks(n)] or [ast.Raise()]
            leaves = (ast.Break, ast.Return) if n in in_loops else ast.Break
            ways = ["break"] * any(isinstance(end, leaves) for end in ends)
            ways += ["raise"] * any(isinstance(end, ast.Raise) for end in ends) + ["item"] * _reads_item(n.test)
            ways += ["other"] * (isinstance(n, ast.Assert) or not all(_chooses(one) for block in blocks(n) for one in block))
            found.statements.extend((way, n.lineno, n.test.lineno, n.test.end_lineno or n.lineno) for way in ways)
        if end > n.lineno:
            found.ends[n.lineno, n.col_offset, n.end_col_offset or 0] = end
    return found


def _chooses(statement: ast.stmt) -> bool:
    """Whether all that a statement does is to give names values or to return one: `torch.where` or `torch.cond` may do so."""
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    return isinstance(statement, ast.Return) or all(isinstance(target, ast.Name) for target in targets)


def _reads_item(node: ast.AST) -> bool:
    """Whether a condition depends on `x.item()` or on an expression with it."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "item"
    if isinstance(node, ast.Compare) and any(isinstance(o, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for o in node.ops):
        return False
    return any(map(_reads_item, ast.iter_child_nodes(node)))


def function_at(file: str, line: int) -> tuple[str, int, int] | None:
    """Name, first and last line of the innermost function or class around a line, from the source; None if there is none.

    A method's name includes its class: `Block.forward`.
    """
    if old_function_at(file, line) is not None:
        return None
    around = [function for function in _parsed(file).functions if function[1] <= line <= function[2]]
    return min(around, key=lambda function: (function[2] - function[1], function[1]), default=None)


def statement_at(file: str, line: int, *names: str) -> int | None:
    """The first line of the innermost `try` around a line, or of the `if` or `while` whose condition is there, in its function.

    `names`: "try"; or those of errors, for a `try` that catches one of them, if the line is in its body; or kinds of `if` and
    `while`, as in `_Parsed`; or "lambda", for a lambda or a generator expression around the line.
    """
    function = function_at(file, line)
    since = function[1] if function is not None else 0
    statements = _parsed(file).statements if old_function_at(file, line) is None else []
    around = (t for t in statements if t[0] in names and since <= t[1] and t[2] <= line <= t[3])
    return max((first for _, first, _, _ in around), default=None)


def is_changed(file: str, function: str, line: int) -> bool:
    """Whether the file on disk differs from the loaded code: no function of this name starts at this line."""
    if not file.endswith(".py") or not function.isidentifier() or not os.path.isfile(file):
        return False
    return not any(name.rpartition(".")[2] == function and start == line for name, start, _ in _parsed(file).functions)


def expression_end(file: str, line: int, column: int | None, end_column: int | None) -> int | None:
    """The line on which the expression between these columns (bytes) ends; None if unknown."""
    if column is None or end_column is None:
        return None
    if old_function_at(file, line) is not None:
        return line if column < end_column else None
    return _parsed(file).ends.get((line, column, end_column)) or (line if column < end_column else None)


def split_lines(text: str) -> list[str]:
    """The lines of a source, with their ends; `str.splitlines` also ends a line at form feeds, where `ast` does not."""
    return list(io.StringIO(text, newline=""))


def merge(extents: Iterable[tuple[int, int]], last: int, gap: int = 3) -> list[tuple[int, int]]:
    """Sort ranges of lines, clip them to lines 1 to `last`, and join those that overlap or are at most `gap` lines apart."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted((max(1, s), min(last, e)) for s, e in extents if s <= last):
        if merged and start <= merged[-1][1] + gap:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
