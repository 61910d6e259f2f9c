"""The recorded program as its author knows it: a tree of function calls, each with what the compiler made of it.

Dynamo splits one call into several frames: the function itself, a resume function after each break, and another version
for each recompile.  Here they are one node, below the node of the function that called it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dynascope.compiler.report.schema import Break, Frame, ReportData

_LIBRARY = re.compile(r"[/\\](?:site-packages|dist-packages|python3\.\d+)[/\\]|^<")


@dataclass(kw_only=True)
class Call:
    """One function, called from one function of the program."""

    name: str
    file: str
    line: int
    cell: int | None = None
    #: the frames that Dynamo made of it, in order
    frames: list[Frame] = field(default_factory=list)
    #: breaks on its own lines, by id
    breaks: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    @property
    def graphs(self) -> list[str]:
        """Ids of the graphs captured from it, each version of a recompiled graph once."""
        return [f.graph for f in self.frames if f.graph is not None]

    @property
    def recompiles(self) -> int:
        """How often one of its frames was compiled again."""
        return sum(f.recompile_of is not None for f in self.frames)

    @property
    def skipped(self) -> Frame | None:
        """The frame that Dynamo gave up, whose lines run eagerly."""
        return next((f for f in self.frames if f.status == "skipped"), None)

    @property
    def is_eventful(self) -> bool:
        """Whether something happened in it that a reader may want to change."""
        failed = any(f.status in ("failed", "unfinished") for f in self.frames)
        return bool(self.breaks or self.recompiles or self.skipped or failed)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Call]]:
        """It and everything below it with the depth, callers first."""
        yield depth, self
        for call in self.calls:
            yield from call.walk(depth + 1)


def call_tree(report: ReportData) -> list[Call]:
    """The outermost calls; ignored frames (library code that torch runs by itself) are left out."""
    return _Tree(report).roots


def qualified(frame: Frame) -> str:
    """The name of a frame, with the class of a method; of a compiled module, the name that the user knows."""
    qualname = frame.qualname or ""
    return qualname if qualname.rpartition(".")[2] == frame.name else frame.name


def is_library(file: str) -> bool:
    """Whether a file belongs to an installed package or to Python, as far as its path tells."""
    return _LIBRARY.search(file) is not None


class _Tree:
    def __init__(self, report: ReportData) -> None:
        self.frames = {f.id: f for f in report.frames}
        self.calls: dict[tuple[int, str, int, str], Call] = {}
        self.call_of: dict[str, Call] = {}
        self.depth: dict[int, int] = {}
        self.roots: list[Call] = []
        for frame in report.frames:
            if frame.status != "ignored":
                self.place(frame)
        for broken in report.breaks:
            call = self.holder(broken)
            if call is not None:
                call.breaks.append(broken.id)

    def place(self, frame: Frame) -> None:
        """Add a frame to the call that it belongs to.  What it continues, and what called it, comes before it."""
        call = self.call_of.get(frame.continues or "")
        if call is None:
            parent = self.caller(frame)
            key = (id(parent), frame.file, frame.line, frame.name)
            if key not in self.calls:
                call = Call(name=qualified(frame), file=frame.file, line=frame.line, cell=frame.cell)
                self.calls[key] = self.below(parent, call)
            call = self.calls[key]
        self.call_of[frame.id] = call
        call.frames.append(frame)

    def below(self, parent: Call | None, call: Call) -> Call:
        (self.roots if parent is None else parent.calls).append(call)
        self.depth[id(call)] = 0 if parent is None else self.depth[id(parent)] + 1
        return call

    def caller(self, frame: Frame) -> Call | None:
        """The nearest caller that has a node."""
        seen: set[str] = set()
        while frame.parent in self.frames and frame.parent not in seen:
            seen.add(frame.parent)
            if frame.parent in self.call_of:
                return self.call_of[frame.parent]
            frame = self.frames[frame.parent]
        return None

    def holder(self, broken: Break) -> Call | None:
        """The call with the break on its own lines: a new one below the deepest frame if the function was inlined there."""
        hit = [self.call_of[h.frame] for h in broken.hits if h.frame in self.call_of]
        if not hit:
            return None
        inlined = max(hit, key=lambda call: self.depth[id(call)])
        for call in [*hit, *(c for _, c in inlined.walk())]:
            if call.file == broken.file and any(f.line <= broken.line <= (f.end_line or f.line) for f in call.frames):
                return call
        key = (id(inlined), broken.file, 0, broken.function)
        if key not in self.calls:
            call = Call(name=broken.function, file=broken.file, line=broken.line, cell=broken.cell)
            self.calls[key] = self.below(inlined, call)
        return self.calls[key]
