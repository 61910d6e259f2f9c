"""Programs with a graph break and what may be done about it: data for the tests of fixes.

Each program is the text of a module that defines `f`. `inputs` are expressions for its arguments: the call of the first is
recorded, the others are calls that a fix has not seen. They cover both sides of every branch on values.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

#: fixed: a rewrite removes the break, also under fullgraph; better: the break stays, but less is lost by it;
#: false: what is offered changes a result, and the proof has to refuse it; none: no rewrite is offered
Verdict = Literal["fixed", "better", "false", "none"]


@dataclass(frozen=True)
class FixProgram:
    """One program, and what a fix of it has to be."""

    name: str
    source: str
    verdict: Verdict
    #: torch's name for the type of its first break
    kind: str
    inputs: tuple[str, ...] = ("torch.arange(4.) + 1", "-torch.arange(4.) - 1", "torch.tensor([-2., 1., 0.5, 3.])")
    #: title of the rewrite that fixes the first break
    title: str = ""
    #: where no rewrite is offered: what does fix it ("setting", "wrap", "" for nothing), and why
    instead: str = ""
    why: str = ""
    #: the exception of the fixed program, where the input raises
    raises: str | None = None
    #: whether a proved fix needs that no gradients are asked for: it gives zero for none, or is an error
    without_gradients: bool = False


def all_programs() -> list[FixProgram]:
    """The whole corpus, in order."""
    from corpus import branches, checks, kinds, messages, parts, refusals, scalars

    return [p for one in (branches, checks, scalars, messages, parts, refusals, kinds) for p in one.PROGRAMS]


def some_programs(every: int) -> list[FixProgram]:
    """One of `every` programs, from each module of the corpus; all of them if DYNASCOPE_EXAMPLES is set."""
    return all_programs()[:: 1 if os.environ.get("DYNASCOPE_EXAMPLES") else every]
