"""Sentences about a report: headline, notes, failed guards, costs, verdict, inputs, and graphs that were run alone.

Promises: what is unknown (None) is called unknown or left out.  The text is plain and not yet safe to show (see
`words.printable`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dynascope.compiler.report import (
    BreakCost,
    FailedGuard,
    FailedGuardKind,
    Graph,
    GraphRun,
    GraphSplit,
    InputRun,
    Profile,
    Recompile,
    Report,
    byte_text,
    place,
    plural,
    seconds,
    time_text,
)

_GUARDS: dict[FailedGuardKind, str] = {
    "size": "{source} had another size in dimension {dimension}: {before} before, {now} now",
    "dtype": "{source} had another dtype: {before} before, {now} now",
    "rank": "{source} had another number of dimensions: {before} before, {now} now",
    "stride": "{source} had another memory layout (stride of dimension {dimension}): {before} before, {now} now",
    "tensor class": "{source} was another kind of tensor: {before} before, {now} now",
    "device": "{source} was on another device",
    "not a tensor": "{source} was no longer a tensor, but {now}",
    "type": "{source} had another type",
    "object": "{source} was another object (redefined or reassigned)",
    "length": "{source} had length {before} before, and has another now",
    "not empty": "{source} was empty when it was compiled, and is not now",
    "value": "{source} was {before} when it was compiled, and is not now",
    "range": "{source} was between {before} and {now} when it was compiled, and is not now",
    "minimum": "{source} was at least {before} when it was compiled, and is not now",
    "none": "{source} was None when it was compiled, and is not now",
    "new attribute": "{source} had no attribute {now} of its own when it was compiled, and has one now",
    "none found": "no reason found: all guards held when Dynamo looked for it (as when threads compile at the same time)",
    "expression": "this no longer held: {text}",
    "text": "{text}",
    "unknown": "a guard failed",
}
#: words for failed guards whose value in the call is known
_KNOWN_NOW: dict[FailedGuardKind, str] = {
    "type": "{source} was {before} when it was compiled, and is {now} now",
    "length": "{source} had length {before} when it was compiled, and has {actual} now",
    "value": "{source} was {before} when it was compiled, and is {actual} now",
    "range": "{source} was between {before} and {now} when it was compiled, and is {actual} now",
    "minimum": "{source} was at least {before} when it was compiled, and is {actual} now",
    "expression": "this no longer held: {text} ({actual})",
}
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


def headline(report: Report) -> str:
    """The headline: `f: 2 graphs · 1 graph break · 1 resume function · 0 skipped · compiled in 0.80 s`."""
    s = report.summary
    unknown = s.breaks == 0 and (s.cached > 0 or s.unknown_breaks > 0)  # breaks of cached code are unknown: never "no breaks"
    parts = [plural(s.graphs, "graph"), "graph breaks unknown" if unknown else plural(s.breaks, "graph break")]
    if s.breaks and s.unexpected != s.breaks:
        parts[-1] += f" ({s.breaks - s.unexpected} allowed)"
    if s.breaks and s.unknown_breaks:
        parts[-1] += f" and {s.unknown_breaks} at {'an unknown place' if s.unknown_breaks == 1 else 'unknown places'}"
    parts += [plural(s.resumes, "resume function"), f"{s.skipped} skipped"]
    if s.recompiles:
        parts.append(plural(s.recompiles, "recompile"))
    if any(r.refused_by for r in report.recompiles):
        parts.append("recompile limit reached")
    if s.cached:
        parts.append(f"{s.cached} cached")
    if s.unfinished:
        parts.append(f"{s.unfinished} unfinished")
    if report.origin == "trace" and not report.frames:
        pass  # there is nothing that took time
    elif not s.frames or any(f.compile_seconds is not None for f in report.frames):
        unknown = any(f.compile_seconds is None and f.status == "compiled" for f in report.frames)
        parts.append(f"compiled in {'at least ' if unknown else ''}{seconds(s.compile_seconds)}")
    elif not s.cached and not s.unfinished:
        parts.append("compile time unknown")
    if report.error is not None and not report.error.caught:
        parts.append("stopped by an error")
    costly = next((c for c in report.profile.breaks if c.seconds), None) if report.profile else None
    if costly is not None:
        parts.append(f"fix first: {place(report.break_(costly.break_))} ({time_text(costly.seconds or 0)} a call)")
    return f"{name(report)}: " + " · ".join(parts)


def name(report: Report) -> str:
    """What was compiled: `f, Net.forward`."""
    return ", ".join(report.compiled) or "nothing compiled"


def record_notes(report: Report) -> list[str]:
    """Sentences on records that could not be used, and on hooks that do not fit this torch: facts may be missing."""
    notes: list[str] = []
    unread = sum(report.unread.values())
    if unread:
        kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(report.unread.items(), key=lambda item: (-item[1], item[0]))[:5])
        if report.origin == "trace":
            notes.append(f"the log is damaged, incomplete or from an unknown torch, so this report may be wrong ({kinds})")
        else:
            notes.append(f"{plural(unread, 'record')} of the compiler could not be used ({kinds})")
    unfit = [f"{name}: {why}" for name, why in report.hooks.items() if why is not True]
    if unfit:
        notes.append("some facts may be missing, because these hooks do not fit this torch: " + "; ".join(unfit[:5]))
    return notes


def splits(report: Report) -> list[str]:
    """Sentences on how and why DDPOptimizer split graphs."""
    return [f"graph {n}: {note}" for n, g in enumerate(report.graphs) if g.splits for note in g.notes if note.startswith("DDP")]


def split_title(split: GraphSplit, graph: Graph) -> str:
    """One split: `submod_1: parameters of 1.0 MiB (layers.1.weight, layers.1.bias), a full bucket: its limit is 1.0 MiB`."""
    if split.parameter_bytes is None:
        return split.name
    names = ", ".join(map(_parameter, split.parameters[:20])) + (", …" if len(split.parameters) > 20 else "")
    words = f"{split.name}: parameters of {byte_text(split.parameter_bytes)} ({names})"
    if not graph.bucket_limits:
        return words
    limit = graph.bucket_limits[0 if split is graph.splits[-1] else 1]
    full = split.parameter_bytes >= limit
    return f"{words}, " + (f"a full bucket: its limit is {byte_text(limit)}" if full else "less than a full bucket")


def _parameter(name: str) -> str:
    """The program's name of a parameter: `layers.1.weight` for `l_self_modules_layers_modules_1_parameters_weight_`."""
    return re.sub(r"_(?:modules|parameters)_", ".", re.sub(r"^[lL]_self_(?:modules_|parameters_)?", "", name)).rstrip("_")


