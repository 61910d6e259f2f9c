"""The page of a job's ranks, offline: differences, two groups side by side, search; its size."""

from __future__ import annotations

import time

from playwright.sync_api import expect
from unit.compiler.test_rank_reports import PLANTED

from browser.lab import shot_path
from browser.view_pages import OpenPage, ranks


def test_what_differs_is_one_click_away(open_page: OpenPage) -> None:
    page = open_page(ranks(16, {5: PLANTED["no break"][0], 9: PLANTED["another size"][0]}), width=1200).page
    cards = page.locator(".dyn-rk-card")
    expect(cards).to_have_count(2)
    expect(cards.first).to_contain_text("rank 9 differs from most ranks in compile 1 of 4: embed at train.py:11")
    cards.nth(1).locator("summary").click()
    group, beside = page.locator(".dyn-rk-bar select").all()
    expect(group).to_have_value("1")
    expect(beside).to_have_value("0")
    details = page.locator(".dyn-rk-pair .dyn-detail")
    expect(details).to_have_count(2)
    for side in (0, 1):
        expect(details.nth(side)).to_contain_text("Frame block")
    boxes = [pane.bounding_box() for pane in page.locator(".dyn-rk-pair .dyn-split").all()]
    assert boxes[0]
    assert boxes[1]
    assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    beside.select_option("-1")
    expect(details).to_have_count(1)
    group.select_option("2")
    expect(details).to_contain_text("Graph break")


def test_a_rank_is_found_by_number_and_status(open_page: OpenPage) -> None:
    page = open_page(ranks(16, {5: PLANTED["no break"][0]})).page
    page.get_by_text("17 ranks", exact=True).click()
    search = page.get_by_label("Find a rank")
    found = page.locator("[data-rank]:visible")
    search.fill("5")
    expect(found).to_have_text(["rank 5, compiled in 4.00 s"])
    search.fill("left no file")
    expect(found).to_have_text(["rank 16 left no file that can be read"])
    search.fill("")
    expect(found).to_have_count(17)


def test_a_thousand_ranks_open_at_once(open_page: OpenPage) -> None:
    report = ranks(1024, {511: PLANTED["no break"][0], **dict.fromkeys(range(700, 708), PLANTED["another size"][0])})
    assert len(report.to_html()) < 5_000_000
    start = time.perf_counter()
    page = open_page(report).page
    assert time.perf_counter() - start < 15  # under 1 s on a machine of its own
    page.screenshot(path=shot_path("ranks"), full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
