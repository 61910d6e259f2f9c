"""`pytest --dynascope`, as a user's project has it: in a pytest of its own, with warnings as errors."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from notebook_making import MYST, REPORT, Maker, cell


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-ra", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_pages_are_tests_and_failures_name_the_place(make: Maker, tmp_path: Path) -> None:
    make("x = 1", "assert x == 1", name="docs/good.ipynb")
    make("x = 1", "assert x == 2", name="docs/bad.ipynb")
    make("1 / 0", name="docs/gpu.ipynb", tags=["skip-execution"])
    (tmp_path / "docs" / "page.md").write_text(MYST)
    (tmp_path / "docs" / "header_code.py").write_text("def half(x):\n    return x / 2\n")
    (tmp_path / "docs" / "README.md").write_text("# No page\n")
    done = pytest_in(tmp_path, "--dynascope", "docs", "-n", "2", "--junitxml=out.xml")
    assert done.returncode == 1, done.stdout
    assert "1 failed, 2 passed, 1 skipped" in done.stdout.splitlines()[-1]
    assert "docs/bad.ipynb, code cell 2, line 1: a new error: AssertionError" in done.stdout
    assert "  >   1  assert x == 2" in done.stdout
    assert "runtest" not in done.stdout, "no frame of ours"
    cases = ElementTree.parse(tmp_path / "out.xml").getroot().iter("testcase")
    assert sum(1 for case in cases if case.find("failure") is not None) == 1


def test_without_the_flag_pages_are_left_alone(make: Maker, tmp_path: Path) -> None:
    make("1 / 0")
    assert pytest_in(tmp_path).returncode == 5  # nothing collected


def test_update_and_time_limit(make: Maker, tmp_path: Path) -> None:
    path = make(REPORT, "report([('print', 1, 'resumed')])")
    assert pytest_in(tmp_path, "--dynascope", "--dynascope-update").returncode == 0
    assert "vnd.dynascope.report+json" in path.read_text()
    make(cell("import time; time.sleep(60)"))
    done = pytest_in(tmp_path, "--dynascope", "--dynascope-timeout=1")
    assert done.returncode == 1
    assert "timed out after 1 s" in done.stdout


def test_the_plugin_imports_next_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_light.py").write_text(
        "import sys\ndef test():\n    assert 'dynascope.pytest_plugin' in sys.modules\n"
        "    assert not {'torch', 'nbclient', 'nbformat', 'IPython', 'anywidget'} & set(sys.modules)\n"
    )
    done = pytest_in(tmp_path)
    assert done.returncode == 0, done.stdout
