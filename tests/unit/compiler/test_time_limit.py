"""The time limit of a call: raised in the call, and nothing of it stays in the interpreter.

Inside: the search ends calls so, and no report shows how.
"""

from __future__ import annotations

import math
import sys
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
