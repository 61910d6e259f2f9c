"""A report that cannot be shown: the cell ends as it would without a view, one line says so, and the report is kept."""

from __future__ import annotations

import nbformat
import pytest
import torch
from nbclient import NotebookClient

import dynascope
from dynascope.runs.display import Display

F = ("def f(x):", "    torch._dynamo.graph_break()", "    return x + 1")
LINE = "This report could not be drawn (KeyError: 'n3'); the report is still available as dynascope.last()"


def fail(*arguments, **more):
    raise KeyError("n3")


@pytest.fixture
def faulty(monkeypatch):
    monkeypatch.delenv("DYNASCOPE_DRAWING_ERRORS")
    monkeypatch.setattr(Display, "_mimebundle", fail)


def test_the_cell_has_its_value(shell, faulty):
    shell.ns["x"] = torch.ones(3)
    done = shell("%%compile --backend eager --view text -o report", *F, "f(x)")
    assert done.error is None
    assert torch.equal(done.result, torch.full((3,), 2.0))
    assert done.text.count(LINE) == 1
    assert shell.ns["report"] is dynascope.last()
    assert dynascope.last().summary.breaks == 1


def test_the_cell_has_its_own_error(shell, faulty):
    shell.ns["x"] = torch.ones(3)
    done = shell("%%compile --backend eager --view text", *F, "f(x).nope")
    assert isinstance(done.error, AttributeError)
    assert LINE in done.text
    assert dynascope.last().error is not None


def test_a_page_that_cannot_be_made_whole_is_saved(shell, monkeypatch, tmp_path):
    monkeypatch.delenv("DYNASCOPE_DRAWING_ERRORS")
    monkeypatch.setattr("dynascope.widgets.model.split_picture", fail)
    shell.ns["x"] = torch.ones(3)
    done = shell(f"%%compile --backend eager --save {tmp_path / 'report.html'}", *F, "f(x)")
    assert done.error is None
    assert "The split graph could not be drawn (KeyError: &#x27;n3&#x27;)" in (tmp_path / "report.html").read_text("utf-8")


def test_in_tests_the_fault_is_raised(shell, monkeypatch):
    monkeypatch.setattr(Display, "_mimebundle", fail)
    shell.ns["x"] = torch.ones(3)
    assert isinstance(shell("%%compile --backend eager --view text", *F, "f(x)").error, KeyError)


BREAK_THE_VIEW = """
import os, torch, dynascope.widgets.view as view
%load_ext dynascope
del os.environ["DYNASCOPE_DRAWING_ERRORS"]
def fail(report):
    raise KeyError("n3")
view.view_model = fail
"""


def test_in_a_kernel_the_view_and_the_report_say_so():
    cells = [
        BREAK_THE_VIEW,
        "\n".join(["%%compile --backend eager", *F, "f(torch.ones(3))"]),
        "dynascope.last().summary.breaks",
    ]
    cells[0] = "import dynascope" + cells[0]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    client = NotebookClient(notebook, kernel_name="python3", timeout=600)
    client.execute()
    view, report, result = notebook.cells[1].outputs
    assert report.data["text/plain"] == LINE
    assert "text/html" not in report.data
    assert result.data["text/plain"] == "tensor([2., 2., 2.])"
    assert notebook.cells[2].outputs[0].data["text/plain"] == "1"
    state = client.widget_state[view.data["application/vnd.jupyter.widget-view+json"]["model_id"]]
    assert state["status"] == {"text": LINE, "kind": "error"}
    assert state["busy"] is False
