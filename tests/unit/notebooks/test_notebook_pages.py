"""Finding and reading pages: no kernel."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from notebook_making import MYST, Maker, cell

from dynascope.docs_tests import runner
from dynascope.docs_tests.pages import PageError, find, read, tags_of


@pytest.fixture
def myst(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(MYST)
    return path


def test_a_myst_page_has_its_cells_tags_and_limit(myst: Path) -> None:
    page = read(myst)
    assert [tags_of(c) for _, c in page.code_cells()] == [{"remove-cell"}, set(), {"raises-exception"}]
    assert page.timeout() == 30
    assert not page.stores_outputs


def test_find_takes_pages_and_leaves_the_rest(tmp_path: Path, make: Maker, myst: Path) -> None:
    make("1", name="b/two.ipynb")
    make("1", name=".ipynb_checkpoints/two.ipynb")
    make("1", name="build/out.ipynb")
    (tmp_path / "README.md").write_text("# no page\n\n````\n```{code-cell}\n1\n```\n````\n")
    assert [p.relative_to(tmp_path).as_posix() for p in find([tmp_path])] == ["b/two.ipynb", "page.md"]
    assert find([myst, myst]) == [myst]


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


FRONT = "---\nfile_format: mystnb\n{}\n---\n\n"
CELL = "```{code-cell}\n1\n```\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# words\n", "no code cells"),
        (FRONT.format("a: [1") + CELL, "not a MyST page: "),
        (FRONT.format("kernelspec: python3") + CELL, "not a MyST page: "),
        (FRONT.format("mystnb: 3") + CELL, "cannot be read"),
    ],
)
def test_a_page_that_cannot_run_is_one_line_and_the_others_run(tmp_path: Path, text: str, words: str) -> None:
    from dynascope.docs_tests.runner import run_page

    path = tmp_path / "bad.md"
    path.write_text(text)
    assert find([path, tmp_path])[0] == path
    (problem,) = run_page(path).problems
    assert str(problem).startswith(f"{path}: ")
    assert words in str(problem)
    assert "\n" not in str(problem)


def test_the_time_limit_is_the_pages(make: Maker) -> None:
    for given, expected in ({}, 300), ({"execution_timeout": 20}, 20), ({"execution_timeout": -1}, None):
        assert read(make("1", mystnb=given)).timeout() == expected


def test_a_time_limit_that_is_none_is_named(make: Maker) -> None:
    page = read(make("1", mystnb={"execution_timeout": "soon"}))
    with pytest.raises(PageError, match=r"execution_timeout is 'soon'"):
        page.timeout()


def test_pages_that_are_not_to_be_run(make: Maker) -> None:
    assert read(make("1")).skip_reason() is None
    assert read(make("1", mystnb={"execution_mode": "off"})).skip_reason()
    assert read(make("1", mystnb={"execution_mode": False})).skip_reason()  # an unquoted `off` in YAML
    assert read(make("1", tags=["skip-execution"])).skip_reason()
    assert read(make("1", tags=None)).skip_reason() is None  # an empty `tags:`
    assert tags_of(read(make(cell("1", tags=None))).notebook.cells[0]) == set()


def test_without_a_kernel_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.ipynb").write_text(nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])))
    monkeypatch.setattr(runner, "find_spec", lambda name: None)
    with pytest.raises(PageError, match="pip install ipykernel"):
        runner.run_pages([str(tmp_path)], timeout=10)
