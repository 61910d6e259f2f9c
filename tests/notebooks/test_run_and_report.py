"""`dynascope run` and `dynascope report`: as python runs a script, then the report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dynascope

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
    command = [sys.executable, "-m", "dynascope", *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=600
    )  # fmt: skip


def test_a_script_runs_as_under_python_then_the_report(script: Path, tmp_path: Path) -> None:
    done = call("run", "-o", "out.html", "work/script.py", "--flag", "x", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "['work/script.py', '--flag', 'x'] __main__ True" in done.stdout
    after = done.stdout.partition("True\n")[2]
    assert after.startswith("f: 2 graphs · 1 graph break · 1 resume function")
    assert "script.py:8" in after
    assert "report: out.html" in after
    assert (tmp_path / "out.html").read_text().startswith("<!")


@pytest.mark.parametrize(("how", "status"), [("fail", 1), ("leave", 7)])
def test_the_scripts_own_end_is_ours(script: Path, how: str, status: int) -> None:
    done = call("run", "script.py", how, folder=script.parent)
    assert done.returncode == status
    assert "1 graph break" in done.stdout
    if how == "fail":
        plain = subprocess.run([sys.executable, "script.py", how], cwd=script.parent, capture_output=True, text=True)
        assert done.stderr.splitlines()[0] == plain.stderr.splitlines()[0]
        assert done.stderr.splitlines()[1] == plain.stderr.splitlines()[1]
        assert done.stderr.splitlines()[-1] == plain.stderr.splitlines()[-1]
        assert "extension" not in done.stderr


def test_a_script_has_no_future_imports_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dynascope import cli

    (tmp_path / "script.py").write_text("def f(x: int): pass\n")
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    cli._execute(tmp_path / "script.py")
    assert sys.modules["__main__"].f.__annotations__ == {"x": int}


def test_what_ended_the_script_is_in_the_report(script: Path, tmp_path: Path) -> None:
    refused = "import torch\n@torch.compile(backend='eager', fullgraph=True)\ndef f(x):\n    print(x)\nf(torch.ones(3))\n"
    script.write_text(refused)
    done = call("run", script, folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert "stopped by an error\n✗ Unsupported at script.py:4: Failed to trace builtin operator" in done.stdout
    script.write_text(refused.replace("f(torch.ones(3))", "try: f(torch.ones(3))\nexcept Exception: pass"))
    assert "script.py:4, caught by your code: " in call("run", script, folder=tmp_path).stdout


def test_a_module(script: Path) -> None:
    done = call("run", "-m", "script", "leave", folder=script.parent)
    assert done.returncode == 7
    assert "1 graph break" in done.stdout


def test_the_rank_that_ends_last_reports_for_all(script: Path) -> None:
    for rank in ("1", "0"):
        done = call(
            "run", "-o", "out.json", "--ranks-dir", "ranks", "script.py", folder=script.parent, WORLD_SIZE="2", RANK=rank
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        report = done.stdout.partition("True\n")[2]
        if rank == "1":
            assert report == ""
            assert not (script.parent / "out.json").exists()
    assert report.startswith("2 ranks alike: 2 graphs · 1 graph break · 0 skipped")
    assert dynascope.load(script.parent / "out.json").alike
    (script.parent / "ranks").mkdir(exist_ok=True)
    assert dynascope.load(script.parent / "ranks").alike


def test_a_report_of_a_trace(script: Path) -> None:
    folder = script.parent
    subprocess.run(
        [sys.executable, "script.py"], cwd=folder, env={**os.environ, "TORCH_TRACE": "trace"}, check=True, capture_output=True
    )  # fmt: skip
    done = call("report", "trace", folder=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("f: 2 graphs · 1 graph break")
    done = call("report", "trace", "-o", "out.json", folder=folder)
    assert "report: out.json" in done.stdout
    again = call("report", "out.json", folder=folder)
    assert again.stdout.startswith("f: 2 graphs · 1 graph break")


def test_a_report_that_cannot_be_saved_in_the_end_is_one_line(script: Path, tmp_path: Path) -> None:
    (tmp_path / "taken.html").mkdir()
    done = call("run", "-o", "taken.html", script, folder=tmp_path)
    assert done.returncode == 1
    assert "1 graph break" in done.stdout
    assert done.stderr.splitlines()[-1] == "-o taken.html: not saved: Is a directory"
    assert call("run", "-o", "taken.html", script, "leave", folder=tmp_path).returncode == 7


def test_a_folder_without_traces_is_one_line(tmp_path: Path) -> None:
    done = call("report", ".", folder=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "no trace logs" in done.stderr


RANKS = """\
import torch, torch.distributed as dist

dist.init_process_group("gloo")

@torch.compile(backend="eager")
def f(x):
    x = x + dist.get_rank()  # a graph of its own for each rank, and no difference
    torch._dynamo.graph_break()
    return x * 2

