"""Bugs that a strict reader found, each by the program that showed it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from dynascope.compiler.driver.explain import explain
from dynascope.compiler.recording.recording import observe
from dynascope.compiler.torch_private import hook_points, hooks


@pytest.fixture(autouse=True)
def _new_dynamo() -> None:
    torch._dynamo.reset()


class Breaks(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1


class Calls(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Skips(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Calls(), Breaks()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(1):
            x = self.first(x)
            torch._dynamo.graph_break()
            x = self.second(x)
        return x


def line_of(method: Any, further: int) -> int:
    return int(method.__code__.co_firstlineno) + further


def test_a_hit_in_a_module_has_its_line() -> None:
    report = explain(Breaks(), backend="eager")(torch.ones(2))
    assert [h.line for h in report.breaks[0].hits] == [line_of(Breaks.forward, 1)]


def test_the_caller_is_the_function_that_has_the_line() -> None:
    report = explain(Skips(), backend="eager")(torch.ones(2))
    outer = next(f for f in report.frames if f.status == "skipped")
    inner = [f for f in report.frames if f.code_name == "forward" and f is not outer]
    assert {f.parent for f in inner} == {outer.id}
    assert {f.called_from for f in inner} == {line_of(Skips.forward, 2), line_of(Skips.forward, 4)}


def test_an_interrupt_while_hooks_are_installed_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._dynamo import convert_frame

    before = convert_frame.CatchErrorsWrapper.__call__.__code__

    def interrupted(_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(hook_points.POINTS, "entries", interrupted)
        with pytest.raises(KeyboardInterrupt), observe():
            pass
    assert convert_frame.CatchErrorsWrapper.__call__.__code__ is before
    assert hooks.HOOKS.sinks == []


def test_an_interrupt_at_the_end_leaves_no_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = observe()

    def interrupted() -> Any:
        raise KeyboardInterrupt

    recording.__enter__()
    monkeypatch.setattr(recording, "_cached", interrupted)
    with pytest.raises(KeyboardInterrupt):
        recording.__exit__(None, None, None)
    assert hooks.HOOKS.sinks == []


def test_a_backward_after_a_reset_is_another_graphs() -> None:
    def first(x: torch.Tensor) -> torch.Tensor:
        return (x.sin() * x).sum()

    def second(x: torch.Tensor) -> torch.Tensor:
        return (x.cos() * x * x).sum()

    report = explain(first, cache=False)(torch.ones(3, requires_grad=True))
    assert report.graphs[0].backward == "pending"
    code = report.graphs[0].backend_code
    torch._dynamo.reset()
    loss = torch.compile(second)(torch.ones(5, requires_grad=True))
    with observe():
        loss.backward()
    assert report.graphs[0].backward == "pending"
    assert report.graphs[0].backend_code == code


def test_threads_that_explain_one_function_leave_its_code() -> None:
    def shared(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    original = shared.__code__
    meet = threading.Barrier(2, timeout=60)

    def backend(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        return gm

    def work(size: int) -> None:
        from dynascope.compiler.driver.retrace import fresh

        with fresh() as freshen:
            freshen(shared)
            meet.wait()
            if size == 2:
                meet.wait()
        if size == 3:
            meet.wait()  # ends first

    threads = [threading.Thread(target=work, args=(n,)) for n in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared.__code__ is original


def test_settings_from_python_are_honoured_or_refused() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    with pytest.raises(AssertionError, match="expected graphs=7, found 1"):
        explain(f, backend="eager", expect="graphs=7")(torch.ones(2))
    for settings, words in (({"bakend": "eager"}, "unknown setting 'bakend'"), ({"function": ["f"]}, "a setting of %%compile")):
        with pytest.raises(TypeError, match=words):
            explain(f, **settings)


def test_explaining_a_module_leaves_no_mark_on_it() -> None:
    module = torch.nn.Linear(2, 2)
    before = set(vars(module))
    explain(module, backend="eager")(torch.ones(1, 2))
    assert set(vars(module)) == before


def test_check_from_python_tells_right_from_wrong() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def wrong(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        return lambda *args: tuple(out + 1 for out in gm(*args))

    good = explain(f, backend="eager", check=True)(torch.ones(2))
    bad = explain(f, backend=wrong, check=True)(torch.ones(2))
    assert good.check is not None
    assert bad.check is not None
    assert good.check["agrees"] is True
    assert bad.check["agrees"] is False


def grows(x: torch.Tensor) -> torch.Tensor:
    return (x @ x).sin().sum()


def test_a_backward_is_pending_until_it_is_compiled() -> None:
    compiled = torch.compile(grows, backend="aot_eager")
    with observe() as first:
        loss = compiled(torch.ones(3, 3, requires_grad=True))
    assert [g.backward for g in first.report.graphs] == ["pending"]
    with observe() as second:
        loss.backward()
    assert [g.backward for g in first.report.graphs] == ["compiled"]
    assert "of an earlier report" in second.report.notes[0]


def test_what_the_compiler_computes_with_is_no_skipped_frame() -> None:
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor | None:
        (x @ w).sin().sum().backward()  # type: ignore[no-untyped-call]
        return w.grad

    with torch._dynamo.config.patch(compiled_autograd=True), observe() as recording:
        torch.compile(step, backend="eager")(torch.ones(3, 3), torch.ones(3, 3, requires_grad=True))
    report = recording.report
    assert [f.name for f in report.frames if f.status == "skipped"] == []
    assert "call_wrapped" not in report.compiled
    assert [f.kind for f in report.frames if f.kind == "autograd"] == ["autograd"]


def test_a_recording_knows_that_another_threads_measuring_left_it_blind() -> None:
    entered, done = threading.Event(), threading.Event()

    def measure() -> None:
        with hooks.HOOKS.paused():
            entered.set()
            done.wait(20)

    thread = threading.Thread(target=measure)
    with observe() as before:
        thread.start()
        entered.wait(20)
        with observe() as during:
            torch.compile(grows, backend="eager")(torch.ones(3, 3))
        with hooks.HOOKS.paused():  # another one; the hooks come back after the last
            pass
        assert not hooks.HOOKS._undo
        done.set()
        thread.join()
        torch.compile(lambda x: grows(x) + 1, backend="eager")(torch.ones(3, 3))
    assert [g.ops for g in before.report.graphs] == [4]
    for recording in (before, during):
        assert any("another thread timed calls meanwhile" in note for note in recording.report.notes)
    with observe() as after:
        pass
    assert after.report.notes == []


def test_compiles_of_other_threads_are_named() -> None:
    def other() -> None:
        torch.compile(grows, backend="eager")(torch.ones(3, 3))

    with observe() as recording:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert recording.report.notes == ["compiled by other threads meanwhile, and counted here: grows"]
