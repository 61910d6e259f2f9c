"""The fixtures themselves: a cell runs, the kernel answers, themes switch, pictures are made."""

from __future__ import annotations

from collections.abc import Callable

from browser.lab import LabPage, Server


def test_a_page_runs_cells_and_answers(open_lab: Callable[..., LabPage]) -> None:
    lab = open_lab(["x = 20 + 1\nx * 2", "1 / 0"])
    lab.run(0)
    assert lab.text(0) == "42"
    assert "ZeroDivisionError" in lab.run(1).inner_text()
    assert lab.python("print(x)") == "21\n"
    assert lab.execution_count(1) == 2
    lab.theme("dark")
    assert lab.page.locator("body[data-jp-theme-light='false']").count() == 1
    lab.theme("light")
    lab.resize(800)
    lab.focus()
    assert lab.shot("fixtures").stat().st_size > 1000
    assert lab.shot("fixtures-cell", ".jp-Cell").stat().st_size > 100


def test_a_saved_notebook_opens_again(open_lab: Callable[..., LabPage], lab_server: Server) -> None:
    lab = open_lab(["print('kept')"])
    lab.run(0)
    path = lab.save()
    assert path.parent == lab_server.root
    assert "kept" in path.read_text()
    assert open_lab(path).text(0) == "kept"
