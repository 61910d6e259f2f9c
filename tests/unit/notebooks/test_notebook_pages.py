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


def test_a_myst_page_has_its_cells_tags_lines_and_limits(myst: Path) -> None:
    page = read(myst)
    cells = [c for _, c in page.code_cells()]
    assert [tags_of(c) for c in cells] == [{"remove-cell"}, set(), {"raises-exception"}]
    assert [page.timeout(c) for c in cells] == [30, 30, 7]
    lines = MYST.splitlines()
    for (index, found), first in zip(page.code_cells(), [page.first_lines[i] for i, _ in page.code_cells()], strict=True):
        assert first is not None
        assert lines[first - 1] == found.source.splitlines()[0], index
    assert page.notes == []
    assert not page.stores_outputs


def test_a_front_matter_without_display_name_is_fine(myst: Path) -> None:
    assert "display_name" not in MYST
    assert read(myst).notebook.metadata.kernelspec["name"] == "python3"


def test_code_cells_that_jupytext_does_not_read_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(MYST + "\n- item\n\n  ```{code-cell}\n  1 / 0\n  ```\n")
    assert "1 code cell inside lists" in read(path).notes[0]


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


def test_a_broken_front_matter_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.md"
    path.write_text("---\nfile_format: mystnb\na: [1\n---\n\n```{code-cell}\n1\n```\n")
    with pytest.raises(PageError) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert "front matter" in str(caught.value)


FRONT = "---\nfile_format: mystnb\n{}\n---\n\n"
CELL = "```{code-cell}\n1\n```\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# words\n", "no code cells"),
        (FRONT.format("kernelspec: python3") + CELL, "kernelspec is not a mapping"),
        ("---\n- file_format: mystnb\n---\n\n" + CELL, "it is not a mapping"),
        (FRONT.format("") + "```{code-cell}\n:load: nowhere.py\n```\n", "load: nowhere.py cannot be read"),
        (FRONT.format("language_info: 3") + CELL, "cannot be read"),
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


def test_options_as_myst_nb_has_them(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("x = 1\ny = 2\n")
    path = tmp_path / "page.md"
    old = FRONT.format("execution:\n  timeout: 7\n  allow_errors: true")
    path.write_text("\ufeff" + old + CELL + "\n```{code-cell}\n:load: code.py\n```\n", encoding="utf-8")
    page = read(path)
    first, second = [c for _, c in page.code_cells()]
    assert page.timeout(first) == 7
    assert page.option("execution_allow_errors") is True
    assert second.source == "x = 1\ny = 2"


@pytest.mark.parametrize(
    ("page_wide", "own", "expected"),
    [
        ({}, {}, 300),
        ({"mystnb": {"execution_timeout": 20}}, {}, 20),
        ({"execution_timeout": 20}, {"execution_timeout": 5}, 5),
        ({"execution_timeout": 20}, {"mystnb": {"execution_timeout": 6}}, 6),
        ({"execution_timeout": -1}, {}, None),
    ],
)
def test_the_nearest_time_limit_holds(make: Maker, page_wide: dict, own: dict, expected: float | None) -> None:  # type: ignore[type-arg]
    page = read(make(cell("1", **own), **page_wide))
    assert page.timeout(page.notebook.cells[0]) == expected


def test_a_time_limit_that_is_none_is_named(make: Maker) -> None:
    page = read(make("1", execution_timeout="soon"))
    with pytest.raises(PageError, match=r"execution_timeout is 'soon'"):
        page.timeout(page.notebook.cells[0])


def test_pages_that_are_not_to_be_run(make: Maker) -> None:
    assert read(make("1")).skip_reason() is None
    assert read(make("1", mystnb={"execution_mode": "off"})).skip_reason()
    assert read(make("1", mystnb={"execution_mode": False})).skip_reason()  # an unquoted `off` in YAML
    assert read(make("1", tags=["skip-execution"])).skip_reason()
    assert read(make("1", tags=None)).skip_reason() is None  # an empty `tags:`
    assert tags_of(read(make(cell("1", tags=None))).notebook.cells[0]) == set()
    other = read(make("1", kernelspec={"name": "ir", "display_name": "R", "language": "R"}))
    assert other.skip_reason() == "written in R, not in Python"


def test_without_a_kernel_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.ipynb").write_text(nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])))
    monkeypatch.setattr(runner, "find_spec", lambda name: None)
    with pytest.raises(PageError, match="pip install ipykernel"):
        runner.run_pages([str(tmp_path)], timeout=10)
