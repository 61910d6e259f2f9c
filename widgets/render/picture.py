"""The split graph as a static picture: SVG with literal colors, or Graphviz text.

Promises: valid XML whatever the report holds (every text escaped, no control characters); no script, no reference to anything
outside; no text wider than its box (long names are cut in the middle; the `<title>` has more of them); a light background of
its own, so it is readable on any page.
"""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from dynascope.compiler.report import Report
from dynascope.widgets.drawing.palette import GRAPHS_LIGHT, LIGHT
from dynascope.widgets.drawing.shapes import SIZES
from dynascope.widgets.drawing.split_graph import split_picture
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.summary import headline
from dynascope.widgets.guarded import guarded
from dynascope.widgets.wire import Arrow, Picture, Shape
from dynascope.widgets.words import cut, printable, wrapped

SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
MONO = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SMALLEST = 420.0


def to_svg(report: Report) -> str:
    """The split graph of `report` as one SVG document; if it cannot be drawn, the document says so in one line."""
    return guarded("The split graph", lambda: svg(headline(report), split_picture(report, Places(report))), _sentence)


def _sentence(why: str) -> str:
    size = 'width="900" height="40" viewBox="0 0 900 40"'
    background = f'<rect width="100%" height="100%" rx="8" fill="{LIGHT["bg"]}"/>'
    text = _text(14, 24, cut(why, 872, 12))
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{SANS}" font-size="12">{background}{text}</svg>'


def svg(title: str, picture: Picture, *, titled: bool = True) -> str:
    """The SVG document of a picture; `titled`: whether to put the title above it, or only into `<title>`."""
    title = printable(title, 2000)
    width = max(picture["width"], SMALLEST if titled or picture["folded"] else 0.0)
    head = wrapped(title, width - 28, 12.8, most=3) if titled else []
    top, foot = 12.0 + 16 * len(head) if titled else 0.0, 24.0 if picture["folded"] else 0.0
    height = top + picture["height"] + foot
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
        f'role="img" font-family="{SANS}" font-size="12" fill="{LIGHT["ink"]}">',
        f"<title>{escape(title)}</title>",
        "<defs>",
        *[
            f'<marker id="tip-{name}" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto" '
            f'markerUnits="userSpaceOnUse"><path d="M0 0.5L8 4L0 7.5z" fill="{LIGHT[name]}"/></marker>'
            for name in ("soft", "break")
        ],
        '<pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<rect width="8" height="8" fill="{LIGHT["bg"]}"/><rect width="4" height="8" fill="{LIGHT["skip-tint"]}"/>'
        "</pattern></defs>",
        f'<rect width="100%" height="100%" rx="8" fill="{LIGHT["bg"]}"/>',
        *[_text(14, 21 + 16 * i, line, "600") for i, line in enumerate(head)],
        f'<g transform="translate({(width - picture["width"]) / 2:g} {top:g})">',
        *[_group(g) for g in picture["groups"]],
        *[_arrow(a) for a in picture["arrows"]],
        *[_box(b) for b in picture["boxes"]],
        *[_label(a) for a in picture["arrows"] if "label" in a],
        "</g>",
    ]
    if picture["folded"]:
        out.append(_text(14, height - 10, cut("folded: " + picture["folded"], width - 28, 11), fill="soft", size=11))
    return "".join([*out, "</svg>"])


def _text(
    x: float, y: float, text: str, weight: str = "", *, fill: str = "", size: float = 12, end: bool = False, mono: bool = False
) -> str:
    style = f' font-weight="{weight}"' if weight else ""
    style += f' fill="{LIGHT[fill]}"' if fill else ""
    style += f' font-size="{size:g}"' if size != 12 else ""
    style += ' text-anchor="end"' if end else ""
    style += f' font-family="{MONO}"' if mono else ""
    return f'<text x="{x:g}" y="{y:g}"{style}>{escape(text)}</text>'


_REGIONS = {"allow": (LIGHT["good"], ' stroke-dasharray="3 3"'), "error": (LIGHT["error"], "")}


