"""What a report says about fixes: which breaks and recompiles they remove, why others are not taken, and what calls take."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import dynascope
from dynascope.compiler.report import Report, time_text


@pytest.fixture(autouse=True)
def fresh_torch() -> None:
    torch._dynamo.reset()


def fix(function: Any, *args: Any, **settings: Any) -> Report:
    return dynascope.explain(function, backend="eager", fix=True, **{"fix_seconds": 600, **settings})(*args)


def prints(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    print(y.sum())
    return y + 1


def test_a_call_has_one_time() -> None:
    """In the run time, in the verdict and before a fix."""
    report = fix(prints, torch.ones(3), profile=2)
    assert report.profile is not None
    assert report.fix_set is not None
    known, after = report.profile.verdict.compiled_seconds, report.fix_set.seconds_after
    assert known is not None
    assert after is not None
    assert known == report.profile.median_seconds == report.fix_set.seconds_before
    text = str(report)
    assert f"{time_text(known)} → {time_text(after)} a call" in text
    assert f"run time: {time_text(known)} a call (median of warm calls in a loop" in text
    assert f"Compiled, it takes {time_text(known)}" in text
    assert f"under torch.profiler ({time_text(report.profile.profiled_seconds or 0)} a call)" in text
