"""Which frames there are: names, kinds, callers, what continues what, and what is nobody's."""

from __future__ import annotations

import dis
import weakref
from typing import Any

import torch
import torch.utils.checkpoint
from observed import seen
from programs import COLUMNS

from dynascope.compiler.capture.recording import observe
from dynascope.compiler.driver import explain
from dynascope.compiler.report.overview import call_tree


class Breaks(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1


class Calls(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


first, second = Calls(), Breaks()


def skips(x: torch.Tensor) -> torch.Tensor:
    for _ in range(1):
        x = first(x)
        torch._dynamo.graph_break()
        x = second(x)
    return x


class Helped(torch.nn.Module):
    def helper(self, x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.helper(x)
        return self.helper(x)


def test_the_caller_is_the_function_that_has_the_line() -> None:
    report = explain(skips, backend="eager")(torch.ones(2))
    outer = next(f for f in report.frames if f.status == "skipped")
    inner = [f for f in report.frames if f.code_name == "forward" and f is not outer]
    assert {f.parent for f in inner} == {outer.id}
    assert {f.called_from - skips.__code__.co_firstlineno for f in inner} == {2, 4}


def test_what_the_compiler_computes_with_is_no_skipped_frame() -> None:
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor | None:
        (x @ w).sin().sum().backward()  # type: ignore[no-untyped-call]
        return w.grad

    with torch._dynamo.config.patch(compiled_autograd=True), observe() as recording:
        torch.compile(step, backend="eager")(torch.ones(3, 3), torch.ones(3, 3, requires_grad=True))
    report = recording.report
    assert [f.name for f in report.frames if f.status == "skipped"] == []
    assert "call_wrapped" not in report.compiled
    # 2.9 also traces what the standard library does on the way, into nothing
    assert [f.status for f in report.frames if f.kind == "autograd" and f.status != "empty"] == ["compiled"]


def test_an_inner_compile_is_part_of_the_outer_graph() -> None:
    inner = torch.compile(lambda x: x.sin(), backend="eager")
    assert [g.ops for g in explain(lambda x: inner(x) + 1, backend="eager")(torch.ones(2)).graphs] == [2]


def test_a_generator_is_skipped_with_its_reason() -> None:
    def turns(x: torch.Tensor) -> Any:
        for i in range(2):
            yield x + i

    report = seen(lambda: list(torch.compile(turns, backend="eager")(torch.ones(2))))
    if "RETURN_GENERATOR" not in dis.opmap:  # before Python 3.11, making a generator runs no frame that Dynamo could see
        assert (report.compiled, report.frames) == (["turns"], [])
        return
    assert [(f.name, f.status) for f in report.frames if f.status == "skipped"] == [("turns", "skipped")]
    assert "generator" in (report.frames[0].reason or "")


def test_an_optimizers_step_that_the_program_compiles_is_named() -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def program() -> None:
        torch.compile(model, backend="eager")(torch.ones(1, 2)).sum().backward()
        torch.compile(optimizer.step, backend="eager")()

    assert seen(program).compiled == ["Linear", "SGD.step"]


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


def test_branches_that_join_continue_the_frame_they_come_from() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0 and x.max() > 3:
            return x + 1
        return x - 1

    compiled = torch.compile(f, backend="eager")
    report = seen(lambda: (compiled(torch.full((2,), 5.0)), compiled(torch.full((2,), -5.0))))
    # the second call leaves at the first condition, into the resume function that both conditions share
    second = "b1" if COLUMNS else "b0"  # without columns, both are the break of this line
    assert [(f.continues, f.break_) for f in report.frames] == [(None, None), ("f0", "b0"), ("f1", second), ("f0", "b0")]
    resumes = [[h.resumes for h in b.hits] for b in report.breaks]
    assert resumes == ([[["f1", "f3"]], [["f2"]]] if COLUMNS else [[["f1", "f3"], ["f2"]]])


def test_blocks_that_are_compiled_each_for_itself_do_not_call_each_other() -> None:
    blocks = torch.nn.ModuleList([Calls(), Breaks()])
    for block in blocks:
        block.compile(backend="eager")
    report = seen(lambda: blocks[1](blocks[0](torch.ones(2))))
    assert [(f.name, f.parent, f.called_from) for f in report.frames][:2] == [("Calls", None, None), ("Breaks", None, None)]


def outer(x: torch.Tensor) -> torch.Tensor:
    return Breaks()(x) + 1


def test_methods_are_named_with_their_class() -> None:
    report = explain(outer, backend="eager")(torch.ones(3))
    names = {(f.kind, f.name, f.qualname) for f in report.frames if f.status != "ignored" and f.file == __file__}
    assert {("function", "outer", "outer"), ("function", "forward", "Breaks.forward")} <= names
    assert ("resume", "forward", "Breaks.forward") in names
    assert [call.name for root in call_tree(report) for _, call in root.walk()] == ["outer", "Breaks.forward"]


def test_a_module_and_its_resume_functions_have_its_name_and_their_lines() -> None:
    report = explain(Helped(), backend="eager")(torch.ones(2))
    assert {f.name for f in report.frames if "forward" in f.code_name} == {"Helped"}
    first = Helped.forward.__code__.co_firstlineno
    assert [h.line for h in report.breaks[0].hits if "forward" in report.frame(h.frame).code_name] == [first + 1, first + 2]


def test_what_garbage_collection_calls_is_no_frame() -> None:
    """A weak container's callback runs by chance; it must not take an id from the frames of the program."""

    class Thing:
        pass

    kept: weakref.WeakValueDictionary[int, Thing] = weakref.WeakValueDictionary()

    def function(x: torch.Tensor) -> torch.Tensor:
        kept[1] = Thing()
        torch._dynamo.graph_break()
        return x.sin()

    report = explain(function, backend="eager")(torch.ones(2))
    assert not kept
    assert [f.id for f in report.frames] == [f"f{n}" for n in range(len(report.frames))]
    assert "remove" not in {f.name for f in report.frames}
    assert {"function", "__setitem__"} <= {f.name for f in report.frames}


def test_a_dictionary_that_the_code_has_made_has_no_source_at_a_break() -> None:
    saved = explain(lambda x, m: (m.state_dict(), x.sum().item()), backend="eager")(torch.ones(3), torch.nn.Linear(3, 3))
    assert set(saved.hooks.values()) == {True}
