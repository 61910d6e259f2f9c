"""`dynascope run` under torchrun: which rank reports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dynascope import ranks
from dynascope.cli import main
from dynascope.compiler.ranks import recorder
from dynascope.compiler.ranks.folder import read_job
from dynascope.compiler.report import Report


class Recording:
    events: tuple[object, ...] = ()

    def snapshot(self) -> Report:
        return Report()


Start = Callable[..., ranks.RankRun]


@pytest.fixture(autouse=True)
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Start:
    """start(rank, **variables): this process as a rank of two, with these variables, too; before that, it is rank 0."""

    def started(rank: int, **variables: str) -> ranks.RankRun:
        for name, value in {"RANK": str(rank), "TORCHELASTIC_RUN_ID": "job", **variables}.items():
            monkeypatch.setenv(name, value)
        run = ranks.RankRun(str(tmp_path))
        run.start(Recording())
        return run

    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    return started


def test_bad_usage_is_one_line_before_anything_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for options in (["-o", "out.nothing"], ["-o", "out.dot"], ["--expect", "ranks=equal"]):
        assert main(["run", *options, __file__]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert main(["run", "nope.py"]) == 2
    assert capsys.readouterr().err == "dynascope: nope.py: no such file\n"
    assert main(["report", str(tmp_path), "--expect", "nothing=1"]) == 2


def test_the_rank_that_ends_last_reports(start: Start) -> None:
    assert start(1).end(Report(), 0) is None
    report = start(0).end(Report(), 0)
    assert [r.status for r in report.ranks] == ["finished", "finished"]
    assert start(0).end(Report(), 0) is None  # it has been reported


def test_a_second_run_in_the_same_folder_reports_too(
    start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for run in ("first", "second"):
        for rank in (1, 0):
            own = {"LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_ERROR_FILE": f"/logs/{run}/attempt_0/{rank}/error.json"}
            assert (start(rank, **own).end(Report(), 0) is None) == (rank == 1)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")  # of several machines, nothing tells the runs apart
    for rank in (1, 0, 1, 0):
        assert capsys.readouterr().err == ""
        start(rank, LOCAL_WORLD_SIZE="1").end(Report(), 0)
    earlier = f"dynascope: {tmp_path} has an earlier run of this job: for a report of this run, pass another --ranks-dir\n"
    assert capsys.readouterr().err == earlier


def test_the_first_rank_that_fails_reports_and_an_attempt_later_is_another(start: Start) -> None:
    report = start(1).end(Report(), 3)
    assert (report.rank(1).error, report.rank(0).status) == ("exit status 3", "missing")
    again = {"TORCHELASTIC_RESTART_COUNT": "1"}
    assert start(1, **again).end(Report(), 0) is None
    report = start(0, **again).end(Report(), 0)
    assert report.alike


def test_paths_hold_in_a_program_that_changes_the_directory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("import os\nos.chdir('..')\nraise SystemExit(0 if 'RANK' in os.environ else int('x'))\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", [])
    assert main(["run", "--ranks-dir", "ranks", "train.py"]) == 0
    assert read_job(tmp_path / "ranks").rank(0).status == "finished"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANK")
    assert main(["run", "-o", "out.json", "train.py"]) == 1
    assert (tmp_path / "out.json").exists()
    assert f'File "{tmp_path / "train.py"}", line 3' in capsys.readouterr().err.splitlines()[1]


def test_variables_of_one_rank_alone_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCHELASTIC_RUN_ID", "CUDA_VISIBLE_DEVICES", "TORCH_TRACE", "TORCHINDUCTOR_CACHE_DIR", "HOME"):
        monkeypatch.setenv(name, "mine")
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    shown = recorder.environment()
    assert shown["NCCL_DEBUG"] == "INFO"
    assert "mine" not in shown.values()
