"""The live view over time: it grows while things compile, is interrupted, replaced, and left by its kernel."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from browser.lab import OpenLab, shot_path
from browser.view_pages import ONE, START, VIEWS, view_of

#: a backend that takes its time for each graph, and more for later ones: a slow browser, too, interrupts it before the end
SLOW = """import time
graphs = []
def slow_backend(module, inputs):
    graphs.append(module)
    time.sleep(0.4 if len(graphs) < 7 else 5)
    return module.forward
import torch._dynamo
torch._dynamo.register_backend(slow_backend, name="slow_backend")"""
BREAKS = "".join(f"    x = x + {i}\n    torch._dynamo.graph_break()\n" for i in range(14))
LONG = f"""%%compile --backend slow_backend -o grown
def long(x):
{BREAKS}    return x
long(torch.ones(4))"""


def test_the_view_grows_and_an_interrupt_leaves_a_correct_partial_report(open_lab: OpenLab) -> None:
    lab = open_lab([START, SLOW, LONG], width=1200, height=1000)
    lab.run(0)
    lab.run(1)
    lab.start(2)
    root = lab.cells().nth(2).locator(".dyn-widget")
    progress = root.locator(".dyn-progress")
    expect(progress).to_contain_text("compiling long")
    expect(progress).to_contain_text(re.compile(r"[1-9]\d* graph"))
    # still running, and there is something to click already
    root.locator(".dyn-split .dyn-k-break").first.click()
    expect(root.locator(".dyn-detail")).to_contain_text("Graph break torch._dynamo.graph_break()")
    assert progress.is_visible()
    root.screenshot(path=shot_path("lab-growing"))
    before = root.locator(".dyn-brow").count()
    expect(root.locator(".dyn-brow").nth(before)).to_be_visible(timeout=10_000)
    lab.interrupt()
    expect(progress).to_be_hidden(timeout=15_000)
    lab.wait_idle()
    expect(root.locator(".dyn-chips")).to_contain_text("interrupted: a partial report")
    told = lab.python("print(grown.origin, grown.summary.breaks == len(grown.breaks), 0 < len(grown.breaks) < 14)")
    assert told.strip() == "partial True True"
    assert root.locator(".dyn-brow").count() == int(lab.python("print(len(grown.breaks))"))
    assert "KeyboardInterrupt" in lab.text(2)
    assert lab.cells().nth(2).locator(".dyn-static").count() == 1


def test_a_hundred_runs_of_one_cell_leave_one_live_view_and_no_growing_memory(open_lab: OpenLab) -> None:
    lab = open_lab([START, "%%compile --backend eager\ndef f(x):\n    return x + 1\nf(torch.ones(3))\nNone"])
    lab.run_all()
    measure = VIEWS + (
        "import gc, psutil; from dynascope.compiler.report import Report\ngc.collect()\n"
        "print(len(views), len(widget._instances), sum(isinstance(o, Report) for o in gc.get_objects()), "
        "psutil.Process().memory_info().rss // 2**20)"
    )
    lab.run_unseen(1, 30)
    early = [int(n) for n in lab.python(measure).split()]
    lab.run_unseen(1, 65)
    for _ in range(4):
        lab.run(1)
    late = [int(n) for n in lab.python(measure).split()]
    assert late[0] == 1
    assert late[:3] == early[:3]
    assert late[3] - early[3] < 40, "MiB"
    assert lab.page.locator(".dyn-widget").count() == 1


def test_after_a_kernel_restart_nothing_looks_alive_and_the_view_can_still_be_read(open_lab: OpenLab) -> None:
    lab = open_lab([START, ONE], width=1200, height=1000)
    lab.run_all()
    shown = view_of(lab, 1)
    lab.python(VIEWS + "views[0].can_run_again = True")
    expect(shown.root.get_by_role("button", name="Run again")).to_be_visible()
    lab.restart()
    expect(shown.root.locator(".dyn-status")).to_contain_text("the kernel is gone: run the cell again")
    expect(shown.root.get_by_role("button", name="Run again")).to_have_count(0)
    assert not shown.root.locator(".dyn-progress").is_visible()
    shown.select("g1")
    assert "Graph 1" in shown.detail()
    shown.root.get_by_label("search the split graph by name or line").fill("graph_break")
    assert "found" in shown.root.locator(".dyn-found").inner_text()
    shown.root.screenshot(path=shot_path("lab-kernel-gone"))
