"""The time limit of a call: raised in the call, and nothing of it stays in the interpreter.

Inside: the search ends calls so, and no report shows how.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
import weakref

import pytest

from dynascope.compiler.lab.fix.trial import TookTooLong, time_limit


@pytest.mark.parametrize("seconds", [60, math.inf])
def test_a_call_within_its_limit_is_left_alone(seconds: float) -> None:
    with time_limit(seconds):
        result = sum(range(10))
    assert result == 45


def test_an_endless_loop_is_ended() -> None:
    def endless() -> None:
        while True:
            pass

    with pytest.raises(TookTooLong), time_limit(0.05):
        endless()


class Node:
    """Something that weak references can refer to."""


def test_a_call_that_is_in_a_callback_of_python_is_ended_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Python discards what is raised there."""
    ended: list[str] = []

    def callback(reference: object) -> None:
        try:
            while True:
                pass
        finally:
            ended.append("callback")

    def endless() -> None:
        node = Node()
        reference = weakref.ref(node, callback)
        del node
        while reference() is None:
            pass

    hook = sys.unraisablehook
    with pytest.raises(TookTooLong), time_limit(0.05):
        endless()
    assert ended == ["callback"]
    assert sys.unraisablehook is hook
    assert capsys.readouterr().err == ""


def test_a_limit_that_is_reached_at_the_very_end_is_not_raised_later() -> None:
    for _ in range(200):
        try:
            with time_limit(0.0005):
                time.sleep(0.0005)
        except TookTooLong:
            pass
    time.sleep(0.01)


def test_nothing_is_left_pending() -> None:
    """Python 3.11 does not end a call under a profile function while an exception of another thread seems to be pending."""
    program = """
import sys
from dynascope.compiler.lab.fix.trial import TookTooLong, time_limit
try:
    with time_limit(0.01):
        while True:
            pass
except TookTooLong:
    pass
sys.setprofile(lambda *event: None)
def called():
    return 1
called()
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "done\n", done.stderr
