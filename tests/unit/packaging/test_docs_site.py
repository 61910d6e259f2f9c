"""The pages of `make docs`, made from small notebooks without running them."""

from __future__ import annotations

from pathlib import Path

import nbformat

from tools.docs import entry_of, index_html, page_html, with_live_views, without_hidden

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
    index = index_html([entry])
    assert 'href="02_fullgraph.html#What-is-it-good-for?"' in index


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
