"""Finding and reading pages: no kernel."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from notebook_making import Maker, cell

from dynascope.docs_tests import runner
from dynascope.docs_tests.pages import PageError, find, read, tags_of


def test_find_takes_pages_and_leaves_the_rest(tmp_path: Path, make: Maker) -> None:
    two = make("1", name="b/two.ipynb")
    make("1", name=".ipynb_checkpoints/two.ipynb")
    make("1", name="build/out.ipynb")
    (tmp_path / "README.md").write_text("# no page\n\n````\n```{code-cell}\n1\n```\n````\n")
    assert [p.relative_to(tmp_path).as_posix() for p in find([tmp_path])] == ["b/two.ipynb"]
    assert find([two, two]) == [two]


@pytest.mark.parametrize("name", ["nowhere.ipynb", "text.txt"])
def test_find_names_what_holds_no_page(tmp_path: Path, name: str) -> None:
    if name != "nowhere.ipynb":
        (tmp_path / name).write_text("# words\n")
    with pytest.raises(PageError, match=name):
        find([tmp_path / name])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 3, "nbformat": 4}'])
def test_a_broken_notebook_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.ipynb"
    path.write_text(text)
    with pytest.raises(PageError) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_page_that_cannot_run_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.ipynb"
    path.write_text("[]")
    (problem,) = runner.run_page(path).problems
    assert str(problem).startswith(f"{path}: not a notebook: ")
    assert "\n" not in str(problem)


def test_pages_that_are_not_to_be_run(make: Maker) -> None:
    assert runner.run_page(make("1", tags=["skip-execution"])).skipped
    assert tags_of(read(make("1", tags=None)).notebook) == set()  # an empty `tags:`
    assert tags_of(read(make(cell("1", tags=None))).notebook.cells[0]) == set()


def test_without_a_kernel_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.ipynb").write_text(nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])))
    monkeypatch.setattr(runner, "find_spec", lambda name: None)
    with pytest.raises(PageError, match="pip install ipykernel"):
        runner.run_pages([str(tmp_path)], timeout=10)
