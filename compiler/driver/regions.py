"""`region()`: another `error_on_graph_break` for one stretch of code; and what `--region TARGET=error|allow` says."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from dynascope.compiler.recording.recording import Recording
from dynascope.compiler.report import Report
from dynascope.compiler.torch_private import region_flag

_LINES = re.compile(r"^(\d+)(?:-(\d+))?$")
_SET = {"error": True, "allow": False}


def region(*, error_on_graph_break: bool) -> Any:
    """A decorator and context manager under which graph breaks are errors (True) or allowed (False).

    It hands back the very object of `torch._dynamo.error_on_graph_break`, because Dynamo knows that one
    and honours it inside traced code.  `fullgraph=True` wins over it.

    Raises TypeError where the flag is no bool.
    """
    if not isinstance(error_on_graph_break, bool):
        raise TypeError(f"region(error_on_graph_break=...) takes True or False, not {error_on_graph_break!r}")
    return region_flag.error_on_graph_break()(error_on_graph_break)


class RegionsInForce(Protocol):
    """The `--region` options of one run, as a `Run` needs them; a notebook's are `dynascope.regions.active`."""

    def installed(self, recording: Recording) -> AbstractContextManager[None]:
        """Sets the regions for the duration; restores every object exactly."""

    def inherited_by(self, made: Callable[..., Any], plain: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        """An entry point that leaves a region's flag in force when it is called inside one.

        `made`: the entry point that sets the run's own flag; `plain` makes one that sets none.
        """

    def annotate(self, report: Report) -> None:
        """Names the regions in the report, and notes which had no effect."""


@dataclass(frozen=True)
class Region:
    """`9-12=allow`: one `--region`, read."""

    #: as it was written: lines, a function's name or a dotted path
    target: str
    #: error_on_graph_break inside
    flag: bool
    #: first and last line; None for a function
    lines: tuple[int, int] | None = None

    def __str__(self) -> str:
        return f"--region {self.target}={'error' if self.flag else 'allow'}"

    def contains(self, other: Region) -> bool:
        """Whether the lines of `other` all lie in these."""
        if self.lines is None or other.lines is None:
            return False
        return self.lines[0] <= other.lines[0] and other.lines[1] <= self.lines[1]

    def meets(self, other: Region) -> bool:
        """Whether some line lies in both."""
        if self.lines is None or other.lines is None:
            return False
        return self.lines[0] <= other.lines[1] and other.lines[0] <= self.lines[1]


def parse_region(text: str) -> Region:
    """Read `9=error`, `9-12=allow`, `block=allow`, `pkg.mod.Class.method=error`.

    Raises ValueError, in one line, for anything else.
    """
    target, equals, word = text.rpartition("=")
    target = target.strip()
    if not equals or word.strip() not in _SET or not target:
        raise ValueError(f"--region {text}: write it as TARGET=error or TARGET=allow")
    flag = _SET[word.strip()]
    lines = _LINES.match(target)
    if lines is not None:
        first, last = int(lines[1]), int(lines[2] or lines[1])
        if first < 1 or last < first:
            raise ValueError(f"--region {text}: lines are written as 9 or 9-12, the first one first")
        return Region(target, flag, (first, last))
    if not all(part.isidentifier() for part in target.split(".")):
        raise ValueError(f"--region {text}: {target} is neither a name, nor a dotted path, nor lines such as 9 or 9-12")
    return Region(target, flag)


def parse_regions(texts: list[str]) -> list[Region]:
    """Read them all, outer lines before those inside.

    Raises ValueError, in one line, where one cannot be read or two contradict each other: the same target twice with both
    settings, or lines that overlap without one lying in the other.
    """
    regions = list(dict.fromkeys(parse_region(text) for text in texts))
    for i, one in enumerate(regions):
        for other in regions[:i]:
            if one.flag == other.flag:
                continue
            same = one.target == other.target or (one.lines is not None and one.lines == other.lines)
            crossing = one.meets(other) and not one.contains(other) and not other.contains(one)
            if same or crossing:
                raise ValueError(f"{other} and {one} contradict each other: regions may nest, but not overlap")
    return sorted(regions, key=lambda r: (r.lines is not None, -(r.lines[1] - r.lines[0]) if r.lines else 0))
