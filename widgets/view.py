"""The live view: an anywidget whose whole content is one model of plain data.

Promises: all that a click shows is in the browser already; a click that asks the kernel to run or stop something
sends one message, which is acknowledged at once and handed to `on_request` (this should only queue: it may be called on
another thread, even during a cell); `text/plain` has the headline or is empty, never an address.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from typing import Any

import anywidget
import traitlets

from dynascope.compiler.ranks import RanksReport
from dynascope.compiler.report import Report
from dynascope.widgets.model import view_model
from dynascope.widgets.render import ranks_page
from dynascope.widgets.render.page import es_module, style_sheet
from dynascope.widgets.words import printable, shorten

#: each part of a rerun's output has at most this many characters
OUTPUT_LIMIT = 50_000
#: characters of JSON above which a model is sent compressed (to about a twelfth)
PACK_ABOVE = 100_000


def packed(content: Any, _: Any = None) -> Any:
    """A model as it is sent to the browser: unchanged, or `{"gzip": its JSON, compressed}`, which is one binary buffer."""
    text = json.dumps(content, separators=(",", ":"))
    return {"gzip": gzip.compress(text.encode("ascii"), 1, mtime=0)} if len(text) > PACK_ABOVE else content


class _View(anywidget.AnyWidget):
    """What the views have in common: script, style, and their content."""

    _esm = es_module()
    _css = style_sheet()

    content: Any = traitlets.Dict(allow_none=True, default_value=None).tag(
        sync=True, to_json=packed, from_json=lambda _, view: view.content
    )


class View(_View):
    """A clickable view of one report, which may still be growing.

    Traits that the kernel may set: `selected` (an id such as "b0"; also set by clicks), `settings` (what the controls show),
    `busy` (whether the buttons are disabled, because a run is queued or code is running), `running` (whether something that a
    button started is running), `can_run_again` (if False, there are no controls for another run), `edited` (whether the
    cell has run again with another text), `command` (the equivalent magic line), `diff`
    (`{"summary": str, "lines": [str], "times": str, ...}` or None) and `fallback` (the class of the static output that the view
    hides while it is shown).
    """

    selected = traitlets.Unicode("").tag(sync=True)
    settings = traitlets.Dict().tag(sync=True)
    busy = traitlets.Bool(False).tag(sync=True)
    can_run_again = traitlets.Bool(False).tag(sync=True)
    running = traitlets.Bool(False).tag(sync=True)
    edited = traitlets.Bool(False).tag(sync=True)
    command = traitlets.Unicode("").tag(sync=True)
    diff = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    now = traitlets.Dict().tag(sync=True)
    status = traitlets.Dict().tag(sync=True)
    printed: Any = traitlets.List().tag(sync=True)
    fallback = traitlets.Unicode("").tag(sync=True)

    def __init__(self, report: Report | None = None, **traits: Any) -> None:
        #: gets each request of the user: one of `{"kind": "run_again", "settings": {changed ones}, "regions": [{"target": ...,
        #: "set": "error" | "allow"}]}`, `{"kind": "run_graph", "graph": id}` and `{"kind": "stop"}`.  The view itself answers
        #: the other messages from the browser: to save the report, and to ask whether the kernel lives
        self.on_request: Callable[[dict[str, Any]], object] = lambda request: None
        #: the id that `show` selected, not the user: as the report grows, `show` may select something more important
        self._proposed: str | None = None
        self._report = report
        super().__init__(**traits)
        self.on_msg(self._on_message)
        if report is not None:
            self.show(report)

    def show(self, report: Report) -> None:
        """Show `report`, finished or not; what the user selected stays selected if it still exists."""
        content, self._report = view_model(report), report
        with self.hold_sync():
            self.content = content
            self.settings = self.settings or content["settings"]
            if self.selected == self._proposed or self.selected not in content["details"]:
                self.selected = self._proposed = content["first"]
            if not self.busy:
                self.now = {}

    def progress(self, state: Mapping[str, Any]) -> None:
        """Show what is being compiled: `frames` and `graphs` so far, `now` (a name), `seconds`; {} ends it.

        `stage`, where given, says in words what is done instead of compiling.
        """
        known = {k: state[k] for k in ("frames", "graphs", "seconds") if k in state}
        self.now = known | {k: shorten(str(state[k]), 80) for k in ("now", "stage") if state.get(k)}

    def message(self, text: str, kind: str = "note") -> None:
        """Show one status line; `kind`: "note", "success", "warning" or "error"; an empty text removes it."""
        self.status = {"text": printable(text, 4000), "kind": kind}

    def output(self, parts: list[dict[str, str]]) -> None:
        """Show what a rerun printed: [{"type": "stream" | "error" | "data", "text": str}]; [] removes it."""
        self.printed = [{"type": part["type"], "text": printable(part["text"], OUTPUT_LIMIT)} for part in parts]

    def _on_message(self, _: Any, content: Any, buffers: Any) -> None:
        request = checked_request(content)
        if request is None:
            return
        self.send({"kind": "ack", "id": content.get("id")})
        if request["kind"] == "save":
            self._save(request["path"])
        elif request["kind"] != "ping":  # a view that gets no answer says that its kernel is gone
            self.on_request(request)

    def _save(self, path: str) -> None:
        try:
            if self._report is None:
                raise ValueError("there is no report to save yet")
            self.message(f"saved {self._report.save(path)}", "success")
        except (ValueError, OSError) as error:
            self.message(str(error), "error")

    @traitlets.observe("selected")
    def _selected_changed(self, change: Any) -> None:
        self._proposed = None  # chosen by the user, even if it is what `show` once selected; `show` sets it again

    @traitlets.observe("busy")
    def _busy_changed(self, change: Any) -> None:
        if not change["new"]:
            self.now = {}

    def close(self) -> None:
        """Close the view, here and in the browser, and its layout, which ipywidgets would keep forever."""
        layout = getattr(self, "layout", None)
        super().close()
        if layout is not None:
            layout.close()

    def __repr__(self) -> str:
        return f"dynascope view: {self.content['headline'] if self.content else 'waiting for the compiler'}"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            # front ends show this text only if they cannot show the view; an empty view needs none, because the run shows the
            # report in another output when it ends (`runs/display.py`)
            data["text/plain"] = repr(self) if self.content else ""
        return bundle


class RanksView(_View):
    """A clickable view of all ranks of a job; it asks the kernel for nothing."""

    def __init__(self, report: RanksReport, **traits: Any) -> None:
        super().__init__(content={"page": ranks_page.body(report), "views": ranks_page.views(report)}, **traits)
        self._headline = report.headline()

    def __repr__(self) -> str:
        return f"dynascope view: {self._headline}"


def checked_request(content: Any) -> dict[str, Any] | None:
    """The message from the browser, reduced to the expected fields; None if it is of no known kind."""
    if not isinstance(content, dict):
        return None
    kind = str(content.get("kind"))
    if kind == "run_again":
        settings, regions = content.get("settings"), content.get("regions")
        return {
            "kind": kind,
            "settings": {str(k): v for k, v in settings.items()} if isinstance(settings, dict) else {},
            "regions": [
                {"target": str(r["target"]), "set": r["set"]}
                for r in (regions if isinstance(regions, list) else [])
                if isinstance(r, dict) and r.get("set") in ("error", "allow") and "target" in r
            ],
        }
    names = {"stop": [], "ping": [], "save": ["path"], "run_graph": ["graph"]}.get(kind)
    fields = {name: content.get(name) for name in names or ()}
    return None if names is None or not all(isinstance(text, str) for text in fields.values()) else {"kind": kind, **fields}
