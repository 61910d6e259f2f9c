"""Where a report is shown, and when.

In a notebook: first an empty slot for the static picture, then the live view, both before the code runs;
both are filled at the end.  The static picture stays in the saved notebook, where no kernel is.  In a
terminal and under `%%capture` there is one display, at the end, because an update would print again there.
A report that cannot be shown is one line that says so: the cell ends as it would without a view.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from dynascope.compiler.report import Report
from dynascope.compiler.report.outline import MIME, outline
from dynascope.shell import cell_id, is_captured, is_kernel, is_live, request_id
from dynascope.widgets.guarded import guarded

#: at most so many progress messages a second go to the browser
_PER_SECOND = 10
#: seconds between two growing pictures, and the share of the time that drawing them may take
_GROW_EVERY, _GROW_SHARE = 0.7, 0.05

#: the live views of each cell, by its id, and the request that made them: the next one closes them
_views: dict[str, tuple[str, list[Any]]] = {}


class Display:
    """The display of one run."""

    def __init__(self, shell: Any, view: str) -> None:
        self.shell = shell
        self.kind = _kind(shell, view)
        self.view: Any = None
        self._slot: Any = None
        self._told = 0.0
        self._grow_at = 0.0
        #: gives the report so far; set by whoever records
        self.so_far: Callable[[], Report] | None = None

    def start(self) -> None:
        """Before the code runs: the places that `finish` fills; a rerun has them already."""
        if self.view is not None:
            self.view.busy = True
            self.view.progress({"frames": 0, "graphs": 0, "breaks": 0, "seconds": 0.0})
            self._grow_at = time.monotonic() + _GROW_EVERY
            return
        if not is_live(self.shell) or self.kind in ("none", "text"):
            return
        from IPython.display import display

        from dynascope.widgets.render.static_output import empty_html

        # where the picture is all there is, an empty slot needs no rules that hide it
        slot = empty_html() if self.kind == "widget" else ""
        self._slot = display({"text/html": slot, "text/plain": ""}, raw=True, display_id=True)
        if self.kind == "widget":
            from dynascope.widgets.view import View

            self.view = View(busy=True)
            self.view.progress({"frames": 0, "graphs": 0, "breaks": 0, "seconds": 0.0})
            _replace_views(self.shell, self.view)
            display(self.view)
            self._grow_at = time.monotonic() + _GROW_EVERY

    def progress(self, state: dict[str, Any]) -> None:
        """What is being compiled; passed on to the browser, not too often."""
        now = time.monotonic()
        if self.view is not None and now - self._told >= 1 / _PER_SECOND:
            self._told = now
            self.view.progress(state)
            if self.so_far is not None and now >= self._grow_at:
                guarded("The report so far", partial(self._grow, self.so_far), self._stop_growing)
                took = time.monotonic() - now
                self._grow_at = now + took + max(_GROW_EVERY, took / _GROW_SHARE)

    def _grow(self, so_far: Callable[[], Report]) -> None:
        self.view.show(so_far())

    def _stop_growing(self, why: str) -> None:
        """What cannot be drawn half way is shown at the end, or what is wrong with it."""
        self.so_far = None

    def finish(self, report: Report) -> None:
        """Show the report."""
        if self.kind != "none":
            guarded("This report", lambda: self._show(report), self._say_why)

    def _say_why(self, why: str) -> None:
        """One line in place of the report."""
        text = f"{why}; it is kept: dynascope.last()"
        if self.view is not None:
            self.view.busy = False
            self.view.message(text, "error")
        self._put({"text/plain": text})

    def _show(self, report: Report) -> None:
        if self.view is not None:
            with self.view.hold_sync():
                self.view.busy = False
                self.view.show(report)
                self.view.settings = self.view.content["settings"]
        self._put(self._bundle(report))

    def _put(self, bundle: dict[str, Any]) -> None:
        if self._slot is not None:
            self._slot.update(bundle, raw=True)
            return
        from IPython.display import publish_display_data

        publish_display_data(data=bundle)

    def _bundle(self, report: Report) -> dict[str, Any]:
        if self.kind == "text":
            from dynascope.widgets.render.text import to_text

            return {"text/plain": to_text(report)}
        from dynascope.widgets.render.static_output import to_mimebundle

        # the structure is what a docs test compares; nothing shows it
        structure = guarded("The structure", lambda: {MIME: outline(report.to_dict())}, lambda why: {})
        return {**to_mimebundle(report, self.view and self.view.content), **structure}


def _replace_views(shell: Any, view: Any) -> None:
    """Close the views that this cell's earlier runs left: they show nowhere any more, but the kernel would keep them."""
    this, cell = request_id(shell), cell_id(shell)
    if cell is None:
        return
    run, views = _views.get(cell, (this, []))
    if run != this:
        for old in views:
            old.close()
        views = []
    _views[cell] = (this, [*views, view])


def _kind(shell: Any, view: str) -> str:
    if view == "auto":
        return "widget" if is_live(shell) else "static" if is_kernel(shell) or is_captured(shell) else "text"
    if view == "widget" and not is_live(shell):
        return "static" if is_kernel(shell) or is_captured(shell) else "text"
    return view
