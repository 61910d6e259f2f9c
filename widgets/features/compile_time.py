"""Compile time: its phases to scale, the most expensive ones, caches, autotuning, repeated blocks; and a trace for Perfetto.

Promises: a segment's `id` is the id of a frame, or empty; a phase is drawn below the phase that contains it; all phases that
the report has are drawn, and a note counts those that it lacks; time in which nothing was compiled is left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from typing import Any, TypedDict

from dynascope.compiler.report import (
    AutotuneChoice,
    CompilePhase,
    CompileTime,
    Frame,
    PhaseKind,
    RepeatedBlock,
    Report,
    plural,
    seconds,
    time_text,
)
from dynascope.widgets.detail import Part, tab
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.run_time import Share, TimeSegment, share_words
from dynascope.widgets.terminal import Terminal
from dynascope.widgets.words import printable, shorten

#: at most this many rows in each table (twice as many phases and choices in a frame's tab), and this many repeated blocks
ROWS, REPEATS = 10, 5
#: name and explanation of each kind of phase
KINDS: dict[PhaseKind, tuple[str, str]] = {
    "dynamo": ("Dynamo", "tracing bytecode into graphs"),
    "guards": ("guards", "building the guards of compiled code"),
    "backend": ("backend", "the backend, without the phases that it names"),
    "aot": ("AOTAutograd", "tracing forward and backward, functionalization, partitioning"),
    "passes": ("graph passes", "Inductor's passes over the graphs"),
    "lowering": ("lowering", "Inductor: from a graph to its own operations"),
    "codegen": ("code generation", "Inductor: scheduling, fusing, writing kernels and their wrapper"),
    "compiler": ("C++ and Triton", "compilers of the generated code, and loading it"),
    "autotuning": ("autotuning", "trying variants of kernels"),
    "cache": ("caches", "computing keys, looking up, loading and saving"),
    "other": ("other", "phases that dynascope does not know"),
}
#: outcome of a lookup in a cache -> its plural; any other word is the compiler's own
_OUTCOMES = {"hit": "hits", "miss": "misses", "bypass": "bypasses"}


class PhaseRow(TypedDict):
    """One of the most expensive phases of the compiler; `id`: the frame in which it took longest, or empty."""

    name: str
    kind: str
    what: str
    own: str
    total: str
    count: int
    where: str
    id: str


class TunedRow(TypedDict):
    """One operation for which kernels were timed; `id`: its frame, or empty."""

    name: str
    tried: str
    best: str
    where: str
    id: str


class CompileTimeLine(TypedDict):
    """Where the time of the compiles went; each lane of the report has a lane here for each depth of nesting."""

    title: str
    total: str
    lanes: list[str]
    segments: list[TimeSegment]
    shares: list[Share]
    rows: list[PhaseRow]
    tuned: list[TunedRow]
    caches: list[str]
    repeats: list[str]
    notes: list[str]


def compile_time_line(places: Places) -> CompileTimeLine | None:
    """The compile time of a report; None if none was recorded."""
    time = places.report.compile_time
    if time is None or not time.seconds:
        return None
    names = {f.id: shorten(places.name(f), 80) for f in places.report.frames}
    clock, shares = _Clock(time), _shares(time)
    lanes = sorted({(p.lane, p.depth) for p in time.phases})
    most = ", ".join(f"{s['name']} {100 * s['part']:.0f}%" for s in shares[:3])
    return {
        # the shares are fractions of the sum over all threads
        "title": f"Compile time · {seconds(time.elapsed)} · {most}", "total": seconds(time.elapsed),
        # a lane for each depth of each thread; only the first of a thread is named, if there are several threads
        "lanes": ["" if depth or len(time.lanes) < 2 else shorten(time.lanes[lane], 60) for lane, depth in lanes],
        "segments": [_segment(p, names, clock, lanes.index((p.lane, p.depth)))
                     for p in sorted(time.phases, key=lambda p: (p.lane, p.depth, p.start))],
        "shares": shares, "rows": _most_expensive(time, names),
        "tuned": [_tuned(c, names) for c in sorted(time.autotuning, key=lambda c: -c.seconds)[:ROWS]],
        "notes": [printable(s, 600) for s in _missing(time)],
        "repeats": [printable(repeat_words(b, places), 800) for b in time.repeats[:REPEATS]],
        "caches": [printable(s, 600) for s in cache_words(time)],
    }  # fmt: skip


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


def _segment(p: CompilePhase, names: dict[str, str], clock: _Clock, lane: int) -> TimeSegment:
    name, where = shorten(p.name, 120), names.get(p.frame or "", "")
    alone = f", {time_text(p.self_seconds)} of it alone" if p.self_seconds != p.seconds else ""
    of = f"; {'backward of ' if p.backward else ''}{where}" if where else ""
    at = f" ({p.compile_id})" if p.compile_id else ""
    return {
        "kind": p.kind, "lane": lane, "x": round(clock.part(p.start), 6),
        "w": round(p.seconds / clock.total, 6) if clock.total else 0.0, "label": name,
        "full": printable(f"{name}: {time_text(p.seconds)}{alone}, {KINDS[p.kind][0]}{of}{at}", 600), "id": p.frame or "",
    }  # fmt: skip


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


def _tuned(choice: AutotuneChoice, names: dict[str, str]) -> TunedRow:
    """What was tuned, `mm 8x64, 64x8 (float32)`; the trials, `3 variants timed in 1.20 s`; and the fastest, `name, 12 µs`."""
    kinds = ", ".join(dict.fromkeys((choice.dtypes or "").split(", ")))
    what = " ".join(part for part in (choice.op, choice.shapes, f"({kinds})" if kinds else "") if part)
    tried = plural(choice.choices, "variant") if choice.choices is not None else "variants"
    best = choice.best or "unknown"
    best += f", {time_text(choice.best_ms / 1e3)}" if choice.best_ms is not None else ""
    best += f" ({choice.best_description})" if choice.best_description else ""
    frame = choice.frame or ""
    return {
        "name": shorten(what, 200), "tried": f"{tried} timed in {seconds(choice.seconds)}", "best": shorten(best, 400),
        "where": names.get(frame, ""), "id": frame if frame in names else "",
    }  # fmt: skip


def cache_words(time: CompileTime) -> list[str]:
    """What each cache gave: `FX graph cache: 2 hits (saved 4.10 s), 1 bypass (reason)`."""
    sentences = []
    for cache in dict.fromkeys(lookup.cache for lookup in time.caches):
        lookups = [lookup for lookup in time.caches if lookup.cache == cache]
        parts = []
        for outcome, count in Counter(lookup.outcome for lookup in lookups).items():
            same = [lookup for lookup in lookups if lookup.outcome == outcome]
            saved = sum(lookup.saved_seconds or 0.0 for lookup in same)
            reasons = [*dict.fromkeys(lookup.reason for lookup in same if lookup.reason)]
            more = f"saved {seconds(saved)}" if saved else "; ".join(reasons[:3])
            word = outcome if count == 1 else _OUTCOMES.get(outcome, outcome)
            parts.append(f"{count} {word}" + (f" ({more})" if more else ""))
        sentences.append(f"{cache} cache: {', '.join(parts)}")
    return sentences


def repeat_words(block: RepeatedBlock, places: Places) -> str:
    """What repeats, how often, and how to compile it only once."""
    known = [places.graphs[g] for g in block.graphs if g in places.graphs]
    graphs = [number for number, _ in known]
    about = [f"{block.modules[0]} … {block.modules[-1]}"] if block.modules else []
    about += [", ".join(block.functions[:3])] if block.functions else []
    about += [places.at(block.file, block.line, block.cell)] if block.file is not None and block.line is not None else []
    where = f" ({'; '.join(about)})" if about else ""
    if len(graphs) > 1:
        frames = {g.frame for _, g in known if g.id in block.graphs[1:]}
        later = [places.frames[id].compile_seconds for id in frames if id in places.frames]
        took = f": the compiles after the first took {seconds(sum(s or 0.0 for s in later))}" if None not in later else ""
        listed = ", ".join(map(str, graphs[:8])) + (", …" if len(graphs) > 8 else "")
        return f"Graphs {listed} are equal: {plural(block.ops, 'operation')}{where} compiled {block.count} times{took}."
    number = graphs[0] if graphs else "?"
    return (
        f"The same block of {plural(block.ops, 'operation')}{where} was compiled {block.count} times in graph {number}: "
        f"{100 * block.share:.0f}% of the graph. As a region (torch.compiler.nested_compile_region), it would be compiled "
        "once; what that would save is unknown."
    )


def _missing(time: CompileTime) -> list[str]:
    """Notes on what is unknown or not shown."""
    notes = []
    if (more := len(time.autotuning) - ROWS) > 0:
        notes.append(f"{plural(more, 'more operation')} autotuned: report.compile_time.autotuning has them")
    if time.unfinished:
        names = ", ".join(dict.fromkeys(time.unfinished))
        have, their = ("has", "its") if len(time.unfinished) == 1 else ("have", "their")
        ended = f"{plural(len(time.unfinished), 'phase')} {have} no recorded end; {their} time is not counted"
        notes.append(f"{ended}: {names}")
    if time.left_out:
        notes.append(f"{plural(time.left_out, 'short phase')} not drawn, but counted in the table")
    return notes


def times_part(frame: Frame, places: Places) -> list[Part]:
    """The tab on the compile of a frame: its longest phases, the answers of the caches, and autotuning; [] without phases."""
    time = places.report.compile_time
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
    for tuned in [_tuned(c, {}) for c in time.autotuning if c.frame == frame.id][: 2 * ROWS]:
        rows.append([f"Autotuning of {tuned['name']}", tuned["tried"], f"fastest: {tuned['best']}", ""])
    total, end, lane = 0.0, 0.0, -1
    for phase in mine:  # sorted by lane and start; only the outermost ones count
        if phase.lane != lane or phase.start >= end:
            total += phase.seconds
            end, lane = phase.start + phase.seconds, phase.lane
    return tab("times", f"Compile time ({time_text(total)})", "list", rows)


def compile_time_lines(places: Places, terminal: Terminal) -> list[str]:
    """Where the time of the compiles went: the most expensive phases, autotuning, repeated blocks and the caches."""
    line = compile_time_line(places)
    if line is None:
        return []
    out = ["", terminal.paint(f"compile time: {line['total']}", "bold"), *terminal.wrap(share_words(line["shares"]), "    ")]
    for row in line["rows"]:
        times = f" {row['count']}×" if row["count"] > 1 else ""
        inside = f" ({row['total']} with inner phases)" if row["total"] != row["own"] else ""
        out += terminal.wrap(f"{row['own']:>8} {row['name']}{times}, {row['what']}{inside}", "    ", 2)
    for tuned in line["tuned"]:
        out += terminal.wrap(f"autotuning of {tuned['name']}: {tuned['tried']}; fastest: {tuned['best']}", "    ", 3)
    for sentence in (*line["repeats"], *line["caches"], *line["notes"]):
        out += terminal.wrap(sentence, "    ", 6)
    return out


def to_compile_trace(report: Report) -> dict[str, Any]:
    """The trace, JSON-ready: one complete event for each phase, one thread for each lane, times in microseconds.

    Raises ValueError if the compile time is unknown.
    """
    time = report.compile_time
    if time is None or not time.phases:
        raise ValueError("the times of the compiler's phases are unknown: nothing was compiled, or torch did not record them")
    names = {f.id: f.name for f in report.frames}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": name}}
        for tid, name in enumerate(time.lanes, 1)
    ]  # fmt: skip
    for p in time.phases:
        about = {"compile_id": p.compile_id, "frame": names.get(p.frame or ""), "backward": p.backward or None}
        events.append({
            "ph": "X", "name": p.name, "cat": KINDS[p.kind][0], "pid": 1, "tid": p.lane + 1,
            "ts": round(p.start * 1e6, 1), "dur": round(p.seconds * 1e6, 1),
            "args": {"alone_us": round(p.self_seconds * 1e6, 1), **{k: v for k, v in about.items() if v is not None}},
        })  # fmt: skip
    return {"traceEvents": events, "displayTimeUnit": "ms"}
