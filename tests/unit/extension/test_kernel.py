"""In a real kernel: the order of the displays, and what each of them shows."""

from __future__ import annotations

import re
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from unit.extension.test_guarded_display import LINE

CELLS = [
    "%load_ext dynascope\nimport torch\nx = torch.ones(3)",
    "%%compile --backend eager\ndef f(x):\n    torch._dynamo.graph_break()\n    return x + 1\nprint('mine')\nf(x)",
    "%%compile --backend eager\nf(x).nope",
    "%%capture cap\n%%compile --backend eager\nf(x)",
    "len(cap.outputs)",
    "%%compile --backend eager --view none\nf(x)",
    "%%compile --backend eager --view text\nf(x)",
    "%%compile --bakend eager\nf(x)",
    "import dynascope; dynascope.last().breaks[0].cell",
]


#: the traceback of each of them as a plain cell is that under the magic
FAILING = [
    "y = x + 1\n\nz = y.reshape(7)\nw = 1",
    "y = x + 1\nprint('a')\nq = 1 / 0\n",
    "for i in range(3):\n    y = x + 1\n    print('a')\n    y = y + {}[i]",
    "h = lambda t: t.reshape(9)\nprint('a')\nh(x)",
    "def g(x, *rest, k=1):\n    x = x + 1\n    torch._dynamo.graph_break()\n\n    return x.reshape(7)\n"
    "def f(x):\n    torch._dynamo.graph_break()\n    torch._dynamo.graph_break()\n    return g(x)\nf(x)",
]
QUIET = "%%compile --backend eager --view none"
#: a report that cannot be shown
UNDRAWN = [
    "import os, dynascope.widgets.view as view\ndel os.environ['DYNASCOPE_DRAWING_ERRORS']\n"
    "def fail(report): raise KeyError('n3')\nview.view_model = fail",
    CELLS[1],
    "dynascope.last().summary.breaks",
]


class WithoutUpdates(NotebookClient):
    """A front end that ignores updates of earlier outputs, as the Jupyter console does, and VS Code when a cell runs again."""

    def process_message(self, msg: Any, *arguments: Any) -> Any:
        return None if msg["msg_type"] == "update_display_data" else super().process_message(msg, *arguments)


@pytest.fixture(scope="module")
def client():
    """One kernel, in which all of these cells have run."""
    cells = [*CELLS, *(f"{first}\n{text}" for text in FAILING for first in (f"# {QUIET}", QUIET)), *UNDRAWN]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    client = WithoutUpdates(notebook, kernel_name="python3", allow_errors=True, timeout=600)
    client.execute()
    return client


@pytest.fixture(scope="module")
def outputs(client):
    return [cell.outputs for cell in client.nb.cells]


def kinds(found):
    return [out.output_type for out in found]


def test_view_own_output_report_result(outputs):
    view, own, report, result = outputs[1]
    assert "application/vnd.jupyter.widget-view+json" in view.data
    assert report.output_type == "display_data"
    assert "f: 1 graph" in report.data["text/plain"]
    assert "<img" in report.data["text/html"]
    assert own.text == "mine\n"
    assert result.output_type == "execute_result"


def test_error_comes_with_its_report_and_the_users_frames_only(outputs):
    _, report, error = outputs[2]
    assert "stopped by an error" in report.data["text/plain"]
    assert error.ename == "AttributeError"
    assert "magics.py" not in "".join(error.traceback)
    assert "In[3]" in "".join(error.traceback)


def test_capture_none_text_and_usage_error(outputs):
    assert outputs[3] == []
    assert outputs[4][0].data["text/plain"] == "2"  # the report and the result
    assert kinds(outputs[5]) == ["execute_result"]
    assert list(outputs[6][0].data) == ["text/plain", "application/vnd.dynascope.report+json"]
    assert kinds(outputs[6]) == ["display_data", "execute_result"]
    text = "".join(out.get("text", "") + "".join(out.get("traceback", [])) for out in outputs[7])
    assert "unrecognized arguments: --bakend eager" in text
    assert (len(outputs[7]), outputs[8][0].data["text/plain"]) == (1, "2")


@pytest.mark.parametrize("number", range(len(FAILING)))
def test_a_traceback_is_that_of_the_plain_cell(outputs, number):
    first = len(CELLS) + 2 * number
    shown = [re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(found[-1].traceback)) for found in outputs[first : first + 2]]
    expected, told = (re.sub(r"In\[\d+\]", "In[]", text) for text in shown)
    assert "Cell In[], line " in expected
    assert told == expected


def test_a_report_that_cannot_be_shown(client, outputs):
    """The line that stands in place of the view and of the report is that of test_guarded_display.py."""
    view, _, report, result = outputs[-2]
    assert report.data["text/plain"] == LINE
    assert "text/html" not in report.data
    assert result.data["text/plain"] == "tensor([2., 2., 2.])"
    assert outputs[-1][0].data["text/plain"] == "1"
    state = client.widget_state[view.data["application/vnd.jupyter.widget-view+json"]["model_id"]]
    assert state["status"] == {"text": LINE, "kind": "error"}
    assert state["busy"] is False
