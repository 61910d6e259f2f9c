"""Translates what a click in the view points at into the TARGET of `--region`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple

from dynascope.compiler.report import Report
from dynascope.compiler.source.code import last_line, user_name

#: a cell, as a break's target names it
_IN_CELL = re.compile(r"In\[\d+\]")


class _Place(NamedTuple):
    """A line of a function in the report; `cell` is None outside the notebook's cells."""

    file: str
    line: int
    #: the name that the report shows; a `forward` may have that of its module
    function: str
    cell: int | None
    #: the function's own name
    code_name: str


def region_target(target: str, report: Report, file: str, namespace: dict[str, Any]) -> str:
    """The TARGET for a click: a line of the cell in `file`, a function's name, or the dotted path of a function elsewhere.

    The view sends a function's name, a function outside the notebook with one of its lines (`forward:12`), or the cell and the
    line of a break (`In[3]:12`).  A bare number in the result is a line of this cell.
    """
    breaks = [_Place(b.file, b.line, b.function, b.cell, b.function) for b in report.breaks]
    places = breaks + [_Place(f.file, f.line, f.name, f.cell, user_name(f.code_name)) for f in report.frames]
    name, _, line = target.rpartition(":")
    if _IN_CELL.fullmatch(name) and line.isdigit():
        candidates = [p for p in breaks if (p.line, f"In[{p.cell}]") == (int(line), name)]
        if any(p.file == file for p in candidates):
            return line
    elif name and line.isdigit():
        candidates = [p for p in places if (p.line, p.function, p.cell) == (int(line), name, None)]
        target = name
    else:
        candidates = [p for p in places if p.function == target and p.file != file and target not in namespace]
    return _dotted_path(candidates[0], namespace) if candidates else target


def _dotted_path(place: _Place, namespace: dict[str, Any]) -> str:
    """The path of the function at this place, in the notebook or in a loaded module; its bare name if it is in neither."""
    modules = [(f"{name}.", module) for name, module in list(sys.modules.items())]
    loaded = [(prefix, vars(module)) for prefix, module in modules if getattr(module, "__file__", None) == place.file]
    for prefix, space in [("", namespace), *loaded]:
        for path, function in _functions(space):
            code = function.__code__
            same = (code.co_filename, code.co_name) == (place.file, place.code_name)
            if same and code.co_firstlineno <= place.line <= last_line(code):
                return prefix + path
    return place.function


def _functions(space: dict[str, Any]) -> Iterator[tuple[str, FunctionType]]:
    """(path, function) of each function, and of each method of a class, without their decorators."""
    for name, value in list(space.items()):
        members = {f"{name}.{k}": v for k, v in vars(value).items()} if isinstance(value, type) else {name: value}
        for path, member in members.items():
            if isinstance(member, (staticmethod, classmethod)):
                member = member.__func__
            function = inspect.unwrap(member) if isinstance(member, FunctionType) else None
            if isinstance(function, FunctionType):
                yield path, function
