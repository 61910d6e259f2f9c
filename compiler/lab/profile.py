"""`--profile`: repeats a call at least N times compiled, N times compiled under torch.profiler, and at least N times eagerly.

`measure()` alternates between the three kinds of calls, warms up after each change, and undoes what the calls do.
`annotate_profile()` adds the Profile to the finished report.  All times of a call are taken in one way: those of warm calls,
one after the other, as in a loop.  Python's garbage collector is disabled meanwhile (`no_collection`), as in `timeit`.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from dynascope.compiler.builder.dynamo_texts import COMPILE, split_comment, user_expression
from dynascope.compiler.capture.torch_private import caches, hook_installer, running
from dynascope.compiler.lab.experiment import Experiment
from dynascope.compiler.lab.recorded_call import RecordedCall
from dynascope.compiler.lab.slices import CALL, DRAIN, GRAPH, Event, plain_events, profile_of, quartiles
from dynascope.compiler.report import Profile, Report, Verdict, first_line, message_of, plural, time_text
from dynascope.compiler.report.measurements import MEANWHILE, UNEVEN, Payback
from dynascope.compiler.source.code import compiled_name, user_name

#: smallest share of the eager time by which eager and compiled must differ for one of them to count as faster
_CLEAR = 0.03
_NOT_PROFILED = "profile: not measured: "
#: the note of a run that Ctrl-C ended
INTERRUPTED = f"{_NOT_PROFILED}interrupted"
#: number of turns in which calls of several kinds alternate, because the load of the machine changes
TURNS = 5
#: at most this many calls warm up each kind of call in a turn: the first calls after those of another kind, after state was
#: restored, or after the profiler has started, find the CPU's caches cold
WARM_UP = 30
#: at most this many seconds of warming up, unless one call takes longer; filling the caches takes less
WARM_BUDGET = 0.05
#: at most this many calls are made until one compiles nothing
SETTLE = 5
#: calls that take more than these seconds are all made in one turn
SLOW = 0.2
#: where threads of the process waited for a core for a larger part of the time, other work on the machine makes calls longer
_BUSY = 0.1
#: where a call takes this many times as long under the profiler, it is not the profiler alone that makes it longer
_DISTURBED = 10
#: seconds between two words on how far a step of measuring is
_TELL_EVERY = 0.5


def turns(calls: int, most: int = TURNS) -> list[int]:
    """How many of `calls` to make in each turn."""
    count = min(most, calls)
    return [calls // count + (number < calls % count) for number in range(count)]


class NeverSettles(Exception):
    """A call still compiles code after it has been repeated."""


def pace(experiment: Experiment, entry: Callable[..., Any], wait: Callable[[], None], calls: int) -> tuple[list[int], int]:
    """How many of `calls` to make in each turn, and how many more warm up each turn.

    Repeats the call until it compiles nothing any more, because a guard can fail when it is repeated; raises NeverSettles after
    `SETTLE` calls.  If not all that a call does is undone, few calls are made.
    """
    is_harmless = not experiment.call.side_effects
    for number, call in enumerate(itertools.islice(experiment.calls(entry, fully=True), SETTLE)):
        known = caches.compiles()
        seconds = timed(call, wait)
        if number > 0 and caches.compiles() == known:
            break
    else:
        raise NeverSettles(f"it does not settle: repeated call {SETTLE} still compiled code{_why_compiled(1)}")
    warm_up = max(1, min(WARM_UP if is_harmless else 2, int(WARM_BUDGET / seconds)))
    return turns(calls, TURNS if is_harmless and seconds <= SLOW else 1), warm_up


def timed_calls(calls: Iterator[Callable[[], Any]], wait: Callable[[], None], count: int, warm_up: int = 0) -> list[float]:
    """Seconds of each of `count` warm calls in a loop, or of `warm_up` if that is more; preparing them is not timed."""
    return [timed(call, wait) for call in itertools.islice(calls, warm_up + max(count, warm_up))][warm_up:]


def timed(call: Callable[[], Any], wait: Callable[[], None]) -> float:
    """Seconds of one call; its result is freed after the clock has stopped."""
    wait()
    start = time.perf_counter()
    _kept = call()
    wait()
    return time.perf_counter() - start


def waiter(device: str) -> Callable[[], None]:
    """A function that waits until the device (`cuda`: the current one) has finished; `nothing` for the CPU."""
    return nothing if torch.device(device).type == "cpu" else functools.partial(torch.accelerator.synchronize, device)


def nothing() -> None:
    """Do nothing: the waiter where there is no device to wait for."""


def device_name(device: str) -> str:
    """`CPU, 8 threads`; for another device the name that it reports, or else `device`."""
    kind = torch.device(device).type
    if kind == "cpu":
        return f"CPU, {plural(torch.get_num_threads(), 'thread')}"
    name = getattr(getattr(torch, kind, None), "get_device_name", None)
    return str(name(device)) if name is not None else device


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Disable Python's garbage collector: its pauses would be charged to whatever runs just then."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextlib.contextmanager
def profiled(kinds: Iterable[str] = ()) -> Iterator[dict[str, Any]]:
    """Run the block under torch.profiler; yields a dict that holds the trace once the block has ended.

    `kinds`: kinds of devices to watch besides the CPU ("cuda", "xpu").
    """
    from torch.profiler import ProfilerActivity

    activities = [ProfilerActivity.CPU, *(getattr(ProfilerActivity, kind.upper()) for kind in kinds)]
    trace: dict[str, Any] = {}
    profiler = torch.profiler.profile(activities=activities)
    with _silent():
        profiler.start()
    try:
        yield trace
    finally:
        with _silent():
            profiler.stop()
    with tempfile.TemporaryDirectory(prefix="dynascope") as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        trace.update(json.loads(file.read_text(encoding="utf-8")))


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Silence file descriptor 2: the profiler's C++ library writes to it directly, not to `sys.stderr`."""
    if sys.stderr is not None:  # it is None under pythonw
        sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # there is no descriptor 2
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@dataclass
class Measurement:
    """What was measured: plain data, none of the user's tensors."""

    #: the profiler's events of the profiled calls
    events: list[Event] = field(default_factory=list)
    #: seconds of each compiled call without the profiler
    compiled: list[float] = field(default_factory=list)
    #: seconds of each eager call
    eager: list[float] = field(default_factory=list)
    #: for which part of the time threads of this process waited for a core, added up; 0: unknown, as outside Linux
    waited: float = 0.0
    devices: list[str] = field(default_factory=list)
    #: ids of the compiles before anything was measured
    compiled_meanwhile: list[str] = field(default_factory=list)
    #: whether the captured graphs could be located and marked
    marked: bool = True
    notes: list[str] = field(default_factory=list)
    #: why nothing was measured; None: something was
    failed: str | None = None
    #: as in the Profile
    function: str = ""
    #: whether nothing else that is compiled was called
    is_all: bool = True

    def overhead(self) -> float:
        """Seconds by which the profiler makes a call longer."""
        profiled = [e.duration * 1e-9 for e in self.events if e.name == CALL]
        return statistics.median(profiled) - statistics.median(self.compiled) if profiled else 0.0


