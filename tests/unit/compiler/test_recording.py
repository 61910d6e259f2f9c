"""A recording never changes what the user's code does, and leaves nothing behind."""

from __future__ import annotations

import copy
import gc
import linecache
import pickle
import weakref
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
import torch._dynamo
import torch._logging._internal
from observed import broken, seen

import dynascope
from dynascope.compiler.capture.recording import observe
from dynascope.compiler.capture.torch_private import config, hook_installer, hooks
from dynascope.compiler.compiling import compile as compile_with_flag
from dynascope.compiler.driver import explain
from dynascope.compiler.report import Report


def patched_objects() -> dict[str, Any]:
    """Everything that a hook replaces or adds to, by identity."""
    from torch._dynamo import callback, config, convert_frame, eval_frame, output_graph, resume_execution, symbolic_convert

    watched: list[Any] = [
        convert_frame.CatchErrorsWrapper.__call__,
        convert_frame.ConvertFrameAssert.__call__,
        symbolic_convert.InstructionTranslatorBase.run,
        output_graph.OutputGraph.compile_subgraph,
        output_graph.OutputGraph.call_user_compiler,
        vars(resume_execution.ContinueExecutionCache)["lookup"].__func__,
        eval_frame._callback_from_stance,
        torch._logging._internal.trace_structured,
    ]
    return {
        "functions": watched,
        "codes": [id(function.__code__) for function in watched],
        "handlers": list(torch._logging._internal.trace_log.handlers),
        "callbacks": (list(callback.callback_handler.start_callbacks), list(callback.callback_handler.end_callbacks)),
        "suppress": config.suppress_errors,
    }


class Doubles(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def test_a_module_of_torchs_own_that_is_compiled_in_place_is_said_to_run_eagerly() -> None:
    model, module = torch.nn.Sequential(torch.nn.ReLU()), torch.nn.Sequential(Doubles(), torch.nn.ReLU())
    own, other = torch.compile(torch.nn.Sequential(), backend="eager"), torch.compile(Doubles(), backend="eager")
    model.compile(backend="eager")
    module.compile(backend="eager")
    for called, compiled in ([model], ""), ([model, other], "Doubles"), ([module], "Sequential"), ([own, model], "Sequential"):
        for _ in range(2):  # the second time from compiled code
            with observe() as recording:
                _ = [f(torch.ones(2, 3)) for f in called]
            assert ", ".join(recording.report.compiled) == compiled
            assert recording.report.notes[0].startswith("Sequential ran eagerly, except for modules of yours in it")


def test_everything_is_put_back() -> None:
    torch.compile(broken, backend="eager")(torch.ones(3))  # torch's own handler leaves at the first record
    torch._dynamo.reset()
    before = patched_objects()
    with observe():
        now = patched_objects()
        assert now["functions"] == before["functions"]
        assert not set(now["codes"]) & set(before["codes"])
        torch.compile(broken, backend="eager")(torch.ones(2))
    assert patched_objects() == before
    explain(broken, backend="eager", fullgraph=True)(torch.ones(2))
    assert patched_objects() == before
    with pytest.raises(KeyboardInterrupt), observe():
        raise KeyboardInterrupt
    assert patched_objects() == before


def test_recordings_nest_and_end_in_any_order() -> None:
    before = patched_objects()
    first, second = observe(), observe()
    first.__enter__()
    second.__enter__()
    torch.compile(broken, backend="eager")(torch.ones(2))
    first.__exit__(None, None, None)
    torch._dynamo.reset()
    torch.compile(broken, backend="eager")(torch.ones(2))
    second.__exit__(None, None, None)
    assert patched_objects() == before
    assert (first.report.summary.breaks, first.report.summary.graphs) == (1, 2)
    assert (second.report.summary.breaks, second.report.summary.graphs) == (1, 4)


def test_reset_in_the_users_code() -> None:
    with observe() as recording:
        torch.compile(broken, backend="eager")(torch.ones(2))
        torch._dynamo.reset()
        torch.compile(broken, backend="eager")(torch.ones(2))
    report = recording.report
    assert [f.compile_id for f in report.frames] == ["0/0", "1/0", "0/0", "1/0"]
    assert len({f.id for f in report.frames}) == 4
    assert [len(b.hits) for b in report.breaks] == [2]


@pytest.mark.parametrize("name", sorted(hooks.POINTS))
def test_every_hook_can_be_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hooks.POINTS, name, Mock(side_effect=AttributeError("gone")))
    with observe() as recording:
        result = torch.compile(broken, backend="eager")(torch.ones(2))
    assert torch.equal(result, torch.full((2,), 4.0))
    assert recording.report.hooks[name] == "AttributeError: gone"


