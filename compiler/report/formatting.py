"""Formats numbers and places as text, in the same way for a report's notes and for every view."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Collection
from typing import Any, TypeVar

from dynascope.compiler.report.schema import Break

#: why the graphs of a report from a file cannot be run
ONLY_WHERE_RECORDED = "graphs can be run only where they were recorded, and this report was read from a file"

#: what `encodable` writes for the signs of our own texts
_PLAIN = {
    "…": "...", "·": "-", "→": "->", "µ": "u", "×": "x", "–": "-", "—": "-", "│": "|",
    "✂": "*", "✗": "x", "✓": "ok", "↻": "~", "▦": "#", "◆": "*", "◇": "o",
}  # fmt: skip


def plural(n: int, word: str) -> str:
    """A number with a noun: `1 graph`, `2 graphs`."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def listed(items: Collection[object], most: int) -> str:
    """The first `most` items, and how many others there are: `a, b and 3 more`."""
    left = len(items) - most
    return ", ".join(map(str, itertools.islice(items, most))) + (f" and {left} more" if left > 0 else "")


_Value = TypeVar("_Value")


def found(known: dict[Any, _Value], key: object) -> _Value:
    """The value of a key; raises KeyError, with a message that names the keys, if there is none."""
    if key not in known:
        raise KeyError(f"there is no {key!r}: there are {listed([*known][::-1], 12) or 'none'}")
    return known[key]


def message_of(error: BaseException | None) -> str:
    """`str(error)`, also if the `__str__` of the user's exception raises."""
    try:
        return str(error)
    except Exception:
        return "(its message cannot be shown)"


def encodable(text: str, stream: Any = None) -> str:
    """`text` as a stream (if None, `sys.stdout`) can encode it: our own signs become plain ones, others question marks.

    The encoding is often not UTF-8 where output is redirected on Windows, or where `PYTHONIOENCODING` says so.
    """
    encoding = getattr(sys.stdout if stream is None else stream, "encoding", None) or "utf-8"

    def plain(match: re.Match[str]) -> str:
        return match[0] if match[0].encode(encoding, "ignore") else _PLAIN.get(match[0], "?")

    return re.sub(r"[^\x00-\x7f]", plain, text)


def first_line(text: str) -> str:
    """The first line that is not blank, stripped, with the next one if it says more; "" if there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    # `backend='...' raised:` says nothing yet, and why a mark of a dynamic size cannot be kept is below the size
    words = " ".join(lines[: 1 + lines[0].endswith((":", 'TORCH_LOGS="+dynamic".'))])
    return re.sub(r" For more information, run with \S+ - ", " ", words)


def error_words(error: BaseException | None) -> str:
    """The class of an error, and the first line of its message: `ValueError: too many values to unpack`."""
    return f"{type(error).__name__}: {first_line(message_of(error))}".rstrip(": ")


def seconds(value: float) -> str:
    """A compile time as text: `0.84 s`, `31 ms`."""
    return f"{value * 1000:.0f} ms" if value < 0.1 else f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def time_text(value: float) -> str:
    """A run time as text: `480 ns`, `12 µs`, `1.2 ms`, `0.84 s`."""
    if value < 1e-6:
        return f"{value * 1e9:.0f} ns"
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    return f"{value * 1e3:.1f} ms" if value < 0.1 else seconds(value)


def printed_sizes(text: str) -> list[int | str]:
    """The sizes in a printed shape or stride: `2, s77` is `[2, "s77"]`."""
    return [int(p) if p.lstrip("-").isdigit() else p for p in map(str.strip, text.split(",")) if p]


def input_name(name: str) -> str:
    """The program's name of a graph's input: `layers.1.weight` for `l_self_modules_layers_modules_1_parameters_weight_`."""
    name = re.sub(r"^[lLgG]_(?:self_(?:modules_|parameters_|buffers_)?)?(\w+?)_$", r"\1", name)
    return re.sub(r"_(?:modules|parameters|buffers)_", ".", name)


def label(file: str, cell: int | None) -> str:
    """The short name of a file or cell: `In[3]`, `model.py`, `cell Hbol` (marimo), or `cell` (IPython, without a number)."""
    if cell is not None:
        return f"In[{cell}]"
    marimo = re.match(r"__marimo__cell_(\w+?)_?\.py$", os.path.basename(file))
    if marimo:
        return f"cell {marimo[1]}"
    if re.search(r"ipykernel_\d+[/\\]|^<ipython-input", file):
        return "cell"
    # every package has an __init__.py
    package = re.search(r"[^/\\]+[/\\]__init__\.py$", file)
    return package[0] if package else file.replace("\\", "/").rpartition("/")[2] or file


def place(broken: Break) -> str:
    """The place of a graph break: `In[3]:4`, `model.py:12`."""
    return f"{label(broken.file, broken.cell)}:{broken.line}"
