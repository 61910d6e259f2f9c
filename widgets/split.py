"""The split graph: which frames, graphs and breaks are drawn, what is folded, how they are joined.

Promises: every break is one box, in the frame that stands at its line, however many frames ran into it;
calls lead to the right, continuations downwards; frames with status "ignored" are left out; what is folded is
counted in words, never silently dropped.
"""

from __future__ import annotations

import re
from collections import defaultdict

from dynascope.compiler.report import Break, Frame, Graph, Report, plural
from dynascope.widgets import layout as lay
from dynascope.widgets.advice import said
from dynascope.widgets.fold import Folded, fold
from dynascope.widgets.palette import graph_tone
from dynascope.widgets.wire import Arrow, Picture, Shape
from dynascope.widgets.words import Places, cut, frame_name, line_ranges, printable, shorten, text_width, wrapped

BOX_WIDTH, BOX_HEIGHT = 222.0, 34.0
GROUP_WIDTH = BOX_WIDTH + 2 * lay.PAD
TITLE_HEIGHT, LINE_HEIGHT = 34.0, 16.0
#: more frames than this are folded
FOLD_ABOVE = 50
KEEP = 36
#: frames of a picture that cannot be scrolled
SHORT = 10
#: more frames than this are not drawn even when unfolded
WHOLE_ABOVE = 450
HIT_ARROWS = 8


def short_picture(report: Report, places: Places) -> Picture:
    """A picture of few frames, for places where it cannot be scrolled."""
    visible = [f for f in report.frames if f.status != "ignored"]
    kept, folds = fold(visible, SHORT)
    return _Drawing(report, places, kept, folds).picture()


def split_pictures(report: Report, places: Places) -> tuple[Picture, Picture | None]:
    """The picture to show first, and, where that one is folded, the unfolded one."""
    visible = [f for f in report.frames if f.status != "ignored"]
    if len(visible) <= FOLD_ABOVE:
        return _Drawing(report, places, visible, {}).picture(), None
    kept, folds = fold(visible, KEEP)
    folded = _Drawing(report, places, kept, folds).picture()
    if len(visible) > WHOLE_ABOVE:
        kept, folds = fold(visible, WHOLE_ABOVE - 50)
        return folded, _Drawing(report, places, kept, folds).picture()
    return folded, _Drawing(report, places, visible, {}).picture()