def measure(call: RecordedCall | None, calls: int, on_progress: Callable[[str], None] = lambda stage: None) -> Measurement:
    """Measure a recorded call, if there is one, of a compiled function that has been called, and so compiled, before."""
    if call is None:
        return Measurement(failed=f"{_NOT_PROFILED}nothing that dynascope itself compiles was called")
    result = Measurement(notes=list(call.side_effects))
    why = call.outdated
    if why is None and running.profiler_is_on():
        why = "another profiler is running, and torch runs only one at a time"
    try:
        if why is None:
            with hook_installer.HOOKS.paused(), Experiment(call) as experiment, no_collection():
                _measure(experiment, calls, result, on_progress)
    except KeyboardInterrupt:
        why = "interrupted"
    except NeverSettles as error:
        why = str(error)
    except Exception as error:
        why = f"when repeated, it raised {type(error).__name__}: {message_of(error)}"
    result.failed = why and _NOT_PROFILED + why
    result.notes.extend(call.notes)
    return result


def seconds_of(entry: Callable[..., Any], call: RecordedCall, calls: int) -> float:
    """The median time of a recorded call through `entry`, a compiled function; raises what the call raises."""
    own = list[float]()
    with hook_installer.HOOKS.paused(), Experiment(call) as experiment, no_collection():
        wait = _waiter()
        turns, warm_up = pace(experiment, entry, wait, calls)
        for count in turns:
            own += timed_calls(experiment.calls(entry), wait, count, warm_up)
    return statistics.median(own)


