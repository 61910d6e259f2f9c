"""The logs in tests/traces: nothing in them is unread, and the counts are those of torch's records and of tlparse."""

from __future__ import annotations

import functools
import gzip
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dynascope.compiler.capture.trace_files import load
from dynascope.compiler.report import Report
from dynascope.widgets.render.text import to_details

TRACES = Path(__file__).parents[2] / "traces"
LOGS = sorted(TRACES.glob("*.log.gz"))
#: what these logs hold belongs to no compile
OUTSIDE = ("aotinductor", "export")


@functools.cache
def report_of(log: Path) -> Report:
    return load(log, strict=True)


def program(log: Path) -> str:
    return log.name.partition("-")[0]


def heads(log: bytes) -> list[dict[str, object]]:
    """The JSON of each record, read with as little as possible of what the product does."""
    return [json.loads(m[1]) for m in re.finditer(rb"^V\d{4} [^\n]*?\] (\{.*)$", log, re.M)]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name.removesuffix(".log.gz"))
def test_a_log_of_the_corpus(log: Path) -> None:
    report = report_of(log)
    assert (report.unread, report.summary.unfinished, report.summary.unknown_breaks) == ({}, 0, 0)
    assert Report.from_dict(report.to_dict()) == report
    records = heads(gzip.decompress(log.read_bytes()))
    if program(log) not in OUTSIDE:
        assert report.summary.graphs == sum("dynamo_output_graph" in r for r in records)
    assert len([f for f in report.frames if f.compile_seconds is not None]) == sum(
        "compilation_metrics" in r and r["compilation_metrics"]["entire_frame_compile_time_s"] is not None for r in records
    )
    assert str(report)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("aotinductor", "nothing compiled"), ("strict_export", ": 1 graph "),
        ("export", "torch.export or AOTInductor wrote this log"), ("compiled_autograd", "2 graphs"),
        ("breaks", "5 graph breaks"),
        ("errors", "\n✗ "), ("recompiles", "recompiles"), ("inductor", "1 recompile"),
    ],
)  # fmt: skip
def test_what_kind_of_log_it_is(name: str, words: str) -> None:
    logs = [log for log in LOGS if program(log) == name]
    assert logs
    for log in logs:
        text = str(report_of(log))
        assert words in text, log.name
        assert "stopped by an error" not in text, "a log does not say whether the error was caught"


@pytest.fixture(scope="session")
def tlparse() -> str:
    beside = Path(sys.executable).with_name("tlparse")
    found = str(beside) if beside.exists() else shutil.which("tlparse")
    if found is None:
        pytest.skip("needs tlparse: pip install tlparse")
    return found


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name.removesuffix(".log.gz"))
def test_tlparse_finds_the_same(log: Path, tlparse: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(gzip.decompress(log.read_bytes()))
    command = [tlparse, str(tmp_path / "a.log"), "-o", str(tmp_path / "out"), "--no-browser"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    assert not re.search(r"fail_\w+: [1-9]", done.stderr), "tlparse finds no damage either"
    written = [p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*") if p.is_file()]
    report = report_of(log)

    def count(name: str) -> int:
        return sum(p.name.startswith(name) for p in written)

    if program(log) not in OUTSIDE:
        assert count("dynamo_output_graph") == report.summary.graphs
    assert count("dynamo_cpp_guards_str") >= sum(f.guard_count is not None for f in report.frames)
    assert count("aot_backward_graph") == sum(g.aot_backward is not None for g in report.graphs)
    assert count("inductor_output_code") == sum(
        (g.backend_code or "").count("async_compile = AsyncCompile()") for g in report.graphs
    )
    # tlparse counts each record of a break, the report each place once
    assert count("dynamo_graph_break_reason") >= sum(len(b.hits) for b in report.breaks if b.outcome == "resumed") > -1


@pytest.mark.parametrize("log", [log for log in LOGS if program(log) not in OUTSIDE], ids=lambda log: log.name[:-7])
def test_what_a_torch_does_not_log_about_guards_is_unknown(log: Path) -> None:
    """A fact is one that the log's own records have; a torch that writes no such records gives none."""
    report = report_of(log)
    text = gzip.decompress(log.read_bytes()).decode()
    created = set(re.findall(r'"create_(?:unbacked_)?symbol": \{"symbol": "(\w+)"', text))
    assert {s.name for f in report.frames for s in f.symbols} <= created
    places = {tuple(m) for m in re.findall(r"([^\s/:#]+):(\d+) in ", text)}
    places |= {
        (Path(name).name, line) for line, name in re.findall(r'"line": (\d+), "name": "[^"]*", "filename": "([^"]*)"', text)
    }
    interned = re.findall(r'"line": (\d+), "name": "[^"]*", "filename": \d+', text)
    for at in [s.at for f in report.frames for s in f.guard_sites if s.at is not None]:
        assert (Path(at.file).name, str(at.line)) in places or str(at.line) in interned
    assert all(at is None or at.column is None for f in report.frames for s in f.guard_sites for at in [s.at])
    for recompile in report.recompiles:
        assert recompile.call is None, "a log does not count calls"
        assert recompile.failed_guards or recompile.reasons
    if program(log) == "recompiles":
        assert (created != set()) == any(f.symbols for f in report.frames)
    assert report.profile is None
    saved = Report.from_dict(json.loads(json.dumps(report.to_dict())))
    assert not re.search(r"\bNone (?:before|now|when|in this)|\bis None now\b", to_details(saved))
