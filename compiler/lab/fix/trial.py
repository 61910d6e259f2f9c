"""Runs the kept calls of a program, with or without a plan, compiled or not, and observes the results and the compiler.

Nothing of a trial stays: what the calls change is restored, the edits are taken out, and Dynamo forgets the code.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import inspect
import math
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import torch

from dynascope.compiler import compiling
from dynascope.compiler.capture.recording import observe
from dynascope.compiler.capture.torch_private import caches, config
from dynascope.compiler.capture.torch_private.running import aot_eager, ends_the_process
from dynascope.compiler.capture.torch_private.tensors import RunCounts, checked_operations, mark_dynamic, may_lose_a_device
from dynascope.compiler.lab.comparison import is_low
from dynascope.compiler.lab.experiment import EndedFromOutside, Experiment, Observation, SideState, Variant
from dynascope.compiler.lab.fix.plan import COMPILE, Plan
from dynascope.compiler.lab.fix.variations import RECORDED, Variation
from dynascope.compiler.lab.profile import failed_guard, seconds_of
from dynascope.compiler.lab.recorded_call import RecordedCall, held_back_output
from dynascope.compiler.patching import patched
from dynascope.compiler.report import Counts, Report, listed
from dynascope.compiler.retrace import retracing
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.code import compiled_name, user_name
from dynascope.compiler.source.lines import CellResolver
from dynascope.compiler.source.origin import in_torch

#: seconds that a call in eager mode may take beyond ten times the longest one with recorded inputs: other inputs may make a
#: loop endless
LONGEST_CALL = 10.0
#: runs a call with a variation of its inputs
Run = Callable[[RecordedCall, Variation], Observation]


@dataclass
class TrialResult:
    """The compiled runs of all calls with their recorded inputs."""

    report: Report
    observed: list[Observation] = field(default_factory=list)
    #: how often the calls, repeated once more, enter a graph, and how many operations they run outside; None: unknown
    graph_runs: int | None = None
    eager_ops: int | None = None
    #: names of what is still compiled when a call is made for the fourth time in a row, with what it changed, and the guards
    compiled_again: list[str] = field(default_factory=list)
    guards: dict[str, str] = field(default_factory=dict)
    #: names of what the later calls compile after that
    compiled_later: list[str] = field(default_factory=list)
    #: whether calls in a row compile more than each of them alone: they change what they guard; None: unknown
    varies: bool | None = None
    #: median seconds of the profiled call; None: it was not timed, or cannot be
    seconds: float | None = None

    @property
    def counts(self) -> Counts:
        """The figures that are shown beside a fix."""
        found = self.report.summary
        again = [f"{name} (a guard that failed: {guard})" if guard else name for name, guard in self.guards.items()]
        return Counts(
            breaks=len(self.report.breaks), graphs=found.graphs, graph_runs=self.graph_runs, eager_ops=self.eager_ops,
            recompiles=None if self.compiled_again else found.recompiles, compiled_again=again, seconds=self.seconds,
        )  # fmt: skip

    def compiles_more_than(self, before: TrialResult) -> str | None:
        """What equal calls in a row, or later calls of the run, compile, and did not before, as a clause; None: nothing.

        That they compiled nothing before is not told: perhaps the earlier calls of the trial have reached the recompile limit.
        That is no excuse for the change: at the limit, what it has moved into the function runs eagerly, too.  So it is where
        the function is compiled in place of another one, which has become a part of it.
        """
        # torch's wrapper of a decorated `forward` has the module's name; where it breaks, `forward` is compiled by itself
        wrappers = {name for f in self.report.frames if in_torch(f.file) for name in (f.name, f.code_name)}
        for who, now, was in (
            ("the fourth of four equal repeated calls compiles", self.compiled_again, before.compiled_again),
            ("when repeated, later calls, which compiled nothing, compile", self.compiled_later, before.compiled_later),
        ):
            more, known = (Counter("forward" if name in wrappers else name for name in names) for names in (now, was))
            if more - known:
                counts = (Counter(names).items() for names in (now, was))
                named, others = (listed([f + f" ({n} times over all calls)" * (n > 1) for f, n in of], 3) for of in counts)
                return f"{who} {named}" + f"; without it, only {others}" * bool(was)
        return None


class Trials:
    """Repeats the kept calls of a run: compiled under a plan, in eager mode, or with the edits but uncompiled.

    `later`: more calls, which compiled nothing: of them, only what they compile is observed.
    `numbers`: with the numbers in modules as they were before each recorded call, and not as the program has left them.
    """

    def __init__(
        self, calls: list[RecordedCall], settings: Settings, cells: CellResolver | None,
        *, later: Sequence[RecordedCall] = (), numbers: bool = True,
    ) -> None:  # fmt: skip
        self.calls, self._later, self._numbers = calls, later, numbers
        #: the value of time.perf_counter() at which a call is ended
        self.deadline = math.inf
        self._recorded_seconds = 0.0
        #: whether one of the calls computes in half precision or less
        self._has_low_precision = False
        self._states = {id(call): SideState(call) for call in (*calls, *later)}
        #: what `seconds` compiles with: those of the run, but nothing is measured, and a break is never an error
        self._timed = settings.replace(fullgraph=False, error_on_graph_break=None, profile=None, inputs=None, check=False)
        #: settings of Dynamo that fullgraph implies
        self._implied = {f"capture_{of}": True for of in ("scalar_outputs", "dynamic_output_shape_ops") if settings.fullgraph}
        #: with the default mode and options
        self.settings = self._timed.replace(mode=None, options={})
        self._cells = cells

    @contextlib.contextmanager
    def compiled(
        self, plan: Plan, backend: Any, helpers: Mapping[str, Any] | None = None, *, strict: bool = True
    ) -> Iterator[Run]:
        """Yields a function that runs a call under the plan; later calls use the code that earlier ones compiled.

        `strict`: an error of the compiler is raised in the call; otherwise the frame runs eagerly.
        """
        compiler = aot_eager if backend == "aot_eager" else backend
        with self._entries(plan, self.settings.replace(backend=compiler), helpers, strict) as entry_of:
            yield lambda call, made: self._failed_uncompiled(plan, call, made) or self._run(call, entry_of(call), made)

    def _failed_uncompiled(self, plan: Plan, call: RecordedCall, variation: Variation = RECORDED) -> Observation | None:
        """What the changed program, uncompiled, does if it raises, and compiled could make a device unusable by that."""
        if not plan.texts or not may_lose_a_device():
            return None
        with checked_operations():
            observed = self._run(call, call.target, variation)
        return None if observed.error is None else observed

    @contextlib.contextmanager
    def _entries(
        self, plan: Plan, settings: Settings, helpers: Mapping[str, Any] | None, strict: bool
    ) -> Iterator[Callable[[RecordedCall], Callable[..., Any]]]:
        """Yields a function that returns the compiled target of a call, with the plan in force."""
        settings = settings.replace(**{name: value for name, value in plan.settings.items() if name in COMPILE})
        entries: dict[int, Callable[..., Any]] = {}
        with (
            caches.only_known_codes(),
            config.quiet_compiler(),
            config.unmeasured_guards(),
            config.lenient_regions(),
            plan.in_force(helpers),
            compiling.environment(settings),
            # the program may have switched compiling off since
            torch.compiler.set_stance("default"),
            config.dynamo_config(disable=False, **self._implied, **{"suppress_errors": False} if strict else {}),
            retracing() as trace_anew,
        ):

            def entry_of(call: RecordedCall) -> Callable[..., Any]:
                if id(call.target) not in entries:
                    trace_anew(call.target)
                    entry = compiling.entry_point(call.target, settings)
                    entries[id(call.target)] = _with_marks(call.target, entry, plan.marks)
                return entries[id(call.target)]

            yield entry_of
            entries.clear()

    @contextlib.contextmanager
    def anew(self) -> Iterator[None]:
        """Whatever is compiled in the block is compiled without the caches on disk, and Dynamo forgets it afterwards."""
        with caches.only_known_codes(), config.quiet_compiler(), config.no_caches(), held_back_output():
            yield

    def seconds(self, call: RecordedCall, plan: Plan, times: int) -> float | None:
        """The median time of a call under a plan, with the backend, mode and options of the run.

        None if the call raises an exception, or does not end before the deadline.
        """
        with self._entries(plan, self._timed, None, False) as entry_of:
            entry = entry_of(call)
            try:
                with time_limit(max(self.deadline - time.perf_counter(), 0.0)):
                    if plan.marks:  # it is compiled with marked arguments; the caller sets the marks, before the call
                        with call.replaying() as prepare:
                            args, kwargs = prepare()
                            entry(*args, **kwargs)
                    return seconds_of(getattr(entry, "unmarked", entry), call, times)
            except KeyboardInterrupt:
                raise
            except BaseException:  # the program may have caught the exception of the recorded call
                return None

    def run(self, plan: Plan, backend: Any, is_counted: Callable[[Report], bool] = lambda report: True) -> TrialResult:
        """Run all calls with their recorded inputs under the plan, and return the report with what they did.

        `is_counted`: whether they are repeated once more, to count what a call does outside of graphs.
        """
        runs_aot = isinstance(self.settings.backend, str) and self.settings.backend != "eager"
        counts = RunCounts(aot_eager if runs_aot else None)
        counted = counts.backend if backend == "eager" else backend
        with self._entries(plan, self.settings.replace(backend=counted), None, False) as entry_of:

            def run(call: RecordedCall, variation: Variation) -> Observation:
                return self._run(call, counts.around(entry_of(call)), variation)

            failed = [self._failed_uncompiled(plan, call) for call in self.calls]
            with observe(self.settings, cells=self._cells) as recording:
                observed = [seen or run(call, RECORDED) for seen, call in zip(failed, self.calls, strict=True)]
            ran = TrialResult(recording.report, observed)
            sees_all = backend == "eager" and counts.graphs == ran.report.summary.graphs
            counts.is_counting = sees_all and not any(seen.error for seen in observed) and is_counted(ran.report)
            if counts.is_counting:
                again = [run(call, RECORDED) for call in self.calls]
                # else this torch compiles nothing under the mode, or the compiled code does not run under it
                if (counts.graph_runs or not counts.graphs) and not any(seen.error for seen in again):
                    ran.graph_runs, ran.eager_ops = counts.graph_runs, counts.eager_ops
                counts.is_counting, counts.in_a_row, known = False, True, caches.compiles()
                for call in self.calls:
                    run(call, RECORDED)
                ran.varies = caches.compiles() > known
                counts.in_a_row, known = False, caches.compiles()
                for call in self._later:
                    run(call, RECORDED)
                ran.compiled_later = [
                    compiled_name(user_name(name), name) for _, name, _ in caches.latest_compiles(caches.compiles() - known)
                ]
                of = {(f.compile_id or "").rpartition("/")[0]: f.name for f in ran.report.frames}
                for id, name, reason in counts.compiled_again:
                    named, guard = compiled_name(of.get(id.rpartition("/")[0], user_name(name)), name), failed_guard(reason)
                    ran.compiled_again.append(named)
                    # as for two layers: which of several guards makes it compile again and again is unknown
                    ran.guards[named] = guard if ran.guards.get(named, guard) == guard else ""
        return ran

    @contextlib.contextmanager
    def eagerly(self, plan: Plan | None = None, helpers: Mapping[str, Any] | None = None) -> Iterator[Run]:
        """Yields a function that runs a call in eager mode, without a plan or with the edits of one.

        What other inputs or a forced condition make fail on a GPU raises an exception, after which the GPU can be used.

        `helpers`: names that the edited text uses; the verification so forces a condition to be true or false.
        """
        edits = contextlib.nullcontext() if plan is None else plan.in_force(helpers)
        with caches.only_known_codes(), edits, torch.compiler.set_stance("force_eager"):

            def run(call: RecordedCall, variation: Variation) -> Observation:
                started, is_recorded = time.perf_counter(), plan is None and variation is RECORDED
                longest = math.inf if is_recorded else LONGEST_CALL + 10 * self._recorded_seconds
                with self._experiment(call) as experiment:
                    variant = self._variant(call.target, variation, min(self.deadline, started + longest))
                    with checked_operations():
                        observed = experiment.run(variant)
                    if observed.error is None and (is_recorded or self._has_low_precision):
                        again = experiment.run(replace(variant, follows_precisions=True))
                        self._has_low_precision = self._has_low_precision or is_low(again.lowest)
                        if again.error is None and is_low(again.lowest):
                            observed.precisions, observed.lowest = again.precisions, again.lowest
                if is_recorded:
                    self._recorded_seconds = max(self._recorded_seconds, time.perf_counter() - started)
                return observed

            yield run

    def in_float64(self, call: RecordedCall, variation: Variation) -> tuple[Observation, Observation]:
        """A call in eager mode, followed in float64: as it is, and with its inputs moved by one unit in the last place."""
        with caches.only_known_codes(), torch.compiler.set_stance("force_eager"), self._experiment(call) as experiment:
            variant = self._variant(call.target, variation, self.deadline)
            exact = experiment.run(replace(variant, follows_float64=0.0))
            unit = 0.0 if exact.lowest is None else float(torch.finfo(exact.lowest).eps)
            return exact, experiment.run(replace(variant, follows_float64=unit))

    @contextlib.contextmanager
    def uncompiled(self, plan: Plan) -> Iterator[Run]:
        """Yields a function that runs a call of the changed program without torch.compile.

        The stance is not "force_eager": that would keep `torch.cond` and its like from compiling what they call.
        """
        with caches.only_known_codes(), config.quiet_compiler(), plan.in_force():
            yield lambda call, variation: self._run(call, call.target, variation)

    def _run(self, call: RecordedCall, entry: Callable[..., Any], variation: Variation) -> Observation:
        with self._experiment(call) as experiment:
            return experiment.run(self._variant(entry, variation, self.deadline))

    def _experiment(self, call: RecordedCall) -> Experiment:
        return Experiment(call, numbers=self._numbers, state=self._states[id(call)])

    def _variant(self, entry: Callable[..., Any], variation: Variation, deadline: float) -> Variant:
        """The variation of a call through `entry`, which raises TookTooLong at the deadline."""

        def limited(*args: Any, **kwargs: Any) -> Any:
            with time_limit(max(deadline - time.perf_counter(), 0.0)):
                return entry(*args, **kwargs)

        return Variant(limited, vary=variation.vary)


def _with_marks(target: Any, entry: Callable[..., Any], marks: Sequence[str]) -> Callable[..., Any]:
    """Wrap `entry` (the compiled `target`) so that dimensions of its arguments are marked as dynamic, as by the user.

    The mark `"x, 0"` is for dimension 0 of `x`; what is wrapped is the attribute `unmarked`.
    """
    if not marks:
        return entry
    signature = inspect.signature(getattr(target, "forward", target))
    wanted = [(name, dimension) for name, dimension in (mark.split(", ") for mark in marks) if name in signature.parameters]

    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        for name, dimension in wanted:
            if name in given:
                if not isinstance(given[name], torch.Tensor):
                    raise TypeError(f"{name} is no tensor, and cannot be marked")
                mark_dynamic(given[name], int(dimension))
        return entry(*args, **kwargs)

    vars(call)["unmarked"] = entry
    return call


#: seconds after which TookTooLong is raised again where it could not be
_RETRY_SECONDS = 0.02
#: whose handler raises it: hardly anything else uses it, and by default it is ignored
_SIGNAL = getattr(signal, "SIGURG", None)


class TookTooLong(EndedFromOutside):
    """Raised in a call that takes too long; a BaseException, so that `except Exception` in the program does not catch it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in this thread after `seconds`, between two bytecode instructions.

    It is raised later where an exception would end the process (`ends_the_process`) or leave a module half imported, which only
    the main thread can know.  Python discards exceptions in a weak reference's callback and in `__del__`; TookTooLong is then
    raised again.  Where it was turned into another error, as torch's C++ does, it is raised instead of that one.  If the
    program catches it, it is gone.
    """
    limit = _Limit()
    hook = sys.unraisablehook

    def on_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is TookTooLong:
            limit.reach_in(_RETRY_SECONDS)
        else:
            hook(unraisable)

    with caches.fx_restored(), patched(sys, {"unraisablehook": on_unraisable}), limit.signal_handled():
        try:
            limit.reach_in(min(seconds, threading.TIMEOUT_MAX))
            yield
        except Exception:
            if limit.is_reached:
                raise TookTooLong from None
            raise
        finally:
            limit.ended = True  # in no method: at a call, an interrupt may come first
            limit.end()


def _imports(frame: FrameType | None) -> int:
    """How many frames of Python's import system called this one; the program itself may run in an import."""
    count = 0
    while frame is not None:
        count, frame = count + (frame.f_code.co_filename == "<frozen importlib._bootstrap>"), frame.f_back
    return count