def _measure(experiment: Experiment, calls: int, result: Measurement, on_progress: Callable[[str], None]) -> None:
    entry, wait = experiment.call.entry, _waiter()
    accelerators = [f"{kind}:{i}" for kind in _accelerators() for i in range(getattr(torch, kind).device_count())]
    result.devices = [device_name(device) for device in ("cpu", *accelerators)]
    before = caches.compiles()
    on_progress("measuring: repeating the call until nothing compiles")
    turns, warm_up = pace(experiment, entry, wait, calls)
    known = caches.compiles()
    if known > before:
        result.compiled_meanwhile = [compile_id for compile_id, _, _ in caches.latest_compiles(known - before)]
        count = len(result.compiled_meanwhile)
        as_repeated = f"outside of counts and expectations, as the call was repeated{_why_compiled(known - before)}"
        result.notes += [f"{plural(count, 'frame')} {MEANWHILE}, {as_repeated}"] if count else []
        if others := known - before - count:
            eager = "at the recompile limit, for example, the code runs eagerly"
            result.notes.append(f"{plural(others, 'compile')} begun while measuring may have come to nothing: {eager}")
    steps = itertools.count(1)

    def told(function: Callable[..., Any], what: str) -> Iterator[Callable[[], Any]]:
        """The calls; between two of them, `on_progress` is told how far they are, but not so often that times change."""
        what = f"measuring: {what}, step {next(steps)} of {3 * len(turns)}"
        on_progress(what)
        said = time.perf_counter()
        for number, call in enumerate(experiment.calls(function), 1):
            if time.perf_counter() - said > _TELL_EVERY:
                said = time.perf_counter()
                on_progress(f"{what}, call {number} of {max(number, warm_up + count)}")  # short ones may be more
            yield call

    began, waited = time.perf_counter(), _seconds_waited()
    for count in turns:
        gc.collect(0)
        result.compiled += timed_calls(told(entry, "compiled calls"), wait, count, warm_up)
        with running.marked_graphs(caches.graph_scopes(), GRAPH) as result.marked, profiled(_accelerators()) as trace:
            for number, call in enumerate(itertools.islice(told(entry, "under the profiler"), warm_up + count)):
                wait()
                with running.profiler_mark(CALL if number >= warm_up else "dynascope warm-up"):
                    kept = call()  # its result is freed after the mark
                    if wait is not nothing:
                        with running.profiler_mark(DRAIN):
                            wait()
                del kept, call
        result.events += plain_events(trace)
        with torch.compiler.set_stance("force_eager"):  # what the function itself compiles runs eagerly, too
            result.eager += timed_calls(told(experiment.call.target, "eager calls"), wait, count, warm_up)
    result.waited = (_seconds_waited() - waited) / (time.perf_counter() - began)
    compiled = caches.compiles() - known
    if compiled > 0:
        again = f"{plural(compiled, 'frame')} again{_why_compiled(compiled)}"
        result.notes.append(f"the measured calls compiled {again}: their times include compiling")


def _seconds_waited() -> float:
    """Seconds for which threads of this process could run, but had no core; 0 where the system does not tell."""
    waited = 0
    for task in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # the thread has ended
            waited += int(task.read_text().split()[1])
    return waited * 1e-9


def _why_compiled(count: int) -> str:
    """The functions that were compiled last, each with a guard that failed, as the end of a sentence."""
    latest = {compiled_name(user_name(name), name): failed_guard(reason) for _, name, reason in caches.latest_compiles(count)}
    named = [f"{name}, a guard that failed: {reason}" if reason else name for name, reason in latest.items()]
    return f" ({'; '.join(named[:3])}{'; …' if len(named) > 3 else ''})" if named else ""


def failed_guard(reason: str) -> str:
    """The guard that failed first, of the compiler's reason for a recompile; those of other versions may be the cause."""
    return user_expression(split_comment(COMPILE.sub("", first_line(reason)))[0])


def _is_used(kind: str) -> bool:
    """Whether the program has used a device of this kind; initializing one that it does not use would take device memory."""
    module = getattr(torch, kind, None)
    return module is not None and module.is_available() and getattr(module, "is_initialized", lambda: True)()


def _waiter() -> Callable[[], None]:
    """A function that waits until the current accelerator has finished all work; `nothing` if the program uses none."""
    accelerator = torch.accelerator.current_accelerator()
    return waiter(accelerator.type) if accelerator is not None and _is_used(accelerator.type) else nothing


def _accelerators() -> list[str]:
    """The kinds of devices that the program uses and the profiler can watch."""
    return [kind for kind in ("cuda", "xpu") if _is_used(kind)]


# -- the report ------------------------------------------------------------------------------------------------


