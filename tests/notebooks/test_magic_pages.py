"""Planted faults in a page that uses the magics: each fails, with a message that names it."""

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
FINE = WHOLE.replace("g(", "k(")

FAULTS = {
    "a new break": (2, WHOLE.replace("x = x + 1", "x = x + 1; print(1)"), "code cell 3, line 3: a new graph break"),
    "a lost break": (1, BREAK.replace("torch._dynamo.graph_break()", "pass"), "code cell 2: a lost graph break"),
    "another place": (
        1, BREAK.replace("    x = x + 1\n", "    x = x + 1\n    x = x * 2\n"),
        "code cell 2, line 5: a new graph break",
    ),
    "an error gone": (3, REFUSED.replace(" --error-on-graph-break", ""), "code cell 4: an error is gone"),
    "an error new": (4, FINE.replace("x + 2", "x @ x @ x"), "code cell 5"),
    "a time-out": (4, "%%compile\nimport time\ntime.sleep(60)", "code cell 5, line 3: timed out after 20 s"),
}  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of a page with its outputs stored."""
    path = make_notebook(
        tmp_path_factory.mktemp("pages") / "page.ipynb", LOAD, BREAK, WHOLE, cell(REFUSED, "raises-exception"), FINE
    )
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


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_named(stored: Path, fault: str) -> None:
    index, source, headline = FAULTS[fault]
    edit(stored, index, source)
    result = run_page(stored, timeout=20)
    texts = [str(p) for p in result.problems]
    assert texts, "the fault was not seen"
    assert texts[0].startswith(f"{stored}, {headline}"), texts
    assert source.splitlines()[1] in texts[0]
