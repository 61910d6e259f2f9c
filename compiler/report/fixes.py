"""The results of `--fix` in a Report: the changes considered for graph breaks and recompiles, and the fixes chosen together.

A change is a fix only if its verdict is "proved"; otherwise `reason` says why it is not.
"""

from __future__ import annotations

from typing import Literal

from dynascope.compiler.report.data import Part

FixVerdict = Literal["proved", "refused", "untried"]
FixKind = Literal["setting", "wrap", "rewrite"]
#: full name of a setting (`torch._dynamo.config.NAME`), or argument of torch.compile -> the value; a list holds dotted names of
#: functions.  `torch._dynamo.mark_dynamic` -> the sizes to mark before each call: "x, 0" is dimension 0 of x
FixSettings = dict[str, bool | int | float | str | list[str] | None]


class FixEdit(Part):
    """Lines of one file that are replaced.

    `last_line` is `first_line - 1` if lines are only added.  The line numbers refer to the text in which all fixes chosen
    earlier have already been made; in `FixSet.edits`, they refer to the original text.
    """

    file: str
    first_line: int
    last_line: int
    before: str = ""
    after: str = ""


class Fix(Part, kw_only=True):
    """One change that was considered for one graph break or recompile."""

    id: str
    #: id of the break that the change is for
    break_: str | None = None
    #: id of the recompiled frame that the change is for
    recompile: str | None = None
    #: for a chosen change, ids of the breaks and of the recompiled frames that it removes, beyond those that the fixes chosen
    #: before it remove
    removes: list[str] = []
    kind: FixKind = "rewrite"
    title: str = ""
    edits: list[FixEdit] = []
    settings: FixSettings = {}
    verdict: FixVerdict = "untried"
    #: why the change is not proved; if it is, what was compared
    reason: str = ""
    #: what the change takes for granted
    assumption: str = ""
    #: whether `report.patch()` and `report.fixed()` apply the change
    chosen: bool = False
    #: counts of the repeated calls without and with the change; the fixes chosen before it are in force for both
    breaks_before: int | None = None
    breaks_after: int | None = None
    graphs_before: int | None = None
    graphs_after: int | None = None
    recompiles_before: int | None = None
    recompiles_after: int | None = None


class FixSet(Part, kw_only=True):
    """The chosen fixes, applied together."""

    #: ids of the fixes, in the order in which they are applied
    fixes: list[str] = []
    edits: list[FixEdit] = []
    settings: FixSettings = {}
    #: the fixes as a unified diff; settings of Dynamo and marks on sizes are statements in it where they can be written into a
    #: file; all other settings and marks are comments, which is all if no file changes
    patch: str = ""
    #: file name of each cell that changes -> its new text
    cells: dict[str, str] = {}
    #: counts of the repeated calls without and with the fixes
    breaks_before: int = 0
    breaks_after: int = 0
    graphs_before: int = 0
    graphs_after: int = 0
    recompiles_before: int = 0
    recompiles_after: int = 0
    #: median time of the profiled call without (as in the profile) and with the fixes; None: not profiled, no fixes, or the
    #: call raises or takes too long
    seconds_before: float | None = None
    seconds_after: float | None = None
    #: how long the search took
    search_seconds: float = 0.0
    #: whether the search ended by itself, not because of the time limit or an interrupt
    is_complete: bool = True
    #: sentences for the user
    notes: list[str] = []