class _Drawing:
    """One picture being put together."""

    def __init__(self, report: Report, places: Places, frames: list[Frame], folds: dict[str, Folded]) -> None:
        self.report, self.places, self.frames, self.folds = report, places, frames, folds
        self.by_id = {f.id: f for f in report.frames}
        self.graphs = {g.id: (n, g) for n, g in enumerate(report.graphs)}
        self.drawn = {f.id for f in frames}
        self.owners = {b.id: self._owner(b) for b in report.breaks}
        self.shapes: dict[str, Shape] = {}
        self.boxes: list[lay.Box] = []
        self.groups: list[lay.Group] = []
        self.edges: list[lay.Edge] = []
        self.arrows: list[Arrow] = []
        self.tails: dict[str, str] = {}
        #: who has a neighbour on the right already
        self.beside: set[str] = set()
        self.seen: set[tuple[str, str]] = set()

    def picture(self) -> Picture:
        held: dict[str, list[Break]] = defaultdict(list)
        for b in self.report.breaks:
            owner = self.owners[b.id]
            if owner is not None:
                held[owner].append(b)
            elif not any(h.frame in self.folds for h in b.hits):
                self._box(self._break_shape(b), None)
        for frame in self.frames:
            self._frame(frame, held[frame.id])
        for folded in {id(f): f for f in self.folds.values()}.values():
            self._fold_box(folded)
        previous: str | None = None
        children: dict[str, list[str]] = defaultdict(list)
        for frame in self.report.frames:
            if frame.id in self.drawn or frame.id in self.folds:
                previous = self._join(frame, previous, children)
        for b in self.report.breaks:
            self._hits(b)
        return self._placed()

    # -- boxes ------------------------------------------------------------------------------------

    def _owner(self, b: Break) -> str | None:
        """The frame that a break is drawn in: the one that stands at its line."""
        hits = [h for h in b.hits if h.frame in self.drawn]
        for hit in hits:
            if hit.line == b.line and self.by_id[hit.frame].file == b.file:
                return hit.frame
        if hits:
            return hits[-1].frame
        causes = [f.id for f in self.frames if f.break_ == b.id and f.status in ("skipped", "failed")]
        ended = [g.frame for g in self.report.graphs if g.break_ == b.id and g.frame in self.drawn]
        return next(iter(causes + ended), None)

    def _frame(self, frame: Frame, breaks: list[Break]) -> None:
        lines = self._frame_lines(frame, breaks)
        header = TITLE_HEIGHT + LINE_HEIGHT * len(lines)
        self.groups.append(lay.Group(frame.id, header, GROUP_WIDTH))
        title, place = frame_name(frame), self.places.frame(frame)
        known = frame.status in ("compiled", "failed") and frame.compile_id
        word = frame.compile_id if known else "" if frame.status == "compiled" else frame.status
        title, where = _beside(title, _notes(word or "", place, frame.line), GROUP_WIDTH - 2 * lay.PAD - 8)
        full = f"{frame_name(frame)}, {frame.status}, at {place}" + (f": {frame.reason}" if frame.reason else "")
        shape: Shape = {
            "id": frame.id, "kind": frame.status, "x": 0, "y": 0, "w": 0, "h": 0,
            "title": title, "note": where, "full": printable(full, 600), "lines": lines,
        }  # fmt: skip
        if frame.recompile_of:
            shape["badge"] = "recompile"
        self.shapes[frame.id] = shape
        if frame.graph in self.graphs:
            self._box(self._graph_shape(*self.graphs[frame.graph], frame), frame.id)
        for b in breaks:
            self._box(self._break_shape(b), frame.id)
        if frame.graph in self.graphs and breaks:
            self._arrow(frame.graph, breaks[0].id, "within", "down", "", "stops at")

    def _frame_lines(self, frame: Frame, breaks: list[Break]) -> list[str]:
        """What is said below a frame's title: at most three short lines."""
        lines: list[str] = []
        if frame.recompile_of:
            reason = next((r for r in self.report.recompiles if r.frame == frame.id), None)
            words = (reason.words or reason.reasons) if reason else []
            lines.append("recompiled: " + (words[0] if words else "a guard failed"))
        if frame.kind == "resume" and frame.resume and frame.status == "compiled":
            names = frame.resume.locals
            if names:
                lines.append("receives " + ", ".join(names))
        if frame.status == "empty":
            lines.append(frame.reason or "nothing to compile in it")
        elif frame.status == "skipped":
            lines.append("runs eagerly: " + (frame.reason or "reason unknown"))
        elif frame.status == "failed" and not breaks:
            lines.append(frame.reason or "could not be compiled")
        elif frame.status == "cached":
            lines.append("compiled before this recording")
        elif frame.status == "compiled" and frame.graph not in self.graphs and not breaks:
            lines.append("no graph: nothing to compute")
        if frame.foreign:
            lines.append("compiled by another thread")
        if frame.error_on_graph_break:
            lines.append("error_on_graph_break is on here")
        if frame.rank is not None:
            lines.append(f"rank {frame.rank}")
        return [row for line in lines[:3] for row in wrapped(line.split("\n")[0], GROUP_WIDTH - 2 * lay.PAD, 11)]

    def _graph_shape(self, number: int, graph: Graph, frame: Frame) -> Shape:
        places = {(n.file, n.line) for n in graph.nodes if n.op not in ("placeholder", "get_attr", "output") and n.line}
        files = {file for file, _ in places}
        spread = line_ranges(line for _, line in places if line) if len(files) <= 1 else f"{len(files)} files"
        if len(files) == 1 and frame.file not in files:
            spread = f"{self.places.label(next(iter(files)) or '')} {spread}"
        note = ops_text(graph.ops) + (f" · {spread}" if spread else "")
        title = f"graph {number}"
        room = BOX_WIDTH - 34 - text_width(title, 12, bold=True)
        return {
            "id": graph.id, "kind": "graph", "x": 0, "y": 0, "w": 0, "h": 0, "tone": graph_tone(number), "title": title,
            "note": cut(note, room, 11), "full": f"graph {number} of {frame_name(frame)}: {note}"[:600], "group": graph.frame,
        }  # fmt: skip

    def _break_shape(self, b: Break) -> Shape:
        rest = {"resumed": [], "skipped": ["skips"], "raised": ["stops"]}[b.outcome]
        rest += [f"{len(b.hits)} hits"] if len(b.hits) > 1 else []
        rest += ["allowed"] if b.allowed else []
        notes = [" · ".join([f"line {b.line}", *rest]), " · ".join([f":{b.line}", *rest]), " · ".join(rest)]
        code, place = break_code(b, self.places), self.places.at(b.file, b.line, b.cell)
        short = re.sub(r"^(?:\w+\.)+(?=\w+\()", "", code)
        room = BOX_WIDTH - 34
        if text_width("✂ " + code, 12, bold=True) + text_width(notes[0], 11) > room:
            code = short
        why = shorten(said(b.reason or b.type, 1000), 300)
        title, note = _beside("✂ " + code, [n for n in notes if n] or [""], room, 12, mono=False)
        shape: Shape = {
            "id": b.id, "kind": "break", "x": 0, "y": 0, "w": 0, "h": 0, "title": title,
            "note": note, "full": f"graph break at {shorten(code, 200)}, {place}, {b.outcome}: {why}",
        }  # fmt: skip
        if b.allowed:
            shape["badge"] = "allowed"
        return shape

    def _fold_box(self, folded: Folded) -> None:
        ids = {f.id for f in folded.frames}
        breaks = sum(1 for b in self.report.breaks if self.owners[b.id] is None and any(h.frame in ids for h in b.hits))
        note = plural(breaks, "break") if breaks else ""
        room = BOX_WIDTH - 30 - text_width(note, 11)
        self._box({
            "id": folded.id, "kind": "fold", "x": 0, "y": 0, "w": 0, "h": 0, "title": cut(folded.title(), room, 12, bold=True),
            "note": note, "full": f"{folded.title()}, folded" + (f", with {note}" if note else ""),
        }, None)  # fmt: skip

    def _box(self, shape: Shape, group: str | None) -> None:
        if shape["id"] not in self.shapes:
            if group is not None:
                shape["group"] = group
            else:
                shape.pop("group", None)
            self.shapes[shape["id"]] = shape
            self.boxes.append(lay.Box(shape["id"], BOX_WIDTH, BOX_HEIGHT, group))

    # -- arrows -----------------------------------------------------------------------------------

    def _seen_as(self, id: str | None) -> str | None:
        """The group or fold that stands for a frame; for an undrawn frame that of its caller."""
        for _ in range(len(self.by_id) + 1):
            if id is None or id in self.drawn:
                return id
            if id in self.folds:
                return self.folds[id].id
            frame = self.by_id.get(id)
            id = (frame.continues or frame.parent) if frame else None
        return None

    def _join(self, frame: Frame, previous: str | None, children: dict[str, list[str]]) -> str | None:
        """The arrow that leads to a frame; returns the last root, to stack the next one below it."""
        me = self._seen_as(frame.id)
        if me is None:
            return previous
        before, caller = self._seen_as(frame.continues), self._seen_as(frame.parent)
        earlier = self._seen_as(frame.recompile_of)
        if earlier is not None and earlier != me:
            aside = earlier in self.beside
            self._arrow(earlier, me, "recompiles", "down" if aside else "side", "", "compiled again as")
            self.beside.add(earlier)
        elif frame.kind == "resume" and before is not None and before != me:
            source = before
            if frame.break_ is not None and self.owners.get(frame.break_) == before:
                source = frame.break_
            line = frame.resume.line if frame.resume else frame.line
            self._arrow(source, me, "continues", "down", f"resumes at line {line}", "continues as")
            self._tail(before, me)
        elif caller is not None and caller != me:
            older = children[caller]
            line_text = f" from line {frame.called_from}" if frame.called_from else ""
            self._arrow(
                caller,
                me,
                "calls",
                "free" if older else "down" if caller in self.beside else "side",
                "calls",
                f"calls{line_text}",
            )
            if older and older[-1] != me:
                self._order(self._end(older[-1]), me)
            if me not in older:
                older.append(me)
            self.beside.add(caller)
        elif before is None and caller is None and earlier is None:
            if previous is not None and previous != me:
                self._order(self._end(previous), me)
            return me
        return previous

    def _tail(self, before: str, me: str) -> None:
        self.tails[before] = me

    def _end(self, id: str) -> str:
        """The last continuation of a frame."""
        for _ in range(len(self.tails) + 1):
            if id not in self.tails or self.tails[id] == id:
                break
            id = self.tails[id]
        return id

    def _order(self, above: str, below: str) -> None:
        if above != below:
            self.edges.append(lay.Edge(above, below, "order"))
            self.arrows.append({"source": above, "target": below, "kind": "order", "points": [], "full": ""})

    def _hits(self, b: Break) -> None:
        """Arrows from the other frames that ran into a break; along the calls where these lead there."""
        owner = self.owners[b.id]
        hit_by = {h.frame for h in b.hits}
        chain = {(a["source"], a["target"]): a for a in self.arrows if a["kind"] in ("calls", "hits")}
        shown = 0
        for hit in b.hits:
            source = self._seen_as(hit.frame)
            if source is None or hit.frame == owner or b.id not in self.shapes or source == owner:
                continue
            along = [a for (s, t), a in chain.items() if s == source and t in hit_by]
            for arrow in along:
                arrow["kind"] = "hits"
                arrow["full"] += f", and runs into the break at line {b.line}"
            if not along and shown < HIT_ARROWS:
                shown += 1
                self._arrow(source, b.id, "hits", "free", "", "runs into the same break")

    def _arrow(self, source: str, target: str, kind: str, edge: lay.EdgeKind, label: str, words: str) -> None:
        if (source, target) in self.seen:
            return
        self.seen.add((source, target))
        self.edges.append(lay.Edge(source, target, edge))
        a, b = self.shapes[source]["full"], self.shapes[target]["full"]
        arrow: Arrow = {"source": source, "target": target, "kind": kind, "points": [],
                        "full": f"{shorten(a, 90)} {words} {shorten(b, 90)}"}  # fmt: skip
        if label:
            arrow["label"] = label
        self.arrows.append(arrow)

    # -- places -----------------------------------------------------------------------------------

    def _placed(self) -> Picture:
        placed = lay.layout(self.boxes, self.edges, self.groups)
        for name, rect in (*placed.groups.items(), *placed.boxes.items()):
            shape = self.shapes[name]
            shape["x"], shape["y"], shape["w"], shape["h"] = rect.x, rect.y, rect.width, rect.height
        arrows: list[Arrow] = []
        width = placed.width
        for arrow, route in zip(self.arrows, placed.edges, strict=True):
            if len(route) < 2:
                continue
            arrow["points"] = [[x, y] for x, y in route]
            if "label" in arrow:
                at = _label_at(arrow, route)
                arrow["at"] = at
                if arrow["kind"] == "continues":
                    width = max(width, at[0] + text_width(arrow["label"], 11) + 4)
            arrows.append(arrow)
        groups = [self.shapes[g.id] for g in self.groups]
        boxes = [self.shapes[b.id] for b in self.boxes]
        folds = {id(f): f for f in self.folds.values()}.values()
        return {
            "width": round(width, 1), "height": placed.height, "groups": groups, "boxes": boxes, "arrows": arrows,
            "folded": "; ".join(f.title() for f in folds), "engine": placed.engine,
        }  # fmt: skip


