"""`make docs`: execute every tutorial, and write a small site that works offline.

Each report's static picture is replaced by its stand-alone page in a frame: the same view as in the
notebook, clickable, with nothing fetched from anywhere.

    python -m tools.docs examples build/docs
"""

from __future__ import annotations

import html
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbconvert import HTMLExporter
from pygments.formatters import HtmlFormatter

from dynascope.notebook_pages import find
from tools.kept import run_and_keep

CSS = """
body { font: 16px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; color: #1c1e21; background: #fff; }
pre { font: 13px/1.45 ui-monospace, monospace; overflow-x: auto; margin: 0; padding: .6rem .8rem; }
.jp-InputArea, .jp-CodeMirrorEditor, .highlight { background: #f6f7f9; border-radius: 4px; }
.jp-InputPrompt, .jp-OutputPrompt, .anchor-link { display: none; }
.jp-Cell { margin: 1rem 0; }
img { max-width: 100%; }
table { border-collapse: collapse; } td, th { padding: 2px 12px 2px 0; text-align: left; vertical-align: top; }
iframe.dynascope { width: 100%; height: 38rem; border: 1px solid #d5d8dd; border-radius: 4px; background: #fff; }
nav { margin-bottom: 2rem; }
"""


def page_html(title: str, body: str) -> str:
    """One page of the site."""
    style = CSS + HtmlFormatter(style="default").get_style_defs(".highlight")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<title>{html.escape(title)}</title><style>{style}</style></head>\n<body><nav><a href="index.html">dynascope</a></nav>'
        f"\n{body}\n</body></html>\n"
    )


def with_live_views(notebook: Any, name: str, reports: dict[int, Path]) -> None:
    """Put each report's page in the place of its static picture."""
    for cell in notebook.cells:
        stem = reports.get(cell.get("execution_count") or -1)
        if cell.cell_type != "code" or stem is None:
            continue
        rest = [o for o in cell.outputs if "dyn-static" not in str(o.get("data", {}).get("text/html", ""))]
        frame = f'<iframe class="dynascope" title="report" loading="lazy" src="{name}/{stem.name}.html"></iframe>'
        view = "application/vnd.jupyter.widget-view+json"
        rest = [o for o in rest if view not in o.get("data", {})]
        live = {"output_type": "display_data", "data": {"text/html": frame}, "metadata": {}}
        cell.outputs = [nbformat.from_dict(live), *rest]


def title_of(notebook: Any, fallback: str) -> tuple[str, str]:
    """A page's first heading, and the first paragraph after it."""
    text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    heading = re.search(r"^#\s+(.+)$", text, re.MULTILINE)
    paragraph = re.search(r"^(?![#\s>!|`-])(.+(?:\n(?!\s*\n|#).+)*)", text, re.MULTILINE)
    plain = re.sub(r"[`*_]|\[([^\]]+)\]\([^)]*\)", lambda m: m.group(1) or "", paragraph.group(1)) if paragraph else ""
    return (heading.group(1).replace("`", "") if heading else fallback), " ".join(plain.split())


def main(arguments: list[str]) -> int:
    """0 where every tutorial ran as it should."""
    source, out = Path(arguments[0]), Path(arguments[1])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    # "basic" is the body alone; the page around it fetches nothing
    exporter = HTMLExporter(template_name="basic")  # type: ignore[no-untyped-call, unused-ignore]
    entries = []
    failed = 0
    for page in find([source]):
        result, reports = run_and_keep(page, out / page.stem)
        print(f"{'ok' if result.ok else 'FAILED':8}{page}  {len(reports)} reports, {result.seconds:.1f} s", flush=True)
        for problem in result.problems:
            print(f"{problem}\n")
        failed += not result.ok
        if result.notebook is None:
            continue
        with_live_views(result.notebook, page.stem, reports)
        title, words = title_of(result.notebook, page.stem)
        body, _ = exporter.from_notebook_node(result.notebook)
        body = re.sub(r'href="([\w./-]+)\.(?:ipynb|md)(#[^"]*)?"', r'href="\1.html\2"', body)
        (out / f"{page.stem}.html").write_text(page_html(title, body), encoding="utf-8")
        entries.append(f'<li><a href="{page.stem}.html">{html.escape(title)}</a><br>{html.escape(words)}</li>')
    index = "<h1>dynascope</h1><p>The tutorials, as they ran here.</p><ul>" + "\n".join(entries) + "</ul>"
    (out / "index.html").write_text(page_html("dynascope", index), encoding="utf-8")
    print(f"\n{len(entries)} pages in {out}: open {out / 'index.html'}")
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
