"""Compares two reports of the same code, which may have been edited in between.

Two breaks are the same if they have the same file, function, type and text of the line; if the line number differs, the break
has moved.  Columns only tell apart the breaks of one line.  Every edit gives a cell another file name, so all cells count as
one file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from dynascope.compiler.lowerings import lower
from dynascope.compiler.report.formatting import dynamic_words, encodable
from dynascope.compiler.report.schema import Break, ReportData, Setting, Source

_DEFINED = re.compile(r"^\s*(?:async\s+)?def\s+(\w+)")
#: counts of `Summary` that are compared; their words are in `widgets.labels.comparisons._COUNTS`
COUNTS = ("graphs", "breaks", "resumes", "skipped", "recompiles")


@dataclass(kw_only=True)
class Diff:
    """The changes from one report to a later one."""

    #: breaks of the earlier report that are gone
    fixed: list[Break] = field(default_factory=list)
    #: breaks of the earlier report that may still be there: the later run may have stopped before it reached them
    not_reached: list[Break] = field(default_factory=list)
    #: breaks that were not there before
    new: list[Break] = field(default_factory=list)
    #: (before, now) of breaks with another line number
    moved: list[tuple[Break, Break]] = field(default_factory=list)
    #: (before, now) of breaks with another `outcome` or `allowed`
    changed: list[tuple[Break, Break]] = field(default_factory=list)
    #: counts that differ: name -> (before, now)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: compile time in seconds, before and now
    compile_seconds: tuple[float, float] = (0.0, 0.0)
    #: sentences on why the same code was compiled differently, for other reasons than edits and settings
    causes: list[str] = field(default_factory=list)
    #: which of the two runs did not finish; a break that is missing from its report counts as neither fixed nor new
    unfinished: list[Literal["now", "before"]] = field(default_factory=list)
    #: settings that differ: name -> (before, now)
    settings: dict[str, tuple[Setting, Setting]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything but times and settings differs."""
        breaks = (self.fixed, self.not_reached, self.new, self.moved, self.changed)
        return any((*breaks, self.counts, self.causes, self.unfinished))

    @property
    def lines(self) -> list[str]:
        """One sentence for each change, the most important first."""
        return [str(line) for line in lower("diff lines", self)]

    @property
    def summary(self) -> str:
        """What changed, in a few words."""
        return str(lower("diff summary", self))

    @property
    def times(self) -> str:
        """The compile times, now and before, as text."""
        return str(lower("diff times", self))

    def __str__(self) -> str:
        return encodable("\n".join([*self.lines, self.times]))

    def to_dict(self) -> dict[str, Any]:
        """The changes as JSON-ready data, with the sentences; breaks are named by their place."""
        return dict(lower("diff dict", self))


def diff(before: ReportData, now: ReportData) -> Diff:
    """What changed from `before` to `now`."""
    gone, new = list(before.breaks), list(now.breaks)
    same = _pairs(gone, new, lambda b: (*_identity(b), b.line, b.column))
    same += _pairs(gone, new, lambda b: (*_identity(b), b.line))  # the line is indented otherwise, or its column was unknown
    moved = _pairs(gone, new, _identity)
    counts = {name: (getattr(before.summary, name), getattr(now.summary, name)) for name in COUNTS}
    settings = {name: (before.settings.get(name), value) for name, value in now.settings.items() if name in before.settings}
    runs: dict[Literal["now", "before"], ReportData] = {"now": now, "before": before}
    unfinished = [name for name, run in runs.items() if run.origin == "partial" or run.summary.unfinished]
    not_reached = gone if "now" in unfinished else list(_not_reached(gone, now))[::-1]
    return Diff(
        unfinished=unfinished,
        fixed=[b for b in gone if not any(b is other for other in not_reached)],
        not_reached=not_reached,
        new=[] if "before" in unfinished else new,
        moved=moved,
        changed=[(a, b) for a, b in [*same, *moved] if (a.outcome, a.allowed) != (b.outcome, b.allowed)],
        counts={name: pair for name, pair in counts.items() if pair[0] != pair[1]},
        compile_seconds=(before.summary.compile_seconds, now.summary.compile_seconds),
        causes=_causes(before, now),
        settings={name: pair for name, pair in settings.items() if pair[0] != pair[1]},
    )


def _causes(before: ReportData, now: ReportData) -> list[str]:
    """Sentences on frames that earlier runs caused to be traced with symbolic sizes in `now`, but not in `before`."""
    known = {dynamic_words(f) for f in before.frames if f.dynamic_before}
    return [w for w in dict.fromkeys(dynamic_words(f) for f in now.frames if f.dynamic_before) if w not in known]


def _not_reached(gone: list[Break], now: ReportData) -> Iterator[Break]:
    """The breaks in `gone` that a stopped run may not have reached: the report does not show that they are fixed.

    A break is fixed if the report shows the source around it, and either its line is no longer there, or an operation on the
    line is in a graph.  If only some of several equal lines are gone, the last ones count as not reached.
    """
    if now.error is None or now.error.caught:
        return
    captured = {(n.file, n.line) for g in now.graphs for n in g.nodes if n.op.startswith("call_")}
    uncaptured: Counter[tuple[str, str]] = Counter()  # (file, text) -> number of such lines that are in no graph
    shown: set[tuple[str, str]] = set()  # (file, name) of the functions whose text is in the report
    for source in now.sources:
        file = _file(source)
        for excerpt in source.excerpts:
            for number, text in enumerate(excerpt.text.split("\n"), excerpt.line):
                uncaptured[file, text.strip()] += (source.file, number) not in captured
                shown.update((file, name) for name in _DEFINED.findall(text))
    has_cell = any(s.cell is not None for s in now.sources)
    still = Counter(_identity(b) for b in now.breaks)
    for broken in reversed(gone):
        is_shown = has_cell if broken.cell is not None else (broken.file, broken.function) in shown
        if not is_shown or uncaptured[_file(broken), broken.source.strip()] > still[_identity(broken)]:
            still[_identity(broken)] += 1
            yield broken


def _pairs(old: list[Break], new: list[Break], key: Callable[[Break], Hashable]) -> list[tuple[Break, Break]]:
    """Pair breaks with the same key, in order, and remove them from both lists."""
    pairs = []
    for b in list(new):
        before = next((a for a in old if key(a) == key(b)), None)
        if before is not None:
            pairs.append((before, b))
            old.remove(before)
            new.remove(b)
    return pairs


def _identity(broken: Break) -> tuple[Hashable, ...]:
    return (_file(broken), broken.function, broken.type, broken.source.strip())


def _file(part: Break | Source) -> str:
    return "cell" if part.cell is not None else part.file
