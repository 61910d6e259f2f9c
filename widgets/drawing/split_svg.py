"""The split graph as SVG, drawn once for all: the page, the live view and static pictures show this.

Promises: valid XML whatever the report holds (every text escaped, no control characters); no script, no reference to anything
outside.  Shapes have classes, for which `frontend/picture.css` has the colors, and data for whoever moves them or listens to
clicks: `data-id`, `data-kind`, their place (`data-box`: x, y, width, height), the frame that they are in (`data-group`), and
the ids of what they stand for (`data-contents`); an arrow has the ids of both ends.
"""

from __future__ import annotations

from html import escape
from typing import TypedDict

from dynascope.widgets.drawing.shapes import LINE_HEIGHT, REGION_HEIGHT, TITLE_HEIGHT, Arrow, Picture, Shape
from dynascope.widgets.layout.geometry import Point

#: pixels: from the border of a frame or graph to its text; the radius of a frame's corners
INSET, CORNER = 12.0, 8.0

_DEFINITIONS = (
    '<defs><marker id="dyn-tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto" markerUnits="userSpaceOnUse">'
    '<path class="dyn-tip" d="M0 0.5L8 4L0 7.5z"/></marker>'
    '<pattern id="dyn-hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="dyn-hatch-a" width="8" height="8"/><rect class="dyn-hatch-b" width="4" height="8"/></pattern></defs>'
)


class Drawn(TypedDict):
    """A picture as SVG; `large`: the view shows the part of it around what is selected.

    `left_out`: what is not drawn, in words.
    """

    width: float
    height: float
    large: bool
    left_out: str
    svg: str


def drawn(picture: Picture, large: bool = False) -> Drawn:
    """A picture as it is shown: frames first, then arrows, boxes and labels above them."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dyn-picture" viewBox="0 0 {picture.width:g} {picture.height:g}">',
        _DEFINITIONS,
        *map(_group, picture.groups),
        *map(_arrow, picture.arrows),
        *map(_box, picture.boxes),
        *(text("dyn-label", *a.at, a.label) for a in picture.arrows),
        "</svg>",
    ]
    svg = "".join(parts)
    return {"width": picture.width, "height": picture.height, "large": large, "left_out": picture.left_out, "svg": svg}


def text(classes: str, x: float, y: float, words: str, anchor: str = "") -> str:
    """A text, or nothing if there are no words; `anchor`: "end" or "middle", the point of the text that is at `x`."""
    at = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{classes}" x="{x:g}" y="{y:g}"{at}>{escape(words)}</text>' if words else ""


def rect(classes: str, x: float, y: float, w: float, h: float, radius: float, more: str = "") -> str:
    """A rectangle with round corners."""
    return f'<rect class="{classes}" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{radius:g}"{more}/>'


def _data(**values: str) -> str:
    """The values as `data-` attributes; one that is empty is left out."""
    return " ".join(f'data-{name}="{escape(value)}"' for name, value in values.items() if value)


def node(shape: Shape, parts: str) -> str:
    """A shape that can be selected, with its parts, whose coordinates begin at its corner."""
    x, y, w, h = shape.at
    classes = f"dyn-node dyn-k-{shape.kind}" + (f" dyn-g{shape.tone}" if shape.tone is not None else "")
    classes += (f" dyn-is-{shape.badge}" if shape.badge else "") + (f" dyn-r-{shape.region}" if shape.region else "")
    contents = " ".join(shape.contents)
    data = _data(id=shape.id, kind=shape.kind, box=f"{x:g} {y:g} {w:g} {h:g}", group=shape.group, contents=contents)
    return f'<g class="{classes}" {data} transform="translate({x:g} {y:g})"><title>{escape(shape.full)}</title>{parts}</g>'


def _group(g: Shape) -> str:
    """A frame with its name and the lines below it."""
    w, h, skipped = g.at.width, g.at.height, g.kind == "skipped"
    parts = rect("dyn-frame", 4, -4, w, h, CORNER) if g.badge == "recompile" else ""
    parts += rect("dyn-frame dyn-main", 0, 0, w, h, CORNER, ' style="fill:url(#dyn-hatch)"' if skipped else "")
    parts += rect("dyn-under", 5, 5, w - 10, TITLE_HEIGHT + LINE_HEIGHT * len(g.lines) - 8, 5) if skipped else ""
    parts += text("dyn-name", INSET, 22, g.title) + text("dyn-soft dyn-mono", w - INSET, 22, g.note, "end")
    return node(g, parts + "".join(text("dyn-soft", INSET, 40 + LINE_HEIGHT * i, line) for i, line in enumerate(g.lines)))


def _box(b: Shape) -> str:
    """A graph, a version, or a break, which may have a region around it."""
    w, h, is_break, parts = b.at.width, b.at.height, b.kind == "break", ""
    top = REGION_HEIGHT if b.region else 0.0
    if b.region:
        parts = rect("dyn-area", -6, 0, w + 12, h + 6, CORNER) + text("dyn-soft", 6, 14, b.lines[0])
    middle, inset = top + (h - top) / 2 + 4, INSET + 2 * is_break  # the ends of a break are round
    parts += rect("dyn-main", 0, top, w, h - top, (h - top) / 2 if is_break else 5)
    title = (w / 2, middle, b.title, "middle") if b.kind == "version" else (inset, middle, b.title)
    return node(b, parts + text("dyn-strong", *title) + text("dyn-soft", w - inset, middle, b.note, "end"))


def _arrow(a: Arrow) -> str:
    return (
        f'<path class="dyn-arrow dyn-a-{a.kind}" d="{rounded(a.points)}" marker-end="url(#dyn-tip)" '
        f"{_data(s=a.source, t=a.target, kind=a.kind, label=a.label)}><title>{escape(a.full)}</title></path>"
    )


def rounded(points: list[Point], radius: float = 7) -> str:
    """SVG path data of a polyline with rounded corners."""
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for (ax, ay), (x, y), (bx, by) in zip(points, points[1:], points[2:], strict=False):
        before, after = ((ax - x) ** 2 + (ay - y) ** 2) ** 0.5, ((bx - x) ** 2 + (by - y) ** 2) ** 0.5
        r = min(radius, before / 2, after / 2)
        if r < 0.5:
            path += f"L{x:g} {y:g}"
            continue
        path += f"L{x + (ax - x) * r / before:.1f} {y + (ay - y) * r / before:.1f}"
        path += f"Q{x:g} {y:g} {x + (bx - x) * r / after:.1f} {y + (by - y) * r / after:.1f}"
    return path + f"L{points[-1][0]:g} {points[-1][1]:g}"
