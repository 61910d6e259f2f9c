"""Running a call N more times under torch.profiler, and reading off what it tells.

`measure()` runs: a few calls to warm up, N timed ones, N eager ones, N under `torch.profiler.profile()`; nothing of it
is left behind (`repeat`).  `tell()` makes the Profile from what was measured and the finished report.  GPU paths are
written after torch's documentation and tested on made-up events: they have not yet run on a GPU.
"""

from __future__ import annotations

import contextlib
import gc
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dynascope.compiler.profile.break_costs import first_to_fix, time_text
from dynascope.compiler.profile.profiler_trace import CALL, DRAIN, GRAPH, Event, plain_events
from dynascope.compiler.profile.segments import profile_of
from dynascope.compiler.profile.timing import device_name, middle_half, no_collection, nothing, profiled, timed, waiter
from dynascope.compiler.replay.replay import Arguments, Prepare, Repeat, unwatched, watching
from dynascope.compiler.report import Profile, Report, Verdict, plural
from dynascope.compiler.torch_private import caches, hooks, marks, profiling

DEFAULT_CALLS = 10
#: calls before the first that counts, in each turn: after what lies between two turns, and under a profiler that has just
#: been started, the first ones find nothing in the processor's caches
WARM_UP = 8
#: seconds that they may take; a cache is filled in less
WARM_BUDGET = 0.05
#: seconds; slower calls are made in one turn, with one call to warm up: nobody wants to wait for a hundred of them
SLOW = 0.2
#: the calls are made in so many turns: timed, under the profiler, eager
ROUNDS = 5
#: seconds that the eager calls may take together; at least three are timed
EAGER_BUDGET = 10.0
#: what a run says that Ctrl-C ended
INTERRUPTED = "the call was not profiled: interrupted"


@dataclass
class Measured:
    """What was measured; plain data, no tensor of the user's."""

    events: list[Event] = field(default_factory=list)
    #: seconds of the calls without the profiler
    compiled: list[float] = field(default_factory=list)
    eager: list[float] = field(default_factory=list)
    #: in how many turns the calls were made, and calls before the first that counts in each
    turns: int = ROUNDS
    warm: int = WARM_UP
    devices: list[str] = field(default_factory=list)
    #: whether captured graphs were found, to mark them
    marked: bool = True
    notes: list[str] = field(default_factory=list)
    #: nothing was measured, and why
    failed: str | None = None

    def profilers_own(self) -> float:
        """Seconds by which the profiler makes a call longer: the quicker ones are compared, nothing else delayed them."""
        profiled = [e["duration"] * 1e-9 for e in self.events if e["name"] == CALL]
        return middle_half(profiled)[0] - middle_half(self.compiled)[0] if profiled and self.compiled else 0.0


class LastCall:
    """Keeps what is needed to run the last call of a run's entry points again, and runs it.

    `warn` is told, before the first call, what repeating it cannot undo; `quiet` is entered while calls are repeated.
    """

    def __init__(
        self,
        warn: Callable[[str], None] = lambda sentence: None,
        quiet: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
    ) -> None:
        self._warn, self._quiet = warn, quiet
        self._warned: set[str] = set()
        self._last: tuple[Callable[..., Any], Repeat] | None = None
        #: what was called last, and what it was compiled to
        self._called: tuple[Any, Callable[..., Any]] | None = None
        self._raised = False

    def watch(self, target: Any, entry: Callable[..., Any], namespace: dict[str, Any] | None = None) -> Callable[..., Any]:
        """`entry`, the compiled `target`, with its calls watched; `namespace`: as for Repeat."""
        plain = unwatched(entry)  # what `--check` has put around it is not to be measured

        def call(*args: Any, **kwargs: Any) -> Any:
            repeat = Repeat(target, args, kwargs, namespace)
            for sentence in repeat.warnings():
                if sentence not in self._warned:
                    self._warned.add(sentence)
                    self._warn(sentence)
            self._last, self._raised = (plain, repeat), True
            self._called = (target, plain) if namespace is None else None  # a cell's statements take no inputs
            result = entry(*args, **kwargs)
            self._raised = False
            return result

        return watching(call, entry)

    def measure(self, calls: int) -> Measured:
        """Run the last call again; lets go of its arguments."""
        last, self._last = self._last, None
        if last is None:
            return Measured(failed="nothing was profiled: nothing that this run compiles was called")
        if self._raised:
            return Measured(failed="the call was not profiled: it raised")
        with self._quiet():
            return measure(*last, calls)

    def quietly(self, run: Callable[..., Any], *args: Any) -> Any:
        """`run(target, entry, *args)` with the function that was called last; None where none was."""
        if self._called is None:
            return None
        with self._quiet():
            return run(*self._called, *args)


