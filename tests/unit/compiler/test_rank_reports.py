"""Ranks of a job: planted differences are found, the first in order first; equal ranks stay equal whatever is their own."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
import referencing

from dynascope.compiler.ranks import Rank, RankRecord, RanksReport, merge
from dynascope.compiler.ranks.structure import record_of
from dynascope.compiler.report import Break, FailedGuard, Failure, Frame, Graph, Node, Recompile, Report, Summary
from dynascope.compiler.report.comparison import ExpectationFailed
from dynascope.compiler.report.schema import Hit
from tools import generated

FILE = "/home/user/job/train.py"
COMPILES = [("embed", 10, "function"), ("block", 20, "function"), ("block", 24, "resume"), ("embed", 10, "function")]
Change = Callable[[Report], object]


def node(name: str, code: str, shape: list[int | str], **facts: Any) -> Node:
    values: dict[str, Any] = {"op": "call_function", "target": code.partition("(")[0], "dtype": "float32", "device": "cuda:0"}
    return Node(name=name, code=code, shape=shape, **{**values, **facts})


def made(rank: int = 0) -> Report:
    """A report of four compiles: `embed`, `block`, which has collectives and breaks, its rest, and a recompile of `embed`."""
    report = Report(versions={"torch": "2.13.0"}, origin="live")
    gather = "torch.ops._c10d_functional.all_gather_into_tensor.default(mul, 4, '1')"
    for n, (name, line, kind) in enumerate(COMPILES):
        frame = Frame(
            id=f"f{n}", compile_id=f"{n}/0", name=name, code_name=name, file=FILE, line=line, kind=kind, graph=f"g{n}",  # type: ignore[arg-type]
            compile_seconds=1.0,
        )  # fmt: skip
        graph = Graph(
            id=f"g{n}", frame=frame.id, ops=2, end="return",
            nodes=[
                node("l_x_", "L_x_", [4, 8], op="placeholder", device=f"cuda:{rank}"),
                node("mul", "l_x_ * 3", [4, 8], file=FILE, line=line + 1, device=f"cuda:{rank}"),
                node("add", f"torch.add(mul, 1, device = device(type='cuda', index={rank}))", [4, 8], device=f"cuda:{rank}"),
            ],
        )  # fmt: skip
        if n == 1:
            graph.end, graph.break_ = "break", "b0"
            graph.aot_forward = (
                "def forward(self, mul):\n"
                "    all_reduce: \"f32[4, 8]\" = torch.ops._c10d_functional.all_reduce.default(mul, 'sum', '0')\n"
                '    wait_tensor: "f32[4, 8]" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)\n'
                f'    all_gather: "f32[16, 8]" = {gather}\n'
            )
        report.frames.append(frame)
        report.graphs.append(graph)
    report.frames[2].continues = "f1"
    kind = {"type": "builtin print", "gb_ids": ["GB0059"], "hits": [Hit(frame="f1", line=23, outcome="resumed")]}
    report.breaks.append(Break(id="b0", file=FILE, line=23, source="print(loss)", function="block", **kind))  # type: ignore[arg-type]
    report.frames[3].recompile_of = "f0"
    guard = FailedGuard(kind="size", source="x", dimension=0, before="4", now=str(6 + rank))
    report.recompiles.append(Recompile(frame="f3", of="f0", reasons=["x size mismatch"], failed_guards=[guard]))
    report.summary = Summary(frames=4, graphs=4, breaks=1, recompiles=1, compile_seconds=4.0)
    return report


def record(report: Report, rank: int, **facts: Any) -> RankRecord:
    return record_of(Rank(rank=rank, local_rank=rank), report, **facts)


def with_difference(change: Change, ranks: int = 4, odd: int = 2) -> RanksReport:
    """A job in which one rank differs."""
    records = []
    for rank in range(ranks):
        report = made(rank)
        if rank == odd:
            change(report)
        records.append(record(report, rank))
    return merge(records)


def drop(report: Report, frame: str) -> None:
    report.frames = [f for f in report.frames if f.id != frame]
    report.recompiles = [r for r in report.recompiles if r.frame != frame]


def aot(old: str, new: str) -> Change:
    def change(report: Report) -> None:
        text = report.graphs[1].aot_forward or ""
        assert old in text
        report.graphs[1].aot_forward = text.replace(old, new)

    return change


def reorder(report: Report) -> None:
    text = (report.graphs[1].aot_forward or "").splitlines()
    report.graphs[1].aot_forward = "\n".join([text[0], text[3], *text[1:3]])


def skip(report: Report) -> None:
    report.frames[1].status, report.frames[1].graph, report.frames[1].reason = "skipped", None, "skipped by a loop"


def fail(report: Report) -> None:
    report.frames[1].status, report.frames[1].reason = "failed", "Unsupported: no"
    report.error = Failure(type="Unsupported", message="no\nmore", frame="f1")


def no_break(report: Report) -> None:
    report.graphs[1].end, report.graphs[1].break_ = "return", None
    report.breaks = []
    drop(report, "f2")


def break_before_any_operation(report: Report) -> None:
    report.frames[0].status, report.frames[0].graph = "empty", None
    report.breaks[0].hits.append(Hit(frame="f0", line=11, outcome="resumed"))


def no_recompile(report: Report) -> None:
    drop(report, "f3")


def set_node(graph: int, number: int, **facts: Any) -> Change:
    return lambda report: [setattr(report.graphs[graph].nodes[number], k, v) for k, v in facts.items()]


PLANTED: dict[str, tuple[Change, str, int]] = {
    "another function": (lambda r: setattr(r.frames[1], "name", "other"), "function", 1),
    "no break": (no_break, "break", 1),
    "a break elsewhere": (lambda r: setattr(r.breaks[0], "line", 22), "break", 1),
    "a break of another type": (lambda r: setattr(r.breaks[0], "type", "data-dependent branching"), "break", 1),
    "a break before any operation": (break_before_any_operation, "break", 0),
    "skipped": (skip, "skip", 1),
    "an error": (fail, "error", 1),
    "cached": (lambda r: setattr(r.frames[0], "status", "cached"), "cached", 0),
    "another guard failed": (lambda r: setattr(r.recompiles[0].failed_guards[0], "source", "y"), "recompile", 3),
    "no recompile": (no_recompile, "recompile", 3),
    "a symbolic size": (set_node(0, 0, shape=["s77", 8]), "size", 0),
    "another size": (set_node(0, 1, shape=[5, 8]), "size", 0),
    "another dtype": (set_node(2, 1, dtype="bfloat16"), "dtype", 2),
    "a second device": (set_node(2, 2, device="cuda:7"), "device", 2),
    "another placement": (set_node(0, 0, subclass="DTensor(Shard(0))"), "placement", 0),
    "another constant": (set_node(2, 1, code="l_x_ * 5"), "constant", 2),
    "another operation": (set_node(2, 1, code="l_x_.sin()", target="sin"), "graph", 2),
    "another collective": (aot("all_reduce.default", "reduce_scatter_tensor.default"), "collective", 1),
    "another reduction": (aot("'sum'", "'avg'"), "collective", 1),
    "another process group": (aot("mul, 4, '1'", "mul, 4, '0'"), "collective", 1),
    "another shape of a collective": (aot("f32[16, 8]", "f32[8, 8]"), "collective", 1),
    "another order of collectives": (reorder, "collective", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_difference_is_found_where_it_is(name: str) -> None:
    change, kind, step = PLANTED[name]
    report = with_difference(change)
    assert [group.ranks for group in report.groups] == [[0, 1, 3], [2]]
    hard = [d for d in report.differences if d.group != d.reference_group]
    assert [(d.kind, d.step, d.group, d.reference_group) for d in hard] == [(kind, step, 1, 0)]
    assert hard[0].file == FILE
    assert not report.alike
    assert "rank 2 differs from ranks 0, 1, 3" in str(report)
    with pytest.raises(ExpectationFailed, match="expected ranks=alike, but 4 ranks: 0, 1, 3 alike; 2 differs"):
        report.expect("ranks=alike")


def test_a_recompile_that_one_rank_lacks_is_told_with_its_cause() -> None:
    report = with_difference(no_recompile, ranks=3)
    assert "4 before, 6 now" in str(report.differences[0].reference)
    assert "recompiled on ranks 0, 1: " in str(report)


def test_a_thousand_ranks_that_are_alike_are_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times, ids, paths, addresses, devices, names of process groups and values of failed guards are each rank's own."""
    records = []
    for rank in range(1000):
        report = made(rank)
        folder = f"/scratch/node{rank // 8}/job.{rank}"
        for frame in report.frames:
            frame.file = f"{folder}/train.py"
            frame.compile_seconds = 1.0 + rank % 7 / 10
            frame.thread = 139_000_000 + rank
            frame.reason = f"<object at 0x{rank:x}> in pid {rank}"
        for graph in report.graphs:
            graph.nodes[1].file = f"{folder}/train.py"
            graph.nodes[2].code += f"; tmp = '{folder}/x.py'"
            if graph.aot_forward:
                graph.aot_forward = graph.aot_forward.replace("'1'", f"'{rank // 8 + 1}'")
        report.breaks[0].file = f"{folder}/train.py"
        report.breaks[0].text = f"at {folder} {rank}"
        records.append(record(report, rank))
    report = merge(records)
    assert [len(group.ranks) for group in report.groups] == [1000]
    assert report.differences == []
    assert report.alike
    assert report.headline().startswith(
        "1000 ranks alike: 4 graphs · 1 graph break · 0 skipped · 1 recompile · compiled in 4.00 s"
    )
    monkeypatch.setenv("COLUMNS", "100")
    assert len(str(report).splitlines()) == 1


