"""Events are typed and say which compile they are of; what is replaced for a while is restored exactly."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import pytest
import torch
from observed import broken

from dynascope.compiler.builder import trace_records
from dynascope.compiler.builder.events import RecordingFacts
from dynascope.compiler.builder.report_builder import build_report
from dynascope.compiler.capture.recording import observe
from dynascope.compiler.patching import ABSENT, own, patched, put
from dynascope.compiler.settings import Settings


def test_the_same_events_and_facts_give_the_same_report() -> None:
    with observe() as recording:
        torch.compile(broken, backend="eager")(torch.ones(2))
        events = list(recording.events)
    facts = RecordingFacts(settings=Settings(error_on_graph_break=False), notes=["a note"], hooks={"frames": True})
    first, second = build_report(events, facts), build_report(events, facts)
    assert first.to_dict() == second.to_dict()
    assert (first.notes, first.hooks, first.breaks[0].region.kind) == (["a note"], {"frames": True}, "run")
    assert facts.notes == ["a note"]  # its lists stay as they are
    assert build_report(events).breaks[0].region.kind == "unknown"


def test_no_record_is_both_read_and_passed_over() -> None:
    assert not trace_records.USED & trace_records.IGNORED
    assert trace_records.NOT_MADE_LIVE < trace_records.IGNORED
    assert trace_records.record_name({"frame_id": 3, "rank": 0, "dynamo_start": {}}) == "dynamo_start"
    assert trace_records.record_name({"rank": 0}) == "?"


class Base:
    inherited = 1


THERE = {"PATH": object()}


@pytest.mark.parametrize("owner", [THERE, os.environ, type("Own", (Base,), THERE), type("Own", (Base,), THERE)()], ids=type)
def test_what_is_replaced_comes_back_or_is_absent_again(owner: Any) -> None:
    there = own(owner, "PATH")
    assert (there is ABSENT) == (type(owner).__name__ == "Own")
    with contextlib.suppress(KeyError), patched(owner, {"PATH": "2", "inherited": "3", "new": "4"}):
        assert [own(owner, name) for name in ("PATH", "inherited", "new")] == ["2", "3", "4"]
        raise KeyError
    assert [own(owner, name) for name in ("PATH", "inherited", "new")] == [there, ABSENT, ABSENT]
    put(owner, "new", ABSENT)  # nothing to delete
