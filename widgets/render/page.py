"""The stand-alone page: one file, interactive without a network, readable without JavaScript.

Its script and style are those of the live view, too.

Promises: the page loads nothing; a strict Content-Security-Policy with hashes of our own script and style enforces it.  The
data is JSON inside the page, with `<` escaped, and compressed if it is large.  The same ES module as in the notebook draws it.
If the page cannot be made, the result is a page that says so.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from dynascope.compiler.report import Report
from dynascope.widgets.drawing.palette import css_rules
from dynascope.widgets.model import view_model
from dynascope.widgets.render.static_output import static_body
from dynascope.widgets.words import guarded

#: `npm run build` in `widgets/frontend` writes these files; they are committed, so that installing needs no Node.js
STATIC = Path(__file__).parent.parent / "static"
#: characters of JSON above which the data is compressed
PACK_ABOVE = 150_000
PAGE_CSS = (
    "html{color-scheme:light dark}body{margin:0;padding:16px;font:13px/1.5 system-ui,sans-serif;background:#fff;color:#1b1f24}"
    "@media screen and (prefers-color-scheme:dark){body{background:#0d1014;color:#e6e9ee}}"
    "@media print{body{padding:0}}"
    ".dyn-plain td,.dyn-plain th{padding:2px 12px 2px 0;text-align:left;vertical-align:top}.dyn-plain img{max-width:100%}"
)


def es_module() -> str:
    """The built front end; it exports `render` for anywidget, and `openPage` for pages."""
    return (STATIC / "view.js").read_text("utf-8")


def style_sheet() -> str:
    """The built style sheet, with the colors, whose only source is `palette.py`."""
    return css_rules() + (STATIC / "view.css").read_text("utf-8")


def to_html(report: Report) -> str:
    """`report` as one HTML document."""

    def page() -> str:
        model = view_model(report)
        return document(model["name"], model, guarded("The static picture", lambda: static_body(report, model), escape))

    return guarded("This report", page, empty_page)


def empty_page(why: str) -> str:
    """The page if none can be made: it says why."""
    return f"<!doctype html>\n<title>dynascope</title>{escape(why)}\n"


def document(name: str, model: Mapping[str, Any], body: str) -> str:
    """The page of a model, or of the `views` of a job's groups; `body`: the HTML that is shown without JavaScript."""
    plain = json.dumps(model, ensure_ascii=True, separators=(",", ":"))
    packed = ""
    if len(plain) > PACK_ABOVE:
        packed = ' data-packed="gzip"'
        plain = base64.b64encode(gzip.compress(plain.encode("ascii"), mtime=0)).decode("ascii")
    data = plain.replace("<", "\\u003c")
    script = es_module() + "\nopenPage();\n"
    style = style_sheet() + PAGE_CSS
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; style-src-attr 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(name[:80])} · dynascope</title><style>{style}</style></head><body>"
        f'<main id="dyn-view"><div class="dyn-plain">{body}</div></main>'
        f'<script type="application/json" id="dyn-data"{packed}>{data}</script>'
        f'<script type="module">{script}</script></body></html>\n'
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
