"""Run time: where the time of a call goes, what breaks and guards cost, whether compiling pays, and other inputs.

Promises: all numbers come from the report; what is unknown (None) is called unknown or left out.  A segment's `id` names
something that the view can select (graph, break or frame), or is empty.
"""

from __future__ import annotations

from typing import TypedDict

from typing_extensions import NotRequired

from dynascope.compiler.report import BreakCost, InputRun, Profile, Report, Segment, plural, seconds, time_text
from dynascope.compiler.report.measurements import MEANWHILE
from dynascope.widgets.features.places import Places, graph_tone
from dynascope.widgets.features.recompiles import guard_words
from dynascope.widgets.terminal import Terminal
from dynascope.widgets.words import capped, printable, shorten

#: for each share its name, its kind (which sets its color) and what it means
SHARES = {
    "graphs": ("compiled graphs", "graph", "the captured graphs, as the backend compiled them"),
    "gaps": ("gaps", "gap", "eager Python and eager ops between two graphs"),
    "lookups": ("guards", "lookup", "looking for compiled code whose guards hold"),
    "prologue": ("prologue", "prologue", "bytecode and the backend's wrappers around the compiled graphs"),
    "waiting": ("waiting", "wait", "the processor waits for the device"),
    "unaccounted": ("unaccounted", "unaccounted", "no event of the profiler explains this time"),
    "device busy": ("device busy", "kernel", "at least one kernel or copy runs on the device; it overlaps with the others"),
}
#: whether compiled code is faster, where no number says so
_VERDICTS = {"slower": "compiling makes it slower", "no gain": "compiling changes next to nothing",
             "faster": "compiling makes it faster", "unclear": "these times are too uncertain for a verdict"}  # fmt: skip


class TimeSegment(TypedDict):
    """One stretch of a call, or one phase of the compiler; `x` and `w`: its start and width, as fractions of the whole time."""

    kind: str
    lane: int
    x: float
    w: float
    label: str
    full: str
    id: str
    tone: NotRequired[int]


class Share(TypedDict):
    """The share of one kind of work in a call's time, or in the compile time; `part`: as a fraction."""

    name: str
    kind: str
    part: float
    full: str


class InputRow(TypedDict):
    """One of several inputs; `id`: the first frame that the compiler worked on because of it, or empty."""

    arguments: str
    outcome: str
    words: str
    id: str


class TimeLine(TypedDict):
    """Where the time of a call goes; its segments lie on lanes (the processor, then each stream of a device)."""

    total: str
    call: str
    profiled: str
    lanes: list[str]
    segments: list[TimeSegment]
    shares: list[Share]
    verdict: str
    devices: str
    inputs: list[InputRow]
    inputs_summary: str


def timeline(places: Places) -> TimeLine | None:
    """The time line; None if nothing was profiled."""
    report, profile = places.report, places.report.profile
    if profile is None:
        return None
    drawn = max((s.start + s.duration for s in profile.segments), default=0.0)
    half = f", half of them {' to '.join(map(time_text, profile.spread))}" if profile.spread else ""
    captures = "; “{}” only captures: measure with the backend that you will use, such as inductor"
    captures = captures.format(report.settings["backend"]) if only_captures(report) and verdict_words(profile) else ""
    parts = f" ({time_text(profile.profiled_seconds)} a call)" if profile.profiled_seconds else ""
    segments = [(n, s) for n, lane in enumerate(profile.lanes) for s in profile.segments if s.lane == lane]
    shares = [(key, part) for key, part in profile.shares.items() if key in SHARES and (part > 0 or key == "unaccounted")]
    return {
        "total": time_text(drawn),
        "call": f"{time_text(profile.median_seconds)} {a_call(profile)} (median of warm calls in a loop{half})",
        "profiled": f"under torch.profiler{parts}", "lanes": [shorten(lane, 60) for lane in profile.lanes],
        "segments": [_segment(s, drawn, lane, places) for lane, s in segments],
        "shares": [
            {"name": SHARES[key][0], "kind": SHARES[key][1], "part": round(part, 4), "full": SHARES[key][2]}
            for key, part in shares
        ],
        "verdict": printable(verdict_words(profile) + captures, 1000), "devices": printable(", ".join(profile.devices), 300),
        "inputs": input_rows(report), "inputs_summary": inputs_summary(report) if report.inputs else "",
    }  # fmt: skip


