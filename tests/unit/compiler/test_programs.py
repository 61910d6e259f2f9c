"""Every program with a known truth, under `observe()` as it stands."""

from __future__ import annotations

import linecache
import sys
import types
from pathlib import Path

import pytest
import torch

import dynascope.compiler.run as run
from dynascope.compiler.recording import observe
from dynascope.compiler.report import Report

sys.path.insert(0, str(Path(__file__).parents[2]))
from programs import PROGRAMS, Program


def record(program: Program, backend: str = "eager") -> Report:
    """Execute the program as a cell of its own, its `@compiled` being dynascope.compile."""
    torch._dynamo.reset()
    name = f"cell_{program.name}"
    module = types.ModuleType(name)
    sys.modules[name] = module
    text = program.text()
    decorated = program.text("@compiled")
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(keepends=True), f"<{name}>")
    try:
        vars(module)["torch"] = torch
        vars(module)["compiled"] = run.compile(backend=backend, **program.options)
        with observe() as recording:
            exec(compile(decorated, f"<{name}>", "exec"), vars(module))
        return recording.report
    finally:
        del sys.modules[name]


def check(program: Program, report: Report) -> None:
    """Compare a report with the program's truth."""
    told = [(b.line, b.outcome) for b in report.breaks]
    assert told == list(program.breaks)
    lines = [
        tuple(sorted({n.line for n in g.nodes if n.op.startswith("call_") and n.line and n.file and n.file.startswith("<")}))
        for g in report.graphs
    ]
    assert lines == list(program.graphs)
    assert tuple(f.name for f in report.frames if f.status == "skipped") == program.skipped
    assert all(f.reason for f in report.frames if f.status == "skipped")
    assert report.summary.resumes == program.resumes
    assert report.summary.recompiles == program.recompiles
    if program.hits:
        assert tuple(len(b.hits) for b in report.breaks) == program.hits
    assert (report.error.type if report.error else None) == program.error
    for frame in report.frames:
        if frame.kind == "resume":
            assert frame.break_ is not None
            assert frame.continues is not None
            assert frame.id in [r for h in report.break_(frame.break_).hits for r in h.resumes]
    assert report.unread == {}
    assert all(took is True for took in report.hooks.values()), report.hooks


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_observed(program: Program) -> None:
    for release, difference in program.unlike.items():
        if torch.__version__.startswith(release):
            pytest.skip(f"torch {release}: {difference}")
    check(program, record(program))
