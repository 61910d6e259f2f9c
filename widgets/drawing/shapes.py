"""The boxes of the split graph: titles, notes and lines that fit into them, and longer texts for the tooltips.

Promises: no text is wider than its box; a place with its own `error_on_graph_break` says so; positions stay 0 until the layout
is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from dynascope.compiler.report import Break, Frame, Graph
from dynascope.widgets.features.places import Places, graph_tone, ops_text
from dynascope.widgets.features.recompiles import recompile_words
from dynascope.widgets.features.regions import region_name
from dynascope.widgets.layout.geometry import Point, Rect
from dynascope.widgets.layout.split_graph import COLUMN, PAD, Edge
from dynascope.widgets.words import compiler_text, cut, line_ranges, printable, shorten, text_width, wrapped

BOX_WIDTH, BOX_HEIGHT = COLUMN - 2 * PAD, 34.0
#: pixels: the strip of a frame that has its title, each line below it, and the strip above a break that names its region
TITLE_HEIGHT, LINE_HEIGHT, REGION_HEIGHT = 34.0, 16.0, 20.0
#: the row of a frame's later versions: its height, the most boxes in it, their greatest width, and the gap between them
VERSION_HEIGHT, VERSIONS, VERSION_WIDTH, VERSION_GAP = 22.0, 7, 40.0, 4.0
FLAGS = {True: "breaks are errors here", False: "breaks are allowed here"}
SHORT_FLAGS = {True: "breaks are errors", False: "breaks allowed"}


@dataclass
class Shape:
    """A box or a group of the split graph; `at`: where it is.

    `region`: "error" or "allow", for a frame whose `error_on_graph_break` is not the run's, and for a break in a region
    (its `lines` name the region).  `contents`: for a version box, the ids of its graph, and of the later versions that the box
    stands for, with their graphs.
    """

    id: str
    kind: str
    title: str
    note: str
    full: str
    tone: int | None = None
    lines: list[str] = field(default_factory=list)
    badge: str = ""
    group: str = ""
    region: str = ""
    contents: list[str] = field(default_factory=list)
    at: Rect = field(default=Rect(0.0, 0.0, 0.0, 0.0))

    @property
    def height(self) -> float:
        """Pixels that a box takes, or the header of a frame."""
        boxes = {"version": VERSION_HEIGHT, "graph": BOX_HEIGHT, "break": BOX_HEIGHT + REGION_HEIGHT * bool(self.region)}
        return boxes.get(self.kind, TITLE_HEIGHT + LINE_HEIGHT * len(self.lines))


@dataclass
class Arrow(Edge):
    """An edge of the split graph; `points`: its route, `at`: where the text of its label starts."""

    label: str
    full: str
    points: list[Point] = field(default_factory=list)
    at: Point = (0.0, 0.0)


class Picture(NamedTuple):
    """The split graph: frames are `groups`, all else is `boxes`; `left_out` says in words what is not drawn."""

    width: float
    height: float
    groups: list[Shape]
    boxes: list[Shape]
    arrows: list[Arrow]
    left_out: str


def frame_shape(places: Places, frame: Frame, breaks: list[Break], again: Sequence[Frame] = ()) -> Shape:
    """The group of a frame; `again`: its later versions, drawn in it."""
    place, name = places.frame(frame), places.name(frame)
    word: str = "" if frame.status == "compiled" else frame.status
    if frame.status in ("compiled", "failed") and frame.compile_id:
        word = printable(frame.compile_id, 40)
    notes = [" · ".join(p for p in (word, at) if p) for at in (place, f":{frame.line}", "")][: 3 if word else 2]
    names = [name, name.replace("resume in ", "↳ ", 1)] if frame.kind == "resume" else [name]
    title, note = title_with_note(names, notes, BOX_WIDTH - 8)
    full = f"{name}, {frame.status}, at {place}" + (f": {frame.reason}" if frame.reason else "")
    shape = Shape(frame.id, frame.status, title, note, printable(full, 600))
    flag, lines = frame.error_on_graph_break, _frame_lines(places, frame, breaks)
    if flag is not None and flag != bool(places.report.settings.get("error_on_graph_break")):
        shape.region = "error" if flag else "allow"
        lines.insert(0, FLAGS[flag])
    shape.lines = [row for line in lines[:3] for row in wrapped(line.split("\n")[0], BOX_WIDTH, 11, most=3)]
    if again:
        words = [words for r in places.recompiled.get(again[0].id, ()) for words in recompile_words(r)] or ["a guard failed"]
        shape.lines = wrapped(f"compiled {len(again) + 1} times: {words[0]}", BOX_WIDTH, 11, most=2) + shape.lines
        shape.badge = "recompile"
    return shape


def version_shapes(places: Places, again: Sequence[Frame], group: str) -> list[Shape]:
    """The small boxes of a frame's later versions: `v2`, `v3`, ...; the last one stands for all for which there is no room."""
    shapes: list[Shape] = []
    for number, frame in enumerate(again, 2):
        full = f"version {number} of {places.name(frame)}, {frame.status}"
        shapes.append(Shape(frame.id, "version", f"v{number}", "", full, group=group))
        if frame.graph in places.graphs:
            number_of_graph, graph = places.graphs[frame.graph]
            shapes[-1].tone, shapes[-1].contents = graph_tone(number_of_graph), [graph.id]
            shapes[-1].full += f": graph {number_of_graph}, {ops_text(graph.ops)}"
    if len(again) > VERSIONS:
        last = shapes[VERSIONS - 1]
        last.title, last.tone = f"+{len(again) - VERSIONS + 1}", None
        last.full = f"versions {VERSIONS + 1} to {len(again) + 1} of {places.name(again[-1])}"
        last.contents += [id for frame in again[VERSIONS:] for id in (frame.id, frame.graph) if id]
    return shapes[:VERSIONS]