y = f(torch.ones(3))
dist.all_reduce(y)
print("sum", y.tolist())
dist.destroy_process_group()
"""


def test_the_ranks_under_torchrun_have_one_report(tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(RANKS)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    done = subprocess.run(
        [*launch, "dynascope", "run", "-o", "out.json", "ranks.py"], cwd=tmp_path, capture_output=True, text=True, timeout=180
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("[6.0, 6.0, 6.0]") == 2  # two processes write at once
    assert done.stdout.count("2 ranks alike: 2 graphs · 1 graph break · 0 skipped") == 1
    ranks = dynascope.load(tmp_path / "out.json")
    for rank in (0, 1):
        report = ranks.report_of(rank)
        assert (report.summary.frames, report.summary.graphs, report.summary.breaks) == (2, 2, 1)


def test_a_script_that_replaces_its_output_keeps_it_for_itself(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import atexit, sys, torch\n"
        "class Tee:\n"
        "    def __init__(self, file): self.file = file\n"
        "    def write(self, text): self.file.write(text)\n"
        "    def flush(self): self.file.flush()\n"
        "sys.stdout = Tee(open('out.txt', 'w'))\n"
        "print(torch.compile(lambda x: x + 1, backend='eager')(torch.ones(1)))\n"
        "atexit.register(print, 'end')\n"
    )
    done = call("run", "script.py", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 graph · 0 graph breaks" in done.stdout
    assert (tmp_path / "out.txt").read_text() == "tensor([2.])\nend\n"


def test_a_script_that_wraps_its_output_anew(tmp_path: Path) -> None:
    """A detached stream, a buffered one, one without `closed`: the report stands below what the script has printed."""
    compiled = "torch.compile(lambda x: x + 1, backend='eager')(torch.ones(1))\nprint('from the script')\n"
    for wrapped in ("sys.stdout.detach()", "sys.stdout.buffer"):
        (tmp_path / "script.py").write_text(
            f"import io, sys, torch\nsys.stdout = io.TextIOWrapper({wrapped}, encoding='utf-8')\n{compiled}"
        )
        done = call("run", "script.py", folder=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("from the script\n")
        assert "1 graph · 0 graph breaks" in done.stdout
        done = call("fix", "script.py", folder=tmp_path)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith("from the script\n")
        assert "1 graph · 0 graph breaks" in done.stderr
    (tmp_path / "script.py").write_text(
        "import sys, torch\n\nclass Plain:\n    def __init__(self, file): self.file = file\n"
        "    def write(self, text): self.file.write(text.encode())\n    def flush(self): self.file.flush()\n\n"
        "sys.stdout = Plain(sys.stdout.detach())\n" + compiled
    )
    done = call("run", "script.py", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 graph · 0 graph breaks" in done.stdout
    (tmp_path / "script.py").write_text(
        "import sys, torch\n\nclass Tee:\n    def __init__(self, file): self.file = file\n"
        "    def write(self, text): self.file.write(text)\n    def flush(self): self.file.flush()\n"
        "    def isatty(self): return False\n\nsys.stderr = Tee(open('err.txt', 'w'))\n" + compiled
    )
    done = call("fix", "script.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (done.stdout, (tmp_path / "err.txt").read_text()) == ("", "")
    assert "1 graph · 0 graph breaks" in done.stderr


def test_a_script_prints_to_its_output_until_the_process_ends(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import atexit, sys, torch\nout = sys.stdout\natexit.register(lambda: print('bye', file=out))\n"
        "torch.compile(lambda x: x + 1, backend='eager')(torch.ones(1))\n"
    )
    for command, stream in (("run", "stdout"), ("fix", "stderr")):
        done = call(command, "script.py", folder=tmp_path)
        assert done.returncode == 0
        assert getattr(done, stream).endswith("bye\n"), done.stderr


def test_a_patch_is_printed_whatever_the_encoding_of_the_output(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import torch  # größe\n\n@torch.compile(backend='eager')\ndef f(x):\n    y = x.sin()\n    print('y')\n"
        "    return y + 1\n\nf(torch.ones(3))\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "dynascope", "fix", "script.py"]
    variables = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr
    assert "größe".encode() in done.stdout
    assert "dynascope fix --apply writes the fixes into the files." in " ".join(done.stderr.decode().split())
    assert "report.patch()" not in done.stderr.decode()


def test_a_script_that_closes_its_output_ends_as_it_would(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys\nsys.stdout.close()\n1 / 0\n")
    done = call("run", "script.py", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_a_report_with_characters_that_the_output_lacks(script: Path, tmp_path: Path) -> None:
    done = call("run", "work/script.py", folder=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "f: 2 graphs - 1 graph break - 1 resume function" in done.stdout


def test_a_script_has_the_names_that_python_gives_it_and_its_own_hook_for_errors(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import sys, traceback\n"
        "def hook(kind, error, trace): print('HOOK', kind.__name__, [f.name for f in traceback.extract_tb(trace)])\n"
        "sys.excepthook = hook\n"
        "print(type(__builtins__).__name__, type(__loader__).__name__, __spec__)\n"
        "1 / 0\n"
    )
    done = call("run", "script.py", folder=tmp_path)
    plain = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(plain.stdout)
    assert plain.stdout.splitlines() == ["module SourceFileLoader None", "HOOK ZeroDivisionError ['<module>']"]
    assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr)


def test_a_hook_that_exits_gives_the_status_and_there_is_a_report(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import sys\n"
        "def hook(kind, error, trace):\n    print('hook', repr(sys.last_value))\n    sys.exit(3)\n"
        "sys.excepthook = hook\n1 / 0\n"
    )
    done = call("run", "-o", "report.json", "script.py", folder=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[:1]) == (3, [])
    assert done.stdout.startswith("hook ZeroDivisionError('division by zero')\n")
    assert (tmp_path / "report.json").is_file()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="PYTHONSAFEPATH is of Python 3.11")
def test_a_safe_path_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "found.py").touch()
    (tmp_path / "script.py").write_text("import found\n")
    done = call("run", "script.py", folder=tmp_path, PYTHONSAFEPATH="1", PYTHONPATH=str(tmp_path / "lib"))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_script_that_compiles_nothing_is_told_how_to(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("import torch\nprint(torch.nn.Linear(2, 1)(torch.ones(2)).shape)\n")
    done = call("run", "plain.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the script calls nothing under torch.compile" in done.stdout