def only_captures(report: Report) -> bool:
    """Whether the backend runs the captured operations one by one, as eager mode does."""
    return report.settings.get("backend") in ("eager", "aot_eager")


def a_call(profile: Profile) -> str:
    """`a call`, and of what if the run called more than that."""
    return f"a call of `{printable(profile.function, 200)}`" if profile.function else "a call"


def verdict_words(profile: Profile) -> str:
    """Eager against compiled, and when compiling has paid for itself; empty unless both were timed."""
    v = profile.verdict
    if v.eager_seconds is None or v.compiled_seconds is None:
        return ""
    faster = f"{v.eager_seconds / v.compiled_seconds:.2f} times as fast" if v.compiled_seconds else ""
    words = _VERDICTS.get(v.payback or "", faster)
    pays = f"; compiling pays for itself after {plural(v.payback_calls, 'call')}" if v.payback_calls is not None else ""
    times = f"{time_text(v.compiled_seconds)}; eager, {time_text(v.eager_seconds)}"
    none = "; no compiled graph runs in its own thread" if profile.shares and not profile.shares.get("graphs") else ""
    return f"Under torch.compile, {a_call(profile) if profile.function else 'it'} takes {times}: {words}{pays}{none}"


# -- the drawing of a call --------------------------------------------------------------------------


def _segment(s: Segment, drawn: float, lane: int, places: Places) -> TimeSegment:
    ops = ", ".join(f"{o.name} {time_text(o.seconds)}" for o in s.ops[:5])
    full = f"{s.label}: {time_text(s.duration)}" + (f"; ops: {ops}" if ops else "")
    x, w = (round(value / drawn, 6) if drawn else 0.0 for value in (s.start, s.duration))
    segment: TimeSegment = {
        "kind": s.kind, "lane": lane, "x": x, "w": w, "label": "" if s.kind == "wait" else shorten(s.label, 60),
        "full": printable(full, 600), "id": s.graph or s.break_ or s.frame or "",
    }  # fmt: skip
    if s.graph in places.graphs:
        segment["tone"] = graph_tone(places.graphs[s.graph][0])
    return segment


# -- what a break costs -----------------------------------------------------------------------------


def cost_words(cost: BreakCost) -> str:
    """What a break costs: `costs 1.2 ms a call, 34%`, or `cost unknown; 1.2 ms a call is spent there`."""
    if cost.method == "unknown":
        return "cost unknown: the profile does not tell what comes from it"
    if cost.seconds is None:
        return f"cost unknown; {time_text(cost.eager_seconds or 0)} a call is spent there"
    share = f", {100 * cost.share:.0f}%" if cost.share is not None else ""
    return f"costs {time_text(cost.seconds)} a call{share}" if cost.seconds else "costs nothing that can be measured"


def cost_facts(cost: BreakCost) -> list[tuple[str, object, str]]:
    """Facts about the cost of a break, for the detail of the break."""
    return [
        ("run time", cost_words(cost), ""),
        ("reached", f"{cost.times:g} times a call" if cost.times > 1 else "", ""),
        ("  tensor ops in the gap", f"{time_text(cost.ops_seconds)}, not counted" if cost.ops_seconds > 0 else "", ""),
    ]


# -- inputs -----------------------------------------------------------------------------------------


def input_rows(report: Report) -> list[InputRow]:
    return [{
        "arguments": shorten(run.arguments, 120), "outcome": run.outcome, "words": printable(input_words(run), 600),
        "id": next(iter(run.frames), ""),
    } for run in report.inputs or ()]  # fmt: skip


