"""The live view of a RanksReport: an anywidget whose whole content is one model of plain data."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from dynascope.compiler.ranks import RanksReport
from dynascope.widgets.ranks_model import safe_ranks_model
from dynascope.widgets.render.front_end import es_module, style_sheet
from dynascope.widgets.view import packed


class RanksView(anywidget.AnyWidget):
    """A clickable view of all ranks of a job; it asks the kernel for nothing."""

    _esm = es_module("ranks")
    _css = style_sheet("ranks")

    job: Any = traitlets.Dict().tag(sync=True, to_json=packed, from_json=lambda _, view: view.job)

    def __init__(self, report: RanksReport, **traits: Any) -> None:
        super().__init__(job=safe_ranks_model(report), **traits)

    def __repr__(self) -> str:
        return f"dynascope view: {self.job['headline']}"
