"""Which region set the flag that was in force at a break: worked out from what the hooks saw, frame by frame.

A region may stand in the traced code itself; or have been entered again by a resume function, which has no line of its own
for it; or stand in the caller, for a function that is compiled on its own after a break in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dynascope.compiler.report import FlagOrigin, Frame
from dynascope.compiler.source import places

Event = dict[str, Any]


@dataclass(frozen=True)
class Flags:
    """The settings in force at one hit of a break; None is unknown."""

    error_on_graph_break: bool | None = None
    fullgraph: bool | None = None
    #: who set error_on_graph_break: a decorator or a `with` block; unknown where no region was traced
    region: FlagOrigin = field(default_factory=FlagOrigin)

    @property
    def allowed(self) -> bool | None:
        """Whether an explicit region allows the break."""
        if self.error_on_graph_break is None or self.fullgraph is None:
            return None
        return self.region.is_region and not self.error_on_graph_break and not self.fullgraph


@dataclass(frozen=True)
class _Entered:
    """A region that is in force, and its flag."""

    origin: FlagOrigin
    flag: bool


class Regions:
    """The regions of one recording; frames are told in the order in which they were compiled."""

    def __init__(self, cell_of: places.CellResolver) -> None:
        self.cell_of = cell_of
        #: resume function's code -> the regions that it enters again, outermost first
        self._again: dict[int, list[_Entered]] = {}
        #: frame -> the region that its caller stood in
        self._caller: dict[str, _Entered | None] = {}
        #: frame -> the region in which it made the call that broke its graph
        self._inside: dict[str, _Entered | None] = {}

    def begin(self, frame: Frame) -> None:
        """A frame whose caller, or whom it continues, is known."""
        is_resume = frame.kind == "resume"
        found = self._caller.get(frame.continues or "") if is_resume else self._inside.get(frame.parent or "")
        self._caller[frame.id] = self._inside[frame.id] = found

    def at_end(self, frame: Frame, end: Event | None, resumes: list[Event]) -> Flags:
        """At a graph's end by a break.  The break may lie deeper, in calls whose tracing was given up just before."""
        if end is None:
            return Flags()
        around, stopped, stack = list(end.get("around") or ()), end.get("stopped") or [], end.get("stack") or []
        if stopped and stack and stopped[0]["at"][0] == stack[-1]["line"] and stopped[0]["file"] == stack[-1]["file"]:
            around = [*stopped, *around]
        entered = self._entered(around)
        if entered and entered[-1]:
            self._inside[frame.id] = entered[-1][-1]
        for made in resumes:
            for caller, regions in zip(around, entered, strict=True):
                if caller.get("uid") == made["code"]["uid"]:
                    self._again[made["resume"]["uid"]] = regions
        return self._flags(frame, end["error_on_graph_break"], end["fullgraph"], entered)

    def at_stop(self, frame: Frame, event: Event) -> Flags:
        """Where tracing stopped for good."""
        chain = event.get("stopped") or []
        flag = chain[0]["flag"] if chain else event.get("error_on_graph_break")
        return self._flags(frame, flag, event.get("fullgraph"), self._entered(chain))

    def _flags(self, frame: Frame, flag: bool | None, fullgraph: bool | None, entered: list[list[_Entered]]) -> Flags:
        found = next((regions[-1] for regions in entered if regions), None)
        if found is None:
            caller = self._caller.get(frame.id)
            found = caller if caller is not None and caller.flag == flag else None
        return Flags(flag, fullgraph, found.origin if found is not None else FlagOrigin())

    def _entered(self, chain: list[Event]) -> list[list[_Entered]]:
        """For each entry of a chain of calls, innermost first, the regions it stands in, outermost first."""
        found = []
        inner = ""
        for entry in chain:
            again = self._again.get(entry.get("uid", -1), [])
            regions = entry.get("regions") or ()
            # where a resume function enters them again, Dynamo gives the line at which it goes on
            at = entry["function"].rpartition("_at_")[2]
            count = min(len(again), sum(not r["line"] or str(r["line"]) == at for r in regions))
            named = [_Entered(self._origin(r, inner), r["flag"]) for r in regions]
            found.append([*again[:count], *named[count:]])
            inner = entry["function"]
        return found

    def _origin(self, region: Event, inner: str) -> FlagOrigin:
        """A `with` block by its place, a decorator (a `with` in a wrapper of torch's) by the function it stands at."""
        file = region["file"]
        if places.is_plumbing(file) and inner:
            return FlagOrigin(kind="decorator", name=places.user_name(inner))
        return FlagOrigin(kind="with", file=file, line=region["line"] or None, cell=self.cell_of(file))
