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
    """A picture as it is shown; `large`: the view shows the part of it around what is selected."""
    return {
        "width": picture["width"], "height": picture["height"], "large": large, "left_out": picture["left_out"],
        "svg": _svg(picture),
    }  # fmt: skip


def _svg(picture: Picture) -> str:
    """The picture: frames first, then arrows, boxes and labels above them."""
    size = f"{picture['width']:g} {picture['height']:g}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dyn-picture" viewBox="0 0 {size}">',
        _DEFINITIONS,
        *(_group(g) for g in picture["groups"]),
        *(_arrow(a) for a in picture["arrows"]),
        *(_box(b) for b in picture["boxes"]),
        *(text("dyn-label", a["at"][0], a["at"][1], a.get("label", "")) for a in picture["arrows"] if "at" in a),
        "</svg>",
    ]
    return "".join(parts)


def text(classes: str, x: float, y: float, words: str, anchor: str = "") -> str:
    """A text, or nothing if there are no words; `anchor`: "end" or "middle", the point of the text that is at `x`."""
    at = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{classes}" x="{x:g}" y="{y:g}"{at}>{escape(words)}</text>' if words else ""


def rect(classes: str, x: float, y: float, w: float, h: float, radius: float, more: str = "") -> str:
    """A rectangle with round corners."""
    return f'<rect class="{classes}" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{radius:g}"{more}/>'


def node(shape: Shape, parts: str) -> str:
    """A shape that can be selected, with its parts, whose coordinates begin at its corner."""
    classes = f"dyn-node dyn-k-{shape['kind']}"
    classes += f" dyn-g{shape['tone']}" if "tone" in shape else ""
    classes += f" dyn-is-{shape['badge']}" if "badge" in shape else ""
    classes += f" dyn-r-{shape['region']}" if "region" in shape else ""
    data = f'data-id="{escape(shape["id"])}" data-kind="{shape["kind"]}" '
    data += f'data-box="{shape["x"]:g} {shape["y"]:g} {shape["w"]:g} {shape["h"]:g}"'
    data += f' data-group="{escape(shape["group"])}"' if "group" in shape else ""
    data += f' data-contents="{escape(" ".join(shape["contents"]))}"' if "contents" in shape else ""
    return (
        f'<g class="{classes}" {data} transform="translate({shape["x"]:g} {shape["y"]:g})" role="button" aria-pressed="false" '
        f'tabindex="-1"><title>{escape(shape["full"])}</title>{parts}</g>'
    )


def _group(g: Shape) -> str:
    """A frame with its name and the lines below it."""
    w, h, lines = g["w"], g["h"], g.get("lines", [])
    parts = rect("dyn-frame", 4, -4, w, h, CORNER) if g.get("badge") == "recompile" else ""
    skipped = g["kind"] == "skipped"
    parts += rect("dyn-frame dyn-main", 0, 0, w, h, CORNER, ' style="fill:url(#dyn-hatch)"' if skipped else "")
    if skipped:
        parts += rect("dyn-under", 5, 5, w - 10, TITLE_HEIGHT + LINE_HEIGHT * len(lines) - 8, 5)
    parts += text("dyn-name", INSET, 22, g["title"])
    parts += text("dyn-soft dyn-mono", w - INSET, 22, g["note"], "end")
    for i, line in enumerate(lines):
        parts += text("dyn-soft", INSET, 40 + LINE_HEIGHT * i, line)
    return node(g, parts)


def _box(b: Shape) -> str:
    """A graph, a version, or a break, which may have a region around it."""
    w, h, top, is_break, parts = b["w"], b["h"], 0.0, b["kind"] == "break", ""
    if is_break and "region" in b:
        top = REGION_HEIGHT
        parts = rect("dyn-area", -6, 0, w + 12, h + 6, CORNER) + text("dyn-soft", 6, 14, b.get("lines", [""])[0])
    high = h - top
    middle = top + high / 2 + 4
    inset = INSET + 2 * is_break  # the ends of a break are round
    parts += rect("dyn-main", 0, top, w, high, high / 2 if is_break else 5)
    if b["kind"] == "version":
        parts += text("dyn-strong", w / 2, middle, b["title"], "middle")
    else:
        parts += text("dyn-strong", inset, middle, b["title"])
    return node(b, parts + text("dyn-soft", w - inset, middle, b["note"], "end"))


def _arrow(a: Arrow) -> str:
    label = f' data-label="{escape(a["label"])}"' if "label" in a else ""
    return (
        f'<path class="dyn-arrow dyn-a-{a["kind"]}" d="{rounded(a["points"])}" marker-end="url(#dyn-tip)" '
        f'data-s="{escape(a["source"])}" data-t="{escape(a["target"])}" data-kind="{a["kind"]}"{label}>'
        f"<title>{escape(a['full'])}</title></path>"
    )


def rounded(points: list[list[float]], radius: float = 7) -> str:
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
