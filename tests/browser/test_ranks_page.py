"""The page of a job's ranks, offline: differences, two groups side by side, search; hostile text; axe; size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from unit.compiler.test_rank_reports import PLANTED, Change, made, record

from browser.lab import shot_path
from browser.view_pages import grave_faults
from dynascope.compiler.ranks import RanksReport, merge
from dynascope.compiler.report import Report

OpenJob = Callable[..., Page]


def job(ranks: int, odd: dict[int, Change]) -> RanksReport:
    """A made-up job in which some ranks differ, one has no end and one is missing."""
    records = []
    for rank in range(ranks):
        report = made(rank)
        odd.get(rank, lambda report: None)(report)
        records.append(record(report, rank))
        records[-1].rank.seconds = [1.0 + (rank * 7 % 5) / 10 for _ in records[-1].rank.seconds]
    records[ranks // 2].rank.status = "no end"
    records[1].rank.seconds[1] = 12.0
    return merge(records, world_size=ranks + 1)


@pytest.fixture
def open_job(chromium: Browser, tmp_path: Path) -> Iterator[OpenJob]:
    """open_job(report): the stand-alone page of a job, in a browser without a network."""
    contexts = []

    def opener(report: RanksReport, *, dark: bool = False, width: int = 1200) -> Page:
        path = tmp_path / "job.html"
        path.write_text(report.to_html(), "utf-8")
        scheme = "dark" if dark else "light"
        context = chromium.new_context(offline=True, viewport={"width": width, "height": 1000}, color_scheme=scheme)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.faults = []  # type: ignore[attr-defined]
        page.on("console", lambda m: page.faults.append(m.text) if m.type in ("error", "warning") else None)  # type: ignore[attr-defined]
        page.on("pageerror", lambda e: page.faults.append(str(e)))  # type: ignore[attr-defined]
        page.goto(path.as_uri())
        page.locator(".dyn-ranks .dyn-detail").first.wait_for()
        return page

    yield opener
    for context in contexts:
        context.close()


def test_what_differs_is_one_click_away(open_job: OpenJob) -> None:
    page = open_job(job(16, {5: PLANTED["no break"][0], 9: PLANTED["another size"][0]}))
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
    assert page.faults == []  # type: ignore[attr-defined]


def test_a_rank_is_found_by_number_and_status(open_job: OpenJob) -> None:
    page = open_job(job(16, {5: PLANTED["no break"][0]}))
    page.get_by_text("17 ranks", exact=True).click()
    search = page.get_by_label("Find a rank")
    found = page.locator("[data-rank]:visible")
    search.fill("5")
    expect(found).to_have_text(["rank 5, compiled in 4.00 s"])
    search.fill("wrote nothing")
    expect(found).to_have_text(["rank 16 wrote nothing"])
    search.fill("")
    expect(found).to_have_count(17)


@pytest.mark.parametrize("dark", [False, True])
def test_a_thousand_ranks_open_at_once_and_are_accessible(open_job: OpenJob, dark: bool) -> None:
    report = job(1024, {511: PLANTED["no break"][0], **dict.fromkeys(range(700, 708), PLANTED["another size"][0])})
    assert len(report.to_html()) < 5_000_000
    scheme = "dark" if dark else "light"
    start = time.perf_counter()
    page = open_job(report, dark=dark)
    assert time.perf_counter() - start < 15  # under 1 s on a machine of its own
    page.screenshot(path=shot_path(f"ranks-{scheme}"), full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert grave_faults(page, ".dyn-ranks") == []


def test_hostile_text_stays_text(open_job: OpenJob) -> None:
    def hostile(report: Report) -> None:
        report.breaks[0].source = "</script><img src=x onerror=alert(1)>"
        report.breaks[0].line = 22
        for frame in report.frames:
            frame.name = "<em>bold</em>"

    page = open_job(job(4, {1: hostile}), width=700)
    page.locator("summary", has_text="5 ranks").click()
    assert page.locator("em").count() == 0
    assert page.locator("img[onerror]").count() == 0
    assert page.faults == []  # type: ignore[attr-defined]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
