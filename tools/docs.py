"""`make docs`: executes every tutorial, and writes a small site that works offline.

Each report's static picture is replaced by the report's stand-alone page in a frame: the same view as in the notebook,
clickable, without a network.  The API page and the pages of `reference/` follow.

    python -m tools.docs examples build/docs
"""

from __future__ import annotations

import html
import re
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat
from nbconvert import HTMLExporter
from pygments.formatters import HtmlFormatter

from dynascope.docs_tests.pages import find
from tools import api_page
from tools.demo import run_and_keep

FIRST = "tour"
#: second-level headings that end in a question mark: the site's first page lists those of all tutorials but the tour
_QUESTION = re.compile(r"^##\s+(.+\?)\s*$", re.MULTILINE)
_HEADING = re.compile(r"^#\s+(.+)$", re.MULTILINE)
_PARAGRAPH = re.compile(r"^(?![#\s>!|-]|```)(.+(?:\n\S.*)*)", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")

CSS = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1c1e21; --quiet: #5f6670; --soft: #f5f6f8; --line: #d9dce1;
  --link: #0b57d0; }
@media (prefers-color-scheme: dark) { :root { --ground: #15171a; --ink: #e4e6ea; --quiet: #9aa1ab; --soft: #1f2226;
  --line: #383d44; --link: #8ab4f8; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--ground); font: 16px/1.6 system-ui, sans-serif;
  display: grid; grid-template-columns: 15rem minmax(0, 64rem); gap: 0 2.5rem; padding: 0 1.5rem; }
nav { position: sticky; top: 0; align-self: start; padding: 2rem 0; font-size: 14px; }
nav strong { font-size: 16px; }
nav span { display: block; margin-top: 1rem; font-weight: 600; }
nav a { display: block; padding: .2rem 0; color: var(--quiet); text-decoration: none; }
nav a:hover, nav a[aria-current] { color: var(--ink); }
nav a[aria-current] { font-weight: 600; }
main { padding: 1.2rem 0 4rem; }
a { color: var(--link); }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; } h2:target { background: var(--soft); }
pre { font: 13px/1.5 ui-monospace, monospace; overflow-x: auto; margin: 0; padding: .6rem .9rem; }
code { font: .9em ui-monospace, monospace; background: var(--soft); border-radius: 3px; padding: .1em .25em; }
pre code { background: none; padding: 0; }
.highlight { background: var(--soft); border-radius: 6px; }
.prompt, .jp-InputPrompt, .jp-OutputPrompt, .anchor-link { display: none; }
.jp-Cell { margin: 1rem 0; }
.jp-OutputArea-output pre { color: var(--quiet); }
.ansi-red-intense-fg, .ansi-red-fg { color: #d4313a; }
img { max-width: 100%; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 15px; }
td, th { padding: .35rem .8rem .35rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
iframe.dynascope { display: block; width: 100%; height: 42rem; margin: .6rem 0; border: 1px solid var(--line);
  border-radius: 6px; }
dt { margin-top: 1rem; font-weight: 600; } dd { margin: 0; color: var(--quiet); }
@media (max-width: 64rem) { body { display: block; } nav { position: static; padding-bottom: 0; } nav a { display: inline-block;
  margin-right: 1rem; } }
"""


@dataclass
class Entry:
    """One page of the site."""

    stem: str
    title: str
    #: the page's first paragraph, as plain text
    words: str
    questions: list[str]
    notebook: Any
    is_reference: bool = False


def page_html(title: str, body: str, entries: list[Entry], here: str) -> str:
    """The HTML of one page of the site, with links to all others."""
    dark = HtmlFormatter(style="github-dark").get_style_defs(".highlight")
    dark = re.sub(r"^\.highlight \{.*\n", "", dark, flags=re.MULTILINE)
    light = HtmlFormatter(style="default").get_style_defs(".highlight")
    light = re.sub(r"^\.highlight \{.*\n", "", light, flags=re.MULTILINE)
    links = "".join(
        f"<span>{group}</span>"
        + "".join(_link(e.stem, e.title, e.stem == here) for e in entries if e.is_reference == reference)
        for group, reference in (("Tutorials", False), ("Reference", True))
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{CSS}{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}</style>"
        f'</head>\n<body><nav><a href="index.html"><strong>dynascope</strong></a>{links}</nav>'
        f"\n<main>{body}</main></body></html>\n"
    )


def _link(stem: str, title: str, current: bool) -> str:
    mark = ' aria-current="page"' if current else ""
    return f'<a href="{stem}.html"{mark}>{html.escape(title)}</a>'


def with_live_views(notebook: Any, name: str, reports: dict[int, Path]) -> None:
    """Replace the static picture of each report by a frame with the report's page."""
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


def without_hidden(notebook: Any) -> None:
    """Remove the cells and outputs that tags of the notebook hide from readers."""
    notebook.cells = [c for c in notebook.cells if "remove-cell" not in c.metadata.get("tags", [])]
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if f"remove-{o.get('name')}" not in tags and "remove-output" not in tags]


def entry_of(notebook: Any, stem: str) -> Entry:
    """The Entry of a page: its first heading, the first paragraph, and the questions in its headings."""
    text = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    heading, paragraph = _HEADING.search(text), _PARAGRAPH.search(text)
    title = heading.group(1).replace("`", "") if heading else stem
    return Entry(stem, title, _plain(paragraph.group(1)) if paragraph else "", _QUESTION.findall(text), notebook)


def _plain(markdown: str) -> str:
    text = _LINK.sub(r"\1", markdown).replace("`", "").replace("**", "")
    return " ".join(re.sub(r"(?<!\w)\*|\*(?!\w)", "", text).split())


def index_html(entries: list[Entry]) -> str:
    """The HTML of the first page: questions of newcomers, then the tutorials and the reference."""
    asked = [
        f'<li><a href="{e.stem}.html#{html.escape(q.replace(" ", "-"))}">{html.escape(q)}</a></li>'
        for e in entries for q in e.questions if e.stem != FIRST
    ]  # fmt: skip
    tutorials, reference = (
        "".join(
            f"<dt>{_link(e.stem, e.title, False)}</dt><dd>{html.escape(e.words)}</dd>" for e in entries if e.is_reference == r
        )
        for r in (False, True)
    )
    return (
        "<h1>dynascope</h1><p>See and steer what <code>torch.compile</code> does, inside the notebook. "
        "The tutorials are shown as they ran here. Every picture in them is live: click it.</p>"
        f"<h2>Questions</h2><ul>{''.join(asked)}</ul><h2>Tutorials</h2><dl>{tutorials}</dl>"
        f"<h2>Reference</h2><dl>{reference}</dl>"
    )


def main(arguments: list[str]) -> int:
    """Write the site; returns 0 if every tutorial ran as it should."""
    source, out = Path(arguments[0]), Path(arguments[1])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    # "basic" exports only the body; the page around it fetches nothing from the network
    exporter = HTMLExporter(template_name="basic")  # type: ignore[no-untyped-call, unused-ignore]
    entries = []
    failed = 0
    for page in sorted(find([source]), key=lambda p: (p.stem != FIRST, p.stem)):
        result, reports = run_and_keep(page, out / page.stem)
        print(f"{'ok' if result.ok else 'FAILED':8}{page}  {len(reports)} reports, {result.seconds:.1f} s", flush=True)
        for problem in result.problems:
            print(f"{problem}\n")
        failed += not result.ok
        if result.notebook is not None:
            with_live_views(result.notebook, page.stem, reports)
            without_hidden(result.notebook)
            entries.append(entry_of(result.notebook, page.stem))
    entries += reference(source / "reference")
    if (source / "images").is_dir():
        shutil.copytree(source / "images", out / "images")
    for entry in entries:
        body, _ = exporter.from_notebook_node(entry.notebook)
        body = flat_links(body)
        (out / f"{entry.stem}.html").write_text(page_html(entry.title, body, entries, entry.stem), encoding="utf-8")
    (out / "index.html").write_text(page_html("dynascope", index_html(entries), entries, ""), encoding="utf-8")
    print(f"\n{len(entries)} pages in {out}: open {out / 'index.html'}")
    return 1 if failed or not entries else 0


def reference(folder: Path) -> list[Entry]:
    """Entries for the API page and for the Markdown files of the folder."""
    texts = {"api": api_page.page()}
    texts.update({path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))})
    cells = {stem: nbformat.v4.new_markdown_cell(text) for stem, text in texts.items()}  # type: ignore[no-untyped-call, unused-ignore]
    entries = [entry_of(nbformat.v4.new_notebook(cells=[cell]), stem) for stem, cell in cells.items()]  # type: ignore[no-untyped-call, unused-ignore]
    return [replace(entry, is_reference=True, questions=[]) for entry in entries]


def flat_links(body: str) -> str:
    """Make links to notebooks and Markdown files lead to their pages, which are all in one folder."""
    return re.sub(r'href="(?!\w+:)(?:[\w./-]+/)?([\w-]+)\.(?:ipynb|md)(#[^"]*)?"', r'href="\1.html\2"', body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