def test_code_that_was_compiled_for_an_object_that_is_gone_is_no_missing_hook() -> None:
    weight = torch.ones(1, requires_grad=True)
    weight.grad = torch.ones(1)
    report = seen(torch.compile(torch.optim.SGD([weight], 0.5).step, backend="eager"))
    assert (weight.item(), set(report.hooks.values())) == (0.5, {True})


def test_an_error_in_an_observer_is_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Mock(side_effect=RuntimeError("our own fault"))
    monkeypatch.setattr(hooks.translators, "summaries", wrong)
    with observe(on_progress=wrong) as recording:
        result = torch.compile(broken, backend="eager")(torch.ones(2))
    assert torch.equal(result, torch.full((2,), 4.0))
    assert any("our own fault" in str(v) for v in recording.report.hooks.values())


def test_a_recording_prints_its_report() -> None:
    with dynascope.observe() as recording:
        assert "object at" not in repr(recording)
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert str(recording) == str(recording.report)
    assert repr(recording) == f"<recording: {recording.report.headline()}>"
    assert repr([recording.report]) == f"[<report: {recording.report.headline()}>]"  # as Python's prompt shows it
    with dynascope.record_ranks() as ranks:
        pass
    assert str(ranks).startswith("torch.multiprocessing has started no rank in the block: ")
    assert "object at" not in repr(ranks)


