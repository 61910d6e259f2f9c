"""The boxes of the split graph: titles, notes and lines that fit into them, and longer texts for the tooltips.

Promises: no text is wider than its box; a place with its own `error_on_graph_break` says so; positions stay 0 until the layout
is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypedDict

from typing_extensions import NotRequired

from dynascope.compiler.report import Break, Frame, Graph
from dynascope.widgets.features.places import Places, break_code, graph_tone, ops_text
from dynascope.widgets.features.recompiles import recompile_words
from dynascope.widgets.features.regions import region_name
from dynascope.widgets.layout.geometry import Rect
from dynascope.widgets.layout.split_graph import COLUMN, PAD
from dynascope.widgets.words import compiler_text, cut, line_ranges, printable, shorten, text_width, wrapped

BOX_WIDTH, BOX_HEIGHT = COLUMN - 2 * PAD, 34.0
#: pixels: the strip of a frame that has its title, each line below it, and the strip above a break that names its region
TITLE_HEIGHT, LINE_HEIGHT, REGION_HEIGHT = 34.0, 16.0, 20.0
#: the row of a frame's later versions: its height, the most boxes in it, and the gap between them
VERSION_HEIGHT, VERSIONS, VERSION_GAP = 22.0, 7, 4.0
FLAGS = {True: "breaks are errors here", False: "breaks are allowed here"}
SHORT_FLAGS = {True: "breaks are errors", False: "breaks allowed"}


class Shape(TypedDict):
    """A box or a group of the split graph, placed.

    `region`: "error" or "allow", for a frame whose `error_on_graph_break` is not the run's, and for a break in a region
    (its `lines` name the region).  `contents`: for a version box, the ids of its graph, and of the later versions that the box
    stands for, with their graphs.
    """

    id: str
    kind: str
    x: float
    y: float
    w: float
    h: float
    title: str
    note: str
    full: str
    tone: NotRequired[int]
    lines: NotRequired[list[str]]
    badge: NotRequired[str]
    group: NotRequired[str]
    region: NotRequired[str]
    contents: NotRequired[list[str]]


#: what an arrow says: a graph stops at a break; a frame continues as a resume function, or calls another one
ArrowKind = Literal["within", "continues", "calls"]


class Arrow(TypedDict):
    """An edge of the split graph, routed."""

    source: str
    target: str
    kind: ArrowKind
    points: list[list[float]]
    label: NotRequired[str]
    at: NotRequired[list[float]]
    full: str


class Picture(TypedDict):
    """The split graph: frames are `groups`, all else is `boxes`; `left_out` says in words what is not drawn."""

    width: float
    height: float
    groups: list[Shape]
    boxes: list[Shape]
    arrows: list[Arrow]
    left_out: str


def blank(id: str, kind: str, title: str, note: str, full: str) -> Shape:
    """A shape without a position."""
    return {"id": id, "kind": kind, "x": 0, "y": 0, "w": 0, "h": 0, "title": title, "note": note, "full": full}


def frame_shape(places: Places, frame: Frame, breaks: list[Break], again: Sequence[Frame] = ()) -> Shape:
    """The group of a frame; `again`: its later versions, drawn in it."""
    place = places.frame(frame)
    known = frame.status in ("compiled", "failed") and frame.compile_id
    word = printable(frame.compile_id or "", 40) if known else "" if frame.status == "compiled" else frame.status
    name, notes, room = places.name(frame), _notes(word or "", place, frame.line), BOX_WIDTH - 8
    if text_width(name, 12.5, bold=True) + 10 + text_width(notes[-1], 11, mono=True) > room:
        name = name.replace("resume in ", "↳ ", 1) if frame.kind == "resume" else name
    title, note = title_with_note(name, notes, room)
    full = f"{places.name(frame)}, {frame.status}, at {place}" + (f": {frame.reason}" if frame.reason else "")
    shape = blank(frame.id, frame.status, title, note, printable(full, 600))
    flag = frame.error_on_graph_break
    is_other = flag is not None and flag != bool(places.report.settings.get("error_on_graph_break"))
    if is_other:
        shape["region"] = "error" if flag else "allow"
    lines = [FLAGS[bool(flag)]] * is_other + _frame_lines(places, frame, breaks)
    shape["lines"] = [row for line in lines[:3] for row in wrapped(line.split("\n")[0], BOX_WIDTH, 11, most=3)]
    if again:
        words = [words for r in places.recompiled.get(again[0].id, ()) for words in recompile_words(r)] or ["a guard failed"]
        shape["lines"] = wrapped(f"compiled {len(again) + 1} times: {words[0]}", BOX_WIDTH, 11, most=2) + shape["lines"]
        shape["badge"] = "recompile"
    return shape


def version_shapes(places: Places, again: Sequence[Frame]) -> list[Shape]:
    """The small boxes of a frame's later versions: `v2`, `v3`, ...; the last one stands for all for which there is no room."""
    shapes: list[Shape] = []
    for number, frame in enumerate(again, 2):
        if len(shapes) == VERSIONS and len(again) > VERSIONS:
            shapes[-1]["title"] = f"+{len(again) - VERSIONS + 1}"
            shapes[-1]["full"] = f"versions {VERSIONS + 1} to {number} of {places.name(frame)}"
            shapes[-1].pop("tone", None)
            shapes[-1]["contents"] = [*shapes[-1].get("contents", []), frame.id, *([frame.graph] if frame.graph else [])]
            continue
        full = f"version {number} of {places.name(frame)}, {frame.status}"
        shape = blank(frame.id, "version", f"v{number}", "", full)
        if frame.graph in places.graphs:
            number_of_graph, graph = places.graphs[frame.graph]
            shape["tone"], shape["contents"] = graph_tone(number_of_graph), [graph.id]
            shape["full"] += f": graph {number_of_graph}, {ops_text(graph.ops)}"
        shapes.append(shape)
    return shapes


