"""Errors: the user's, the compiler's, and suppressed ones."""

from __future__ import annotations

import asyncio
import contextlib
import dis
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.utils.checkpoint

from dynascope.compiler.recording.recording import observe
from dynascope.compiler.report import Report


@pytest.fixture(autouse=True)
def _new_dynamo() -> None:
    torch._dynamo.reset()


def seen(call: Callable[[], Any]) -> Report:
    with observe() as recording:
        call()
    return recording.report


def breaking(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def test_an_error_that_dynamo_lets_through_is_the_compilers() -> None:
    async def f(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        await asyncio.sleep(0)
        return x * 2

    raised = None
    with observe() as recording:
        try:
            asyncio.run(torch.compile(f, backend="eager")(torch.ones(2)))
        except AssertionError as error:  # torch's own, in 2.13
            raised = error
    report = recording.report
    assert (report.error is None) == (raised is None)
    if "RETURN_GENERATOR" not in dis.opmap:  # before Python 3.11, making a coroutine runs no frame that Dynamo could see
        assert (raised, report.frames) == (None, [])
        return
    # from Python 3.13 on, Dynamo skips the coroutine
    assert report.frames[0].status in (("failed",) if raised else ("compiled", "skipped"))
    if report.error is not None:
        assert (report.error.origin, report.error.frame) == ("compiler", report.frames[0].id)


def test_an_error_of_the_users_own_is_told_and_propagates() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x @ torch.ones(9)

    with observe() as recording, pytest.raises(RuntimeError):
        torch.compile(f, backend="eager")(torch.ones(2))
    assert recording.report.error is not None
    assert recording.report.error.caught


def test_suppressed_errors_are_told() -> None:
    def broken(module: torch.fx.GraphModule, inputs: Any) -> Any:
        raise ZeroDivisionError("no such target")

    with torch._dynamo.config.patch(suppress_errors=True):
        report = seen(lambda: torch.compile(breaking, backend=broken)(torch.ones(2)))
    assert {f.status for f in report.frames if f.status != "ignored"} == {"skipped"}
    assert "no such target" in (report.frames[0].reason or "")
    assert "breaking was not compiled, and ran eagerly" in report.notes[0]


def test_an_error_whose_message_cannot_be_made_reaches_the_program() -> None:
    class Bad(Exception):
        def __str__(self) -> str:
            raise AttributeError("no such field")

    with pytest.raises(Bad), observe() as recording:
        raise Bad
    assert recording.report.error is not None
    assert (recording.report.error.type, recording.report.error.message) == ("Bad", "(its message cannot be shown)")


def test_an_error_that_was_caught_before_an_interrupt_is_not_what_ended_the_run() -> None:
    @torch.compile(fullgraph=True, backend="eager")
    def refused(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    def block() -> None:
        with contextlib.suppress(Exception):
            refused(torch.ones(2))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), observe() as recording:
        block()
    assert recording.report.error is not None
    assert recording.report.error.caught
