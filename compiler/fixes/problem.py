"""From a graph break of a Report to the Problem that the cures are given."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dynascope.compiler.fixes.candidate import Problem
from dynascope.compiler.report import Break

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_WITHS = (ast.With, ast.AsyncWith)
_TRIES = (ast.Try, *([ast.TryStar] if hasattr(ast, "TryStar") else []))
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def problem_of(b: Break, source: str) -> Problem | None:
    """The break with the source around it; None if the source is not there or cannot be parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    around = _around(tree, b.line, b.line if b.column is None else b.end_line or b.line)
    scopes = [node for node in around if isinstance(node, _SCOPES)]
    name = ".".join(_qualified(scopes)) if scopes else b.function
    inner = around[around.index(scopes[-1]) + 1 :] if scopes else around
    return Problem(
        file=b.file, source=source, line=b.line, end_line=b.end_line or b.line, column=b.column, end_column=b.end_column,
        function=name, kind=b.type, reason=" ".join(filter(None, [b.reason, b.explanation])),
        in_loop=any(isinstance(node, _LOOPS) for node in inner),
        in_with=any(isinstance(node, _WITHS) for node in inner),
        in_try=any(isinstance(node, _TRIES) for node in inner),
    )  # fmt: skip


def _around(tree: ast.AST, line: int, end_line: int) -> list[ast.stmt]:
    """The statements that hold these lines, outermost first."""
    found: list[ast.stmt] = []
    body = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]  # outer ones first
    for node in body:
        if node.lineno <= line and (node.end_lineno or node.lineno) >= end_line:
            found.append(node)
    return sorted(found, key=lambda node: (node.lineno, -(node.end_lineno or node.lineno)))


def _qualified(scopes: Sequence[ast.stmt]) -> list[str]:
    """Parts of the name that Python gives the innermost of these scopes."""
    parts: list[str] = []
    for number, scope in enumerate(scopes):
        assert isinstance(scope, _SCOPES)
        parts.append(scope.name)
        if number < len(scopes) - 1 and not isinstance(scope, ast.ClassDef):
            parts.append("<locals>")
    return parts
