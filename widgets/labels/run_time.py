"""Run time in words: what breaks and guards cost, whether compiling pays, other inputs, and graphs that were run alone.

Promises: what is unknown (None) is called unknown or left out.  The text is plain and not yet safe to show (see
`words.printable`).
"""

from __future__ import annotations

from collections.abc import Sequence

from dynascope.compiler.report import (
    BreakCost,
    FrameGuards,
    GraphRun,
    GuardCosts,
    InputRun,
    Profile,
    Report,
    place,
    plural,
    seconds,
    time_text,
)
from dynascope.widgets.labels.recompiles import guard_words
from dynascope.widgets.labels.words import Places

_GAP = (
    "the time from the end of the graph before the break to the start of the graph after it: lookups of guards, prologues of "
    "the code entered after it, and the eager Python in between, without the profiler's own time. Median of {calls}"
)
_DEVICE_IDLE = (
    "how long the device had nothing to do because of the break: between the last kernel launched before it and the first "
    "launched after it, but no more than the processor's own time in the gap. Median of {calls}"
)
_OPS = "; tensor ops in the gap ({time} a call) are not counted: in a graph they would still have to run"
_LOST = "; what fusing the two graphs would gain is unknown and not counted"
_EAGER_FRAME = (
    "unknown: the break makes Dynamo skip the whole frame, which runs eagerly for {time} a call; how long it would take "
    "compiled is not known"
)
#: torch's documented switches; those whose names end in "_unsafe" leave out guards that may fail later
_SWITCHES = (
    "torch has switches for guards: torch._dynamo.config.use_recursive_dict_tags_for_guards = True; and, which can give wrong "
    'results silently, options={"guard_filter_fn": torch.compiler.skip_guard_on_inbuilt_nn_modules_unsafe} (or '
    "skip_guard_on_all_nn_modules_unsafe, skip_guard_on_globals_unsafe), torch.compiler.set_stance(skip_guard_eval_unsafe=True)"
)


def call_words(profile: Profile) -> str:
    """What a call takes, and how that was measured."""
    half = f", half of them {' to '.join(map(time_text, profile.spread))}" if profile.spread else ""
    return f"{time_text(profile.median_seconds)} a call (median of warm calls in a loop{half})"


def profiled_words(profile: Profile) -> str:
    """Of what the shares and the time line are parts."""
    return "under torch.profiler" + (f" ({time_text(profile.profiled_seconds)} a call)" if profile.profiled_seconds else "")


# -- what a break costs -----------------------------------------------------------------------------


def cost_words(cost: BreakCost) -> str:
    """What a break costs: `costs 1.2 ms a call, 34%`, or `cost unknown; 1.2 ms a call runs eagerly`."""
    if cost.seconds is None:
        return f"cost unknown; {time_text(cost.eager_seconds or 0)} a call runs eagerly"
    share = f", {100 * cost.share:.0f}%" if cost.share is not None else ""
    return f"costs {time_text(cost.seconds)} a call{share}"


def cost_method(cost: BreakCost) -> str:
    """How the cost of a break was computed, and what it leaves out."""
    if cost.method == "eager frame":
        return _EAGER_FRAME.format(time=time_text(cost.eager_seconds or 0))
    words = (_DEVICE_IDLE if cost.method == "device idle" else _GAP).format(calls=plural(cost.calls, "call"))
    return words + (_OPS.format(time=time_text(cost.ops_seconds)) if cost.ops_seconds > 0 else "") + _LOST


def first_to_fix(profile: Profile, report: Report) -> str:
    """A sentence on the most expensive break, and on one of unknown cost whose eager code takes longer; "" without either."""
    at = {b.id: place(b) + (f" ({b.source.strip()[:60]})" if b.source.strip() else "") for b in report.breaks}
    known = [c for c in profile.breaks if c.seconds is not None and c.seconds > 0]
    unknown = [c for c in profile.breaks if c.seconds is None and c.eager_seconds]
    words = []
    if known:
        best = known[0]
        share = f", {100 * best.share:.0f}% of it" if best.share is not None else ""
        words.append(f"the break at {at[best.break_]} costs {time_text(best.seconds or 0)} a call{share}")
    if unknown and (not known or (unknown[0].eager_seconds or 0) > (known[0].seconds or 0)):
        worst = unknown[0]
        taken = time_text(worst.eager_seconds or 0)
        words.append(f"the break at {at[worst.break_]} makes {taken} a call run eagerly (what compiling it gains is unknown)")
    return f"Fix this first: {'; and '.join(words)}" if words else ""


def verdict_words(profile: Profile) -> str:
    """Eager against compiled, and when compiling has paid for itself; empty unless both were timed."""
    v = profile.verdict
    if v.eager_seconds is None or v.compiled_seconds is None:
        return ""
    words = f"Compiled, it takes {time_text(v.compiled_seconds)}; eager, {time_text(v.eager_seconds)}: "
    if v.payback == "slower":
        words += "compiling makes it slower"
    elif v.payback == "no gain":
        words += "compiling changes next to nothing"
    else:
        words += f"{v.eager_seconds / v.compiled_seconds:.2f} times as fast"
    if v.payback_calls is not None:
        words += f"; compiling pays for itself after {_calls(v.payback_calls)}"
    if v.without_breaks_seconds is not None and any(c.share is not None for c in profile.breaks):
        words += f"; without its breaks and what causes them, it would take at most {time_text(v.without_breaks_seconds)}"
    return words


