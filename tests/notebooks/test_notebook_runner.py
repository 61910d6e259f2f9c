"""The docs-test runner, in real kernels: what passes, what fails, and what the failure says."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from notebook_making import MIME, REPORT, Maker, cell, edit, make_notebook

from dynascope.docs_tests import runner
from dynascope.docs_tests.runner import run_page


def only(path: Path, **options: Any) -> str:
    """The one problem of a page, as text."""
    (problem,) = run_page(path, **options).problems
    return str(problem)


def test_an_error_names_notebook_cell_line_source_and_reason(make: Maker) -> None:
    path = make("x = 1", "def f(n):\n    import json\n    return json.loads(n)\n\nf('{')\n", "never = 1")
    text = only(path)
    assert text.startswith(f"{path}, code cell 2, line 3: a new error: JSONDecodeError: ")
    assert "  >   3      return json.loads(n)" in text
    assert "never" not in text


USAGE = "from IPython.core.error import UsageError\nraise UsageError('no such flag')"


def test_tags(make: Maker) -> None:
    path = make(
        cell(USAGE, "expect-exception"),
        cell("1 / 0", "raises-exception"),
        cell("x = 1", "raises-exception"),
        cell("1 / 0", "expect-exception"),
        cell("1 / 0", "skip-execution"),
        cell("y = 2", "remove-cell"),
        "assert (x, y) == (1, 2)",
    )
    result = run_page(path)
    assert not result.problems
    assert result.cells == 6


def test_an_expectation_is_never_permitted_to_fail(make: Maker) -> None:
    raised = [f"class {name}(Exception): pass\nraise {name}('graphs=2')" for name in ("ExpectationError", "ExpectationFailed")]
    text = only(make(*[cell(source, "raises-exception") for source in raised]))
    assert "code cell 2, line 2: a new error: ExpectationFailed: graphs=2" in text


def test_a_usage_error_is_an_error_though_ipython_only_prints_it(make: Maker) -> None:
    assert "code cell 1: a new error: UsageError: no such flag" in only(make(USAGE))


def test_cuda_cells_are_left_out_without_cuda(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "has_cuda", lambda: False)
    result = run_page(make("x = 1", cell("1 / 0", "requires-cuda"), "x"))
    assert result.ok
    assert result.cells == 2
    assert run_page(make("1 / 0", tags=["requires-cuda"])).skipped == "needs a CUDA device"
    monkeypatch.setattr(runner, "has_cuda", lambda: True)
    assert "ZeroDivisionError" in only(make("x = 1", cell("1 / 0", "requires-cuda")))


def test_a_hung_cell_is_killed_with_its_kernel_and_what_it_started(make: Maker, tmp_path: Path) -> None:
    source = (
        "import os, signal, subprocess, pathlib\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '300'])\n"
        "pathlib.Path('pids').write_text(f'{os.getpid()} {child.pid}')\n"
        "while True: pass\n"
    )
    path = make("x = 1", source)
    start = time.monotonic()
    text = only(path, timeout=2)
    assert time.monotonic() - start < 30
    assert "code cell 2: timed out after 2 s; the kernel was killed, and the rest of the page was not run" in text
    assert "while True: pass" in text
    pids = [int(p) for p in (tmp_path / "pids").read_text().split()]
    deadline = time.monotonic() + 10
    while any(_lives(p) for p in pids):
        assert time.monotonic() < deadline, "a process was left behind"
        time.sleep(0.05)


def _lives(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_kernel_that_dies_is_named_with_its_last_words(make: Maker) -> None:
    text = only(make("import os, sys\nos.write(2, b'last words')\nos._exit(3)"))
    assert "code cell 1: the kernel died" in text
    assert "last words" in text


def test_a_cell_that_hangs_is_interrupted_first_and_its_line_named(make: Maker, tmp_path: Path) -> None:
    source = "import pathlib, time\ndef hang():\n    try: time.sleep(60)\n    finally: pathlib.Path('cleaned').touch()"
    text = only(make(source, "x = 1\nhang()\nx = 2"), timeout=1)
    assert "code cell 2, line 2: timed out after 1 s" in text
    assert "  >   2  hang()" in text
    assert (tmp_path / "cleaned").exists()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of a page of two reports and an error, with its outputs stored."""
    path = make_notebook(
        tmp_path_factory.mktemp("pages") / "page.ipynb",
        REPORT,
        "report([('graph_break()', 4, 'resumed')])",
        "report([])",
        cell("raise ValueError('no')", "raises-exception"),
        cell("x = 1", "raises-exception"),
        "x",
    )
    result = run_page(path, update=True)
    assert result.ok, result.problems[0]
    assert result.updated
    return path.read_text()


@pytest.fixture
def stored(page: str, tmp_path: Path) -> Path:
    path = tmp_path / "page.ipynb"
    path.write_text(page)
    return path


def test_what_is_stored_holds(stored: Path) -> None:
    before = stored.read_bytes()
    assert run_page(stored).ok
    assert stored.read_bytes() == before
    assert not run_page(stored, update=True).updated, "updating twice changes nothing"


FAULTS = {
    "a new break": (2, "report([('print', 1, 'resumed')])", "code cell 3, line 1: a new graph break", "print (resumed)"),
    "a break elsewhere": (2, "report([('print', 1, 'resumed', 'In[2]')])", "code cell 3: a new graph break", "line 1 of In[2]"),
    "an error gone": (3, "x = 0", "code cell 4: an error is gone", "stored: ValueError"),
    "an error new": (4, "x = 1\nraise KeyError('k')", "code cell 5: a new error", "now the cell raises KeyError"),
    "a time-out": (5, "import time; time.sleep(60)", "code cell 6, line 1: timed out after 2 s", "time.sleep(60)"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_named(stored: Path, fault: str) -> None:
    index, source, headline, detail = FAULTS[fault]
    edit(stored, index, source)
    texts = [str(p) for p in run_page(stored, timeout=2).problems]
    assert texts[0].startswith(f"{stored}, {headline}"), texts
    assert detail in texts[0]
    assert source.splitlines()[0] in texts[0]
    assert ("dynascope test --update" in texts[0]) == (fault != "a time-out")
    edit(stored, 5, "undefined_name")  # then, the page cannot be updated
    assert "--update" not in "".join(map(str, run_page(stored).problems))


def test_update_stores_the_new_structure_and_no_times_addresses_or_widgets(stored: Path) -> None:
    edit(stored, 1, "report([('print', 1, 'resumed')], seconds=1.5)\nprint(object())")
    edit(stored, 2, "import ipywidgets\nreport([])\nipywidgets.IntSlider()")
    assert run_page(stored, update=True).updated
    text = stored.read_text()
    assert "0x…" in text
    assert "compiled in … s" in text
    assert "1.5 s" not in text
    assert "widget" not in text.replace("ipywidgets", "")
    assert '"execution"' not in text
    assert nbformat.read(stored, as_version=4).cells[1].outputs[0].data[MIME]["breaks"][0]["type"] == "print"


def test_update_refuses_a_page_that_fails(stored: Path) -> None:
    edit(stored, 5, "undefined_name")
    before = stored.read_bytes()
    assert not run_page(stored, update=True).ok
    assert stored.read_bytes() == before


def test_a_notebook_without_outputs_has_nothing_to_compare(make: Maker) -> None:
    result = run_page(path := make(REPORT, "report([('print', 1, 'resumed')])"))
    assert result.ok
    assert result.notes == [f"nothing was compared: it has no stored outputs (dynascope test --update {path} stores them)"]
    assert run_page(path, update=True).updated
    assert run_page(path).notes == []
