"""VS Code, imitated: its variables, its widget manager with the style sheet of ipywidgets, and what it does with outputs.

What was seen in a real VS Code is described in examples/reference/hosts.md.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Frame, expect

from browser.lab import ROOT, SECONDS, Server, shot_path
from browser.test_view_pages import mount
from browser.view_pages import LOW_CONTRAST, START, sample
from dynascope.widgets.render.static_output import static_html
from tools.preflight import under_ci

#: what VS Code's renderers for Jupyter load; its style sheets include ipywidgets' `labvariables.css`
MANAGER = ROOT / "widgets/frontend/node_modules/@vscode/jupyter-ipywidgets8/dist/ipywidgets.js"
ANYWIDGET = Path(sys.prefix) / "share/jupyter/nbextensions/anywidget/index.js"
VIEW = "application/vnd.jupyter.widget-view+json"
#: the class of the page's body, and the theme's colors of the editor
THEMES = {
    "light": ("vscode-light", "#ffffff", "#3b3b3b"),
    "dark": ("vscode-dark", "#1f1f1f", "#cccccc"),
    "high-contrast": ("vscode-high-contrast", "#000000", "#ffffff"),
    "high-contrast-light": ("vscode-high-contrast-light vscode-high-contrast", "#ffffff", "#292929"),
}
PAGE = """<!doctype html><html><head><base href="https://vscode.invalid/"><style>
  html { background: var(--vscode-editor-background); color-scheme: normal; }
  body { background: transparent; color: var(--vscode-editor-foreground); font: 13px var(--vscode-font-family); margin: 0; }
  .cell-output-ipywidget-background { background: white !important; }
  .output > div { padding: 0 8px; }
</style></head><body><div id="container"></div></body></html>"""
SET_THEME = """([names, ground, ink]) => {
  const style = document.documentElement.style;
  document.body.className = names;
  document.body.dataset.vscodeThemeKind = names.split(' ')[0];
  style.setProperty('--vscode-editor-background', ground);
  style.setProperty('--vscode-editor-foreground', ink);
  style.setProperty('--vscode-font-family', 'system-ui, sans-serif');
  style.setProperty('--vscode-editor-font-family', '"Droid Sans Mono", monospace'); }"""
#: load the widget manager as its preload script does; require.js is replaced by two functions
LOAD = """async manager => {
  const modules = {};
  window.define = (name, make) => typeof name === 'string' ? (modules[name] = make())
    : (modules.anywidget = make(...name.map(n => modules[n])));
  window.requirejs = ([name], resolve) => resolve(modules[name]);
  (await import('data:text/javascript;base64,' + manager)).activate();
  vscIPyWidgets8.load(); }"""
FRAME = """async page => {
  await window.jupyterapp.restored;
  const frame = document.createElement('iframe');
  frame.style = 'position:fixed;inset:0;width:100%;height:100%;border:0;z-index:100000;background:transparent';
  frame.name = 'vscode';
  frame.srcdoc = page;
  document.body.append(frame);
  await new Promise(done => { frame.onload = done; }); }"""
CELL = """%%compile --backend eager
def f(x):
    torch._dynamo.graph_break()
    return x + 1

print("own")
f(torch.ones(3))"""


@pytest.fixture(scope="module")
def vscode(chromium: Browser, lab_server: Server) -> Iterator[Frame]:
    """The frame, in which the extension is loaded."""
    if not MANAGER.exists():
        message = f"{MANAGER.relative_to(ROOT)} is missing: `make test` installs it"
        assert not under_ci(), message
        pytest.skip(message)
    page = chromium.new_page(viewport={"width": 1000, "height": 1100})
    page.goto(f"{lab_server.url}/lab?reset")
    page.wait_for_function("() => window.jupyterapp", timeout=SECONDS * 1000)
    page.evaluate(FRAME, PAGE)
    frame = page.frame("vscode")
    frame.evaluate(LOAD, base64.b64encode(MANAGER.read_bytes()).decode())
    assert frame.evaluate("() => getComputedStyle(document.documentElement).getPropertyValue('--jp-layout-color0')") == "white"
    frame.evaluate((Path(__file__).parent / "vscode.js").read_text("utf-8"), ANYWIDGET.read_text("utf-8"))
    frame.evaluate("code => runCell(code)", START)
    yield frame
    page.close()


@pytest.fixture(scope="module")
def cell(vscode: Frame) -> Frame:
    """The frame, after a cell has run twice."""
    for _ in range(2):
        vscode.evaluate("code => runCell(code)", CELL)
        vscode.locator(".dyn-widget .dyn-detail").wait_for()
        kinds = vscode.evaluate("() => outputs.map(o => Object.keys(o.data).filter(k => k !== 'text/plain').sort())")
        assert kinds == [[VIEW], ["stream"], ["application/vnd.dynascope.report+json", "text/html"], []]
        assert vscode.evaluate("() => outputs.map(o => o.data['text/plain'])[3]") == "tensor([2., 2., 2.])"
        report = vscode.evaluate("() => outputs[2].data")  # as the notebook is saved
        assert "<img" in report["text/html"]
        assert "f: 1 graph" in report["text/plain"]
        heights = vscode.evaluate("() => outputs.map(o => o.node.parentElement.getBoundingClientRect().height)")
        assert [height > 0 for height in heights] == [True, True, False, True]
    return vscode


@pytest.mark.parametrize("theme", THEMES)
def test_the_view_has_the_colors_of_the_theme(cell: Frame, theme: str) -> None:
    cell.evaluate(SET_THEME, THEMES[theme])
    view = cell.locator(".dyn")
    expect(view).to_have_attribute("data-theme", "light" if "light" in theme else "dark")
    assert view.evaluate(LOW_CONTRAST) == []
    assert view.evaluate("e => getComputedStyle(e.closest('.output')).backgroundColor") == "rgba(0, 0, 0, 0)"
    assert "system-ui" in view.evaluate("e => getComputedStyle(e).fontFamily")
    cell.page.screenshot(path=shot_path(f"vscode-{theme}"))


def test_without_its_view_the_report_is_to_be_seen(cell: Frame) -> None:
    cell.locator(".dyn-widget").evaluate("e => e.remove()")
    static = cell.locator(".dyn-static")
    expect(static).to_be_visible()
    for theme in THEMES.values():
        cell.evaluate(SET_THEME, theme)
        assert static.evaluate(LOW_CONTRAST) == []


SELECT = """id => { values.selected = id; for (const act of heard['change:selected']) act(); }"""
LOW_IN_TABS = (
    f"""root => [...root.querySelectorAll('[role=tab]')].flatMap(tab => {{ tab.click(); return ({LOW_CONTRAST})(root); }})"""
)


@pytest.mark.parametrize("theme", THEMES)
def test_each_text_of_a_view_can_be_read(vscode: Frame, theme: str) -> None:
    vscode.evaluate(SET_THEME, THEMES[theme])
    for name in ("fixed", "loop", "refused", "alone", "model"):
        mount(vscode, name)
        view = vscode.locator(".dyn").last
        low = set(view.evaluate(LOW_CONTRAST))
        for id in vscode.evaluate("() => Object.keys(values.content.details).slice(0, 5)"):
            vscode.evaluate(SELECT, id)
            low |= set(view.evaluate(LOW_IN_TABS))
        vscode.evaluate("html => { container.innerHTML = html; }", static_html(sample(name)))
        low |= set(vscode.locator("#container").evaluate(LOW_CONTRAST))
        assert low == set(), name
        vscode.locator(".dyn").last.evaluate("e => e.parentElement.remove()")
