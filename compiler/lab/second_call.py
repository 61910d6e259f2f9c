"""Traces the recorded calls again, to know what an advice would do: `--second-call`, and part of `--fix` and `--profile`.

The calls are traced with their own arguments, without the backend, from the state that the program has left: modules are
imported, caches are filled, warnings have been given.  The first trace finds the graph breaks that do not come back; one more
for each setting that the compiler's hints name finds whether it helps or raises an error.  Nothing is verified.  Like every
trial, the calls run on copies and leave nothing behind.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from dynascope.compiler.lab.fix.improvement import failures
from dynascope.compiler.lab.fix.plan import DYNAMO, Plan
from dynascope.compiler.lab.fix.trial import TookTooLong, Trials
from dynascope.compiler.lab.fix.verification import QUICK
from dynascope.compiler.lab.recorded_call import CallRecorder
from dynascope.compiler.report import Break, Report, Trial, message_of, plural
from dynascope.compiler.report.overview import setting_in
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.lines import CellResolver

#: all traces together take at most this many seconds, or this many times what the run compiled for, if that is more; the latter
#: pair if they were not asked for
_ASKED, _UNASKED = (15.0, 3.0), (5.0, 1.0)


def try_hints(
    report: Report, calls: CallRecorder, settings: Settings, cells: CellResolver | None, on_progress: Callable[[str], None]
) -> None:
    """Set the report's trials, and `first_call_only` of its breaks; a note says why not, or which hints were not tried.

    Each setting is tried together with those that helped before it.
    """
    if not report.breaks:
        return
    why_not = refusal(report, calls)
    if why_not is not None:
        report.notes.append(f"second call: not traced: {why_not}")
        return
    trials = Trials(calls.kept, settings, cells, numbers=False)
    least, times = _ASKED if settings.second_call else _UNASKED
    trials.deadline = time.perf_counter() + max(least, times * report.summary.compile_seconds)
    try:
        on_progress("tracing the calls again")
        second, best = _traced(trials, Plan(), report)
        if second is None:
            report.notes.append(f"second call: not traced: traced again, the call raised {best.error}")
            return
        annotate_second_call(report, second, calls)
        report.trials = [best]
        hinted = Counter(setting for b in second.breaks if (setting := setting_in(b.hints)) is not None)
        for number, name in enumerate(sorted(hinted, key=lambda name: -hinted[name]), 1):
            on_progress(f"tracing the calls again with {name} ({number} of {len(hinted)})")
            _, trial = _traced(trials, Plan(settings={**best.settings, DYNAMO + name: True}), report)
            report.trials.append(trial)
            best = trial if trial.is_better_than(best) else best
    except (TookTooLong, KeyboardInterrupt) as error:
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else "the time limit was reached"
        report.notes.append(f"second call: {why}: not every hint of the compiler was tried")


def _traced(trials: Trials, plan: Plan, report: Report) -> tuple[Report | None, Trial]:
    """The report and the trial of one more trace under a plan; no report if a call raises, or the compiler fails in it."""
    trial = Trial(settings=dict(plan.settings))  # type: ignore[arg-type]
    ran = trials.run(plan, QUICK, lambda report: False)  # what the calls do outside of graphs is not asked here
    error = next((o.error for o in ran.observed if o.error is not None), None)
    # such frames run eagerly here, but the user's torch.compile would raise the exception
    failed = next((reason for reason in failures(ran.report) if reason not in failures(report)), None)
    if error is not None or failed is not None:
        trial.error = failed if error is None else f"{type(error).__name__}: {message_of(error)}"
        return None, trial
    again, counts = {_place(b) for b in ran.report.breaks}, ran.report.summary
    trial.removes = [b.id for b in report.breaks if _place(b) not in again]
    trial.breaks, trial.graphs, trial.recompiles = len(ran.report.breaks), counts.graphs, counts.recompiles
    trial.skipped = counts.skipped
    return ran.report, trial


def annotate_second_call(report: Report, second: Report, calls: CallRecorder) -> None:
    """Set `first_call_only` of each break, if the calls of the run and their repetition can be compared."""
    if not report.breaks or refusal(report, calls) is not None or second.error is not None or not second.frames:
        return
    again = {_place(b) for b in second.breaks}
    others = len(again - {_place(b) for b in report.breaks})
    for broken in report.breaks:
        broken.first_call_only = _place(broken) not in again
    first = sum(bool(b.first_call_only) for b in report.breaks)
    if first:
        breaks = plural(len(report.breaks), "graph break")
        come = "does not come" if first == 1 else "do not come"
        report.notes.append(f"second call: {first} of {breaks} {come} back when the calls are repeated")
    if others:
        report.notes.append(f"second call: {plural(others, 'graph break')} at places where the recorded calls had none")
    # a search for fixes repeats the calls with the numbers and flags of modules as they were before them
    if not first and not others and report.settings.get("second_call") and report.fixes is None:
        report.notes.append("second call: it has the same graph breaks")


def refusal(report: Report, calls: CallRecorder) -> str | None:
    """Why repeating the calls would say nothing about the run; None if they can be compared."""
    if report.error is not None:
        return "the run ended with an error"
    if any(call.namespace is not None for call in calls.kept):
        return "a cell's statements would be repeated with its variables as they were before the run: a first call again"
    if any(call.lacks_hooks for call in calls.kept):
        return "hooks of its modules have been removed since"
    if calls.is_full:
        return "too many calls compiled something"
    return next(iter(calls.refusals), None if calls.kept else "nothing that this run compiles was called")


def _place(broken: Break) -> tuple[str, int, int | None]:
    return broken.file, broken.line, broken.column
