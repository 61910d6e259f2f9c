"""Traces the recorded calls again, to know what an advice would do: `--second-call`, and part of `--profile`.

The calls are traced with their own arguments, without the backend, from the state that the program has left: modules are
imported, caches are filled, warnings have been given.  The first trace finds the graph breaks that do not come back; one more
for each setting that the compiler's hints name finds whether it helps, raises an error, changes what the recorded calls do,
or makes calls in a row go on compiling.  Nothing more is verified.  `--fix` needs no such trace: the search begins with one.
Like every trial, the calls run on copies and leave nothing behind.
"""

from __future__ import annotations

import time
from collections import Counter

from dynascope.compiler.lab.fix.difference import differences
from dynascope.compiler.lab.fix.improvement import extent, failures, gone
from dynascope.compiler.lab.fix.plan import DYNAMO, Plan
from dynascope.compiler.lab.fix.trial import TookTooLong, TrialResult, Trials
from dynascope.compiler.lab.fix.variations import RECORDED
from dynascope.compiler.lab.fix.verification import QUICK
from dynascope.compiler.lab.recorded_call import CallRecorder, Say
from dynascope.compiler.report import Report, Trial, label, listed, message_of, plural
from dynascope.compiler.report.overview import setting_in
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.lines import CellResolver

#: all traces together take at most this many seconds, or this many times what the run compiled for, if that is more; the latter
#: pair if they were not asked for
_ASKED, _UNASKED = (15.0, 3.0), (5.0, 1.0)


def try_hints(report: Report, calls: CallRecorder, settings: Settings, cells: CellResolver | None, say: Say) -> None:
    """Set the report's trials, and `first_call_only` of its breaks; a note says what was not tried, if it was asked for.

    Each setting is tried together with those that helped before it.
    """
    notes = report.notes if settings.second_call else []  # else the advice says which hints were not tried
    if (why_not := refusal(report, calls) if report.own_breaks else "the report has no graph breaks") is not None:
        notes.append(f"second call: not traced: {why_not}")
        return
    trials = Trials(calls.kept, settings, cells, later=calls.later, numbers=False)
    least, times = _ASKED if settings.second_call else _UNASKED
    trials.deadline = time.perf_counter() + max(least, times * report.summary.compile_seconds)
    try:
        say("tracing the calls again")
        second, best = _traced(trials, Plan(), report, len(report.own_breaks) - 1)
        if second.varies:
            which = listed(second.counts.compiled_again, 3)
            best.harm = "calls in a row go on compiling" + f" {which}" * bool(which)
        if best.harm is not None:
            notes.append(f"second call: not compared: when the calls are traced again, {best.harm}")
            return
        annotate_second_call(report, second.report, calls)
        report.trials = [best]
        hinted = Counter(setting for b in second.report.breaks if (setting := setting_in(b.hints)) is not None)
        for number, name in enumerate(sorted(hinted, key=lambda name: -hinted[name]), 1):
            say(f"tracing the calls again with {name} ({number} of {len(hinted)})")
            ran, trial = _traced(trials, Plan(settings={**best.settings, DYNAMO + name: True}), report, best.breaks or 0)
            trial.harm = trial.harm or trial.no_gain_over(best)
            if trial.harm is None and ((other := _difference(trials, ran)) or ran.compiled_again or ran.compiled_later):
                before = trials.run(Plan(settings=best.settings), QUICK)  # without the setting
                again = ran.compiles_more_than(before)
                trial.harm = again if other is None or _difference(trials, before) else other
            report.trials.append(trial)
            best = trial if trial.harm is None else best
    except (TookTooLong, KeyboardInterrupt) as error:
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else "the time limit was reached"
        notes.append(f"second call: {why}: not every hint of the compiler was tried")


def _traced(trials: Trials, plan: Plan, report: Report, most: int) -> tuple[TrialResult, Trial]:
    """One more trace under a plan; with at most `most` breaks, it also finds what calls in a row go on to compile."""
    trial = Trial(settings=dict(plan.settings))  # type: ignore[arg-type]
    ran = trials.run(plan, QUICK, lambda found: len(found.breaks) <= most)
    error = next((f"{o.error_type}: {message_of(o.error)}" for o in ran.observed if o.error is not None), None)
    # such frames run eagerly here, but the user's torch.compile would raise the exception
    failed = error or next((reason for reason in failures(ran.report) if reason not in failures(report)), None)
    if failed is not None:
        trial.harm = f"it ends in an error: {failed}"
        return ran, trial
    trial.removes, counts = gone(report, ran.report), ran.report.summary
    trial.breaks, trial.graphs, trial.recompiles = len(ran.report.breaks), counts.graphs, counts.recompiles
    trial.skipped = counts.skipped
    return ran, trial


def _difference(trials: Trials, ran: TrialResult) -> str | None:
    """What the calls of a trace do that they do not do in eager mode, as a clause."""
    with trials.eagerly() as run:
        found = [differences(actual, run(call, RECORDED)) for call, actual in zip(trials.calls, ran.observed, strict=True)]
    other = next((one.text for one in found if one is not None and not one.is_condition), None)
    return None if other is None else f"the call then does something else ({other})"


def annotate_second_call(report: Report, second: Report, calls: CallRecorder) -> None:
    """Set `first_call_only` of each break, if the calls of the run and their repetition can be compared."""
    own = [b for b in report.own_breaks if not b.allowed]  # here, code is not split by the regions of `--region`
    if not own and report.own_breaks and report.settings.get("second_call"):
        report.notes.append("second call: not compared: regions allow all graph breaks")
    if not own or refusal(report, calls) is not None or second.error is not None or not second.frames:
        return
    again, known, removed = {extent(b): b for b in second.breaks}, {*map(extent, report.own_breaks)}, gone(report, second)
    others = [b for at, b in again.items() if at not in known and own == report.own_breaks]
    # with as many breaks and eager frames as before, those that are absent have made way for others
    fewer = len(again) < len(known) or second.summary.skipped < report.summary.skipped
    for broken in own:
        broken.first_call_only = extent(broken) not in again and ((fewer and broken.id in removed) or None)
    if first := sum(bool(b.first_call_only) for b in own):
        report.notes.append(f"second call: {first} of {plural(len(own), 'graph break')} gone when the calls are traced again")
    if others:
        at = listed(dict.fromkeys(f"{label(b.file, b.cell)}:{b.line}" for b in others), 3)
        found = f"{plural(len(others), 'graph break')} where the recorded calls had none, at {at}"
        how = "the calls are traced again, without the backend, from the state that they left"
        report.notes.append(f"second call: {found}: {how}")
    same = all(b.first_call_only is False for b in own)
    if not (others or first) and report.settings.get("second_call") and (same or fewer):
        words = "it has the same graph breaks" if same else "unknown which graph breaks come back"
        report.notes.append(f"second call: {words}")


def refusal(report: Report, calls: CallRecorder) -> str | None:
    """Why repeating the calls would say nothing about the run; None if they can be compared."""
    if report.error is not None:
        return "the run ended with an error"
    if any(call.namespace is not None for call in calls.kept):
        return "a cell's statements would be repeated with its variables as they were before the run: a first call again"
    if any(call.lacks_hooks for call in calls.kept):
        return "hooks of its modules have been removed since"
    if calls.refusals or not calls.kept:
        return next(iter(calls.refusals), "nothing that dynascope itself compiles was called")
    part = "not all that was compiled can be repeated, only the first calls of what dynascope itself compiles"
    return None if calls.is_whole else part
