"""The index of one report: its parts by id, the names of its places (`In[3]:4`) and functions, and the lines of its sources.

Methods have the names that the compiler met; the columns of expressions are those of the recorded source.  Promises: only the
text of the excerpts is read.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from itertools import chain

from dynascope.compiler.report import Break, Frame, Graph, Report, Source, label, plural
from dynascope.compiler.report.overview import new_failures, package
from dynascope.widgets.words import grouped, indent_of, printable

#: graphs have this many different colors
TONES = 6
#: where the compiler's text says that a break is
_SAID = re.compile(r"^Graph break in user code at (.+):(\d+)$", re.M)
_TORCHS_WRAPPER = re.compile(r"torch[\\/]_dynamo[\\/]external_utils\.py$")


def is_wrapper(frame: Frame) -> bool:
    """Whether the frame is torch's wrapper around the user's functions, of which all compiled ones run the same code."""
    return _TORCHS_WRAPPER.search(frame.file) is not None


class Places:
    """Names of the places (`In[3]:4`, `model.py:12`) and functions of one report, the lines of its sources, its parts by id.

    `brief`: without the lines that are only guards', which take long to read.
    """

    def __init__(self, report: Report, brief: bool = False) -> None:
        self.report = report
        self.frames = {f.id: f for f in report.frames}
        self.breaks = {b.id: b for b in report.breaks}
        #: each graph with its number
        self.graphs = {g.id: (number, g) for number, g in enumerate(report.graphs)}
        self.costs = {c.break_: c for c in report.profile.breaks} if report.profile else {}
        #: the graphs that ended at each break, with their numbers
        self.ended = grouped((g.break_, (number, g)) for number, g in self.graphs.values())
        #: the recompiles of each frame: the one that made it, and one that the limit refused
        self.recompiled = grouped((r.frame, r) for r in report.recompiles)
        self.new_failures = new_failures(report)
        #: the frames that each frame called
        self.called = grouped((f.parent, f) for f in report.frames if f.status != "ignored")
        make = report.brief_sources if brief else None
        #: the sources of which lines are known, by file
        self.sources: dict[str, Source] = {s.file: s for s in (report.sources if make is None else make())}
        self._lines: dict[str, dict[int, str]] = {}
        #: (file, name) -> (first line, last line, name with the class) of the methods that the compiler met
        self._qualified: dict[tuple[str, str], dict[tuple[int, int, str], None]] = defaultdict(dict)
        for f in report.frames:
            met = [(f.file, f.line, f.end_line, f.qualname), *((i.file, i.line, i.end_line, i.name) for i in f.inlined)]
            for file, line, end, name in met:
                if name and "." in name:
                    self._qualified[file, name.rpartition(".")[2]][line, end or line, name] = None
        #: frame -> its name, and those of the earlier versions of its code: modules of several classes may run the same code
        self.names: dict[str, dict[str, None]] = {}
        for f in report.frames:
            self.names[f.id] = {**self.names.get(f.recompile_of or "", {}), self.name(f): None}

    def label(self, file: str, cell: int | None = None) -> str:
        """The short name of a file or cell."""
        return printable((file in self.sources and self.sources[file].label) or label(file, cell) or "?", 200)

    def at(self, file: str, line: int | None, cell: int | None = None, column: int | None = None) -> str:
        """A place as text, `In[3]:4:5`; the column in it is 1-based, as in editors."""
        parts = [self.label(file, cell), *([] if line is None else [line] if column is None else [line, column + 1])]
        return ":".join(map(str, parts))

    def span(self, b: Break) -> tuple[str, int, int, bool]:
        """(text of a break's line, start column, end column, whether these are known); if not, those of the unindented text."""
        text = self.lines(b.file).get(b.line)
        if text is None:  # `source` lacks the indentation, so the break's columns do not fit it
            return b.source, 0, len(b.source), False
        columns = span(text, b.column, len(text.rstrip()) if b.end_line not in (None, b.line) else b.end_column)
        start, end = columns or (indent_of(text), len(text.rstrip()))
        return text, start, max(start, end), columns is not None

    def code(self, b: Break) -> str:
        """The code of a break: its whole expression in one line, its line if the columns are unknown, or else its type."""
        text, start, end, known = self.span(b)
        lines, last = self.lines(b.file), b.end_line
        rows = [text[start:end]]
        if known and last is not None and last > b.line and last in lines:
            rows = [text[start:], *(lines.get(n, "") for n in range(b.line + 1, last)), lines[last][: b.end_column]]
        return printable(" ".join(" ".join(rows).split()) or b.type or "graph break")

    def of_break(self, b: Break) -> str:
        """The place of a break, `In[3]:4:5`; without the column if that does not fit the source."""
        unfit = b.line in self.lines(b.file) and not self.span(b)[3]
        return self.at(b.file, b.line, b.cell, None if unfit else b.column)

    def with_cell_names(self, text: str) -> str:
        """`text` with the file names of cells replaced by the cells' names."""
        for file, source in self.sources.items():
            if source.cell is not None and len(file) > 3:
                text = text.replace(file, self.label(file))
        return text

    def frame(self, frame: Frame) -> str:
        """The place of a frame's first line, if that is not torch's wrapper around the user's function."""
        return "torch's wrapper" if is_wrapper(frame) else self.at(frame.file, frame.line, frame.cell)

    def graph(self, graph: Graph) -> str:
        """The place of a graph's first operation, or else of its frame; "" if that is torch's wrapper around it."""
        for first in graph.nodes:
            if first.op.startswith("call_") and first.line and first.file:
                return self.at(first.file, first.line)
        frame = self.frames.get(graph.frame)
        return self.frame(frame) if frame is not None and not is_wrapper(frame) else ""

    def function(self, name: str, file: str, line: int | None) -> str:
        """`Attention.forward` if the class of the method around a line is known, else only the name."""
        owners = self._qualified.get((file, name), ())
        return printable(next((qualname for first, last, qualname in owners if first <= (line or 0) <= last), name))

    def function_of(self, b: Break) -> str:
        """The function of a break, and the place in Python's own modules, of which stacks have no entries, if it is there."""
        name, said = self.function(b.function, b.file, b.line), _SAID.search(b.text)
        is_below = said is not None and said[1] != b.file and package(said[1]) == "Python"
        return f"{name} \N{RIGHTWARDS ARROW} {label(said[1], None)}:{said[2]}" if said and is_below else name

    def name(self, frame: Frame) -> str:
        """The name of a frame: `f`, `resume in Attention.forward`, `f (backward)`, `the cell's statements`."""
        name = self.function(frame.name or frame.code_name or "?", frame.file, frame.line)
        return f"resume in {name}" if frame.kind == "resume" else f"{name} (backward)" if frame.kind == "autograd" else name

    def lines(self, file: str) -> dict[int, str]:
        """The known text of a file, by line number."""
        if file not in self._lines:
            excerpts = self.sources[file].excerpts if file in self.sources else []
            texts = (enumerate(excerpt.text.split("\n"), excerpt.line) for excerpt in excerpts)
            self._lines[file] = dict(chain.from_iterable(texts))
        return self._lines[file]

    def end_of(self, frame: Frame) -> int:
        """The last line of a frame's code that is known."""
        own = self.lines(frame.file) if frame.kind == "statements" and frame.end_line is None else ()
        return max(frame.line, frame.end_line or 0, *own)


def ops_text(ops: int | None) -> str:
    """`3 ops`; `ops unknown`."""
    return "ops unknown" if ops is None else plural(ops, "op")


def graph_tone(number: int) -> int:
    """Index of the colors for graph `number`."""
    return number % TONES


@functools.lru_cache(maxsize=4096)
def span(text: str, start: int | None, end: int | None) -> tuple[int, int] | None:
    """The columns (start, end) of an expression in the text of a line; None if they are unknown or do not fit the text.

    Code may have been compiled from text with another indentation; its columns would then cut words in two.  If `end` is None,
    it is the end of the line.
    """
    length = len(text.rstrip())
    if start is None or not 0 <= start < length or text[start].isspace() or _cuts_a_word(text, start):
        return None
    end = length if end is None else end
    return (start, end) if start < end <= length and not text[end - 1].isspace() and not _cuts_a_word(text, end) else None


def _cuts_a_word(text: str, at: int) -> bool:
    around = text[max(0, at - 1) : at + 1]
    return len(around) == 2 and all(c.isalnum() or c == "_" for c in around)
