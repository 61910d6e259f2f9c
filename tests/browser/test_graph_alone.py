"""Run this graph, clicked in a real JupyterLab: the figures come into the view and stay in the saved notebook."""

from __future__ import annotations

from playwright.sync_api import expect

from browser.lab import OpenLab, shot_path
from browser.view_pages import ONE, START


def test_run_this_graph(open_lab: OpenLab) -> None:
    lab = open_lab([START, ONE], width=1200, height=1000)
    lab.run_all()
    names = lab.python("print(sorted(n for n in globals() if not n.startswith('_')))")
    count = lab.execution_count(1)
    root = lab.cells().nth(1).locator(".dyn-widget")
    root.locator(".dyn-split .dyn-node[data-id='g1'] text").first.click()
    root.get_by_role("tab", name="Run alone").click()
    root.locator(".dyn-detail").screenshot(path=shot_path("lab-alone-before"))
    root.get_by_role("button", name="Run this graph").click()
    expect(root.locator(".dyn-run")).to_contain_text("inductor", timeout=60_000)
    expect(root.locator(".dyn-run")).to_contain_text("On CPU")
    expect(root.get_by_role("button", name="Run it again")).to_be_visible()
    assert root.get_by_role("tab", name="Run alone").get_attribute("aria-selected") == "true"
    root.locator(".dyn-detail").screenshot(path=shot_path("lab-alone-figures"))
    root.get_by_role("tab", name="Graph", exact=True).click()
    expect(root.locator(".dyn-fxnode.dyn-hot").first).to_contain_text("%")
    root.locator(".dyn-detail").screenshot(path=shot_path("lab-alone-heat"))
    told = lab.python("run = report.graph('g1').run; print(len(run.ops), run.device, run.speed_up > 0)").split()
    assert told == ["2", "cpu", "True"]
    assert lab.execution_count(1) == count
    lab.python("del run")
    assert lab.python("print(sorted(n for n in globals() if not n.startswith('_')))") == names
    expect(lab.cells().nth(1).locator(".dyn-static")).to_contain_text("graph 1 alone. On CPU")
