"""Reading logs: their forms, what is damaged in them, which process and run a record is of, and what it costs."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynascope import cli
from dynascope.compiler.capture.trace_files import load
from dynascope.compiler.report import Report

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3][1]cpu"):
        l_x_ = L_x_

         # File: /home/user/program.py:4 in f, code: return x + 1
        add: "f32[3][1]cpu" = l_x_ + 1;  l_x_ = None
        return (add,)
"""
METRICS: dict[str, Any] = {
    "co_name": "f", "co_filename": "/home/user/program.py", "co_firstlineno": 3, "guard_count": 2,
    "entire_frame_compile_time_s": 0.5, "fail_type": None, "is_forward": True,
}  # fmt: skip


class Log:
    """Builds a log as torch writes it."""

    def __init__(self, pid: int = 100, rank: int | None = None, at: int = 0) -> None:
        self.pid, self.rank, self.at = pid, rank, at
        self.lines: list[str] = []

    def add(self, metadata: dict[str, Any], payload: str | None = None) -> Log:
        if self.rank is not None and "str" not in metadata:
            metadata = {**metadata, "rank": self.rank}
        if payload is not None:
            metadata = {**metadata, "has_payload": hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()}
        time = f"{self.at // 3600:02}:{self.at // 60 % 60:02}:{self.at % 60:02}.{len(self.lines):06}"
        self.lines.append(f"V0501 {time} {self.pid} torch/a.py:7] {json.dumps(metadata)}")
        if payload is not None:
            self.lines += ["\t" + line for line in payload.split("\n")]
        return self

    def compile(self, frame: int = 0, number: int = 0, stack: tuple[tuple[str, int], ...] = (), **metrics: Any) -> Log:
        """All records of one compile of f."""
        ids = {"frame_id": frame, "frame_compile_id": number, "attempt": 0}
        entries = [*stack, (str(metrics.get("co_name", "f")), 4)]
        places = [{"filename": "/home/user/program.py", "line": line, "name": name} for name, line in entries]
        if number:
            self.add({"artifact": {"name": "recompile_reasons"}, **ids}, json.dumps(["0/0: L['n'] == 1"]))
        self.add({"dynamo_start": {"stack": places}, **ids})
        self.add({"dynamo_output_graph": {"sizes": {"add": [3]}}, **ids}, GRAPH)
        self.add({"dynamo_cpp_guards_str": {}, **ids}, "TREE_GUARD_MANAGER:\n+- RootGuardManager")
        return self.add({"compilation_metrics": {**METRICS, **metrics}, **ids})

    def text(self) -> str:
        return "".join(line + "\n" for line in self.lines)

    def write(self, file: Path) -> Path:
        file.write_text(self.text(), encoding="utf-8", newline="")
        return file


def shown(report: Report) -> dict[str, Any]:
    return {k: v for k, v in report.to_dict().items() if k != "versions"}


# -- forms of a file --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        lambda data: gzip.compress(data),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.rstrip(b"\n"),
    ],
    ids=["gzip", "CRLF", "BOM", "no last newline"],
)
def test_the_same_log_in_another_form(form: Callable[[bytes], bytes], tmp_path: Path) -> None:
    plain = Log().compile().write(tmp_path / "plain.log")
    other = tmp_path / "other.log.gz"
    other.write_bytes(form(plain.read_bytes()))
    assert shown(load(other)) == shown(load(plain))
    assert load(other, strict=True).unread == {}


# -- damage -----------------------------------------------------------------------------------------


def test_every_payload_is_checked(tmp_path: Path) -> None:
    log = Log().compile().add({"autotuning": {}}, '{"name": "dynamo"}').text()
    (tmp_path / "a.log").write_text(log.replace('"dynamo"}', '"Dynamo"}'), encoding="utf-8")
    report = load(tmp_path / "a.log")
    assert report.unread == {"payload damaged": 1}
    report.save(tmp_path / "saved.json")
    for name in ("a.log", "saved.json"):
        with pytest.raises(ValueError, match=f"{name}: 1 × payload damaged"):
            load(tmp_path / name, strict=True)


def test_the_command_can_be_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = Log().compile().write(tmp_path / "a.log")
    assert cli.main(["report", "--strict", str(file)]) == 0
    file.write_text(file.read_text().replace("x + 1", "x + 2"), encoding="utf-8")
    assert cli.main(["report", str(file)]) == 0
    assert "note: the log is damaged" in capsys.readouterr().out
    assert cli.main(["report", "--strict", str(file)]) == 2
    assert "payload damaged" in capsys.readouterr().err


# -- what a log does not say ------------------------------------------------------------------------


def test_unknown_breaks_and_times_are_not_zero(tmp_path: Path) -> None:
    log = (
        Log()
        .compile(0, entire_frame_compile_time_s=None)
        .compile(
            1, stack=(("f", 4),), co_name="torch_dynamo_resume_in_f_at_4", co_firstlineno=4, entire_frame_compile_time_s=None
        )
    )
    report = load(log.write(tmp_path / "a.log"))
    assert "graph breaks unknown · 1 resume function" in report.headline()
    assert report.headline().endswith("compile time unknown")
    assert "1 graph break is known only from a resume function" in str(report)
    with pytest.raises(AssertionError, match="and 1 whose places are unknown"):
        report.expect(breaks=0)


def test_the_break_that_stops_a_resume_function_is_not_the_one_before_it(tmp_path: Path) -> None:
    ids = {"frame_id": 1, "frame_compile_id": 0}
    name = "torch_dynamo_resume_in_f_at_4"
    text = "Graph break in user code at /home/user/program.py:6\nGraph Break Reason: data-dependent"
    log = (
        Log()
        .compile()
        .add({"dynamo_start": {"stack": [{"filename": "/home/user/program.py", "line": 6, "name": name}]}, **ids})
        .add({"artifact": {"name": "dynamo_graph_break_reason"}, **ids}, text)
        .add({"compilation_metrics": {"co_name": name, "co_filename": "/home/user/program.py", "co_firstlineno": 4}, **ids})
    )
    report = load(log.write(tmp_path / "a.log"))
    assert [(f.status, f.break_) for f in report.frames] == [("compiled", None), ("skipped", None)]
    assert (report.summary.breaks, report.summary.unknown_breaks) == (1, 1)


# -- folders -----------------------------------------------------------------------------------------


def test_of_the_logs_in_a_folder_the_newest_is_shown(tmp_path: Path) -> None:
    for name, frames in (("a", 1), ("b", 2), ("c", 3)):
        log = Log()
        for frame in range(frames):
            log.compile(frame)
        (file := tmp_path / f"{name}.log.gz").write_bytes(gzip.compress(log.text().encode()))
        os.utime(file, (100, 300 if name == "b" else 200))
    report = load(tmp_path)
    assert report.summary.graphs == 2
    assert report.notes == [f"this is b.log.gz, the newest log in {tmp_path}; 2 other logs there can be read by name"]
    assert cli.main(["report", str(tmp_path), "--expect", "graphs=2"]) == 0
    assert cli.main(["report", str(tmp_path), "--expect", "graphs=2, ranks=alike"]) == 2  # they are not named as ranks
    for file in tmp_path.iterdir():
        file.write_text("no record\n")
    with pytest.raises(FileNotFoundError, match="no trace logs in "):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        load(tmp_path / "none")


def test_a_file_beside_a_log_is_no_log(tmp_path: Path) -> None:
    Log().compile().write(tmp_path / "a.log")
    (tmp_path / "notes.txt").write_text("hello\n", encoding="utf-8")
    report = load(tmp_path)
    assert (len(report.frames), report.notes) == (1, [])
