"""What each break costs a call, how that is computed, and which one to fix first.

The promise is about removing the break *and* what caused it (the call that cannot be compiled): then the lookups,
prologues and eager Python between the graph before and the graph after are gone, and so is a copy to Python (`.item()`).
The tensor ops in the gap would still have to run, inside a graph; how fast is not known, nor is what fusing two graphs
would gain.  So the promise is a lower bound, and what is unknown is said and not added.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynascope.compiler.profile.timing import middle_half
from dynascope.compiler.report import Break, BreakCost, Profile, Report, seconds
from dynascope.compiler.source.lines import label

if TYPE_CHECKING:
    from dynascope.compiler.profile.attribution import Call, Piece

#: nanoseconds that one start or end of an event may take the profiler; more than that slows all of the call down alike
_MOST_EDGE = 3000
#: a value goes from a tensor to Python: what removing such a break removes
_TO_PYTHON = ("aten::item", "aten::is_nonzero", "aten::_local_scalar_dense", "aten::equal")

_CPU = (
    "the time from the end of the graph before the break to the start of the graph after it: lookups of guards, prologues of "
    "the code entered after it, and the eager Python in between, without the profiler's own time. Median of {calls} calls"
)
_DEVICE = (
    "how long the device had nothing to do because of the break: between the last kernel launched before it and the first "
    "launched after it, but no more than the processor's own time in the gap. Median of {calls} calls"
)
_OPS = "; tensor ops in the gap ({time} a call) are not counted, in a graph they still have to run"
_LOST = "; what fusing the two graphs would gain is unknown and not counted"
_SKIPPED = (
    "unknown: the break makes Dynamo skip the whole frame, which runs eagerly for {time} a call; how long it would take "
    "compiled is not known"
)


def break_costs(calls: list[Call], report: Report, own: float = 0.0) -> list[BreakCost]:
    """A cost for each break that the calls met; the dearest first, unknown ones last.

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
    return BreakCost(break_=break_, seconds=None, eager_seconds=eager, how=_SKIPPED.format(time=time_text(eager)))


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
    with_device = any(call.device for call in calls)
    still_runs = _median(ops)
    how = (_DEVICE if with_device else _CPU).format(calls=len(calls))
    how += (_OPS.format(time=time_text(still_runs)) if still_runs > 0 else "") + _LOST
    share = statistics.median(totals) / plain.call if plain.call else None
    return BreakCost(
        break_=break_, seconds=_median(totals), share=share, spread=middle_half([t * 1e-9 for t in totals]), how=how,
        parts={name: _median(values) for name, values in parts.items()}, ops_seconds=still_runs,
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


def first_to_fix(profile: Profile, report: Report) -> str:
    """One sentence: the break whose removal gains most, as far as that is known; empty where there is none."""
    at = {b.id: place(b) + (f" ({b.source.strip()[:60]})" if b.source.strip() else "") for b in report.breaks}
    known = [c for c in profile.breaks if c.seconds is not None and c.seconds > 0]
    unknown = [c for c in profile.breaks if c.seconds is None and c.eager_seconds]
    words = []
    if known:
        best = known[0]
        share = f", {100 * best.share:.0f} % of it" if best.share is not None else ""
        words.append(f"the break at {at[best.break_]} costs {time_text(best.seconds or 0)} a call{share}")
    if unknown and (not known or (unknown[0].eager_seconds or 0) > (known[0].seconds or 0)):
        worst = unknown[0]
        words.append(
            f"the break at {at[worst.break_]} makes {time_text(worst.eager_seconds or 0)} a call run eagerly "
            "(what compiling it gains is unknown)"
        )
    return f"Fix this first: {'; and '.join(words)}" if words else ""


def place(found: Break) -> str:
    """`In[3]:4`, `model.py:12`."""
    return f"{label(found.file, found.cell)}:{found.line}"


def time_text(value: float) -> str:
    """`480 ns`, `12 µs`, `1.2 ms`, `0.84 s`: to two or three digits."""
    if value < 1e-6:
        return f"{value * 1e9:.0f} ns"
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    return f"{value * 1e3:.1f} ms" if value < 0.1 else seconds(value)