def _label_at(arrow: Arrow, route: list[tuple[float, float]]) -> list[float]:
    """Where a label's text starts: beside the tip of an arrow that leads down, above one that leads aside."""
    (ax, ay), (bx, by) = route[-2], route[-1]
    if abs(by - ay) >= abs(bx - ax):
        return [round(bx + 8, 1), round(by - 9, 1)]
    wide = text_width(arrow["label"], 11)
    return [round((ax + bx - wide) / 2 - 2, 1), round(min(ay, by) - 6, 1)]


def _notes(word: str, place: str, line: int) -> list[str]:
    """What can stand right of a frame's name, the fullest first."""
    return [" · ".join(p for p in (word, at) if p) for at in (place, f":{line}", "")][: 3 if word else 2]


def _beside(title: str, notes: list[str], width: float, size: float = 12.5, mono: bool = True) -> tuple[str, str]:
    """A title and the fullest note that leaves room for all of it; where none does, both are cut."""
    for note in notes:
        if text_width(title, size, bold=True) + 10 + text_width(note, 11, mono=mono) <= width:
            return cut(title, width, size, bold=True), note
    note = cut(notes[-1], width * 0.45, 11, mono=mono)
    return cut(title, width - 10 - text_width(note, 11, mono=mono), size, bold=True), note


def ops_text(ops: int | None) -> str:
    """`3 ops`; `ops unknown`."""
    return "ops unknown" if ops is None else plural(ops, "op")


def break_code(b: Break, places: Places) -> str:
    """The code of a break: the part of its line between its columns, or the whole line."""
    text = places.lines(b.file).get(b.line, b.source)
    if b.column is not None and len(text) > b.column:
        end = b.end_column if b.end_column is not None and b.end_line in (None, b.line) else None
        part = text[b.column : end].strip()
        if part:
            return printable(part)
    return printable(text.strip() or b.type or "graph break")
