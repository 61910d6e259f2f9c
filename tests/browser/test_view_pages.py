"""The stand-alone page, offline; hostile text; axe; sizes; many frames; other hosts' conventions."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Frame, Page, expect

from browser.lab import shot_path
from browser.view_pages import OpenPage, Shown, grave_faults, sample
from dynascope.widgets.model import view_model
from dynascope.widgets.render.page import es_module, style_sheet, to_html
from dynascope.widgets.render.static_output import static_html


def test_one_file_clickable_offline(open_page: OpenPage) -> None:
    shown = open_page("loop")
    shown.select("b0")
    assert "Skip calling" in shown.detail()
    shown.line(9).click()
    assert shown.selected() == ["f2"]
    shown.root.get_by_role("tab", name="Source").click()
    expect(shown.page).to_have_url(re.compile("#f2/source$"))
    shown.root.locator(".dyn-brow").first.click()
    assert shown.selected() == ["b1"]


def test_a_link_leads_to_a_part(open_page: OpenPage) -> None:
    shown = open_page("loop", hash="#b0/stack")
    assert shown.selected() == ["b0"]
    expect(shown.root.get_by_role("tab", name="Stack (1)")).to_have_attribute("aria-selected", "true")


def test_readable_with_javascript_off(chromium: Browser, tmp_path: Path) -> None:
    path = tmp_path / "plain.html"
    path.write_text(to_html(sample("loop")), "utf-8")
    context = chromium.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    expect(page.locator("table")).to_be_visible()
    expect(page.locator("img[src^='data:image/svg']")).to_be_visible()
    context.close()


def test_the_legend_says_what_the_marks_mean(open_page: OpenPage) -> None:
    legend = open_page("loop").root.locator(".dyn-marks")
    expect(legend.locator("dl")).not_to_be_visible()
    legend.locator("summary").click()
    expect(legend).to_contain_text("✂graph break: the compiler cannot trace this expression, so Python runs it")


def test_a_graph_run_on_its_own(open_page: OpenPage) -> None:
    shown = open_page("alone", width=800)
    shown.select("g0")
    hot = shown.root.locator(".dyn-fxnode.dyn-hot")
    assert hot.count() == 2
    assert "4 µs · 33%" in hot.nth(0).inner_html()
    fills = [hot.nth(i).locator("rect").evaluate("e => getComputedStyle(e).fill") for i in range(2)]
    assert fills[0] != fills[1]
    shown.root.get_by_role("button", name="As a list").click()
    expect(shown.root.locator(".dyn-fxrow .dyn-duration").nth(2)).to_have_text("8 µs · 67%")
    assert shown.overflowing() == []
    shown.root.get_by_role("tab", name="Run alone").click()
    expect(shown.root.locator(".dyn-run")).to_contain_text("inductor 93 µs a call, 5.6 times as fast")
    expect(shown.root.locator(".dyn-run")).to_contain_text('dynascope.last().run_graph("g0")')
    assert shown.root.get_by_role("button", name="Run").count() == 0  # nobody answers in a page
    shown.select("g1")
    expect(shown.root.locator(".dyn-run")).to_contain_text("inductor could not run it")


def test_a_large_fx_graph_is_drawn_in_parts_and_scrolls_as_a_list(open_page: OpenPage) -> None:
    shown = open_page("big")
    nodes = shown.root.locator(".dyn-fxnode")
    assert nodes.count() <= 60
    assert "10000 nodes, folded into 60" in shown.root.locator(".dyn-fxstatus").inner_text()
    shown.root.locator(".dyn-fxnode[data-id='501+167']").click()
    expect(nodes).to_have_count(167)
    shown.root.get_by_role("button", name="As a list", exact=True).click()
    rows = shown.root.locator(".dyn-fxlist")
    expect(shown.root.locator(".dyn-fxrow[data-i='501']")).to_be_visible()  # the list begins where the graph was looked at
    assert shown.root.locator(".dyn-fxrow").count() < 60
    rows.evaluate("list => { list.scrollTop = list.scrollHeight; }")
    expect(shown.root.locator(".dyn-fxrow[data-i='9999']")).to_contain_text("output")
    shown.root.get_by_role("button", name="As a graph").click()
    expect(nodes).to_have_count(167)  # the part that was shown is shown still


def test_parts_of_an_fx_graph_open_by_mouse_and_keyboard(open_page: OpenPage) -> None:
    shown = open_page("layers")
    nodes, status = shown.root.locator(".dyn-fxnode"), shown.root.locator(".dyn-fxstatus")
    drawn = nodes.count()
    nodes.filter(has_text="model.layers.7").click()
    expect(nodes).to_have_count(12)
    assert status.inner_text() == "model.layers.7: 12 nodes"
    keyboard = shown.page.keyboard
    keyboard.press("Enter")
    assert status.inner_text().startswith("add_84 = operator.add")
    assert shown.root.locator(".dyn-fxpane .dyn-arrow.dyn-on").count() == 1  # the first of the part is read by the next
    assert shown.overflowing() == []
    assert shown.root.locator(".dyn-fxnode[tabindex='0']").count() == 1
    shown.select("f0")
    shown.select("g0")
    expect(nodes).to_have_count(12)  # the part that was shown is shown still
    whole = shown.root.get_by_role("button", name="All parts")
    whole.click()
    expect(nodes).to_have_count(drawn)
    expect(whole).to_have_count(0)
    keyboard.press("ArrowDown")  # from the part that was shown
    keyboard.press(" ")
    assert status.inner_text() == "model.layers.8: 12 nodes"


HOSTS = {
    "colab": ("<html theme='dark' style='--colab-primary-surface-color:#383838;--colab-primary-text-color:#fefefe'><body>",
              "dark", "rgb(56, 56, 56)"),
    "marimo": ("<html><body class='dark dark-theme'>", "dark", "rgb(17, 20, 24)"),
}  # fmt: skip
MOUNT = """async ([script, style, content, traits, selector, names]) => {
  const module = await import('data:text/javascript;base64,' + script);
  const sheet = document.createElement('style'); sheet.textContent = style; document.head.append(sheet);
  const values = { content, settings: {}, selected: '', busy: false, now: {}, status: {}, printed: [],
    ...traits }, heard = {};
  const model = { get: k => values[k], set: (k, v) => { values[k] = v; }, save_changes() {}, send() {},
    on: (k, f) => { (heard[k] ||= []).push(f); }, off() {} };
  const root = document.createElement('div'); document.querySelector(selector).append(root); root.className = names;
  Object.assign(window, { values, heard });
  module.default.render({ model, el: root }); }"""


def mount(page: Page | Frame, name: str, into: str = "body", names: str = "", **traits: object) -> None:
    """The widget's own module in a page that is no Jupyter, as VS Code, Colab and marimo run it.

    `names`: the classes of the widget's element; `traits`: the values of traits.
    """
    script = base64.b64encode(es_module().encode()).decode()
    content = json.loads(json.dumps(view_model(sample(name))))
    page.evaluate(MOUNT, [script, style_sheet(), content, traits, into, names])


GROWS = """() => { const box = s => document.querySelector(s), places = { '.dyn-src': 300, '.dyn-pane': 200 };
  for (const [s, top] of Object.entries(places)) box(s).scrollTop = top;
  window.values.content = structuredClone(window.values.content);
  for (const act of window.heard['change:content']) act();
  return Object.keys(places).map(s => box(s).scrollTop); }"""


def test_what_is_looked_at_stays_in_sight_while_the_report_grows(chromium: Browser) -> None:
    page = chromium.new_page(viewport={"width": 1000, "height": 800})
    mount(page, "many")
    assert page.evaluate(GROWS) == [300, 200]
    page.locator(".dyn-brow").nth(40).click()
    assert page.locator(".dyn-src").evaluate("n => n.scrollTop") > 1000
    page.close()


@pytest.mark.parametrize("host", HOSTS)
def test_other_hosts_give_ground_ink_and_theme(chromium: Browser, host: str) -> None:
    html, theme, ground = HOSTS[host]
    page = chromium.new_page(viewport={"width": 900, "height": 800})
    page.set_content(f"<!doctype html>{html}")
    mount(page, "loop")
    view = page.locator(".dyn")
    expect(view).to_have_attribute("data-theme", theme)
    assert view.evaluate("n => getComputedStyle(n).backgroundColor") == ground
    shown = Shown(page, page.locator(".dyn-widget"))
    shown.select("b0")
    assert "Skip calling" in shown.detail()
    assert shown.overflowing() == []
    assert grave_faults(page, ".dyn-widget") == []
    page.screenshot(path=shot_path(f"host-{host}"))
    page.close()


#: what builders of documentation put around the live view and the static output
DOCUMENTATION = {
    "myst-nb": (
        "<div class='cell'><div class='cell_output docutils container'><div class='widget-subarea' id='live'></div>"
        "<div class='output text_html'>{static}</div></div></div>"
    ),
    "nbsphinx": (
        "<div class='nboutput docutils container'><div class='prompt'></div><div class='output_area' id='live'></div></div>"
        "<div class='nboutput docutils container'><div class='prompt'></div><div class='output_area'>{static}</div></div>"
    ),
}


@pytest.mark.parametrize("builder", DOCUMENTATION)
def test_in_documentation_one_output_is_shown_and_nothing_looks_alive(chromium: Browser, builder: str) -> None:
    page = chromium.new_page(viewport={"width": 900, "height": 1000})
    theme = "<style>div h2, div h3 { font-family: serif; margin: 40px } .output, .nboutput { padding: 9px }</style>"
    static = static_html(sample("one"), fallback="dyn-1")
    page.set_content(f"<!doctype html>{theme}<body>{DOCUMENTATION[builder].format(static=static)}<hr></body>")
    expect(page.locator(".dyn-static")).to_be_visible()  # until the view is loaded, and where it cannot be
    mount(page, "one", "#live", "jupyter-widgets-disconnected", fallback="dyn-1", can_run_again=True)
    expect(page.locator(".dyn-static")).to_be_hidden()
    view, end = page.locator(".dyn").bounding_box(), page.locator("hr").bounding_box()
    assert end["y"] - view["y"] - view["height"] < 20
    expect(page.get_by_role("button", name=re.compile("Run again|Try all fixes|Save"))).to_have_count(0)
    heading = page.locator(".dyn h2").first
    assert "serif" not in heading.evaluate("e => getComputedStyle(e).fontFamily.replaceAll('sans-serif', '')")
    assert heading.evaluate("e => getComputedStyle(e).marginTop") == "0px"
    page.screenshot(path=shot_path(f"documentation-{builder}"))
    page.close()


def test_without_a_kernel_no_fixes_can_be_tried(open_page: OpenPage) -> None:
    shown = open_page("one")
    shown.select("b0")
    expect(shown.root.get_by_role("tab", name="Reason")).to_be_visible()
    expect(shown.root.get_by_role("tab", name="Fix")).to_have_count(0)
    expect(shown.root.get_by_text("Try all fixes")).to_have_count(0)


def test_the_fix_of_a_break_is_a_diff_and_its_cell_can_be_copied(open_page: OpenPage) -> None:
    shown = open_page("fixed")
    expect(shown.root).to_contain_text("1 fix: graph breaks 1 → 0, graphs 2 → 1 in the repeated calls")
    shown.root.get_by_role("tab", name="Fix").click()
    panel = shown.root.locator(".dyn-change").first
    expect(panel.locator(".dyn-removed")).to_have_text("-    print('<b>')\n")
    expect(panel.locator(".dyn-added")).to_have_text("+    logged = 1  # <script>\n")
    expect(panel).to_contain_text("Move it: verified, agrees")
    expect(panel).to_contain_text("Assumes: It is printed later")
    rejected = shown.root.get_by_text("Drop it: a printed line is lost")
    expect(rejected).to_be_hidden()
    shown.root.get_by_text("1 other change considered").click()
    expect(rejected).to_be_visible()
    shown.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    panel = shown.root.locator(".dyn-panel")
    panel.get_by_role("button", name="Copy fixed cell").click()
    expect(panel.get_by_role("button", name="copied")).to_be_visible()
