"""Reading logs: their forms, what is damaged in them, which process and run a record is of, and what it costs."""

from __future__ import annotations

import gzip
import hashlib
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynascope import cli
from dynascope.compiler.capture.trace_files import load, runs
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
    data = report.to_dict()
    return {k: v for k, v in data.items() if k != "versions"}


# -- forms of a file --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        lambda data: gzip.compress(data),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.rstrip(b"\n"),
        lambda data: data.replace(b"\n\t\n", b"\n\n"),  # an editor that removes blanks at the ends of lines
    ],
    ids=["gzip", "CRLF", "BOM", "no last newline", "blank lines"],
)
def test_the_same_log_in_another_form(form: Callable[[bytes], bytes], tmp_path: Path) -> None:
    plain = Log().compile().write(tmp_path / "plain.log")
    other = tmp_path / "other.log.gz"
    other.write_bytes(form(plain.read_bytes()))
    assert shown(load(other)) == shown(load(plain))
    assert load(other, strict=True).unread == {}


def test_packed_logs_of_a_folder_are_read(tmp_path: Path) -> None:
    for rank in (0, 1):
        packed = gzip.compress(Log(100 + rank, rank).compile().text().encode())
        (tmp_path / f"dedicated_log_torch_trace_rank_{rank}_x.log.gz").write_bytes(packed)
    assert {f.rank for f in load(tmp_path).frames} == {0, 1}


