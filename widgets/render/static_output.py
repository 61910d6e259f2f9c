"""The static output: what a saved notebook, nbconvert, GitHub and an untrusted notebook show.

Promises: no script, no `id`, no inline SVG, no outside reference, so it survives sanitizers; the picture is an `<img>` with a
data URI; every text is escaped; the live view hides the output while it is shown; if a part cannot be made, one line says so
and the rest is shown.
"""

from __future__ import annotations

import base64
from html import escape

from dynascope.compiler.report import Report, encodable, plural
from dynascope.widgets.drawing.split_graph import SHORT, split_picture
from dynascope.widgets.drawing.split_svg import drawn
from dynascope.widgets.features.graphs import graphs_alone
from dynascope.widgets.features.overview import Overview
from dynascope.widgets.features.places import Places
from dynascope.widgets.model import ViewModel, view_model
from dynascope.widgets.render.picture import svg
from dynascope.widgets.render.text import to_text
from dynascope.widgets.words import guarded, printable, shorten

#: rows of the table of breaks
ROWS = 40
#: pixels: a higher picture is replaced by a short one, because a saved page cannot scroll within it
TALL = 1400
#: in JupyterLab and Jupyter Notebook, hides what is left of the live view in a notebook that is opened again: it is the first
#: output of its cell, or follows another run's static output
_DEAD = ".jp-OutputArea-child:is(:first-child,:has(.dyn-static) + *):has(~ .jp-OutputArea-child .dyn-static)"
HIDE_CSS = (
    f"{_DEAD}:has(.jupyter-widgets):not(:has(.jupyter-widgets *)),"
    f"{_DEAD}:has(> .lm-Panel.jp-OutputArea-output):not(:has(> .lm-Panel.jp-OutputArea-output > *)){{display:none}}"
)


def to_mimebundle(report: Report, model: ViewModel | None = None, fallback: str = "") -> dict[str, str]:
    """`text/html` (the static output) and `text/plain` of a report; for the arguments, see `static_html`."""
    text = encodable(to_text(report, colour=False, width=100))  # which IPython prints in a terminal
    return {"text/html": static_html(report, model, fallback), "text/plain": text}


def static_html(report: Report, model: ViewModel | None = None, fallback: str = "") -> str:
    """The static output as an HTML fragment.

    Args:
        report: what is shown.
        model: the report's model, if it exists already.
        fallback: if there is a live view, too, the class by which it hides this output.
    """
    body = guarded("This report", lambda: static_body(report, model or view_model(report)), _note)
    # in a comment, because some sanitizers drop the tag alone, and its content would be shown
    style = f"<style><!--{HIDE_CSS}--></style>" if fallback else ""
    return f'{style}<div class="{f"dyn-static {fallback}".rstrip()}">{body}</div>'


def static_body(report: Report, model: ViewModel) -> str:
    """The headline, the facts beside it, causes, breaks, picture and notes of a report and its model, without style rules."""
    pairs = ((escape(number), escape(words)) for number, words in model["counts"])
    counts = " · ".join(f"<strong>{number}</strong> {words}" if number else words for number, words in pairs)
    out = [f'<p style="margin:4px 0 8px"><strong>{escape(model["name"])}</strong>: {counts}</p>']
    for chip in model["chips"]:
        # no color is readable on the white and on the dark grey of every theme
        weight = ";font-weight:600" if chip["kind"] == "error" else ""
        out.append(f'<p style="margin:2px 0{weight}">{escape(chip["text"])}</p>')
    if (advice := model["advice"]) is not None:
        first = f"<strong>Do this first:</strong> {escape(advice['first'])}"
        out += [f'<p style="margin:2px 0">{words}</p>' for words in (first, *map(escape, advice["more"]))]
    out += [_causes(model["overview"])] if model["overview"] is not None else []
    out += [guarded("The table of breaks", lambda: _table(model), _note)] if model["breaks"] else []
    out.append(guarded("The picture", lambda: _image(report, model), _note))
    out.append(guarded("The run of a graph alone", lambda: "".join(map(_note, graphs_alone(report))), _note))
    return "".join([*out, *map(_note, model["notes"])])


def _note(text: str) -> str:
    return f'<p style="margin:2px 0">{escape(printable(text, 2000))}</p>'


def _image(report: Report, model: ViewModel) -> str:
    """The split graph as a picture; if it is too high, one of fewer frames."""
    picture = drawn(split_picture(report, Places(report), SHORT)) if model["split"]["height"] > TALL else model["split"]
    data = base64.b64encode(svg(model["headline"], picture, titled=False).encode("utf-8", "replace")).decode("ascii")
    alt = escape("split graph: " + model["headline"], quote=True)
    return f'<p style="margin:8px 0"><img alt="{alt}" style="max-width:100%" src="data:image/svg+xml;base64,{data}"></p>'


def _causes(overview: Overview) -> str:
    """The causes of a large report."""
    told = ((escape(c["count"]), escape(c["title"]), escape(c["fix"])) for c in overview["causes"])
    items = "".join(f"<li><strong>{count}</strong>: {title}{f' → {fix}' if fix else ''}</li>" for count, title, fix in told)
    return f'<ol style="margin:4px 0 8px">{items}</ol>'


def _table(model: ViewModel) -> str:
    cell = 'style="text-align:left;vertical-align:top;padding:2px 12px 2px 0"'
    head = "".join(f"<th {cell}>{name}</th>" for name in ("place", "graph break", "outcome", "why"))
    rows = []
    for row in model["breaks"][:ROWS]:
        outcome = row["outcome_text"] + (" (allowed)" if row["allowed"] else "")
        outcome += f", {row['hits']} hits" if row["hits"] > 1 else ""
        parts = model["details"][row["id"]]["parts"] if row["id"] in model["details"] else []  # they may not have been made
        steps = (step for part in parts if part["key"] == "reason" for step in part["body"]["todo"])
        step = shorten(next(steps, "").replace("`", ""), 200)
        why = escape(row["type"]) + (f"<br>→ {escape(step)}" if step else "")
        code = [f"<code>{escape(text)}</code>" for text in (row["place"], row["code"])]
        rows.append("".join(f"<td {cell}>{content}</td>" for content in (*code, escape(outcome), why)))
    more = len(model["breaks"]) - ROWS
    rest = f"<p>… and {plural(more, 'more graph break')}</p>" if more > 0 else ""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"
