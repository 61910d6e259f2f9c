"""The saved page of a large report: overview, tree by keyboard, groups of causes; without a network."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser.lab import shot_path
from browser.view_pages import OpenPage, Shown, grave_faults, sample


@pytest.fixture
def shown(open_page: OpenPage) -> Shown:
    return open_page("model", width=1200)


def test_what_to_do_first_and_the_causes_lead_to_their_places(shown: Shown) -> None:
    expect(shown.root.locator(".dyn-brow")).to_have_count(0)
    expect(shown.root.locator(".dyn-do")).to_contain_text("Do this first")
    expect(shown.root.locator(".dyn-do")).to_contain_text("or profile=10, measures it")
    expect(shown.root.locator(".dyn-shared")).to_have_count(2)
    expect(shown.root.locator(".dyn-shared[open]")).to_have_count(1)
    shown.root.locator(".dyn-spot[data-id='b3']").click()
    assert "Block3.forward" in shown.detail()
    expect(shown.root.locator(".dyn-call[aria-selected='true']")).to_contain_text("Block3.forward")
    expect(shown.root.locator(".dyn-spot[aria-pressed='true']")).to_have_count(1)
    expect(shown.root.locator(".dyn-ln[aria-selected='true']")).to_contain_text("if x.sum() > 0")
    shown.root.locator(".dyn-first").click()
    expect(shown.root.locator(".dyn-spot[aria-pressed='true']")).to_have_attribute("data-id", "b0")
    shown.root.locator(".dyn-shared").nth(1).locator("summary").click()
    expect(shown.root.locator(".dyn-shared[open]")).to_have_count(2)


def test_the_tree_of_calls_by_keyboard(shown: Shown) -> None:
    grid = shown.root.get_by_role("treegrid", name="calls")
    rows = grid.get_by_role("row")
    expect(grid.locator(".dyn-call[tabindex='0']")).to_have_count(1)
    names = rows.evaluate_all("rows => rows.map(r => [r.getAttribute('aria-level'), r.querySelector('b').textContent])")
    assert names[:3] == [["1", "step"], ["2", "Block0.forward"], ["3", "Block1.forward"]]
    grid.locator(".dyn-call[tabindex='0']").focus()
    focused = grid.locator(".dyn-call:focus")
    shown.page.keyboard.press("Home")
    expect(focused).to_contain_text("step")
    shown.page.keyboard.press("ArrowRight")  # it is open: to the first row below it
    expect(focused).to_contain_text("Block0")
    shown.page.keyboard.press("ArrowLeft")
    expect(focused).to_have_attribute("aria-expanded", "false")
    expect(rows).to_have_count(2)
    shown.page.keyboard.press("ArrowLeft")
    expect(focused).to_contain_text("step")
    shown.page.keyboard.press("ArrowDown")
    shown.page.keyboard.press("ArrowRight")
    expect(focused).to_have_attribute("aria-expanded", "true")
    shown.page.keyboard.press("End")
    last = focused.locator("b").text_content() or "?"
    shown.page.keyboard.press("Enter")
    assert last in shown.detail()
    expect(shown.root.locator(".dyn-detail")).to_be_focused()


def test_the_source_folds_what_is_far_from_the_selected_line(shown: Shown) -> None:
    files = shown.root.get_by_role("group", name="files").get_by_role("button")
    expect(files).to_have_count(2)
    expect(files.nth(1)).to_contain_text("model.py 6 ✂")
    expect(files.nth(1)).to_have_attribute("aria-pressed", "true")
    expect(shown.line(120)).to_have_count(0)
    expect(shown.line(8)).to_contain_text("if x.sum() > 0")
    shown.root.locator(".dyn-quiet").last.click()
    expect(shown.line(120)).to_be_attached()
    shown.root.get_by_role("group", name="files").get_by_role("button").first.click()
    expect(shown.line(5)).to_contain_text("return zoo.model(x)")
    expect(shown.root.locator(".dyn-src [role='group']")).to_have_count(1)
    shown.root.locator(".dyn-spot[data-id='b3']").click()
    expect(files.nth(1)).to_have_attribute("aria-pressed", "true")


#: in a page: arrows of the split graph whose ends are on nothing, and what is drawn outside of the picture
LOOSE = """root => { const wrong = [], svg = root.querySelector('.dyn-pane svg');
  const placed = n => { const { x, y, width, height } = n.querySelector('.dyn-main').getBBox();
    const { e, f } = n.transform.baseVal.consolidate().matrix; return { x: x + e, y: y + f, width, height }; };
  const at = new Map([...svg.querySelectorAll('.dyn-node')].map(n => [n.dataset.id, placed(n)]));
  const near = (b, x, y) => b && x > b.x - 2 && x < b.x + b.width + 2 && y > b.y - 2 && y < b.y + b.height + 2;
  for (const arrow of svg.querySelectorAll('.dyn-arrow')) {
    const a = arrow.getPointAtLength(0), b = arrow.getPointAtLength(arrow.getTotalLength());
    if (!near(at.get(arrow.dataset.s), a.x, a.y)) wrong.push('from nowhere: ' + arrow.textContent);
    if (!near(at.get(arrow.dataset.t), b.x, b.y)) wrong.push('to nowhere: ' + arrow.textContent);
  }
  const nodes = [...svg.querySelectorAll('.dyn-node')].filter(n => n.querySelector('.dyn-frame'));
  const frames = nodes.map(n => at.get(n.dataset.id));
  for (const arrow of svg.querySelectorAll('.dyn-arrow')) {
    const length = arrow.getTotalLength();
    const spots = [...Array(41).keys()].map(i => arrow.getPointAtLength(length * i / 40));
    const [first, last] = [spots[0], spots[40]];
    for (const b of frames) if (!near(b, first.x, first.y) && !near(b, last.x, last.y) &&
      spots.some(p => p.x > b.x + 2 && p.x < b.x + b.width - 2 && p.y > b.y + 2 && p.y < b.y + b.height - 2))
      wrong.push('through a frame: ' + arrow.textContent);
  }
  const view = svg.viewBox.baseVal;
  for (const [id, b] of at) if (b.x < 0 || b.y < 0 || b.x + b.width > view.width || b.y + b.height > view.height)
    wrong.push(id);
  return wrong; }"""
#: in a page: frames that lie over each other
OVERLAPS = """root => {
  const all = [...root.querySelectorAll('.dyn-pane .dyn-node')].filter(n => n.querySelector('.dyn-frame'));
  const boxes = all.map(n => [n.dataset.id, n.querySelector('.dyn-main').getBoundingClientRect()]);
  return boxes.flatMap(([id, a], i) => boxes.slice(i + 1).filter(([, b]) => a.x < b.x + b.width && b.x < a.x + a.width &&
    a.y < b.y + b.height && b.y < a.y + a.height).map(([other]) => `${id} over ${other}`)); }"""


def test_the_split_graph_shows_what_is_selected_with_what_is_around_it(open_page: OpenPage) -> None:
    report = sample("model")
    shown = open_page(report, width=800)
    ids = [*(b.id for b in report.breaks), *(f.id for f in report.frames), *(g.id for g in report.graphs)]
    for id in ids:
        shown.page.evaluate("id => { location.hash = id; }", id)
        expect(shown.root.locator(".dyn-split .dyn-node[aria-pressed='true']")).to_have_count(1)
        assert shown.root.evaluate(LOOSE) == [], id
        assert shown.root.evaluate(OVERLAPS) == [], id
        assert shown.overflowing() == [], id
    shown.page.screenshot(path=shot_path("focus"), full_page=True)


def test_versions_of_a_frame_are_one_node_with_a_row(shown: Shown) -> None:
    shown.page.evaluate("() => { location.hash = 'f20'; }")
    expect(shown.node("f20")).to_have_attribute("aria-pressed", "true")
    expect(shown.node("f20")).to_contain_text("v3")
    expect(shown.node("f1")).to_contain_text("compiled 3 times")
    shown.node("f16").click()
    assert "Why recompiled" in shown.detail()


def test_boxes_for_what_is_not_shown_lead_to_it(shown: Shown) -> None:
    shown.root.locator(".dyn-spot[data-id='b3']").click()
    before = shown.boxes("more").first
    expect(before).to_contain_text("from Block1")
    before.locator("text").click()
    assert shown.selected() == ["f2"]
    expect(shown.boxes("break").first).to_be_visible()


def test_the_whole_graph(shown: Shown) -> None:
    few = shown.root.locator(".dyn-split .dyn-node").count()
    shown.root.locator(".dyn-call", has_text="Block6").first.click()
    (selected,) = shown.selected()
    whole = shown.root.get_by_role("button", name="Whole graph")
    whole.click()
    expect(whole).to_have_attribute("aria-pressed", "true")
    assert shown.root.locator(".dyn-split .dyn-node").count() > few
    assert shown.selected() == [selected]
    pane = shown.root.locator(".dyn-pane").bounding_box()
    head = shown.node(selected).locator("text").first.bounding_box()
    assert pane["y"] < head["y"] < pane["y"] + pane["height"]
    assert (
        shown.root.evaluate("root => { const p = root.querySelector('.dyn-pane'); return p.scrollWidth - p.clientWidth; }") <= 1
    )
    assert shown.root.evaluate(LOOSE) == []
    assert grave_faults(shown.page, "html") == []
    whole.click()
    expect(shown.root.locator(".dyn-split .dyn-node[aria-pressed='true']")).to_have_count(1)
