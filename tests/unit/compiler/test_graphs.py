"""What is in a graph: inner compiles, checkpoint and cond, allow_in_graph, backward."""

from __future__ import annotations

import torch
import torch.utils.checkpoint
from observed import seen

from dynascope.compiler.capture.recording import observe
from dynascope.compiler.driver import explain


def grows(x: torch.Tensor) -> torch.Tensor:
    return (x @ x).sin().sum()


def test_a_backward_is_pending_until_it_is_compiled() -> None:
    compiled = torch.compile(grows, backend="aot_eager")
    with observe() as first:
        loss = compiled(torch.ones(3, 3, requires_grad=True))
    assert [g.backward for g in first.report.graphs] == ["pending"]
    with observe() as second:
        loss.backward()
    # the time of a backward that Inductor does not compile is unknown
    assert second.report.notes[0] == "1 backward graph compiled: of code compiled before this recording."


def test_an_inner_compile_is_part_of_the_outer_graph() -> None:
    @torch.compile(backend="eager")
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    report = explain(lambda x: inner(x) + 1, backend="eager")(torch.ones(2))
    assert [g.ops for g in report.graphs] == [2]


def test_a_stance_that_forces_eager_compiles_nothing() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")

    def call() -> None:
        with torch.compiler.set_stance("force_eager"):
            compiled(torch.ones(2))

    assert seen(call).summary.graphs == 0
