"""The report as text: what matters first, in few lines; with colours for a terminal that asks for them.

Promises: no control character of the report's own gets through; a break takes at most ten lines, and only the first `MOST`
breaks are shown whole; if a part cannot be written, one line says so and the rest is shown.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Callable
from functools import partial
from typing import TextIO

from dynascope.compiler.report import Break, Report
from dynascope.widgets.guarded import guarded
from dynascope.widgets.labels.advice import advice, cause_of, eager_because_of, only_rest_is_eager, reasons, said, set_by
from dynascope.widgets.labels.bands import region_name
from dynascope.widgets.labels.fixes import diff_lines, fix_words, fixes_summary, refused
from dynascope.widgets.labels.sentences import (
    cost_words,
    graphs_alone,
    headline,
    input_words,
    inputs_summary,
    recompile_words,
    record_notes,
)
from dynascope.widgets.labels.words import Places, indent_of, printable, shorten
from dynascope.widgets.model.build import sorted_breaks
from dynascope.widgets.model.timeline import timeline

MOST = 12
_CODES = {"bold": "1", "soft": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_SENTENCES = re.compile(r"(?<=[.!?]) (?=[A-Z])")
_OUTCOMES = {"resumed": "resumed", "skipped": "the whole frame runs eagerly", "raised": "stopped here"}


def takes_colours(stream: TextIO) -> bool:
    """Whether the stream is a terminal that takes colours (`NO_COLOR` is not set)."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def to_text(report: Report, colour: bool = False, width: int | None = None) -> str:
    """`report` as text.

    Args:
        report: what is shown.
        colour: with a terminal's escape sequences; a saved file and `str(report)` are plain.
        width: in columns; None: of the terminal, at most 110.
    """
    if width is None:
        width = min(110, shutil.get_terminal_size((100, 24)).columns)
    columns = max(48, width)
    return guarded("This report", lambda: "\n".join(_Terminal(report, colour, columns).lines()), str)


