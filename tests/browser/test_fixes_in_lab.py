"""Fixes in a real JupyterLab: try them all, open the Fix tab of a break, copy the fixed cell, run it: no break is left."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from browser.lab import OpenLab
from browser.test_control_in_lab import START, view

CELL = """%%compile
def f(x):
    if x.sum() > 0:  # a branch on values
        y = x * 2
    else:
        y = x * 3
    print("half way")
    return y * y.mean().item()

f(x)"""


def open_fix(root: Locator, number: int = 0) -> Locator:
    """The Fix tab of a break."""
    root.locator(".dyn-brow").nth(number).click()
    root.get_by_role("tab", name=re.compile("^Fix")).click()
    return root.locator(".dyn-panel")


def test_try_all_fixes_then_copy_and_run_the_fixed_cell(open_lab: OpenLab) -> None:
    lab = open_lab([START, CELL, ""])
    lab.run(0)
    lab.run(1)
    root, count = view(lab, 1), lab.execution_count(1)
    panel = open_fix(root)
    expect(panel).to_contain_text("No changes have been tried.")
    lab.shot("fixes_untried", ".dyn-widget")
    panel.get_by_role("button", name="Try all fixes").click()
    expect(root.locator(".dyn-progress")).to_contain_text("trying change", timeout=30_000)
    expect(root.get_by_role("button", name="Run again")).to_be_disabled()
    expect(root.locator(".dyn-do")).to_contain_text("graph breaks 3 → 0, graphs 4 → 1", timeout=60_000)
    expect(root.locator(".dyn-command")).to_contain_text("%%compile --fix")
    expect(root.get_by_role("button", name="Try all fixes")).to_have_count(0)
    assert lab.execution_count(1) == count
    panel = open_fix(root)
    verified = panel.locator(".dyn-change-verified")
    expect(verified.locator(".dyn-removed", has_text="if x.sum() > 0:  # a branch on values")).to_be_visible()
    expect(verified.locator(".dyn-added", has_text="torch.where(x.sum() > 0, x * 2, x * 3)")).to_be_visible()
    lab.shot("fixes_tried", ".dyn-widget")
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    panel.get_by_role("button", name="Copy fixed cell").click()
    expect(panel.get_by_role("button", name="copied")).to_be_visible()
    lab.cells().nth(2).locator(".cm-content").click()
    lab.page.keyboard.press("Control+v")
    lab.page.keyboard.press("Shift+Enter")
    expect(view(lab, 2).locator(".dyn-counts")).to_contain_text("1 graph · 0 graph breaks", timeout=30_000)
    lab.wait_idle()
    assert lab.python("import dynascope; print(dynascope.last().summary.breaks, dynascope.last().summary.graphs)") == "0 1\n"
    lab.shot("fixes_fixed", ".dyn-widget")
