"""Lines for a terminal: colors, sentences that are wrapped or cut to its width, and how far a run is."""

from __future__ import annotations

import math
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from dynascope.widgets.words import compiler_text, guarded

_CODES = {"bold": "1", "soft": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_SENTENCES = re.compile(r"(?<=[.!?]) (?=[A-Z])")


def is_open(stream: TextIO | None) -> bool:
    """Whether text can be written to a stream: programs replace, close and detach `sys.stdout`, and it may be None."""
    try:
        return stream is not None and not getattr(stream, "closed", False)
    except ValueError:  # detached
        return False


def columns(width: int | None) -> int:
    """`width`, or if it is None, the terminal's width up to 110; in both cases at least 48."""
    return max(48, min(110, shutil.get_terminal_size((100, 24)).columns) if width is None else width)


class ProgressLine:
    """One line on stderr on what a run does after the user's code, such as measuring.

    If stderr is no terminal, a line is written after each `every` seconds in which there is something to say.
    """

    def __init__(self, every: float = math.inf) -> None:
        self._shown, self._stream = "", sys.stderr  # now: what repeated calls write is silenced
        self._every = self._next = every

    def show(self, state: Mapping[str, Any]) -> None:
        """Write the stage of a run's progress over the previous one; without a stage, the line is cleared."""
        stage, stream = str(state.get("stage") or ""), self._stream
        if stage == self._shown or not is_open(stream):
            return
        if not getattr(stream, "isatty", bool)():
            if stage and state["seconds"] > self._next:
                self._next = state["seconds"] + self._every
                print(f"[{state['seconds']:.0f} s] {stage}", file=stream, flush=True)
        else:
            self._shown = stage
            words = f"[{state['seconds']:.0f} s, Ctrl-C stops this] {stage}" if stage else ""
            stream.write("\r\x1b[K" + words[: shutil.get_terminal_size().columns - 1])
            stream.flush()


class Terminal:
    """Formats text for a terminal of a given width, in color or plain."""

    def __init__(self, colour: bool, width: int) -> None:
        self.colour, self.width = colour, width

    def part(self, what: str, make: Callable[[], list[str]]) -> list[str]:
        """The lines of one part; if it cannot be written, a note that says so."""
        return guarded(what, make, lambda why: ["", *self.wrap("note: " + why, "", 3)])

    def paint(self, text: str, *styles: str) -> str:
        """The text in these styles; unchanged without text or styles, or if the output is plain."""
        codes = ";".join(_CODES[s] for s in styles)
        return f"\x1b[{codes}m{text}\x1b[0m" if self.colour and text and styles else text

    def labelled(self, label: str, text: str, most: int, *styles: str) -> list[str]:
        """`text`, wrapped beside a label that is painted in these styles; [] without text."""
        first, *more = self.wrap(text, " " * len(label), most) or [""]
        return [self.paint(label, *styles) + first.lstrip(), *more] if first else []

    def wrap(self, text: str, indent: str, most: int = 2, *styles: str, under: str = "") -> list[str]:
        """`text`, painted and wrapped to at most `most` lines; `under`: the indent of all lines but the first, if different.

        If it is too long, whole sentences are dropped from the end; if what remains would fill no more than half the lines, the
        text is cut instead.
        """
        sentences = _SENTENCES.split(" ".join(compiler_text(text, 2000).split()))
        under = under or indent or "  "  # if the first line is at the margin, the others are indented
        wrapper = textwrap.TextWrapper(self.width, initial_indent=indent, subsequent_indent=under, break_on_hyphens=False)
        for count in range(len(sentences), 0, -1):
            whole = count == len(sentences)
            lines = wrapper.wrap(" ".join(sentences[:count]) + ("" if whole else " …"))
            if len(lines) <= most and (whole or 2 * len(lines) > most):
                break
        else:
            wrapper.max_lines, wrapper.placeholder = most, " …"
            room = self.width - max(len(indent), len(under)) - 2
            # a word that fills the last line would be dropped
            lines = wrapper.wrap(re.sub(rf"(\S{{{room}}})(?=\S)", r"\1 ", " ".join(sentences)))
        return [self.paint(line, *styles) for line in lines]
