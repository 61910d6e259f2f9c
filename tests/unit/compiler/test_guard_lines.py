"""Programs with a known answer: which line wants the guard that fails on which call.

The same is read from the logs of a plain run, in another process: `TORCH_LOGS=dynamic,recompiles_verbose`.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from programs import COLUMNS, NOTICES_ATTRIBUTES
from recompile_programs import PROGRAMS

from dynascope.compiler.builder import guards
from dynascope.compiler.builder.guards import Places
from dynascope.compiler.capture.recording import observe
from dynascope.compiler.report import Report, StackEntry

_DRIVER = """
import runpy, sys, torch
for path in sys.argv[1:]:
    torch._dynamo.reset()
    print(f"PROGRAM {path}", file=sys.stderr, flush=True)
    runpy.run_path(path)
"""
_PREFIX = re.compile(r"^[VIWE]\d{4} \S+ \d+ \S+\] ")
_VERSION = re.compile(r"^ *- (?P<version>\d+/\d+): (?P<text>.*)$")
_BESIDE = re.compile(r"# [^#]*?(?P<file>[\w ]+\.py):(?P<line>\d+) in (?P<function>[^\s()]+)")
_ADDRESS = re.compile(r"\b\d{9,}\b| at 0x\w+")
_SYMBOL = re.compile(r"create_symbol (?P<name>\w+) = (?P<hint>\S+) for (?P<source>\S+) .*?# \S*?:(?P<line>\d+) in ")
_ADDED = re.compile(r"eval (?P<text>.+?) \[guard added\] .*?# \S*?:(?P<line>\d+) in ")


class Logged(NamedTuple):
    """What the logs of a program say: by version, (condition, line, file); symbols and conditions on them with their lines."""

    reasons: list[tuple[str, str, int | None]]
    symbols: set[tuple[str, str, int]]
    added: set[tuple[str, int]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("programs")
    files = {name: folder / f"{name.replace(' ', '_').replace(',', '')}.py" for name in PROGRAMS}
    for name, file in files.items():
        file.write_text(PROGRAMS[name].text, encoding="utf-8")
    return files


@pytest.fixture(scope="module")
def logs(files: dict[str, Path]) -> dict[str, Logged]:
    """What torch itself logs, without dynascope."""
    environment = {**os.environ, "TORCH_LOGS": "dynamic,recompiles_verbose", "TORCHDYNAMO_EXTENDED_ADVICE": "0"}
    run = subprocess.run(
        [sys.executable, "-c", _DRIVER, *map(str, files.values())], capture_output=True, text=True, env=environment, timeout=500
    )
    assert run.returncode == 0, run.stderr[-2000:]
    by_file = {part.split("\n", 1)[0].strip(): part for part in run.stderr.split("PROGRAM ")[1:]}
    return {name: read_log(by_file[str(file)]) for name, file in files.items()}


def read_log(text: str) -> Logged:
    logged = Logged([], set(), set())
    for line in text.splitlines():
        said = re.sub(r"^\[[^\]]*\] (?:\[__\w+\] )?", "", _PREFIX.sub("", line))
        reason, symbol, added = _VERSION.match(said), _SYMBOL.match(said), _ADDED.match(said)
        if reason is not None:
            places = _BESIDE.findall(reason["text"])
            condition = re.split(r"\s{2,}# ", reason["text"])[0].strip()
            logged.reasons.append((reason["version"], condition, int(places[-1][1]) if places else None))
        elif symbol is not None:
            logged.symbols.add((symbol["name"], symbol["hint"], int(symbol["line"])))
        elif added is not None:
            logged.added.add((added["text"], int(added["line"])))
    return logged


@pytest.fixture(scope="module")
def reports(files: dict[str, Path]) -> dict[str, Report]:
    made = {}
    for name, file in files.items():
        torch._dynamo.reset()
        with observe() as recording:
            runpy.run_path(str(file))
        made[name] = recording.report
    return made


def marked(name: str, mark: str) -> int | None:
    lines = PROGRAMS[name].text.splitlines()
    return next((n for n, line in enumerate(lines, 1) if line.endswith(f"# {mark}")), None) if mark else None


def innermost(at: StackEntry | None, stack: list[StackEntry]) -> int | None:
    return stack[-1].line if stack else at.line if at is not None else None


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_line_that_caused_a_recompile(name: str, reports: dict[str, Report]) -> None:
    if name in ("an attribute of a module", "training and evaluation") and not NOTICES_ATTRIBUTES:
        pytest.skip("plain torch runs the old code; see torch_versions.md")
    told = []
    for recompile in reports[name].recompiles:
        guard = recompile.failed_guards[0]
        told.append((recompile.call, guard.kind, guard.source or guard.text, guard.at.line if guard.at else None))
    assert told == [(call, kind, about, marked(name, mark)) for call, kind, about, mark in PROGRAMS[name].expected]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_logs_of_a_plain_run_say_the_same(name: str, reports: dict[str, Report], logs: dict[str, Logged]) -> None:
    report, logged = reports[name], logs[name]
    told = [
        (g.compile_id.rpartition("/")[2] if g.compile_id else None, reason.split(": ", 1)[1], g)
        for r in report.recompiles
        for reason, g in zip(r.reasons, r.failed_guards, strict=True)
    ]
    assert len(told) == len(logged.reasons)
    for (version, reason, guard), (their_version, condition, line) in zip(told, logged.reasons, strict=True):
        mine = re.split(r"\s{2,}# ", reason)[0].strip()
        assert (version, _ADDRESS.sub("", mine)) == (their_version.rpartition("/")[2], _ADDRESS.sub("", condition))
        if line is not None:
            assert innermost(guard.at, guard.stack) == line
    symbols = {(s.name, s.hint, innermost(s.at, s.stack)) for f in report.frames for s in f.symbols}
    assert symbols == logged.symbols
    added = {(c.expression, innermost(c.at, c.stack)) for f in report.frames for s in f.symbols for c in s.constraints}
    assert added >= logged.added


#: program -> of the symbols in its last frame: what it stands for, why it is dynamic, its only value, and the mark of the line
#: that gave it that value
SYMBOLS = {
    "a number becomes a symbol": [("n", None, "automatic", None, "")],
    "a branch on a size": [("x", 0, "setting", None, "")],
    "a size pinned by a constant tensor": [],
    "a size pinned by int": [("x", 0, "setting", "4", "A")],
    "a pin deep in calls": [("x", 0, "setting", "4", "A")],
    "automatic, then a branch": [("x", 0, "automatic", None, "")],
    "two sizes that were equal": [("x", 0, "setting", None, ""), ("y", 0, "setting", None, "")],
    "a marked size": [("x", 1, "marked", None, "")],
}


@pytest.mark.parametrize("name", SYMBOLS)
def test_why_a_symbol_is_one_and_what_gave_it_a_value(name: str, reports: dict[str, Report]) -> None:
    told = []
    for symbol in reports[name].frames[-1].symbols:
        pin = next((c for c in symbol.constraints if c.value is not None), None)
        told.append((symbol.source, symbol.dimension, symbol.dynamic, symbol.value, pin and pin.at and pin.at.line))
    assert told == [(*facts, marked(name, mark)) for *facts, mark in SYMBOLS[name]]


def test_who_wanted_a_guard(reports: dict[str, Report]) -> None:
    def wanted(name: str) -> tuple[str, str | None]:
        guard = reports[name].recompiles[-1].failed_guards[0]
        return guard.origin, guard.asked_by

    assert wanted("a number") == ("code", None)
    assert wanted("a branch on a size")[0] == "code"
    assert wanted("a size of one") == ("compiler", "0/1 specialization")
    assert wanted("two sizes that were equal") == ("compiler", "duck sizing")
    assert wanted("a size pinned by a constant tensor") == ("operation", "infer_size")


@pytest.mark.parametrize(
    ("condition", "source"),
    [("L['n'] <= 10", "n"), ("2 <= L['n']", "n"), ("-3 <= L['n'] + 1", "n + 1"), ("L['a'] == L['b']", "a")],
)
def test_the_source_of_a_condition_on_symbols_is_its_expression(condition: str, source: str) -> None:
    read = guards.read_tree(f"+- LAMBDA_GUARD: {condition}  # a.py:3 in f\n", Places(lambda file: None), {}, {})
    assert [g.source for site in read.sites for g in site.guards] == [source]


def test_a_helper_is_reached_through_its_calls(reports: dict[str, Report]) -> None:
    columns = COLUMNS and not torch.__version__.startswith(("2.9", "2.11"))  # their stacks have lines only
    guard = reports["a number in a helper"].recompiles[0].failed_guards[0]
    assert [(e.line, e.function) for e in guard.stack] == [(5, "f"), (3, "helper")]
    assert guard.at is not None
    assert (guard.at.column, guard.at.end_column) == ((11, 16) if columns else (None, None))
