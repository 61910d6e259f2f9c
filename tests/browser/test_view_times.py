"""Times in the stand-alone page: a time line to scale, a row for each input, and the phases of the compile."""

from __future__ import annotations

from playwright.sync_api import expect

from browser.view_pages import HOSTILE, OpenPage


def test_each_input_is_a_row_that_selects_what_was_compiled_for_it(open_page: OpenPage) -> None:
    shown = open_page("run_time")
    table = shown.root.locator(".dyn-inputs")
    expect(table.locator("summary")).to_have_text("2 inputs, each in the recorded state: 1 needs another compile (0.80 s)")
    expect(table.locator("tr")).to_have_count(2)
    expect(table.locator("code").nth(1)).to_have_text(HOSTILE)
    table.get_by_role("button", name="compiled again 1 time").click()
    assert shown.selected() == ["f1"]


def test_the_time_line_leads_to_graphs_and_their_backwards_and_to_the_dearest_break(open_page: OpenPage) -> None:
    shown = open_page("run_time")
    pieces = shown.root.locator(".dyn-seg.dyn-k-graph")
    labels = [pieces.nth(i).get_attribute("aria-label") or "" for i in range(pieces.count())]
    assert [label.partition(":")[0] for label in labels] == ["graph 0", "graph 1", "backward of graph 1", "backward of graph 0"]
    pieces.nth(2).click()
    assert shown.selected() == ["g1"]
    shown.root.locator(".dyn-do").get_by_role("button").first.click()
    assert shown.selected() == ["b0"]


def test_the_compile_time_opens_and_leads_to_the_frames(open_page: OpenPage) -> None:
    shown = open_page("compile_time")
    part = shown.root.locator(".dyn-compile")
    expect(part.locator("summary")).to_contain_text("Compile time · 77 s · C++ and Triton 74%")
    phases = part.locator("table")
    expect(phases).not_to_be_visible()
    part.locator("summary").click()
    expect(phases.locator("tr")).to_have_count(11)
    phases.get_by_role("button").first.click()
    assert shown.selected() == ["f0"]
    expect(shown.root.locator(".dyn-detail")).to_contain_text("compiled in")
