"""What changed between two reports of the same code, edited or not.

A break is the same where its function, its type and the text of its line are; on another line it has moved.
Cells get another file name with every edit, so all cells count as one file.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from dynascope.compiler.report import Break, Report, dynamic_words, plural, seconds
from dynascope.compiler.source.lines import label

_COUNTS = {
    "graphs": "graph", "breaks": "graph break", "resumes": "resume function", "skipped": "skipped frame",
    "recompiles": "recompile",
}  # fmt: skip
_KINDS = ("fixed", "new", "moved", "changed")


@dataclass(kw_only=True)
class Diff:
    """What one report has that an earlier one had not, and the other way round."""

    #: breaks of the earlier report that are gone
    fixed: list[Break] = field(default_factory=list)
    #: breaks that were not there before
    new: list[Break] = field(default_factory=list)
    #: (before, now) of breaks on another line
    moved: list[tuple[Break, Break]] = field(default_factory=list)
    #: (before, now) of breaks with another outcome, flag or region
    changed: list[tuple[Break, Break]] = field(default_factory=list)
    #: count -> (before, now), where they differ
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: seconds of compiling, before and now
    compile_seconds: tuple[float, float] = (0.0, 0.0)
    #: why the same code was compiled otherwise, beside edits and settings: sentences
    causes: list[str] = field(default_factory=list)
    #: what cannot be said because one of the runs has not finished: sentences
    unfinished: list[str] = field(default_factory=list)
    #: settings that differ: name -> (before, now)
    settings: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything but times and settings differs."""
        return bool(self.fixed or self.new or self.moved or self.changed or self.counts or self.causes or self.unfinished)

    @property
    def lines(self) -> list[str]:
        """One sentence for each thing that changed, what matters most first."""
        found = [f"new: {_told(b)}" for b in self.new]
        found += [f"fixed: {_told(b)}" for b in self.fixed]
        found += [f"now {_outcome(now)}: {_told(now)} (before: {_outcome(before)})" for before, now in self.changed]
        found += [f"moved: {_told(now)} (before: line {before.line})" for before, now in self.moved]
        for name, (before, now) in self.counts.items():
            if name != "breaks":
                found.append(f"{plural(now, _COUNTS[name])} (before: {before}{self._why(name, before, now)})")
        return [*found, *self.causes, *self.unfinished] or ["nothing changed"]

    def _why(self, name: str, before: int, now: int) -> str:
        """Graphs are merged by a break that is fixed, and split by a new one."""
        if name != "graphs":
            return ""
        return "; merged" if now < before and self.fixed else "; split" if now > before and self.new else ""

    @property
    def summary(self) -> str:
        """What changed, in a few words."""
        parts = [f"{len(found)} {what}" for what in _KINDS if (found := getattr(self, what))]
        counts = [f"{plural(now, _COUNTS[name])} (before: {before})" for name, (before, now) in self.counts.items()]
        words = "traced with other sizes" if self.causes else "not finished" if self.unfinished else "nothing changed"
        return " · ".join(parts or counts) or words

    @property
    def times(self) -> str:
        """Seconds of compiling, now and before."""
        before, now = self.compile_seconds
        return f"compiled in {seconds(now)} (before: {seconds(before)})"

    def __str__(self) -> str:
        return "\n".join([*self.lines, self.times])

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, with breaks by their place."""
        return {
            "fixed": [_told(b) for b in self.fixed],
            "new": [_told(b) for b in self.new],
            "moved": [_told(now) for _, now in self.moved],
            "changed": [_told(now) for _, now in self.changed],
            "counts": {name: list(pair) for name, pair in self.counts.items()},
            "compile_seconds": list(self.compile_seconds),
            "settings": {name: list(pair) for name, pair in self.settings.items()},
            "causes": self.causes,
            "unfinished": self.unfinished,
            "lines": self.lines,
            "summary": self.summary,
            "times": self.times,
        }


def diff(before: Report, now: Report) -> Diff:
    """What `now` changed against `before`."""
    old, new = list(before.breaks), list(now.breaks)
    same = _pairs(old, new, lambda b: (*_identity(b), b.line, b.column))
    moved = _pairs(old, new, _identity)
    counts = {name: (getattr(before.summary, name), getattr(now.summary, name)) for name in _COUNTS}
    settings = {name: (before.settings.get(name), value) for name, value in now.settings.items() if name in before.settings}
    told = [
        f"{which} run did not finish: a break that it does not have is not known to be {what}"
        for report, which, what in ((now, "this", "fixed"), (before, "the earlier", "new"))
        if not _is_finished(report)
    ]
    return Diff(
        fixed=old if _is_finished(now) else [],
        new=new if _is_finished(before) else [],
        unfinished=told,
        moved=moved,
        changed=[(a, b) for a, b in [*same, *moved] if (a.outcome, a.allowed) != (b.outcome, b.allowed)],
        counts={name: pair for name, pair in counts.items() if pair[0] != pair[1]},
        compile_seconds=(before.summary.compile_seconds, now.summary.compile_seconds),
        causes=_causes(before, now),
        settings={name: pair for name, pair in settings.items() if pair[0] != pair[1]},
    )


def _is_finished(report: Report) -> bool:
    return report.origin != "partial" and not report.summary.unfinished


def _causes(before: Report, now: Report) -> list[str]:
    """Frames that earlier runs made the compiler trace otherwise, and that it did not trace so before."""
    known = {dynamic_words(f) for f in before.frames if f.dynamic_before}
    return [w for w in dict.fromkeys(dynamic_words(f) for f in now.frames if f.dynamic_before) if w not in known]


def _pairs(old: list[Break], new: list[Break], key: Callable[[Break], Hashable]) -> list[tuple[Break, Break]]:
    """Breaks with the same key, in order; what is paired leaves the lists."""
    waiting: dict[Hashable, list[Break]] = {}
    for found in old:
        waiting.setdefault(key(found), []).append(found)
    pairs = []
    for found in list(new):
        if waiting.get(key(found)):
            pairs.append((waiting[key(found)].pop(0), found))
    for a, b in pairs:
        old.remove(a)
        new.remove(b)
    return pairs


def _identity(found: Break) -> tuple[Hashable, ...]:
    file = "cell" if found.cell is not None else found.file
    return (file, found.function, found.type, found.source.strip())


def _outcome(found: Break) -> str:
    return "allowed" if found.allowed and found.outcome == "resumed" else found.outcome


def _told(found: Break) -> str:
    return f"{label(found.file, found.cell)}:{found.line} {found.source.strip()}"