def _calls(count: int) -> str:
    return f"{count:,} call{'' if count == 1 else 's'}"


# -- what guards cost -------------------------------------------------------------------------------


def guards_summary(costs: GuardCosts) -> str:
    """`guards take 48 µs a call, the code around graphs 12 µs (together 23%)`."""
    return (
        f"guards take {time_text(costs.lookups)} a call, the code around graphs {time_text(costs.prologue)} "
        f"(together {100 * costs.share:.0f}%)"
    )


def frame_guards(one: FrameGuards, report: Report, places: Places) -> str:
    """What a frame's guards cost: `f (0/0): guards 40 µs, the code around the graph 8 µs, 18% of the call`."""
    frame = next((f for f in report.frames if f.id == one.frame), None)
    name = "compiled code the report lacks" if frame is None else f"{places.name(frame)} ({frame.compile_id})"
    times = f", evaluated {one.times:.3g} times a call" if one.times > 1.01 else ""
    return (
        f"{name}: guards {time_text(one.lookups)}{times}, the code around the graph {time_text(one.prologue)}, "
        f"{100 * one.share:.0f}% of the call"
    )


def guard_switches(profile: Profile) -> str:
    """What torch documents against expensive guards; empty where they take at most a tenth of the call."""
    costs = profile.guards
    return _SWITCHES if costs is not None and costs.lookups > 0.1 * profile.median_seconds else ""


# -- inputs -----------------------------------------------------------------------------------------


def input_words(run: InputRun) -> str:
    """What the compiler had to do for this input, what a call takes, and whether compiling pays."""
    if run.outcome == "failed":
        return f"not measured: {run.error}"
    reasons = list(dict.fromkeys(map(guard_words, run.failed_guards))) if run.outcome == "recompiled" else run.reasons
    why = f": {'; '.join(reasons[:2])}" if reasons else ""
    if run.outcome == "recompiled":
        words = f"recompiled {plural(run.recompiles, 'frame')} in {seconds(run.compile_seconds)}{why}"
    elif run.outcome == "compiled":
        words = f"compiled more code in {seconds(run.compile_seconds)}"
    else:
        words = f"runs eagerly{why}" if run.outcome == "eager" else "ran from compiled code"
    if run.seconds is None:
        return words
    words += f"; a call takes {time_text(run.seconds)}"
    if run.outcome != "eager" and run.eager_seconds is not None:
        words += f", eager {time_text(run.eager_seconds)}"
    if run.payback_calls is not None:
        words += f": pays back after {_calls(run.payback_calls)}"
    elif run.payback == "compile time unknown":
        words += ": after how many calls it pays back is unknown"
    elif run.payback is not None:
        words += ": never pays back"
    return words


def inputs_summary(runs: Sequence[InputRun]) -> str:
    """All inputs in one line: `5 inputs: 2 need another compile (1.30 s), 1 runs eagerly`."""
    many = [r for r in runs if r.outcome in ("recompiled", "compiled")]
    parts = []
    if many:
        cost = seconds(sum(r.compile_seconds for r in many))
        parts.append(f"{len(many)} {'needs' if len(many) == 1 else 'need'} another compile ({cost})")
    eager = sum(r.outcome == "eager" for r in runs)
    if eager:
        parts.append(f"{eager} {'runs' if eager == 1 else 'run'} eagerly")
    failed = sum(r.outcome == "failed" for r in runs)
    if failed:
        parts.append(f"{failed} could not be measured")
    return f"{plural(len(runs), 'input')}: {', '.join(parts) or 'none needs another compile'}"


# -- a graph run alone ------------------------------------------------------------------------------


def graphs_alone(report: Report) -> list[str]:
    """A sentence on each graph that was run on its own."""
    runs = [(number, graph.run) for number, graph in enumerate(report.graphs)]
    return [f"graph {number} alone. {graph_run_words(run)}" for number, run in runs if run is not None]


def graph_run_words(run: GraphRun) -> str:
    """The result of a run: `On CPU, 2 threads: eager 520 µs, inductor 93 µs a call, 5.6 times as fast`."""
    words = f"On {run.device_name}: eager {time_text(run.eager_seconds)}"
    if run.compiled_seconds is None:
        return f"{words} a call; {run.backend} could not compile it"
    words += f", {run.backend} {time_text(run.compiled_seconds)} a call"
    if run.speed_up is None:
        return words
    if _overlap(run.eager_spread, run.compiled_spread):  # the difference is within the spread of equal calls
        return f"{words}, no clear difference"
    times = run.speed_up if run.speed_up >= 1 else 1 / run.speed_up
    return f"{words}, {times:.{1 if times < 10 else 0}f} times as {'fast' if run.speed_up >= 1 else 'slow'}"


def _overlap(one: list[float], other: list[float]) -> bool:
    return len(one) == len(other) == 2 and one[0] <= other[1] and other[0] <= one[1]
