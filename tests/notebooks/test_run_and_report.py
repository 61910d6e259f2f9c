"""`dynascope run` and `dynascope report`: as python runs a script, then the report."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from processes import python

from dynascope.cli import main

SCRIPT = """\
import os, pickle, sys, torch

class Kept: pass

@torch.compile(backend="eager")
def f(x):
    x = x + 1
    print("hi")
    return x * 2

f(torch.ones(3))
pickle.dumps(Kept())
import beside
print(sys.argv, __name__, os.path.isabs(__file__))
if "fail" in sys.argv: f(1, 2)
if "leave" in sys.argv: sys.exit(7)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "beside.py").touch()
    (folder / "script.py").write_text(SCRIPT)
    return folder / "script.py"


def call(*arguments: str | Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "dynascope", *arguments, folder=folder, **variables)


def test_a_script_runs_as_under_python_then_the_report_and_its_trace_tells_the_same(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call("run", "-o", "out.html", "work/script.py", "--flag", "x", folder=tmp_path, TORCH_TRACE="trace")
    assert done.returncode == 0, done.stderr
    assert "['work/script.py', '--flag', 'x'] __main__ True" in done.stdout
    after = done.stdout.partition("True\n")[2]
    assert after.startswith("f: 2 graphs · 1 graph break · 1 resume function")
    assert "script.py:8" in after
    assert "report: out.html" in after
    assert (tmp_path / "out.html").read_text().startswith("<!")
    monkeypatch.chdir(tmp_path)
    assert main(["report", "trace"]) == 0
    assert capsys.readouterr().out.startswith("f: 2 graphs · 1 graph break")
    assert main(["report", "trace", "-o", "out.json"]) == 0
    assert "report: out.json" in capsys.readouterr().out
    assert main(["report", "out.json"]) == 0
    assert capsys.readouterr().out.startswith("f: 2 graphs · 1 graph break")


@pytest.mark.parametrize(("command", "status"), [("script.py fail", 1), ("script.py leave", 7), ("-m script leave", 7)])
def test_the_scripts_own_end_is_ours(script: Path, command: str, status: int) -> None:
    done = call("run", "--expect", "breaks=0", *command.split(), folder=script.parent)
    assert done.returncode == status
    assert "1 graph break" in done.stdout
    own, missed, _ = done.stderr.partition("--expect: expected breaks=0, found 1\n")
    assert missed
    if status == 1:
        plain = python("script.py", "fail", folder=script.parent)
        assert own.splitlines()[:2] == plain.stderr.splitlines()[:2]
        assert own.splitlines()[-1] == plain.stderr.splitlines()[-1]
        assert "extension" not in done.stderr


def test_what_ended_the_script_is_in_the_report(script: Path, tmp_path: Path) -> None:
    script.write_text(
        "import torch\n@torch.compile(backend='eager', fullgraph=True)\ndef f(x):\n    print(x)\nf(torch.ones(3))\n"
    )
    done = call("run", script, folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert "stopped by an error\n✗ Unsupported at script.py:4: Failed to trace builtin operator" in done.stdout


def test_a_report_that_cannot_be_saved_in_the_end_is_one_line(script: Path, tmp_path: Path) -> None:
    (tmp_path / "taken.html").mkdir()
    done = call("run", "-o", "taken.html", script, folder=tmp_path)
    assert done.returncode == 1
    assert "1 graph break" in done.stdout
    assert done.stderr.splitlines()[-1] == "-o taken.html: not saved: Is a directory"
    assert call("run", "-o", "taken.html", script, "leave", folder=tmp_path).returncode == 7


@pytest.mark.parametrize(
    ("code", "first", "last"),
    [
        ("sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8')\n{f}print('hi')", "hi\n", ""),
        ("out = sys.stdout\natexit.register(lambda: print('bye', file=out))\n{f}", "", "bye\n"),  # until the process ends
    ],
)
def test_a_script_that_wraps_or_keeps_its_output(code: str, first: str, last: str, tmp_path: Path) -> None:
    """A detached stream: the report stands below what the script has printed."""
    f = "torch.compile(lambda x: x + 1, backend='eager')(torch.ones(1))\n"
    (tmp_path / "script.py").write_text("import atexit, io, sys, torch\n" + code.format(f=f))
    for command, stream in (("run", "stdout"), ("fix", "stderr")):
        done = call(command, "script.py", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        text = getattr(done, stream)
        assert "1 graph · 0 graph breaks" in text
        assert text.startswith(first)
        assert text.endswith(last)


def test_a_script_is_fixed_whatever_the_encoding_of_the_output(tmp_path: Path) -> None:
    """The patch on stdout is in the file's encoding, and the report on stderr has no character that the output lacks."""
    script = tmp_path / "script.py"
    text = "import torch\n\n@torch.compile(backend='eager')\ndef f(x):\n    if x.sum() > 0:  # größe\n        y = x * 2\n"
    text += "    else:\n        y = x * 3\n    return y\n\nprint(f(torch.ones(3)))\n"
    script.write_text(text, encoding="utf-8")
    done = call("fix", "script.py", folder=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert script.read_text(encoding="utf-8") == text
    assert done.stdout.startswith("--- a/script.py\n+++ b/script.py\n")
    assert "größe" in done.stdout
    assert "tensor([2., 2., 2.])" in done.stderr
    assert "f: 2 graphs - 1 graph break - 1 resume function" in done.stderr
    assert "dynascope fix --apply writes the fixes into the files." in " ".join(done.stderr.split())
    assert "report.patch()" not in done.stderr
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=done.stdout.encode(), check=True)
    assert "torch.where(x.sum() > 0, x * 2, x * 3)" in script.read_text(encoding="utf-8")


def test_a_script_has_the_names_that_python_gives_it_and_its_own_hook_for_errors(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import sys, traceback\n"
        "def hook(kind, error, trace): print('HOOK', kind.__name__, [f.name for f in traceback.extract_tb(trace)])\n"
        "sys.excepthook = hook\n"
        "def f(x: int): pass\n"
        "print(type(__builtins__).__name__, type(__loader__).__name__, __spec__, f.__annotations__)\n"
        "1 / 0\n"
    )
    done = call("run", "script.py", folder=tmp_path)
    plain = python("script.py", folder=tmp_path)
    assert done.stdout.startswith(plain.stdout)
    assert plain.stdout.splitlines() == [
        "module SourceFileLoader None {'x': <class 'int'>}",
        "HOOK ZeroDivisionError ['<module>']",
    ]
    assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr)


def test_a_script_that_compiles_nothing_is_told_how_to(tmp_path: Path) -> None:
    for status in (0, 3):
        (tmp_path / "plain.py").write_text(f"import sys, torch\nprint(torch.ones(2))\nsys.exit({status})\n")
        done = call("run", "plain.py", folder=tmp_path)
        assert done.returncode == status, done.stderr
        assert "note: torch.compile compiled nothing in this process: torch.compile(model)" in done.stdout
