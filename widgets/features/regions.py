"""Regions: which one set `error_on_graph_break` at a break, and the lines for which one did.

A region is a `with` block, a function or a range of lines.  The report has the lines of `--region` options in the cell; those
of `with` blocks and decorated functions are found in the recorded source, of which only the text is read; if they are uncertain
or an excerpt is not valid Python, the region has no band.  A function that was traced under a flag other than the run's has a
band, too.
"""

from __future__ import annotations

import ast
import functools
import re
from typing import NamedTuple

from dynascope.compiler.parsing import parsed
from dynascope.compiler.report import Break, FlagOrigin
from dynascope.widgets.features.places import Places
from dynascope.widgets.words import consecutive, printable

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
WITHS = (ast.With, ast.AsyncWith)


class Band(NamedTuple):
    """Lines of a file in which `flag` was in force, and what set it."""

    file: str
    first: int
    last: int
    flag: bool
    who: str


def region_name(b: Break, places: Places) -> str:
    """The region that set the flag at a break: `In[3]:4`, `Net.forward`, `--region g=allow`; empty if no region did.

    A `with` block is named by its own line, even if a resume function entered it again further down.
    """
    return _name(b.region, b.error_on_graph_break, places)


def _name(origin: FlagOrigin, flag: bool | None, places: Places) -> str:
    if origin.kind == "option":
        value = "" if flag is None else "=error" if flag else "=allow"
        return printable(f"--region {origin.name}{value}", 200)
    if origin.kind == "with" and origin.file is not None:
        extent = _with(places, origin.file, origin.line) if origin.line is not None else None
        return places.at(origin.file, extent[0] if extent else origin.line, origin.cell)
    return printable(origin.name or "", 200) if origin.kind == "decorator" else ""


def set_by(region: str) -> str:
    """What set a flag: `region In[3]:4`, or an option as it was written, `--region g=allow`."""
    return region if region.startswith("--") else f"region {region}"


def flag_words(b: Break, places: Places) -> str:
    """The flag at a break and what set it: `False (default)`, `True (region In[3]:4)`, `unknown`."""
    region = region_name(b, places)
    who = {"default": "default", "run": "this run"}.get(b.region.kind, set_by(region) if region else "")
    value = "unknown" if b.error_on_graph_break is None else str(b.error_on_graph_break)
    return f"{value} ({who})" if who else value


def is_error_anyway(b: Break) -> bool:
    """Whether torch raises the error there whatever the flags: an operation fails that is traced, or a `torch.cond` breaks."""
    return b.outcome == "raised" and (b.type.endswith("when making fake tensor call") or "captured completely" in b.reason)


def forbidden_by(b: Break, places: Places) -> str:
    """What made a break an error, `, because of fullgraph=True`; empty if that is unknown, or it would be one anyway."""
    if is_error_anyway(b):
        return ""
    if b.fullgraph:
        return ", because of fullgraph=True"
    if not b.error_on_graph_break:
        return ""
    region = region_name(b, places)
    by = f" of {set_by(region)}" if region else " of this run" if b.region.kind == "run" else ""
    return f", because of error_on_graph_break=True{by}"


def allowed_by(b: Break, places: Places) -> str:
    """`, allowed by region In[3]:8`; empty if the break is not allowed."""
    region = region_name(b, places)
    return "" if not b.allowed else f", allowed by {set_by(region)}" if region else ", allowed here"


def bands(places: Places) -> dict[tuple[str, int], Band]:
    """The innermost band of each (file, line) that is in a band."""
    report = places.report
    found = [band for b in report.breaks if (band := _of_break(places, b))]
    for source in report.sources:
        for lines in source.regions:
            flag = lines.error_on_graph_break
            found.append(Band(source.file, lines.first, lines.last, flag, f"set by {_name(lines.set_by, flag, places)}"))
    usual = bool(report.settings.get("error_on_graph_break"))
    for f in report.frames:
        if f.kind == "function" and f.error_on_graph_break not in (None, usual):
            who = f"in force when {f.name} was traced"
            found.append(Band(f.file, f.line, places.end_of(f), bool(f.error_on_graph_break), who))
    found = sorted(dict.fromkeys(found), key=lambda band: (band.last - band.first, band.who.startswith("in force")))
    # the innermost band comes last
    return {(band.file, line): band for band in reversed(found) for line in range(band.first, band.last + 1)}


def _of_break(places: Places, b: Break) -> Band | None:
    """The band of the region that set the flag at a break; None if no region did, or if its flag or lines are uncertain."""
    origin, file, lines = b.region, b.file, None
    if origin.kind == "with" and origin.file is not None and origin.line is not None:
        file, lines = origin.file, _with(places, origin.file, origin.line)
    elif origin.kind == "decorator":
        lines = _decorated(places, file, (origin.name or "").rpartition(".")[2])
    if lines is None or b.error_on_graph_break is None:
        return None
    return Band(file, *lines, b.error_on_graph_break, f"set by {region_name(b, places)}")


def _decorated(places: Places, file: str, name: str) -> tuple[int, int] | None:
    """First and last line of the function with this name and a region's decorator; None unless there is exactly one."""
    found = [n for n in _regions(places.lines(file)) if isinstance(n, FUNCTIONS) and n.name == name]
    first = min((d.lineno for n in found for d in n.decorator_list), default=0)
    return (first, found[0].end_lineno or first) if len(found) == 1 else None


def _with(places: Places, file: str, line: int) -> tuple[int, int] | None:
    """First and last line of the innermost `with` block that sets `error_on_graph_break` and contains a line."""
    extents = [(n.lineno, n.end_lineno or n.lineno) for n in _regions(places.lines(file)) if isinstance(n, WITHS)]
    return max((extent for extent in extents if extent[0] <= line <= extent[1]), default=None)


def _regions(lines: dict[int, str]) -> list[ast.stmt]:
    """The regions in these lines, excerpt by excerpt."""
    return [node for block in consecutive(sorted(lines)) for node in _parsed("\n".join(lines[n] for n in block), block[0])]


@functools.lru_cache(maxsize=32)
def _parsed(text: str, first: int) -> list[ast.stmt]:
    """The functions and `with` blocks of one excerpt that set `error_on_graph_break`, at any depth.

    Lines that begin with %name, %%name, ! or ?, as magics do, are emptied; `% 2` and `!= 2` continue an expression. The excerpt
    may start at any indentation.
    """
    rows = re.sub(r"(?m)^[ \t]*(?:%%?[^\W\d]|!(?!=)|\?).*$", "", text).split("\n")  # splitlines would split at form feeds
    indent = min((len(row) - len(row.lstrip()) for row in rows if row.strip()), default=0)
    text = "\n".join(row[indent:] for row in rows)
    tree = ast.increment_lineno(parsed(text) or ast.Module([], []), first - 1)
    return [node for node in ast.walk(tree) if isinstance(node, (*FUNCTIONS, *WITHS)) and _sets_flag(node)]


def _sets_flag(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.With | ast.AsyncWith) -> bool:
    parts = node.decorator_list if isinstance(node, FUNCTIONS) else [item.context_expr for item in node.items]
    return any("error_on_graph_break" in ast.unparse(part) for part in parts)
