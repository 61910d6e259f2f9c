"""The stand-alone page, the model it shows, and the widget."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from samples import SAMPLES, many, one_break, refused

from dynascope.widgets.model import view_model
from dynascope.widgets.render.page import to_html
from dynascope.widgets.view import View, checked_request
from tools import generated


def data_of(html: str) -> Any:
    match = re.search(r'<script type="application/json" id="dyn-data"([^>]*)>(.*?)</script>', html, re.DOTALL)
    assert match
    text = match[2]
    if "gzip" in match[1]:
        text = gzip.decompress(base64.b64decode(text)).decode()
    return json.loads(text)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_holds_its_model_and_loads_nothing(name: str) -> None:
    report = SAMPLES[name]()
    html = to_html(report)
    assert data_of(html) == json.loads(json.dumps(view_model(report)))
    assert "default-src 'none'" in html
    assert html.count("<script") == 2
    assert not re.search(r"<(?:link|iframe|object|embed)\b|<script[^>]+src=|@import", html)


def test_one_function_of_the_front_end_parses_text_as_html(root: Path) -> None:
    for path in (root / "widgets" / "frontend").glob("*.js"):
        text = path.read_text("utf-8")
        if path.name == "dom.js":
            text = text.replace("template.innerHTML = text;", "", 1)
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in text, (path.name, word)


def test_the_front_end_has_the_types_of_what_python_sends(root: Path) -> None:
    text = (root / "widgets" / "frontend" / "wire.d.ts").read_text("utf-8")
    assert text == generated.wire_types(), "run `python -m tools.generated wire`"


def test_the_view_shows_grows_and_tells() -> None:
    view = View()
    assert view.content is None
    assert repr(view) == "dynascope view: waiting for the compiler"
    view.busy = True
    view.progress({"frames": 1, "graphs": 0, "now": "block", "seconds": 0.5})
    assert view.now["now"] == "block"
    view.show(one_break())
    assert (view.selected, view.now["frames"]) == ("b0", 1)
    view.selected = "g1"
    view.show(one_break())
    assert view.selected == "g1"
    view.busy = False
    assert view.now == {}
    view.message("saved \x00", "success")
    assert view.status == {"text": "saved \u2400", "kind": "success"}
    view.output([{"type": "stream", "text": "hi"}])
    assert view.printed == [{"type": "stream", "text": "hi"}]
    view.close()


def test_a_large_model_travels_compressed_a_small_one_as_it_is() -> None:
    view = View(many())
    sent = view.get_state(["content"])["content"]
    assert set(sent) == {"gzip"}
    assert len(sent["gzip"]) < 0.1 * len(json.dumps(view.content))
    assert json.loads(gzip.decompress(sent["gzip"])) == json.loads(json.dumps(view.content))
    view.set_state({"content": {"gzip": b""}})  # what a front end sends back changes nothing here
    assert view.content["name"] == "f"
    view.show(one_break())
    assert view.get_state(["content"])["content"] == view.content
    view.close()


def test_a_closed_view_leaves_no_widget_behind() -> None:
    from ipywidgets.widgets.widget import _instances

    before = set(_instances)
    for _ in range(3):
        View(one_break()).close()
    assert set(_instances) == before


def test_as_the_report_grows_the_view_turns_to_what_matters_until_the_user_chooses() -> None:
    whole = refused()
    early = refused()
    early.breaks, early.error = [], None
    view = View(early)
    assert view.selected == "f0"
    view.show(whole)
    assert view.selected == "b0"
    view.selected = "f0"
    view.show(whole)
    assert view.selected == "f0"
    view.close()

    view = View(early)
    view.selected = "g0"
    view.selected = "f0"  # back to what the view had turned to
    view.show(whole)
    assert view.selected == "f0"
    view.close()


def test_requests_are_answered_and_handed_on() -> None:
    view = View(one_break())
    sent: list[Any] = []
    heard: list[Any] = []
    view.send = lambda content, buffers=None: sent.append(content)
    view.on_request = heard.append
    view._on_message(
        view,
        {"kind": "run_again", "id": "1", "settings": {"fullgraph": True}, "regions": [{"target": "f", "set": "error"}]},
        [],
    )
    view._on_message(view, {"kind": "nonsense", "id": "2"}, [])
    assert sent == [{"kind": "ack", "id": "1"}]
    assert heard == [{"kind": "run_again", "settings": {"fullgraph": True}, "regions": [{"target": "f", "set": "error"}]}]
    view.close()


def test_a_view_saves_what_it_shows_whoever_made_it(tmp_path: Path) -> None:
    view = one_break().view()
    heard: list[Any] = []
    view.on_request = heard.append
    for name in ("report.html", "report.svg"):
        view._on_message(view, {"kind": "save", "id": "1", "path": str(tmp_path / name)}, [])
        assert view.status == {"text": f"saved {tmp_path / name}", "kind": "success"}
        assert (tmp_path / name).stat().st_size > 1000
    for wrong in ("report.exe", "report.mimebundle"):
        view._on_message(view, {"kind": "save", "id": "1", "path": str(tmp_path / wrong)}, [])
        assert view.status["kind"] == "error"
        assert "use one of .html, .json, .svg, .dot, .txt" in view.status["text"]
    waiting = View()
    waiting._on_message(waiting, {"kind": "save", "id": "1", "path": str(tmp_path / "none.html")}, [])
    assert waiting.status["text"] == "there is no report to save yet"
    assert heard == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "report.svg"]
    view.close()
    waiting.close()


def test_requests_hold_only_what_is_expected() -> None:
    assert checked_request({"kind": "stop", "more": 1}) == {"kind": "stop"}
    assert checked_request({"kind": "save", "path": "a.html"}) == {"kind": "save", "path": "a.html"}
    assert checked_request({"kind": "save", "path": 3}) is None
    assert checked_request("stop") is None
    run = {"kind": "run_graph", "graph": "g0"}
    assert checked_request(run) == checked_request({**run, "more": 1}) == run
    assert checked_request({**run, "graph": 3}) is checked_request({"kind": "run_graph"}) is None
    wrong = {"kind": "run_again", "settings": 3, "regions": [{"target": "f", "set": "rm"}, 4]}
    assert checked_request(wrong) == {"kind": "run_again", "settings": {}, "regions": []}
