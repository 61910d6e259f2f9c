"""The pages of `make docs`, made from small notebooks without running them."""

from __future__ import annotations

from pathlib import Path

import nbformat

import dynascope
from tools import api_page
from tools.docs import entry_of, flat_links, index_html, page_html, reference, with_live_views, without_hidden

TEXT = """# `fullgraph`, or an error

`torch.compile` is *kind*, and
error_on_graph_break [is not](03_x.ipynb).

## What is it good for?
"""


def notebook() -> nbformat.NotebookNode:
    code = nbformat.v4.new_code_cell("f(x)", execution_count=2)
    code.outputs = [
        nbformat.v4.new_output("display_data", {"text/html": '<div class="dyn-static">old</div>'}),
        nbformat.v4.new_output("stream", name="stderr", text="noise"),
    ]
    code.metadata["tags"] = ["remove-stderr"]
    hidden = nbformat.v4.new_code_cell("tidy()", metadata={"tags": ["remove-cell"]})
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(TEXT), code, hidden])


def test_a_page_is_known_by_its_heading_its_first_paragraph_and_its_questions() -> None:
    entry = entry_of(notebook(), "02_fullgraph")
    assert entry.title == "fullgraph, or an error"
    assert entry.words == "torch.compile is kind, and error_on_graph_break is not."
    assert entry.questions == ["What is it good for?"]
    assert 'href="02_fullgraph.html#What-is-it-good-for?"' in index_html([entry])


def test_pictures_become_live_views_and_hidden_parts_go(tmp_path: Path) -> None:
    page = notebook()
    with_live_views(page, "02_fullgraph", {2: tmp_path / "02"})
    without_hidden(page)
    (code,) = [c for c in page.cells if c.cell_type == "code"]
    (output,) = code.outputs
    assert 'src="02_fullgraph/02.html"' in output["data"]["text/html"]


def test_a_page_fetches_nothing() -> None:
    entry = entry_of(notebook(), "02_fullgraph")
    made = page_html(entry.title, "<p>text</p>", [entry], entry.stem)
    assert 'aria-current="page"' in made
    assert "http:" not in made
    assert "https:" not in made


def test_the_api_page_has_every_public_name_and_every_part_of_a_report() -> None:
    text = api_page.page()
    for name in set(dynascope.__all__) - {"__version__"}:
        assert f"\n## {name}\n\n```python\ndynascope.{name}(" in text
    assert "dynascope.load(path: str | Path, *, strict: bool = False) -> Report | RanksReport" in text
    assert "- `strict`: raise ValueError if" in text, "sections of a docstring are lists"
    for method in ("save", "diff", "expect", "run_graph", "view"):
        assert f"\n### {method}\n\n```python\nreport.{method}(" in text
    for part in ("Frame", "Graph", "Break", "Recompile", "Profile", "Summary", "Rank", "Difference"):
        assert f"\n### {part}\n" in text
    assert "| `outcome` | `Outcome" in text
    assert "(self" not in text


def test_reference_pages_follow_the_tutorials(root: Path) -> None:
    entries = reference(root / "examples" / "reference")
    pages = sorted(p.stem for p in (root / "examples" / "reference").glob("*.md"))
    assert [entry.stem for entry in entries] == ["api", *pages]
    index = index_html([entry_of(notebook(), "02_fullgraph"), *entries])
    assert index.index('href="02_fullgraph.html"') < index.index("Reference") < index.index('href="api.html"')
    links = '<a href="../07_run_time.ipynb#a"></a><a href="hosts.md"></a><a href="https://a.b/c.md"></a>'
    assert flat_links(links) == '<a href="07_run_time.html#a"></a><a href="hosts.html"></a><a href="https://a.b/c.md"></a>'
