"""The split graph as a static picture: an SVG document with its own style, or Graphviz text.

Promises: what `drawing.split_svg` promises; no text wider than its box (long names are cut in the middle; the `<title>` has
more of them); a light background of its own, so it is readable on any page.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from dynascope.compiler.report import Report
from dynascope.widgets.drawing.palette import GRAPHS_LIGHT, LIGHT, TONES, literal
from dynascope.widgets.drawing.shapes import Picture, Shape
from dynascope.widgets.drawing.split_graph import split_picture
from dynascope.widgets.drawing.split_svg import Drawn, drawn, rect, text
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.summary import headline
from dynascope.widgets.words import cut, grouped, guarded, printable, wrapped

#: the part of the front end's style that pictures need
STYLE = Path(__file__).parent.parent / "static" / "picture.css"
#: pixels: the least width of a picture with words above or below it
SMALLEST = 420.0


def to_svg(report: Report) -> str:
    """The split graph of `report` as one SVG document; if it cannot be drawn, the document says so in one line."""

    def sentence(why: str) -> str:
        return _document("", 900, 40, text("dyn-soft", 14, 24, cut(why, 872, 12)))

    return guarded("The split graph", lambda: svg(headline(report), drawn(split_picture(report, Places(report)))), sentence)


def svg(title: str, picture: Drawn, *, titled: bool = True) -> str:
    """The SVG document of a picture; `titled`: whether to put the title above it, or only into `<title>`."""
    title, inner, left_out = printable(title, 2000), picture["width"], picture["left_out"]
    width = max(inner, SMALLEST if titled or left_out else 0.0)
    head = wrapped(title, width - 28, 12.8, most=3) if titled else []
    top, foot = 12.0 + 16 * len(head) if titled else 0.0, 24.0 if left_out else 0.0
    height = top + picture["height"] + foot
    place = f'<svg x="{(width - inner) / 2:g}" y="{top:g}" width="{inner:g}" height="{picture["height"]:g}"'
    parts = [text("dyn-strong", 14, 21 + 16 * i, line) for i, line in enumerate(head)]
    parts.append(picture["svg"].replace("<svg", place, 1))
    parts.append(text("dyn-soft", 14, height - 10, cut(f"not drawn: {left_out}", width - 28, 11)) if left_out else "")
    return _document(title, width, height, "".join(parts))


def _document(title: str, width: float, height: float, body: str) -> str:
    style = literal(STYLE.read_text("utf-8") + TONES)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dyn-picture" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img"><title>{escape(title)}</title><style>{style}</style>'
        f"{rect('dyn-ground', 0, 0, width, height, 8)}{body}</svg>"
    )


# -- Graphviz --------------------------------------------------------------------------------------


def to_graphviz(report: Report) -> Any:
    """The split graph as a `graphviz.Digraph` (to be rendered by Graphviz, with its own layout), whose `str` is the text.

    Names are generated, labels are quoted plain text.
    """
    from graphviz import Digraph

    def sentence(why: str) -> Any:
        graph = Digraph("split")
        graph.node("n0", label=_plain(why), shape="plaintext")
        return graph

    return guarded("The split graph", lambda: _digraph(split_picture(report, Places(report)), Digraph), sentence)


def _digraph(picture: Picture, make: Any) -> Any:
    names = {s.id: f"n{i}" for i, s in enumerate([*picture.groups, *picture.boxes])}
    inside = grouped((b.group, b) for b in picture.boxes)
    graph = make("split", graph_attr={"compound": "true", "fontname": "Helvetica"},
                 node_attr={"fontname": "Helvetica", "fontsize": "11"},
                 edge_attr={"fontname": "Helvetica", "fontsize": "10"})  # fmt: skip
    for g in picture.groups:
        style = "dashed,rounded" if g.kind in ("skipped", "empty", "unfinished") else "rounded"
        with graph.subgraph(name=f"cluster_{names[g.id]}") as cluster:
            cluster.attr(label=_plain("\n".join([g.title, g.note, *g.lines])), style=style)
            cluster.node(names[g.id], label="", shape="point", style="invis")
            for b in inside[g.id]:
                _dot_node(cluster, names[b.id], b)
    for b in inside[""]:
        _dot_node(graph, names[b.id], b)
    frames = {g.id for g in picture.groups}
    for a in picture.arrows:
        # Graphviz joins only nodes: those inside; it clips the edge at the cluster's border
        clipped = {end: f"cluster_{names[id]}" for end, id in (("ltail", a.source), ("lhead", a.target)) if id in frames}
        graph.edge(names[a.source], names[a.target], label=_plain(a.label), **clipped)
    return graph


def _dot_node(graph: Any, name: str, b: Shape) -> None:
    line, fill = (LIGHT["break"], LIGHT["break-tint"]) if b.kind == "break" else (LIGHT["skip"], LIGHT["panel"])
    line, fill = GRAPHS_LIGHT[b.tone] if b.tone is not None else (line, fill)
    style = "filled,rounded" if b.kind == "break" else "filled"
    graph.node(name, label=_plain(f"{b.title}\n{b.note}"), shape="box", style=style, color=line, fillcolor=fill)


def _plain(text: str) -> str:
    """A label that Graphviz takes literally: no HTML label, no escape such as \\N."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text + " " if text.startswith("<") and text.endswith(">") else text
