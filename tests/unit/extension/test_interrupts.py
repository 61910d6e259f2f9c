"""An interrupt is never lost: it stops the user's code, also where it came while ours was running."""

from __future__ import annotations

import os
import signal
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from dynascope.cell.interrupts import Interrupts, interruptible

TORCH = os.path.join("somewhere", "torch", "_dynamo", "guards.py")


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def run(*steps: Callable[[], object]) -> None:
    """What ours does in a run, step by step."""
    with Interrupts():
        for step in steps:
            step()


def users(done: list[str], word: str) -> Callable[[], object]:
    """A step in which the user's code runs."""
    return lambda: interruptible(done.append, word)


def test_ours_is_not_stopped_and_the_users_code_does_not_begin() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run(interrupt, lambda: done.append("set up"), users(done, "user"))
    assert done == ["set up"]


def test_between_two_statements_and_at_the_end() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run(users(done, "first"), interrupt, users(done, "second"))
    with pytest.raises(KeyboardInterrupt):
        run(interrupt, lambda: done.append("put back"))
    assert done == ["first", "put back"]
    interruptible(done.append, "later")  # nothing is left over
    assert done[-1] == "later"


def test_nested_runs_and_an_error_of_the_users() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run(lambda: run(interrupt, users(done, "went on")))
    with pytest.raises(ValueError, match="mine"):
        run(interrupt, Mock(side_effect=ValueError("mine")))
    assert done == []
    interruptible(lambda: None)


def test_a_cell_that_is_interrupted_before_its_code_runs(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from dynascope.runs.cell_run import CompiledCell

    before = CompiledCell.__call__
    monkeypatch.setattr(CompiledCell, "__call__", lambda self: (interrupt(), before(self))[1])
    assert type(shell("%%compile", "began = True").error) is KeyboardInterrupt
    assert "began" not in shell.ns


def test_where_torch_would_swallow_it_an_interrupt_comes_again() -> None:
    swallow = compile("try:\n    interrupt()\nexcept KeyboardInterrupt:\n    done.append('lost')\n", TORCH, "exec")
    done: list[str] = []

    def user() -> None:
        exec(swallow, {"interrupt": interrupt, "done": done})
        while True:
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt), Interrupts():
        interruptible(user)
    assert done == []


def test_an_interrupt_that_is_to_come_again_comes_before_the_run_ends() -> None:
    checked = compile("for _ in range(2): interrupt()", TORCH, "exec")
    with pytest.raises(KeyboardInterrupt), Interrupts():
        interruptible(exec, checked, {"interrupt": interrupt})
    time.sleep(0.1)  # a second one would come here


def test_where_cpython_makes_a_system_error_of_it_it_is_an_interrupt() -> None:
    def user(cause: BaseException) -> None:
        raise SystemError("returned a result with an exception set") from cause

    with pytest.raises(KeyboardInterrupt) as caught, Interrupts():
        interruptible(user, KeyboardInterrupt())
    assert caught.traceback[-1].name == "user"
    with pytest.raises(SystemError), Interrupts():
        interruptible(user, ValueError())


class Node:
    """Something that weak references can refer to."""


def wait_after(callback: Callable[[object], None]) -> None:
    """Let Python call this for an object that is gone, and wait for an interrupt."""
    node = Node()
    reference = weakref.ref(node, callback)
    del node
    assert reference() is None
    for _ in range(1000):
        time.sleep(0.01)


def test_where_python_would_discard_it_an_interrupt_comes_again(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[str] = []

    def callback(reference: object) -> None:
        interrupt()
        done.append("lost")

    hook = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), Interrupts():
        interruptible(wait_after, callback)
    assert done == []
    assert sys.unraisablehook is hook
    assert capsys.readouterr().err == ""


def test_an_interrupt_while_python_discards_an_error_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def callback(reference: object) -> None:
        raise ValueError

    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: interrupt())
    with pytest.raises(KeyboardInterrupt), Interrupts():
        interruptible(wait_after, callback)
