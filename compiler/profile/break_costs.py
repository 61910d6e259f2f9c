"""What each break costs a call.

The promise is about removing the break *and* what caused it (the call that cannot be compiled): then the lookups,
prologues and eager Python between the graph before and the graph after are gone, and so is a copy to Python (`.item()`).
The tensor ops in the gap would still have to run, inside a graph; how fast is not known, nor is what fusing two graphs
would gain.  So the promise is a lower bound, and what is unknown is not added.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynascope.compiler.profile.timing import middle_half
from dynascope.compiler.report import BreakCost, CostParts, Report

if TYPE_CHECKING:
    from dynascope.compiler.profile.attribution import Call, Piece

#: nanoseconds that one start or end of an event may take the profiler; more than that slows all of the call down alike
_MOST_EDGE = 3000
#: a value goes from a tensor to Python: what removing such a break removes
_TO_PYTHON = ("aten::item", "aten::is_nonzero", "aten::_local_scalar_dense", "aten::equal")


def break_costs(calls: list[Call], report: Report, own: float = 0.0) -> list[BreakCost]:
    """A cost for each break that the calls met; the most expensive first, unknown ones last.

    `own`: seconds of each call that the profiler takes for itself; they are taken off, so that what is left adds up to the
    call without a profiler.
    """
    costs = []
    plain = _Plain.of(calls, own)
    for found in report.breaks:
        pieces = [[p for p in call.pieces if p.break_ == found.id] for call in calls]
        if not any(pieces):
            continue
        skips = found.outcome == "skipped" and not any(h.outcome == "resumed" for h in found.hits)
        costs.append(_skipped(found.id, calls, pieces) if skips else _resumed(found.id, calls, pieces, plain))
    return sorted(costs, key=lambda c: (c.seconds is None, -(c.seconds or 0), -(c.eager_seconds or 0)))


@dataclass
class _Plain:
    """What a stretch takes without the profiler."""

    #: nanoseconds of the whole call
    call: float
    #: nanoseconds for each start or end of an event, and then a factor
    edge: float
    factor: float

    @classmethod
    def of(cls, calls: list[Call], own: float) -> _Plain:
        duration = statistics.median(call.duration for call in calls)
        edges = statistics.median(sum(p.edges for p in call.pieces) for call in calls)
        excess = min(max(0.0, own) * 1e9, duration)
        edge = min(_MOST_EDGE, excess / edges) if edges else 0.0
        left = duration - edge * edges
        return cls(duration - excess, edge, (duration - excess) / left if left else 0.0)

    def length(self, piece: Piece) -> float:
        return max(0.0, piece.end - piece.start - piece.edges * self.edge) * self.factor


def _skipped(break_: str, calls: list[Call], pieces: list[list[Piece]]) -> BreakCost:
    eager = _median([sum(p.end - p.start for p in of_call if p.kind == "gap") for of_call in pieces])
    return BreakCost(break_=break_, seconds=None, eager_seconds=eager, method="eager frame", calls=len(calls))


def _resumed(break_: str, calls: list[Call], pieces: list[list[Piece]], plain: _Plain) -> BreakCost:
    names = ("lookups", "prologue", "python", "synchronisation")
    parts: dict[str, list[float]] = {name: [] for name in names}
    ops, totals, times = [], [], []
    for call, of_call in zip(calls, pieces, strict=True):
        sums = dict.fromkeys(names, 0.0)
        still = 0.0
        for piece in of_call:
            length = plain.length(piece)
            if piece.kind == "lookup":
                sums["lookups"] += length
            elif piece.kind == "prologue":
                sums["prologue"] += length
            elif piece.kind == "gap":
                in_ops = sum(t for t, _ in piece.ops.values())
                gone = sum(t for name, (t, _) in piece.ops.items() if name in _TO_PYTHON)
                sums["python"] += max(0, length - in_ops)
                sums["synchronisation"] += gone
                still += in_ops - gone
        total = min(sum(sums.values()), plain.call)
        for name in names:
            parts[name].append(sums[name])
        totals.append(min(total, _idle(call, of_call)) if call.device else total)
        ops.append(still)
        times.append(_times(of_call))
    share = statistics.median(totals) / plain.call if plain.call else None
    return BreakCost(
        break_=break_, seconds=_median(totals), share=share, spread=middle_half([t * 1e-9 for t in totals]),
        method="device idle" if any(call.device for call in calls) else "gap", calls=len(calls),
        parts=CostParts(**{name: _median(values) for name, values in parts.items()}), ops_seconds=_median(ops),
        times=statistics.median(times),
    )  # fmt: skip


def _times(pieces: list[Piece]) -> int:
    """How often the call met the break: the frame that met it most often tells, callers meet it as often or less."""
    entries: dict[str | None, set[int]] = {}
    for piece in pieces:
        if piece.kind == "gap":
            entries.setdefault(piece.frame, set()).add(piece.entry)
    return max(map(len, entries.values()), default=0)


def _idle(call: Call, pieces: list[Piece]) -> int:
    """Nanoseconds in which the devices had nothing to do because of these pieces (each run of neighbours is one gap)."""
    total = 0
    for start, end in _runs(pieces):
        before = [d[4] for d in call.device if (d[5] if d[5] is not None else d[3]) < start]
        inside = [d for d in call.device if start <= (d[5] if d[5] is not None else d[3]) < end]
        after = [d[3] for d in call.device if (d[5] if d[5] is not None else d[3]) >= end]
        free = max([start, *before])
        until = min(after) if after else end
        total += max(0, until - free - sum(max(0, d[4] - max(d[3], free)) for d in inside))
    return total


def _runs(pieces: list[Piece]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for piece in pieces:
        if runs and runs[-1][1] == piece.start:
            runs[-1] = (runs[-1][0], piece.end)
        else:
            runs.append((piece.start, piece.end))
    return runs


def _median(nanoseconds: Sequence[float]) -> float:
    return statistics.median(nanoseconds) * 1e-9