def measure(entry: Callable[..., Any], repeat: Repeat, calls: int = DEFAULT_CALLS) -> Measured:
    """Run the call again: `entry` is the compiled function; it has been called, and compiled, before."""
    if calls < 1:
        raise ValueError(f"profile takes a number of calls of at least 1, not {calls}")
    result = Measured(notes=repeat.warnings())
    if repeat.why_not is not None:
        result.failed = f"the call was not profiled: {repeat.why_not}"
        return result
    if profiling.profiler_is_on():
        result.failed = "the call was not profiled: another profiler is running, and torch runs only one at a time"
        return result
    try:
        with hooks.HOOKS.paused(), repeat.without_trace() as prepare, no_collection():
            _measure(entry, prepare, calls, result)
    except KeyboardInterrupt:
        result.failed = INTERRUPTED
    except Exception as error:
        result.failed = f"the call was not profiled: run again it raised {type(error).__name__}: {error}"
    result.notes.extend(repeat.notes)
    return result


def _measure(entry: Callable[..., Any], prepare: Prepare, calls: int, result: Measured) -> None:
    import torch

    wait = _waiter()
    result.devices = _devices()
    taken = _timed(entry, prepare(), wait)  # may still compile: a guard can fail on the second call
    taken = _timed(entry, prepare(), wait)
    known = caches.compiles()
    is_slow = taken > SLOW
    is_harmless = not result.notes  # what cannot be undone is done no oftener than need be
    result.turns = min(ROUNDS, calls) if is_harmless and not is_slow else 1
    result.warm = max(1, min(WARM_UP if is_harmless else 3, int(WARM_BUDGET / taken)))
    with torch.compiler.set_stance("force_eager"):
        spent = _timed(entry, prepare(), wait)
    for number in range(result.turns):  # in turns: the load of the machine changes
        many = calls // result.turns + (number < calls % result.turns)
        gc.collect(0)
        result.compiled.extend(_turn(entry, prepare, wait, many, result.warm))
        _profiled(entry, prepare, wait, many, result)
        if number < 3 or spent < EAGER_BUDGET:
            with torch.compiler.set_stance("force_eager"):
                eager = _turn(entry, prepare, wait, many if spent < EAGER_BUDGET else 1, result.warm)
            result.eager += eager
            spent += sum(eager)
    compiled = caches.compiles() - known
    if compiled > 0:
        result.notes.append(
            f"the compiler was at work again in the repeated calls ({plural(compiled, 'frame')}), so what they took is in part "
            "what compiling takes: a guard fails when the call is repeated"
        )


def _turn(entry: Callable[..., Any], prepare: Prepare, wait: Callable[[], None], many: int, warm: int) -> list[float]:
    """Seconds of so many calls, after some to warm up."""
    for number in range(warm):
        _timed(entry, prepare(lightly=number > 0), wait)
    return [_timed(entry, prepare(lightly=True), wait) for _ in range(many)]


def _profiled(entry: Callable[..., Any], prepare: Prepare, wait: Callable[[], None], many: int, result: Measured) -> None:
    """So many calls under the profiler, and before them some to warm up, which are marked as such."""
    with profiling.marked_graphs(_namespaces(entry), GRAPH) as result.marked, _trace() as events:
        for number in range(result.warm + many):
            args, kwargs = prepare(lightly=number > 0)
            wait()
            with profiling.profiler_mark(CALL if number >= result.warm else "dynascope warm-up"):
                kept = entry(*args, **kwargs)
                if wait is not nothing:
                    with profiling.profiler_mark(DRAIN):
                        wait()
            del kept, args, kwargs
    result.events += events


def _timed(entry: Callable[..., Any], arguments: Arguments, wait: Callable[[], None]) -> float:
    args, kwargs = arguments
    return timed(lambda: entry(*args, **kwargs), wait)


def _waiter() -> Callable[[], None]:
    """Waits until the accelerator has done all it was given; does nothing where the program uses none."""
    import torch

    accelerator = torch.accelerator.current_accelerator()
    if accelerator is None or not _is_used(getattr(torch, accelerator.type, None)):
        return nothing
    return waiter(accelerator.type)


def _is_used(module: Any) -> bool:
    """Whether the program has used a device of this kind; asking it for more would take memory on the device."""
    return module is not None and module.is_available() and getattr(module, "is_initialized", lambda: True)()


