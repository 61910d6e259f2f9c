"""A list of inputs: which one needs another compile is what Dynamo's own records say."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from dynascope.compiler.driver import explain
from dynascope.compiler.lab.inputs import arguments_of, described, try_inputs
from dynascope.compiler.lab.profile import INTERRUPTED
from dynascope.compiler.lab.recorded_call import RecordedCall
from dynascope.compiler.report import InputRun, Profile, Report
from dynascope.widgets.features.recompiles import guard_words
from dynascope.widgets.features.run_time import input_words, inputs_summary


def scaled(x: torch.Tensor, scale: int = 1) -> torch.Tensor:
    x.mul_(2)
    return (x @ x.mT) * scale


def given(*inputs: Any, **settings: Any) -> Report:
    return explain(scaled, backend="eager", profile=1, inputs=list(inputs), **settings)(torch.ones(2, 3))


def test_each_input_tells_whether_it_recompiles_and_why() -> None:
    sizes = [torch.ones(2, 3), torch.ones(4, 3), torch.ones(5, 3)]
    report = given(*sizes, (torch.ones(5, 3), 7), {"x": torch.ones(5, 3).double()})
    assert [r.outcome for r in report.inputs] == ["reused", "recompiled", "reused", "recompiled", "recompiled"]
    # the second size makes Dynamo trace with dynamic ones, which then hold for the third
    assert [r.graphs for r in report.inputs] == [["g0"], ["g1"], ["g1"], ["g2"], ["g3"]]
    assert [r.frames for r in report.inputs] == [[], ["f1"], [], ["f2"], ["f3"]]
    assert [guard_words(g) for g in report.inputs[1].failed_guards] == ["x had another size in dimension 0: 2 before, 4 now"]
    assert report.inputs[4].failed_guards[0].kind == "dtype"
    assert [r.failed_guards for r in report.inputs if r.recompiles] == [r.failed_guards for r in report.recompiles]
    several = given((torch.ones(2, 3), 5), (torch.ones(2, 7, 4), 2.5)).inputs[1]
    both = "x had another number of dimensions: 2 before, 3 now; scale was 1 when it was compiled, and is 2.5 now; "
    assert input_words(several).startswith(f"compiled again 1 time: {both}")
    assert [r.frame for r in report.recompiles] == ["f1", "f2", "f3"]
    assert " · 3 recompiles for --inputs · " in report.headline()
    for run in report.inputs:
        assert run.seconds is not None
        assert run.eager_seconds is not None
        assert (run.compile_seconds > 0) == (run.outcome == "recompiled")
    assert all(x.eq(1).all() for x in sizes)  # undone, as all that the calls do
    assert report.profile is not None, report.notes
    assert (report.summary.graphs, report.summary.recompiles) == (1, 0)  # what a second run without inputs would count
    assert report.profile.verdict.compile_seconds == report.summary.compile_seconds > 0
    assert "recompile 0/1 of scaled (input 2 of --inputs; " in str(report)
    report.expect(graphs=1, recompiles=0)
    assert Report.from_dict(json.loads(json.dumps(report.to_dict()))) == report


def test_an_input_at_the_recompile_limit_runs_eagerly() -> None:
    with torch._dynamo.config.patch(recompile_limit=2):
        report = given(torch.ones(3, 3), torch.ones(4, 3), torch.ones(4, 3), dynamic=False)
    assert [r.outcome for r in report.inputs] == ["recompiled", "eager", "eager"]
    assert input_words(report.inputs[1]).startswith("runs eagerly: ")
    assert "limit reached" not in report.headline()  # the program's own calls did not reach it
    assert "recompile limit" in input_words(report.inputs[1]).replace("_", " ")
    with torch._dynamo.config.patch(recompile_limit=2):  # the rest of a function that keeps its first graph
        report = explain(lambda x, k: (x + 1, print(), x * ord(k))[2], backend="eager", profile=1, inputs=[
            (torch.ones(2), k) for k in "bcda"])(torch.ones(2), "a")  # fmt: skip
    told = [input_words(run).partition("; ")[0] for run in report.inputs]
    assert told[1:] == ["runs partly eagerly: Dynamo recompile limit exceeded"] * 2 + ["needs no compile"]
    assert inputs_summary(report).endswith(", 2 run partly eagerly")

    def loop(x: torch.Tensor) -> torch.Tensor:
        x = (x * 2, torch._dynamo.graph_break())[0]
        for _ in range(2):
            print(end="")
        return x

    def skipped(x: torch.Tensor, times: int) -> torch.Tensor:
        for _ in range(times):
            print(end="")
        return x * 2

    report = explain(loop, backend="eager", profile=1, inputs=[*map(torch.ones, (4, 5, 6))])(torch.ones(4))
    assert [(r.outcome, r.reasons) for r in report.inputs[::2]] == [("reused", ["graph break in loop"])] * 2  # of two versions
    report = explain(skipped, backend="eager", profile=1, inputs=[(torch.ones(4), 2)])(torch.ones(4), 0)
    assert input_words(report.inputs[0]).startswith("runs eagerly: graph break in loop; ")  # though a guard has failed
    report = explain(lambda x, n: x if n else x.sin(), backend="eager", profile=1, inputs=[(x := torch.ones(4), 1)])(x, 0)
    assert input_words(report.inputs[0]).startswith("runs eagerly; "), "a guard has failed, but there is nothing to compile"


def test_graphs_count_that_run_in_another_thread_or_with_globals_of_their_own() -> None:
    gm, x = torch.fx.symbolic_trace(torch.nn.Linear(3, 3)), torch.ones(3)
    compiled = torch.compile(gm, backend="eager")
    with ThreadPoolExecutor(1) as pool, pytest.warns(UserWarning, match="can reach a concurrent"):
        report = explain(lambda x: pool.submit(compiled, x).result(), backend="eager", profile=1, inputs=[x])(x)
    assert report.inputs[0].outcome == "reused"
    assert explain(lambda x: [gm(x) for _ in "a" if print() or 1], backend="eager", profile=1)(x).profile.shares["graphs"] > 0


def test_an_input_that_fails_is_told_and_costs_the_others_nothing() -> None:
    def picky(x: torch.Tensor, scale: Any = 1) -> torch.Tensor:
        if x.shape[0] == 4:
            raise ValueError("four is too many")
        return x * scale

    given = [torch.ones(4), (torch.ones(2), "a"), (), torch.ones(2), torch.ones(3)]
    report = explain(picky, backend="eager", profile=1, inputs=given)(torch.ones(2))
    assert [r.outcome for r in report.inputs] == ["failed", "failed", "failed", "reused", "recompiled"]
    assert input_words(report.inputs[0]) == "not measured: ValueError: four is too many"
    assert input_words(report.inputs[3]).startswith("needs no compile; a call takes")
    assert (report.error, report.breaks) == (None, [])
    assert [f.status for f in report.frames if f.status != "ignored"] == ["compiled", "compiled"]


def test_a_counter_compiles_again_whatever_the_input() -> None:
    def counted(x: torch.Tensor) -> torch.Tensor:
        count[0] += 1
        return x * count[0]

    count = [0]
    report = explain(counted, backend="eager", profile=1, inputs=[torch.ones(2), torch.ones(2)])(torch.ones(2))
    assert inputs_summary(report).endswith("none needs another compile; a repeated call needed one, too: see the notes")


def test_an_interrupt_ends_the_list() -> None:
    def stops(x: torch.Tensor) -> torch.Tensor:
        if len(x) == 5:
            raise KeyboardInterrupt
        return x + 1

    tried = try_inputs(RecordedCall(stops, (), {}), [torch.ones(n) for n in (3, 5, 7)], 1)
    assert [t.run.error for t in tried] == [None, INTERRUPTED]


def test_what_only_inputs_meet_is_not_the_programs_own() -> None:
    def f(x: torch.Tensor, mask: Any = None) -> torch.Tensor:
        if mask is not None and mask.sum() == 0:
            print("empty")
        total = x[x > 0].sum()
        return total + x.nonzero().sum()

    x = torch.ones(3)
    report = explain(f, backend="eager", profile=1, second_call=True, inputs=[torch.ones(4), (x, x), (x, x * 0)])(x)
    # a frame between two breaks has no operations of its own, and is compiled again all the same
    assert (report.summary.breaks, report.summary.recompiles, len(report.breaks)) == (2, 0, 4)
    assert "second call: it has the same graph breaks" in report.notes
    assert str(report).count(", only with --inputs)") == 2
    assert "(resumed, seen from" not in str(report), "from one frame, in the program's own call"
    assert not any("later call" in note for note in explain(lambda x: x, profile=1, inputs=[x, x])(x).notes)
    # the frame of torch's wrapper is not shown, but is compiled again as the others are
    report = explain(torch.no_grad()(f), backend="eager", profile=1, inputs=[torch.ones(3, 2)])(x)
    assert (report.summary.recompiles, report.inputs[0].recompiles) == (0, len(report.recompiles))


def test_inputs_are_tried_in_the_gradient_mode_and_with_the_object_of_the_call() -> None:
    def f(x: torch.Tensor) -> None:
        assert not torch.is_grad_enabled()

    with torch.no_grad():
        call = RecordedCall(f, (1,), {})
    assert [one.run.error for one in try_inputs(call, [1], 1)] == [None]
    net, x = torch.nn.Linear(3, 3), torch.ones(3)
    call = RecordedCall(torch.nn.Linear.forward, (net, x), {})  # of a method, whose object need not be among the inputs
    assert [one.run.error for one in try_inputs(call, [x, (net, x)], 1)] == [None, None]


def test_inputs_are_described_and_never_kept() -> None:
    args, kwargs = arguments_of((torch.ones(2, 3).t(), [torch.zeros(1, dtype=torch.int32), 2], "a"))
    assert described(args, kwargs) == "float32[3, 2] strides [1, 3], [int32[1], 2], 'a'"
    assert arguments_of({"x": 1}) == ((), {"x": 1})
    assert arguments_of({1: 2}) == (({1: 2},), {})
    assert len(described(tuple(range(200)), {})) <= 160


def test_unlike_inputs_look_unlike() -> None:
    x = torch.ones(3)
    unlike = [
        [1] * 9, [1] * 10, "a" * 50, "a" * 51, {"a": x}, {"b": x}, x, x.clone().requires_grad_(), torch.nn.Parameter(x, False),
        np.ones(3), np.ones(4), [[[1]]], [[[1, 2]]],
    ]  # fmt: skip
    texts = [described((value,), {}) for value in unlike]
    assert len(set(texts)) == len(texts)
    assert texts[0] == "list of 9"


def test_wrong_inputs_are_refused_before_anything_runs() -> None:
    for wrong, words in (([], "empty"), ("xs", "expected a list of inputs, not str"), (iter([1]), "not list_iterator")):
        with pytest.raises(ValueError, match=words):
            explain(scaled, profile=1, inputs=wrong)
    with pytest.raises(ValueError, match="inputs requires profile"):
        explain(scaled, inputs=[torch.ones(2, 3)])


def test_in_words() -> None:
    runs = [
        InputRun(arguments="a"),
        InputRun(arguments="b", outcome="recompiled", compile_seconds=0.5),
        InputRun(arguments="c", outcome="eager"),
    ]
    assert (
        inputs_summary(Report(inputs=runs))
        == "3 inputs, each in the recorded state: 1 needs another compile (0.50 s), 1 runs eagerly"
    )
    of_f = Report(inputs=runs[:1], profile=Profile(calls=1, median_seconds=1.0, function="f"))
    assert inputs_summary(of_f) == "1 input of `f` in the recorded state: none needs another compile"
