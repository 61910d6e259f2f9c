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
from programs import PROGRAMS, Program, check


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


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_observed(program: Program) -> None:
    for release, difference in program.unlike.items():
        if torch.__version__.startswith(release):
            pytest.skip(f"torch {release}: {difference}")
    check(program, record(program))
