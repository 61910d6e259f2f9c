"""Makes text safe to show and short enough, and names the places of a report.

Promises: `printable` replaces characters one by one, so columns stay right; its result is legal in XML and has no marks that
change the reading direction.  What `cut` returns is not wider than the given width, as `text_width` estimates it, unless that
width is less than an ellipsis.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence

from dynascope.compiler.report import Break, Frame, Report, Source, plural
from dynascope.widgets.labels.syntax import consecutive, methods, span

#: control characters (except tab and newline), surrogates, U+FFFE and U+FFFF, and marks that break lines, reorder or hide text
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)


class _Advances(dict[str, int]):
    """Advance widths in hundredths of an em; a character that is not named is full width (CJK) or as wide as `others`."""

    def __init__(self, named: dict[str, int], others: int) -> None:
        super().__init__(named)
        self.others = others

    def __missing__(self, char: str) -> int:
        self[char] = width = 105 if unicodedata.east_asian_width(char) in "WF" else self.others
        return width


#: widths in a common, wide interface font: what fits in it fits in narrower ones
_ADVANCES = _Advances({
    char: width
    for width, chars in (
        (28, "ijl'"), (30, "IJ"), (32, " ,.·"), (34, "/:;\\|f"), (37, "-"), (39, "()[]t!"), (42, "r"), (47, '"'),
        (51, "*_`–"), (53, "sz?"), (56, "cL"), (59, "Fkvxy"), (61, "PTYao"), (64, "eESbdghnpqu$0123456789{}"),
        (67, "KAV"), (70, "BRXZC"), (76, "UHN"), (79, "DG&OQ"), (84, "w#+<=>^~✂→"), (88, "M"), (100, "%mW@…—"),
    )
    for char in chars
}, 72)  # fmt: skip
_BOLD = _Advances({char: width + max(5, width // 8) for char, width in _ADVANCES.items()}, 81)
_MONO = _Advances({}, 61)
#: a break's expression has at most this many lines, if the report does not know where it ends
MOST_CONTINUED = 40


def _is_open(rows: list[str]) -> bool:
    """Whether a bracket is open at the end of these lines of code, as far as counting brackets shows."""
    text = "".join(rows)
    return sum(map(text.count, "([{")) > sum(map(text.count, ")]}"))


def printable(text: object, limit: int | None = None) -> str:
    """`text` with each unsafe character replaced by a visible one, cut after `limit` characters.

    If the text is cut, its end says how many characters are left out.
    """
    plain = str(text)
    left = 0
    if limit is not None and len(plain) > limit:
        left = len(plain) - limit
        plain = plain[:limit]
    safe = plain if plain.isprintable() else _UNSAFE.sub(_visible, plain)
    return f"{safe}… ({left:,} more characters)" if left else safe


def as_overwritten(text: str) -> str:
    """The text as a terminal shows it: of a line overwritten with `\\r`, as by a progress bar, only what was written last."""
    return "\n".join(line[:-1].rpartition("\r")[2] + line[-1:] for line in text.split("\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def text_width(text: str, size: float = 12, *, mono: bool = False, bold: bool = False) -> float:
    """Width of `text` in pixels, estimated without the font, rather too wide than too narrow."""
    return sum(map((_MONO if mono else _BOLD if bold else _ADVANCES).__getitem__, text)) * size / 100


def cut(text: str, width: float, size: float = 12, *, mono: bool = False, bold: bool = False) -> str:
    """`text` in at most `width` pixels; if it is longer, its middle is replaced by an ellipsis."""
    text = " ".join(printable(text[:4000]).split())
    if text_width(text, size, mono=mono, bold=bold) <= width:
        return text
    lengths = range(1, min(len(text), 400) + 1)
    keep = bisect_right(lengths, width, key=lambda length: text_width(_cut_middle(text, length), size, mono=mono, bold=bold))
    return _cut_middle(text, keep) if keep else "…"


def wrapped(text: str, width: float, size: float, most: int = 2) -> list[str]:
    """`text` in at most `most` lines of `width` pixels, the last one cut at its end; a word wider than a line is cut, too."""
    lines: list[str] = []
    for word in shorten(text, 600).split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    if len(lines) > most:
        words = lines[most - 1].split()
        while len(words) > 1 and text_width(f"{' '.join(words)} …", size) > width:
            words.pop()
        lines[most - 1 :] = [f"{' '.join(words)} …"]
    return [cut(line, width, size) for line in lines]


def shorten(text: str, length: int) -> str:
    """`text` in at most `length` characters, cut in the middle."""
    text = " ".join(printable(text[: 4 * length + 4000]).split())
    return text if len(text) <= length else _cut_middle(text, length - 1)


def listing(names: Sequence[str], length: int) -> str:
    """As many of the first names as fit into `length` characters, long ones cut in the middle: `a, b, …`."""
    out = ""
    for number, name in enumerate(names):
        more = 3 if number + 1 < len(names) else 0
        part = (", " if out else "") + shorten(name, max(20, length // 2))
        if out and len(out) + len(part) + more > length:
            return f"{out}, …"
        out += part
    return out


def _cut_middle(text: str, keep: int) -> str:
    """Both ends of the text, `keep` characters in all, with an ellipsis between them."""
    tail = keep // 2
    return text[: keep - tail].rstrip() + "…" + (text[-tail:].lstrip() if tail else "")


def capped(lines: Sequence[str], most: int, what: str = "") -> list[str]:
    """The first `most` lines, and one that counts the others: `… and 3 more notes`."""
    more = len(lines) - most
    return [*lines[:most], "… and " + (plural(more, f"more {what}") if what else f"{more} more")] if more > 0 else [*lines]


def line_ranges(lines: Iterable[int]) -> str:
    """`line 4`, `lines 2–3, 7`, `lines 2–3, 7, 9, …` (at most three ranges); empty if there are none."""
    ordered = sorted(set(lines))
    runs = consecutive(ordered)
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs[:3]] + ["…"] * (len(runs) > 3)
    return f"line{'' if len(ordered) == 1 else 's'} {', '.join(shown)}" if ordered else ""


def indent_of(text: str) -> int:
    """Columns of white space at the start of a line."""
    return len(text) - len(text.lstrip())


class Places:
    """Names of the places (`In[3]:4`, `model.py:12`) and functions of one report, and the lines of its sources."""

    def __init__(self, report: Report) -> None:
        self._sources: dict[str, Source] = {s.file: s for s in report.sources}
        self._lines: dict[str, dict[int, str]] = {}
        self._methods: dict[str, list[tuple[str, int, int, str]]] = {}
        #: (file, name) -> (first line, last line, name with the class) of the methods that the compiler met
        self._qualified: dict[tuple[str, str], dict[tuple[int, int, str], None]] = defaultdict(dict)
        self._functions: dict[tuple[str, str, int | None], str] = {}
        for f in report.frames:
            met = [(f.file, f.line, f.end_line, f.qualname), *((i.file, i.line, i.end_line, i.name) for i in f.inlined)]
            for file, line, end, name in met:
                if name and "." in name:
                    self._qualified[file, name.rpartition(".")[2]][line, end or line, name] = None

    def label(self, file: str, cell: int | None = None) -> str:
        """The short name of a file or cell."""
        source = self._sources.get(file)
        if source is not None and source.label:
            return printable(source.label, 200)
        if cell is not None:
            return f"In[{cell}]"
        return printable(re.split(r"[\\/]", file)[-1] or file or "?", 200)

    def at(self, file: str, line: int | None, cell: int | None = None, column: int | None = None) -> str:
        """A place as text, `In[3]:4:5`; the column in it is 1-based, as in editors."""
        text = self.label(file, cell)
        if line is not None:
            text += f":{line}"
            if column is not None:
                text += f":{column + 1}"
        return text

    def span(self, b: Break) -> tuple[str, int, int, bool]:
        """(text of a break's line, start column, end column, whether these are known); if not, those of the unindented text."""
        text = self.lines(b.file).get(b.line)
        if text is None:  # `source` lacks the indentation, so the break's columns do not fit it
            return b.source, 0, len(b.source), False
        below = b.end_line not in (None, b.line)
        columns = span(text, b.column, len(text.rstrip()) if below else b.end_column)
        start, end = columns or (indent_of(text), len(text.rstrip()))
        return text, start, max(start, end), columns is not None

    def code(self, b: Break) -> str:
        """The whole expression of a break in one line, also if it spans several."""
        text, start, end, known = self.span(b)
        lines = self.lines(b.file)
        if known and b.end_line is not None and b.end_line > b.line and b.end_line in lines:
            inner = [lines.get(n, "") for n in range(b.line + 1, b.end_line)]
            last = lines[b.end_line]
            rows = [text[start:], *inner, last[: b.end_column if b.end_column is not None else len(last)]]
        else:
            rows, number = [text[start:end]], b.line
            while known and len(rows) < MOST_CONTINUED and _is_open(rows) and (number := number + 1) in lines:
                rows.append(lines[number])
        return " ".join(" ".join(rows).split())

    def of_break(self, b: Break) -> str:
        """The place of a break, `In[3]:4:5`; without the column if that does not fit the source."""
        unfit = b.line in self.lines(b.file) and not self.span(b)[3]
        return self.at(b.file, b.line, b.cell, None if unfit else b.column)

    def with_cell_names(self, text: str) -> str:
        """`text` with the file names of cells replaced by the cells' names."""
        for file, source in self._sources.items():
            if source.cell is not None and len(file) > 3:
                text = text.replace(file, self.label(file))
        return text

    def frame(self, frame: Frame) -> str:
        """The place of a frame's first line."""
        return self.at(frame.file, frame.line, frame.cell)

    def function(self, name: str, file: str, line: int | None) -> str:
        """`Attention.forward` if the class of the method around a line is known, else only the name."""
        key = (name, file, line)
        if key not in self._functions:
            self._functions[key] = self._function(name, file, line)
        return self._functions[key]

    def _function(self, name: str, file: str, line: int | None) -> str:
        known = [qualname for first, last, qualname in self._qualified.get((file, name), ()) if first <= (line or 0) <= last]
        if known:
            return printable(known[0])
        if file not in self._methods:
            self._methods[file] = methods(self.lines(file))
        at = line or 0
        owners = [(first, owner) for own, first, last, owner in self._methods[file] if own == name and first <= at <= last]
        return printable(f"{max(owners)[1]}.{name}" if owners else name)

    def name(self, frame: Frame) -> str:
        """The name of a frame: `f`, `resume in Attention.forward`, `f (backward)`, `the cell's statements`."""
        name = self.function(frame.name or frame.code_name or "?", frame.file, frame.line)
        return f"resume in {name}" if frame.kind == "resume" else f"{name} (backward)" if frame.kind == "autograd" else name

    def lines(self, file: str) -> dict[int, str]:
        """The known text of a file, by line number."""
        if file not in self._lines:
            known: dict[int, str] = {}
            source = self._sources.get(file)
            for excerpt in source.excerpts if source else []:
                known.update(enumerate(excerpt.text.split("\n"), excerpt.line))
            self._lines[file] = known
        return self._lines[file]

    def end_of(self, frame: Frame) -> int:
        """The last line of a frame's code; if the report does not know it, derived from the lines of the source."""
        if frame.end_line is not None:
            return max(frame.line, frame.end_line)
        lines = self.lines(frame.file)
        if frame.line not in lines or frame.kind == "statements":
            return max([frame.line, *lines]) if frame.kind == "statements" else frame.line
        least = indent_of(lines[frame.line]) + (frame.kind != "resume")
        number = last = frame.line
        while (number := number + 1) in lines:
            if lines[number].strip():
                if indent_of(lines[number]) < least:
                    break
                last = number
        return last


def operation_name(target: str) -> str:
    """`softmax` for `torch.nn.functional.softmax`, `sum` for `torch.ops.aten.sum.dim_IntList`."""
    for junk in ("<built-in function ", "<built-in method ", "<function "):
        if target.startswith(junk):
            target = target[len(junk) :].split(" ")[0].rstrip(">")
    parts = [p for p in target.split(".") if p]
    is_overload = parts[:2] == ["torch", "ops"] and len(parts) > 4
    if len(parts) > 1 and (is_overload or parts[-1] in ("default", "Tensor", "Scalar", "int", "dim", "self")):
        parts.pop()
    return printable(parts[-1] if parts else target)
