"""What else Dynamo does: each situation once, with what the report must say of it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils.checkpoint

from dynascope.compiler.assembly.breaks import BreakTable
from dynascope.compiler.assembly.compile_records import CompileRecord
from dynascope.compiler.driver.explain import explain
from dynascope.compiler.events.schema import Code, GraphEnd, Location
from dynascope.compiler.recording.recording import observe
from dynascope.compiler.report import Frame, Report
from dynascope.widgets.labels.sentences import recompile_words


@pytest.fixture(autouse=True)
def _new_dynamo() -> None:
    torch._dynamo.reset()


def seen(call: Callable[[], Any]) -> Report:
    with observe() as recording:
        call()
    return recording.report


def test_a_disabled_function_breaks_its_caller_with_the_reason() -> None:
    @torch.compiler.disable(reason="writes a file")
    def log(x: torch.Tensor) -> torch.Tensor:
        return x

    def f(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        log(x)
        return x * 2

    report = explain(f, backend="eager")(torch.ones(2))
    assert (report.summary.graphs, report.summary.breaks, report.summary.skipped) == (2, 1, 0)
    assert report.breaks[0].gb_ids == ["GB0098"]
    assert "writes a file" in report.breaks[0].text


def test_an_inner_compile_is_part_of_the_outer_graph() -> None:
    @torch.compile(backend="eager")
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    report = explain(lambda x: inner(x) + 1, backend="eager")(torch.ones(2))
    assert [g.ops for g in report.graphs] == [2]


def test_a_generator_is_skipped_with_its_reason() -> None:
    def turns(x: torch.Tensor) -> Any:
        for i in range(2):
            yield x + i

    report = seen(lambda: list(torch.compile(turns, backend="eager")(torch.ones(2))))
    assert [(f.name, f.status) for f in report.frames if f.status == "skipped"] == [("turns", "skipped")]
    assert "generator" in (report.frames[0].reason or "")


def test_the_recompile_limit_is_told_and_counts_no_recompile() -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = by

    def f(x: torch.Tensor, scale: Scale) -> torch.Tensor:
        return x * scale.by

    def call() -> None:
        compiled = torch.compile(f, backend="eager", dynamic=False)
        for i in range(5):
            compiled(torch.ones(2), Scale(i + 0.5))

    with torch._dynamo.config.patch(recompile_limit=3):
        report = seen(call)
    assert (report.summary.graphs, report.summary.recompiles, report.summary.skipped) == (3, 2, 1)
    assert "recompile limit" in (report.frames[-1].reason or "").lower().replace("_", " ")
    assert recompile_words(report.recompiles[0]) == ["scale.by was 0.5 when it was compiled, and is not now"]


@pytest.mark.parametrize("config", [{}, {"fail_on_recompile_limit_hit": True}])
def test_what_the_recompile_limit_refuses_is_no_recompile(config: dict[str, bool]) -> None:
    def call() -> None:
        compiled = torch.compile(lambda x: x * 2, backend="eager", dynamic=False, fullgraph=bool(not config))
        for n in range(2, 6):
            compiled(torch.ones(n))

    with torch._dynamo.config.patch(recompile_limit=2, **config), observe() as recording, contextlib.suppress(Exception):
        call()
    report = recording.report
    assert (report.summary.graphs, report.summary.recompiles, report.summary.failed) == (2, 1, 1)
    assert report.frames[-1].recompile_of is None


def test_a_recompile_that_ends_in_a_skip_is_one_with_its_reasons() -> None:
    def f(x: torch.Tensor, often: bool) -> torch.Tensor:
        if often:
            for _ in range(2):
                x = x + 1
                torch._dynamo.graph_break()
        return x * 2

    compiled = torch.compile(f, backend="eager")
    report = seen(lambda: (compiled(torch.ones(2), False), compiled(torch.ones(2), True)))
    assert [(f.status, f.recompile_of) for f in report.frames] == [("compiled", None), ("skipped", "f0")]
    assert [recompile_words(r) for r in report.recompiles] == [["often was False when it was compiled, and is not now"]]


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
    assert report.frames[0].status == ("failed" if raised else "compiled")
    if report.error is not None:
        assert (report.error.origin, report.error.frame) == ("compiler", report.frames[0].id)


def test_a_changed_global_and_a_new_type_are_reasons_in_words() -> None:
    space: dict[str, Any] = {"torch": torch, "factor": 2}
    exec("def f(x):\n    return x * factor\n", space)
    compiled = torch.compile(space["f"], backend="eager", dynamic=False)

    def call() -> None:
        compiled(torch.ones(2))
        space["factor"] = 3
        compiled(torch.ones(2))
        compiled(torch.ones(2, dtype=torch.float64))

    report = seen(call)
    words = [recompile_words(r) for r in report.recompiles]
    assert words[0] == ["factor was 2 when it was compiled, and is not now"]
    # 2.9 and 2.11 name the argument by its number
    assert {"x had another dtype: Float before, Double now", "args[0] had another dtype: Float before, Double now"} & {
        *words[1]
    }


def test_compiled_autograd_is_a_kind_of_its_own() -> None:
    layer = torch.nn.Linear(3, 3)

    def call() -> None:
        with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
            layer(torch.ones(2, 3)).sum().backward()

    report = seen(call)
    assert [f.kind for f in report.frames if f.graph] == ["autograd"]


def test_checkpoint_and_cond_are_nodes_of_one_graph() -> None:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x.sin().cos()

    def f(x: torch.Tensor) -> Any:
        return torch.utils.checkpoint.checkpoint(inner, x, use_reentrant=False).sum()

    report = seen(lambda: torch.compile(f, backend="aot_eager")(torch.ones(3, requires_grad=True)).backward())
    assert [g.backward for g in report.graphs] == ["compiled"]
    assert any("checkpoint" in n.target for n in report.graphs[0].nodes)

    def choose(x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    report = explain(choose, backend="eager")(torch.ones(3))
    assert (report.summary.graphs, report.summary.breaks) == (1, 0)
    assert any(n.target.endswith("cond") for n in report.graphs[0].nodes)


def test_a_stance_that_forces_eager_compiles_nothing() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")

    def call() -> None:
        with torch.compiler.set_stance("force_eager"):
            compiled(torch.ones(2))

    assert seen(call).summary.graphs == 0


def test_a_break_in_a_module_hook_is_told_at_the_hook() -> None:
    layer = torch.nn.Linear(2, 2)

    def hook(module: Any, inputs: Any, output: Any) -> Any:
        torch._dynamo.graph_break()
        return output + 1

    layer.register_forward_hook(hook)
    report = explain(layer, backend="eager")(torch.ones(1, 2))
    assert [(b.function, b.line) for b in report.breaks] == [("hook", hook.__code__.co_firstlineno + 1)]


def test_an_error_of_the_users_own_is_told_and_propagates() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x @ torch.ones(9)

    with observe() as recording, pytest.raises(RuntimeError):
        torch.compile(f, backend="eager")(torch.ones(2))
    assert recording.report.error is not None
    assert recording.report.error.caught


@pytest.mark.skipif(torch.__version__.startswith("2.9"), reason="2.9 names the caller's line only; see torch_versions.md")
def test_a_break_in_a_generator_is_told_beside_what_it_led_to() -> None:
    def f(x: torch.Tensor) -> Any:
        def turns() -> Any:
            yield x + 1
            torch._dynamo.graph_break()
            yield x + 2

        return sum(turns())

    report = explain(f, backend="eager")(torch.ones(2))
    first = f.__code__.co_firstlineno
    # what going on led to is another break in 2.13
    assert (report.breaks[0].line - first, report.breaks[0].gb_ids, report.breaks[0].outcome) == (3, ["GB0025"], "skipped")
    assert [(b.line - first, b.gb_ids, b.outcome) for b in report.breaks[1:]] in ([], [(2, ["GB0091"], "skipped")])
    assert [f.name for f in report.frames if f.status == "skipped"] == ["f"]


@torch._dynamo.error_on_graph_break(False)
def decorated(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def test_torchs_own_wrappers_are_nobodys_frames() -> None:
    report = explain(decorated, backend="eager")(torch.ones(2))
    assert report.compiled == ["decorated"]
    assert [f.name for f in report.frames if f.status != "ignored"] == ["decorated", "decorated"]
    assert (report.summary.frames, report.summary.graphs, report.summary.breaks, report.summary.resumes) == (2, 2, 1, 1)
    assert [len(b.hits) for b in report.breaks] == [1]


def test_a_sequential_of_torchs_own_class_is_named_and_its_wrapper_is_not_counted() -> None:
    class Breaks(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch._dynamo.graph_break()
            return x + 1

    report = explain(torch.nn.Sequential(Breaks(), torch.nn.ReLU()), backend="eager")(torch.ones(2))
    assert report.compiled == ["Sequential"]
    assert all("external_utils" not in f.file for f in report.frames if f.status != "ignored")


def breaking(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def calls_nested(x: torch.Tensor) -> torch.Tensor:
    return breaking(x.sin()).cos()


def calls_not_nested(x: torch.Tensor) -> torch.Tensor:
    return torch._dynamo.disable_nested_graph_breaks(calls_nested)(x.tan()).tan()


def test_a_nested_graph_break_is_the_outermost_frames() -> None:
    nested = explain(calls_nested, backend="eager", nested_graph_breaks=True)(torch.ones(2))
    assert [(f.name, f.graph) for f in nested.frames if f.status != "ignored"] == [
        ("calls_nested", "g0"),
        ("calls_nested", "g1"),
    ]
    assert [[h.frame for h in b.hits] for b in nested.breaks] == [["f0"]]


@pytest.mark.skipif(torch.__version__.startswith(("2.9", "2.11")), reason="2.9 has none, 2.11 another; see torch_versions.md")
def test_a_region_without_nested_graph_breaks() -> None:
    classic = explain(calls_not_nested, backend="eager", nested_graph_breaks=True)(torch.ones(2))
    shown = {f.id: f for f in classic.frames if f.status != "ignored"}
    assert [f.name for f in shown.values()] == [
        "calls_not_nested", "calls_nested", "breaking", "breaking", "calls_nested", "calls_not_nested",
    ]  # fmt: skip
    names = {f.name: f for f in shown.values() if f.kind == "function"}
    assert names["calls_nested"].parent == names["calls_not_nested"].id  # torch's wrapper between them is nobody's frame
    assert names["calls_nested"].called_from == calls_not_nested.__code__.co_firstlineno + 1
    assert [len(b.hits) for b in classic.breaks] == [3]


def test_allow_in_graph_is_one_node() -> None:
    @torch._dynamo.allow_in_graph
    def opaque(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()  # not looked into
        return x + 1

    report = explain(lambda x: opaque(x) * 2, backend="eager")(torch.ones(2))
    assert (report.summary.graphs, report.summary.breaks) == (1, 0)
    assert [n.op for n in report.graphs[0].nodes if n.op.startswith("call")] == ["call_function"] * 2


def test_a_break_in_a_comprehension_skips_only_that() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        z = [torch._dynamo.graph_break() or y + i for i in range(2)]
        return z[0] * z[1]

    report = explain(f, backend="eager")(torch.ones(2))
    line = f.__code__.co_firstlineno + 2
    assert {(b.line, b.outcome) for b in report.breaks} == {(line, "skipped")}
    assert report.frames[0].name == "f"
    assert report.summary.skipped == 1


def test_each_branch_has_a_break_and_a_resume_function_of_its_own() -> None:
    def f(x: torch.Tensor, n: int) -> torch.Tensor:
        x = x + 1
        if n > 1:
            torch._dynamo.graph_break()
        else:
            torch._dynamo.graph_break()
        return x * 2

    compiled = torch.compile(f, backend="eager")
    report = seen(lambda: (compiled(torch.ones(2), 1), compiled(torch.ones(2), 2)))
    first = f.__code__.co_firstlineno
    assert [b.line - first for b in report.breaks] == [5, 3]
    resumes = {f.id: f for f in report.frames if f.kind == "resume"}
    assert [resumes[b.hits[0].resumes[0]].line - first for b in report.breaks] == [5, 3]
    assert (report.summary.graphs, report.summary.recompiles) == (4, 1)


def test_suppressed_errors_are_told() -> None:
    def broken(module: torch.fx.GraphModule, inputs: Any) -> Any:
        raise ZeroDivisionError("no such target")

    with torch._dynamo.config.patch(suppress_errors=True):
        report = seen(lambda: torch.compile(breaking, backend=broken)(torch.ones(2)))
    assert {f.status for f in report.frames if f.status != "ignored"} == {"skipped"}
    assert "no such target" in (report.frames[0].reason or "")
    assert "breaking was not compiled, and ran eagerly" in report.notes[0]


class Counter:
    """A method that breaks, and a closure around a tensor."""

    def __init__(self) -> None:
        self.calls = 0

    def step(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        print(end="")
        return x + self.calls


def test_methods_and_closures_break_where_they_stand() -> None:
    counter, offset = Counter(), torch.ones(2)

    def f(x: torch.Tensor) -> torch.Tensor:
        return counter.step(x + offset) * offset

    report = explain(f, backend="eager")(torch.ones(2))
    (found,) = report.breaks
    assert (found.line, found.function) == (Counter.step.__code__.co_firstlineno + 2, "step")
    assert [f.name for f in report.frames if f.kind == "resume" and f.status != "ignored"] == ["step", "f"]
    assert counter.calls == 1


@torch.compiler.disable
def opaque(x: torch.Tensor, y: Any = 0) -> torch.Tensor:
    return x + y


def test_what_dynamo_has_not_looked_at_yet_is_left_alone() -> None:
    def f(x: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        x = x + 1
        return torch.sparse.mm(sparse, x).sum()  # wrapping the sparse tensor is what breaks

    report = seen(lambda: torch.compile(f, backend="eager")(torch.ones(2, 2), torch.eye(2).to_sparse()))
    assert all(took is True for took in report.hooks.values()), report.hooks
    assert [(b.gb_ids, b.error_on_graph_break) for b in report.breaks] == [(["GB0015"], False)]


def test_a_break_over_several_lines_ends_where_it_ends() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        a_long_name = opaque(
            x,
            1,
        )
        return a_long_name * 2

    (found,) = explain(f, backend="eager")(torch.ones(2)).breaks
    first = f.__code__.co_firstlineno
    if found.column is not None:  # Python 3.10 keeps none
        assert (found.line - first, found.column, (found.end_line or 0) - first, found.end_column) == (2, 22, 5, 9)


def test_where_a_resume_function_goes_on_after_a_check_for_none() -> None:
    def f(x: torch.Tensor, n: int | None = None) -> torch.Tensor:
        if n is None:  # Dynamo writes this jump as more instructions than Python has
            n = 2
        x = x + n; opaque(x); return x * 2  # fmt: skip  # noqa: E702

    resumes = [f.resume for f in explain(f, backend="eager")(torch.ones(2)).frames if f.resume]
    first = f.__code__.co_firstlineno
    assert [(r.line - first, r.column) for r in resumes] in ([(3, 19)], [(3, None)])


def test_branches_that_join_continue_the_frame_they_come_from() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0 and x.max() > 3:
            return x + 1
        return x - 1

    compiled = torch.compile(f, backend="eager")
    report = seen(lambda: (compiled(torch.full((2,), 5.0)), compiled(torch.full((2,), -5.0))))
    # the second call leaves at the first condition, into the resume function that both conditions share
    assert [(f.continues, f.break_) for f in report.frames] == [(None, None), ("f0", "b0"), ("f1", "b1"), ("f0", "b0")]
    assert [[h.resumes for h in b.hits] for b in report.breaks] == [[["f1", "f3"]], [["f2"]]]


def recursive(x: torch.Tensor, n: int) -> torch.Tensor:
    if n == 0:
        torch._dynamo.graph_break()
        return x
    return recursive(x + n, n - 1) * 2


def test_of_a_function_that_calls_itself_the_frame_at_that_line_is_meant() -> None:
    report = seen(lambda: torch.compile(recursive, backend="eager")(torch.ones(2), 2))
    callers = [(f.kind, f.parent, f.continues) for f in report.frames]
    assert callers[1:3] == [("function", "f0", None), ("function", "f1", None)]
    assert callers[-1] == ("resume", "f1", "f1")


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu()  # type: ignore[no-any-return]


class Blocks(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def test_blocks_that_are_compiled_each_for_itself_do_not_call_each_other() -> None:
    model = Blocks()
    for block in model.blocks:
        block.compile(backend="eager")
    report = seen(lambda: model(torch.ones(2, 2)))
    assert [(f.name, f.parent, f.called_from) for f in report.frames] == [("Block", None, None)] * 2


class Helped(torch.nn.Module):
    def helper(self, x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.helper(x)
        return self.helper(x)


def test_a_module_and_its_resume_functions_have_its_name_and_their_lines() -> None:
    report = explain(Helped(), backend="eager")(torch.ones(2))
    assert {f.name for f in report.frames if "forward" in f.code_name} == {"Helped"}
    first = Helped.forward.__code__.co_firstlineno
    hits = [h.line for h in report.breaks[0].hits if "forward" in report.frame(h.frame).code_name]
    assert hits == [first + 1, first + 2]


class Doubling:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def test_the_call_of_an_object_that_is_no_module() -> None:
    report = seen(lambda: torch.compile(Doubling().__call__, backend="eager")(torch.ones(2)))
    assert report.compiled == ["Doubling"]
    assert all(took is True for took in report.hooks.values()), report.hooks


def test_a_resume_function_bears_the_name_of_what_it_continues() -> None:
    def twice(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        @functools.wraps(function)
        def wrapper(x: torch.Tensor) -> torch.Tensor:
            x = function(x)
            torch._dynamo.graph_break()
            return x * 2

        return wrapper

    @twice
    def f(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    report = explain(f, backend="eager")(torch.ones(2))
    # what the garbage collector calls meanwhile is ignored
    seen = [(f.name, f.kind) for f in report.frames if f.status != "ignored"]
    assert seen == [("f", "function"), ("f", "resume")]


EDITED = """
import torch

