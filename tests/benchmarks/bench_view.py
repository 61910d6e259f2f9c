"""The view: how large, how fast, and whether both grow linearly.

    python tests/benchmarks/bench_view.py [--quick] [--no-browser]

Prints a table and writes it to tests/benchmarks/results_view.md.  Times in the browser are of a page drawn by the same
module as the widget, by the clock: from the click to the frame after the change, as the page itself measures them.
The time of the final view is taken in a real JupyterLab: from the end of the cell's code in the kernel to the frame
that shows it.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import itertools
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dynascope.compiler.report import Report
from dynascope.widgets.layout.fx_graph import layout
from dynascope.widgets.model import view_model
from dynascope.widgets.render.page import es_module, style_sheet, to_html
from dynascope.widgets.render.static_output import static_html
from dynascope.widgets.view import packed

HERE = Path(__file__).resolve().parent
Row = tuple[str, str, str, bool]

#: in a page: milliseconds from a click on something to the second frame after it, which the change is drawn in
CLICK = """async ([selector, i]) => { const all = document.querySelectorAll(selector);
  const start = performance.now();
  all[i % all.length].dispatchEvent(new MouseEvent('click', { bubbles: true }));
  document.body.getBoundingClientRect();
  const done = performance.now();
  await new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)));
  return [done - start, performance.now() - start]; }"""
#: in a page: milliseconds that a model takes to be drawn by the module, from nothing
DRAW = """async ([script, style, content]) => {
  const module = await import('data:text/javascript;base64,' + script);
  const sheet = document.createElement('style'); sheet.textContent = style; document.head.append(sheet);
  const model = JSON.parse(content), root = document.createElement('div'); document.body.replaceChildren(root);
  const start = performance.now();
  module.mountPage(root, model); root.getBoundingClientRect();
  return performance.now() - start; }"""
SCROLL = """async () => { const list = document.querySelector('.dyn-fxlist'), times = [];
  for (let i = 1; i <= 40; i++) { const start = performance.now();
    list.scrollTop = i * list.scrollHeight / 41; list.dispatchEvent(new Event('scroll')); list.getBoundingClientRect();
    times.push(performance.now() - start); await new Promise(requestAnimationFrame); }
  times.sort((a, b) => a - b); return [times[20], times[39]]; }"""
#: in JupyterLab: notes when each change of the view was drawn
WATCH = """() => { window.drawn = []; new MutationObserver(() => requestAnimationFrame(() => {
    const head = document.querySelector('.dyn-counts'); const at = Date.now();
    const rows = document.querySelectorAll('.dyn-brow').length, idle = document.querySelector('.dyn-progress')?.hidden;
    if (head) window.drawn.push([at, rows, idle]);
  })).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ['hidden'] }); }"""


def made(name: str, *size: int) -> Report:
    """A hand-made report of the unit tests: `made("many", 400)`."""
    samples = importlib.import_module("samples")
    report: Report = getattr(samples, name)(*size)
    return report


def least(work: Callable[[], Any], rounds: int = 5) -> float:
    """Seconds of the fastest round, of this process's CPU: other programs on the machine do not count."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def row(what: str, value: float, limit: float, unit: str) -> Row:
    """A measured value against its limit."""
    form = "{:,.0f}" if value >= 100 or unit == "bytes" else "{:.1f}"
    return what, f"{form.format(value)} {unit}", f"< {limit:,.0f} {unit}", value < limit


def growth(what: str, small: float, large: float, factor: int) -> Row:
    """How much longer `factor` times as much takes; linear with room for noise."""
    ratio = large / max(small, 1e-4)
    return f"{what}: {factor} times as much takes", f"{ratio:.1f} times", f"< {1.6 * factor:.0f} times", ratio < 1.6 * factor


