"""The report as text: what matters first, in few lines; with colors for a terminal that takes them.

Promises: control characters in the report's texts do not reach the terminal; a break takes about ten lines, and only the first
`MOST` breaks are shown in full; if a part cannot be written, one line says so and the rest is shown.
"""

from __future__ import annotations

import os
from typing import TextIO

from dynascope.compiler.report import Report
from dynascope.widgets.features.breaks import break_lines
from dynascope.widgets.features.compile_time import compile_time_lines
from dynascope.widgets.features.fixes import fix_lines
from dynascope.widgets.features.frames import skipped_lines
from dynascope.widgets.features.graphs import graph_lines
from dynascope.widgets.features.overview import SCREEN, overview, overview_lines
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.recompiles import recompile_lines, recompile_rows
from dynascope.widgets.features.run_time import input_lines, run_time_lines
from dynascope.widgets.features.summary import error_lines, first_lines, headline_lines, note_lines, recommendation
from dynascope.widgets.terminal import Terminal, columns, is_open
from dynascope.widgets.words import guarded

#: at most this many breaks, frames and recompiles are shown in full
MOST = 12


def takes_colours(stream: TextIO) -> bool:
    """Whether the stream is an open terminal that takes colors (`NO_COLOR` is not set, and `TERM` is not "dumb")."""
    is_terminal = is_open(stream) and getattr(stream, "isatty", bool)()
    return is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def to_text(report: Report, colour: bool = False, width: int | None = None, *, whole: bool = False) -> str:
    """`report` as text; for a large report (many frames of several functions), only an overview and summaries, one screen.

    Args:
        report: what is shown.
        colour: with a terminal's escape sequences; a saved file and `str(report)` are plain.
        width: in columns; None: the terminal's, from 48 to 110.
        whole: without an overview: as `to_details` says.
    """
    return guarded("This report", lambda: "\n".join(_lines(report, Terminal(colour, columns(width)), whole)), str)


def to_details(report: Report, colour: bool = False, width: int | None = None) -> str:
    """`report` as text without an overview: breaks and recompiles in full, the first frames, fixes, times, inputs and notes."""
    return to_text(report, colour, width, whole=True)


def _lines(report: Report, t: Terminal, whole: bool) -> list[str]:
    """All lines; unless `whole`, without the compile time, and for a large report only the overview and summaries."""
    places = Places(report, brief=not whole)
    head = t.part("The headline", lambda: headline_lines(report, t)) + t.part("The error", lambda: error_lines(places, t))
    missing: list[str] = []
    shown = None if whole else guarded("The overview", lambda: overview(places), missing.append)
    head += [line for why in missing for line in t.wrap("note: " + why, "", 3)]
    small, most = shown is None, MOST if shown is None else 1
    rows, guards = (100, 100) if whole else (MOST, 3)
    head += t.part("The limit", lambda: recompile_lines(recompile_rows(places, refused=True), t, most, guards * small))
    head += t.part("What to do first", lambda: first_lines(recommendation(places), t))
    fixes = t.part("The fixes", lambda: fix_lines(places, t, MOST if small else 0))
    skipped = t.part("The skipped frames", lambda: skipped_lines(places, t, MOST if small else 3))
    run_time = t.part("The run time", lambda: run_time_lines(places, t, MOST))
    inputs = t.part("The inputs", lambda: input_lines(report, t, 2 * MOST))
    notes = t.part("The notes", lambda: note_lines(report, t, MOST if small else 2, 40 if whole else 3))
    if shown is not None:
        brief = [*skipped, *fixes, *run_time[:2], *inputs[:2], *notes]
        room = SCREEN - len(head) - len(brief)
        return head + t.part("The overview", lambda: overview_lines(shown, t, room)) + brief
    return [
        *head,
        *t.part("The breaks", lambda: break_lines(places, t, rows)),
        *skipped,
        *t.part("The recompiles", lambda: recompile_lines(recompile_rows(places, refused=False), t, rows, guards)),
        *fixes,
        *run_time,
        *(t.part("The compile time", lambda: compile_time_lines(places, t)) if whole else []),
        *inputs,
        *t.part("The run of a graph alone", lambda: graph_lines(report, t)),
        *notes,
    ]
