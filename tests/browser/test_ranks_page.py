"""The page of a job's ranks, offline: strip, search, differences, matrix, two groups side by side; hostile text; axe; size."""

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
        page.locator(".dyn-ranks .dyn-detail").wait_for()
        return page

    yield opener
    for context in contexts:
        context.close()


def test_what_differs_is_one_click_away(open_job: OpenJob) -> None:
    page = open_job(job(16, {5: PLANTED["no break"][0], 9: PLANTED["another size"][0]}))
    cards = page.locator(".dyn-rk-card")
    expect(cards).to_have_count(2)
    expect(cards.first).to_contain_text("rank 9 differs from most ranks in compile 1 of 4: embed at train.py:11")
    cards.nth(1).click()
    pair = page.locator(".dyn-rk-pair select")
    expect(pair.first).to_have_value("1")
    expect(page.locator(".dyn-rk-first")).to_contain_text("block")
    expect(page.locator(".dyn-rk-tab[aria-pressed=true]")).to_contain_text("1 graph break")  # the break is the others'
    expect(page.locator(".dyn-ranks .dyn-detail")).to_contain_text("Frame block")
    page.locator(".dyn-rk-tab").first.click()
    expect(page.locator(".dyn-rk-tab[aria-pressed=true]")).to_contain_text("rank 5: 4 graphs")
    assert page.faults == []  # type: ignore[attr-defined]


def test_a_rank_is_found_by_number_and_status(open_job: OpenJob) -> None:
    page = open_job(job(16, {5: PLANTED["no break"][0]}))
    search = page.get_by_label("Find a rank")
    search.fill("5")
    expect(page.locator(".dyn-rk-found")).to_contain_text("rank 5, compiled in 4.00 s")
    expect(page.locator(".dyn-rk-run.dyn-rk-chosen")).to_have_attribute("data-first", "5")
    search.fill("missing")
    expect(page.locator(".dyn-rk-found")).to_contain_text("rank 16 wrote nothing")
    search.fill("77")
    expect(page.locator(".dyn-rk-found")).to_have_text("no such rank")
    page.locator(".dyn-rk-canvas").hover(position={"x": 80, "y": 20})
    expect(page.locator(".dyn-rk-hover")).to_contain_text("rank 1: block at train.py:20, compiled, 12 s")
    page.locator(".dyn-rk-canvas").click(position={"x": 80, "y": 20})
    expect(page.locator(".dyn-rk-found")).to_contain_text("compile 2: block")


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
            frame.name = "<b>bold</b>"

    page = open_job(job(4, {1: hostile}), width=700)
    assert page.locator("b", has_text="bold").count() == 0
    assert page.locator("img[onerror]").count() == 0
    assert page.faults == []  # type: ignore[attr-defined]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