@torch.compile(backend="eager")
def f(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2
"""


def test_a_file_that_was_edited_since_it_was_loaded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "edited_program.py"
    file.write_text(EDITED)
    monkeypatch.syspath_prepend(tmp_path)
    program = importlib.import_module("edited_program")
    assert seen(lambda: program.f(torch.ones(2))).notes == []
    torch._dynamo.reset()
    file.write_text("# one more line\n" + EDITED)
    assert seen(lambda: program.f(torch.ones(2))).notes == [
        "edited_program.py has changed since it was loaded: its lines are shown as they are now, not as they ran."
    ]
    file.write_text("# one more line\n# and another\n" + EDITED)
    importlib.invalidate_caches()
    program = importlib.reload(program)
    report = seen(lambda: program.f(torch.ones(2)))
    assert report.notes == []
    assert [b.source.strip() for b in report.breaks] == ["torch._dynamo.graph_break()"]


def test_what_export_traces_is_named() -> None:
    report = seen(lambda: torch.export.export(Blocks(), (torch.ones(2, 2),), strict=True))
    assert "?" not in {f.name for f in report.frames}


def test_a_break_whose_line_torch_keeps_to_itself_is_said_in_words(tmp_path: Path) -> None:
    """Torch 2.9 ends the graph at the block, and writes no text, where an `if` about values stands in it."""
    file = tmp_path / "program.py"
    file.write_text("def f(x):\n    with manager:\n        if x.sum() > 0:\n            x = x + 1\n    return x\n")
    code = Code("f", str(file), 1, uid=1)
    record = CompileRecord("0/0", code=code)
    record.graph_end = GraphEnd(
        "step_unsupported", True, code, Location(str(file), 2, "f", 9, 2, 16), stack=[Location(str(file), 2, "f")],
        error_on_graph_break=False, fullgraph=False,
    )  # fmt: skip
    table = BreakTable(lambda file: None)
    frame = Frame(id="f0", compile_id="0/0", name="f", code_name="f", file=str(file), line=1)
    assert table.ended(record, frame) == table.breaks[0].id
    assert (table.breaks[0].line, table.breaks[0].outcome, table.breaks[0].type) == (2, "skipped", "Graph break in a block")
    assert "does not tell at which line" in (table.breaks[0].explanation or "")
