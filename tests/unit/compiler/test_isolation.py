"""A recording leaves nothing behind: interrupts, threads, marks."""

from __future__ import annotations

import gc
import importlib
import itertools
import sys
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
import torch.utils.checkpoint
from processes import printed_by
from torch._dynamo.testing import CompileCounter
from torch._dynamo.variables.tensor import TensorVariable

from dynascope.compiler.capture.recording import observe
from dynascope.compiler.capture.torch_private import hook_installer, hooks
from dynascope.compiler.driver import explain
from dynascope.compiler.lab.fix.trial import TookTooLong, time_limit
from dynascope.compiler.retrace import retracing


def grows(x: torch.Tensor) -> torch.Tensor:
    return (x @ x).sin().sum()


def test_an_interrupt_while_hooks_are_installed_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._dynamo import convert_frame

    before = convert_frame.CatchErrorsWrapper.__call__.__code__

    with monkeypatch.context() as patch:
        patch.setitem(hooks.POINTS, "entries", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt), observe():
            pass
    assert convert_frame.CatchErrorsWrapper.__call__.__code__ is before
    assert hook_installer.HOOKS.sinks == {}


def test_an_interrupt_at_the_end_leaves_no_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = observe()
    recording.__enter__()
    monkeypatch.setattr(recording, "_cached", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        recording.__exit__(None, None, None)
    assert hook_installer.HOOKS.sinks == {}


def unpatched_fx() -> bool:
    """Dynamo patches FX while it compiles a frame."""
    from torch._dynamo.convert_frame import original_forward_from_src

    return torch.fx.graph_module._forward_from_src is original_forward_from_src


def interrupt_next_compile(patch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make the next compile raise this after torch has patched FX, and before the `try` that undoes the patch."""

    def interrupted() -> Any:
        patch.undo()
        raise error

    patch.setattr("torch._dynamo.convert_frame.setup_compile_debug", interrupted)


def test_an_interrupt_around_a_compile_leaves_no_patch_of_fx(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = torch.nn.Linear(3, 3), torch.ones(2, 3)
    interrupt_next_compile(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt), observe():
        torch.compile(grows, backend="eager")(x)
    assert unpatched_fx()
    with observe() as recording, torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        layer(x).sum().backward()
    # with the patch left, these would be the functions that `forward` calls
    assert [f.code_name for f in recording.report.frames if f.graph] == ["forward"]


def test_a_call_that_takes_too_long_leaves_no_patch_of_fx(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_next_compile(monkeypatch, TookTooLong())
    with pytest.raises(TookTooLong), time_limit(60):
        torch.compile(grows, backend="eager")(torch.ones(3, 3))
    assert unpatched_fx()


def test_a_time_limit_that_becomes_another_error_is_one() -> None:
    def passed_on() -> None:
        try:
            while True:
                time.sleep(0.01)
        except TookTooLong as error:  # as torch's C++ does
            raise TypeError("size") from error

    with pytest.raises(TookTooLong), time_limit(0.01):
        passed_on()


ASKED_FOR_ITS_DEVICE = """
import time, torch
from dynascope.compiler.lab.fix.trial import TookTooLong, time_limit
from torch.utils._python_dispatch import TorchDispatchMode
class Slow(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        end = time.perf_counter() + 0.3
        while func is torch.ops.prim.device.default and time.perf_counter() < end: pass
        return func(*args, **(kwargs or {}))
x = torch._subclasses.FakeTensorMode().from_tensor(torch.ones(2, requires_grad=True))
try:
    with time_limit(0.1), Slow():
        x.sin()
        while True: pass
except TookTooLong:
    print("too long")
"""


def test_a_time_limit_waits_where_cpp_cannot_throw() -> None:
    assert printed_by("-c", ASKED_FOR_ITS_DEVICE) == "too long\n"


def test_a_time_limit_leaves_no_module_half_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_slowly.py").write_text("import time\nfor _ in range(30):\n    time.sleep(0.01)\nready = True")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TookTooLong), time_limit(0.05):
        all(map(importlib.import_module, itertools.repeat("imported_slowly")))
    assert sys.modules.pop("imported_slowly").ready


def test_an_interrupt_while_a_time_limit_begins_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Timer.start

    def interrupted(timer: threading.Timer) -> None:
        start(timer)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Timer, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), time_limit(60):
        pass
    assert all(t.finished.is_set() for t in threading.enumerate() if isinstance(t, threading.Timer))


def test_explaining_a_module_leaves_no_mark_on_it() -> None:
    module = torch.nn.Linear(2, 2)
    before = set(vars(module))
    explain(module, backend="eager")(torch.ones(1, 2))
    assert set(vars(module)) == before


def test_compiles_of_other_threads_are_named() -> None:
    def other() -> None:
        torch.compile(grows, backend="eager")(torch.ones(3, 3))

    with observe() as recording:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert recording.report.notes == ["compiled by other threads during the recording, and counted here: grows"]
    assert all(f.foreign for f in recording.report.frames)


SIMPLE = "def f(x): return x.sin()\ncall = torch.compile(f, backend='eager')"
NESTED = "def call(x):\n    def f(x): return x.sin()\n    return torch.compile(f, backend='eager')(x)"


@pytest.mark.parametrize("source", [SIMPLE, NESTED], ids=["its own", "in another one's"])
def test_functions_of_no_module_are_traced_again(source: str) -> None:
    """In a notebook, they are in no module that has the file of a cell; Dynamo knows the code of `f`."""
    names: dict[str, Any] = {"torch": torch}
    exec(compile(source, "<cell of the test>", "exec"), names)
    names["call"](torch.ones(3))
    with retracing(), observe() as recording:
        names["call"](torch.ones(3))
    assert [(f.name, f.status) for f in recording.report.frames] == [("f", "compiled")]


def test_of_code_that_stays_compiled_the_sizes_stay_known() -> None:
    own = torch.compile(lambda x: x.sin() + 1, backend=(counter := CompileCounter()))
    with retracing():
        own(torch.ones(4))
    assert [own(torch.ones(size)).shape[0] for size in (4, 3, 5)] == [4, 3, 5]
    assert counter.frame_count == 2


def test_an_interrupt_while_hooks_are_removed_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []

    def interrupted() -> None:
        if not removed:
            removed.append("begun")
            raise KeyboardInterrupt

    with observe() as recording:
        hook_installer.HOOKS._undo.append(interrupted)
        with pytest.raises(KeyboardInterrupt), hook_installer.HOOKS.paused():
            pass
        assert not hook_installer.HOOKS._pausing
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert recording.report.summary.graphs == 1
    assert hook_installer.HOOKS._undo == []


def test_after_an_interrupt_at_the_end_of_a_pause_runs_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((TypeError, AttributeError)), hook_installer.HOOKS.paused():
        monkeypatch.setattr(hook_installer.HOOKS, "_lock", None)  # an exception where an interrupt may come, too
    monkeypatch.undo()
    gc.collect()
    assert explain(lambda x: x + 1, backend="eager")(torch.ones(3)).summary.graphs == 1


def test_torchs_warning_about_item_is_left_for_the_users_own_compiles() -> None:
    """torch gives it once in a process, and nobody would see it in a run."""
    warn: Any = TensorVariable._warn_capture_scalar_outputs
    warn.cache_clear()
    assert explain(lambda x: x * x.sum().item(), backend="eager", fix=True)(torch.ones(3)).breaks
    assert warn.cache_info().currsize == 0
    assert TensorVariable._warn_capture_scalar_outputs is warn
