"""What holds for every view: nothing is cut at any width, hostile text stays text, and axe finds nothing grave."""

from __future__ import annotations

import json

import pytest
from example_counts import some
from playwright.sync_api import Browser

from browser.lab import shot_path
from browser.view_pages import OpenPage, grave_faults, ranks, sample, samples
from dynascope.compiler.report import Report
from dynascope.widgets.model import view_model
from dynascope.widgets.render.page import PAGE_CSS, es_module, style_sheet

#: of cells, with JupyterLab's sidebar open, in windows of 1,100 to 1,680 pixels
WIDTHS = some((668, 1008, 818, 1248, 918), 3)
#: in a page: what is wrong with the texts of a view.  A name's class and a file's folders may give way (`.dyn-gives`); code and
#: pictures scroll.
FAULTS = r"""root => {
  const wrong = [], shown = [], view = root.querySelector('.dyn'), edge = view.getBoundingClientRect();
  const SCROLLS = '.dyn-code, .dyn-fxlist, .dyn-fxpane, .dyn-pane, .dyn-lanes, svg, option, textarea';
  const WHOLE = '.dyn-event, .dyn-pill, .dyn-hits, .dyn-btn, .dyn-counts > span, .dyn-rank, .dyn-choice, .dyn-note';
  const VISIBLE = { visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: true };
  const range = document.createRange(), texts = document.createTreeWalker(view, NodeFilter.SHOW_TEXT);
  const lines = node => [...node.getClientRects()].filter(r => r.width > 0.5);
  const tops = rects => new Set(rects.map(r => Math.round(r.top / 4))).size;
  for (let text; (text = texts.nextNode()); ) {
    const e = text.parentElement, words = text.data.trim();
    if (!words || e.closest(SCROLLS) || !e.checkVisibility(VISIBLE)) continue;
    range.selectNodeContents(text);
    const rects = lines(range), size = parseFloat(getComputedStyle(e).fontSize), say = `${e.className}: ${words.slice(0, 60)}`;
    const gives = e.closest('.dyn-gives');
    if (gives && gives.clientWidth < Math.min(words.length, 8) * size * 0.4) wrong.push(`nothing is left of ${say}`);
    let seen = { left: -1e6, top: -1e6, right: 1e6, bottom: 1e6 };
    for (let a = e; a !== view.parentElement; a = a.parentElement) {
      const { overflowX: x, overflowY: y } = getComputedStyle(a), b = a.getBoundingClientRect();
      if (x !== 'visible') seen = { ...seen, left: Math.max(seen.left, b.left), right: Math.min(seen.right, b.right) };
      if (y !== 'visible') seen = { ...seen, top: Math.max(seen.top, b.top), bottom: Math.min(seen.bottom, b.bottom) };
    }
    for (const r of rects) {
      const top = Math.max(r.top, seen.top), bottom = Math.min(r.bottom, seen.bottom);
      if (bottom - top < 2) continue; // below in a list that scrolls, or a label that does not fit
      const out = r.left < seen.left - 1 || r.right > seen.right + 1 || r.right > edge.right + 1;
      if (out && !gives) wrong.push(`cut: ${say}`);
      shown.push({ e, say, top, bottom, left: Math.max(r.left, seen.left), right: Math.min(r.right, seen.right) });
    }
    for (const { 0: word, index } of text.data.matchAll(/\S+/g)) {
      if (word.length > 24 || /[-/?]/.test(word) || e.closest('code')) continue; // a line may end after these
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      if (tops(lines(range)) > 1) wrong.push(`"${word}" is broken: ${say}`);
    }
    let box = e;
    while (getComputedStyle(box).display.startsWith('inline') && box !== view) box = box.parentElement;
    if (tops(rects) > 1 && box.clientWidth < 24 * size * 0.5) wrong.push(`only ${box.clientWidth} px: ${say}`);
  }
  for (const e of view.querySelectorAll(WHOLE)) {
    range.selectNodeContents(e);
    const rects = lines(range);
    if (e.checkVisibility() && Math.max(...rects.map(r => r.top)) >= Math.min(...rects.map(r => r.bottom)))
      wrong.push(`not on one line: ${e.className}: ${e.textContent}`);
  }
  shown.sort((a, b) => a.top - b.top);
  shown.forEach((a, i) => {
    for (let n = i + 1; n < shown.length && shown[n].top < a.bottom - 3; n++) {
      const b = shown[n], wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      if (a.e !== b.e && wide > 2 && Math.min(a.bottom, b.bottom) - b.top > 3) wrong.push(`${a.say} over ${b.say}`);
    }
  });
  for (const columns of view.querySelectorAll('.dyn-mid, .dyn-over-cols, .dyn-dbody')) {
    const boxes = [...columns.children].map(c => c.getBoundingClientRect()).filter(b => b.width);
    if (boxes.length > 1 && Math.abs(boxes[0].top - boxes[1].top) < 2)
      for (const { width } of boxes) if (width < 480) wrong.push(`a column of ${width} px in ${columns.className}`);
  }
  return [...new Set(wrong)]; }"""
#: in a page: opens all that is folded
OPEN = "root => { for (const fold of root.querySelectorAll('.dyn details')) fold.open = true; }"
#: in a page: waits until it is drawn at its new size
DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
TRAITS = {
    "selected": "", "busy": False, "can_run_again": True, "running": False, "edited": True, "fallback": "",
    "command": "%%compile --backend aot_eager --region 4=error", "now": {}, "printed": [{"type": "stdout", "text": "done"}],
    "diff": {"summary": "1 graph break fewer", "lines": ["In[3]:4 is now allowed"], "times": "compiled in 0.8 s"},
    "status": {"text": "saved as report.html", "kind": "success"},
}  # fmt: skip


