"""Regions and Run again where others start the kernel: papermill, and clients with and without subshells."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from processes import python

PAGE = [
    "size = 3",
    "%load_ext dynascope\nimport torch, dynascope\nx = torch.ones(size)",
    "%%compile --backend eager --error-on-graph-break --region 4=allow {options}\ndef f(x):\n    x = x + 1\n"
    "    torch._dynamo.graph_break()\n    return x * 2\nf(x)",
    "report = dynascope.last()\n"
    "print(size, [(b.line, b.cell, b.region.kind, b.region.name, b.allowed) for b in report.breaks])",
]


def papermill(folder: Path, options: str) -> tuple[Any, Any]:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text.replace("{options}", options)) for text in PAGE])
    notebook.cells[0].metadata.tags = ["parameters"]
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "in.ipynb")
    done = python("-m", "papermill", "in.ipynb", "out.ipynb", "-p", "size", "5", "--no-progress-bar", folder=folder)
    return done, nbformat.read(folder / "out.ipynb", as_version=4)


def test_papermill(tmp_path: Path) -> None:
    done, ran = papermill(tmp_path, "--expect unexpected=0")
    assert done.returncode == 0, done.stderr
    assert ran.cells[-1].outputs[0].text == "5 [(4, 4, 'option', '4', True)]\n"  # the parameters are a cell, too
    live, report, value = ran.cells[-2].outputs  # the report is displayed when its run ends, and only once
    assert live.data["text/plain"] == ""
    assert "1 graph break (1 allowed)" in report.data["text/plain"]
    assert "<img" in report.data["text/html"]
    assert value.output_type == "execute_result"


def test_papermill_stops_at_what_is_not_as_expected(tmp_path: Path) -> None:
    done, _ = papermill(tmp_path, "--expect breaks=0")
    assert done.returncode != 0
    assert "ExpectationFailed: expected breaks=0, found 1" in done.stderr


class Kernel:
    """A kernel and a client; `view` is the id of the latest view's comm."""

    def __init__(self) -> None:
        self.manager, self.client = start_new_kernel(kernel_name="python3")
        self.view = ""

    def run(self, code: str) -> str:
        """Run code; what it printed."""
        return self.wait(self.client.execute(code))

    def wait(self, request: str) -> str:
        text = ""
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            kind, content = message["msg_type"], message["content"]
            if kind == "comm_open" and content["target_name"] == "jupyter.widget" and "can_run_again" in str(content["data"]):
                self.view = content["comm_id"]
            if message["parent_header"].get("msg_id") != request:
                continue
            if kind == "stream":
                text += content["text"]
            assert kind != "error", content
            if kind == "status" and content["execution_state"] == "idle":
                return text

    def click(self, subshell: str | None = None, **request: Any) -> None:
        data = {"method": "custom", "content": {"id": "1", **request}}
        message = self.client.session.msg("comm_msg", {"comm_id": self.view, "data": data})
        if subshell is not None:
            message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)

    def new_subshell(self) -> str:
        message = self.client.session.msg("create_subshell_request", {})
        self.client.control_channel.send(message)
        while True:
            reply = self.client.get_control_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return str(reply["content"]["subshell_id"])

    def until(self, code: str, wanted: str) -> None:
        """Ask until the kernel answers so."""
        deadline = time.monotonic() + 60
        while (found := self.run(code).strip()) != wanted:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    made = Kernel()
    made.run("%load_ext dynascope\n%config DynascopeMagics.backend = 'eager'\nimport torch, dynascope, time\nruns = []")
    made.run("from dynascope.runs import rerun\ndef view(): return next(iter(rerun._views))")
    yield made
    made.client.stop_channels()
    made.manager.shutdown_kernel(now=True)


CELL = """%%compile
def f(x):
    torch._dynamo.graph_break()
    return x + 1
f(torch.ones(3))
runs.append(time.time())
limit = torch._dynamo.config.recompile_limit"""
TOLD = "print(len(runs), [b.allowed for b in dynascope.last().breaks])"


def test_without_subshells_a_click_is_heard_when_the_cell_is_over(kernel: Kernel) -> None:
    kernel.run(CELL)
    busy = kernel.client.execute("began = time.time(); time.sleep(1); ended = time.time(); print(repr(view().status))")
    kernel.click(kind="run_again", settings={"error_on_graph_break": True}, regions=[{"target": "3", "set": "allow"}])
    assert "queued" not in kernel.wait(busy)
    kernel.until(TOLD, "2 [True]")
    assert kernel.run("print(runs[1] > ended)").strip() == "True"


def test_with_subshells_a_click_is_heard_at_once_and_runs_when_the_cell_is_over(kernel: Kernel) -> None:
    subshell = kernel.new_subshell()
    kernel.run(CELL)
    kernel.run("torch._dynamo.config.recompile_limit = 3")
    wait = "while 'queued' not in str(view().status): time.sleep(0.01)\nended = time.time()"
    busy = kernel.client.execute(f"{wait}\nprint('heard')")
    time.sleep(0.3)
    kernel.click(subshell, kind="run_again", settings={}, regions=[{"target": "3", "set": "allow"}])
    assert kernel.wait(busy) == "heard\n"
    kernel.until(TOLD, "2 [True]")
    assert kernel.run("print(runs[1] > ended, limit)").strip() == "True 3"


@pytest.mark.parametrize("how", ["message", "interrupt"])
def test_a_run_again_can_be_stopped(kernel: Kernel, how: str) -> None:
    """By the view's message, where a subshell hears it; by the kernel's interrupt, everywhere."""
    subshell = kernel.new_subshell() if how == "message" else None
    kernel.run("loops = 0")
    kernel.run("%%compile\ndef f(x): return x + 1\nf(torch.ones(3))\nruns.append(1)\nfor _ in range(loops): time.sleep(0.1)")
    kernel.run("loops = 100_000")
    kernel.click(subshell, kind="run_again", settings={}, regions=[])
    time.sleep(2)
    if how == "message":
        kernel.click(subshell, kind="stop")
    else:
        kernel.manager.interrupt_kernel()
    kernel.until("print(view().status['text'], view().running)", "interrupted False")
    assert kernel.run("print(len(runs), dynascope.last().origin)").strip() == "2 partial"
