"""The split graph: which frames, graphs and breaks are drawn, and how they are joined.

Promises: in a picture, a break is one box at most, however many frames ran into it, if possible in the frame that has its line;
calls lead to the right, continuations down; frames with status "ignored" are left out; what is not drawn is
counted in words.
"""

from __future__ import annotations

from dynascope.compiler.report import Break, Frame, Report, plural
from dynascope.widgets.drawing import shapes
from dynascope.widgets.features.places import Places
from dynascope.widgets.layout.geometry import Point
from dynascope.widgets.layout.split_graph import COLUMN, Box, EdgeKind, layout
from dynascope.widgets.words import grouped, shorten, text_width

#: at most this many frames are drawn at once; this many in a short picture
MOST, SHORT = 50, 10


def split_picture(report: Report, places: Places, most: int | None = MOST) -> shapes.Picture:
    """The picture of a report, or of its `most` frames that matter most; None: of all.

    Failed, skipped and unfinished frames are chosen first, then all others but resume functions, then resume functions, the
    empty ones last.  The later versions of a frame are a row in the first one.
    """
    first: dict[str, str] = {}
    for f in report.frames:
        before = f.recompile_of
        if before in places.frames and "ignored" not in (f.status, places.frames[before].status):
            first[f.id] = first.get(before, before)
    visible = [f for f in report.frames if f.status != "ignored" and f.id not in first]
    chosen = {f.id for f in sorted(visible, key=_weight)[:most]}
    return _Drawing(report, places, [f for f in visible if f.id in chosen], first).picture()


def _weight(frame: Frame) -> int:
    if frame.status in ("failed", "skipped", "unfinished"):
        return 0
    return 1 if frame.kind != "resume" else 3 if frame.status == "empty" else 2


