"""The compile time: sums against torch's own, nesting, threads, damaged and missing events, caches."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch
from observed import seen
from processes import printed_by
from torch._dynamo.utils import compilation_time_metrics

from dynascope.compiler.capture.recording import observe
from dynascope.compiler.capture.trace_files import load
from dynascope.compiler.report import CompileTime
from dynascope.widgets.features.compile_time import compile_time_line
from dynascope.widgets.features.places import Places

TRACES = Path(__file__).parents[2] / "traces"


class Block(torch.nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + super().forward(x).relu()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])  # test_stages has Inductor
def test_the_sums_are_those_of_compile_times(backend: str) -> None:
    """Also in the headline, with the time of backward graphs."""
    compilation_time_metrics.clear()
    compiled = torch.compile(torch.nn.Sequential(Block(4, 4), Block(4, 4)), backend=backend)
    report = seen(lambda: compiled(torch.ones(2, 4)).sum().backward())
    time = report.compile_time
    found = {p.function or p.name: p.seconds for p in time.phases}
    for name, values in compilation_time_metrics.items():
        if name in found:  # some are sums of many calls inside a phase, which have no events
            assert found[name] == pytest.approx(sum(values), rel=0.05, abs=1e-4), name
    assert {"_compile.compile_inner", "bytecode_tracing", "build_guards", "OutputGraph.call_user_compiler"} <= found.keys()
    assert time.seconds == pytest.approx(sum(p.self_seconds for p in time.phases), rel=0.01)
    assert time.unfinished == []
    assert {p.frame for p in time.phases} == {"f0"}
    assert any(p.name == "entire_backward_compile" for p in time.phases) is (backend == "aot_eager")
    assert {"aot_eager": "aot", "eager": "backend"}[backend] in {p.kind for p in time.phases}
    assert report.summary.compile_seconds == time.elapsed
    line = compile_time_line(Places(report))
    assert f" · compiled in {line['total']}" in report.headline()
    assert line["title"].startswith(f"Compile time · {line['total']} · ")


# -- logs -------------------------------------------------------------------------------------------


def logged(log: Path) -> list[dict[str, Any]]:
    """The chromium events of a log, read with as little as possible of what the product does."""
    found = []
    for record in re.split(r"\n(?!\t)", gzip.decompress(log.read_bytes()).decode()):
        head, _, payload = record.partition("\n\t")
        if '{"chromium_event"' in head:
            found.append(json.loads(payload.replace("\n\t", "\n")))
    return found


def by_name(time: CompileTime) -> dict[str, float]:
    """Seconds of the phases by name."""
    found: dict[str, float] = defaultdict(float)
    for phase in time.phases:
        found[phase.name] += phase.seconds
    return found


def sums(events: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds by name, an independent way: the n-th end of a name in a compile belongs to its n-th beginning."""
    at: dict[Any, dict[str, list[float]]] = defaultdict(lambda: {"B": [], "E": []})
    for event in events:
        if event["ph"] in "BE":
            at[event["name"], event["args"]["compile_id"]][event["ph"]].append(event["ts"] / 1e6)
    result: dict[str, float] = defaultdict(float)
    for (name, _), ends in at.items():
        result[name] += sum(e - b for b, e in zip(ends["B"], ends["E"], strict=False))
    return {name: seconds for name, seconds in result.items() if seconds}


def test_the_first_compile_of_a_process_has_all_its_phases() -> None:
    program = "import torch, dynascope; dynascope.explain(lambda x: x + 1, backend='eager')(torch.ones(1))"
    phases = "{p.name: p.count for p in dynascope.last().compile_time.phases}"
    assert printed_by("-c", f"{program}; print({phases}['dynamo'])") == "1\n"


@pytest.mark.parametrize("log", sorted(TRACES.glob("*.log.gz")), ids=lambda log: log.name.removesuffix(".log.gz"))
def test_a_log_says_what_its_events_say(log: Path) -> None:
    report, events = load(log), logged(log)
    if not events:
        assert report.compile_time is None
        return
    time = report.compile_time
    assert by_name(time) == pytest.approx(sums(events), abs=2e-5)
    begun, ended = (sum(e["ph"] == phase for e in events) for phase in "BE")
    assert [(p.name, p.kind) for p in time.phases] == sorted((p.name, p.kind) for p in time.phases)  # not by measured times
    assert sum(p.count for p in time.phases) == ended
    assert len(time.unfinished) == begun - ended
    line = compile_time_line(Places(report))
    assert bool(time.unfinished) is any("no recorded end" in words for words in line["words"])
    assert all(p.self_seconds <= p.seconds + 2e-6 for p in time.phases)


def test_autotuning_is_a_kind_of_phases() -> None:
    time = load(TRACES / "autotuning-2.13.0.log.gz").compile_time
    assert {p.kind for p in time.phases if "_template_" in p.name} == {"autotuning"}


# -- repeated blocks --------------------------------------------------------------------------------


def test_a_block_that_repeats_is_found() -> None:
    blocks = torch.nn.Sequential(*(Block(4, 4) for _ in range(5)))
    (block,) = seen(lambda: torch.compile(lambda x: blocks(blocks(x)), backend="eager")(torch.ones(2, 4))).compile_time.repeats
    assert (block.count, block.ops, block.share, block.graphs) == (10, 3, 1.0, ["g0"])
    assert [m.rpartition(".")[2] for m in block.modules] == [str(i) for i in range(5)]
    assert block.functions == ["Block.forward"]


def test_equal_graphs_are_found() -> None:
    with observe() as recording:
        for _ in range(3):
            torch.compile(Block(4, 4), backend="eager")(torch.ones(2, 4))
            torch._dynamo.reset()
    (block,) = recording.report.compile_time.repeats
    assert (block.count, block.graphs, block.share) == (3, ["g0", "g1", "g2"], 1.0)


def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return (x * by).relu() + 1


def test_blocks_with_other_constants_or_shapes_are_not_equal() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        for by in (1.5, 2.5, 3.5, 4.5):
            x = scaled(x, by)
        for _ in range(4):
            x = torch.cat([x, x]).relu() + 1
        return x

    assert seen(lambda: torch.compile(f, backend="eager")(torch.ones(2, 4))).compile_time.repeats == []
