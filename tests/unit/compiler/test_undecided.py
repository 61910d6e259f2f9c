"""Breaks because of data: what tracing needed to know, at which line, and what the compiler suggests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from dynascope.compiler.builder.dynamo_texts import undecided_in
from dynascope.compiler.driver import explain
from dynascope.compiler.report import Report, Undecided


@pytest.fixture(autouse=True)
def scalars_captured() -> Iterator[None]:
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        yield


def branch(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    n = (y * 1).sum().item()
    if x.shape[0] + n == 7:
        return x + 1
    return x * n


def checked(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    n = (y * 1).sum().item()
    torch._check(x.shape[0] + n == 7)
    if x.shape[0] + n == 7:
        return x + 1
    return x * n


def loop(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    n = (y * 1).sum().item()
    for i in range(n):
        x = x + i
    return x


def on_tensor(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if y.sum() > 3:
        return x + 1
    return x * 2


def recorded(function: Callable[..., Any], **settings: Any) -> Report:
    return explain(function, backend="eager", **settings)(torch.ones(3), torch.tensor(4))


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_branch_says_its_condition_and_the_symbol_its_line(fullgraph: bool) -> None:
    report = recorded(branch, fullgraph=fullgraph)
    (broken,) = report.breaks
    assert broken.undecided == Undecided(expression="u0 + 3 == 7", needed="condition")
    at = next(s.at for s in report.frames[0].symbols if s.name == "u0")
    assert at is not None
    assert at.line == broken.line - 1
    text = str(report)
    assert "Tracing needed to know whether u0 + 3 == 7 holds" in text
    assert "torch._check(u0 + 3 == 7), or its opposite" in " ".join(text.split())
    assert Report.from_dict(report.to_dict()).breaks == report.breaks


def test_what_the_words_advise_removes_the_break() -> None:
    assert recorded(checked).breaks == []


def test_a_loop_says_which_number_it_needs() -> None:
    report = recorded(loop)
    assert report.breaks[0].undecided == Undecided(expression="u0", needed="integer")
    assert "Tracing needed to know the value of u0" in str(report)


def test_other_breaks_have_none() -> None:
    report = recorded(on_tensor)
    assert [b.undecided for b in report.breaks] == [None]
    assert report.breaks[0].undecided is None


def test_the_checks_are_those_that_torch_suggests() -> None:
    from collections import defaultdict

    import sympy
    from torch.fx.experimental import symbolic_shapes

    condition = sympy.Symbol("u0", integer=True) > 3
    said = "Could not guard on data-dependent expression u0 > 3 (unhinted: u0 > 3).  (Size-like symbols: none)"
    error = symbolic_shapes.GuardOnDataDependentSymNode(condition, said)
    symbolic_shapes._suggest_torch_checks(error, defaultdict(list, {"u0": ["n"]}))  # as torch.export does
    found = undecided_in(str(error))
    assert found is not None
    assert found.checks == ["torch._check(n > 3)", "torch._check(n <= 3)"]
