"""The text of a report: why code runs eagerly, what made a break an error, what ended a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import dynascope


def loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        print(end="")
    return x + 1


def trying(x: torch.Tensor) -> torch.Tensor:
    try:  # noqa: SIM105
        torch._dynamo.graph_break()
    except ValueError:
        pass
    return x + 1


def region(x: torch.Tensor) -> torch.Tensor:
    with torch._dynamo.error_on_graph_break(True):
        torch._dynamo.graph_break()
    return x


@torch.compiler.disable
def fails(x: torch.Tensor) -> torch.Tensor:
    raise OSError("disk")


def calls(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    y = fails(x)
    return y + 1


def text(f: Callable[..., Any], **settings: Any) -> str:
    """The report as text, on one line; an error of the user's own is expected."""
    try:
        report = dynascope.explain(f, backend="eager", **settings)(torch.ones(3))
    except OSError:
        latest = dynascope.last()
        assert latest is not None
        report = latest
    return " ".join(str(report).split())


def test_why_a_function_is_skipped() -> None:
    words = text(loop)
    assert "because of the break at test_text_says.py" in words
    assert "loop" in words.partition("because of the break at ")[2]
    assert "which cannot be resumed (as in a loop, a `with` or a `try`)" in text(trying)


def test_what_made_a_break_an_error() -> None:
    assert "(stopped here, because of fullgraph=True)" in text(trying, fullgraph=True)
    assert "(stopped here, because of error_on_graph_break=True of this run)" in text(trying, error_on_graph_break=True)
    line = region.__code__.co_firstlineno + 1
    assert f"(stopped here, because of error_on_graph_break=True of region test_text_says.py:{line})" in text(region)


def test_an_error_that_ended_the_call_at_a_break() -> None:
    words = text(calls)
    assert "(not resumed: OSError ended the call here)" in words
    assert "(resumed)" not in words


@pytest.mark.parametrize("when", ["around", "inside"])
def test_why_nothing_was_compiled(when: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        with torch.compiler.set_stance("force_eager"):
            return torch.compile(loop, backend="eager")(x)

    if when == "around":
        with torch.compiler.set_stance("force_eager"):
            words = text(loop)
    else:
        with dynascope.observe() as recording:
            program(torch.ones(3))
        words = " ".join(str(recording.report).split())
    assert 'note: the code ran eagerly, because torch.compiler.set_stance("force_eager") is in force' in words


def test_the_switch_of_dynamo() -> None:
    with torch._dynamo.config.patch(disable=True):
        assert "note: the code ran eagerly, because Dynamo is switched off" in text(loop)