def input_words(run: InputRun) -> str:
    """What the compiler had to do for this input, what a call takes, and whether compiling pays."""
    reasons = list(dict.fromkeys(map(guard_words, run.failed_guards))) if run.outcome == "recompiled" else run.reasons
    why, took = f": {'; '.join(capped(reasons, 2))}" if reasons else "", seconds(run.compile_seconds)
    words = {
        "failed": f"not measured: {run.error}", "compiled": f"compiled more code in {took}", "eager": f"runs eagerly{why}",
        "recompiled": f"compiled again {plural(run.recompiles, 'time')}{why}; all compiles took {took}",
    }.get(run.outcome, f"runs partly eagerly{why}" if reasons else "needs no compile")  # fmt: skip
    if run.seconds is None or run.outcome == "failed":
        return words
    words += f"; a call takes {time_text(run.seconds)}"
    if run.outcome != "eager" and run.eager_seconds is not None:
        words += f", eager {time_text(run.eager_seconds)}"
    if run.payback_calls is not None:
        return f"{words}: pays back after {plural(run.payback_calls, 'call')}"
    return f"{words}: {_VERDICTS.get(run.payback, 'after how many calls it pays back is unknown')}" if run.payback else words


def inputs_summary(report: Report) -> str:
    """All inputs in one line: `5 inputs, each in the recorded state: 2 need another compile (1.30 s), 1 runs eagerly`."""
    runs, of = report.inputs or [], a_call(report.profile).removeprefix("a call") if report.profile else ""
    many = [r for r in runs if r.outcome in ("recompiled", "compiled")]
    kinds = ["partly" if r.outcome == "reused" and r.reasons else r.outcome for r in runs]
    compiled = f"another compile ({seconds(sum(r.compile_seconds for r in many))})"
    counts = [(len(many), "needs", "need", compiled), (kinds.count("eager"), "runs", "run", "eagerly")]
    counts.append((kinds.count("partly"), "runs", "run", "partly eagerly"))
    parts = [f"{n} {one if n == 1 else more} {what}" for n, one, more, what in counts if n]
    parts += [f"{failed} could not be measured"] if (failed := kinds.count("failed")) else []
    segments = report.profile.segments if report.profile else []
    again = any(s.label.startswith(MEANWHILE) for s in segments)  # such as for a counter
    parts = [", ".join(parts) or "none needs another compile"] + ["a repeated call needed one, too: see the notes"] * again
    state = f"{', each' * (len(runs) > 1)} in the recorded state"
    return f"{plural(len(runs), 'input')}{of}{state}: {'; '.join(parts)}"


# -- text -------------------------------------------------------------------------------------------


def run_time_lines(places: Places, terminal: Terminal, most: int) -> list[str]:
    """Where the time of a call goes, and what the first breaks cost."""
    profile, line = places.report.profile, timeline(places)
    if profile is None or line is None:
        return []
    call, _, method = line["call"].partition(" (")
    out = ["", terminal.paint(f"run time: {call}", "bold") + f" ({method}"]
    out += terminal.wrap(line["verdict"], "    ", 3) if line["verdict"] else []
    out += terminal.wrap(f"{line['profiled']}: {share_words(line['shares']) or 'unknown'}", "    ")
    for words in capped([f"{places.of_break(places.breaks[cost.break_])} {cost_words(cost)}" for cost in profile.breaks], most):
        out += terminal.wrap(words, "    ")
    return out


def share_words(shares: list[Share]) -> str:
    return " · ".join(f"{s['name']} {100 * s['part']:.0f}%" for s in shares)


def input_lines(report: Report, terminal: Terminal, most: int) -> list[str]:
    """The first inputs of a list: what each made the compiler do, and what a call with it takes."""
    rows = [f"{number}. {row['arguments']}: {row['words']}" for number, row in enumerate(input_rows(report), 1)]
    out = ["", terminal.paint(inputs_summary(report), "bold")] if rows else []
    return out + [line for words in capped(rows, most) for line in terminal.wrap(words, "    ", 3)]
