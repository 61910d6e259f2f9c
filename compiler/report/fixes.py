"""The fixes of a Report: what was tried for each graph break, how it ended, and the fixes that were chosen together.

Only a fix with the verdict "proved" is one; the others say why they are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

FixVerdict = Literal["proved", "refused", "untried"]
FixKind = Literal["setting", "wrap", "rewrite"]
#: a name in `torch._dynamo.config`, or an argument of torch.compile; a list holds the dotted names of functions
FixSettings = dict[str, bool | int | float | str | list[str] | None]


@dataclass(kw_only=True)
class FixEdit:
    """Lines of one file that are replaced.

    `last_line` is `first_line - 1` where lines are only added.  The lines count in the text with the earlier chosen fixes in it
    (of `FixSet.edits`: in the original text).
    """

    file: str
    first_line: int
    last_line: int
    before: str = ""
    after: str = ""


@dataclass(kw_only=True)
class Fix:
    """One change that was considered for one graph break."""

    id: str
    #: the break or the recompile (the id of its frame) that it is for
    break_: str | None = None
    recompile: str | None = None
    kind: FixKind = "rewrite"
    title: str = ""
    edits: list[FixEdit] = field(default_factory=list)
    settings: FixSettings = field(default_factory=dict)
    verdict: FixVerdict = "untried"
    #: why it is not proved; for a proved one, what it was compared on
    reason: str = ""
    #: what it takes for granted, in one sentence
    assumption: str = ""
    #: part of the set that `report.patch()` and `report.fixed()` apply
    chosen: bool = False
    #: counts of the repeated calls without it and with it (on top of the fixes chosen before it)
    breaks_before: int | None = None
    breaks_after: int | None = None
    graphs_before: int | None = None
    graphs_after: int | None = None


@dataclass(kw_only=True)
class FixSet:
    """The chosen fixes, applied together."""

    #: ids, in the order in which they were applied
    fixes: list[str] = field(default_factory=list)
    edits: list[FixEdit] = field(default_factory=list)
    settings: FixSettings = field(default_factory=dict)
    #: a unified diff, with the settings as statements
    patch: str = ""
    #: texts of the cells that it changes, by file name
    cells: dict[str, str] = field(default_factory=dict)
    breaks_before: int = 0
    breaks_after: int = 0
    graphs_before: int = 0
    graphs_after: int = 0
    recompiles_before: int = 0
    recompiles_after: int = 0
    #: median time of a call, where the run was profiled
    seconds_before: float | None = None
    seconds_after: float | None = None
    #: how long the search took, and whether it was cut short by the time limit or an interrupt
    search_seconds: float = 0.0
    is_complete: bool = True
    #: sentences for the user
    notes: list[str] = field(default_factory=list)
