"""The data that the search for fixes works on: problems, and candidates, which are small changes that may remove them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from dynascope.compiler.parsing import parsed
from dynascope.compiler.report import Break, FixEdit, StackEntry
from dynascope.compiler.source.origin import origin
from dynascope.compiler.source.syntax import DEFINITIONS, TRIES


class Condition(NamedTuple):
    """The text of a condition that the verification forces, in the original program and in the changed one."""

    before: str
    after: str


@dataclass(frozen=True)
class Candidate:
    """One change to try.  `assumption` says in one sentence what the change assumes, or is empty.

    `tests`: conditions; the verification forces each to both sides, in the original and in the changed code, except that of a
    `while`.
    """

    kind: Literal["setting", "wrap", "rewrite"]
    title: str
    #: lines count in the text before any of these edits
    edits: tuple[FixEdit, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    assumption: str = ""
    tests: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Problem:
    """A graph break for which candidates are made: where it is, and the source of its file.

    `source` is the whole text of `file` (a cell's text counts as a file).  `line` to `end_line` are those of
    the expression that broke, or of a call that leads to it, counted from 1; `column` and `end_column` count characters from 0
    and are None where unknown.  `function` is the qualified name of the function around the expression, `kind` torch's type of
    graph break (`gb_type`, "" where unknown), and `reason` the compiler's message.  `in_try` says whether the function, or a
    compiled one that calls it, has a `try` statement around the expression: it may catch what is raised there.
    """

    file: str
    source: str
    line: int
    end_line: int
    column: int | None
    end_column: int | None
    function: str
    kind: str
    reason: str
    in_try: bool = False


def problems_of(b: Break, text: Callable[[str], str]) -> list[Problem]:
    """One problem for the place of a break, and one for each call that leads to it, innermost first.

    Places in torch, dynascope and Python's library, and places whose source is missing or cannot be parsed, are left out.
    `text` returns the text of a file.
    """
    calls = (entry for entry in reversed(b.stack) if (entry.file, entry.line) != (b.file, b.line))
    places: list[Break | StackEntry] = [b, *calls]
    found = [_problem(b, place, text(place.file)) for place in places if origin(place.file) in ("user", "library")]
    known = [problem for problem in found if problem is not None]
    return [replace(problem, in_try=any(p.in_try for p in known[n:])) for n, problem in enumerate(known)]


def _problem(b: Break, place: Break | StackEntry, source: str) -> Problem | None:
    """The problem at one place; None if the source there is missing or cannot be parsed."""
    tree = parsed(source) or ast.Module([], [])
    end = place.end_line or place.line
    last = place.line if place.column is None else end
    # the statements around it, outermost first: where lines are equal, the order of `ast.walk` stays
    around = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= place.line and (n.end_lineno or 0) >= last]
    around.sort(key=lambda node: (node.lineno, -(node.end_lineno or 0)))
    if not around:
        return None
    scopes = [node for node in around if isinstance(node, DEFINITIONS)]
    parts = [scope.name if isinstance(scope, ast.ClassDef) else f"{scope.name}.<locals>" for scope in scopes]
    inner = around[around.index(scopes[-1]) + 1 :] if scopes else around
    return Problem(
        file=place.file, source=source, line=place.line, end_line=end, column=place.column, end_column=place.end_column,
        function=".".join(parts).removesuffix(".<locals>") or place.function, kind=b.type,
        reason=" ".join(filter(None, [b.reason, b.explanation, *b.hints])),
        in_try=any(isinstance(node, TRIES) for node in inner),
    )  # fmt: skip
