"""What the tests of the view share: cells to run, where things stand in a view, and what axe finds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from observed import profiled
from playwright.sync_api import Locator, Page

from dynascope.compiler.capture.trace_files import load
from dynascope.compiler.lab.slices import profile_of
from dynascope.compiler.ranks import RanksReport, merge
from dynascope.compiler.report import FailedGuard, InputRun, Report

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SAMPLES = HERE.parent / "unit" / "widgets"
AXE = HERE / "vendor" / "axe.min.js"

HOSTILE = "<img src=x onerror='window.pwned=1'>"
START = "%load_ext dynascope\nimport torch, dynascope"
ONE = """%%compile --backend eager -o report
def f(x):
    x = x + 1
    y = x.relu()
    torch._dynamo.graph_break()
    z = y * 2
    return z.sum()

f(torch.ones(8, 16))"""
#: a break one call deep, a loop that makes Dynamo skip its frame, and a recompile
MIXED = """%%compile --backend eager -o mixed
def deep(x):
    torch._dynamo.graph_break()
    return x.cos()

def outer(x):
    return deep(x + 1) * 2

def looped(x):
    for step in range(3):
        x = x.sin()
        print("step", step)
    return x

def scaled(x, n):
    return x * n

x = torch.ones(4)
outer(x)
looped(x)
scaled(x, 2), scaled(x, 3)"""
VIEWS = """from ipywidgets.widgets import widget
views = [w for w in widget._instances.values() if type(w).__name__ == "View"]
"""

#: in a page: texts of the picture that leave their box, by what the browser measures
PICTURE_OVERFLOW = """root => { const wrong = [];
  for (const node of root.querySelectorAll('.dyn-split .dyn-node, .dyn-fxpane .dyn-fxnode')) {
    const rects = [...node.querySelectorAll('rect')].map(r => r.getBoundingClientRect());
    const left = Math.min(...rects.map(r => r.left)), right = Math.max(...rects.map(r => r.right));
    const texts = [...node.querySelectorAll('text')].map(t => [t.getBoundingClientRect(), t.textContent]);
    for (const [box, text] of texts) {
      if (!text) continue;
      if (box.left < left - 1 || box.right > right + 1) wrong.push(`${text}: out by ${Math.round(box.right - right)}`);
      for (const [other, word] of texts) if (word && word !== text && Math.abs(other.top - box.top) < 4 &&
        other.left < box.right - 1 && box.left < other.right - 1) wrong.push(`${text} over ${word}`);
    }
  }
  return wrong; }"""
#: in a page: elements that stick out of the view, or whose own text is wider than they are and cannot be scrolled to
TEXT_OVERFLOW = """root => { const wrong = [], view = root.querySelector('.dyn') || root, edge = view.getBoundingClientRect();
  const scrolls = e => { for (; e && e !== view; e = e.parentElement) {
    const o = getComputedStyle(e).overflowX; if (o === 'auto' || o === 'scroll') return true; } return false; };
  for (const e of view.querySelectorAll('*')) {
    if (e.closest('svg') || !e.getClientRects().length) continue;
    const box = e.getBoundingClientRect(), style = getComputedStyle(e);
    const name = e.className + ' ' + e.textContent.slice(0, 50), wide = e.clientWidth && e.scrollWidth > e.clientWidth + 1;
    if ((box.right > edge.right + 1 || box.left < edge.left - 1) && !scrolls(e.parentElement)) wrong.push('outside: ' + name);
    if (wide && style.overflowX === 'visible' && style.display !== 'inline' && !scrolls(e)) wrong.push('overflows: ' + name);
  }
  return wrong; }"""
#: in a page: texts that are less than 4.5 times as bright or as dark as what is behind them (3 times, if they are large)
LOW_CONTRAST = """root => {
  const color = text => { const n = text.match(/[\\d.]+/g).map(Number), full = text.startsWith('color') ? 255 : 1;
    return [n[0] * full, n[1] * full, n[2] * full, n[3] ?? 1]; };
  const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3]));
  const light = rgb => rgb.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const holds = (box, at) => box.left <= at.left && at.right <= box.right && box.top <= at.top && at.bottom <= box.bottom;
  const wrong = [], texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), range = document.createRange();
  for (let text; (text = texts.nextNode()); ) {
    const e = text.parentElement, style = getComputedStyle(e);
    range.selectNodeContents(text);
    const at = range.getBoundingClientRect();
    if (!text.data.trim() || !at.width || style.visibility !== 'visible' || e.closest('style, option, :disabled')) continue;
    const around = [], svg = e.ownerSVGElement;
    for (let a = e; a; a = a.parentElement) around.unshift(color(getComputedStyle(a).backgroundColor));
    const middle = { left: (at.left + at.right) / 2, right: (at.left + at.right) / 2, top: (at.top + at.bottom) / 2,
      bottom: (at.top + at.bottom) / 2 };
    for (const shape of svg?.querySelectorAll('rect, path') ?? []) {
      const { fill, fillOpacity, opacity } = getComputedStyle(shape);
      if (/none|url/.test(fill) || !holds(shape.getBoundingClientRect(), middle)) continue;
      if (shape.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_PRECEDING) continue;
      const [r, g, b, a] = color(fill);
      around.push([r, g, b, a * fillOpacity * opacity]);
    }
    const ground = around.reduce((under, top) => over(top, under), [255, 255, 255]);
    const ink = over(color(svg ? style.fill : style.color), ground), [a, b] = [light(ink), light(ground)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) wrong.push(`${text.data.trim().slice(0, 40)}: ${ratio.toFixed(2)}, ${ink} on ${ground}`);
  }
  return wrong; }"""


def compile_time() -> Report:
    """A log with its compile time, whose first phase has a hostile name."""
    report = load(ROOT / "tests" / "traces" / "compile_time-2.13.0.log.gz")
    report.compile_time.phases[0].name = HOSTILE
    return report


def run_time() -> Report:
    """A recorded step of training, with inputs, one of which is hostile."""
    events, report = profiled("training_cpu")
    report.profile = profile_of(events, report)
    again = InputRun(arguments=HOSTILE, outcome="recompiled", frames=["f1"], recompiles=1, compile_seconds=0.8)
    again.failed_guards = [FailedGuard(kind="expression", text="x had another size; " * 12)]
    report.inputs = [InputRun(arguments="float32[64, 64]", seconds=1e-3), again]
    return report


def ranks(count: int = 4, odd: dict[int, Callable[[Report], None]] | None = None) -> RanksReport:
    """A made-up job in which some ranks differ, one has no end and one is missing; hostile, if nothing else is said."""
    from unit.compiler.test_rank_reports import made, record

    def hostile(report: Report) -> None:
        report.breaks[0].source, report.breaks[0].line = f"</script>{HOSTILE}", 22
        for frame in report.frames:
            frame.name = HOSTILE

    records = []
    for rank in range(count):
        report = made(rank)
        (odd or {1: hostile}).get(rank, lambda report: None)(report)
        records.append(record(report, rank))
        records[-1].rank.seconds = [1.0 + (rank * 7 % 5) / 10 for _ in records[-1].rank.seconds]
    records[count // 2].rank.status = "no end"
    records[1].rank.seconds[1] = 12.0
    return merge(records, world_size=count + 1)


def samples() -> dict[str, Callable[[], Report]]:
    """The hand-made reports by their names, and those that were measured."""
    if str(SAMPLES) not in sys.path:
        sys.path.insert(0, str(SAMPLES))
    from samples import SAMPLES as MADE

    return {**MADE, "compile_time": compile_time, "run_time": run_time}


def sample(name: str) -> Report:
    """One of them."""
    return samples()[name]()


class Shown:
    """One view, wherever it stands."""

    def __init__(self, page: Page, root: Locator) -> None:
        self.page = page
        self.root = root

    def node(self, id: str) -> Locator:
        """A box or frame of the split graph."""
        return self.root.locator(f".dyn-split .dyn-node[data-id='{id}']")

    def boxes(self, kind: str) -> Locator:
        """Those of one kind: "break", "graph", "skipped" ..."""
        return self.root.locator(f".dyn-split .dyn-node.dyn-k-{kind}")

    def line(self, number: int) -> Locator:
        """A line of the source."""
        return self.root.locator(f".dyn-ln[data-line='{number}']")

    def selected(self) -> list[str]:
        """The ids of what is selected in the split graph."""
        found: list[str] = self.root.locator(".dyn-split .dyn-node[aria-pressed='true']").evaluate_all(
            "nodes => nodes.map(n => n.dataset.id)"
        )
        return found

    def detail(self) -> str:
        """The text of the detail."""
        return self.root.locator(".dyn-detail").inner_text()

    def tabs(self) -> Iterator[str]:
        """Click each tab of the detail in turn; their names."""
        for tab in self.root.get_by_role("tab").all():
            tab.click()
            yield tab.inner_text()

    def select(self, id: str) -> None:
        """Click a box (its middle may be covered by what stands inside: its title is not)."""
        self.node(id).locator("text").first.click()

    def overflowing(self) -> list[str]:
        """Text that leaves its box."""
        found: list[str] = self.root.evaluate(PICTURE_OVERFLOW) + self.root.evaluate(TEXT_OVERFLOW)
        return found


OpenPage = Callable[..., Shown]


def view_of(lab: Any, index: int) -> Shown:
    """The live view below a cell, drawn."""
    root = lab.cells().nth(index).locator(".dyn-widget")
    root.locator(".dyn-detail").wait_for()
    return Shown(lab.page, root)


def grave_faults(page: Page, selector: str) -> list[str]:
    """What axe calls serious or critical in one part of a page."""
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("selector => axe.run(selector, { resultTypes: ['violations'] })", selector)
    return [
        f"{v['impact']} {v['id']}: {v['nodes'][0]['html'][:200]}: {v['nodes'][0].get('failureSummary', '')[:300]}"
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]