# -- recompiles -------------------------------------------------------------------------------------


def guard_words(guard: FailedGuard) -> str:
    """Why compiled code could not be used again, in words for readers who do not know guards."""
    if guard.kind == "requires_grad":
        wanted = "required a gradient" if guard.before == "True" else "required no gradient"
        return f"{guard.source} {wanted} before, and does{' not' if guard.before == 'True' else ''} now"
    if guard.kind == "global state":
        return "a global setting of torch changed" + (f": {guard.source}" if guard.source else " (grad mode, autocast, ...)")
    words = _GUARDS[guard.kind]
    if guard.kind in _KNOWN_NOW and None not in ((guard.before, guard.now) if guard.kind == "type" else (guard.actual,)):
        words = _KNOWN_NOW[guard.kind]
    return words.format(**vars(guard))


def recompile_words(recompile: Recompile) -> list[str]:
    """A sentence for each guard that failed, without repetitions; if none is known, the compiler's reasons."""
    return list(dict.fromkeys(map(guard_words, recompile.failed_guards))) or recompile.reasons


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
        words += f"; without the cost of its breaks, it would take at most {time_text(v.without_breaks_seconds)}"
    return words


def _calls(count: int) -> str:
    return f"{count:,} call{'' if count == 1 else 's'}"


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
