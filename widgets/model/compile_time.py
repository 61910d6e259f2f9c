"""The compile time in the model: its phases to scale, the most expensive ones, and those of one frame.

Promises: a segment's `id` is the id of a frame, or empty; a phase is drawn below the phase that contains it; all phases that
the report has are drawn, and a note counts those that it lacks; time in which nothing was compiled is left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict

from dynascope.compiler.report import CompilePhase, CompileTime, Frame, Report, time_text
from dynascope.widgets.labels.compile_time import KINDS, cache_words, choice_words, missing_words, repeat_words
from dynascope.widgets.labels.words import Places, printable, shorten
from dynascope.widgets.wire import CompileTimeLine, Part, PhaseRow, Share, TimeSegment, TunedRow

#: at most this many rows in each table (twice as many phases and choices in a frame's tab), and this many repeated blocks
ROWS, REPEATS = 10, 5


def compile_time_line(report: Report, places: Places) -> CompileTimeLine | None:
    """The compile time of a report; None if none was recorded."""
    time = report.compile_time
    if time is None or not time.seconds:
        return None
    names = {f.id: shorten(places.name(f), 80) for f in report.frames}
    clock = _Clock(time)
    rows, shares = _rows(time), _shares(time)
    most = ", ".join(f"{s['name']} {100 * s['part']:.0f}%" for s in shares[:3])
    return {
        # the time that passed; the shares are fractions of the sum over all threads
        "title": f"Compile time · {time_text(clock.total)} · {most}", "total": time_text(clock.total),
        "lanes": [name for name, _ in rows], "segments": _segments(time, names, clock, [key for _, key in rows]),
        "shares": shares, "rows": _most_expensive(time, names),
        "tuned": _tuned(time, names), "notes": [printable(s, 600) for s in missing_words(time, ROWS)],
        "repeats": [printable(repeat_words(b, report, places), 800) for b in time.repeats[:REPEATS]],
        "caches": [printable(s, 600) for s in cache_words(time)],
    }  # fmt: skip


def times_part(report: Report, frame: Frame) -> list[Part]:
    """The tab on the compile of a frame: its longest phases, the answers of the caches, and autotuning; [] without phases."""
    time = report.compile_time
    mine = [p for p in time.phases if p.frame == frame.id] if time is not None else []
    if time is None or not mine:
        return []
    own, whole = defaultdict[str, float](float), defaultdict[str, float](float)
    count = Counter(p.name for p in mine)
    for phase in mine:
        own[phase.name] += phase.self_seconds
        whole[phase.name] += phase.seconds
    kinds = {p.name: KINDS[p.kind][0] for p in mine}
    rows = [
        [shorten(name, 120) + (f" {count[name]}×" if count[name] > 1 else ""), kinds[name],
         f"{time_text(seconds)} alone, {time_text(whole[name])} with inner phases", ""]
        for name, seconds in sorted(own.items(), key=lambda item: -item[1])[: 2 * ROWS]
    ]  # fmt: skip
    for c in (c for c in time.caches if c.frame == frame.id):
        saved = f"saved {time_text(c.saved_seconds)}" if c.saved_seconds else printable(c.reason or "", 400)
        rows.append([f"{c.cache} cache: {shorten(c.outcome, 40)}", "", saved, ""])
    for choice in [c for c in time.autotuning if c.frame == frame.id][: 2 * ROWS]:
        what, tried, best = choice_words(choice)
        rows.append([shorten(f"Autotuning of {what}", 200), tried, shorten(f"fastest: {best}", 400), ""])
    return [{"key": "times", "name": f"Compile time ({time_text(_outermost(mine))})", "kind": "list", "body": rows}]


def _outermost(phases: list[CompilePhase]) -> float:
    """Total seconds of the outermost phases: those that no other phase of the list contains."""
    total, end, lane = 0.0, 0.0, -1
    for phase in phases:  # sorted by lane and start
        if phase.lane != lane or phase.start >= end:
            total += phase.seconds
            end, lane = phase.start + phase.seconds, phase.lane
    return total


class _Clock:
    """Maps a time, in seconds since the first phase began, to a fraction of the time in which something was compiled."""

    def __init__(self, time: CompileTime) -> None:
        self.starts: list[float] = []
        self.before: list[float] = []
        total, end = 0.0, 0.0
        for phase in sorted((p for p in time.phases if not p.depth), key=lambda p: p.start):
            last = phase.start + phase.seconds
            if not self.starts or phase.start > end:
                self.starts.append(phase.start)
                self.before.append(total)
                end = phase.start
            total += max(0.0, last - end)
            end = max(end, last)
        self.total = total

    def part(self, seconds: float) -> float:
        index = max(0, bisect_right(self.starts, seconds) - 1)
        return (self.before[index] + seconds - self.starts[index]) / self.total if self.total else 0.0


def _rows(time: CompileTime) -> list[tuple[str, tuple[int, int]]]:
    """(name, (lane, depth)) for each depth of each lane; only the first row of a lane is named, if there are several lanes."""
    keys = sorted({(p.lane, p.depth) for p in time.phases})
    return [("" if depth or len(time.lanes) < 2 else shorten(time.lanes[lane], 60), (lane, depth)) for lane, depth in keys]


def _segments(time: CompileTime, names: dict[str, str], clock: _Clock, rows: list[tuple[int, int]]) -> list[TimeSegment]:
    number = {key: i for i, key in enumerate(rows)}
    segments: list[TimeSegment] = []
    for p in sorted(time.phases, key=lambda p: (p.lane, p.depth, p.start)):
        name, where = shorten(p.name, 120), names.get(p.frame or "", "")
        alone = f", {time_text(p.self_seconds)} of it alone" if p.self_seconds != p.seconds else ""
        of = f"; {'backward of ' if p.backward else ''}{where}" if where else ""
        at = f" ({p.compile_id})" if p.compile_id else ""
        segments.append({
            "kind": p.kind, "lane": number[p.lane, p.depth], "x": round(clock.part(p.start), 6),
            "w": round(p.seconds / clock.total, 6) if clock.total else 0.0, "label": name,
            "full": printable(f"{name}: {time_text(p.seconds)}{alone}, {KINDS[p.kind][0]}{of}{at}", 600), "id": p.frame or "",
        })  # fmt: skip
    return segments


def _shares(time: CompileTime) -> list[Share]:
    own = defaultdict[str, float](float)
    for total in time.totals:
        own[total.kind] += total.self_seconds
    return [
        {"name": KINDS[kind][0], "kind": kind, "part": round(own[kind] / time.seconds, 4), "full": KINDS[kind][1]}
        for kind in sorted(KINDS, key=lambda kind: -own[kind]) if own[kind] > 0
    ]  # fmt: skip


def _most_expensive(time: CompileTime, names: dict[str, str]) -> list[PhaseRow]:
    """The phases that took longest, not counting the phases nested in them."""
    frames: dict[str, dict[str, float]] = {}
    for p in time.phases:
        frames.setdefault(p.name, defaultdict(float))[p.frame or ""] += p.self_seconds
    rows: list[PhaseRow] = []
    for t in sorted(time.totals, key=lambda t: -t.self_seconds)[:ROWS]:
        frame = max(frames.get(t.name, {"": 0.0}).items(), key=lambda item: item[1])[0]
        rows.append({
            "name": shorten(t.name, 120), "kind": t.kind, "what": KINDS[t.kind][0], "own": time_text(t.self_seconds),
            "total": time_text(t.seconds), "count": t.count, "where": names.get(frame, ""),
            "id": frame if frame in names else "",
        })  # fmt: skip
    return rows


def _tuned(time: CompileTime, names: dict[str, str]) -> list[TunedRow]:
    """The operations whose autotuning took longest, and what it chose."""
    rows: list[TunedRow] = []
    for choice in sorted(time.autotuning, key=lambda c: -c.seconds)[:ROWS]:
        what, tried, best = choice_words(choice)
        frame = choice.frame or ""
        rows.append({
            "name": shorten(what, 200), "tried": tried, "best": shorten(best, 400), "where": names.get(frame, ""),
            "id": frame if frame in names else "",
        })  # fmt: skip
    return rows
