"""Folders of jobs: files of ranks and TORCH_TRACE logs, also damaged ones; what is written stays whole."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_log_reader import Log

import dynascope
from dynascope.compiler.ranks import Rank, RanksReport, recorder
from dynascope.compiler.ranks.structure import encoded, read, record_of, write
from dynascope.compiler.report import Report

GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[{size}, 8][8, 1]cuda:{device}"):
        l_x_ = L_x_
        # File: {folder}/train.py:{line} in f, code: return x.sin()
        sin: "f32[{size}, 8][8, 1]cuda:{device}" = l_x_.sin();  l_x_ = None
        return (sin,)
"""


def log(rank: int, *, size: int = 4, compiles: int = 3, seconds: float = 1.0) -> str:
    """A TORCH_TRACE log of a rank that compiles a few functions."""
    folder = f"/scratch/node{rank // 8}/job{rank}"
    made = Log(4000 + rank, rank, at=rank).add({"str": [f"{folder}/train.py", 0]})
    for n in range(compiles):
        ids = {"frame_id": n, "frame_compile_id": 0, "attempt": 0}
        line = 5 + 10 * n
        stack = [{"line": line, "name": "f", "filename": 0, "loc": "return x.sin()"}]
        made.add({"dynamo_start": {"stack": stack}, **ids})
        graph = GRAPH.format(size=size if n == 1 else 4, device=rank % 8, folder=folder, line=line).rstrip()
        made.add({"dynamo_output_graph": {"sizes": {}}, **ids}, graph)
        made.add({"dynamo_cpp_guards_str": {}, **ids}, f"| +- GuardManager: source=L['x'] # {rank}")
        made.add({"chromium_event": {}, **ids}, json.dumps({"name": "gc", "ph": "i", "ts": rank * 1.5}))
        metrics = {
            "co_name": "f", "co_filename": f"{folder}/train.py", "co_firstlineno": line, "guard_count": 3,
            "entire_frame_compile_time_s": seconds + n, "torch_version": "2.13.0",
            "dynamo_config": json.dumps({"specialize_int": False, "path": folder}),
        }  # fmt: skip
        made.add({"compilation_metrics": metrics, **ids})
    return made.text()