def live_page(report: Report) -> str:
    """A page with the view of a notebook: its buttons are there, and nobody answers them."""
    data = json.dumps({**TRAITS, "content": view_model(report), "settings": report.settings}).replace("<", "\\u003c")
    model = "{ get: name => traits[name], set() {}, save_changes() {}, send() {}, on() {}, off() {} }"
    script = f"{es_module()}\nconst traits = {data};\nrender({{ model: {model}, el: document.getElementById('dyn-view') }});"
    style = f"<style>{style_sheet()}{PAGE_CSS}</style>"
    return f'<!doctype html><meta charset="utf-8">{style}<div id="dyn-view"></div><script type="module">{script}</script>'


#: those with the longest names and the most rows
WIDE = ("many", "long_names", "hostile")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in WIDE else [pytest.mark.full]) for n in samples()])
@pytest.mark.parametrize("live", [False, True], ids=["page", "live"])
def test_nothing_is_cut_at_any_width(open_page: OpenPage, live: bool, name: str) -> None:
    shown = open_page(live_page(sample(name)) if live else name)
    measured = name in ("compile_time", "run_time")  # their tables may be narrow
    faults: dict[str, list[str]] = {}

    def look(at: str, width: int) -> None:
        shown.page.set_viewport_size({"width": width + 32, "height": 900})
        shown.page.evaluate(DRAWN)
        faults[f"{at}, {width} px"] = shown.overflowing() + ([] if measured or width == 600 else shown.root.evaluate(FAULTS))

    for width in (600, *WIDTHS):
        look("folded", width)
    shown.root.evaluate(OPEN)
    for width in (600, *WIDTHS):
        look("open", width)
    for tab in shown.tabs():
        look(tab, 668)
    assert shown.page.evaluate("() => window.pwned") is None
    shown.page.screenshot(path=shot_path(f"widths-{name}-{'live' if live else 'page'}"), full_page=True)
    assert not any(faults.values()), faults


@pytest.mark.parametrize("name", ["hostile", "compile_time", "run_time", "ranks"])
def test_hostile_text_does_nothing(open_page: OpenPage, chromium: Browser, name: str) -> None:
    report = ranks() if name == "ranks" else sample(name)
    shown = open_page(report, width=900)
    shown.root.evaluate(OPEN)
    for id in ("b0", "f0", "f1", "g0", "g1") if name == "hostile" else ():
        shown.select(id)
        for tab in shown.tabs():
            assert shown.overflowing() == [], (id, tab)
    static = chromium.new_page()
    static.set_content(report._repr_mimebundle_()["text/html"])
    for page, where, pictures in ((shown.page, ".dyn", 0), (static, "body", 0 if name == "ranks" else 1)):
        page.wait_for_timeout(100)
        assert page.evaluate("() => window.pwned") is None
        assert page.locator(f"{where} script, {where} iframe, a[href^='javascript']").count() == 0
        assert page.locator(f"{where} img").count() == pictures
    assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shown.page.screenshot(path=shot_path(f"page-hostile-{name}"), full_page=True)
    static.close()


#: what is shown, and where the page's address leads
PARTS = (
    "loop#b0", "loop#g0", "regions", "layers", "empty", "model", "fixed#b0/fix", "alone#g0/run", "run_time", "ranks",
)  # fmt: skip


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_grave(open_page: OpenPage, dark: bool) -> None:
    faults = {}
    for part in PARTS:
        name, _, place = part.partition("#")
        shown = open_page(ranks() if name == "ranks" else name, dark=dark, hash=f"#{place}" if place else "")
        shown.root.evaluate(OPEN)
        faults[part] = grave_faults(shown.page, "html")
        shown.page.close()
    assert not any(faults.values()), faults


def test_a_class_is_said_once_and_the_method_stays_whole(open_page: OpenPage) -> None:
    page = open_page("long_names", width=918 + 32).page
    names = page.locator(".dyn-call b").all_text_contents()
    method = ".postprocess_detections_of_level_"
    first = f"GeneralizedDetectorWithFeaturePyramid{method}0"
    assert names[:3] == ["predict", first, f"{method}1"]
    page.locator(".dyn-spot").nth(1).click()
    way = page.get_by_role("note", name="the way from your code")
    path_words = f"{first} › {method}1 › {method}2"
    assert way.inner_text().split() == f"In[3]:2 return detector(features, proposals) {path_words}".split()


def test_the_heading_has_two_rows_and_folds_its_settings_and_notes(open_page: OpenPage) -> None:
    toolbar = open_page(live_page(sample("long_names")), width=1008 + 32).root.locator(".dyn-toolbar")
    assert toolbar.inner_text().split("\n") == [
        "Run again", "Try all fixes", "Save", "Settings: inductor", "2 notes", "Legend",
    ]  # fmt: skip
    assert (toolbar.bounding_box() or {"height": 99})["height"] < 30
    toolbar.get_by_text("Settings").click()
    toolbar.get_by_role("checkbox", name="fullgraph").check()
    assert toolbar.get_by_role("button", name="Run again (1 change)").is_visible()
    assert toolbar.get_by_role("checkbox", name="fullgraph").is_checked()