def fresh_layout(count: int) -> None:
    """Boxes and edges as of a graph of `count` nodes; never the same twice, so nothing is remembered."""
    fresh_layout.turn += 1  # type: ignore[attr-defined]
    sizes = tuple((90.0 + (i + fresh_layout.turn) % 7, 28.0) for i in range(count))  # type: ignore[attr-defined]
    arcs = [(max(0, i - 1 - i % 7), i) for i in range(1, count)] + [(i // 3, i) for i in range(1, count, 5)]
    layout(sizes, tuple(arcs), 740, 420)


fresh_layout.turn = 0  # type: ignore[attr-defined]


def in_python(quick: bool) -> list[Row]:
    """Sizes, layout and models."""
    reports: dict[int, Report] = {n: made("many", n) for n in (100, 400)}
    rounds = 2 if quick else 5
    pages = {n: len(to_html(r)) for n, r in reports.items()}
    models = {n: least(lambda r=r: view_model(r), rounds) for n, r in reports.items()}
    graphs = {n: made("big_graph", n) for n in (2_500, 10_000)}
    opened = {n: least(lambda r=r: view_model(r), rounds) for n, r in graphs.items()}
    huge = made("huge")
    laid = {n: least(lambda n=n: fresh_layout(n), rounds) for n in (2_500, 10_000)}
    return [
        row("ES module", len(es_module().encode()), 90_000, "bytes"),
        row("ES module, gzip", len(gzip.compress(es_module().encode())), 32_000, "bytes"),
        row("page of 100 breaks", pages[100], 1_000_000, "bytes"),
        row("page of 400 breaks", pages[400], 4_000_000, "bytes"),
        growth("page", pages[100], pages[400], 4),
        row("static picture and table of 100 breaks", len(static_html(reports[100])), 200_000, "bytes"),
        row("100 breaks, as they travel to the browser", len(packed(view_model(reports[100]))["gzip"]), 150_000, "bytes"),
        row("model of 100 breaks, in the kernel", 1000 * models[100], 150, "ms"),
        growth("model", models[100], models[400], 4),
        row("page of 1,000 frames, 300 breaks, 500 recompiles", len(to_html(huge)), 3_000_000, "bytes"),
        row("model of these, in the kernel", 1000 * least(lambda: view_model(huge), rounds), 400, "ms"),
        row("model of an FX graph of 10,000 nodes", 1000 * opened[10_000], 600, "ms"),
        growth("model of an FX graph", opened[2_500], opened[10_000], 4),
        row("layout of 10,000 nodes", 1000 * laid[10_000], 1000, "ms"),
        growth("layout", laid[2_500], laid[10_000], 4),
    ]


def in_a_page(browser: Any, quick: bool) -> list[Row]:
    """Drawing, clicks and scrolling."""
    import base64

    script = base64.b64encode(es_module().encode()).decode()
    style = style_sheet()
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.goto("about:blank")

    def drawn(report: Report) -> float:
        content = json.dumps(view_model(report))
        return min(float(page.evaluate(DRAW, [script, style, content])) for _ in range(2 if quick else 4))

    draws = {n: drawn(made("many", n)) for n in (100, 400)}
    clicks = [page.evaluate(CLICK, [".dyn-brow", i]) for i in range(3, 43)]
    large = drawn(made("huge"))
    calls = [page.evaluate(CLICK, [".dyn-call", i]) for i in range(3, 43)]
    drawn(made("many", 100))
    nodes = [page.evaluate(CLICK, [".dyn-split .dyn-node", i]) for i in range(1, 41)]
    big = drawn(made("big_graph"))
    opens = []
    for i in (3, 9, 17, 30):
        opens.append(page.evaluate(CLICK, [".dyn-fx-fold", i]))
        page.evaluate("() => [...document.querySelectorAll('.dyn-btn')].find(b => b.textContent === 'All parts').click()")
    page.evaluate("() => [...document.querySelectorAll('.dyn-btn')].find(b => b.textContent === 'As a list').click()")
    scrolled, longest = page.evaluate(SCROLL)
    folded = drawn(made("layers", 800))
    page.close()
    painted, chosen = opened(browser, made("huge"))
    return [
        row("draw the view of 100 breaks, from nothing", draws[100], 300, "ms"),
        growth("draw", draws[100], draws[400], 4),
        row("draw the view of 1,000 frames, from nothing", large, 300, "ms"),
        row("open its saved page, until it is painted, CPU", painted, 300, "ms"),
        row("click on a call of it, until it is painted, median CPU", statistics.median(chosen), 50, "ms"),
        row("click on a call of these, median work", statistics.median(c[0] for c in calls), 50, "ms"),
        row("click to detail, 400 breaks, median work", statistics.median(c[0] for c in clicks), 50, "ms"),
        row("click to detail, 400 breaks, longest work", max(c[0] for c in clicks), 50, "ms"),
        row("click to detail, 100 breaks, median until painted", statistics.median(n[1] for n in nodes), 50, "ms"),
        row("open an FX graph of 10,000 nodes, folded", big, 1000, "ms"),
        row("open an FX graph of 800 layers (9,600 nodes), folded", folded, 1000, "ms"),
        row("open four of its parts, longest, until painted", max(o[1] for o in opens), 200, "ms"),
        row("scroll its list, median step", scrolled, 16, "ms"),
        row("scroll its list, longest step", longest, 16, "ms"),
    ]


def opened(browser: Any, report: Report) -> tuple[float, list[float]]:
    """Milliseconds of CPU of a saved page's main thread until it is painted, and for each of some clicks on calls."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def used() -> float:
        page.wait_for_timeout(300)
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(1000 * float(m["value"]) for m in metrics if m["name"] == "TaskDuration")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        path.write_text(to_html(report), "utf-8")
        page.goto(path.as_uri())
        page.locator(".dyn-call").first.wait_for()
        at = [used()]
        for number in range(3, 63, 6):
            page.evaluate("i => document.querySelectorAll('.dyn-call')[i].click()", number)
            at.append(used())
    context.close()
    return at[0], [after - before for before, after in itertools.pairwise(at)]


def in_lab(browser: Any) -> list[Row]:
    """A real notebook: the code of a cell ends, and its final view stands."""
    from browser.lab import LabPage, Server
    from browser.view_pages import START

    body = "".join(f"    x = x + {i}\n    torch._dynamo.graph_break()\n" for i in range(100))
    cell = f"%%compile --backend eager\nimport time\ndef f(x):\n{body}    return x\nf(torch.ones(4))\nended = time.time()"
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "lab")
        try:
            server.write("bench.ipynb", [START, cell])
            lab = LabPage(server, browser, "bench.ipynb")
            lab.run(0)
            lab.page.evaluate(WATCH)
            lab.run(1)
            lab.page.wait_for_timeout(1500)
            ended = float(lab.python("print(ended)"))
            found = lab.page.evaluate("() => window.drawn")
            lab.close()
        finally:
            server.stop()
    whole = [at for at, rows, idle in found if rows == 100 and idle]
    return [row("100 breaks: end of the cell's code to its final view, JupyterLab", min(whole) - 1000 * ended, 300, "ms")]


def main() -> int:
    """Measure, print, write; 1 where a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--no-browser", action="store_true", help="only what needs none")
    options, _ = parser.parse_known_args()
    sys.path[:0] = [str(HERE.parent), str(HERE.parent / "unit" / "widgets")]
    rows = in_python(options.quick)
    if not options.no_browser:
        from browser.lab import CHROMIUM_FLAGS, find_chromium
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
            rows += in_a_page(browser, options.quick) + in_lab(browser)
            browser.close()
    lines = ["# The view, measured", "", f"Python {platform.python_version()}, {platform.machine()}; made by `bench_view.py`.",
             "In the kernel CPU time of the fastest round, in the browser time by the clock.", ""]  # fmt: skip
    lines += ["| what | measured | limit | kept |", "|---|---|---|---|"]
    lines += [f"| {what} | {value} | {limit} | {'yes' if kept else '**no**'} |" for what, value, limit, kept in rows]
    text = "\n".join(lines) + "\n"
    print(text)
    (HERE / "results_view.md").write_text(text, "utf-8")
    return 0 if all(kept for *_, kept in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
