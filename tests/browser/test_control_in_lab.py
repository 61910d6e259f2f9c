"""Run again in a real JupyterLab: error here, see it; allow here, see it allowed; the diff tells; the namespace is clean."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from browser.lab import LabPage, OpenLab

START = "%load_ext dynascope\n%config DynascopeMagics.backend = 'eager'\nimport torch\nx = torch.ones(3)"
CELL = """%%compile
def f(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2

seen = globals().get('seen', 0) + 1
f(x)"""
SLOW = """%%compile
import time
def g(x):
    return x + 1
print('begun')
g(x)
for _ in range(200): time.sleep(0.1)"""


@pytest.fixture
def lab(open_lab: OpenLab) -> LabPage:
    page = open_lab([START, CELL, SLOW])
    page.run(0)
    return page


def view(lab: LabPage, cell: int) -> Locator:
    found = lab.cells().nth(cell).locator(".dyn-widget")
    found.locator(".dyn-detail").wait_for(state="attached")
    return found


def click(root: Locator, name: str) -> None:
    root.get_by_role("button", name=name, exact=False).first.click()


def test_error_here_then_allow_here(lab: LabPage) -> None:
    lab.run(1)
    names = lab.python("print(sorted(n for n in globals() if not n.startswith('_')))")
    root = view(lab, 1)
    count = lab.execution_count(1)
    root.locator(".dyn-brow").first.click()
    click(root, "Error here")
    expect(root.get_by_role("button", name="Run again (1 change)")).to_be_visible()
    click(root, "Run again")
    expect(root.locator(".dyn-brow .dyn-pill").first).to_have_text("stopped here")
    expect(root.locator(".dyn-brow .dyn-place").first).to_contain_text(":4")
    expect(root.locator(".dyn-printed")).to_contain_text("Unsupported")
    expect(root.locator(".dyn-command")).to_contain_text("--region 4=error")
    expect(root.get_by_role("button", name="Run again", exact=True)).to_be_enabled(timeout=30_000)
    root.locator(".dyn-brow").first.click()
    click(root, "Allow here")
    click(root, "Run again")
    expect(root.locator(".dyn-brow .dyn-pill").first).to_have_text("allowed")
    root.locator(".dyn-diff summary").click()
    expect(root.locator(".dyn-diff")).to_contain_text("now resumed and allowed")
    expect(root.locator(".dyn-command")).to_contain_text("--region 4=allow")
    assert lab.execution_count(1) == count
    assert lab.python("print(seen)").strip() == "3"
    assert lab.python("print(sorted(n for n in globals() if not n.startswith('_')))") == names
    assert lab.python("print(f.__code__.co_names)").strip() == "('torch', '_dynamo', 'graph_break')"


def test_run_again_waits_for_the_cell_and_can_be_stopped(lab: LabPage) -> None:
    lab.start(2)
    root = lab.cells().nth(2).locator(".dyn-widget")
    expect(lab.outputs(2)).to_contain_text("begun", timeout=30_000)
    lab.interrupt()
    lab.wait_idle()
    root = view(lab, 2)
    expect(root.get_by_role("button", name="Run again", exact=True)).to_be_enabled(timeout=30_000)
    click(root, "Run again")
    expect(root.locator(".dyn-printed")).to_contain_text("begun", timeout=30_000)
    expect(root.get_by_role("button", name="Run again", exact=True)).to_be_disabled()
    click(root, "Stop")
    expect(root.locator(".dyn-status")).to_contain_text("interrupted", timeout=30_000)
    expect(root.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    lab.wait_idle()
    assert lab.python("print(1 + 1)").strip() == "2"


WRONG_TANH = """import torch._functorch.config, torch._inductor.config, torch._inductor.lowering as inductor
torch._inductor.config.fx_graph_cache = torch._functorch.config.enable_autograd_cache = False  # they would keep the fault
tanh = torch.ops.aten.tanh.default
inductor.lowerings[tanh] = inductor.lowerings[torch.ops.aten.relu.default]"""
DIFFERS = """%%compile --check --backend inductor
def smooth(x):
    a = torch.sin(x)
    b = torch.tanh(a)
    return b * 2

smooth(torch.linspace(-1, 1, 64))"""


def test_where_the_numbers_begin_to_differ_is_searched_at_a_click(open_lab: OpenLab) -> None:
    lab = open_lab([START, WRONG_TANH, DIFFERS, ""], height=1400)
    for cell in range(3):
        lab.run(cell)
    root, count = view(lab, 2), lab.execution_count(2)
    check = root.get_by_role("region", name="what the check found")
    expect(check).to_contain_text("Against float64, compiled is wrong")
    expect(check.get_by_role("button", name="Text for an issue")).to_have_count(0)
    click(check, "Where does it begin?")
    expect(root.locator(".dyn-progress")).to_contain_text("searching", timeout=30_000)
    expect(check).to_contain_text("The error begins at In[3]:4: b = torch.tanh(a)", timeout=60_000)
    expect(check).to_contain_text("It comes from Inductor's lowering of tanh")
    expect(root.locator(".dyn-command")).to_contain_text("--check=where")
    expect(check.get_by_role("button", name="Where does it begin?")).to_be_hidden()
    expect(root.locator(".dyn-no.dyn-off")).to_have_count(3)
    expect(root.locator(".dyn-ln", has_text="begins here: off by ≥ 100 %")).to_contain_text("b = torch.tanh(a)")
    assert lab.execution_count(2) == count
    lab.shot("check_where", ".dyn-widget")
    click(check, "Show the errors in the graph")
    expect(root.locator(".dyn-detail")).to_contain_text("off by ≥ 100 %")
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    click(check, "Text for an issue")
    expect(check.get_by_role("button", name="copied")).to_be_visible()
    text = lab.page.evaluate("navigator.clipboard.readText()")
    assert text.startswith("**Compiled code gives a wrong result**; it comes from Inductor's lowering of `tanh`.")
    assert "compiled = run(torch.compile(f, backend='inductor'))" in text