def test_the_number_of_the_rank_as_a_constant_is_no_difference() -> None:
    def with_constant(rank: int, factor: int = 3) -> Report:
        report = made(rank)
        report.graphs[2].nodes[1].code = f"l_x_ * {factor} + {rank}"
        return report

    report = merge(record(with_constant(rank), rank) for rank in range(6))
    assert report.alike
    assert report.groups[0].rank_constants == ["f2"]
    with pytest.raises(KeyError, match="there is no 7: there are 0, 1, 2, 3, 4, 5"):
        report.report_of(7)
    report = merge(record(with_constant(99 if rank == 2 else rank), rank) for rank in range(6))
    assert {tuple(g.ranks): g.rank_constants for g in report.groups} == {(0, 1, 3, 4, 5): ["f2"], (2,): []}
    assert "the number of the rank is a constant in block" in str(report)
    report = merge(record(with_constant(rank, 4 if rank == 5 else 3), rank) for rank in range(6))
    assert [group.ranks for group in report.groups] == [[0, 1, 2, 3, 4], [5]]
    assert report.differences[0].kind == "constant"


def test_a_rank_that_was_stopped_belongs_to_those_whose_beginning_it_compiled() -> None:
    records = [record(made(rank), rank) for rank in range(3)]
    stopped = made(3)
    drop(stopped, "f3")
    stopped.graphs[1].aot_forward = None  # it had not come to the later stages
    stopped.frames[2].status = "unfinished"
    records.append(record_of(Rank(rank=3, status="no end"), stopped, world_size=6))
    report = merge(records)
    assert [group.ranks for group in report.groups] == [[0, 1, 2, 3]]
    assert [(r.rank, r.status) for r in report.ranks][3:] == [(3, "no end"), (4, "missing"), (5, "missing")]
    text = " ".join(str(report).split())
    assert "rank 3 did not end (killed, or still running); it was compiling block" in text
    assert "ranks 4, 5 left no file that can be read" in text
    assert not report.alike


