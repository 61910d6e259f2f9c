"""The built front end for widgets and pages: an ES module and a style sheet.

`npm run build` in `widgets/frontend` writes the files to `widgets/static`; they are committed, so that installing
needs no Node.js.  The colors are added here, because `palette.py` is their only source.
"""

from __future__ import annotations

from pathlib import Path

from dynascope.widgets.drawing.palette import css_rules

STATIC = Path(__file__).parent.parent / "static"


def es_module() -> str:
    """The module; it exports `render` for anywidget, and `openPage` for pages."""
    return (STATIC / "view.js").read_text("utf-8")


def style_sheet() -> str:
    """The style sheet, with the colors."""
    return css_rules() + (STATIC / "view.css").read_text("utf-8")