def annotate_profile(report: Report, measured: Measurement) -> None:
    """Set the report's profile; if nothing could be measured, a note says why."""
    if measured.failed is not None:
        report.notes.append(measured.failed)
        return
    overhead, function = measured.overhead(), measured.function
    profile = report.profile = profile_of(measured.events, report, overhead, measured.compiled_meanwhile, function)
    profile.median_seconds, profile.spread = statistics.median(measured.compiled), quartiles(measured.compiled)
    _fit(profile)
    profile.devices, profile.function = measured.devices, function
    compile_seconds = report.summary.compile_seconds or None  # without that of `--inputs`
    graphs = {s.label: s.graph for s in profile.segments if s.kind == "graph"}
    is_part = any(g.backward in ("compiled", "from cache") for g in report.graphs) and "backward" not in " ".join(graphs)
    if not measured.is_all or is_part or None in graphs.values():
        compile_seconds = None  # the report's is that of more, such as a backward outside of the call, or of other code
    profile.verdict = Verdict(compiled_seconds=profile.median_seconds, compile_seconds=compile_seconds)
    profile.verdict.eager_seconds = statistics.median(measured.eager)
    profile.verdict.payback, profile.verdict.payback_calls = payback(measured, compile_seconds)
    profile.notes = [*measured.notes, *profile.notes]
    if (profile.profiled_seconds or 0.0) > _DISTURBED * profile.median_seconds:
        profile.segments, profile.lanes, profile.shares, profile.breaks, profile.guard_seconds = [], [], {}, [], None
        long, short = map(time_text, (profile.profiled_seconds or 0.0, profile.median_seconds))
        profile.notes.append(f"a call took {long} under the profiler, {short} without it: where the time goes is unknown")
    if not measured.marked and any(g.ops for g in report.graphs):
        profile.notes.append("captured graphs were not found among the globals: only Inductor's are distinguished from gaps")
    profile.notes += _doubts(measured)
    report.notes.extend(n for n in profile.notes if n not in report.notes)


def _fit(profile: Profile) -> None:
    """Make what breaks cost add up to no more than a call spends outside of graphs: medians of calls that differ may not."""
    spent, most = profile.seconds_of_breaks, profile.call_seconds * (1 - profile.shares.get("graphs", 0.0))
    part = most / spent if spent > most else 1.0
    for cost in profile.breaks:
        cost.seconds, cost.share = (None if value is None else value * part for value in (cost.seconds, cost.share))
        cost.eager_seconds = None if cost.eager_seconds is None else cost.eager_seconds * part
        cost.spread, cost.ops_seconds = [value * part for value in cost.spread], cost.ops_seconds * part


def _doubts(measured: Measurement) -> list[str]:
    """A sentence on what makes the figures uncertain, if anything does: no number follows from such figures.

    The profiler makes no call quicker: where calls are quicker under it, the machine's speed has changed.
    """
    low, high = quartiles(measured.compiled)
    profiled = statistics.median(measured.compiled) + measured.overhead()
    kinds = {"compiled": [min(low, profiled), high], "eager": quartiles(measured.eager)}
    found = [f"{kind} {time_text(low)} to {time_text(high)}" for kind, (low, high) in kinds.items() if high > UNEVEN * low]
    doubts = [f"the calls took very different times ({', '.join(found)})"] * bool(found)
    doubts += ["threads had to wait for a core, as the machine was busy"] * (measured.waited > _BUSY)
    return [f"{doubt}: the figures are rough" for doubt in doubts]


def payback(measured: Measurement, compile_seconds: float | None) -> tuple[Payback, int | None]:
    """After how many calls compiling has paid off, or why there is no such number, from calls of both kinds."""
    eager, compiled = statistics.median(measured.eager), statistics.median(measured.compiled)
    gain = eager - compiled
    is_rough = bool(_doubts(measured))
    range_of = (lambda times: (min(times), max(times))) if is_rough else quartiles
    lows, highs = zip(*map(range_of, (measured.eager, measured.compiled)), strict=True)
    apart = max(lows) > min(highs) and -measured.overhead() <= abs(gain)
    if measured.waited > _BUSY or (not apart and (is_rough or abs(gain) > _CLEAR * eager)):
        return "unclear", None
    if gain <= _CLEAR * eager:
        return "slower" if gain < -_CLEAR * eager else "no gain", None
    if is_rough:
        return "faster", None
    return ("compile time unknown", None) if compile_seconds is None else ("calls", math.ceil(compile_seconds / gain))
