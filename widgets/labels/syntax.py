"""Finds functions, classes, `with` blocks and the columns of expressions in the recorded source.

In excerpts that are not valid Python, no functions, classes and blocks are found.

Promises: only the text of the excerpts is read; the last 32 parsed excerpts are cached.
"""

from __future__ import annotations

import ast
import functools
import re
from itertools import groupby

from dynascope.compiler.parsing import no_syntax_warnings, syntax_tree

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
WITHS = (ast.With, ast.AsyncWith)


def statements(lines: dict[int, str]) -> list[ast.stmt]:
    """The functions, classes and `with` blocks in these lines, excerpt by excerpt."""
    blocks = consecutive(sorted(lines))
    return [node for block in blocks for node in _parsed("\n".join(lines[n] for n in block), block[0])]


def consecutive(numbers: list[int]) -> list[list[int]]:
    """Sorted numbers, cut into runs without gaps."""
    return [[n for _, n in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]


def first_line(node: ast.stmt) -> int:
    """The line on which a definition begins: that of its first decorator, if it has any."""
    decorators = node.decorator_list if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else []
    return min([node.lineno, *(d.lineno for d in decorators)])


def methods(lines: dict[int, str]) -> list[tuple[str, int, int, str]]:
    """(name, first line, last line, class) of each method."""
    return [
        (item.name, first_line(item), item.end_lineno or item.lineno, node.name)
        for node in statements(lines) if isinstance(node, ast.ClassDef)
        for item in node.body if isinstance(item, FUNCTIONS)
    ]  # fmt: skip


@functools.lru_cache(maxsize=4096)
def span(text: str, start: int | None, end: int | None) -> tuple[int, int] | None:
    """The columns (start, end) of an expression in the text of a line; None if they are unknown or do not fit the text.

    Code may have been compiled from text with another indentation; its columns would then cut words in two.  If `end` is None,
    the longest expression that begins at `start` is taken, or else the rest of the line.
    """
    length = len(text.rstrip())
    if start is None or not 0 <= start < length or text[start].isspace() or _cuts_a_word(text, start):
        return None
    if end is None:
        end = next((n for n in range(length, start, -1) if _is_expression(text[start:n])), length)
    fits = start < end <= length and not text[end - 1].isspace() and not _cuts_a_word(text, end)
    return (start, end) if fits else None


def _cuts_a_word(text: str, at: int) -> bool:
    around = text[max(0, at - 1) : at + 1]
    return len(around) == 2 and all(c.isalnum() or c == "_" for c in around)


def _is_expression(text: str) -> bool:
    try:
        with no_syntax_warnings():
            return len(text) < 1000 and ast.parse(text, mode="eval").body.end_col_offset == len(text.encode())
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return False


@functools.lru_cache(maxsize=32)
def _parsed(text: str, first: int) -> list[ast.stmt]:
    """The functions, classes and `with` blocks of one excerpt, at any depth.

    Lines that begin with %name, %%name, ! or ?, as magics do, are emptied; `% 2` and `!= 2` continue an expression. The excerpt
    may start at any indentation.
    """
    rows = re.sub(r"(?m)^[ \t]*(?:%%?[^\W\d]|!(?!=)|\?).*$", "", text).split("\n")  # splitlines would split at form feeds
    indent = min((len(row) - len(row.lstrip()) for row in rows if row.strip()), default=0)
    text = "\n".join(row[indent:] for row in rows)
    try:
        tree = ast.increment_lineno(syntax_tree(text), first - 1)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, (*FUNCTIONS, *WITHS, ast.ClassDef))]
