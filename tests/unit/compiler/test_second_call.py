"""`second_call`: graph breaks that only a first call has."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import torch

import dynascope
from dynascope.compiler.driver import Run, explain
from dynascope.compiler.lab.fix.trial import TrialResult
from dynascope.compiler.report import Report
from dynascope.compiler.validate import settings_from_keywords


class Cached(torch.nn.Module):
    """Fills a cache in its first call, and sets a flag."""

    table: torch.Tensor | None = None
    ready = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.table is None or not self.ready:
            torch._dynamo.graph_break()
            self.table, self.ready = torch.arange(3.0), True
        x = x + self.table
        torch._dynamo.graph_break()
        return x * 2


def first_only(report: dynascope.Report) -> list[bool | None]:
    return [b.first_call_only for b in report.breaks]


def test_a_break_that_the_second_call_does_not_meet() -> None:
    model, x = Cached(), torch.ones(3)
    report = dynascope.explain(model, backend="eager", second_call=True)(x)
    assert first_only(report) == [True, False]
    assert "second call: 1 of 2 graph breaks gone when the calls are traced again" in report.notes
    assert "gone when the calls are traced again" in report.details()
    # the user's objects are as one call leaves them
    assert model.table is not None
    assert torch.equal(x, torch.ones(3))
    assert report.summary.graphs == dynascope.explain(Cached(), backend="eager")(x).summary.graphs
    assert first_only(dynascope.explain(Cached(), backend="eager", fix=True, fix_seconds=60)(x)) == [True, False]
    allowed = dynascope.region(error_on_graph_break=False)(Cached().forward)  # what is expected may come back or not
    report = dynascope.explain(allowed, backend="eager", second_call=True)(x)
    assert set(first_only(report)) == {None}
    assert "second call: not compared: regions allow all graph breaks" in report.notes
    again = dynascope.explain(model, backend="eager", second_call=True, fix=True)(x)
    assert first_only(again) == [False], "this one runs into it with the cache filled, too"
    assert "second call: it has the same graph breaks" in again.notes


@pytest.mark.parametrize(("disable", "stance"), [(False, "eager_on_recompile"), (True, "default")])
def test_no_break_is_gone_because_compiling_is_switched_off_after_the_call(disable: bool, stance: str) -> None:
    run = Run(settings_from_keywords({"backend": "eager", "second_call": True, "profile": 1}))
    with torch.compiler.set_stance("default"), torch._dynamo.config.patch(disable=False), run:
        run.entry_point(Cached())(torch.ones(3))
        torch.compiler.set_stance(stance)
        torch._dynamo.config.disable = disable
        run.repeat_last_call([torch.ones(3)])
    assert first_only(run.report) == [True, False]
    assert run.report.inputs is None, "those of which nothing would be compiled"


def test_a_break_in_training_is_none_of_the_first_call_where_the_model_is_left_in_eval_mode() -> None:
    class Logged(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.training:
                torch._dynamo.graph_break()
            return x + 1

    model = Logged()
    evaluate = torch.compiler.disable(model.eval)
    report = dynascope.explain(lambda x: (model(x), evaluate())[0], backend="eager", second_call=True)(torch.ones(3))
    assert first_only(report) == [False, False]
    assert not model.training


def test_a_call_whose_hook_is_removed_is_not_repeated() -> None:
    model = torch.nn.Linear(3, 3)
    remove = torch.compiler.disable(model.register_forward_hook(lambda *_: torch._dynamo.graph_break()).remove)
    report = dynascope.explain(lambda x: (model(x), remove())[0], backend="eager", second_call=True, check=True)(torch.ones(3))
    assert set(first_only(report)) == {None}
    assert "check: nothing was compared: hooks of its modules have been removed since." in report.notes
    assert "second call: not traced: hooks of its modules have been removed since" in report.notes


def test_a_stream_whose_output_is_held_back_has_the_same_graph_breaks() -> None:
    report = dynascope.explain(lambda x: (sys.stdout.write("step"), x)[1], backend="eager", second_call=True)(torch.ones(3))
    assert report.breaks[0].outcome == "resumed"
    assert report.notes == ["second call: it has the same graph breaks"]


def test_a_break_that_only_the_second_call_meets_is_noted() -> None:
    seen: list[int] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        if seen:
            torch._dynamo.graph_break()
        seen.append(1)
        return x + 1

    report = dynascope.explain(f, backend="eager", second_call=True)(torch.ones(3))
    notes = [note for note in report.notes if note.startswith("second call")]
    at = f"test_second_call.py:{f.__code__.co_firstlineno + 3}"
    after = "the calls are traced again, without the backend, from the state that they left"
    assert notes == [f"second call: 1 graph break where the recorded calls had none, at {at}: {after}"]
    report = dynascope.explain(torch.nn.Linear(3, 3), backend="eager", second_call=True)(torch.ones(3))
    assert report.notes == ["second call: not traced: the report has no graph breaks"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Dynamo resumes in this loop there: none comes in its place")
def test_a_break_in_whose_place_another_one_comes_is_not_gone() -> None:
    seen: list[int] = []

    def note() -> None:
        if not seen:
            torch._dynamo.graph_break()
            seen.append(1)

    def f(x: torch.Tensor, before: bool) -> torch.Tensor:
        _ = note() if before else None
        for _ in range(2):
            note()
            if x.sum() > 100:
                break
        return x

    for before, how in ((False, "second_call"), (True, "second_call"), (True, "fix")):
        seen.clear()
        report = dynascope.explain(f, backend="eager", fix_seconds=1, **{how: True})(torch.ones(3), before)
        assert first_only(report)[0] is None
        assert "eager mode before" not in str(report)
        assert ("unknown which graph breaks come back" in str(report.notes)) == (before and how == "second_call")


def test_what_torch_has_of_its_own_is_traced_again_where_it_was_skipped() -> None:
    average = torch.optim.swa_utils.AveragedModel(model := torch.nn.Linear(2, 2))
    report = dynascope.explain(lambda: average.update_parameters(model), backend="eager", second_call=True)()
    assert first_only(report) == [False, False]


def test_an_interrupt_ends_the_second_call_and_leaves_the_report() -> None:
    def once(x: torch.Tensor, done: set[str] = set()) -> torch.Tensor:  # noqa: B006
        torch._dynamo.graph_break()
        if done:
            raise KeyboardInterrupt
        done.add("x")
        return x + 1

    report = dynascope.explain(once, backend="eager", second_call=True)(torch.ones(3))
    assert report.notes[-1] == "second call: interrupted: not every hint of the compiler was tried"
    assert dynascope.last() is report
    assert (report.compiled, report.summary.breaks, report.trials) == (["once"], 1, None)


SCALARS = "torch._dynamo.config.capture_scalar_outputs"
TRAINING = "torch._dynamo.config.trace_autograd_ops"
SHAPES = "torch._dynamo.config.capture_dynamic_output_shape_ops"


def test_each_setting_that_the_hints_name_is_tried_with_those_that_helped() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x * x.sum().item()
        y = y + x.max().item()
        rows = torch.nonzero(y)
        print("here")
        return y, rows + 1

    stages: list[str] = []
    report = explain(f, backend="eager", second_call=True, on_progress=lambda s: stages.append(s["stage"]))(torch.ones(3))
    first, scalars, both = report.trials or []
    assert (first.settings, first.breaks, first.removes) == ({}, 4, [])
    assert (scalars.settings, scalars.breaks, scalars.removes) == ({SCALARS: True}, 2, ["b0", "b1"])
    assert (both.settings, both.breaks, both.removes) == ({SCALARS: True, SHAPES: True}, 1, ["b0", "b1", "b2"])
    assert [trial.harm for trial in report.trials or []] == [None] * 3
    assert [stage for stage in stages if stage][-2:] == [
        "tracing the calls again with capture_scalar_outputs (1 of 2)",
        "tracing the calls again with capture_dynamic_output_shape_ops (2 of 2)",
    ]
    assert not torch._dynamo.config.capture_scalar_outputs


def test_a_profile_traces_again_only_where_breaks_are_expensive(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(x: torch.Tensor) -> torch.Tensor:
        for _ in range(100):
            x = x.sin()
        torch._dynamo.graph_break()
        return x

    def quick(x: torch.Tensor) -> torch.Tensor:
        x = x * x.sum().item()  # on two lines: Python 3.10 knows no columns
        return x * x.max().item()

    assert dynascope.explain(slow, backend="eager", profile=3)(torch.ones(30_000)).trials is None

    explained = explain(quick, backend="eager", profile=3)
    assert [trial.breaks for trial in explained(torch.ones(3)).trials or []] == [2, 0]
    monkeypatch.setattr("dynascope.compiler.lab.second_call._UNASKED", (0.0, 0.0))
    assert "second call" not in str(explained(torch.ones(3)).notes), "nobody has asked for one"


class Metric:
    total = correct = 0

    def update(self, x: torch.Tensor) -> None:
        self.correct += (x > 0).sum().item()
        self.total += x.numel()


METRIC = Metric()  # the compiler makes a symbol of what it changes only where it is an argument, as after a break in `update`


def test_a_setting_with_which_calls_fail_do_other_things_or_always_compile_is_no_help() -> None:
    model = torch.nn.Linear(2, 1)

    def undecided(x: torch.Tensor) -> object:
        return (x > 0).nonzero().tolist()

    def indexed(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[0, i] for i in x[0].long().tolist()])

    def trained(x: torch.Tensor) -> torch.Tensor:
        model.zero_grad()
        loss = model(x).sum()
        torch._dynamo.graph_break()
        loss.backward()
        return loss.detach()

    def counted(x: torch.Tensor) -> torch.Tensor:
        METRIC.update(x)
        return x + 1

    for f, name, harm in (
        (undecided, SHAPES, "it ends in an error: Could not guard on data-dependent expression"),
        (indexed, SCALARS, "it ends in an error: only integers, slices"),
        (trained, TRAINING, "the call then does something else (gradients differ: no gradient left in model.weight)"),
        (counted, SCALARS, "the fourth of four equal repeated calls compiles counted"),
    ):
        trials = dynascope.explain(f, backend="eager", second_call=True)(torch.ones(3, 2)).trials or []
        trial = next(trial for trial in trials if name in trial.settings)
        assert str(trial.harm).startswith(harm)
        assert (trial.breaks is None) == harm.startswith("it ends in an error: ")
    twice = TrialResult(Report(), compiled_again=["f", "f"])
    found = twice.compiles_more_than(replace(twice, compiled_again=["f"]))
    assert str(found).endswith("compiles f (2 times over all calls); without it, only f")
