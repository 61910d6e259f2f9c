"""A TORCH_TRACE file and a live run of the same programs tell the same; damage is in tests/property."""

from __future__ import annotations

import copy
import gzip
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from observed import seen
from processes import printed_by

from dynascope.compiler.capture.trace_files import load
from dynascope.compiler.report import FailedGuard, Frame, Report

HERE = Path(__file__).parent

SCRIPT = """
import sys
sys.path[:0] = [{tests!r}, {here!r}]
import linecache, types, torch
from programs import PROGRAMS
import dynascope.compiler.compiling as run
from dynascope.compiler.capture.recording import observe

with observe() as recording:
    for program in PROGRAMS:
        file = {folder!r} + "/" + program.name + ".py"
        open(file, "w").write(program.text("@compiled"))
        module = types.ModuleType(program.name)
        sys.modules[program.name] = module
        vars(module).update(torch=torch, compiled=run.compile(backend="eager", **program.options))
        exec(compile(program.text("@compiled"), file, "exec"), vars(module))
recording.report.save({folder!r} + "/live.json")
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Report, Path]]:
    """The live report of all programs in one process, and the folder with that process's trace."""
    folder = tmp_path_factory.mktemp("traced")
    trace = folder / "trace"
    trace.mkdir()
    script = SCRIPT.format(tests=str(HERE.parents[1]), here=str(HERE), folder=str(folder))
    printed_by("-c", script, TORCH_TRACE=str(trace))
    return load(folder / "live.json"), trace


def shape(report: Report) -> dict[str, Any]:
    """What a file can know, with frames named so that ignored ones do not matter."""
    frames = [f for f in report.frames if f.status != "ignored"]
    name = {f.id: (f.compile_id, f.code_name, f.line) for f in frames}
    return {
        "frames": [(*name[f.id], f.kind, f.status, f.break_, name.get(f.continues or "")) for f in frames],
        "graphs": [
            (g.ops, name[g.frame], g.break_, [(n.name, n.op, n.target, n.line, n.shape) for n in g.nodes])
            for g in report.graphs
        ],
        "breaks": [
            (b.line, b.column, b.type, b.outcome, b.gb_ids, b.hints, [(name[h.frame], h.outcome) for h in b.hits])
            for b in report.breaks
        ],
        "guards": [(guards_of(f), f.guard_count) for f in frames],
        "recompiles": [(r.reasons, [without_columns(g) for g in r.failed_guards]) for r in report.recompiles],
    }


def guards_of(frame: Frame) -> tuple[set[str], int]:
    """The guards without indices, and their number: a file has fewer of the lines by which guards are counted together."""
    guards = [guard for site in frame.guard_sites for guard in site.guards]
    return {re.sub(r"\d+", "#", guard.text) for guard in guards}, sum(guard.count for guard in guards)


def without_columns(guard: FailedGuard) -> FailedGuard:
    """A failed guard as a file knows it: the columns of its lines are not in the records."""
    unknown = {"column": None, "end_column": None}
    at = guard.at and replace(guard.at, **unknown)
    return replace(guard, at=at, stack=[replace(e, **unknown) for e in guard.stack])


def callers(report: Report) -> list[Any]:
    """Of each frame, the one that called it, and the line; None where that is unknown, or there is none."""
    frames = [f for f in report.frames if f.status != "ignored"]
    name = {f.id: (f.compile_id, f.code_name, f.line) for f in frames}
    return [(name[f.parent], f.called_from) if f.parent in name else None for f in frames]


def assert_alike(live: Report, file: Report) -> None:
    """Both tell the same.

    From Python 3.13 on, a traceback does not mark every call: a column may be unknown in a file, but never wrong.
    """
    for mine, its in zip(live.breaks, file.breaks, strict=True):
        if sys.version_info >= (3, 13) and its.column is None:
            mine.column = mine.end_line = mine.end_column = None
    expected, told = shape(live), shape(file)
    for part in expected:
        assert told[part] == expected[part], part


@pytest.mark.skipif(
    torch.__version__.startswith(("2.9", "2.11")),
    reason="files of torch 2.9 and 2.11 have no columns, so two breaks on one line are one; see torch_versions.md",
)
def test_live_and_file_agree(traced: tuple[Report, Path]) -> None:
    live, trace = traced
    live, file = copy.deepcopy(live), load(trace)
    assert_alike(live, file)
    for mine, its in zip(callers(live), callers(file), strict=True):
        # torch leaves out the innermost callers: a function that a break called is known by that break, in the user's code
        assert its in (mine, None) or mine[0][1] == "inner", (mine, its)
    counted = {
        name: getattr(live.summary, name) for name in ("frames", "graphs", "ops", "breaks", "resumes", "skipped", "recompiles")
    }
    assert {name: getattr(file.summary, name) for name in counted} == counted


