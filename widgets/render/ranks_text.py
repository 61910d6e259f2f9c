"""A RanksReport as text: which ranks are alike, what differs first and why, who failed, hangs or is missing, who was slow.

Promises: no control character of the report's own gets through; a job of thousands of ranks takes as few lines as one of ten.
"""

from __future__ import annotations

from dynascope.compiler.ranks import SOFT_KINDS, RanksReport
from dynascope.compiler.report import plural
from dynascope.widgets.guarded import guarded
from dynascope.widgets.labels import rank_words
from dynascope.widgets.labels.words import capped, shorten
from dynascope.widgets.render.terminal import Terminal, columns

MOST_DIFFERENCES, MOST_FAILURES = 6, 8


def to_text(report: RanksReport, colour: bool = False, width: int | None = None) -> str:
    """`report` as text; `colour`: with escape sequences; `width`: in columns; None: the terminal's, at most 110."""
    return guarded("This report", lambda: "\n".join(_Terminal(report, colour, columns(width)).lines()), str)


class _Terminal(Terminal):
    def __init__(self, report: RanksReport, colour: bool, width: int) -> None:
        super().__init__(colour, width)
        self.report = report

    def lines(self) -> list[str]:
        out = self.paint_all(self.wrap(rank_words.headline(self.report), "", 4), "bold")
        out += self.differences() + self.failures() + self.slow() + self.remarks()
        return out

    def differences(self) -> list[str]:
        hard = [d for d in self.report.differences if d.kind not in SOFT_KINDS]
        out: list[str] = []
        for d in hard[:MOST_DIFFERENCES]:
            out += ["", *self.paint_all(self.wrap("✗ " + rank_words.difference_title(self.report, d), "", 4), "yellow")]
            for line in rank_words.difference_details(self.report, d):
                out += self.wrap(line, "    ", 4, under="      ")
        if len(hard) > MOST_DIFFERENCES:
            out += ["", f"… and {plural(len(hard) - MOST_DIFFERENCES, 'more difference')}"]
        return out

    def failures(self) -> list[str]:
        failures = ["✗ " + words for words in rank_words.rank_failures(self.report)]
        return self.paint_all(self.paragraph(capped(failures, MOST_FAILURES)), "red")

    def slow(self) -> list[str]:
        return self.paragraph(["… " + words.removeprefix("… ") for words in rank_words.slow_lines(self.report, 3)])

    def remarks(self) -> list[str]:
        """Differences that change no graph, graphs that differ only in the rank's number, and notes."""
        words = ["note: " + text for text in rank_words.remarks(self.report, 5)]
        words += capped(["note: " + shorten(note, 400) for note in self.report.notes], 8, "note")
        return self.paragraph(words)

    def paragraph(self, sentences: list[str]) -> list[str]:
        """Sentences, each wrapped, after a blank line; [] if there are none."""
        out = [line for words in sentences for line in self.wrap(words, "", 4)]
        return ["", *out] if out else []
