"""Sizes in pixels for the static picture and the front end, which gets them in the model as `drawing`."""

from __future__ import annotations

from typing import Final

from dynascope.widgets.wire import Drawing

SIZES: Final[Drawing] = {
    "inset": 12.0, "break_inset": 14.0, "title_height": 34.0, "title_baseline": 22.0, "line_height": 16.0,
    "first_line": 40.0, "region_height": 20.0, "fold_head": 34.0, "corner": 8.0, "box_corner": 5.0, "bend": 7.0,
}  # fmt: skip
