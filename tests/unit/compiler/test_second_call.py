"""`second_call`: graph breaks that only a first call has."""

from __future__ import annotations

import pytest
import torch

import dynascope


class Cached(torch.nn.Module):
    """Fills a cache in its first call."""

    table: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.table is None:
            torch._dynamo.graph_break()
            self.table = torch.arange(3.0)
        x = x + self.table
        torch._dynamo.graph_break()
        return x * 2


def first_only(report: dynascope.Report) -> list[bool | None]:
    return [b.first_call_only for b in report.breaks]


def test_a_break_that_the_second_call_does_not_meet() -> None:
    model, x = Cached(), torch.ones(3)
    report = dynascope.explain(model, backend="eager", second_call=True)(x)
    assert first_only(report) == [True, False]
    assert "second call: 1 of 2 graph breaks occurs only in the first call" in report.notes
    assert "only in the first call" in report.details()
    # the user's objects are as one call leaves them
    assert model.table is not None
    assert torch.equal(x, torch.ones(3))
    assert report.summary.graphs == dynascope.explain(Cached(), backend="eager")(x).summary.graphs
    again = dynascope.explain(model, backend="eager", second_call=True)(x)
    assert first_only(again) == [False], "this one runs into it with the cache filled, too"
    assert "second call: it has the same graph breaks" in again.notes


def test_a_break_that_only_the_second_call_meets_is_noted() -> None:
    seen: list[int] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        if seen:
            torch._dynamo.graph_break()
        seen.append(1)
        return x + 1

    report = dynascope.explain(f, backend="eager", second_call=True)(torch.ones(3))
    assert [note for note in report.notes if note.startswith("second call")] == [
        "second call: 1 graph break at places where the first call had none"
    ]


def test_not_asked_for_is_unknown() -> None:
    report = dynascope.explain(Cached(), backend="eager")(torch.ones(3))
    assert first_only(report) == [None, None]
    assert not any(note.startswith("second call") for note in report.notes)


def test_looking_for_fixes_traces_the_calls_again() -> None:
    def f(x: torch.Tensor, seen: set[str] = set()) -> torch.Tensor:  # noqa: B006
        if not seen:
            torch._dynamo.graph_break()
            seen.add("x")
        y = x * 2
        torch._dynamo.graph_break()
        return y + 1

    report = dynascope.explain(f, backend="eager", fix=True, fix_seconds=60)(torch.ones(3))
    assert first_only(report) == [True, False]


def test_a_call_that_cannot_be_repeated_says_nothing() -> None:
    def draw(x: torch.Tensor, numbers: object) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + next(numbers)  # type: ignore[call-overload, no-any-return]

    report = dynascope.explain(draw, backend="eager", second_call=True)(torch.ones(3), (n for n in range(3)))
    assert set(first_only(report)) == {None}
    assert any(note.startswith("second call: not traced: it can reach a generator") for note in report.notes)


def test_a_call_that_raises_when_it_is_repeated_says_nothing() -> None:
    def once(x: torch.Tensor, done: set[str] = set()) -> torch.Tensor:  # noqa: B006
        torch._dynamo.graph_break()
        if done:
            raise RuntimeError("twice")
        done.add("x")
        return x + 1

    report = dynascope.explain(once, backend="eager", second_call=True)(torch.ones(3))
    assert first_only(report) == [None]
    assert any("raised RuntimeError: twice" in note for note in report.notes)


def test_the_report_of_a_run_is_remembered_if_its_second_call_is_interrupted() -> None:
    def once(x: torch.Tensor, done: set[str] = set()) -> torch.Tensor:  # noqa: B006
        torch._dynamo.graph_break()
        if done:
            raise KeyboardInterrupt
        done.add("x")
        return x + 1

    with pytest.raises(KeyboardInterrupt):
        dynascope.explain(once, backend="eager", second_call=True)(torch.ones(3))
    assert dynascope.last().compiled == ["once"]
    assert dynascope.last().summary.breaks == 1
