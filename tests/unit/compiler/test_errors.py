"""Errors: the user's, the compiler's, and suppressed ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
import torch.utils.checkpoint
from observed import broken as breaking
from observed import seen

from dynascope.compiler.capture.recording import observe
from dynascope.compiler.driver import explain, last
from dynascope.widgets.features.breaks import reasons


def test_an_error_of_the_users_own_is_told_and_propagates() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x @ torch.ones(9)

    with observe() as recording, pytest.raises(RuntimeError):
        torch.compile(f, backend="eager")(torch.ones(2))
    assert recording.report.error.caught


def test_two_calls_of_backward_through_one_graph_are_explained() -> None:
    def step(z: torch.Tensor) -> None:
        fake = z * 2
        (fake.detach() * z).sum().backward()
        fake.sin().sum().backward()

    with pytest.raises(RuntimeError, match="a second time"):
        explain(step, backend="aot_eager")(torch.ones(3, requires_grad=True))
    assert last().notes[-1].endswith(" or compile anew and pass retain_graph=True to the first.")


def test_suppressed_errors_are_told() -> None:
    def broken(module: torch.fx.GraphModule, inputs: Any) -> Any:
        if any(x.dtype == torch.float32 for x in inputs if isinstance(x, torch.Tensor)):
            raise ZeroDivisionError("no such target")
        return module.forward

    with torch._dynamo.config.patch(suppress_errors=True):
        f = torch.compile(lambda x: x + 1, backend=broken)
        again = seen(lambda: [f(x) for x in (torch.tensor(1), torch.ones(1))])
        assert "a compile of <lambda> failed, and it ran eagerly" in again.notes[0]
        report = seen(lambda: torch.compile(breaking, backend=broken)(torch.ones(2)))
        backend = Mock(side_effect=[ZeroDivisionError, lambda *args: (torch.ones(2),)])  # the wrapper's graph fails
        wrapped = seen(lambda: torch.compile(torch.no_grad()(lambda x: x + 1), backend=backend)(torch.ones(2)))
        torch._dynamo.reset()  # all wrappers share their code
        layer = seen(lambda: torch.compile(torch.nn.Linear(2, 2), backend=broken)(torch.ones(2)))
    assert {f.status for f in report.frames if f.status != "ignored"} == {"skipped"}
    assert "no such target" in (report.frames[0].reason or "")
    assert "broken failed, and it ran eagerly; without" in report.notes[0]
    assert wrapped.notes[0].startswith("a compile of torch's wrapper around <lambda> failed, and it ran")
    assert layer.notes[0].startswith("a compile of Linear failed, and it ran eagerly"), "nor what torch's wrapper calls"
    torch._dynamo.mark_dynamic(marked := torch.ones(2), 0)
    marked_report = explain(lambda x: x + torch.ones(2), backend="eager")(marked)
    assert marked_report.graphs == []  # torch has thrown it away
    assert "to be a constant (2). " in " ".join(str(marked_report).rpartition("– skipped frame")[2].split())
    assert f"raises at test_errors.py:{line_of('(marked)')}" in marked_report.notes[0]
    report = explain(lambda x: torch.as_tensor([breaking(x).numpy().sum()]), backend="eager")(torch.ones(1))
    line = line_of("(torch.ones(1))")
    note = f"a compile of the rest of <lambda>, from line {line} on, failed, and it ran eagerly; without suppress_errors,"
    assert f"{note} torch.compile raises at test_errors.py:{line}: RuntimeError when making fake tensor call" in report.notes[0]


def test_an_error_whose_message_cannot_be_made_reaches_the_program() -> None:
    class Bad(Exception):
        def __str__(self) -> str:
            raise AttributeError("no such field")

    with pytest.raises(Bad), observe() as recording:
        raise Bad
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
    assert recording.report.error.caught


def causal(q: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=q.shape[1] > 1)


def raising(x: torch.Tensor) -> torch.Tensor:
    if x.ndim == 3:
        raise ValueError("three dimensions")
    return x + 1


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize(
    ("function", "error"),
    [
        (causal, "TypeError: scaled_dot_product_attention(): argument 'is_causal' must be bool, not SymBool"),
        (lambda x: x @ torch.ones(3), "RuntimeError: size mismatch, got input (8x8), vec (3)"),
        (raising, "ValueError: three dimensions"),
        (lambda x: {"a": x}["k"] + x, "KeyError: 'k'"),
        (breaking, ""),
    ],
    ids=["causal", "matmul", "raise", "key", "none"],
)
def test_the_error_in_tracing_that_caused_a_break_comes_first(
    function: Callable[..., Any], error: str, fullgraph: bool
) -> None:
    with observe() as recording, contextlib.suppress(Exception):
        torch.compile(function, backend="eager", dynamic=function is causal, fullgraph=fullgraph)(torch.ones(2, 4, 8))
    report = recording.report
    assert report.breaks[0].error == error
    if error:
        assert reasons(report.breaks[0])[0] == error
        assert error.partition(": ")[2] in " ".join(str(report).split())


def trying(a: torch.Tensor) -> torch.Tensor:
    b = a + 1
    try:
        return torch.linalg.cholesky(b - 1)  # FAILS
    except Exception:
        return a


def calls_trying(a: torch.Tensor) -> torch.Tensor:
    return trying(a * 1) + 1


LINES = Path(__file__).read_text().splitlines()


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(LINES, 1) if line.endswith(text))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("function", [trying, calls_trying], ids=lambda f: f.__name__)
def test_an_error_of_a_running_graph_has_the_line_of_its_operation(function: Callable[..., Any], backend: str) -> None:
    """`try` catches nothing there: torch runs the graph where the compiled function begins."""
    with pytest.raises(torch.linalg.LinAlgError), observe() as recording:
        torch.compile(function, backend=backend)(-torch.eye(3))
    error, at = recording.report.error, line_of("# FAILS")
    assert (error.file, error.line, error.in_graph, error.calls[-1].function) == (__file__, at, True, "trying")
    [note] = [note for note in recording.report.notes if "`try`" in note]
    assert note.startswith(f"the `try` at test_errors.py:{at - 1} does not catch errors of its operations in a graph: compiled")


def decomposed(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.cholesky(x)


def of_another_error(x: torch.Tensor) -> torch.Tensor:
    try:
        return torch.linalg.cholesky(x)
    except IndexError:
        return x


try:

    def defined(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.cholesky(x)

    given = lambda x: torch.linalg.cholesky(x)  # noqa: E731
except RuntimeError:
    pass


def called_later(x: torch.Tensor) -> torch.Tensor:
    try:
        made = [lambda v: torch.linalg.cholesky(v), *(torch.linalg.cholesky(v) for v in ())]
    except RuntimeError:
        made = []
    return made[0](x)


@pytest.mark.parametrize("function", [decomposed, of_another_error, defined, given, called_later])
def test_a_try_that_would_not_catch_the_error_in_eager_code_either_is_not_said_to_miss_it(function: Callable[..., Any]) -> None:
    with contextlib.suppress(RuntimeError), observe() as recording:
        try:
            torch.compile(function, backend="eager")(-torch.eye(3))
        except ValueError as error:
            raise AssertionError from error
    assert recording.report.error is not None
    missed = [note for note in recording.report.notes if "`try`" in note]
    assert all("does not catch errors of its operations" in note for note in missed)
    assert len(missed) == (function is of_another_error)


def test_a_try_around_operations_of_a_graph_is_noted_before_it_is_missed() -> None:
    def imports(x: torch.Tensor) -> torch.Tensor:
        try:
            import math

            return x * math.pi
        except ImportError:
            return x

    def ends(x: torch.Tensor) -> torch.Tensor:
        try:
            x = x + 1
        finally:
            x = x * 2
        return x

    def index(x: torch.Tensor) -> torch.Tensor:
        try:
            return x[x.long()]
        except (KeyError, IndexError):
            return x

    for function, noted in ((imports, False), (ends, False), (breaking, False), (index, True), (trying, True)):
        report = seen(lambda function=function: torch.compile(function, backend="eager")(torch.eye(2)))  # type: ignore[misc]
        assert any("does not catch errors of its operations in a graph" in n for n in report.notes) is noted
        assert report.error is None
