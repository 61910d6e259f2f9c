"""The compile time in the stand-alone page: folded at first, the longest phases, linked to the frames."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.lab import shot_path
from browser.view_pages import ROOT, Shown, grave_faults
from dynascope.compiler.capture.trace_files import load
from dynascope.widgets.render.page import to_html

HOSTILE = "<img src=x onerror=alert(1)>"
LOG = ROOT / "tests" / "traces" / "compile_time-2.13.0.log.gz"


@pytest.fixture
def shown(chromium: Browser, tmp_path: Path) -> Iterator[Shown]:
    report = load(LOG)
    assert report.compile_time is not None
    report.compile_time.phases[0].name = HOSTILE
    path = tmp_path / "page.html"
    path.write_text(to_html(report), "utf-8")
    context = chromium.new_context(offline=True, viewport={"width": 1100, "height": 900})
    page = context.new_page()
    page.goto(path.as_uri())
    page.locator(".dyn-detail").wait_for()
    yield Shown(page, page.locator("#dyn-view"))
    context.close()


def test_it_opens_and_leads_to_the_frames(shown: Shown) -> None:
    part = shown.root.locator(".dyn-compile")
    expect(part.locator("summary")).to_contain_text("Compile time · 77 s · C++ and Triton 74%")
    phases = part.locator("table")
    expect(phases).not_to_be_visible()
    part.locator("summary").click()
    expect(phases.locator("tr")).to_have_count(11)
    assert part.locator("img").count() == 0
    phases.get_by_role("button").first.click()
    assert shown.selected() == ["f0"]
    expect(shown.root.locator(".dyn-detail")).to_contain_text("compiled in")


def test_nothing_leaves_its_box_and_axe_finds_nothing_grave(shown: Shown) -> None:
    shown.root.locator(".dyn-compile summary").click()
    for width in (1200, 800, 600):
        shown.page.set_viewport_size({"width": width, "height": 900})
        shown.page.wait_for_timeout(60)
        assert shown.overflowing() == [], width
    assert grave_faults(shown.page, "#dyn-view") == []
    shown.root.locator(".dyn-compile").screenshot(path=shot_path("compile-time"))