def _accelerators() -> list[str]:
    """The kinds of devices that the program uses, and the profiler can watch."""
    import torch

    return [kind for kind in ("cuda", "xpu") if _is_used(getattr(torch, kind))]


def _devices() -> list[str]:
    import torch

    names = [device_name("cpu")]
    for kind in _accelerators():
        names += [device_name(f"{kind}:{i}") for i in range(getattr(torch, kind).device_count())]
    return names


def _namespaces(entry: Any) -> Iterator[dict[str, Any]]:
    """Where compiled code finds its graphs: the globals of the functions that were compiled."""
    function = marks.inner_function(getattr(entry, "__wrapped__", entry))
    function = getattr(function, "__func__", None) or getattr(type(function), "forward", None) or function
    if hasattr(function, "__globals__"):
        yield function.__globals__
    for module in list(sys.modules.values()):
        namespace = getattr(module, "__dict__", None)
        if type(namespace) is dict:
            yield namespace


@contextlib.contextmanager
def _trace() -> Iterator[list[Event]]:
    """Everything in the block under the profiler; the list holds the events when the block has ended."""
    events: list[Event] = []
    with profiled(_accelerators()) as trace:
        yield events
    events.extend(plain_events(trace))


# -- telling --------------------------------------------------------------------------------------------------


def tell(measured: Measured, report: Report) -> Profile | None:
    """The Profile; None, with a note in the report, where nothing could be measured."""
    if measured.failed is not None:
        report.notes.append(measured.failed)
        return None
    result = profile_of(measured.events, report, measured.profilers_own())
    result.devices = measured.devices
    result.verdict = verdict(measured, result, report)
    result.first = first_to_fix(result, report)
    result.notes = [*measured.notes, *result.notes]
    if not measured.marked and any(g.ops for g in report.graphs):
        result.notes.append("captured graphs were not found among the globals: only Inductor's are told apart from gaps")
    result.notes += _doubts(measured)
    report.notes.extend(n for n in result.notes if n not in report.notes)
    return result


def _doubts(measured: Measured) -> Iterator[str]:
    """What makes the figures uncertain."""
    if not measured.compiled:
        return
    low, own = middle_half(measured.compiled)[0], measured.profilers_own()
    if own > 0.25 * low:
        yield (
            f"the profiler slows the call down, from {time_text(low)} to {time_text(low + own)}: "
            "short stretches take less without it"
        )
    for calls, seconds in (("calls", measured.compiled), ("eager calls", measured.eager)):
        low, high = middle_half(seconds) or (0.0, 0.0)
        if high > 1.5 * low:
            yield (
                f"the {calls} took very different times, half of them {time_text(low)} to {time_text(high)}: something else "
                "keeps the machine busy, or the call does not always do the same; take the figures for rough ones"
            )


def verdict(measured: Measured, profile: Profile, report: Report) -> Verdict:
    """Eager against compiled, and when compiling has paid for itself."""
    for_inputs = sum(run.compile_seconds for run in report.inputs or ())
    found = Verdict(compile_seconds=max(0.0, report.summary.compile_seconds - for_inputs) or None)
    if any(s.kind == "graph" and s.graph is None for s in profile.segments):
        found.compile_seconds = None  # other code was compiled, too
    if measured.compiled:
        found.compiled_seconds = statistics.median(measured.compiled)
    if measured.eager:
        found.eager_seconds = statistics.median(measured.eager)
    known = [c.share for c in profile.breaks if c.share is not None]
    left = 1 - sum(known)
    if found.compiled_seconds is not None and len(known) == len(profile.breaks) and left > 0:  # medians need not add up
        found.without_breaks_seconds = left * found.compiled_seconds
    if found.eager_seconds is None or found.compiled_seconds is None:
        return found
    gain = found.eager_seconds - found.compiled_seconds
    compiled, eager = time_text(found.compiled_seconds), time_text(found.eager_seconds)
    if gain > 0.03 * found.eager_seconds:
        words = f"Compiled it takes {compiled}, eager {eager}: {found.eager_seconds / found.compiled_seconds:.2f} times as fast"
        if found.compile_seconds is not None:
            found.payback_calls = math.ceil(found.compile_seconds / gain)
            words += f"; compiling pays for itself after {found.payback_calls:,} calls"
    elif gain < -0.03 * found.eager_seconds:
        words = f"Compiled it takes {compiled}, eager {eager}: compiling makes it slower"
    else:
        words = f"Compiled it takes {compiled}, eager {eager}: compiling changes next to nothing"
    if known and found.without_breaks_seconds is not None:
        words += f"; without what its breaks cost it would take at most {time_text(found.without_breaks_seconds)}"
    found.words = words
    return found
