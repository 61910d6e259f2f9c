"""Computes what guards cost a call.

`guard_costs()` reads the cost of each compiled frame's guards from the profiled calls.  `heaviest()` finds the most expensive
guards of a frame: torch can evaluate some of the guards alone.  `try_switches()` traces the recorded call again with each
documented switch that leaves out guards.
"""

from __future__ import annotations

import contextlib
import re
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, cast

from dynascope.compiler.assembly import guard_parser
from dynascope.compiler.profile.attribution import Call, read_calls
from dynascope.compiler.profile.profiler_trace import CALL, plain_events
from dynascope.compiler.profile.timing import profiled
from dynascope.compiler.replay.replay import Prepare, RecordedCall
from dynascope.compiler.report import FrameGuards, GuardCosts, GuardSwitch, GuardTime, Report
from dynascope.compiler.report.measurements import SwitchName
from dynascope.compiler.torch_private import hook_installer, profiling
from dynascope.compiler.torch_private.profiling import Evaluation

#: at most this many parts of a frame's guards are reported
MOST = 12
#: a part of the guards is split further if it takes more than this share of the time of all guards
_LARGE = 0.1
#: time limit in seconds for splitting the guards of one frame, and for trying all switches
_BUDGET, _SWITCH_BUDGET = 0.5, 30.0
#: switches are tried if guard checks take more than these seconds of a call
WORTH = 20e-6
#: number of profiled calls with each switch, and how many of them only warm up
_CALLS, _WARM_UP = 15, 5
_INDEX = re.compile(r"(?<=[\[.])\d+(?=[\].]|$)")
_INNER = re.compile(r"(?:\.__dict__|\._modules|\._parameters|\._buffers)+$")

#: compiles the recorded call anew with these options of torch.compile and values of torch._dynamo.config
Compiled = Callable[[Mapping[str, Any], Mapping[str, Any]], AbstractContextManager[Callable[..., Any]]]


def guard_costs(calls: list[Call]) -> GuardCosts | None:
    """The costs by frame; None if most calls have no guard checks: this torch does not mark them, or no compiled code ran.

    The totals are medians over the calls, like the shares of a profile.  They are divided among the frames in proportion to the
    frames' sums over all calls.
    """
    frames: dict[str | None, FrameGuards] = {}
    lookups, lookup_sum = _median(calls, "lookup")
    prologue, prologue_sum = _median(calls, "prologue")
    if not lookups:
        return None
    for piece in (s for call in calls for s in call.slices if s.kind in ("lookup", "prologue")):
        one = frames.setdefault(piece.frame, FrameGuards(frame=piece.frame))
        if piece.kind == "lookup":
            one.lookups += lookups * piece.duration / lookup_sum
            one.times += 1 / len(calls)
        else:
            one.prologue += prologue * piece.duration / prologue_sum
    whole = statistics.median(call.duration for call in calls) * 1e-9
    for one in frames.values():
        one.share = (one.lookups + one.prologue) / whole
    ranked = sorted(frames.values(), key=lambda one: -one.lookups - one.prologue)
    return GuardCosts(lookups=lookups, prologue=prologue, share=(lookups + prologue) / whole, frames=ranked)


def _median(calls: list[Call], kind: str) -> tuple[float, float]:
    """The time in slices of one kind: median over the calls, in seconds, and sum over all calls, in nanoseconds."""
    taken = [sum(s.duration for s in call.slices if s.kind == kind) for call in calls]
    return statistics.median(taken) * 1e-9, sum(taken)


# -- the guards that cost most ----------------------------------------------------------------------------------


@dataclass
class _Part:
    """The guards on one expression of the user, with `*` for indices (`self.layers.*.weight`)."""

    #: guards on the parts of the expression's value, by name
    inside: dict[str, _Part] = field(default_factory=dict)
    #: torch's names of the expression, one for each index
    sources: set[str] = field(default_factory=set)
    #: torch's names of the objects that lead to it
    path: set[str] = field(default_factory=set)
    guards: int = 0


def time_guards(call: Callable[[], Any]) -> list[tuple[str, GuardTime]]:
    """The most expensive guards of each compiled frame that a call enters, each with the frame's compile id."""
    found: list[tuple[str, GuardTime]] = []
    with profiling.evaluations(lambda one: found.extend((one.compile_id, row) for row in heaviest(one))):
        call()
    return found


