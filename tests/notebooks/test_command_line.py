"""`dynascope test` from the shell: what it prints and its exit status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from notebook_making import REPORT, Maker, cell, edit

from dynascope.cli import main


def test_a_folder_of_pages(make: Maker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make("x = 1", name="a.ipynb")
    bad = make("x = 1", "y = x +", name="b.ipynb")
    make("1", name="c.ipynb", tags=["skip-execution"])
    assert main(["test", str(tmp_path)]) == 1
    done = capsys.readouterr()
    assert "1 failed, 1 passed, 1 skipped in " in done.out.splitlines()[-1]
    assert f"{bad}, code cell 2, line 1: a new error: SyntaxError" in done.out
    assert done.err == ""


def test_update(make: Maker, capsys: pytest.CaptureFixture[str]) -> None:
    path = make(REPORT, "report([('print', 1, 'resumed')])", name="a page.ipynb")
    assert main(["test", "--update", str(path)]) == 0
    assert "1 passed, 1 updated in" in capsys.readouterr().out
    edit(path, 1, "report([])")
    assert main(["test", str(path)]) == 1
    told = capsys.readouterr().out
    assert "code cell 2: a lost graph break" in told
    assert f"dynascope test --update '{path}'" in told


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["test", "nowhere.ipynb"], "dynascope: nowhere.ipynb: no such file or folder"),
        (["run", "nowhere.py"], "dynascope: nowhere.py: no such file"),
        (["fix", "--fix-seconds", "-1", __file__], "dynascope: --fix-seconds takes a number, at least 0, not -1.0"),
        (["report", "nowhere"], "dynascope: nowhere: no such file or folder"),
        (["report", ".", "-o", "x.pdf"], "dynascope: -o x.pdf: the name must end in one of .html .json .svg .dot .txt"),
        (["run", "-o", "/dev/null/a.html", __file__], "dynascope: -o /dev/null/a.html: /dev/null is not a writable folder"),
        (
            ["run", "--expect", "check=agrees", __file__],
            "dynascope: --expect check=agrees: a run compares nothing; use dynascope.explain(f, check=True)(x) in the script",
        ),
    ],
)
def test_bad_usage_is_one_line(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    done = capsys.readouterr()
    assert done.err.splitlines() == [expected]
    assert done.out == ""


def test_only_a_flag_of_the_same_command_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    for command, suggestion in (("run", ""), ("fix", " (did you mean --apply?)")):
        with pytest.raises(SystemExit):
            main([command, "--aply", __file__])
        assert capsys.readouterr().err.endswith(f" unrecognized arguments: --aply{suggestion}\n")


@pytest.mark.parametrize(("command", "words"), [("test", "no .ipynb in"), ("report", "no trace logs")])
def test_a_folder_without_what_is_read_is_bad_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, words: str
) -> None:
    assert main([command, str(tmp_path)]) == 2
    assert words in (said := capsys.readouterr().err)
    assert len(said.splitlines()) == 1


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
def test_interrupting_stops_everything(make: Maker, tmp_path: Path) -> None:
    source = "import os, pathlib, time\npathlib.Path(f'pid{os.getpid()}').touch()\ntime.sleep(100)"
    make(cell(source), name="a.ipynb")
    make(cell(source), name="b.ipynb")
    command = [sys.executable, "-m", "dynascope", "test", str(tmp_path)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("pid*")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130, (out, err)
    assert "dynascope: interrupted" in err
    assert "Traceback" not in err
    for pid in (int(p.name[3:]) for p in tmp_path.glob("pid*")):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
