"""The split graph: which frames, graphs and breaks are drawn, and how they are joined.

Promises: in a picture, a break is one box at most, however many frames ran into it, if possible in the frame that has its line;
calls lead to the right, continuations down; frames with status "ignored" are left out; what is not drawn is
counted in words.
"""

from __future__ import annotations

from collections import defaultdict

from dynascope.compiler.report import Break, Frame, Report, plural
from dynascope.widgets.drawing.shapes import (
    BOX_HEIGHT,
    BOX_WIDTH,
    LINE_HEIGHT,
    REGION_HEIGHT,
    TITLE_HEIGHT,
    VERSION_HEIGHT,
    Arrow,
    ArrowKind,
    Picture,
    Shape,
    break_shape,
    frame_shape,
    graph_shape,
    place_row,
    version_shapes,
)
from dynascope.widgets.features.places import Places
from dynascope.widgets.layout.split_graph import COLUMN, Box, Edge, EdgeKind, layout
from dynascope.widgets.words import shorten, text_width

#: at most this many frames are drawn at once; this many in a short picture
MOST, SHORT = 50, 10


def split_picture(report: Report, places: Places, most: int | None = MOST) -> Picture:
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
        #: id of a frame -> its later versions; id of their row -> the shapes in it
        self.versions: dict[str, list[Frame]] = defaultdict(list)
        self.rows: dict[str, list[Shape]] = {}
        self.drawn = {f.id for f in frames}
        unseen = (f for f in report.frames if f.status != "ignored" and first.get(f.id, f.id) not in self.drawn)
        self.unseen = {f.id for f in unseen}
        for id, version in self.first.items():
            self.versions[version].append(self.places.frames[id])
        #: id of a break -> the drawn frames that were skipped or failed because of it, and those with a graph that it ended
        self.stopped: dict[str | None, list[str]] = defaultdict(list)
        for f in frames:
            if f.status in ("skipped", "failed"):
                self.stopped[f.stopped_by].append(f.id)
        for g in report.graphs:
            if self._drawn_in(g.frame) in self.drawn:
                self.stopped[g.break_].append(self._drawn_in(g.frame))
        self.owners = {b.id: self._owner(b) for b in report.breaks}
        self.shapes: dict[str, Shape] = {}
        self.boxes: list[Box] = []
        self.groups: list[str] = []
        self.edges: list[Edge] = []
        self.arrows: list[Arrow] = []
        self.seen: set[tuple[str, str]] = set()

    def picture(self) -> Picture:
        held: dict[str, list[Break]] = defaultdict(list)
        for b in self.report.breaks:
            owner = self.owners[b.id]
            if owner is not None:
                held[owner].append(b)
            elif not self.unseen.intersection(h.frame for h in b.hits):
                self._box(break_shape(self.places, b), None)
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
        for id, line in hits:
            if line == b.line and self.places.frames[id].file == b.file:
                return id
        if hits:
            return hits[-1][0]
        return next(iter(self.stopped.get(b.id, ())), None)

    def _frame(self, frame: Frame, breaks: list[Break]) -> None:
        again = self.versions.get(frame.id, [])
        shape = frame_shape(self.places, frame, breaks, again)
        header = TITLE_HEIGHT + LINE_HEIGHT * len(shape.get("lines", []))
        self.groups.append(frame.id)
        self.boxes.append(Box(frame.id, COLUMN, header))
        self.shapes[frame.id] = shape
        if again:
            row = f"{frame.id} again"
            self.rows[row] = version_shapes(self.places, again)
            for version in self.rows[row]:
                version["group"] = frame.id
            self.boxes.append(Box(row, BOX_WIDTH, VERSION_HEIGHT, frame.id))
        if frame.graph in self.places.graphs:
            self._box(graph_shape(self.places, *self.places.graphs[frame.graph], frame), frame.id)
        for b in breaks:
            self._box(break_shape(self.places, b), frame.id)
        if frame.graph in self.places.graphs and breaks:
            own = self.places.graphs[frame.graph][1].break_
            stop = next((b.id for b in breaks if b.id == own), breaks[0].id)
            self._arrow(frame.graph, stop, "within", "down", "", "stops at")

    def _box(self, shape: Shape, group: str | None) -> None:
        if shape["id"] not in self.shapes:
            if group is not None:
                shape["group"] = group
            else:
                shape.pop("group", None)
            self.shapes[shape["id"]] = shape
            height = BOX_HEIGHT + (REGION_HEIGHT if shape["kind"] == "break" and "region" in shape else 0)
            self.boxes.append(Box(shape["id"], BOX_WIDTH, height, group))

    # -- arrows -----------------------------------------------------------------------------------

    def _shown_as(self, id: str | None) -> str | None:
        """Id of the frame in which a frame is drawn; if it is ignored, that of the frame it continues, or of its caller."""
        for _ in range(len(self.places.frames) + 1):
            id = self.first.get(id, id) if id is not None else None
            frame = self.places.frames.get(id or "")
            if frame is None or frame.status != "ignored":
                break
            id = frame.continues or frame.parent
        return id if id in self.drawn else None

    def _join(self, frame: Frame) -> None:
        """Add the arrow that leads to a frame: from what it continues, or from its caller."""
        me = self._shown_as(frame.id)
        if me is None:
            return
        before, caller = map(self._shown_as, (frame.continues, frame.parent))
        if frame.kind == "resume" and before is not None and before != me:
            source = before
            if frame.break_ is not None and self.owners.get(frame.break_) == before:
                source = frame.break_
            line = frame.resume.line if frame.resume else frame.line
            self._arrow(source, me, "continues", "down", f"resumes at line {line}", "continues as")
        elif caller is not None and caller != me:
            words = f"calls from line {frame.called_from}" if frame.called_from else "calls"
            self._arrow(caller, me, "calls", "right", "calls", words)

    def _arrow(self, source: str, target: str, kind: ArrowKind, edge: EdgeKind, label: str, words: str) -> None:
        if (source, target) in self.seen:
            return
        self.seen.add((source, target))
        self.edges.append(Edge(source, target, edge))
        a, b = self.shapes[source]["full"], self.shapes[target]["full"]
        arrow: Arrow = {"source": source, "target": target, "kind": kind, "points": [],
                        "full": f"{shorten(a, 90)} {words} {shorten(b, 90)}"}  # fmt: skip
        if label:
            arrow["label"] = label
        self.arrows.append(arrow)

    # -- places -----------------------------------------------------------------------------------

    def _placed(self) -> Picture:
        placed = layout(self.boxes, self.edges)
        for name, rect in placed.rects.items():
            if name in self.rows:
                place_row(self.rows[name], rect)
                continue
            shape = self.shapes[name]
            shape["x"], shape["y"], shape["w"], shape["h"] = rect
        width = placed.width
        for arrow, route in zip(self.arrows, placed.routes, strict=True):
            arrow["points"] = [[x, y] for x, y in route]
            if "label" in arrow:
                at = _label_at(arrow, route)
                arrow["at"] = at
                if arrow["kind"] == "continues":
                    width = max(width, at[0] + text_width(arrow["label"], 11) + 4)
        frames = set(self.groups)
        boxes = [self.rows.get(b.id) or [self.shapes[b.id]] for b in self.boxes if b.id not in frames]
        return {
            "width": round(width, 1), "height": placed.height, "groups": [self.shapes[id] for id in self.groups],
            "boxes": [shape for row in boxes for shape in row], "arrows": self.arrows,
            "left_out": plural(len(self.unseen), "more frame") if self.unseen else "",
        }  # fmt: skip


def _label_at(arrow: Arrow, route: list[tuple[float, float]]) -> list[float]:
    """Where a label's text starts: beside the tip of an arrow that leads down, above one that leads sideways."""
    (ax, ay), (bx, by) = route[-2], route[-1]
    if abs(by - ay) >= abs(bx - ax):
        return [round(bx + 8, 1), round(by - 9, 1)]
    wide = text_width(arrow["label"], 11)
    return [round((ax + bx - wide) / 2 - 2, 1), round(min(ay, by) - 6, 1)]
