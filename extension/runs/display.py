"""Decides where and when a report is shown.

The finished report is displayed once, when the code has run: not every front end takes updates of an earlier output.  In a
kernel, a live view is displayed before the code runs, unless `--view` says otherwise; while it is shown, it hides the
report's static output, which is what a saved notebook shows without a kernel.  If a report cannot be shown, one line says so,
and the cell ends as it would without a view.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from IPython.display import display

from dynascope.compiler.report import Report, encodable
from dynascope.compiler.report.comparison import MIME, outline
from dynascope.shell import cell_id, is_captured, is_kernel, request_id
from dynascope.widgets.terminal import ProgressLine
from dynascope.widgets.words import guarded

#: seconds between two progress messages to the browser
_PROGRESS_EVERY = 0.1
#: seconds between two drawings of the report so far, and the share of the run's time that drawing may take
_DRAW_EVERY, _DRAW_SHARE = 0.7, 0.05

#: the live views of each cell, by its id, with the request that made them: the next request closes them
_views: dict[str, tuple[str, list[Any]]] = {}


class Display:
    """The display of one run."""

    def __init__(self, shell: Any, view: str) -> None:
        self.shell = shell
        self.kind = _kind(shell, view)
        self.view: Any = None
        #: the displayed report: a rerun from the view replaces it
        self._shown: Any = None
        self._last_progress = 0.0
        self._next_drawing = 0.0
        self._line = ProgressLine()
        #: returns the report so far; set by the code that records the run
        self.so_far: Callable[[], Report] | None = None

    def start(self) -> None:
        """Display the live view, before the code runs.  A rerun uses that of the first run."""
        if self.kind == "widget" and self.view is None:
            from dynascope.widgets.view import View

            self.view = View(busy=True, fallback=f"dyn-{uuid4().hex}")
            _close_earlier_views(self.shell, self.view)
            display(self.view)
        if self.view is not None:
            self.view.busy = True
            self.view.progress({"frames": 0, "graphs": 0, "seconds": 0.0})
            self._next_drawing = time.monotonic() + _DRAW_EVERY

    def progress(self, state: dict[str, Any]) -> None:
        """Send the progress to the browser and draw the report so far, neither too often; each stage after the run is sent.

        Without a view, a terminal shows the stages.
        """
        now = time.monotonic()
        if self.view is None:
            self._line.show(state)
        if self.view is None or (now - self._last_progress < _PROGRESS_EVERY and not state.get("stage")):
            return
        self._last_progress = now
        self.view.progress(state)
        so_far = self.so_far
        if so_far is not None and (now >= self._next_drawing or state.get("stage")):
            # after an error, it is not drawn again: `finish` shows the whole report, or the error
            guarded("The report so far", lambda: self.view.show(so_far()), lambda why: setattr(self, "so_far", None))
            took = time.monotonic() - now
            self._next_drawing = now + took + max(_DRAW_EVERY, took / _DRAW_SHARE)
            self.so_far = None if state.get("stage") else self.so_far  # the code has run: its report grows no more

    def finish(self, report: Report) -> None:
        """Show the finished report."""
        if self.kind != "none":
            guarded("This report", lambda: self._show(report), self._show_failure)

    def _show(self, report: Report) -> None:
        if self.view is not None:
            with self.view.hold_sync():
                self.view.busy = False
                self.view.show(report)
                self.view.settings = self.view.content["settings"]
        self._publish(self._mimebundle(report))

    def _show_failure(self, why: str) -> None:
        """Show one line in place of the report."""
        text = f"{why}; the report is still available as dynascope.last()"
        if self.view is not None:
            self.view.busy = False
            self.view.message(text, "error")
        self._publish({"text/plain": text})

    def _publish(self, bundle: dict[str, Any]) -> None:
        if self._shown is None:
            self._shown = display(bundle, raw=True, display_id=True)
        else:
            self._shown.update(bundle, raw=True)

    def _mimebundle(self, report: Report) -> dict[str, Any]:
        # docs tests compare the outline; no front end shows it
        outlined = guarded("The outline", lambda: {MIME: outline(report.to_dict())}, lambda why: {})
        if self.kind == "text":
            from dynascope.widgets.render.text import takes_colours, to_text

            return {"text/plain": encodable(to_text(report, colour=takes_colours(sys.stdout))), **outlined}
        from dynascope.widgets.render.static_output import to_mimebundle

        made = to_mimebundle(report, self.view.content, self.view.fallback) if self.view else to_mimebundle(report)
        return {**made, **outlined}


def _close_earlier_views(shell: Any, view: Any) -> None:
    """Close the views of this cell's earlier runs: no front end shows them any more, but the kernel would keep them alive."""
    request, cell = request_id(shell), cell_id(shell)
    if cell is None:
        return
    made_by, views = _views.get(cell, (request, []))
    if made_by != request:
        for old in views:
            old.close()
        views = []
    _views[cell] = (request, [*views, view])


def _kind(shell: Any, view: str) -> str:
    """The kind of view to show; for "auto" and "widget", the best that the shell can display."""
    if view not in ("auto", "widget"):
        return view
    return "static" if is_captured(shell) else "widget" if is_kernel(shell) else "text"
