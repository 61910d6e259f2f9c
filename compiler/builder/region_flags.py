"""Which region set `error_on_graph_break` at a break, derived frame by frame from what the hooks observed.

A region may be in the traced code itself.  Or a resume function has entered the region again, and does not know the region's
line.  Or the region is in the caller of a function that is compiled on its own after a break.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dynascope.compiler.builder.events.schema import FrameEnd, GraphEnd, Region, ResumeMade, TracedCall
from dynascope.compiler.builder.skip_reasons import same_line
from dynascope.compiler.report import FlagOrigin, Frame
from dynascope.compiler.source.code import user_name
from dynascope.compiler.source.lines import CellResolver
from dynascope.compiler.source.origin import is_plumbing


@dataclass(frozen=True)
class Flags:
    """The settings in force at one hit of a break; None: unknown."""

    error_on_graph_break: bool | None = None
    fullgraph: bool | None = None
    #: what set error_on_graph_break: a decorator or a `with` block; unknown if no region was traced
    region: FlagOrigin = field(default_factory=FlagOrigin)

    @property
    def allowed(self) -> bool | None:
        """Whether an explicit region allows the break."""
        if self.error_on_graph_break is None or self.fullgraph is None:
            return None
        return self.region.is_region and not self.error_on_graph_break and not self.fullgraph


@dataclass(frozen=True)
class _ActiveRegion:
    """A region that is in force, and its flag."""

    origin: FlagOrigin
    flag: bool


class RegionFlags:
    """Follows the regions of one recording from frame to frame, in the order in which the frames were compiled."""

    def __init__(self, cell_of: CellResolver) -> None:
        self.cell_of = cell_of
        #: uid of a resume function's code -> the regions that the function enters again, outermost first
        self._entered_by_resume: dict[int | None, list[_ActiveRegion]] = {}
        #: id of a frame -> the innermost region around the call of the frame
        self._caller: dict[str, _ActiveRegion | None] = {}
        #: id of a frame -> the innermost region around the frame's break, and so around the call that it makes there
        self._inside: dict[str, _ActiveRegion | None] = {}

    def begin(self, frame: Frame) -> None:
        """Start a frame, whose `parent` and `continues` have been set if they are known."""
        is_resume = frame.kind == "resume"
        outer = self._caller.get(frame.continues or "") if is_resume else self._inside.get(frame.parent or "")
        self._caller[frame.id] = self._inside[frame.id] = outer

    def at_graph_end(self, frame: Frame, end: GraphEnd | None, resumes: list[ResumeMade]) -> Flags:
        """The flags at a break that ended a graph.

        The break itself may lie deeper, in calls that Dynamo had just failed to trace (`end.stopped`).
        """
        if end is None:
            return Flags()
        calls, stopped = end.around, end.stopped
        if stopped and end.stack and same_line(stopped[0].location, end.stack[-1]):
            calls = [*(s.call for s in stopped), *calls]
        around = self._regions_around(calls)
        if around and around[-1]:
            self._inside[frame.id] = around[-1][-1]
        for made in resumes:
            for call, regions in zip(calls, around, strict=True):
                if call.uid == made.code.uid:
                    self._entered_by_resume[made.resume.uid] = regions
        return self._flags(frame, end.error_on_graph_break, end.fullgraph, around)

    def at_stop(self, frame: Frame, end: FrameEnd | None) -> Flags:
        """The flags at the place where tracing stopped for good."""
        if end is None:
            return self._flags(frame, None, None, [])
        flag = end.stopped[0].error_on_graph_break if end.stopped else end.error_on_graph_break
        return self._flags(frame, flag, end.fullgraph, self._regions_around([s.call for s in end.stopped]))

    def _flags(self, frame: Frame, flag: bool | None, fullgraph: bool | None, around: list[list[_ActiveRegion]]) -> Flags:
        innermost = next((regions[-1] for regions in around if regions), None)
        if innermost is None:
            caller = self._caller.get(frame.id)
            innermost = caller if caller is not None and caller.flag == flag else None
        return Flags(flag, fullgraph, innermost.origin if innermost is not None else FlagOrigin())

    def _regions_around(self, calls: list[TracedCall]) -> list[list[_ActiveRegion]]:
        """For each of these calls, the active regions, outermost first; the calls are nested and given innermost first."""
        around = []
        inner = ""
        for call in calls:
            again = self._entered_by_resume.get(call.uid, [])
            # for a region that a resume function enters again, Dynamo gives no line, or the one where the function continues
            at = call.function.rpartition("_at_")[2]
            count = min(len(again), sum(not r.line or str(r.line) == at for r in call.regions))
            around.append([*again[:count], *(_ActiveRegion(self._origin(r, inner), r.flag) for r in call.regions[count:])])
            inner = call.function
        return around

    def _origin(self, region: Region, inner: str) -> FlagOrigin:
        """What set a region's flag: a decorator, whose `with` is in torch's wrapper, or a `with` block."""
        if is_plumbing(region.file) and inner:
            return FlagOrigin(kind="decorator", name=user_name(inner))
        return FlagOrigin(kind="with", file=region.file, line=region.line or None, cell=self.cell_of(region.file))