def test_a_report_of_ranks_is_as_its_schema_says() -> None:
    text = generated.RANKS_SCHEMA.read_text(encoding="utf-8")
    assert text == generated.ranks_schema_text(), "run: python -m tools.generated schema"
    resource = referencing.Resource.from_contents(json.loads(generated.SCHEMA.read_text(encoding="utf-8")))
    registry = referencing.Registry().with_resource("report.schema.json", resource)
    schema = jsonschema.Draft202012Validator(json.loads(text), registry=registry)
    data = json.loads(json.dumps(with_difference(PLANTED["another collective"][0]).to_dict()))
    schema.validate(data)
    data["groups"][0]["report"]["graphs"] = 3
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(data)


def test_settings_versions_and_variables_are_compared() -> None:
    settings, variables = {"specialize_int": False}, {"NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "1"}
    records = [record(made(rank), rank, settings=settings, environment=variables) for rank in range(4)]
    records[1].versions = {"torch": "2.9.1"}
    records[2].settings = {"specialize_int": True}
    records[3].environment = {"OMP_NUM_THREADS": "1"}
    report = merge(records)
    assert [(d.kind, d.ranks, d.subject, d.value, d.reference) for d in report.differences] == [
        ("versions", [1], "torch", "2.9.1", "2.13.0"),
        ("settings", [2], "specialize_int", "True", "False"),
        ("environment", [3], "NCCL_DEBUG", "not set", "INFO"),
    ]
    assert len(report.groups) == 1
    assert not report.alike  # another torch compiles other code


def test_a_slow_rank_is_named() -> None:
    records = [record(made(rank), rank) for rank in range(8)]
    records[5].rank.seconds[1] = 30.0
    report = merge(records)
    slow = report.slow[0]
    assert (slow.slowest_rank, slow.step, slow.slowest, slow.median) == (5, 1, 30.0, 1.0)
    assert "rank 5 took 30 s to compile block, the median of the others is 1.00 s" in str(report)


def test_the_data_is_json_and_back() -> None:
    report = with_difference(PLANTED["no break"][0])
    again = RanksReport.from_dict(json.loads(json.dumps(report.to_dict())))
    assert again.to_dict() == report.to_dict()
    assert str(again) == str(report)
    assert RanksReport.from_dict({"ranks_schema": 2}).groups == []
    for damage in (
        {},
        {"ranks_schema": 1},
        {"ranks_schema": True},
        {**report.to_dict(), "ranks": 3},
        {**report.to_dict(), "groups": [{}]},
    ):
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            RanksReport.from_dict(copy.deepcopy(damage))


def test_text_of_others_is_shown_safely_and_short() -> None:
    def change(report: Report) -> None:
        report.breaks[0].source = "print('\x1b[31m')\n\x07" * 500
        report.breaks[0].type = "\x1b]0;title\x07"
        no_break(report)

    text = str(with_difference(change, ranks=3, odd=0))
    assert "\x1b" not in text
    assert "\x07" not in text


def test_expectations_hold_for_each_group() -> None:
    report = merge(record(made(rank), rank) for rank in range(2))
    assert report.expect("ranks=alike, breaks<=1") is report
    with pytest.raises(ExpectationFailed):
        report.expect("breaks=0")
    with pytest.raises(ValueError, match="nothing is expected"):
        report.expect("")
    with pytest.raises(ValueError, match="cannot expect 'ranks=3'"):
        report.expect("ranks=3")
