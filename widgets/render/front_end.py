"""The built front end for widgets and pages: an ES module and a style sheet for each kind of view.

`npm run build` in `widgets/frontend` writes the files to `widgets/static`; they are committed, so that installing
needs no Node.js.  The colors are added here, because `palette.py` is their only source.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from dynascope.widgets.drawing.palette import css_rules

#: a view of a report, or of the ranks of a job
View = Literal["view", "ranks"]
STATIC = Path(__file__).parent.parent / "static"


def es_module(view: View = "view") -> str:
    """The module; it exports `render` for anywidget, and `openPage` for pages."""
    return (STATIC / f"{view}.js").read_text("utf-8")


def style_sheet(view: View = "view") -> str:
    """The style sheet, with the colors; the one for ranks includes the one for reports, because their view shows reports."""
    more = "" if view == "view" else (STATIC / f"{view}.css").read_text("utf-8")
    return css_rules() + (STATIC / "view.css").read_text("utf-8") + more
