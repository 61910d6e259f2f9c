"""The run-time part of the model: the time line of one call, to scale, the shares, and what each break costs.

Promises: a segment's `id` names something that the view can select (graph, break or frame), or is empty; a lane has at most
`MOST` segments; all numbers come from the report.  If the report has more for a lane, those too short to be seen are merged by
kind within each hundredth of the call: widths stay true, but the order inside a hundredth is lost, and the tooltips say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from msgspec.structs import asdict, replace

from dynascope.compiler.report import BreakCost, Profile, Report, Segment, time_text
from dynascope.widgets.drawing.palette import graph_tone
from dynascope.widgets.labels.run_time import (
    call_words,
    cost_words,
    first_to_fix,
    input_words,
    inputs_summary,
    profiled_words,
    verdict_words,
)
from dynascope.widgets.labels.words import printable, shorten
from dynascope.widgets.wire import InputRow, Share, TimeLine, TimeSegment

MOST = 1500
#: on lanes with more segments, a segment of at least `_LONG` of the call is drawn as it is; shorter ones are merged within each
#: `_GATHERED` of the call, into at most `_KINDS` by kind: at most 200 + 4 * (100 + 200 + 1) in all, fewer than `MOST`
_LONG, _GATHERED, _KINDS = 1 / 200, 1 / 100, 4
#: for each share its name, its kind (which sets its color) and what it means
_SHARES = {
    "graphs": ("compiled graphs", "graph", "the captured graphs, as the backend compiled them"),
    "gaps": ("gaps", "gap", "eager Python and eager ops between two graphs"),
    "lookups": ("guards", "lookup", "looking for compiled code whose guards hold"),
    "prologue": ("prologue", "prologue", "bytecode and the backend's wrappers around the compiled graphs"),
    "waiting": ("waiting", "wait", "the processor waits for the device"),
    "unaccounted": ("unaccounted", "unaccounted", "no event of the profiler explains this time"),
    "device busy": ("device busy", "kernel", "at least one kernel or copy runs on the device; it overlaps with the others"),
}


def timeline(report: Report) -> TimeLine | None:
    """The time line; None if nothing was profiled."""
    profile = report.profile
    if profile is None:
        return None
    drawn = max((s.start + s.duration for s in profile.segments), default=0.0)
    return {
        "total": time_text(drawn), "call": call_words(profile), "profiled": profiled_words(profile),
        "lanes": [shorten(lane, 60) for lane in profile.lanes],
        "segments": _segments(profile, drawn, report), "shares": _shares(profile),
        "verdict": printable(verdict_words(profile), 1000), "first": printable(first_to_fix(profile, report), 1000),
        "first_id": next((c.break_ for c in profile.breaks if c.seconds or c.eager_seconds), ""),
        "devices": printable(", ".join(profile.devices), 300),
        "inputs": _inputs(report), "inputs_summary": inputs_summary(report.inputs) if report.inputs else "",
    }  # fmt: skip


def _inputs(report: Report) -> list[InputRow]:
    return [
        {
            "arguments": shorten(run.arguments, 120), "outcome": run.outcome, "words": printable(input_words(run), 600),
            "id": next(iter(run.frames), ""),
        }
        for run in report.inputs or ()
    ]  # fmt: skip


def cost_facts(cost: BreakCost) -> list[list[str]]:
    """Facts about the cost of a break, for the detail of the break."""
    facts = [["run time", cost_words(cost), ""]]
    if cost.times > 1:
        facts.append(["reached", f"{cost.times:g} times a call", ""])
    for name, value in asdict(cost.parts).items() if cost.parts else ():
        if value > 0:
            facts.append([f"  {name}", time_text(value), ""])
    if cost.ops_seconds > 0:
        facts.append(["  tensor ops in the gap", f"{time_text(cost.ops_seconds)}, not counted", ""])
    return facts


def _segments(profile: Profile, drawn: float, report: Report) -> list[TimeSegment]:
    lanes = {lane: number for number, lane in enumerate(profile.lanes)}
    graphs = {g.id: number for number, g in enumerate(report.graphs)}
    segments: list[TimeSegment] = []
    for lane in profile.lanes:
        on_lane = [s for s in profile.segments if s.lane == lane]
        for run in _runs(on_lane, drawn) if len(on_lane) > MOST else [[s] for s in on_lane]:
            segments += [_segment(s, label, drawn, lanes, graphs) for s, label in _merged(run)]
    return segments


def _runs(segments: list[Segment], drawn: float) -> list[list[Segment]]:
    """The segments in runs to be merged: neighboring short ones of one hundredth; a long segment is a run by itself."""

    def key(segment: Segment) -> tuple[bool, float]:
        is_long = segment.duration >= _LONG * drawn
        return is_long, segment.start if is_long else segment.start // (_GATHERED * drawn)

    return [list(run) for _, run in groupby(segments, key)]


def _merged(run: list[Segment]) -> Iterator[tuple[Segment, str]]:
    """(segment, label) for each kind in a run; if there are more than `_KINDS`, those with the least time are merged into one.

    The segment is the longest of its kind, made as wide as all of them; label "": it is the only one.
    """
    kinds: dict[str, list[Segment]] = {}
    for segment in run:
        kinds.setdefault(segment.kind, []).append(segment)
    parts = sorted(kinds.values(), key=lambda part: -sum(s.duration for s in part))
    parts = [*parts[: _KINDS - 1], [s for part in parts[_KINDS - 1 :] for s in part]]
    at, within = run[0].start, time_text(run[-1].start + run[-1].duration - run[0].start)
    for part in filter(None, parts):
        longest = max(part, key=lambda s: s.duration)
        if len(part) == 1:
            yield replace(longest, start=at), ""
        else:
            label = f"{len(part)} short stretches within {within} like {longest.label!r}; their order is not drawn"
            taken = sum(s.duration for s in part)
            yield replace(longest, start=at, duration=taken, median=None, ops=[]), label
        at += sum(s.duration for s in part)


def _segment(s: Segment, label: str, drawn: float, lanes: dict[str, int], graphs: dict[str, int]) -> TimeSegment:
    full = f"{label or s.label}: {time_text(s.duration)}"
    if s.median is not None and s.spread:
        full += f" (median {time_text(s.median)}, half of the calls {' to '.join(time_text(v) for v in s.spread)})"
    if s.ops:
        full += "; ops: " + ", ".join(f"{o.name} {time_text(o.seconds)}" for o in s.ops[:5])
    segment: TimeSegment = {
        "kind": s.kind, "lane": lanes[s.lane], "x": _part(s.start, drawn), "w": _part(s.duration, drawn),
        "label": shorten(s.label, 60), "full": printable(full, 600), "id": s.graph or s.break_ or s.frame or "",
    }  # fmt: skip
    if s.graph in graphs:
        segment["tone"] = graph_tone(graphs[s.graph])
    return segment


def _shares(profile: Profile) -> list[Share]:
    return [{
        "name": _SHARES[key][0], "kind": _SHARES[key][1], "part": round(value, 4), "full": _SHARES[key][2],
    } for key, value in profile.shares.items() if key in _SHARES and (value > 0 or key == "unaccounted")]  # fmt: skip


def _part(value: float, whole: float) -> float:
    return round(value / whole, 6) if whole else 0.0