def test_of_code_compiled_before_all_that_ran_is_counted_and_never_without_breaks() -> None:
    factor, ran = 2.0, []

    def called(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x * factor

    compiled = torch.compile(lambda x: called(x + 1).relu(), backend=lambda graph, _: lambda *a: ran.append(a) or graph(*a))
    compiled(torch.ones(2))
    for factor, statuses in ((2.0, ["cached"] * 4), (3.0, ["compiled"] + ["cached"] * 3)):  # noqa: B007
        ran.clear()
        report = seen(lambda: compiled(torch.ones(2)))
        assert [f.status for f in report.frames] == statuses
        assert report.summary.graphs == len(ran) == 3
        assert "graph breaks unknown" in report.headline()
    assert [f.name for f in report.frames] == ["called", "<lambda>", "called", "<lambda>"]
    assert report.frames[3].continues == report.frames[1].id


def test_a_call_that_fits_no_version_at_the_recompile_limit_is_said_to_run_eagerly() -> None:
    compiled = torch.compile(lambda x, s: x + len(s), backend="eager")
    for n in range(10):
        compiled(torch.ones(2), "a" * n)
    report, full = (
        seen(lambda: compiled(torch.ones(2), "a" * 20)),
        "has as many versions as torch._dynamo.config.recompile_limit, or more",
    )
    assert report.notes == [f"<lambda> ran eagerly in this recording; it {full}."]
    assert "graph breaks unknown" in report.headline()
    report = seen(lambda: [compiled(torch.ones(2), "a" * n) for n in (20, 1)])
    # may: fullgraph raises an error instead, and isolated compiles have a limit each
    assert report.notes == [f"<lambda> {full}: calls that fit none of them may run eagerly."]
    with observe() as recording, torch.compiler.set_stance("force_eager"):
        compiled(torch.ones(2), "a")
    assert [note.partition(",")[0] for note in recording.report.notes] == ["calls ran eagerly"]


def test_an_old_version_that_ran_counts_beside_a_new_one_and_its_breaks_are_unknown() -> None:
    def broken_for_matrices(x: torch.Tensor) -> torch.Tensor:
        if x.ndim == 2:
            torch._dynamo.graph_break()
        return x.sum(-1)

    compiled = torch.compile(broken_for_matrices, backend="eager")
    compiled(torch.ones(2, 2))
    with observe() as recording:
        compiled(torch.ones(2, 2))
        compiled(torch.ones(2, 2, 2))
    report = recording.report
    assert [f.status for f in report.frames] == ["compiled", "cached", "cached"]
    assert (report.summary.graphs, report.summary.recompiles) == (2, 1)
    assert "graph breaks unknown" in report.headline()
    report = seen(lambda: compiled(torch.ones(2, 2, 2, 2)))
    assert [f.status for f in report.frames] == ["compiled"], "no other version ran"


def test_explain_traces_afresh_and_leaves_the_users_code_a_cache_hit() -> None:
    compiled = torch.compile(broken, backend="eager")
    compiled(torch.ones(2))
    code = broken.__code__
    reports = [explain(broken, backend="eager")(torch.ones(2)) for _ in range(12)]
    assert len({report.headline().split("compiled in")[0] for report in reports}) == 1
    assert broken.__code__ is code
    assert [f.status for f in seen(lambda: compiled(torch.ones(2))).frames] == ["cached", "cached"]


@pytest.mark.parametrize("target", [broken, torch.nn.ReLU()])  # torch's module is called in a wrapper of torch
def test_other_sizes_in_later_runs_stay_static(target: Any) -> None:
    assert [explain(target, backend="eager")(torch.ones(n)).graphs[0].nodes[0].shape for n in (2, 3, 4)] == [[2], [3], [4]]


@pytest.mark.parametrize("resets", [False, True])
def test_sizes_of_earlier_runs_are_known_again_unless_the_code_resets_dynamo(resets: bool) -> None:
    def other(x: torch.Tensor) -> torch.Tensor:
        if resets:
            torch._dynamo.reset()
        return x + 1

    compiled = torch.compile(broken, backend="eager")
    for n in (2, 3):
        compiled(torch.ones(n))
    explain(other, backend="eager")(torch.ones(2))
    report = seen(lambda: torch.compile(broken, backend=lambda gm, inputs: gm)(torch.ones(5)))  # another one: compiled anew
    sizes = [size for node in report.graphs[0].nodes for size in node.shape or ()]
    assert any(isinstance(size, str) for size in sizes) is not resets


def test_an_unrolled_loop_is_told() -> None:
    def loop(x: torch.Tensor) -> torch.Tensor:
        for i in range(20):
            x = x + i
        return x

    report = explain(loop, backend="eager")(torch.ones(2))
    words = f"test_recording.py:{loop.__code__.co_firstlineno + 2} has 20 calls of a function in this graph"
    assert report.graphs[0].notes == [f"{words}; loops are unrolled, calls inlined"], (
        "a long line without a loop looks the same"
    )


NET = """
class Net(torch.nn.Linear):
    def forward(self, x):
        x = super().forward(x)
        torch._dynamo.graph_break()
        return x.relu()
"""


def test_the_report_keeps_nothing_of_the_users_alive() -> None:
    # code objects are not asked for: torch.compile itself keeps those of classes and of resumed functions alive
    def scope() -> tuple[Report, list[weakref.ref[Any]]]:
        exec(NET, space)
        net, x = space["Net"](3, 3), torch.ones(2, 3)
        references = [weakref.ref(o) for o in (net, x, net.weight)]

        def backend(gm: torch.fx.GraphModule, inputs: Any) -> Any:
            references.append(weakref.ref(gm))
            return gm.forward

        return explain(net, backend=backend)(x), references

    space: dict[str, Any] = {"torch": torch, "__name__": __name__}
    report, references = scope()
    torch._dynamo.reset()
    for name in [n for n in space if n.startswith("__compiled_fn")]:
        space[name] = None  # Dynamo leaves what it compiled among the function's globals
    gc.collect()
    assert report.summary.graphs == 2, [f.reason for f in report.frames]
    assert len(references) == 5
    assert [r() for r in references] == [None] * len(references)
    assert hook_installer.HOOKS.entered == {}


def test_a_report_says_the_same_whenever_it_is_read(tmp_path: Path) -> None:
    file, text = tmp_path / "later.py", "def f(x, k=2):\n    if x.shape[0] > k:\n        return x + k\n    return x\n"
    file.write_text(text)
    space: dict[str, Any] = {}
    exec(compile(text, str(file), "exec"), space)
    count = 3

    def cells(name: str) -> int | None:
        return count if name == str(file) else None

    with observe(cells=cells) as one, observe(cells=cells) as other, observe(cells=cells) as third:
        torch.compile(space["f"], backend="eager")(torch.ones(3))
    at_once, later = one.report.to_dict(), other.report
    file.write_text("# other text\n" * 9)
    linecache.checkcache()
    count = 4
    assert pickle.loads(pickle.dumps(copy.copy(later))).to_dict() == at_once
    assert repr(third.report.frames[0]) == repr(later.frames[0])
    (source,) = later.sources
    assert (source.cell, source.excerpts[0].text) == (3, text.rstrip())
    assert any(site.guards for site in later.frames[0].guard_sites)
    with pytest.raises(AttributeError, match="no attribute 'guard_lines'"):
        _ = later.frames[0].guard_lines  # type: ignore[attr-defined]


def test_bytecode_is_kept_only_on_request() -> None:
    torch.compile(broken, backend="eager")(torch.ones(2))  # torch's own handler leaves at the first record
    assert [f.bytecode for f in explain(broken, backend="eager")(torch.ones(2)).frames] == [None, None]
    if torch.__version__.startswith(("2.9", "2.11")):
        pytest.skip("torch before 2.13 does not record bytecode")
    report = explain(broken, backend="eager", bytecode=True)(torch.ones(2))
    assert "RETURN_VALUE" in (report.frames[1].bytecode or "")
    assert "RETURN_VALUE" in (report.frames[1].modified_bytecode or "")


def test_progress_tells_what_is_compiled() -> None:
    told: list[dict[str, Any]] = []
    explain(broken, on_progress=told.append, backend="eager")(torch.ones(2))
    assert told[-1]["graphs"] == 2
    assert {t["now"] for t in told} == {"broken"}


def test_refusals_are_reported_and_errors_of_the_user_propagate() -> None:
    report = explain(broken, backend="eager", fullgraph=True, error_on_graph_break=True)(torch.ones(2))
    assert report.error.origin == "compiler"
    assert any("fullgraph=True wins" in note for note in report.notes)

    def wrong(x: torch.Tensor) -> torch.Tensor:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        explain(wrong, backend="eager", check=True, profile=1, fix=True)(torch.ones(2))
    assert "The run ended with ZeroDivisionError, so no check or profile or fix was made" in dynascope.last().notes


def test_compile_takes_the_missing_argument() -> None:
    with pytest.raises(torch._dynamo.exc.Unsupported):
        compile_with_flag(broken, backend="eager", error_on_graph_break=True)(torch.ones(2))
    torch._dynamo.reset()
    assert compile_with_flag(broken, backend="eager", error_on_graph_break=False)(torch.ones(2)).sum() == 8
    module = torch.nn.Linear(2, 2)
    assert isinstance(compile_with_flag(module, backend="eager", error_on_graph_break=True), type(torch.compile(module)))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backend": "no_such"}, "unknown backend 'no_such': use eager, aot_eager, or one of torch.compiler"),
        ({"device": "cuda:99"}, "device 'cuda:99' cannot be used here: "),
        ({"mode": "max-autotune", "options": {"a": 1}}, "not both"),
        ({"mode": "max-autotune", "backend": "eager"}, "backend 'eager' ignores mode and options"),
        ({"mode": "nonsense"}, "unknown mode 'nonsense': use one of default, "),
        ({"options": {"max_autotun": 1}}, "Inductor has no option 'max_autotun': did you mean max_autotune?"),
        ({"options": {"max_fusion_size": "many"}}, "max_fusion_size takes an int, not 'many'"),
        ({"options": {"max_autotune": 1}}, "max_autotune takes a bool, not 1"),
        ({"options": "max_autotune"}, "options takes a dict, not 'max_autotune'"),
        ({"dynamic": "maybe"}, "dynamic takes True or False, not 'maybe'"),
        ({"options": {1: 2}}, "Inductor has no option '1'"),
        ({"options": {"max_autotune": torch.eye(2)}}, r"max_autotune takes a bool, not tensor\("),
        ({"fix_seconds": float("nan")}, "^fix_seconds takes a number, at least 0, not nan"),
        ({"profile": 2.5}, "^profile takes a whole number of calls, at least 0, not 2.5"),
        ({"save": 5}, "^save takes a string, not 5"),
        ({"fullgraph": "yes"}, "fullgraph takes True or False, not 'yes'"),
        ({"expect": "brekas=0"}, "cannot expect 'brekas=0'"),
        ({"save": "a.pdf"}, "the name must end in one of"),
        ({"profile": "3"}, "profile takes a number, not '3'"),
    ],
)
def test_bad_settings_are_one_line_before_anything_runs(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        explain(broken, **settings)
    assert "\n" not in str(caught.value)


def test_a_backend_of_the_users_gets_mode_and_options() -> None:
    got: list[dict[str, Any]] = []

    def backend(gm: torch.fx.GraphModule, inputs: list[Any], **arguments: Any) -> Any:
        got.append(arguments)
        return gm.forward

    def keep_all(guards: list[Any]) -> list[bool]:
        return [True for _ in guards]

    explain(lambda x: x + 1, backend=backend, options={"level": 3, "guard_filter_fn": keep_all})(torch.ones(2))
    explain(lambda x: x + 2, backend=backend, mode="mine")(torch.ones(2))
    explain(lambda x: x + 3, backend="eager", options={"guard_filter_fn": keep_all})(torch.ones(2))
    assert got == [{"options": {"level": 3}}, {"mode": "mine"}]


def test_a_frame_that_is_still_compiling_is_unfinished() -> None:
    snapshots: list[Report] = []

    def backend(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        snapshots.append(recording.snapshot())
        return gm.forward

    with observe() as recording:
        torch.compile(broken, backend=backend)(torch.ones(2))
    first = snapshots[0]
    assert [(f.status, f.reason, f.compile_seconds) for f in first.frames] == [("unfinished", "still compiling", None)]
    assert first.headline() == "broken: 1 graph · 0 graph breaks · 0 resume functions · 0 skipped · 1 unfinished"
    assert [f.status for f in snapshots[1].frames] == ["compiled", "unfinished"]
    assert recording.report.summary.unfinished == 0


def test_an_interrupted_compile_is_unfinished() -> None:
    def backend(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), observe() as recording:
        torch.compile(broken, backend=backend)(torch.ones(2))
    report = recording.report
    assert (report.origin, report.error) == ("partial", None)
    (frame,) = report.frames
    assert (frame.status, frame.reason) == ("unfinished", "interrupted before this compile had ended")
    assert "1 unfinished" in report.headline()
    assert "unfinished frame broken" in str(report)


def test_an_expectation_from_python_is_held() -> None:
    with pytest.raises(AssertionError, match="expected graphs=7, found 2"):
        explain(broken, backend="eager", expect="graphs=7")(torch.ones(2))


@pytest.mark.skipif(config.nested_graph_breaks() is None, reason="this torch has no nested graph breaks")
@pytest.mark.parametrize(("default", "option", "in_force"), [(True, None, True), (False, None, False), (True, False, False)])
def test_the_report_says_whether_nested_graph_breaks_are_in_force(default: bool, option: bool | None, in_force: bool) -> None:
    with config.dynamo_config(nested_graph_breaks=default):
        report = explain(torch.sin, backend="eager", nested_graph_breaks=option)(torch.ones(2))
    assert report.settings["nested_graph_breaks"] is in_force
