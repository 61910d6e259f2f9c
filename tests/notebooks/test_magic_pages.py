"""A page that uses the magics: it holds, and a new break is named (test_notebook_runner has all faults)."""

from __future__ import annotations

import re
from pathlib import Path

from notebook_making import edit, make_notebook

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


def test_a_page_holds_and_a_new_break_is_named(tmp_path: Path) -> None:
    page = make_notebook(tmp_path / "page.ipynb", LOAD, BREAK, WHOLE.replace("compile", "compile --view text"))
    result = run_page(page, update=True)
    assert result.ok, result.problems[0]
    assert outlines(result.notebook.cells[1].outputs)
    edit(page, 2, WHOLE.replace("compile", "compile --view text").replace("x = x + 1", "x = x + 1; print(1)"))
    named, *_ = run_page(page).problems
    assert str(named).startswith(f"{page}, code cell 3, line 3: a new graph break")
    page.write_text(re.sub(r'"torch": "[^"]*"', '"torch": "2.0.1"', page.read_text()))
    (said,) = run_page(page).notes
    assert said.startswith("reports were not compared: they were stored with torch 2.0.1 and Python 3.")
