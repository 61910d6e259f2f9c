"""A report that cannot be shown: the cell ends as it would without a view, one line says so, and the report is kept."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
import torch

import dynascope
from dynascope.runs.display import Display

F = ("def f(x):", "    torch._dynamo.graph_break()", "    return x + 1")
LINE = "This report could not be drawn (KeyError: 'n3'); the report is still available as dynascope.last()"


FAIL = Mock(side_effect=KeyError("n3"))


@pytest.fixture
def faulty(monkeypatch):
    monkeypatch.delenv("DYNASCOPE_DRAWING_ERRORS")
    monkeypatch.setattr(Display, "_mimebundle", FAIL)


def test_the_cell_has_its_value(shell, faulty):
    done = shell("%%compile --backend eager --view text -o report", *F, "f(x)")
    assert done.error is None
    assert torch.equal(done.result, torch.full((3,), 2.0))
    assert done.text.count(LINE) == 1
    assert shell.ns["report"] is dynascope.last()
    assert dynascope.last().summary.breaks == 1


def test_a_page_that_cannot_be_made_whole_is_saved(shell, monkeypatch, tmp_path):
    monkeypatch.delenv("DYNASCOPE_DRAWING_ERRORS")
    monkeypatch.setattr("dynascope.widgets.model.split_picture", FAIL)
    assert shell(f"%%compile --backend eager --save {tmp_path / 'report.html'}", *F, "f(x)").error is None
    assert "The split graph could not be drawn (KeyError: &#x27;n3&#x27;)" in (tmp_path / "report.html").read_text("utf-8")