class _Drawing:
    """Builds one picture."""

    def __init__(self, report: Report, places: Places, frames: list[Frame], first: dict[str, str]) -> None:
        """`first`: id of each frame that is drawn as a version in another frame -> id of that frame."""
        self.report, self.places, self.frames, self.first = report, places, frames, first
        self.drawn = {f.id for f in frames}
        self.versions = grouped((before, places.frames[id]) for id, before in first.items())
        self.unseen = {f.id for f in report.frames if f.status != "ignored" and self._drawn_in(f.id) not in self.drawn}
        #: id of a break -> the drawn frames that were skipped or failed because of it, and those with a graph that it ended
        stopped = [(f.stopped_by, f.id) for f in frames if f.status in ("skipped", "failed")]
        ended = ((g.break_, self._drawn_in(g.frame)) for g in report.graphs)
        self.stopped = grouped([*stopped, *(end for end in ended if end[1] in self.drawn)])
        self.owners = {b.id: self._owner(b) for b in report.breaks}
        self.boxes: list[Box] = []
        #: id of a box -> the shapes in it, which are several only for the versions of a frame
        self.rows: dict[str, list[shapes.Shape]] = {}
        self.arrows: dict[tuple[str, str], shapes.Arrow] = {}

    def picture(self) -> shapes.Picture:
        for b in self.report.breaks:
            if self.owners[b.id] is None and not self.unseen.intersection(h.frame for h in b.hits):
                self._box([shapes.break_shape(self.places, b)])
        held = grouped((self.owners[b.id], b) for b in self.report.breaks)
        for frame in self.frames:
            self._frame(frame, held[frame.id])
        for frame in self.report.frames:
            if self._drawn_in(frame.id) in self.drawn:
                self._join(frame)
        return self._placed()

    # -- boxes ------------------------------------------------------------------------------------

    def _drawn_in(self, id: str) -> str:
        """Id of the frame in which a frame is drawn: its own, or that of its first version."""
        return self.first.get(id, id)

    def _owner(self, b: Break) -> str | None:
        """The frame in which a break is drawn: the one that contains its line, or else one that ran into it or ended there."""
        hits = [(self._drawn_in(h.frame), h.line) for h in b.hits if self._drawn_in(h.frame) in self.drawn]
        own = (id for id, line in hits if line == b.line and self.places.frames[id].file == b.file)
        return next(own, hits[-1][0] if hits else next(iter(self.stopped.get(b.id, ())), None))

    def _frame(self, frame: Frame, breaks: list[Break]) -> None:
        places, again = self.places, self.versions.get(frame.id, [])
        self._box([shapes.frame_shape(places, frame, breaks, again)], width=COLUMN)
        if again:
            self._box(shapes.version_shapes(places, again, frame.id), frame.id, name=f"{frame.id} again")
        graph = places.graphs.get(frame.graph or "")
        if graph is not None:
            self._box([shapes.graph_shape(places, *graph, frame)], frame.id)
        for b in breaks:
            self._box([shapes.break_shape(places, b)], frame.id)
        if graph is not None and breaks:
            stop = next((b.id for b in breaks if b.id == graph[1].break_), breaks[0].id)
            self._arrow(graph[1].id, stop, "within", "", "stops at")

    def _box(self, row: list[shapes.Shape], group: str | None = None, width: float = shapes.BOX_WIDTH, name: str = "") -> None:
        name = name or row[0].id
        if name not in self.rows:
            row[0].group, self.rows[name] = group or "", row
            self.boxes.append(Box(name, width, row[0].height, group))

    # -- arrows -----------------------------------------------------------------------------------

    def _shown_as(self, id: str | None) -> str | None:
        """Id of the frame in which a frame is drawn; if it is ignored, that of the frame it continues, or of its caller."""
        for _ in range(len(self.places.frames) + 1):
            id = self._drawn_in(id or "")
            frame = self.places.frames.get(id)
            if frame is None or frame.status != "ignored":
                break
            id = frame.continues or frame.parent
        return id if id in self.drawn else None

    def _join(self, frame: Frame) -> None:
        """Add the arrow that leads to a frame: from what it continues, or from its caller."""
        me, before, caller = map(self._shown_as, (frame.id, frame.continues, frame.parent))
        if me is None:
            return
        if frame.kind == "resume" and before is not None and before != me:
            source = frame.break_ if frame.break_ is not None and self.owners.get(frame.break_) == before else before
            line = frame.resume.line if frame.resume else frame.line
            self._arrow(source, me, "continues", f"resumes at line {line}", "continues as")
        elif caller is not None and caller != me:
            self._arrow(caller, me, "calls", "calls", f"calls from line {frame.called_from}" if frame.called_from else "calls")

    def _arrow(self, source: str, target: str, kind: EdgeKind, label: str, words: str) -> None:
        a, b = (shorten(self.rows[end][0].full, 90) for end in (source, target))
        self.arrows.setdefault((source, target), shapes.Arrow(source, target, kind, label, f"{a} {words} {b}"))

    # -- places -----------------------------------------------------------------------------------

    def _placed(self) -> shapes.Picture:
        arrows = [*self.arrows.values()]
        placed = layout(self.boxes, arrows)
        for name, rect in placed.rects.items():
            shapes.place_row(self.rows[name], rect)
        width = placed.width
        for arrow, route in zip(arrows, placed.routes, strict=True):
            arrow.points, arrow.at = route, _label_at(arrow.label, route)
            if arrow.kind == "continues":
                width = max(width, arrow.at[0] + text_width(arrow.label, 11) + 4)
        boxes = [shape for box in self.boxes if box.id not in self.drawn for shape in self.rows[box.id]]
        left_out = plural(len(self.unseen), "more frame") if self.unseen else ""
        groups = [self.rows[frame.id][0] for frame in self.frames]
        return shapes.Picture(round(width, 1), placed.height, groups, boxes, arrows, left_out)


def _label_at(label: str, route: list[Point]) -> Point:
    """Where a label's text starts: beside the tip of an arrow that leads down, above one that leads sideways."""
    (ax, ay), (bx, by) = route[-2], route[-1]
    if abs(by - ay) >= abs(bx - ax):
        return round(bx + 8, 1), round(by - 9, 1)
    return round((ax + bx - text_width(label, 11)) / 2 - 2, 1), round(min(ay, by) - 6, 1)
