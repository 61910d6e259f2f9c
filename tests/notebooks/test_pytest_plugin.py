"""`pytest --dynascope`, as a user's project has it: in a pytest of its own, with warnings as errors."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from notebook_making import Maker


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    plain = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}  # they fold nothing
    return subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, timeout=600)


def test_pages_are_tests_and_failures_name_the_place(make: Maker, tmp_path: Path) -> None:
    make("x = 1", "assert x == 1", name="docs/good.ipynb")
    make("x = 1", "assert x == 2", name="docs/bad.ipynb")
    make("1 / 0", name="docs/gpu.ipynb", tags=["skip-execution"])
    (tmp_path / "docs" / "README.md").write_text("# No page\n")
    done = pytest_in(tmp_path, "--dynascope", "docs", "--junitxml=out.xml")
    assert done.returncode == 1, done.stdout
    assert "1 failed, 1 passed, 1 skipped" in done.stdout.splitlines()[-1]
    assert "docs/bad.ipynb, code cell 2, line 1: a new error: AssertionError" in done.stdout
    assert "  >   1  assert x == 2" in done.stdout
    assert "runtest" not in done.stdout, "no frame of ours"
    cases = ElementTree.parse(tmp_path / "out.xml").getroot().iter("testcase")
    assert sum(1 for case in cases if case.find("failure") is not None) == 1


OWN_TESTS = """
import pytest
import torch

def two(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2

one_compiled = torch.compile(lambda x: x.sin() + 1, backend="eager")
two_compiled = torch.compile(two, backend="eager")

def test_holds(dynascope_expect):
    with dynascope_expect("graphs=1,breaks=0", skipped=0) as recording:
        one_compiled(torch.ones(3))
    assert recording.report.summary.graphs == 1

@pytest.mark.parametrize("again", [1, 2])  # compiled by the first: the second sees its breaks all the same
def test_breaks(dynascope_expect, again):
    with dynascope_expect("breaks=0"):
        two_compiled(torch.ones(3))

def test_compiled_code_is_a_cache_hit_afterwards(dynascope_expect):
    calls = []
    def backend(gm, inputs):
        calls.append(1)
        return gm
    compiled = torch.compile(lambda x: x + 1, backend=backend)
    compiled(torch.ones(3))
    with dynascope_expect(graphs=1, breaks="<=0"):
        compiled(torch.ones(3))
    assert len(calls) == 2
    compiled(torch.ones(3))
    assert len(calls) == 2

def test_nothing_compiled(dynascope_expect):
    with dynascope_expect("breaks=0"), torch.compiler.set_stance("force_eager"):
        one_compiled(torch.ones(3))

def test_own_error(dynascope_expect):
    with dynascope_expect("breaks=7"):
        raise ValueError("mine")

def test_no_count(dynascope_expect):
    with dynascope_expect("nonsense=0"):
        one_compiled(torch.ones(3))
"""


def test_expectations_in_a_projects_own_tests(tmp_path: Path) -> None:
    (tmp_path / "test_models.py").write_text(OWN_TESTS)
    out = pytest_in(tmp_path, "-p", "no:logging").stdout  # pytest shows torch's trace as logs
    assert "5 failed, 2 passed" in out.splitlines()[-1], out
    errors = [line for line in out.splitlines() if line.startswith("E  ")]  # the summary below repeats them
    assert sum("ExpectationFailed: expected breaks=0, found 1" in line for line in errors) == 2, out
    assert "test_models.py:7 torch._dynamo.graph_break()" in out
    assert '>       with dynascope_expect("breaks=0"):' in out
    assert "pytest_plugin.py" not in out, "no frame of ours"
    assert "expected breaks=0, but nothing was compiled\nE         calls ran eagerly, because" in out
    assert "ValueError: mine" in out
    assert "cannot expect 'nonsense=0'" in out


def test_without_the_flag_pages_are_left_alone_and_next_to_nothing_is_imported(make: Maker, tmp_path: Path) -> None:
    make("1 / 0")
    (tmp_path / "test_light.py").write_text(
        "import sys\ndef test():\n    assert 'dynascope.pytest_plugin' in sys.modules\n"
        "    assert not {'torch', 'nbclient', 'nbformat', 'IPython', 'anywidget'} & set(sys.modules)\n"
    )
    done = pytest_in(tmp_path)
    assert done.stdout.splitlines()[-1].strip("= ").startswith("1 passed"), done.stdout


def test_a_failing_block_shows_no_records_of_torchs_trace(tmp_path: Path) -> None:
    """pytest 9 shows what loggers have that pass nothing on."""
    (tmp_path / "test_model.py").write_text(
        "import torch\n"
        "def test_model(dynascope_expect):\n"
        "    with dynascope_expect('graphs=2'):\n"
        "        torch.compile(torch.sin, backend='eager')(torch.ones(3))\n"
    )
    done = pytest_in(tmp_path)
    assert "expected graphs=2, found 1" in done.stdout
    assert "torch.__trace" not in done.stdout
