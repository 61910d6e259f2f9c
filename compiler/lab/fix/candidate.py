"""The data that the search for fixes works on: problems, and candidates, which are small changes that may remove them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from dynascope.compiler.report import FixEdit


class Condition(NamedTuple):
    """The text of a condition that the proof forces, in the original program and in the changed one."""

    before: str
    after: str


@dataclass(frozen=True)
class Candidate:
    """One change to try.  `assumption` says in one sentence what the change takes for granted, or is empty.

    `tests`: conditions; the proof forces each to both sides, in the original and in the changed code, except that of a `while`.
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
    graph break (`gb_type`, "" where unknown), and `reason` the compiler's message.  `in_try` says whether the function has a
    `try` statement around the expression.
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
