"""The report as text: what matters first, in few lines; with colors for a terminal that takes them.

Promises: control characters in the report's texts do not reach the terminal; a break takes about ten lines, and only the first
`MOST` breaks are shown in full; if a part cannot be written, one line says so and the rest is shown.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Hashable
from functools import partial
from typing import TextIO

from dynascope.compiler.report import Break, Report, listed, plural
from dynascope.widgets.guarded import guarded
from dynascope.widgets.labels.advice import (
    advice,
    cause_of,
    compiler_text,
    eager_because_of,
    error_message,
    only_rest_is_eager,
    outcome_words,
    reasons,
    set_by,
)
from dynascope.widgets.labels.bands import region_name
from dynascope.widgets.labels.fixes import diff_lines, fix_words, fixes_summary, how_to_apply, refused, removed_words
from dynascope.widgets.labels.recompiles import (
    compiled_again,
    failures,
    limit_words,
    recompile_title,
    refused_recompiles,
    undecided_words,
)
from dynascope.widgets.labels.run_time import (
    cost_words,
    frame_guards,
    graphs_alone,
    guard_switches,
    guards_summary,
    input_words,
    inputs_summary,
)
from dynascope.widgets.labels.summary import headline, record_notes, splits
from dynascope.widgets.labels.words import Places, capped, indent_of, printable, shorten
from dynascope.widgets.model.build import sorted_breaks
from dynascope.widgets.model.compile_time import compile_time_line
from dynascope.widgets.model.overview import overview
from dynascope.widgets.model.timeline import timeline
from dynascope.widgets.render.overview_text import OverviewText
from dynascope.widgets.render.terminal import Terminal, columns, is_open

#: at most this many breaks, frames and recompiles are shown in full
MOST = 12


def takes_colours(stream: TextIO) -> bool:
    """Whether the stream is an open terminal that takes colors (`NO_COLOR` is not set, and `TERM` is not "dumb")."""
    is_terminal = is_open(stream) and getattr(stream, "isatty", bool)()
    return is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def to_text(report: Report, colour: bool = False, width: int | None = None) -> str:
    """`report` as text; for a large report (many frames of several functions), only an overview and summaries, one screen.

    Args:
        report: what is shown.
        colour: with a terminal's escape sequences; a saved file and `str(report)` are plain.
        width: in columns; None: the terminal's, from 48 to 110.
    """
    return _text(report, colour, width, whole=False)


def to_details(report: Report, colour: bool = False, width: int | None = None) -> str:
    """`report` as text without an overview: the first breaks, frames and recompiles in full, fixes, times, inputs and notes."""
    return _text(report, colour, width, whole=True)


def _text(report: Report, colour: bool, width: int | None, *, whole: bool) -> str:
    return guarded("This report", lambda: "\n".join(_Terminal(report, colour, columns(width)).lines(whole)), str)


class _Terminal(Terminal):
    def __init__(self, report: Report, colour: bool, width: int) -> None:
        super().__init__(colour, width)
        self.report = report
        self.places = Places(report)
        self.frames = {f.id: f for f in report.frames}

    def lines(self, whole: bool) -> list[str]:
        """All lines; unless `whole`, without the compile time, and for a large report only the overview and summaries."""
        first = (("The headline", self.headline), ("The error", self.error))
        head = [line for what, make in first for line in self.part(what, make)]
        missing: list[str] = []
        make_overview = partial(overview, self.report, self.places)
        shown = None if whole else guarded("The overview", make_overview, missing.append)
        head += [line for why in missing for line in self.wrap("note: " + why, "", 3)]
        head += self.part("The recompile limit", lambda: self.limits(causes=shown is None))
        if shown is not None:
            brief = [
                *self.part("The fixes", self.fixes)[:2], *self.part("The run time", self.run_time)[:2],
                *self.part("The inputs", self.inputs)[:2], *self.part("The notes", lambda: self.notes(most=2)),
            ]  # fmt: skip
            large = OverviewText(shown, self.colour, self.width)
            return head + self.part("The overview", lambda: large.lines(len(head) + len(brief))) + brief
        parts = (
            ("The breaks", self.breaks), ("The skipped frames", self.skipped), ("The recompiles", self.recompiles),
            ("The fixes", self.fixes), ("The run time", self.run_time),
            ("The compile time", self.compile_time if whole else list),
            ("The inputs", self.inputs), ("The run of a graph alone", self.graphs_alone), ("The notes", self.notes),
        )  # fmt: skip
        return head + [line for what, make in parts for line in self.part(what, make)]

    def headline(self) -> list[str]:
        """The headline, between its parts wrapped to the width."""
        head, _, rest = printable(headline(self.report), 500).partition(": ")
        glued = f"{head}: {rest}".replace(" ", "\xa0").replace("\xa0·\xa0", "\xa0· ")
        lines = [line.replace("\xa0", " ") for line in textwrap.wrap(glued, self.width, subsequent_indent="  ")]
        return [self.paint(head, "bold") + lines[0].removeprefix(head), *lines[1:]]

    def breaks(self) -> list[str]:
        """The first breaks in full, of three or more that are alike only one; the places of the others."""
        alike: dict[Hashable, list[Break]] = {}
        for b in sorted_breaks(self.report):
            words = (*reasons(b), *advice(self.report, b), *undecided_words(b, self.report, self.places))
            alike.setdefault((words, self.outcome(b), b.allowed, b.first_call_only), []).append(b)
        out: list[str] = []
        groups = [group for same in alike.values() for group in ([same] if len(same) > 2 else [[b] for b in same])]
        for first, *others in groups[:MOST]:
            out += self.part("A graph break", partial(self.break_, first))
            if others:
                out += [f"    {plural(len(others), 'more graph break')} like this:", *self.places_of(others)]
        rest = [b for group in groups[MOST:] for b in group]
        if rest:
            out += ["", self.paint(f"{plural(len(rest), 'more graph break')}:", "bold"), *self.places_of(rest)]
        return out

    def places_of(self, breaks: list[Break]) -> list[str]:
        """The places and lines of the first 20 of these breaks, and the number of the others."""
        places = [(self.places.at(b.file, b.line, b.cell), b.source.strip()) for b in breaks]
        return capped([f"      {place}  {shorten(source, self.width - 30)}" for place, source in places], 20)

    def notes(self, most: int = 12) -> list[str]:
        """All notes on unread records, because of which the report may be wrong, and the first of the other notes."""
        lost = record_notes(self.report)
        own = self.report.notes
        others = [*own[:8], *splits(self.report), *own[8:]]
        notes = capped(["note: " + note for note in [*lost, *others]], max(most, len(lost)), "note")
        lines = [line for note in notes for line in self.wrap(note, "", 3)]
        return ["", *lines] if lines else []

    def fixes(self) -> list[str]:
        """The chosen fixes as diffs, and for the breaks without one the changes that were considered."""
        summary = fixes_summary(self.report)
        if not summary or self.report.fix_set is None:
            return []
        out = ["", self.paint(summary, "bold")]
        for fix in self.report.fixes or ():
            if fix.chosen:
                what = removed_words(self.report, fix, self.places)
                out += self.paint_all(self.wrap(f"✓ {what}: {fix_words(fix)}", "    ", 3), "green")
                out += [self.changed_line(line) for line in diff_lines(fix, self.report, self.places)]
                out += self.wrap(f"takes for granted: {fix.assumption}", "      ", 3) if fix.assumption else []
        for id in [b.id for b in self.report.breaks[:MOST]] + [r.frame for r in self.report.recompiles[:MOST]]:
            for fix in refused(self.report, id)[:3]:
                what = removed_words(self.report, fix, self.places)
                out += self.paint_all(self.wrap(f"✗ {what}: {fix_words(fix)}", "    "), "soft")
        if how := how_to_apply(self.report):
            out += self.paint_all(self.wrap(f"→ {how}", "  ", 3), "green")
        return [*out, *(line for note in self.report.fix_set.notes for line in self.wrap("note: " + note, "", 3))]

    def changed_line(self, line: str) -> str:
        """One line of a diff, in its color."""
        shown = printable(line, self.width - 6).expandtabs(4)
        return " " * 6 + self.paint(shown, {"+": "green", "-": "red"}.get(line[:1], "soft"))

    def run_time(self) -> list[str]:
        """Where the time of a call goes, and what each break costs."""
        profile, line = self.report.profile, timeline(self.report)
        if profile is None or line is None:
            return []
        shares = " · ".join(f"{s['name']} {100 * s['part']:.0f}%" for s in line["shares"])
        call, _, method = line["call"].partition(" (")
        out = ["", self.paint(f"run time: {call}", "bold") + f" ({method}"]
        out += self.wrap(line["verdict"], "    ", 3) if line["verdict"] else []
        out += self.wrap(f"{line['profiled']}: {shares}", "    ")
        at = {b.id: self.places.at(b.file, b.line, b.cell) for b in self.report.breaks}
        for cost in profile.breaks[:MOST]:
            out += self.wrap(f"{at[cost.break_]} {cost_words(cost)}", "    ")
        out += [f"    … and {len(profile.breaks) - MOST} more"] if len(profile.breaks) > MOST else []
        first = self.wrap(line["first"], "    ") if line["first"] else []
        out += self.paint_all(["  → " + first[0].lstrip(), *first[1:]], "green") if first else []
        if profile.guards is not None and guard_switches(profile):
            out += self.wrap(guards_summary(profile.guards), "    ", 3)
            for one in profile.guards.frames[:2]:
                out += self.wrap(frame_guards(one, self.report, self.places), "      ", 3)
            out += self.wrap(guard_switches(profile), "      ", 6)
        return out

    def compile_time(self) -> list[str]:
        """Where the time of the compiles went: the most expensive phases, autotuning, repeated blocks and the caches."""
        line = compile_time_line(self.report, self.places)
        if line is None:
            return []
        shares = " · ".join(f"{s['name']} {100 * s['part']:.0f}%" for s in line["shares"])
        out = ["", self.paint(f"compile time: {line['total']}", "bold"), *self.wrap(shares, "    ")]
        for row in line["rows"]:
            times = f" {row['count']}×" if row["count"] > 1 else ""
            inside = f" ({row['total']} with inner phases)" if row["total"] != row["own"] else ""
            out += self.wrap(f"{row['own']:>8} {row['name']}{times}, {row['what']}{inside}", "    ", 2)
        for tuned in line["tuned"]:
            out += self.wrap(f"autotuning of {tuned['name']}: {tuned['tried']}; fastest: {tuned['best']}", "    ", 3)
        for sentence in (*line["repeats"], *line["caches"], *line["notes"]):
            out += self.wrap(sentence, "    ", 6)
        return out

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
        caught = ", caught by your code" if e.caught else ""
        return self.paint_all(self.wrap(f"✗ {e.type}{at}{caught}: {error_message(self.report)}".rstrip(": "), "", 3), "red")

    def break_(self, b: Break) -> list[str]:
        place = self.places.of_break(b)
        outcome = self.outcome(b) + allowed_words(b, self.places)
        hits = f", seen from {len(b.hits)} frames" if len(b.hits) > 1 else ""
        hits += ", only in the first call" if b.first_call_only else ""
        colour = "soft" if b.allowed else "red" if b.outcome == "raised" else "yellow"
        function = f" in {shorten(self.places.function(b.function, b.file, b.line), 60)}" if b.function else ""
        out = ["", self.paint("✂ graph break", colour, "bold") + f" at {self.paint(place, 'bold')}{function}"]
        ending = f"({outcome}{hits})"
        if len(f"✂ graph break at {place}{function} {ending}") <= self.width:
            out[1] += " " + self.paint(ending, "soft")
        else:
            out += self.paint_all(self.wrap(ending, "    "), "soft")
        out += self.source(b, colour)
        why = [compiler_text(t, 2000).strip() for t in reasons(b)]
        out += self.wrap(" ".join(t if t.endswith((".", ":", "!")) else f"{t}." for t in why), "    ")
        for words in undecided_words(b, self.report, self.places):
            out += self.wrap(printable(words.replace("`", ""), 2000), "    ")
        steps = advice(self.report, b)
        if steps:
            first = self.wrap(steps[0], "      ", 3)
            out += [self.paint("    → ", "green") + first[0].lstrip(), *first[1:]] if first else []
        return out

    def outcome(self, b: Break) -> str:
        """A break's outcome; or, if another function runs eagerly because of it, the first two that do, and how many more."""
        words = outcome_words(self.report, b)
        if b.outcome == "raised":
            return words + self.forbidden_by(b)
        eager = list(dict.fromkeys(self.places.name(f) for f in eager_because_of(self.report, b)))
        own = [self.places.function(b.function, b.file, b.line)]
        if not eager or eager == own or only_rest_is_eager(self.report, b):
            return words
        names = " and ".join(eager) if len(eager) == 2 else listed(eager, 2)
        return f"{shorten(names, 80)} {'runs' if len(eager) == 1 and not names.endswith('statements') else 'run'} eagerly"

    def forbidden_by(self, b: Break) -> str:
        """What made the break an error; empty if that is unknown."""
        region = region_name(b, self.places)
        if b.fullgraph:
            return ", because of fullgraph=True"
        if not b.error_on_graph_break:
            return ""
        by = f" of {set_by(region)}" if region else " of this run" if b.region.kind == "run" else ""
        return f", because of error_on_graph_break=True{by}"

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
        frames = [f for f in self.report.frames if f.status in ("skipped", "failed", "unfinished")]
        out: list[str] = []
        for f in frames[:MOST]:
            cause = cause_of(self.report, f)
            why = compiler_text(f.reason or "reason unknown", 1000).split("\n")[0]
            if cause:
                more = f.reason is not None and not f.reason.startswith(cause.reason)  # why it could not be resumed
                at = self.places.at(cause.file, cause.line, cause.cell)
                block = next((h.block for h in cause.hits if h.frame == f.id), None)
                if block is not None and not more:
                    why = f"in the `try` at {self.places.at(block.file, block.line, block.cell)}, where Dynamo cannot resume"
                elif not more:
                    why = compiler_text(cause.type or cause.reason, 200)
                why = f"because of the break at {at}" + (f": {why}" if f.status == "skipped" or more else "")
            sign = "…" if f.status == "unfinished" else "–"
            out += self.wrap(f"{sign} {f.status} frame {self.places.name(f)} at {self.places.frame(f)}: {why}", "", 3)
        out += [f"… and {plural(len(frames) - MOST, 'more frame')}"] if len(frames) > MOST else []
        return ["", *self.paint_all(out, "soft")] if out else []

    def recompiles(self) -> list[str]:
        """The first recompiles: which call needed each one, what changed, and the line that made the failed guard."""
        again, out = compiled_again(self.report), list[str]()
        for r in again[:MOST]:
            f = self.frames.get(r.frame)
            title = recompile_title(r, f, self.places.name(f) if f else r.frame, self.places)
            out += self.paint_all(self.wrap(f"↻ {title}", ""), "cyan")
            reasons = failures(r, self.places) or ["a guard failed"]
            out += [line for reason in reasons[:3] for line in self.wrap(reason, "    ")]
            out += [f"    … and {len(reasons) - 3} more"] if len(reasons) > 3 else []
        out += [f"… and {plural(len(again) - MOST, 'more recompile')}"] if len(again) > MOST else []
        return ["", *out] if out else []

    def limits(self, causes: bool) -> list[str]:
        """The functions that reached the recompile limit, with the reasons; without `causes`, only the first and no reasons."""
        limited, most, out = refused_recompiles(self.report), MOST if causes else 1, list[str]()
        for r in limited[:most]:
            f = self.frames.get(r.frame)
            out += self.paint_all(
                self.wrap(f"✗ {limit_words(r, self.places.name(f) if f else r.frame, self.places)}", "", 3), "red"
            )
            reasons = failures(r, self.places)[:3] if causes else []
            out += [line for reason in reasons for line in self.wrap(reason, "    ")]
        out += [f"… and {plural(len(limited) - most, 'more function')} at the limit"] if len(limited) > most else []
        return ["", *out] if out else []


def allowed_words(b: Break, places: Places) -> str:
    """`, allowed by region In[3]:8`; empty if the break is not allowed."""
    region = region_name(b, places)
    return "" if not b.allowed else f", allowed by {set_by(region)}" if region else ", allowed here"
