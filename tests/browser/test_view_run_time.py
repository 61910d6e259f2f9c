"""The run-time part of the stand-alone page: a time line to scale, and a row for each input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.lab import shot_path
from browser.view_pages import ROOT, Shown, grave_faults
from dynascope.compiler.lab.slices import Event, profile_of
from dynascope.compiler.report import FailedGuard, InputRun, Report
from dynascope.widgets.render.page import to_html

TRACE = ROOT / "tests" / "unit" / "compiler" / "profiler_traces" / "training_cpu.json"


@pytest.fixture
def shown(chromium: Browser, tmp_path: Path) -> Iterator[Shown]:
    """The page of a recorded step of training, with inputs."""
    data = json.loads(TRACE.read_text(encoding="utf-8"))
    report = Report.from_dict(data["report"])
    report.profile = profile_of([Event(**dict(zip(data["columns"], row, strict=True))) for row in data["events"]], report)
    report.inputs = [
        InputRun(arguments="float32[64, 64]", seconds=1e-3),
        InputRun(arguments="<img src=x onerror=alert(1)>", outcome="recompiled", frames=["f1"], recompiles=1,
                 compile_seconds=0.8, failed_guards=[FailedGuard(kind="expression", text="x had another size; " * 12)]),
    ]  # fmt: skip
    path = tmp_path / "page.html"
    path.write_text(to_html(report), "utf-8")
    context = chromium.new_context(offline=True, viewport={"width": 1100, "height": 900})
    page = context.new_page()
    page.goto(path.as_uri())
    page.locator(".dyn-detail").wait_for()
    yield Shown(page, page.locator("#dyn-view"))
    context.close()


def test_each_input_is_a_row_that_selects_what_was_compiled_for_it(shown: Shown) -> None:
    table = shown.root.locator(".dyn-inputs")
    expect(table.locator("summary")).to_have_text("2 inputs: 1 needs another compile (0.80 s)")
    expect(table.locator("tr")).to_have_count(2)
    expect(table.locator("code").nth(1)).to_have_text("<img src=x onerror=alert(1)>")
    table.get_by_role("button", name="recompiled 1 frame").click()
    assert shown.selected() == ["f1"]


def test_the_time_line_leads_to_graphs_and_their_backwards_and_to_the_dearest_break(shown: Shown) -> None:
    pieces = shown.root.locator(".dyn-seg.dyn-k-graph")
    labels = [pieces.nth(i).get_attribute("aria-label") or "" for i in range(pieces.count())]
    assert [label.partition(":")[0] for label in labels] == ["graph 0", "graph 1", "backward of graph 1", "backward of graph 0"]
    pieces.nth(2).click()
    assert shown.selected() == ["g1"]
    shown.root.locator(".dyn-do").get_by_role("button").first.click()
    assert shown.selected() == ["b0"]


def test_nothing_leaves_its_box_and_axe_finds_nothing_grave(shown: Shown) -> None:
    for width in (1200, 600):
        shown.page.set_viewport_size({"width": width, "height": 900})
        shown.page.wait_for_timeout(60)
        assert shown.overflowing() == [], width
    assert grave_faults(shown.page, "#dyn-view") == []
    shown.root.locator(".dyn-time:not(.dyn-compile)").screenshot(path=shot_path("run-time-inputs"))
