"""Counts of a report: its summary, and the notes on source lines that occur many times in one graph."""

from __future__ import annotations

from collections import Counter

from dynascope.compiler.report import Node, Report, Summary, label
from dynascope.compiler.source.lines import CellResolver
from dynascope.compiler.source.origin import in_torch

#: a line with at least this many calls of one function in a graph was most likely in a loop
_OFTEN = 8


def summarise(report: Report) -> Summary:
    """The counts of a report; frames with status `ignored` are not counted."""
    frames = [f for f in report.frames if f.status != "ignored"]
    statuses = Counter(f.status for f in frames)
    return Summary(
        frames=len(frames),
        graphs=len(report.graphs),
        ops=sum(g.ops or 0 for g in report.graphs),
        breaks=len(report.breaks),
        resumes=sum(f.kind == "resume" and f.recompile_of is None for f in frames),
        skipped=statuses["skipped"],
        recompiles=sum(r.refused_by is None for r in report.recompiles),
        compile_seconds=round(sum(f.compile_seconds or 0.0 for f in frames), 6),
        empty=statuses["empty"],
        cached=statuses["cached"],
        failed=statuses["failed"],
        unfinished=statuses["unfinished"],
        unexpected=sum(b.allowed is not True for b in report.breaks),
        unknown_breaks=_unknown_breaks(report),
    )


def _unknown_breaks(report: Report) -> int:
    """The number of places at which resume functions continue although no break is known.

    Code compiled before the recording is left out.
    """
    cached = {f.id for f in report.frames if f.status == "cached"}
    resumes = (f for f in report.frames if f.kind == "resume" and f.status != "cached" and f.continues not in cached)
    return len({(f.rank, f.file, f.code_name) for f in resumes if f.break_ is None})


def unrolled(nodes: list[Node], cell_of: CellResolver) -> list[str]:
    """One sentence for each line outside torch that occurs many times in a graph, because Dynamo unrolls loops."""
    times = Counter((n.file, n.line, n.target) for n in nodes if n.file and n.line and n.op.startswith("call_"))
    most: dict[tuple[str, int], int] = {}
    for (file, line, _), count in times.items():
        if file and line and count >= _OFTEN and not in_torch(file):
            most[(file, line)] = max(count, most.get((file, line), 0))
    return [
        f"{label(file, cell_of(file))}:{line} occurs {count} times in this graph: Dynamo unrolls loops"
        for (file, line), count in most.items()
    ]
