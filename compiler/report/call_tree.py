"""Turns the frames of a report into a tree of the program's function calls.

Dynamo splits one call into several frames: the function itself, a resume function after each break, and another version for
each recompile.  In the tree, these frames are one node, below the node of the calling function.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from dynascope.compiler.report.measurements import Segment
from dynascope.compiler.report.schema import Break, Frame, ReportData

#: the folders of installed packages and of Python's own modules, in a path of any machine
PACKAGES = r"[/\\](?:site|dist)-packages[/\\]"
PYTHON = (
    r"[/\\]lib\d*[/\\]python3\.\d+t?[/\\]"
    r"|\\(?i:[^/\\]*(?:python|conda|forge)[^/\\]*(?:\\envs\\[^/\\]+)?\\lib)\\"  # on Windows
)
_PACKAGE = re.compile(PACKAGES + r"([^/\\]+?)(?:\.py)?(?:[/\\]|$)")
_FIRST_PART = re.compile(r"\w+(?=[/\\])")
#: also code that Python or torch.fx makes; `<stdin>`, `<string>` and IPython's cells are the user's
_PYTHON = re.compile(PYTHON + r"|^<(?:frozen |eval_with_key)")
#: owners of files, the most interesting first: the user, the package that the model is from, any other package
OWNERS = ("own", "model", "other")


@dataclass(kw_only=True)
class Call:
    """The calls of one function by one caller."""

    name: str
    file: str
    line: int
    cell: int | None = None
    #: the function's frames, in the order of the report
    frames: list[Frame] = field(default_factory=list)
    #: ids of the breaks on the function's own lines
    breaks: list[str] = field(default_factory=list)
    #: the functions that this one calls
    calls: list[Call] = field(default_factory=list)

    @property
    def graphs(self) -> list[str]:
        """Ids of the graphs captured from the function, including those of its recompiles."""
        return [f.graph for f in self.frames if f.graph is not None]

    @property
    def recompiles(self) -> int:
        """How many of the frames are recompiles."""
        return sum(f.recompile_of is not None for f in self.frames)

    @property
    def skipped(self) -> Frame | None:
        """The first frame that Dynamo skipped, whose code runs eagerly; None if there is none."""
        return next((f for f in self.frames if f.status == "skipped"), None)

    @property
    def is_eventful(self) -> bool:
        """Whether something happened in the function that a reader may want to change."""
        failed = any(f.status in ("failed", "unfinished") for f in self.frames)
        return bool(self.breaks or self.recompiles or self.skipped or failed)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Call]]:
        """This call and all calls below it, each with its depth, callers first."""
        yield depth, self
        for call in self.calls:
            yield from call.walk(depth + 1)


def call_tree(report: ReportData) -> list[Call]:
    """The outermost calls; frames with the status "ignored" are left out."""
    return _Tree(report).roots


def qualified(frame: Frame) -> str:
    """The name of a frame's function, with the class of a method; for a compiled module, the user's name for it."""
    qualname = frame.qualname or ""
    return qualname if qualname.rpartition(".")[2] == frame.name else frame.name


def package(file: str) -> str | None:
    """The installed package that a file belongs to according to its path, or "Python"; None: the file is the user's."""
    found = _PACKAGE.search(file)
    return found[1] if found else "Python" if _PYTHON.search(file) else None


class Owners:
    """Finds the owner of each file in a report: the user or a package."""

    def __init__(self, report: ReportData) -> None:
        packages = Counter(package(f.file) for f in report.frames if f.status != "ignored")
        self.packages = set(packages)
        known = [name for name, _ in packages.most_common() if name not in (None, "Python", "torch")]
        #: the package, Python and torch excluded, that most frames are from; None: there is no such package
        self.library = known[0] if known else None

    def of(self, file: str) -> str:
        """The owner of a file, one of `OWNERS`."""
        first = _FIRST_PART.match(file)  # some of the compiler's paths begin at the package
        name = first[0] if first and first[0] in {*self.packages, "torch"} else package(file)
        return "own" if name is None else "model" if name == self.library else "other"


def ran_in(report: ReportData) -> list[tuple[str, Segment]]:
    """The profiled call's segments on the CPU with a known frame, each with the id of the frame that it ran in.

    Eager code between two graphs ran in the function that was skipped there; other skipped functions that this function calls
    count as part of it.  If no function was skipped, the code ran in the segment's own frame.
    """
    frames = [f for f in reversed(report.frames) if f.status == "skipped" and f.break_]
    skipped: dict[tuple[str | None, str | None], str] = {(f.parent, f.break_): f.id for f in frames}
    segments = [s for s in report.profile.segments if s.kind not in ("kernel", "copy")] if report.profile else []
    return [
        (skipped.get((s.frame, s.break_), s.frame) if s.kind == "gap" else s.frame, s) for s in segments if s.frame is not None
    ]


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
        """Add a frame to its call; the frame that it continues and the frame that called it must have been added before."""
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
        """The call that has the break on its own lines; if the function was inlined, a call below the deepest frame.

        None if none of the break's frames is in the tree.
        """
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
