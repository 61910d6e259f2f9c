"""Makes text safe to show and short enough, for pictures, pages and terminals; says in a line what could not be drawn.

Promises: `printable` replaces characters one by one, so columns stay right; its result is legal in XML and has no marks that
change the reading direction.  What `cut` returns is not wider than the given width, as `text_width` estimates it, unless that
width is less than an ellipsis.  A drawing error never reaches the user's cell or script (`guarded`); an interrupt does.  Tests
must see such errors: they are raised if the environment variable `DYNASCOPE_DRAWING_ERRORS` is "raise", as in this project.
"""

from __future__ import annotations

import functools
import os
import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TypeVar

from dynascope.compiler.report import plural

VARIABLE = "DYNASCOPE_DRAWING_ERRORS"
T = TypeVar("T")
Key = TypeVar("Key")

#: control characters (except tab and newline), surrogates, U+FFFE and U+FFFF, and marks that break lines, reorder or hide text
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
_EMPTY = re.compile(r" at 0x[0-9a-fA-F]{6,}|(?<=[.!?]) Message: None\b| \((?:reason: None|has_kwargs False)\)")


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


def printable(text: object, limit: int | None = None) -> str:
    """`text` with each unsafe character replaced by a visible one, cut after `limit` characters.

    If the text is cut, its end says how many characters are left out; fewer than 80 are not worth that.
    """
    plain = str(text)
    if limit is not None and (left_out := len(plain) - limit) >= 80:
        plain = f"{plain[:limit]}… ({left_out:,} more characters)"
    return plain if plain.isprintable() else _UNSAFE.sub(_visible, plain)


def compiler_text(text: str, limit: int) -> str:
    """A text of the compiler without empty phrases, and without addresses of objects, which differ from run to run."""
    return printable(_EMPTY.sub("", text), limit)


def as_overwritten(text: str) -> str:
    """The text as a terminal shows it: of a line overwritten with `\\r`, as by a progress bar, only what was written last."""
    return "\n".join(line[:-1].rpartition("\r")[2] + line[-1:] for line in text.split("\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


@functools.lru_cache(10_000)
def text_width(text: str, size: float = 12, *, mono: bool = False, bold: bool = False) -> float:
    """Width of `text` in pixels, estimated without the font, rather too wide than too narrow."""
    return sum(map((_MONO if mono else _BOLD if bold else _ADVANCES).__getitem__, text)) * size / 100


@functools.lru_cache(4096)
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


def grouped(pairs: Iterable[tuple[Key, T]]) -> defaultdict[Key, list[T]]:
    """The values of each key, in order; [] for a key that has none."""
    groups = defaultdict[Key, list[T]](list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def consecutive(numbers: list[int]) -> list[list[int]]:
    """Sorted numbers, cut into runs without gaps."""
    return [[n for _, n in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]


def line_ranges(lines: Iterable[int]) -> str:
    """`line 4`, `lines 2–3, 7`, `lines 2–3, 7, 9, …` (at most three ranges); empty if there are none."""
    ordered = sorted(set(lines))
    runs = consecutive(ordered)
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs[:3]] + ["…"] * (len(runs) > 3)
    return f"line{'' if len(ordered) == 1 else 's'} {', '.join(shown)}" if ordered else ""


def indent_of(text: str) -> int:
    """Columns of white space at the start of a line."""
    return len(text) - len(text.lstrip())


def guarded(what: str, make: Callable[[], T], instead: Callable[[str], T]) -> T:
    """Return `make()`; if it raises, return `instead(line)`.

    The line says what could not be drawn, and is safe to show: `the split graph could not be drawn (KeyError: 'n3')`.
    """
    try:
        return make()
    except Exception as error:
        if os.environ.get(VARIABLE) == "raise":
            raise
        return instead(shorten(f"{what} could not be drawn ({type(error).__name__}: {error}".rstrip(": ") + ")", 300))
