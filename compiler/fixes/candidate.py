"""What a fix is made of: a candidate is one small change that may remove one graph break or recompile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

#: the `kind` of a problem that is no graph break
RECOMPILE = "recompile"


@dataclass(frozen=True)
class Edit:
    """Lines of one file that are replaced.

    `first_line` and `last_line` count from 1, inclusive, in the text before any edit; `before` is their text.
    """

    file: str
    first_line: int
    last_line: int
    before: str
    after: str


@dataclass(frozen=True)
class Candidate:
    """One change to try. `assumption` says in one sentence what the change takes for granted, or is empty.

    `tensors`: names whose numbers become tensors outside of the repeated calls: an argument, `self.steps`, a global.
    """

    kind: Literal["setting", "wrap", "rewrite"]
    title: str
    edits: tuple[Edit, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    assumption: str = ""
    tests: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Problem:
    """A graph break or recompile for which candidates are made: where it is, and the source around it.

    `source` is the whole text of `file` (a cell's text counts as a file), `line` to `end_line` the lines of the expression that
    broke, counted from 1 (`column`, `end_column` in characters from 0, or None where unknown), `function` the qualified name of
    the function that holds it, `kind` torch's graph-break type (`gb_type`, "" where unknown), `reason` the compiler's words,
    and `in_loop`, `in_with` and `in_try` say whether it stands in such a statement.  Of a recompile, `kind` is RECOMPILE and
    `reason` the name of the number that changed.
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
    in_loop: bool = False
    in_with: bool = False
    in_try: bool = False