def _group(g: Shape) -> str:
    x, y, w, h = g["x"], g["y"], g["w"], g["h"]
    fill, stroke, dash = {
        "skipped": ("url(#hatch)", LIGHT["skip"], "5 4"), "failed": (LIGHT["error-tint"], LIGHT["error"], ""),
        "empty": ("none", LIGHT["line"], "2 3"), "cached": (LIGHT["panel"], LIGHT["line"], ""),
        "unfinished": (LIGHT["open-tint"], LIGHT["open"], "8 3 2 3"),
    }.get(g["kind"], (LIGHT["bg"], LIGHT["line"], ""))  # fmt: skip
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    if "region" in g:
        stroke, dashed = _REGIONS[g["region"]]
    rect = f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="8" fill="{fill}" stroke="{stroke}"{dashed}/>'
    if g.get("badge") == "recompile":
        behind = f'<rect x="{x + 4:g}" y="{y - 4:g}" width="{w:g}" height="{h:g}" rx="8" '
        rect = f'{behind}fill="{LIGHT["bg"]}" stroke="{stroke}"/>{rect}'
    if g["kind"] == "skipped":
        head = SIZES["title_height"] + SIZES["line_height"] * len(g.get("lines", [])) - 8
        rect += f'<rect x="{x + 5:g}" y="{y + 5:g}" width="{w - 10:g}" height="{head:g}" rx="5" '
        rect += f'fill="{LIGHT["bg"]}" opacity=".88"/>'
    inset, baseline = SIZES["inset"], y + SIZES["title_baseline"]
    texts = _text(x + inset, baseline, g["title"], "600", size=12.5)
    texts += _text(x + w - inset, baseline, g["note"], fill="soft", size=11, end=True, mono=True)
    for i, line in enumerate(g.get("lines", [])):
        texts += _text(x + inset, y + SIZES["first_line"] + SIZES["line_height"] * i, line, fill="soft", size=11)
    return f"<g><title>{escape(g['full'])}</title>{rect}{texts}</g>"


def _box(b: Shape) -> str:
    x, y, w, h, area = b["x"], b["y"], b["w"], b["h"], ""
    if b["kind"] == "break" and "region" in b:
        stroke, dash = _REGIONS[b["region"]]
        area = f'<rect x="{x - 6:g}" y="{y:g}" width="{w + 12:g}" height="{h + 6:g}" rx="8" fill="none" '
        area += f'stroke="{stroke}"{dash}/>' + _text(x + 6, y + 14, b.get("lines", [""])[0], fill="soft", size=11)
        y, h = y + SIZES["region_height"], h - SIZES["region_height"]
    stroke, fill = _colours(b)
    shape = f'rx="5" fill="{fill}" stroke="{stroke}"'
    if b["kind"] == "break":
        dashed = ' stroke-dasharray="5 3"' if b.get("badge") == "allowed" else ""
        shape = f'rx="{h / 2:g}" fill="{fill}" stroke="{stroke}" stroke-width="1.8"{dashed}'
    elif stroke == LIGHT["skip"]:
        shape += ' stroke-dasharray="2 3"'
    inset = 3.0 if b["kind"] == "version" else SIZES["break_inset" if b["kind"] == "break" else "inset"]
    middle = y + h / 2 + 4
    return (
        f'<g><title>{escape(b["full"])}</title>{area}<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" {shape}/>'
        + _text(x + inset, middle, b["title"], "600")
        + _text(x + w - inset, middle, b["note"], fill="soft", size=11, end=True)
        + "</g>"
    )


def _colours(b: Shape) -> tuple[str, str]:
    """The colors of a box's line and fill: a graph's, a break's, or gray for a fold or a version without a graph."""
    if b["kind"] == "graph" or (b["kind"] == "version" and "tone" in b):
        return GRAPHS_LIGHT[b.get("tone", 0)]
    return (LIGHT["break"], LIGHT["break-tint"]) if b["kind"] == "break" else (LIGHT["skip"], LIGHT["panel"])