class _Terminal:
    def __init__(self, report: Report, colour: bool, width: int) -> None:
        self.report, self.colour, self.width = report, colour, width
        self.places = Places(report)
        self.frames = {f.id: f for f in report.frames}

    def part(self, what: str, make: Callable[[], list[str]]) -> list[str]:
        """The lines of one part; if it cannot be written, one line that says so."""
        return guarded(what, make, lambda why: ["", *self.wrap("note: " + why, "", 3)])

    def paint(self, text: str, *styles: str) -> str:
        codes = ";".join(_CODES[s] for s in styles)
        return f"\x1b[{codes}m{text}\x1b[0m" if self.colour and text else text

    def wrap(self, text: str, indent: str, most: int = 2) -> list[str]:
        """`text` in at most `most` lines: if longer, the sentences that fit; if these fill less than half, cut off text."""
        sentences = _SENTENCES.split(" ".join(said(text, 2000).split()))
        under = indent or "  "  # the later lines of a text at the margin
        wrapper = textwrap.TextWrapper(self.width, initial_indent=indent, subsequent_indent=under, break_on_hyphens=False)
        for count in range(len(sentences), 0, -1):
            whole = count == len(sentences)
            lines = wrapper.wrap(" ".join(sentences[:count]) + ("" if whole else " …"))
            if len(lines) <= most and (whole or 2 * len(lines) > most):
                return lines
        wrapper.max_lines, wrapper.placeholder = most, " …"
        return wrapper.wrap(" ".join(sentences))

    def lines(self) -> list[str]:
        parts = (
            ("The headline", self.headline), ("The error", self.error), ("The breaks", self.breaks),
            ("The skipped frames", self.skipped), ("The recompiles", self.recompiles), ("The fixes", self.fixes),
            ("The run time", self.run_time),
            ("The inputs", self.inputs), ("The run of a graph alone", self.graphs_alone), ("The notes", self.notes),
        )  # fmt: skip
        return [line for what, make in parts for line in self.part(what, make)]

    def headline(self) -> list[str]:
        head, _, rest = printable(headline(self.report), 500).partition(": ")
        return [self.paint(head, "bold") + ": " + rest]

    def breaks(self) -> list[str]:
        """The first breaks in full, and the places of the others."""
        breaks, out = sorted_breaks(self.report), []
        for b in breaks[:MOST]:
            out += self.part("A graph break", partial(self.break_, b))
        if len(breaks) > MOST:
            out += ["", self.paint(f"{len(breaks) - MOST} more graph breaks:", "bold")]
            listed = [(self.places.at(b.file, b.line, b.cell), b.source) for b in breaks[MOST : MOST + 20]]
            out += [f"  {place}  {shorten(source, self.width - 30)}" for place, source in listed]
            if len(breaks) > MOST + 20:
                out.append(f"  … and {len(breaks) - MOST - 20} more")
        return out

    def notes(self) -> list[str]:
        notes = [*self.report.notes[:8], *record_notes(self.report)]
        lines = [line for note in notes for line in self.wrap("note: " + note, "", 3)]
        return ["", *lines] if lines else []

    def fixes(self) -> list[str]:
        """The fixes that are proved, as diffs, and for the other breaks what was tried in vain."""
        summary = fixes_summary(self.report)
        if not summary or self.report.fix_set is None:
            return []
        out = ["", self.paint(summary, "bold")]
        at = {b.id: self.places.at(b.file, b.line, b.cell) for b in self.report.breaks}
        again = {r.frame: f"recompile of {self.places.name(self.report.frame(r.frame))}" for r in self.report.recompiles}
        for fix in self.report.fixes or ():
            if fix.chosen:
                place = at.get(fix.break_ or "") or again.get(fix.recompile or "", "what shows only then")
                out += self.paint_all(self.wrap(f"✓ {place} {fix_words(fix)}", "    ", 3), "green")
                out += [self.changed_line(line) for line in diff_lines(fix)]
                out += self.wrap(f"takes for granted: {fix.assumption}", "      ", 3) if fix.assumption else []
        for b in self.report.breaks[:MOST]:
            for fix in refused(self.report, b.id)[:3]:
                out += self.paint_all(self.wrap(f"✗ {at[b.id]} {fix_words(fix)}", "    "), "soft")
        if self.report.fix_set.fixes:
            out += self.paint_all(["  → report.patch() is the diff, report.fixed() the fixed function"], "green")
        return [*out, *(line for note in self.report.fix_set.notes for line in self.wrap("note: " + note, "", 3))]

    def changed_line(self, line: str) -> str:
        """One line of a diff, in its colour."""
        shown = printable(line, self.width - 6).expandtabs(4)
        return " " * 6 + self.paint(shown, {"+": "green", "-": "red"}.get(line[:1], "soft"))

    def run_time(self) -> list[str]:
        """Where the time of a call goes, and what each break costs."""
        profile, line = self.report.profile, timeline(self.report, self.places)
        if profile is None or line is None:
            return []
        shares = " · ".join(f"{s['name']} {100 * s['part']:.0f} %" for s in line["shares"])
        out = ["", self.paint(f"run time: {line['median']} a call", "bold") + f" ({line['spread']}; {line['calls']} calls)"]
        out += self.wrap(shares, "    ") + (self.wrap(line["verdict"], "    ", 3) if line["verdict"] else [])
        at = {b.id: self.places.at(b.file, b.line, b.cell) for b in self.report.breaks}
        for cost in profile.breaks[:MOST]:
            out += self.wrap(f"{at[cost.break_]} {cost_words(cost)}", "    ")
        return out + (self.paint_all(self.wrap(line["first"], "  → "), "green") if line["first"] else [])

    def inputs(self) -> list[str]:
        """Each input of a list: what it made the compiler do, and what a call with it takes."""
        runs = self.report.inputs
        if not runs:
            return []
        out = ["", self.paint(inputs_summary(runs), "bold")]
        for number, run in enumerate(runs[: 2 * MOST], 1):
            out += self.wrap(f"{number}. {run.arguments}: {input_words(run)}", "    ", 3)
        return out + ([f"    … and {len(runs) - 2 * MOST} more"] if len(runs) > 2 * MOST else [])

    def graphs_alone(self) -> list[str]:
        """Graphs that were run on their own."""
        out = [line for sentence in graphs_alone(self.report) for line in self.wrap(f"▦ {sentence}", "", 3)]
        return ["", *out] if out else []

    def error(self) -> list[str]:
        e = self.report.error
        if e is None:
            return []
        at = f" at {self.places.at(e.file, e.line, e.cell)}" if e.file else ""
        message = next((line for line in e.message.splitlines() if line.strip()), "")
        caught = ", caught by your code" if e.caught else ""
        return self.paint_all(self.wrap(f"✗ {e.type}{at}{caught}: {message}", "", 3), "red")

    def paint_all(self, lines: list[str], *styles: str) -> list[str]:
        return [self.paint(line, *styles) for line in lines]

    def break_(self, b: Break) -> list[str]:
        place = self.places.of_break(b)
        outcome = self.outcome(b) + allowed_words(b, self.places)
        hits = f", seen from {len(b.hits)} frames" if len(b.hits) > 1 else ""
        colour = "soft" if b.allowed else "red" if b.outcome == "raised" else "yellow"
        function = f" in {shorten(self.places.function(b.function, b.file, b.line), 60)}" if b.function else ""
        out = ["", self.paint("✂ graph break", colour, "bold") + f" at {self.paint(place, 'bold')}{function}"]
        ending = f"({outcome}{hits})"
        if len(f"✂ graph break at {place}{function} {ending}") <= self.width:
            out[1] += " " + self.paint(ending, "soft")
        else:
            out += self.paint_all(self.wrap(ending, "    "), "soft")
        out += self.source(b, colour)
        why = [said(t, 2000).strip() for t in reasons(b)]
        out += self.wrap(" ".join(t if t.endswith((".", ":", "!")) else f"{t}." for t in why), "    ")
        steps = advice(b)
        if steps:
            first = self.wrap(steps[0], "      ", 3)
            out += [self.paint("    → ", "green") + first[0].lstrip(), *first[1:]] if first else []
        return out

    def outcome(self, b: Break) -> str:
        """The outcome of a break, with the names of other frames that run eagerly because of it."""
        eager = [self.places.name(f) for f in eager_because_of(self.report, b)]
        if only_rest_is_eager(self.report, b):
            return "the rest of the frame runs eagerly"
        if not eager or eager == [self.places.function(b.function, b.file, b.line)]:
            return _OUTCOMES[b.outcome]
        return f"{shorten(' and '.join(eager[:2]), 80)} {'runs' if len(eager) == 1 else 'run'} eagerly"

    def source(self, b: Break, colour: str) -> list[str]:
        """The line of the break, with a caret line under its columns."""
        raw, start, end, _ = self.places.span(b)
        text = printable(raw, 4000).expandtabs(1).rstrip()
        if not text.strip():
            return []
        indent = indent_of(text)
        gutter = f"{b.line:>7} │ "
        room = self.width - len(gutter)
        shown, start, end = text[indent:], max(0, start - indent), max(1, end - indent)
        if len(shown) > room:
            shown = shown[: room - 1] + "…"
        start, end = min(start, room - 1), min(max(end, start + 1), room)
        return [
            self.paint(gutter, "soft") + shown,
            self.paint(" " * 7 + " │ ", "soft") + " " * start + self.paint("^" * max(1, end - start), colour),
        ]

    def skipped(self) -> list[str]:
        out: list[str] = []
        for f in [f for f in self.report.frames if f.status in ("skipped", "failed", "unfinished")][:MOST]:
            cause = cause_of(self.report, f)
            if cause:
                why = f"because of the break at {self.places.at(cause.file, cause.line, cause.cell)}"
            else:
                why = said(f.reason or "reason unknown", 1000).split("\n")[0]
            sign = "…" if f.status == "unfinished" else "–"
            out += self.wrap(f"{sign} {f.status} frame {self.places.name(f)} at {self.places.frame(f)}: {why}", "")
        return ["", *self.paint_all(out, "soft")] if out else []

    def recompiles(self) -> list[str]:
        out: list[str] = []
        for r in self.report.recompiles[:MOST]:
            f = self.frames.get(r.frame)
            reason = next(iter(recompile_words(r)), "a guard failed")
            out += self.wrap(f"↻ recompile of {self.places.name(f) if f else r.frame}: {reason}", "")
        return ["", *self.paint_all(out, "cyan")] if out else []


def allowed_words(b: Break, places: Places) -> str:
    """`, allowed by region In[3]:8`; empty if the break is not allowed."""
    region = region_name(b, places)
    return "" if not b.allowed else f", allowed by {set_by(region)}" if region else ", allowed here"
