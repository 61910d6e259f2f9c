"""The static output: what a saved notebook, nbconvert, GitHub and an untrusted notebook show.

Promises: no script, no `id`, no inline SVG, no outside reference, so it survives sanitizers; the picture is an `<img>` with a
data URI; every text is escaped; in JupyterLab and Jupyter Notebook, the output hides itself while the live view is shown below
it, and otherwise hides the dead view's error line; if a part cannot be made, one line says so and the rest is shown.
"""

from __future__ import annotations

import base64
from html import escape

from dynascope.compiler.report import Report, plural
from dynascope.widgets.drawing.split_graph import short_picture
from dynascope.widgets.guarded import guarded
from dynascope.widgets.labels.run_time import graphs_alone
from dynascope.widgets.labels.words import Places, printable, shorten
from dynascope.widgets.model.build import view_model
from dynascope.widgets.render.picture import svg
from dynascope.widgets.render.text import to_text
from dynascope.widgets.wire import Overview, ViewModel

#: rows of the table of breaks
ROWS = 40
#: pixels: a higher picture is replaced by a short one, because a saved page cannot scroll within it
TALL = 1400
#: a color that is readable on a light and on a dark background
ERROR = "#d4313a"
#: hides the static output while the live view is shown below it, and hides what a dead view leaves behind
HIDE_CSS = (
    ".jp-OutputArea-child:has(.dyn-static):has(+ .jp-OutputArea-child .dyn-widget){display:none}"
    ".jp-OutputArea-child:has(.dyn-static) + .jp-OutputArea-child:has(.jupyter-widgets):not(:has(.jupyter-widgets *))"
    "{display:none}"
    ".jp-OutputArea-child:has(.dyn-static) + .jp-OutputArea-child:has(> .lm-Panel.jp-OutputArea-output)"
    ":not(:has(> .lm-Panel.jp-OutputArea-output > *)){display:none}"
)


def to_mimebundle(report: Report, model: ViewModel | None = None) -> dict[str, str]:
    """`text/html` (the static output) and `text/plain` of a report; `model`: the report's model, if it exists already."""
    return {"text/html": static_html(report, model), "text/plain": to_text(report, colour=False, width=100)}


def static_html(report: Report, model: ViewModel | None = None) -> str:
    """The static output as an HTML fragment."""
    shown = model or view_model(report)
    body = guarded("This report", lambda: static_body(report, shown), _note)
    return f'<style>{HIDE_CSS}</style><div class="dyn-static">{body}</div>'


def empty_html() -> str:
    """The static output before there is a report: nothing to see, but with the style rules."""
    return f'<style>{HIDE_CSS}</style><div class="dyn-static"></div>'


def static_body(report: Report, model: ViewModel) -> str:
    """The headline, the facts beside it, causes, breaks, picture and notes of a report and its model, without style rules."""
    out = [f'<p style="margin:4px 0 8px"><strong>{escape(model["name"])}</strong>: {_counts(model)}</p>']
    for chip in model["chips"]:
        colour = f";color:{ERROR}" if chip["kind"] == "error" else ""
        out.append(f'<p style="margin:2px 0{colour}">{escape(chip["text"])}</p>')
    if model["overview"] is not None:
        out.append(_causes(model["overview"]))
    if model["breaks"]:
        out.append(guarded("The table of breaks", lambda: _table(model), _note))
    out.append(guarded("The picture", lambda: _image(report, model), _note))
    out.append(guarded("The run of a graph alone", lambda: "".join(map(_note, graphs_alone(report))), _note))
    return "".join([*out, *map(_note, model["notes"])])


def _note(text: str) -> str:
    return f'<p style="margin:2px 0">{escape(printable(text, 2000))}</p>'


def _image(report: Report, model: ViewModel) -> str:
    """The split graph as a picture; if it is too high, a shorter version of it."""
    tall = model["split"]["height"] > TALL
    picture = short_picture(report, Places(report)) if tall else model["split"]
    data = base64.b64encode(svg(model["headline"], picture, titled=False).encode("utf-8", "replace")).decode("ascii")
    alt = escape("split graph: " + model["headline"], quote=True)
    return f'<p style="margin:8px 0"><img alt="{alt}" style="max-width:100%" src="data:image/svg+xml;base64,{data}"></p>'


def _counts(model: ViewModel) -> str:
    pairs = [(escape(number), escape(words)) for number, words in model["counts"]]
    return " · ".join(f"<strong>{number}</strong> {words}" if number else words for number, words in pairs)


def _causes(overview: Overview) -> str:
    """What to do first, and the causes of a large report."""
    items = [
        f"<li><strong>{escape(cause['count'])}</strong>: {escape(cause['title'])} → {escape(cause['fix'])}</li>"
        for cause in overview["causes"]
    ]
    left = f" Remaining: {overview['left']}." if overview["left"] else ""
    first = f"<strong>Do this first:</strong> {escape(overview['first'] + left)}"
    return f'<p style="margin:2px 0">{first}</p><ol style="margin:4px 0 8px">{"".join(items)}</ol>'


def _table(model: ViewModel) -> str:
    cell = 'style="text-align:left;vertical-align:top;padding:2px 12px 2px 0"'
    head = "".join(f"<th {cell}>{name}</th>" for name in ("place", "graph break", "outcome", "why"))
    rows = []
    given_steps = set()
    for row in model["breaks"][:ROWS]:
        outcome = row["outcome_text"] + (" (allowed)" if row["allowed"] else "")
        if row["hits"] > 1:
            outcome += f", {row['hits']} hits"
        why, step = escape(row["type"]), _first_step(model, row["id"])
        if step and step not in given_steps:  # each step once: many breaks have the same fix
            why += f"<br>→ {escape(step)}"
            given_steps.add(step)
        rows.append(
            f"<tr><td {cell}><code>{escape(row['place'])}</code></td><td {cell}><code>{escape(row['code'])}</code></td>"
            f"<td {cell}>{escape(outcome)}</td><td {cell}>{why}</td></tr>"
        )
    more = len(model["breaks"]) - ROWS
    rest = f"<p>… and {plural(more, 'more graph break')}</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{rest}"


def _first_step(model: ViewModel, id: str) -> str:
    """The first thing to do about a break, in a line or two."""
    parts = model["details"][id]["parts"] if id in model["details"] else []  # the details may not have been made
    steps = [step for part in parts if part["key"] == "reason" for step in part["body"]["todo"]]
    return shorten(next(iter(steps), "").replace("`", ""), 200)
