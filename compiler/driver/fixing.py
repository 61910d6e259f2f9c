"""`--fix`: searches for fixes for the graph breaks and recompiles of a finished run."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from dynascope.compiler.capture.recording import Progress
from dynascope.compiler.driver import compile as compiling
from dynascope.compiler.driver.retrace import retracing
from dynascope.compiler.lab.fix.calls import KeptCalls
from dynascope.compiler.lab.fix.proving.trial import Trials
from dynascope.compiler.lab.fix.registry import CANDIDATE_SOURCES, NOT_FOR_ENTRIES
from dynascope.compiler.lab.fix.result import annotate_fixes
from dynascope.compiler.lab.fix.search import Found, Search
from dynascope.compiler.lab.replay.last_call import WatchedCall
from dynascope.compiler.report import Report
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.lines import CellResolver


class TrialDriver:
    """Compiles trials in the same way as runs; passed as an argument to `fixes`, which cannot import `driver`."""

    def entry_point(self, target: Any, settings: Settings) -> Callable[..., Any]:
        return compiling.entry_point(target, settings)

    def environment(self, settings: Settings) -> AbstractContextManager[None]:
        return compiling.environment(settings)

    def retracing(self) -> AbstractContextManager[Callable[[Any], None]]:
        return retracing()


def find_fixes(
    report: Report,
    kept: KeptCalls,
    settings: Settings,
    *,
    profiled: WatchedCall | None = None,
    cells: CellResolver | None = None,
    on_progress: Progress | None = None,
    user_code: Callable[..., Any] = lambda function, *args: function(*args),
) -> Report | None:
    """Add fixes to a finished Report; returns the report of the calls repeated without any fix, or None if there is none.

    `profiled`: the call that the report's profile is of.  `on_progress` gets the counts of the run, the seconds, and as "stage"
    a sentence on what is being tried; `user_code` calls functions that run the user's code.
    """
    counts = report.summary
    progress = {"frames": counts.frames, "graphs": counts.graphs, "breaks": counts.breaks}
    started = time.perf_counter() - counts.compile_seconds

    def report_stage(sentence: str) -> None:
        if on_progress is not None:
            on_progress({**progress, "stage": sentence, "seconds": time.perf_counter() - started})

    found = Found()
    if kept.calls and (report.breaks or report.recompiles):
        trials = Trials(kept.calls, settings, TrialDriver(), cells)
        search = Search(
            trials,
            report,
            CANDIDATE_SOURCES,
            seconds=settings.fix_seconds,
            not_for_entries=NOT_FOR_ENTRIES,
            profiled=profiled,
            on_progress=report_stage,
        )
        found = search.found
        user_code(search.run)
    elif report.breaks and not kept.refusals:
        found.notes.append("No change was tried: nothing that this run compiles was called")
    annotate_fixes(report, found, kept, cells)
    return found.before
