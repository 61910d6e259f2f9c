"""Breaks because of data: what tracing needed to know, at which line, and what the compiler suggests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

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
