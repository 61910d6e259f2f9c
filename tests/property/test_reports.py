"""The report against independent witnesses, on generated programs.

The witnesses, in the same run: eager values, a counting backend with the captured GraphModules, and the model
of `made_programs`, which knows where it put the breaks.
"""

from __future__ import annotations

import types
from typing import Any

import torch
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_programs import Function, Model, Statement, programs, text
from observed import loaded

from dynascope.compiler.driver import explain

EXAMPLES = examples(8)
#: what torch 2.9 does not tell: examples/reference/torch_versions.md
EARLY = torch.__version__.startswith("2.9")


def leading_on(body: list[Statement]) -> set[int]:
    """Lines of statements that lead to others: calls and blocks."""
    return {s.line for s in body if s.body or s.kind == "call"}.union(*(leading_on(s.body) for s in body))


@settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
@given(programs(), st.booleans())
def test_report_agrees_with_every_witness(functions: list[Function], nested: bool) -> None:
    source = text(functions)
    target = getattr(loaded("made_program", source), functions[-1].name)
    captured: list[Any] = []

    def witness(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        captured.append([(n.op, n.name) for n in gm.graph.nodes])
        return gm

    torch._dynamo.reset()
    x = torch.arange(4.0)
    # nested graph breaks, which will be the default, and the classic mode: the same places, outcomes and skips
    nested = nested and not EARLY  # there torch's own code raises, in the prologues of resume functions
    report = explain(target, backend=witness, nested_graph_breaks=nested)(x.clone())
    model = Model(functions).run()
    (resembles if EARLY else agrees)(report, model, functions, nested)

    # graphs: as many as the backend was given, in its order, with the same nodes
    given_graphs = [g for g in report.graphs if g.ops]
    compiled = [nodes for nodes in captured if any(op.startswith("call_") for op, _ in nodes)]
    assert [[(n.op, n.name) for n in g.nodes] for g in given_graphs] == compiled, source

    # the user's world: the value is that of eager code
    if model.refused is None:
        torch._dynamo.reset()
        assert torch.equal(torch.compile(target, backend="eager")(x.clone()), target(x.clone()))
    structure(report, nested)


def agrees(report: Any, model: Model, functions: list[Function], nested: bool) -> None:
    """Breaks, skipped frames and the refusal are where the program's own knowledge has them."""
    source = text(functions)
    assert {b.line: b.outcome for b in report.breaks} == model.breaks, source
    skipped = {f.name for f in report.frames if f.status == "skipped"}
    # with nested graph breaks the operations of the callers count, too, when Dynamo compiles up to a `try`
    assert skipped <= model.skipped if nested else skipped == model.skipped, source
    assert (report.error.line if report.error else None) == model.refused, source


def resembles(report: Any, model: Model, functions: list[Function], nested: bool) -> None:
    """The same, as far as torch 2.9 tells: a break, and a refusal, may stand at the call or the block that leads to it."""
    source = text(functions)
    told = {b.line for b in report.breaks}
    assert told & set().union(*(leading_on(f.body) for f in functions)) or told >= model.breaks.keys(), source
    assert {f.name for f in report.frames if f.status == "skipped"} <= model.skipped, source
    assert (report.error is None) == (model.refused is None), source


def structure(report: Any, nested: bool) -> None:
    """What holds of every report, whatever the program."""
    frames = {f.id: f for f in report.frames}
    graphs = {g.id: g for g in report.graphs}
    for frame in report.frames:
        assert frame.graph is None or graphs[frame.graph].frame == frame.id
        # with nested graph breaks a resume function may continue a function that its frame had inlined
        assert frame.continues is None or nested or frames[frame.continues].name == frame.name
        assert frame.kind != "resume" or frame.break_ is not None
        assert frame.status != "skipped" or frame.reason
    for found in report.breaks:
        assert found.hits
        # before Python 3.11 none is known; in a `try`, with nested graph breaks, 2.9 and 2.11 do not tell
        if not hasattr(types.CodeType, "co_positions"):
            assert found.column is None
        else:
            assert found.column is not None or (nested and torch.__version__.startswith("2.11"))
        assert found.stack[-1].line == found.line
        assert found.error_on_graph_break is (found.outcome == "raised")
        assert all(hit.frame in frames for hit in found.hits)
    assert report.unread == {}
    assert all(took is True for took in report.hooks.values())
    assert type(report).from_dict(report.to_dict()) == report