def heaviest(evaluation: Evaluation) -> list[GuardTime]:
    """The most expensive parts of a frame's guards; large parts are split until there are many or the time is up."""
    until = time.perf_counter() + _BUDGET
    whole = evaluation.seconds(None)
    if not whole:
        return []

    def row(name: str, part: _Part) -> tuple[float, str, _Part]:
        sources = set[str]().union(*(p.sources for p in _all(part)))
        alone, path = evaluation.seconds(part.path | sources), evaluation.seconds(part.path)
        return (0.0 if alone is None or path is None else max(0.0, alone - path), name, part)

    rows = [row(name, part) for name, part in _parts(evaluation).inside.items()]
    while time.perf_counter() < until:
        split = [r for r in rows if r[2].inside and r[0] > _LARGE * whole and len(rows) + len(r[2].inside) <= 3 * MOST]
        if not split:
            break
        largest = max(split, key=lambda r: r[0])
        rows.remove(largest)
        rows += [row(name, part) for name, part in largest[2].inside.items()]
    rows.sort(key=lambda r: -r[0])
    return [
        GuardTime(
            frame="", source=name, guards=sum(p.guards for p in _all(part)), seconds=seconds, share=min(1.0, seconds / whole)
        )
        for seconds, name, part in rows[:MOST]
        if seconds > 0
    ]  # fmt: skip


def _all(part: _Part) -> list[_Part]:
    return [part, *(inner for child in part.inside.values() for inner in _all(child))]


def _parts(evaluation: Evaluation) -> _Part:
    """The guards as a tree of the expressions that they check; the root has the guards that check no single expression."""
    root = _Part()
    #: source -> the sources that lead to it; two objects can have the same source, even one inside the other
    paths: dict[str | None, set[str]] = {None: set()}
    of_name: dict[str, _Part] = {"": root}
    for source, parent, guards in evaluation.guards:
        name, outer = _name(source), _name(parent)
        part = of_name.get(name)
        if part is None:
            part = of_name[name] = of_name[outer].inside.setdefault(name, _Part())
        part.sources.add(source)
        part.guards += guards
        path = paths.setdefault(source, paths[parent] | ({parent} if parent is not None else set()))
        part.path |= {outside for outside in path if _name(outside) != name}
    return root


def _name(source: str | None) -> str:
    """`self.layers.*.weight` for a source of torch's; "" for the roots, which are the frame's locals and globals."""
    if source is None or source in ("L", "G"):
        return ""
    return _INDEX.sub("*", _INNER.sub("", guard_parser.user_expression(source)))


# -- switches that leave out guards -----------------------------------------------------------------------------


def try_switches(recorded: RecordedCall, compiled: Compiled) -> list[GuardSwitch]:
    """Measure guards and prologue of the call with each switch, and undo what the calls do."""
    until = time.perf_counter() + _SWITCH_BUDGET
    tried: list[GuardSwitch] = []
    with hook_installer.HOOKS.paused(), recorded.replaying() as prepare, contextlib.suppress(KeyboardInterrupt):
        before = _taken(compiled, prepare, {}, {})
        for name in profiling.guard_switches():
            one = GuardSwitch(name=cast(SwitchName, name), before=before)
            try:
                options, values = profiling.guard_switch(name)
                if time.perf_counter() < until:
                    one.seconds = _taken(compiled, prepare, options, values, stance=name == "skip_guard_eval_unsafe")
                else:
                    one.failed = "tracing the call again takes too long"
            except Exception as error:
                one.failed = f"{type(error).__name__}: {str(error)[:200]}"
            tried.append(one)
        again = _taken(compiled, prepare, {}, {})
        for one in tried:
            one.before = min(before, again)
    return tried


def _taken(
    compiled: Compiled, prepare: Prepare, options: Mapping[str, Any], values: Mapping[str, Any], *, stance: bool = False
) -> float:
    """Seconds of guards and prologue in the fastest call, which other load disturbs least."""
    import torch

    with compiled(options, values) as entry:
        for _ in range(2):
            args, kwargs = prepare()
            entry(*args, **kwargs)
        with torch.compiler.set_stance(skip_guard_eval_unsafe=stance), profiled() as trace:
            for _ in range(_CALLS):
                args, kwargs = prepare()
                with profiling.profiler_mark(CALL):
                    entry(*args, **kwargs)
    calls = read_calls(plain_events(trace), Report())[_WARM_UP:]
    # graphs are not marked here, so code of a region may be labeled "return", as if a graph had run before it: not counted
    counted = [[s for s in call.slices if s.kind == "lookup" or (s.kind == "prologue" and not s.label)] for call in calls]
    return min(sum(s.duration for s in slices) for slices in counted) * 1e-9
