"""A click on a symbol in an FX graph shows what it stands for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, expect

from dynascope.compiler.capture.recording import observe
from dynascope.widgets.render.page import to_html


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x.relu() * 2


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with observe() as recording:
        compiled = torch.compile(doubled, backend="eager", dynamic=True)
        compiled(torch.ones(4, 3))
    path = tmp_path_factory.mktemp("symbols") / "page.html"
    path.write_text(to_html(recording.report), "utf-8")
    return path


def test_a_symbol_opens_its_row(chromium: Browser, page_file: Path) -> None:
    context = chromium.new_context(offline=True, viewport={"width": 1100, "height": 900})
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    for part, where in (("graph", "svg .dyn-sym"), ("code", "pre .dyn-sym")):
        page.goto(f"{page_file.as_uri()}#g0/{part}")
        page.locator(where).last.click()
        expect(page.locator(".dyn-tab[aria-selected=true]")).to_have_text("Symbols (2)")
        expect(page.locator(".dyn-target")).to_contain_text("= x, dimension ")
    page.goto(f"{page_file.as_uri()}#g0/graph")
    page.locator("svg .dyn-fxnode").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator(".dyn-fxstatus .dyn-sym").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".dyn-target")).to_have_count(1)
    assert not faults
    context.close()


def test_an_address_wins_over_an_earlier_selection(chromium: Browser, page_file: Path) -> None:
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.goto(f"{page_file.as_uri()}#g0/code")
    page.locator("pre .dyn-sym").last.click()
    expect(page.locator(".dyn-tab[aria-selected=true]")).to_have_text("Symbols (2)")
    # on a busy machine the page writes the address of the selection after the user's, and before it hears of that
    page.evaluate('() => { location.hash = "#g0/graph"; history.replaceState(null, "", "#g0/symbols"); }')
    expect(page.locator("svg .dyn-fxnode").first).to_be_visible()
    expect(page).to_have_url(f"{page_file.as_uri()}#g0/graph")
    context.close()
