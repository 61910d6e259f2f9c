"""Files, cells and lines: where code stands, what it says, and which of it is plumbing.

A cell is known by its execution count; the notebook's side (which knows it) hands in a resolver.
"""

from __future__ import annotations

import ast
import bisect
import functools
import importlib.util
import itertools
import linecache
import os
import re
import sysconfig
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dynascope.compiler.report import Excerpt, Source
from dynascope.compiler.report import label as label

#: file name -> execution count of the cell that has it, None where it is no cell
CellResolver = Callable[[str], "int | None"]

#: name of the function that holds a cell's statements
STATEMENTS = "__cell__"

_RESUME = re.compile(r"^torch_dynamo_resume_in_(?P<name>.*)_at_(?P<line>\d+)$", re.S)
_PLUMBING = re.compile(
    r"^<frozen |(?:site-packages|dist-packages|python3\.\d+)[/\\](?:ipykernel|IPython|traitlets|tornado|asyncio|jupyter_client"
    r"|nbclient|pluggy|_pytest|xdist|execnet|concurrent|hypothesis|ipykernel_launcher|runpy|threading|contextlib|weakref|functools)"
    r"(?:[/\\]|\.py$)"
)


@functools.cache
def torch_folder() -> str:
    """torch's own folder with a separator at its end; "" where torch is not installed."""
    spec = importlib.util.find_spec("torch")
    roots = list(spec.submodule_search_locations or ()) if spec else []
    return roots[0] + os.sep if roots else ""


@functools.cache
def _own_folders() -> tuple[str, ...]:
    """The folders of our packages, as Python found them: a checkout holds the user's own files beside them."""
    specs = [importlib.util.find_spec(name) for name in ("dynascope", "dynascope.compiler", "dynascope.widgets")]
    return tuple(os.path.join(folder, "") for spec in specs if spec for folder in spec.submodule_search_locations or ())


def in_torch(file: str) -> bool:
    """Whether the file is part of torch."""
    folder = torch_folder()
    return bool(folder) and file.startswith(folder)


@functools.cache
def _stdlib() -> str:
    return os.path.realpath(sysconfig.get_path("stdlib")) + os.sep


def in_stdlib(file: str) -> bool:
    """Whether the file is part of Python's own library."""
    return file.startswith("<frozen ") or (file.startswith(_stdlib()) and "-packages" + os.sep not in file)


#: libraries that the compiler computes with
_COMPILERS = re.compile(r"(?:site|dist)-packages[/\\](?:sympy|mpmath|networkx)[/\\]")


def is_compilers_own(file: str) -> bool:
    """Whether code of this file runs because the compiler computes (symbolic sizes, say), as Python's library does."""
    return in_stdlib(file) or bool(_COMPILERS.search(file))


def is_plumbing(file: str) -> bool:
    """Whether the file is of no interest in a user's stack: Dynamo's own, ours, the notebook's."""
    if in_torch(file):
        inner = file[len(torch_folder()) :]
        return inner.startswith(("_dynamo", "_inductor", "_functorch", "_compile", "utils" + os.sep + "_contextlib"))
    return file.startswith(_own_folders()) or bool(_PLUMBING.search(file))


def user_name(code_name: str) -> str:
    """The user's name for a code object: a resume function bears the name of what it continues."""
    while (found := _RESUME.match(code_name)) is not None:
        code_name = found["name"]
    return "the cell's statements" if code_name == STATEMENTS else code_name


def is_resume(code_name: str) -> bool:
    """Whether Dynamo made this code object to go on after a break."""
    return _RESUME.match(code_name) is not None


def source_line(file: str, line: int | None) -> str:
    """The text of one line without its line end; "" where it cannot be read."""
    return linecache.getline(file, line).rstrip("\r\n") if line else ""


def character_column(file: str, line: int, byte_column: int | None) -> int | None:
    """Python counts columns in UTF-8 bytes; the Report counts characters."""
    if byte_column is None:
        return None
    text = source_line(file, line)
    return byte_column if text.isascii() else len(text.encode()[:byte_column].decode(errors="replace"))


