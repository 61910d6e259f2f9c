"""Every program with a known truth, under `observe()`."""

from __future__ import annotations

import linecache
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

import dynascope.compiler.compiling as run
from dynascope.compiler.capture.recording import observe
from dynascope.compiler.capture.torch_private import config
from dynascope.compiler.report import Report

sys.path.insert(0, str(Path(__file__).parents[2]))
from programs import PROGRAMS, Program, check


def record(program: Program, backend: Any = "eager") -> Report:
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


def skip_where_unlike(unlike: dict[str, str]) -> None:
    for release, difference in unlike.items():
        if torch.__version__.startswith(release):
            pytest.skip(f"torch {release}: {difference}")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_observed(program: Program) -> None:
    skip_where_unlike(program.unlike)
    check(program, record(program))


#: graphs and resume functions where nested graph breaks make others: the callers go on in the resume function of the callee
NESTED = {
    "allowed_in_a_decorated_function": (2, 1),
    "allowed_by_patching_a_library": (2, 1),
    "a_with_block_reaches_into_calls": (2, 1),
    "regions_nest": (2, 1),
    "the_loop_unrolled_by_hand": (2, 1),
    "one_break_four_calls_deep": (2, 1),
    "a_helper_that_breaks_called_five_times": (5, 5),
}


#: torch release -> programs that its nested graph breaks, then new, run otherwise; examples/reference/torch_versions.md
EARLY = {
    "2.9": ("regions_nest", "an_inner_fullgraph_refuses", "a_callee_that_is_skipped"),
    "2.11": ("an_inner_fullgraph_refuses",),
}


@pytest.mark.skipif(config.nested_graph_breaks() is None, reason="this torch has no nested graph breaks")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_observed_with_nested_graph_breaks(program: Program) -> None:
    """The same places and skips; as many graphs as a backend of our own was given, in that order."""
    given: list[int] = []

    def counting(module: torch.fx.GraphModule, inputs: Any) -> Any:
        given.append(sum(n.op.startswith("call_") for n in module.graph.nodes))
        return module.forward

    early = {release: "an early version of nested graph breaks" for release, names in EARLY.items() if program.name in names}
    skip_where_unlike({**program.unlike, **early})
    with torch._dynamo.config.patch(nested_graph_breaks=True):
        report = record(program, counting)
    assert [(b.line, b.outcome) for b in report.breaks] == program.places
    assert tuple(f.name for f in report.frames if f.status == "skipped") == program.skipped
    assert [g.ops for g in report.graphs] == given
    graphs, resumes = NESTED.get(program.name, (len(program.graphs), program.resumes))
    assert (report.summary.graphs, report.summary.resumes) == (graphs, resumes)
    assert (report.error.type if report.error else None) == program.error