PLAIN = """
import torch

def innermost(x):
    größe = x + 1; wide = "日本語"; torch._dynamo.graph_break(); return größe * 2

def deeper(x):
    x = innermost(x + 2)
    return x * 3

def deep(x):
    long_name = print(
        end="",
    )
    return deeper(x + 3) * 4

def f(x):
    return deep(x + 4) * 5

def varied(x, by):
    return x * by

class Block(torch.nn.Module):
    def forward(self, x):
        torch._dynamo.graph_break()
        return x.cos()

def run():
    torch.compile(f, backend="eager")(torch.ones(2))
    torch.compile(Block(), backend="eager")(torch.ones(3))
    limited = torch.compile(varied, backend="eager", dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=2):
        for i in range(4):
            limited(torch.ones(2), i + 0.5)
"""


@pytest.mark.skipif(torch.__version__.startswith(("2.9", "2.11")), reason="as above")
def test_a_file_written_without_us_tells_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, torch leaves the two innermost callers out of the stacks in its trace."""
    (tmp_path / "plain_program.py").write_text(PLAIN, encoding="utf-8")
    trace = tmp_path / "trace"
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import plain_program; plain_program.run()"
    printed_by("-c", code, TORCH_TRACE=str(trace), PYTHONUTF8="1")
    monkeypatch.syspath_prepend(tmp_path)
    program = importlib.import_module("plain_program")
    live, file = seen(program.run), load(trace)
    assert_alike(live, file)
    assert callers(file) == callers(live)
    assert file.compiled == live.compiled == ["f", "Block", "varied"]
    assert [f.name for f in file.frames] == [f.name for f in live.frames if f.status != "ignored"]
    # where the marks in a file go on to the line's end, no end is known
    for mine, found in zip(live.breaks, file.breaks, strict=True):
        assert (found.end_line, found.end_column) in ((None, None), (mine.end_line, mine.end_column))


def test_what_a_file_cannot_know_is_unknown(traced: tuple[Report, Path]) -> None:
    _, trace = traced
    report = load(trace)
    assert (report.origin, report.unread) == ("trace", {})
    assert {b.error_on_graph_break for b in report.breaks} == {None}
    assert {b.allowed for b in report.breaks} == {None}
    assert {f.fullgraph for f in report.frames} == {None}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.html", "", "no trace records"),
        ("other.log", "hello\nworld\n", "no trace records"),
        ("report.json", "{", "not a saved report"),
        ("list.json", "[]", "not a dynascope report"),
        ("deep.json", "[" * 100_000, "not a saved report"),
    ],
)
def test_what_is_no_trace_is_one_clear_line(name: str, content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=words) as caught:
        load(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_reading_a_trace_loads_no_torch(traced: tuple[Report, Path]) -> None:
    _, trace = traced
    code = (
        "import sys; from dynascope.compiler.capture.trace_files import load; r = load(sys.argv[1]); str(r); r.to_html(); "
        "assert 'torch' not in sys.modules and 'IPython' not in sys.modules, 'loaded'"
    )
    printed_by("-c", code, trace)


#: of a program that ran to its end
WHOLE = HERE.parents[1] / "traces" / "breaks-2.13.0.log.gz"


def cut_after(record: bytes, folder: Path) -> Report:
    """The report of this log up to the first record of a kind."""
    log = gzip.decompress(WHOLE.read_bytes())
    whole = re.search(rb'\{"' + record + rb'".*\n(\t.*\n)*', log)
    assert whole is not None
    (folder / "cut.log").write_bytes(log[: whole.end()])
    return load(folder / "cut.log")


def test_unfinished_frames_in_every_view(tmp_path: Path) -> None:
    for record in (b"dynamo_output_graph", b"dynamo_start"):
        report = cut_after(record, tmp_path)
        assert report.headline().endswith("1 unfinished")
        assert "the log does not hold the end of this compile" in report.to_html()
        assert "unfinished" in report.to_svg()
        assert Report.from_dict(report.to_dict()) == report
        assert report.expect("unfinished=1") is report
        with pytest.raises(AssertionError, match=r"(?s)expected unfinished=0, found 1.* f \(the log does not hold"):
            report.expect(unfinished=0)


def test_a_break_that_an_unfinished_run_lacks_is_not_gone(tmp_path: Path) -> None:
    whole, cut = load(WHOLE), cut_after(b"dynamo_output_graph", tmp_path)
    changed = cut.diff(whole)
    assert (changed.not_met, changed.new) == (whole.breaks, [])
    assert changed.lines[0] == "this run did not finish: a break that it does not have is not known to be gone"
    back = whole.diff(cut)
    assert (back.not_met, back.new) == ([], [])
    assert "not known to be new" in back.lines[0]