def marked(source: str, carets: tuple[int, int | None]) -> tuple[int, int | None]:
    """Start and end, in bytes, of what Python marks below a line that it prints without indent; two marks a wide character.

    Marks up to the line's end tell no end: Python marks so what ends in another line, or on one that torch did not tell.
    """
    indent = len(source) - len(source.lstrip())
    ends = list(itertools.accumulate(1 + (unicodedata.east_asian_width(c) in "WF") for c in source.strip()))

    def offset(caret: int) -> int:
        return len(source[: indent + bisect.bisect_right(ends, caret)].encode())

    start, end = carets
    return offset(start), None if end is None or end >= ends[-1] else offset(end)


@dataclass(frozen=True)
class _Parsed:
    """What the syntax of a file tells: its functions and classes, and its expressions of several lines."""

    lines: list[str]
    #: (name, with its class where it is a method; first line, last line)
    functions: list[tuple[str, int, int]]
    #: (line, column, end column) -> end line; columns are bytes
    ends: dict[tuple[int, int, int], int]


_NOTHING = _Parsed([], [], {})
_parsed_files: dict[str, _Parsed] = {}
_MOST_PARSED = 256


def _parsed(file: str) -> _Parsed:
    lines = linecache.getlines(file)
    if not lines:
        return _NOTHING
    known = _parsed_files.get(file)
    if known is None or known.lines is not lines:
        try:
            nodes = [n for n in ast.walk(ast.parse("".join(lines))) if isinstance(n, (ast.expr, ast.stmt))]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            nodes = []
        classes: dict[ast.AST, str] = {}
        for node in nodes:  # outer ones first
            if isinstance(node, ast.ClassDef):
                classes |= dict.fromkeys(node.body, f"{classes.get(node, '')}{node.name}.")
        if len(_parsed_files) >= _MOST_PARSED:
            _parsed_files.pop(next(iter(_parsed_files)), None)
        known = _parsed_files[file] = _Parsed(
            lines,
            [
                (classes.get(n, "") + n.name, min([n.lineno, *(d.lineno for d in n.decorator_list)]), n.end_lineno or n.lineno)
                for n in nodes
                if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            ],
            {
                (n.lineno, n.col_offset, n.end_col_offset or 0): n.end_lineno
                for n in nodes
                if n.end_lineno is not None and n.end_lineno > n.lineno
            },
        )
    return known


def function_at(file: str, line: int) -> tuple[str, int, int] | None:
    """Name, first and last line of the innermost function or class around a line, by the source; None where unknown.

    A method bears its class's name: `Block.forward`.
    """
    around = [found for found in _parsed(file).functions if found[1] <= line <= found[2]]
    return min(around, key=lambda found: (found[2] - found[1], found[1]), default=None)


def function_extent(file: str, line: int) -> tuple[int, int] | None:
    """First and last line of the innermost function or class around a line, by the source; None where unknown."""
    found = function_at(file, line)
    return found[1:] if found is not None else None


def is_changed(file: str, function: str, line: int) -> bool:
    """Whether the file on disk is not what was loaded: no such function starts at this line."""
    if not file.endswith(".py") or not function.isidentifier() or not os.path.isfile(file):
        return False
    return not any(name.rpartition(".")[2] == function and start == line for name, start, _ in _parsed(file).functions)


def expressions_end(file: str, line: int, column: int | None, end_column: int | None) -> int | None:
    """The line on which the expression between these columns (bytes) ends; None where that is unknown."""
    if column is None or end_column is None:
        return None
    below = _parsed(file).ends.get((line, column, end_column))
    return below or (line if column < end_column else None)


def sources(files: dict[str, set[tuple[int, int]]], cell_of: CellResolver) -> list[Source]:
    """The text of every file that the report speaks of: cells whole, other files by the extents given."""
    found = []
    for file, extents in files.items():
        lines = linecache.getlines(file)
        if not lines:
            continue
        cell = cell_of(file)
        whole = cell is not None or len(lines) <= 120
        wanted = [(1, len(lines))] if whole else merge(extents, len(lines))
        found.append(
            Source(
                file=file,
                label=label(file, cell),
                cell=cell,
                excerpts=[Excerpt(line=first, text="".join(lines[first - 1 : last]).rstrip("\n")) for first, last in wanted],
            )
        )
    return found


def merge(extents: Iterable[tuple[int, int]], last: int, gap: int = 3) -> list[tuple[int, int]]:
    """Ranges of lines in order, overlapping and near ones joined, clipped to the file."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted((max(1, s), min(last, e)) for s, e in extents if s <= last):
        if merged and start <= merged[-1][1] + gap:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
