"""A page that uses the magics: it holds, and a new break is named (test_notebook_runner has all faults)."""

from __future__ import annotations

from pathlib import Path

import pytest
from notebook_making import cell, edit, make_notebook

from dynascope.docs_tests.outputs import outlines
from dynascope.docs_tests.runner import run_page

LOAD = "%load_ext dynascope\n%config DynascopeMagics.backend = 'eager'\nimport torch"
BREAK = """\
%%compile
def f(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x + 2

f(torch.ones(3))"""
WHOLE = """\
%%compile
def g(x):
    x = x + 1
    return x + 2

g(torch.ones(3))"""
REFUSED = BREAK.replace("%%compile", "%%compile --error-on-graph-break").replace("f(", "h(")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of a page with its outputs stored."""
    path = make_notebook(tmp_path_factory.mktemp("pages") / "page.ipynb", LOAD, BREAK, WHOLE, cell(REFUSED, "raises-exception"))
    result = run_page(path, update=True)
    assert result.ok, result.problems[0]
    if not outlines(result.notebook.cells[1].outputs):
        pytest.skip("the static output carries no structure")
    return path.read_text()


@pytest.fixture
def stored(page: str, tmp_path: Path) -> Path:
    path = tmp_path / "page.ipynb"
    path.write_text(page)
    return path


def test_the_page_holds_and_updating_it_changes_nothing(stored: Path, page: str) -> None:
    result = run_page(stored)
    assert result.ok, result.problems[0]
    assert not run_page(stored, update=True).updated
    assert stored.read_text() == page


def test_a_new_break_is_named(stored: Path) -> None:
    edit(stored, 2, WHOLE.replace("x = x + 1", "x = x + 1; print(1)"))
    assert str(run_page(stored).problems[0]).startswith(f"{stored}, code cell 3, line 3: a new graph break")
