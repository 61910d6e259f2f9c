"""`--second-call`, and part of `--fix`: finds the graph breaks that occur only in the first call.

The recorded calls are traced again with their own arguments, from the state that the program has left: modules are imported,
caches are filled, warnings have been given.  Like every trial, the calls run on copies and leave nothing behind.
"""

from __future__ import annotations

from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.trial import Trials
from dynascope.compiler.lab.fix.verification import QUICK
from dynascope.compiler.lab.recorded_call import CallRecorder
from dynascope.compiler.report import Break, Report, message_of, plural
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.lines import CellResolver


def trace_again(report: Report, calls: CallRecorder, settings: Settings, cells: CellResolver | None) -> Report | None:
    """The report of the same calls, traced once more.

    None if there is no graph break; None, with a note, if the calls cannot be repeated or fail when repeated.
    """
    if not report.breaks:
        return None
    why_not = refusal(report, calls)
    if why_not is None:
        ran = Trials(calls.kept, settings, cells).run(Plan(), QUICK)
        error = next((o.error for o in ran.observed if o.error is not None), None)
        if error is None:
            return ran.report
        why_not = f"traced again, the call raised {type(error).__name__}: {message_of(error)}"
    report.notes.append(f"second call: not traced: {why_not}")
    return None


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
        occur = "occurs" if first == 1 else "occur"
        report.notes.append(f"second call: {first} of {breaks} {occur} only in the first call")
    if others:
        report.notes.append(f"second call: {plural(others, 'graph break')} at places where the first call had none")
    if not first and not others and report.settings.get("second_call"):
        report.notes.append("second call: it has the same graph breaks")


def refusal(report: Report, calls: CallRecorder) -> str | None:
    """Why repeating the calls would say nothing about the run; None if they can be compared."""
    if report.error is not None:
        return "the run ended with an error"
    if any(call.namespace is not None for call in calls.kept):
        return "a cell's statements would be repeated with its variables as they were before the run: a first call again"
    if calls.is_full:
        return "too many calls compiled something"
    return next(iter(calls.refusals), None if calls.kept else "nothing that this run compiles was called")


def _place(broken: Break) -> tuple[str, int, int | None]:
    return broken.file, broken.line, broken.column