def rounded(points: list[list[float]], radius: float = SIZES["bend"]) -> str:
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


#: dashes of the arrows that are not solid
_DASHES = {"hits": "4 3", "recompiles": "6 3"}


def _arrow(a: Arrow) -> str:
    kind = "break" if a["kind"] == "hits" else "soft"
    dash = f' stroke-dasharray="{_DASHES[a["kind"]]}"' if a["kind"] in _DASHES else ""
    return (
        f'<g><title>{escape(a["full"])}</title><path d="{rounded(a["points"])}" fill="none" stroke="{LIGHT[kind]}" '
        f'stroke-width="1.2"{dash} marker-end="url(#tip-{kind})"/></g>'
    )


def _label(a: Arrow) -> str:
    x, y = a["at"]
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="11" fill="{LIGHT["soft"]}" stroke="{LIGHT["bg"]}" stroke-width="3" '
        f'paint-order="stroke">{escape(a.get("label", ""))}</text>'
    )


# -- Graphviz --------------------------------------------------------------------------------------


def to_dot(report: Report) -> str:
    """The split graph as Graphviz text; names are generated, labels are quoted plain text."""
    return str(to_graphviz(report).source)


def to_graphviz(report: Report) -> Any:
    """The split graph as a `graphviz.Digraph` (to be rendered by Graphviz, with its own layout)."""
    import graphviz

    def sentence(why: str) -> Any:
        graph = graphviz.Digraph("split")
        graph.node("n0", label=_plain(why), shape="plaintext")
        return graph

    return guarded("The split graph", lambda: _digraph(split_picture(report, Places(report))), sentence)


def _digraph(picture: Picture) -> Any:
    import graphviz

    names = {s["id"]: f"n{i}" for i, s in enumerate([*picture["groups"], *picture["boxes"]])}
    graph = graphviz.Digraph("split", graph_attr={"compound": "true", "fontname": "Helvetica"},
                             node_attr={"fontname": "Helvetica", "fontsize": "11"},
                             edge_attr={"fontname": "Helvetica", "fontsize": "10"})  # fmt: skip
    for g in picture["groups"]:
        inside = [b for b in picture["boxes"] if b.get("group") == g["id"]]
        label = _plain("\n".join([g["title"], g["note"], *g.get("lines", [])]))
        style = "dashed,rounded" if g["kind"] in ("skipped", "empty", "unfinished") else "rounded"
        with graph.subgraph(name=f"cluster_{names[g['id']]}") as cluster:
            cluster.attr(label=label, style=style)
            for b in inside:
                _dot_node(cluster, names[b["id"]], b)
            if not inside:
                cluster.node(names[g["id"]], label="", shape="point", style="invis")
    for b in picture["boxes"]:
        if "group" not in b:
            _dot_node(graph, names[b["id"]], b)
    boxes = {g["id"]: [b["id"] for b in picture["boxes"] if b.get("group") == g["id"]] for g in picture["groups"]}
    for a in picture["arrows"]:
        joined: dict[str, str] = {}
        ends = []
        for id, attribute, nearest in ((a["source"], "ltail", -1), (a["target"], "lhead", 0)):
            if id in boxes:  # Graphviz joins only nodes; it clips the edge at the cluster's border
                joined[attribute] = f"cluster_{names[id]}"
            ends.append(names[boxes[id][nearest] if boxes.get(id) else id])
        style = "dashed" if a["kind"] in _DASHES else "solid"
        graph.edge(*ends, label=_plain(a.get("label", "")), style=style, **joined)
    return graph


def _dot_node(graph: Any, name: str, b: Shape) -> None:
    line, fill = _colours(b)
    style = "filled,rounded" if b["kind"] == "break" else "filled,dashed" if line == LIGHT["skip"] else "filled"
    graph.node(name, label=_plain(f"{b['title']}\n{b['note']}"), shape="box", style=style, color=line, fillcolor=fill)


def _plain(text: str) -> str:
    """A label that Graphviz takes literally: no HTML label, no escape such as \\N."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text + " " if text.startswith("<") and text.endswith(">") else text