def place_row(shapes: list[Shape], rect: Rect) -> None:
    """Place the boxes of a row side by side."""
    width = min(40.0, (rect.width - VERSION_GAP * (len(shapes) - 1)) / len(shapes))
    for n, shape in enumerate(shapes):
        shape["x"], shape["y"] = round(rect.x + n * (width + VERSION_GAP), 1), rect.y
        shape["w"], shape["h"] = round(width, 1), rect.height


def _frame_lines(places: Places, frame: Frame, breaks: list[Break]) -> list[str]:
    """The lines below a frame's title."""
    lines: list[str] = []
    if frame.kind == "resume" and frame.resume and frame.status == "compiled" and frame.resume.locals:
        lines.append("receives " + ", ".join(frame.resume.locals))
    if frame.status == "empty":
        lines.append("nothing to compile before the break" if breaks else "nothing to compile in it")
    elif frame.status == "skipped":
        lines.append("runs eagerly: " + _brief(frame.reason))
    elif frame.status == "failed" and not breaks:
        lines.append(frame.reason or "could not be compiled")
    elif frame.status == "unfinished":
        lines.append(frame.reason or "the end of this compile is not known")
    elif frame.status == "cached":
        lines.append("compiled before this recording")
    elif frame.status == "compiled" and frame.reason:
        lines.append(compiler_text(frame.reason, 400))
    elif frame.status == "compiled" and frame.graph not in places.graphs and not breaks:
        lines.append("no graph: nothing to compute")
    if frame.foreign:
        lines.append("compiled by another thread")
    return lines


def _brief(reason: str | None) -> str:
    """The compiler's reason up to its colon, `graph break in loop`; all of it if fewer than three words precede the colon."""
    head, _, _ = compiler_text(reason or "reason unknown", 400).partition(": ")
    return head if head.count(" ") > 1 else compiler_text(reason or "reason unknown", 400)


def graph_shape(places: Places, number: int, graph: Graph, frame: Frame) -> Shape:
    """The box of a graph."""
    spots = {(n.file, n.line) for n in graph.nodes if n.op not in ("placeholder", "get_attr", "output") and n.line}
    files = {file for file, _ in spots}
    spread = line_ranges(line for _, line in spots if line) if len(files) <= 1 else f"{len(files)} files"
    if len(files) == 1 and frame.file not in files:
        spread = f"{places.label(next(iter(files)) or '')} {spread}"
    note = ops_text(graph.ops) + (f" · {spread}" if spread else "")
    title = f"graph {number}"
    room = BOX_WIDTH - 34 - text_width(title, 12, bold=True)
    full = f"graph {number} of {places.name(frame)}: {note}"[:600]
    return {**blank(graph.id, "graph", title, cut(note, room, 11), full), "tone": graph_tone(number), "group": graph.frame}


def break_shape(places: Places, b: Break) -> Shape:
    """The box of a break, with the name of its region above it if it is in one."""
    region = region_name(b, places)
    rest = {"resumed": [], "skipped": ["skips"], "raised": ["stops"]}[b.outcome]
    rest += [f"{len(b.hits)} hits"] if len(b.hits) > 1 else []
    rest += ["allowed"] if b.allowed and not region else []
    notes = [" · ".join([f"line {b.line}", *rest]), " · ".join([f":{b.line}", *rest]), " · ".join(rest), *rest[:1]]
    code, place = break_code(b, places), places.at(b.file, b.line, b.cell)
    call = re.sub(r"^(?:torch|numpy|np)\.(?:\w+\.)*(?=\w+\()", "", code)  # of torch or NumPy, without its module
    why = shorten(compiler_text(b.reason or b.type, 1000), 300)
    title, note = title_with_note("✂ " + call, [n for n in notes if n] or [""], BOX_WIDTH - 34, 12, mono=False)
    full = f"graph break at {shorten(code, 200)}, {place}, {b.outcome}: {why}"
    shape = blank(b.id, "break", title, note, full)
    if region:
        flag = SHORT_FLAGS[bool(b.error_on_graph_break)]
        shape["region"] = "error" if b.error_on_graph_break else "allow"
        shape["lines"] = [cut(f"{region}: {flag}", BOX_WIDTH - 12, 11)]
        shape["full"] += f" (in region {region}: {flag})"
    if b.allowed:
        shape["badge"] = "allowed"
    return shape


def _notes(word: str, place: str, line: int) -> list[str]:
    """Possible notes to the right of a frame's name, the longest first."""
    return [" · ".join(p for p in (word, at) if p) for at in (place, f":{line}", "")][: 3 if word else 2]


def title_with_note(title: str, notes: list[str], width: float, size: float = 12.5, mono: bool = True) -> tuple[str, str]:
    """The title with the longest note that leaves room for it; if none does, both are cut."""
    for note in notes:
        if text_width(title, size, bold=True) + 10 + text_width(note, 11, mono=mono) <= width:
            return cut(title, width, size, bold=True), note
    note = cut(notes[-1], width * 0.45, 11, mono=mono)
    return cut(title, width - 10 - text_width(note, 11, mono=mono), size, bold=True), note