def place_row(shapes: list[Shape], rect: Rect) -> None:
    """Place the boxes of a row side by side; any but those of versions is the whole row."""
    widest = VERSION_WIDTH if shapes[0].kind == "version" else rect.width
    width = min(widest, (rect.width - VERSION_GAP * (len(shapes) - 1)) / len(shapes))
    for n, shape in enumerate(shapes):
        shape.at = Rect(round(rect.x + n * (width + VERSION_GAP), 1), rect.y, round(width, 1), rect.height)


def _frame_lines(places: Places, frame: Frame, breaks: list[Break]) -> list[str]:
    """The lines below a frame's title."""
    received = frame.resume.locals if frame.kind == "resume" and frame.status == "compiled" and frame.resume else []
    computes = "" if frame.graph in places.graphs or breaks else "no graph: nothing to compute"
    about = {
        "empty": "nothing to compile before the break" if breaks else "no graph was captured",
        "skipped": "runs eagerly: " + _brief(frame.reason),
        "failed": "" if breaks else frame.reason or "could not be compiled",
        "unfinished": frame.reason or "the end of this compile is not known",
        "cached": _brief(frame.reason),  # it may have run eagerly
        "compiled": compiler_text(frame.reason, 400) if frame.reason else computes,
    }
    lines = ["receives " + ", ".join(received) if received else "", about[frame.status]]
    return [line for line in (*lines, "compiled by another thread" if frame.foreign else "") if line]


def _brief(reason: str | None) -> str:
    """The compiler's reason up to its colon, `graph break in loop`; all of it if fewer than three words precede the colon."""
    whole = compiler_text(reason or "reason unknown", 400)
    head = whole.partition(": ")[0]
    return head if head.count(" ") > 1 else whole


def graph_shape(places: Places, number: int, graph: Graph, frame: Frame) -> Shape:
    """The box of a graph."""
    lines = [(n.file, n.line) for n in graph.nodes if n.op not in ("placeholder", "get_attr", "output") and n.line]
    files, title = {file for file, _ in lines}, f"graph {number}"
    spread = line_ranges(line for _, line in lines if line) if len(files) <= 1 else f"{len(files)} files"
    if len(files) == 1 and frame.file not in files:
        spread = f"{places.label(files.pop() or '')} {spread}"
    note = ops_text(graph.ops) + (f" · {spread}" if spread else "")
    shown = cut(note, BOX_WIDTH - 34 - text_width(title, 12, bold=True), 11)
    full = f"graph {number} of {places.name(frame)}: {note}"[:600]
    return Shape(graph.id, "graph", title, shown, full, graph_tone(number))


def break_shape(places: Places, b: Break) -> Shape:
    """The box of a break, with the name of its region above it if it is in one."""
    region = region_name(b, places)
    rest = {"resumed": [], "skipped": ["skips"], "raised": ["stops"]}[b.outcome]
    rest += [f"{len(b.hits)} hits"] if len(b.hits) > 1 else []
    rest += ["allowed"] if b.allowed and not region else []
    notes = [" · ".join([f"line {b.line}", *rest]), " · ".join([f":{b.line}", *rest]), " · ".join(rest), *rest[:1]]
    code, place = places.code(b), places.at(b.file, b.line, b.cell)
    call = re.sub(r"^(?:torch|numpy|np)\.(?:\w+\.)*(?=\w+\()", "", code)  # of torch or NumPy, without its module
    why = shorten(compiler_text(b.reason or b.type, 1000), 300)
    title, note = title_with_note(["✂ " + call], [n for n in notes if n] or [""], BOX_WIDTH - 34, 12, mono=False)
    full = f"graph break at {shorten(code, 200)}, {place}, {b.outcome}: {why}"
    shape = Shape(b.id, "break", title, note, full, badge="allowed" if b.allowed else "")
    if region:
        flag = SHORT_FLAGS[bool(b.error_on_graph_break)]
        shape.region = "error" if b.error_on_graph_break else "allow"
        shape.lines = [cut(f"{region}: {flag}", BOX_WIDTH - 12, 11)]
        shape.full += f" (in region {region}: {flag})"
    return shape


def title_with_note(
    titles: list[str], notes: list[str], width: float, size: float = 12.5, mono: bool = True
) -> tuple[str, str]:
    """The first title with the longest note that leaves room for it, or else the next; if none does, the last ones are cut."""
    for title, note in product(titles, notes):
        if text_width(title, size, bold=True) + 10 + text_width(note, 11, mono=mono) <= width:
            return cut(title, width, size, bold=True), note
    note = cut(notes[-1], width * 0.45, 11, mono=mono)
    return cut(titles[-1], width - 10 - text_width(note, 11, mono=mono), size, bold=True), note