def write_logs(folder: Path, texts: dict[int, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for rank, text in texts.items():
        (folder / f"dedicated_log_torch_trace_rank_{rank}_abc.log").write_text(text)
    return folder


def load(folder: Path) -> RanksReport:
    report = dynascope.load(folder)
    assert isinstance(report, RanksReport)
    return report


def test_logs_that_are_alike_are_one_group(tmp_path: Path) -> None:
    report = load(write_logs(tmp_path / "job", {rank: log(rank, seconds=1 + rank % 3) for rank in range(64)}))
    assert report.alike
    assert [len(g.ranks) for g in report.groups] == [64]
    assert report.rank(4).seconds == [2.0, 3.0, 4.0]


def test_the_groups_of_a_job(tmp_path: Path) -> None:
    texts = {rank: log(rank, size=5 if rank == 7 else 4, compiles=2 if rank == 9 else 3) for rank in range(12)}
    report = load(write_logs(tmp_path / "job\u2028\x0c one", texts))
    assert [g.ranks for g in report.groups] == [[0, 1, 2, 3, 4, 5, 6, 8, 10, 11], [7], [9]]
    assert [(d.kind, d.step, d.group) for d in report.differences] == [("size", 1, 1), ("ends", 2, 2)]
    assert report.differences[0].value == "[5, 8]"


def test_damage_costs_only_itself_and_is_named(tmp_path: Path) -> None:
    texts = {rank: log(rank) for rank in range(8)}
    texts[1] = texts[1][: texts[1].index('"frame_id": 2') + 40]  # cut off in the start of its last compile
    texts[2] = texts[2].replace("\t        return (sin,)", "\t        return (s", 1)  # a graph that cannot be parsed
    lines = texts[3].splitlines(keepends=True)
    texts[3] = "".join([*lines[:2], "W something of another thread\n", *lines[2:]])
    texts[7] = "".join([*lines[:3], "W something of another thread\n", *lines[3:]]).replace('"rank": 3', '"rank": 7')
    texts[4] = ""
    texts[6] = "\x00\x01 not a log\n" * 20
    del texts[5]
    folder = write_logs(tmp_path / "job", texts)
    report = load(folder)
    report.save(tmp_path / "saved.json")
    for path in (folder, tmp_path / "saved.json"):
        with pytest.raises(ValueError, match=r"^[^\n]*rank 1: 1 × record that is not JSON[^\n]*$"):
            dynascope.load(path, strict=True)
    assert report.groups[0].ranks == [0, 1, 3]
    assert [r.rank for r in report.ranks if r.unread] == [1, 2, 3, 7]
    assert sum("left out" in note for note in report.notes) == 2
    assert {4, 5, 6} >= {r.rank for r in report.ranks if r.status == "missing"}
    text = " ".join(str(report).split())
    assert "dedicated_log_torch_trace_rank_4_abc.log" in text
    assert text.count("this difference may be only that") == 1  # both lost a graph


def test_compressed_logs_are_equal_whatever_their_names_and_damaged_ones_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(3):
        packed = gzip.compress(log(rank, size=4 + rank).encode())
        packed = packed[:-8] + bytes(8) if rank else packed  # a wrong checksum
        (folder / f"dedicated_log_torch_trace_rank_{rank}_.log.gz").write_bytes(packed)
    (folder / "dedicated_log_torch_trace_rank_3_.log").write_bytes(gzip.compress(log(3).encode()))
    report = load(folder)
    assert [g.ranks for g in report.groups] == [[0, 3], [1], [2]]
    assert [r.unread for r in report.ranks] == [{}, *[{"compressed file cut off or damaged": 1}] * 2, {}]


def test_a_folder_of_one_rank_is_an_ordinary_report(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "job", {0: log(0)})
    for other in ("rank_notes", "train_rank_1.log"):
        (folder / other).write_text("hello\n")
    report = dynascope.load(folder)
    assert isinstance(report, Report)
    assert report.summary.graphs == 3


# -- files of ranks ---------------------------------------------------------------------------------


def rank_record(rank: int, folder: Path, **facts: object) -> Path:
    report = dynascope.load(next(write_logs(folder / "logs", {rank: log(rank)}).glob(f"*rank_{rank}_*")))
    record = record_of(Rank(rank=rank, host=f"node{rank}", pid=100 + rank, **facts), report, world_size=3, job="a")  # type: ignore[arg-type]
    return write(folder / "ranks", record, encoded(report.to_dict()))


def test_files_of_ranks_are_read_and_missing_ranks_named(tmp_path: Path) -> None:
    for rank in (0, 2):
        rank_record(rank, tmp_path)
    report = load(tmp_path / "ranks")
    assert [(r.rank, r.status) for r in report.ranks] == [(0, "finished"), (1, "missing"), (2, "finished")]
    assert report.headline().endswith("; rank 1 left no file that can be read")


def test_a_damaged_file_of_a_rank_loses_that_rank(tmp_path: Path) -> None:
    files = [rank_record(rank, tmp_path) for rank in range(3)]
    head, _, body = files[1].read_bytes().partition(b"\n")
    files[1].write_bytes(head[:50])
    report = load(tmp_path / "ranks")
    assert report.rank(1).status == "missing"
    assert "left out: 1-node1-101.rank" in report.notes[0]
    for file in files:  # only the reports are cut off: the hashes are still compared
        file.write_bytes(head + b"\n" + body[:200] if file == files[1] else file.read_bytes()[:-100])
    report = load(tmp_path / "ranks")
    assert len(report.groups) == 1
    assert report.groups[0].report is None
    assert "its report cannot be read" in report.notes[0]
    str(report)


def test_of_ranks_that_were_started_again_the_last_attempt_counts(tmp_path: Path) -> None:
    rank_record(0, tmp_path, status="failed", started=1.0).rename(tmp_path / "ranks" / "0-node0-99.rank")
    rank_record(0, tmp_path, restarts=1, started=2.0)
    report = load(tmp_path / "ranks")
    assert report.rank(0).status == "finished"
    assert report.notes[0] == "left out: 1 earlier file of the same ranks"


# -- the recorder -----------------------------------------------------------------------------------


def test_a_rank_that_stands_still_writes_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setattr(recorder, "_INTERVAL", 0.01)
    monkeypatch.setattr(recorder, "_STILL", 0.05)
    writer = recorder.RankRecorder(tmp_path, SimpleNamespace(events=[], snapshot=Report))
    writer.start()
    for _ in range(500):  # this very line is where the rank is
        time.sleep(0.02)
        path = next(tmp_path.glob(f"3-*-{os.getpid()}.rank"), None)
        if path is not None and read(path).rank.at:
            break
    rank = read(path).rank
    assert (rank.status, rank.rank) == ("no end", 3)
    assert rank.at[-1].function == "test_a_rank_that_stands_still_writes_where"
    writer.end(Report(), "failed", "exit status 3")
    rank = read(path).rank
    assert (rank.status, rank.error, writer.problem) == ("failed", "exit status 3", None)
    assert not writer._thread.is_alive() or writer._stop.is_set()


def test_a_folder_that_cannot_be_written_does_not_disturb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    (tmp_path / "file").write_text("")
    writer = recorder.RankRecorder(tmp_path / "file", SimpleNamespace(events=[], snapshot=Report))
    writer.end(Report())
    assert "\n" not in writer.problem
