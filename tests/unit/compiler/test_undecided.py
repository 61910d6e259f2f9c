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


def loop(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    n = (y * 1).sum().item()
    for i in range(n):
        x = x + i
    return x


def recorded(function: Callable[..., Any], **settings: Any) -> Report:
    return explain(function, backend="eager", **settings)(torch.ones(3), torch.tensor(4))


def test_a_loop_says_which_number_it_needs() -> None:
    report = recorded(loop)
    assert report.breaks[0].undecided == Undecided(expression="u0", needed="integer")
    assert "Tracing needed to know the value of u0" in str(report)