def test_a_packed_file_that_is_cut_off(tmp_path: Path) -> None:
    packed = gzip.compress(Log().compile(0).compile(1).text().encode(), 0)
    (tmp_path / "a.log").write_bytes(packed[: len(packed) * 3 // 4])
    report = load(tmp_path / "a.log")
    assert report.unread["compressed file cut off or damaged"] == 1
    assert report.summary.graphs >= 1


@pytest.mark.parametrize("ends", [True, False], ids=["at the limit", "after it"])
def test_a_payload_that_is_not_needed_is_hashed_in_parts(ends: bool, tmp_path: Path) -> None:
    """A part may end with the payload's last line, as a long single line always does."""
    long = "x" * ((1 << 20) + 1)
    payloads = [long, f"{long}\n{long}", f"a\n{long}"] if ends else [f"{long}\na", f"{long}\n\na\n", f"{long}\n", f"{long}\n\n"]
    log = Log().compile()
    for payload in payloads:
        log.add({"artifact": {"name": "not needed", "encoding": "string"}}, payload)
    report = load(log.write(tmp_path / "a.log"), strict=True)
    assert report.unread == {}


# -- damage -----------------------------------------------------------------------------------------

WRONG: list[Any] = ["x", 7.5, True, None, [1], {"a": 1}, 10**30, float("nan")]


@pytest.mark.parametrize("field", METRICS)
def test_wrong_types_in_metrics_are_unknown_and_counted(field: str, tmp_path: Path) -> None:
    for wrong in WRONG:
        if type(wrong) is type(METRICS[field]) or wrong is None or (field in ("fail_type", "co_name") and wrong == "x"):
            continue
        if isinstance(METRICS[field], float) and wrong == 7.5:
            continue
        report = load(Log().compile(**{field: wrong}).write(tmp_path / "a.log"))
        if not (field == "co_filename" and wrong == "x"):
            assert f"wrong type: compilation_metrics.{field}" in report.unread, (field, wrong)
            assert "the log is damaged" in str(report)


@pytest.mark.parametrize(
    "metadata",
    [
        {"dynamo_start": {"stack": 5}}, {"dynamo_start": {"stack": [{"line": "x"}]}}, {"dynamo_start": None},
        {"artifact": {"name": ["x"]}}, {"artifact": 7}, {"compilation_metrics": []}, {"dynamo_output_graph": "x"},
        {"optimize_ddp_split_child": {}}, {"create_symbol": {"symbol": 1}}, {"str": "x"}, {"str": ["a", "b"]}, {"str": [1, 2]},
        {"dynamo_start": {"stack": []}, "frame_id": "0"}, {"dynamo_start": {"stack": []}, "rank": "0"},
        {"dynamo_start": {"stack": []}, "frame_compile_id": None}, {"dynamo_start": {"stack": []}, "attempt": {}},
        {"dynamo_start": {"stack": [{"line": 1, "name": "f", "filename": 99}]}}, {"has_payload": 5, "link": {}}, {},
    ],
)  # fmt: skip
def test_wrong_types_in_records_are_counted(metadata: dict[str, Any], tmp_path: Path) -> None:
    log = Log().compile().add({"frame_id": 1, "frame_compile_id": 0, **metadata})
    report = load(log.write(tmp_path / "a.log"))
    assert report.unread
    assert report.summary.graphs == 1
    with pytest.raises(ValueError, match="×"):
        load(tmp_path / "a.log", strict=True)


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


def test_every_record_that_is_moved_or_doubled_is_counted(tmp_path: Path) -> None:
    text = Log().compile(0).compile(0, 1).compile(1).text()
    whole = text.rstrip("\n").replace("\n\t", "\x00").split("\n")
    intact = load(Log().compile(0).compile(0, 1).compile(1).write(tmp_path / "a.log"))
    assert intact.unread == {}
    variants = {f"{i} twice": [*whole, whole[i]] for i in range(len(whole))}
    variants |= {f"{i} first": [whole[i], *whole[:i], *whole[i + 1 :]] for i in range(1, len(whole))}
    for name, records in variants.items():
        (tmp_path / "a.log").write_text("\n".join(records).replace("\x00", "\n\t") + "\n", encoding="utf-8")
        report = load(tmp_path / "a.log")
        assert report.unread or report.summary.unfinished, name
        assert "the log is damaged" in str(report) or "1 unfinished" in report.headline(), name


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


def test_the_time_of_a_compile_from_its_phases(tmp_path: Path) -> None:
    log = Log().compile(entire_frame_compile_time_s=None, dynamo_cumulative_compile_time_us=1_500_000)
    assert load(log.write(tmp_path / "a.log")).headline().endswith("compiled in 1.50 s")


PROGRAM = """ExportedProgram:
    class GraphModule(torch.nn.Module):
        def forward(self, x: "f32[3]"):
             # File: /home/user/program.py:4 in f, code: return x + 1
            add: "f32[3]" = torch.ops.aten.add.Tensor(x, 1);  x = None
            return (add,)

Graph signature:
    # inputs
    x: USER_INPUT
"""
STACK = [{"line": 9, "name": "<module>", "filename": "/home/user/program.py"}]


def test_an_exported_program_is_shown(tmp_path: Path) -> None:
    log = Log().add({"guard_added": {"expr": "s0 > 3"}, "stack": STACK}).add({"exported_program": {}, "stack": STACK}, PROGRAM)
    report = load(log.write(tmp_path / "a.log"), strict=True)
    (frame,), (graph,) = report.frames, report.graphs
    assert (frame.name, frame.line, frame.guards, graph.ops) == ("exported program", 9, ["s0 > 3"], 1)
    assert report.headline().startswith("exported program: 1 graph ")


def test_two_packages_of_aotinductor_are_shown(tmp_path: Path) -> None:
    log = Log()
    for number in range(2):
        log.add({"aot_inference_graph": {}, "stack": STACK}, GRAPH.replace("class GraphModule", "class <lambda>"))
        log.add({"graph_dump": {"name": "inductor_aot_wrapper_code", "filename": "a.cpp"}}, f"int main{number};")
        log.add({"compilation_metrics": {"compile_id": None}})
    report = load(log.write(tmp_path / "a.log"), strict=True)
    assert [f.name for f in report.frames] == ["AOTInductor package"] * 2
    assert [(g.ops, g.backend_code) for g in report.graphs] == [(1, "int main0;"), (1, "int main1;")]


def test_an_export_without_a_graph_says_what_it_is(tmp_path: Path) -> None:
    stack = [{"line": 9, "name": "export", "filename": "/site-packages/torch/export/__init__.py"}]
    log = Log().add({"guard_added_fast": {"expr": "s77 > 3"}, "stack": stack})
    text = " ".join(str(load(log.write(tmp_path / "a.log"))).split())
    assert "note: torch.export ran, which added 1 guard: s77 > 3" in text
    assert "compiled in" not in text
    for value in [0] * 99 + list(range(60)):  # a guard that is added often is one guard
        log.add({"guard_added_fast": {"expr": f"s77 != {value}"}, "stack": stack})
    text = " ".join(str(load(log.write(tmp_path / "a.log"))).split())
    assert "which added 61 guards: s77 > 3, s77 != 0, s77 != 1, s77 != 2, s77 != 3 and 56 more;" in text


# -- processes and runs -----------------------------------------------------------------------------


def test_two_ranks_in_one_file_are_told_apart(tmp_path: Path) -> None:
    for pids in ((100, 100), (100, 101)):
        logs = [Log(pid, rank).compile() for rank, pid in enumerate(pids)]
        lines = [r for pair in zip(*(x.text().replace("\n\t", "\x00").splitlines() for x in logs), strict=True) for r in pair]
        (tmp_path / "a.log").write_text("\n".join(lines).replace("\x00", "\n\t") + "\n", encoding="utf-8")
        report = load(tmp_path / "a.log")
        assert [(f.rank, f.compile_id, f.status) for f in report.frames] == [(0, "0/0", "compiled"), (1, "0/0", "compiled")]
        assert "a.log holds the records of ranks 0, 1" in str(report)


def test_of_many_ranks_and_processes_the_first_are_named(tmp_path: Path) -> None:
    lines = [line for rank in range(10) for line in Log(100 + rank, rank).compile().lines]
    (tmp_path / "a.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert load(tmp_path / "a.log").notes == [
        "a.log holds the records of ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more; torch writes a log for each"
    ]
    (tmp_path / "a.log").unlink()
    for number in range(6):
        Log(100 + number).compile().write(tmp_path / f"{number}.log")
    (note,) = load(tmp_path).notes
    assert note.endswith(": 0.log (process 100), 1.log (process 101), 2.log (process 102), 3.log (process 103) and 2 more")
    for number in range(6):
        (tmp_path / f"{number}.log").write_text("no record\n")
    with pytest.raises(ValueError, match=r"no trace records in .*0\.log, .*1\.log, .*2\.log and 3 more: is it"):
        load(tmp_path)


def test_of_two_runs_in_one_folder_the_last_is_shown(tmp_path: Path) -> None:
    Log(100, at=0).compile(0).compile(1).write(tmp_path / "dedicated_log_torch_trace_b.log")
    Log(200, at=60).compile(0).write(tmp_path / "dedicated_log_torch_trace_a.log")
    report = load(tmp_path)
    assert (report.summary.graphs, {f.rank for f in report.frames}) == (1, {None})
    assert "the logs are from 2 runs, and this report shows the last one" in " ".join(str(report).split())


def test_runs_of_several_ranks(tmp_path: Path) -> None:
    for run in range(3):
        for rank in (1, 0):
            Log(100 * run + rank, rank, at=600 * run + rank).compile().write(tmp_path / f"{run}_rank_{rank}_x.log")
    Log(999, None, at=1201).compile().write(tmp_path / "helper.log")
    found = runs(sorted(tmp_path.iterdir()))
    assert [[(p.rank, p.pid) for p in run.processes] for run in found] == [
        [(0, 0), (1, 1)], [(0, 100), (1, 101)], [(0, 200), (1, 201), (None, 999)],
    ]  # fmt: skip
    report = load(tmp_path)
    assert report.summary.graphs == 3
    assert [f.rank for f in report.frames] == [0, 1, None]
    assert "the counts include a process without a rank" in " ".join(str(report).split())


def test_a_file_beside_a_log_is_no_rank(tmp_path: Path) -> None:
    Log().compile().write(tmp_path / "a.log")
    (tmp_path / "notes.txt").write_text("hello\n", encoding="utf-8")
    report = load(tmp_path)
    assert [f.rank for f in report.frames] == [None]


def test_a_caller_from_before_a_reset_is_none(tmp_path: Path) -> None:
    called = (("f", 4),)
    log = Log().compile(0).compile(1, stack=called, co_name="g", co_firstlineno=8)
    again = Log(at=1).compile(0, stack=called, co_name="g", co_firstlineno=8)
    log.lines += again.lines
    report = load(log.write(tmp_path / "a.log"))
    assert [f.parent for f in report.frames] == [None, "f0", None]


# -- costs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["payload", "unknown records", "known records", "junk"])
def test_memory_of_many_short_lines(kind: str, tmp_path: Path) -> None:
    size, head = 1_500_000, Log().compile().text()
    if kind == "payload":
        body = Log(at=1).add({"chromium_event": {}}, "\n".join(["a"] * (size // 10))).text()
    elif kind == "junk":
        body = "x\n" * (size // 20)
    else:
        names = "unknown{}" if kind == "unknown records" else "describe_tensor"
        body = "".join(f'V0501 00:00:02.0 1 a.py:1] {{"{names.format(n)}": {{}}}}\n' for n in range(size // 60))
    file = tmp_path / "a.log"
    file.write_text(head + body.replace(" 1 a.py", " 100 a.py"), encoding="utf-8")
    tracemalloc.start()
    report = load(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report.summary.graphs == 1
    assert len(report.unread) < 150
    assert peak < 2 * size + 1_500_000
