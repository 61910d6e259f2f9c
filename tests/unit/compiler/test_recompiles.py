"""Recompiles: their reasons, their limit, and what is none."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from observed import seen

from dynascope.compiler.capture.recording import observe
from dynascope.compiler.report import StackEntry
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.recompiles import failures, recompile_words


def test_the_recompile_limit_is_told_and_counts_no_recompile() -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = by

    def f(x: torch.Tensor, scale: Scale) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x * scale.by

    def call() -> None:
        compiled = torch.compile(f, backend="eager", dynamic=False)
        for i in range(5):
            compiled(torch.ones(2), Scale(i + 0.5))

    with torch._dynamo.config.patch(recompile_limit=3):
        report = seen(call)
    assert (report.summary.graphs, report.summary.recompiles, report.summary.skipped) == (3, 2, 1)
    assert report.summary.resumes == 1
    assert "recompile limit" in (report.frames[-1].reason or "").lower().replace("_", " ")
    assert recompile_words(report.recompiles[0]) == ["scale.by was 0.5 when it was compiled, and is 1.5 now"]


@pytest.mark.parametrize("limit", ["recompile_limit", "accumulated_recompile_limit"])
@pytest.mark.parametrize("config", [{}, {"fail_on_recompile_limit_hit": True}])
def test_what_the_recompile_limit_refuses_is_no_recompile(config: dict[str, bool], limit: str) -> None:
    with torch._dynamo.config.patch(**config, **{limit: 2}), observe() as recording, contextlib.suppress(Exception):
        compiled = torch.compile(lambda x: x * 2, backend="eager", dynamic=False, fullgraph=bool(not config))
        for n in range(2, 6):
            compiled(torch.ones(n))
    report = recording.report
    assert (report.summary.graphs, report.summary.recompiles, report.summary.failed) == (2, 1, 1)
    assert report.frames[-1].recompile_of is None
    assert [r.limit for r in report.recompiles] == [2, 2], "the smaller limit"


def test_a_value_that_waits_for_a_call_at_the_break_has_the_name_by_which_the_frame_has_it() -> None:
    def scaled(x: torch.Tensor, sizes: list[int], _: Any) -> torch.Tensor:
        return x * len(sizes)

    compiled = torch.compile(lambda x, sizes: scaled(x, sizes, torch._dynamo.graph_break()), backend="eager")
    report = seen(lambda: [compiled(torch.ones(2), [1] * n) for n in (1, 2)])
    assert recompile_words(report.recompiles[-1]) == ["sizes had length 1 when it was compiled, and has 2 now"]


def test_a_changed_global_and_a_new_type_are_reasons_in_words() -> None:
    space: dict[str, Any] = {"torch": torch, "factor": 2}
    exec("def f(x):\n    return x * factor\n", space)
    compiled = torch.compile(space["f"], backend="eager", dynamic=False)

    def call() -> None:
        compiled(torch.ones(2))
        space["factor"] = 3
        compiled(torch.ones(2))
        compiled(torch.ones(2, dtype=torch.float64))

    words = [recompile_words(r) for r in seen(call).recompiles]
    assert words[0] == ["factor was 2 when it was compiled, and is 3 now"]
    # 2.9 and 2.11 name the argument by its number
    assert {f"{name} had another dtype: Float before, Double now" for name in ("x", "args[0]")} & {*words[1]}


def test_a_value_has_not_what_another_of_its_name_has() -> None:
    one, two = spaces = [{"n": 3}, {"n": 5}]
    for space in spaces:
        exec("def scaled(x):\n    return x * n\n", space)
    for f in (lambda x, n: one["scaled"](x) * n, lambda x, _: one["scaled"](two["scaled"](x))):
        one["n"], compiled = 3, torch.compile(f, backend="eager", dynamic=False)
        (again,) = seen(lambda: (compiled(torch.ones(2), 7), one.update(n=4), compiled(torch.ones(2), 7))).recompiles  # noqa: B023
        assert recompile_words(again) == ["n was 3 when it was compiled, and is not now"]


def test_a_guard_on_a_module_of_torchs_own_names_the_module_not_torchs_wrapper() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.1))
    compiled = torch.compile(model, backend="eager")
    report = seen(lambda: (compiled(torch.ones(2)), model.eval(), compiled(torch.ones(2))))
    assert recompile_words(*report.recompiles) == ["Sequential.1.training was True when it was compiled, and is False now"]


def test_a_value_of_another_length_or_class_is_told_in_one_sentence_whatever_guards_failed() -> None:
    def f(x: torch.Tensor, y: Any) -> torch.Tensor:
        if not isinstance(y, (dict, list)):
            return x if y is None else y(x) if callable(y) else x + y.shape[0]
        for item in y.values() if isinstance(y, dict) else y:
            x = x + item
        return x + len(y)

    x = torch.ones(2)
    for values, before, now in (
        (({"a": x}, {"a": x, "b": x}), "had length 1", "has 2"),
        (([x], [x, x]), "had length 1", "has 2"),
        (([x], []), "had length 1", "has 0"),
        ((x, torch.ones(3), None), "was torch.Tensor", "is NoneType"),
        ((torch.nn.functional.relu, torch.tanh), "was function", "is builtin_function_or_method"),
        ((functools.partial(torch.add, alpha=1, other=1), lambda x, by=2: x * by), "was functools.partial", "is function"),
    ):
        torch._dynamo.reset()
        report = seen(lambda: [torch.compile(f, backend="eager")(x, y) for y in values])  # noqa: B023
        (told,) = failures(report.recompiles[-1], Places(report))
        assert told.partition(" \N{RIGHTWARDS ARROW} ")[0] == f"y {before} when it was compiled, and {now} now"
    guard = report.recompiles[-1].failed_guards[0]
    guard.source, guard.at = "a long name" * 20, StackEntry(file=__file__, line=1, function="f")
    assert " \N{RIGHTWARDS ARROW} test_recompiles.py:1" in failures(*report.recompiles, Places(report))[0][:160]


class _Base(torch.nn.Module):
    number = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.number


class _First(_Base):
    number = 1


class _Second(_Base):
    number = 2


def _one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def _two(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        ([torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.sin], ["Linear", "ReLU", "sin"]),
        ([torch._dynamo.error_on_graph_break(False)(f) for f in (_one, _two)], ["_one", "_two"]),
        ([_First(), _Second()], ["_First", "_Second"]),
    ],
    ids=["torch's wrapper of modules", "decorated functions", "an inherited forward"],
)
def test_functions_that_share_code_keep_their_names(targets: list[Any], names: list[str]) -> None:
    """torch recompiles the shared code, and counts it; what is compiled is another function."""
    report = seen(lambda: [torch.compile(target, backend="eager")(torch.ones(3)) for target in targets])
    assert [f.name for f in report.frames] == names
    assert [report.frame(r.frame).name for r in report.recompiles] == names[1:]
    assert str(report).splitlines()[0].startswith(", ".join(names))
    assert "fn" not in {guard.source for recompile in report.recompiles for guard in recompile.failed_guards}


def test_the_arguments_of_a_decorated_function_are_not_named_by_the_decorator() -> None:
    @torch.no_grad()
    def scale(x: torch.Tensor, by: float, plus: int = 0) -> torch.Tensor:
        return x * by + plus

    with observe() as recording:
        compiled = torch.compile(scale, backend="eager")
        for by, plus in ((1.0, 0), (2.0, 0), (2.0, 5)):
            compiled(torch.ones(3), by, plus=plus)
    told = " ".join(" ".join(recompile_words(r)) for r in recording.report.recompiles)
    assert "argument 2 was 1.0 when it was compiled" in told
    assert "plus was 0 when it was compiled" in told
    assert "args[" not in told