class _Limit:
    def __init__(self) -> None:
        self.is_reached = self.ended = False
        self._lock, self._timers = threading.Lock(), list[threading.Timer]()
        self._thread, self._imports = threading.get_ident(), _imports(sys._getframe())
        is_main = threading.current_thread() is threading.main_thread()
        #: the signal's handler; None where it cannot be replaced, and restored
        self._before = signal.getsignal(_SIGNAL) if _SIGNAL and is_main else None

    @contextlib.contextmanager
    def signal_handled(self) -> Iterator[None]:
        if not _SIGNAL or self._before is None:
            yield
            return
        # otherwise Dynamo would compile the handler where it is called by compiled code
        signal.signal(_SIGNAL, torch.compiler.disable(self._on_signal))
        try:
            yield
        finally:
            signal.signal(_SIGNAL, self._before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self.is_reached and callable(self._before):  # it is that of another limit, around this one
            self._before(number, frame)
        elif self.is_reached and not self.ended:
            if ends_the_process(frame) or _imports(frame) > self._imports:
                self.reach_in(_RETRY_SECONDS)
            else:
                raise TookTooLong

    def reach_in(self, seconds: float) -> None:
        self._timers.append(timer := threading.Timer(seconds, self._reached))
        timer.daemon = True
        timer.start()

    def _reached(self) -> None:
        with self._lock:
            if not self.ended:
                self.is_reached = True
                if _SIGNAL and self._before is not None:
                    _thread.interrupt_main(_SIGNAL)
                else:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(TookTooLong))

    def end(self) -> None:
        """Raise nothing after this method; outside the main thread, a TookTooLong that is pending is raised in it.

        A pending exception must not be withdrawn (by setting None): Python would look for it at each instruction from then on,
        and the next call under a profile function would never end in Python 3.11.
        """
        for timer in self._timers:
            timer.cancel()
        with self._lock:
            pass
