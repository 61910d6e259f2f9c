"""What an overview of a large report is made of: a tree of the function calls, and the causes of breaks and recompiles.

Dynamo splits one call into several frames: the function itself, a resume function after each break, and another version for
each recompile.  In the tree, these frames are one node, below the node of the calling function.

Causes group the graph breaks and recompiles, so that one change may remove a whole group.  Breaks that occur only in the first
call are one group, and so are those that torch's optimizers make by design.  Other breaks are in one group if the compiler's
hints name the same setting for them.  If the hints name none, they are grouped by type.  What is to be left comes last.
Recompiles are in one group if guards of the same kind failed: if several failed in a recompile, the kind that failed in most
versions decides, else the first; global state, of which others are versions, decides last.  Those for a new bound method of
what changes are in the group of that change.  Recompiles in call after call, or up to the limit, come first, other recompiles
after the breaks.
If no times were measured, groups are ranked by the number of frames that they split or cause to run eagerly.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from dynascope.compiler.report.data import FailedGuard, FailedGuardKind, StackEntry
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
    """The outermost calls; frames with the status "ignored" are left out.

    The frame that a frame continues, and the frame that called it, come before it.
    """
    outside = Call(name="", file="", line=0)
    calls: dict[tuple[object, ...], Call] = {}
    call_of: dict[str, Call] = {}
    #: id of any frame -> the call that it belongs to, or the nearest caller's, if it is left out
    around: dict[str, Call] = {}

    def call_in(parent: Call, name: str, at: Frame | Break, *key: object) -> Call:
        known = calls.setdefault((id(parent), at.file, *key), new := Call(name=name, file=at.file, line=at.line, cell=at.cell))
        if known is new:
            parent.calls.append(new)
        return known

    for frame in report.frames:
        call = around.get(frame.parent or "", outside)
        if frame.status != "ignored":
            call = call_of.get(frame.continues or "") or call_in(call, qualified(frame), frame, frame.line, frame.name)
            call.frames.append(frame)
            call_of[frame.id] = call
        around[frame.id] = call
    depths = {id(call): depth for depth, call in outside.walk()}
    for broken in report.breaks:
        hit = [call_of[h.frame] for h in broken.hits if h.frame in call_of]
        if hit:  # the call that has the break on its own lines; if the function was inlined, a call below the deepest frame
            deepest = max(hit, key=lambda call: depths[id(call)])
            calls_of_file = (c for c in [*hit, *(c for _, c in deepest.walk())] if c.file == broken.file)
            own = (c for c in calls_of_file if any(f.line <= broken.line <= (f.end_line or f.line) for f in c.frames))
            holder = next(own, None) or call_in(deepest, broken.function, broken, broken.function)
            holder.breaks.append(broken.id)
    return outside.calls


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

    def __init__(self, report: ReportData, files: Iterable[str] | None = None) -> None:
        """`files`: those of the report's sources, where these are not all made yet."""
        packages = Counter(package(f.file) for f in report.frames if f.status != "ignored")
        self.packages = {*packages, *map(package, (source.file for source in report.sources) if files is None else files)}
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
    frames = [f for f in reversed(report.frames) if f.status == "skipped" and f.stopped_by]
    skipped: dict[tuple[str | None, str | None], str] = {(f.parent, f.stopped_by): f.id for f in frames}
    segments = [s for s in report.profile.segments if s.kind not in ("kernel", "copy")] if report.profile else []
    return [(skipped.get((s.frame, s.break_), s.frame) if s.kind == "gap" else s.frame, s) for s in segments if s.frame]


_SETTING = re.compile(r"torch\._dynamo\.(?:config\.)?(?!compiled_autograd)(\w+)(?: ?= ?|` to `)True")
#: matches torch's files for training, or what the compiler says of their functions
_TRAINING = re.compile(r"[\\/]torch[\\/](?:optim|amp)[\\/]|`(?:Optimizer|LRScheduler|GradScaler)\.\w+`|torch\.optim\.")
#: torch's types of the breaks that a program asks for
ASKED_FOR = (
    "Skip calling `torch.compiler.disable()`d function", "Skip inlining `torch.compiler.disable()`d function",
    "Call to `torch._dynamo.graph_break()`", "Call to `torch._dynamo.skip_frame()`",
    "torch._dynamo.step_unsupported() with empty checkpoint",
)  # fmt: skip


@dataclass(kw_only=True)
class Cause:
    """Graph breaks, or recompiles, that one change may remove."""

    kind: Literal["break", "recompile"]
    #: the setting of `torch._dynamo.config` that the compiler's hints name for these breaks; None: another cause
    setting: str | None = None
    #: torch's type of the breaks; if they have another cause in common, the type of the first
    type: str = ""
    #: for recompiles, the kind of the guards that failed; "length" is also that of what was empty
    guard: FailedGuardKind | None = None
    #: ids of the breaks, the most expensive first
    breaks: list[str] = field(default_factory=list)
    #: ids of the recompiled frames, each with the guards that failed, those of the kind that takes most values first
    frames: dict[str, list[FailedGuard]] = field(default_factory=dict)
    #: for each of the breaks, the functions and resume functions that run into it
    split: int = 0
    #: number of frames that run eagerly because of the breaks
    skipped: int = 0
    #: measured cost of the breaks in a call, in seconds; None: not measured
    seconds: float | None = None
    #: number of operations of a call that run eagerly because of the breaks, counted by the profiler; None: not measured
    eager_ops: int | None = None
    #: whether torch breaks the graph there on purpose
    by_design: bool = False
    #: whether the user's code asks for the breaks, and for what became of them
    asked_for: bool = False
    #: whether the breaks do not occur when the calls are repeated
    first_call: bool = False
    #: whether only inputs of `--inputs` run into the breaks
    of_inputs: bool = False
    #: the calls that compiled again because of this: file and line of the outermost function, what was guarded, and the number
    calls: set[tuple[str, int, str, int]] = field(default_factory=set)
    #: how often functions that have reached the recompile limit compiled again because of this
    at_limit: int = 0

    @property
    def in_each_call(self) -> bool:
        """Whether three calls of a function in a row compiled again for one value: that costs more than any graph break."""
        return any({(*of, call + 1), (*of, call + 2)} <= self.calls for *of, call in self.calls)


def causes(report: ReportData) -> list[Cause]:
    """The causes of recompiles in call after call or up to the limit, of breaks that no region allows, of other recompiles.

    Of each kind, the most expensive come first.
    Breaks that occur only in the first call come after all other breaks, unless Dynamo skipped frames because of them: these
    frames run eagerly in later calls, too.
    """
    groups: dict[tuple[object, ...], Cause] = {}
    ops = Counter[str]()
    for segment in report.profile.segments if report.profile else []:
        if segment.break_ is not None and segment.op_count is not None:
            ops[segment.break_] += segment.op_count
    costs = {c.break_: c.seconds for c in report.profile.breaks} if report.profile else {}
    skipped = [f.stopped_by for f in report.frames if f.status == "skipped"]
    own = {b.id for b in report.own_breaks}
    for broken in sorted((b for b in report.breaks if not b.allowed), key=lambda b: (-(costs.get(b.id) or 0), -len(b.hits))):
        is_first = bool(broken.first_call_only)
        is_meant = not is_first and is_by_design(broken, report.breaks)
        outcomes = ("resumed", "skipped" if "skip_frame" in broken.type else "")
        is_asked = not is_first and is_asked_for(broken) and broken.outcome in outcomes
        setting = None if is_first or is_meant else setting_in(broken.hints)
        added = broken.id not in own
        key = added, is_first, is_meant, is_asked, setting, "" if is_first or is_meant or setting else broken.type
        new = Cause(kind="break", setting=setting, by_design=is_meant, asked_for=is_asked, first_call=is_first, of_inputs=added)
        cause = groups.setdefault(key, new)
        cause.type = cause.type or broken.type
        cause.breaks.append(broken.id)
        cause.split += len(report.seen_from(broken))
        cause.skipped += skipped.count(broken.id) or sum(hit.outcome == "skipped" for hit in broken.hits)
        seconds = costs.get(broken.id)
        if seconds is not None:
            cause.seconds = (cause.seconds or 0.0) + seconds
        if broken.id in ops:
            cause.eager_ops = (cause.eager_ops or 0) + ops[broken.id]
    outermost: dict[str, Frame] = {}
    for f in report.frames:
        outermost[f.id] = outermost.get(f.continues or f.parent or "", f)
    code = {f.id: f.code for f in report.frames}
    limited = {code.get(r.frame, "") for r in report.recompiles if r.refused_by is not None}
    again = [(r.failed_guards or [FailedGuard()], r) for r in report.recompiles if r.refused_by is None]
    # what takes a new value each time compiles again and again; what alternates between two, only once
    guards_failed = (guard for guards, _ in again for guard in guards)
    seen = {(_kind(g), g.source, v) for g in guards_failed for v in (g.before, g.actual or g.now or g.compile_id)}
    values = Counter(kind for kind, *_ in seen)
    failures = new_failures(report)
    for guards, recompile in again:
        told = failures[recompile.frame]
        first, *others = sorted(guards, key=lambda g: (g not in told, g.kind == "global state", -values[_kind(g)]))
        cause = groups.setdefault(("guard", _kind(first)), Cause(kind="recompile", guard=_kind(first)))
        cause.frames[recompile.frame] = [first, *others]
        cause.at_limit += code.get(recompile.frame) in limited
        if recompile.call is not None and (called := outermost.get(recompile.frame)):
            cause.calls.add((called.file, called.line, first.source or "", recompile.call))
    return sorted(groups.values(), key=_rank)


def _kind(guard: FailedGuard) -> FailedGuardKind:
    return "length" if guard.kind == "not empty" else guard.kind


def new_failures(report: ReportData) -> dict[str, list[FailedGuard]]:
    """The guards that failed for each recompiled frame, but for those that the same version had failed by before.

    They say that the version serves no more, not why the call needs another one.  All, if all are such.
    """
    known, found = set[tuple[str | None, ...]](), dict[str, list[FailedGuard]]()
    for recompile in report.recompiles:
        failed = [((g.compile_id, g.kind, g.source, g.before), g) for g in recompile.failed_guards]
        found[recompile.frame] = [g for key, g in failed if g.compile_id is None or key not in known] or recompile.failed_guards
        known.update(key for key, _ in failed)
    return found


def is_by_design(b: Break, breaks: Iterable[Break] = ()) -> bool:
    """Whether torch breaks the graph there on purpose: in an optimizer or scaler, at `backward`.

    `backward` only where torch has no setting that traces it, or where one of the `breaks` is in an optimizer.
    """
    is_backward = "Tensor.backward()" in b.explanation
    known = [b, *breaks] if is_backward else [b]
    is_training = any(_TRAINING.search(f"{one.file} {one.explanation}") for one in known)
    return is_training or (is_backward and setting_in(b.hints) is None)


def eager_in_torch(b: Break, report: ReportData) -> StackEntry | None:
    """Where torch's own code, such as `nn.Sequential.forward`, leads to a break in other code, and is no frame.

    Dynamo compiles such code only as part of what calls it: where that has a break, it runs eagerly.
    """
    if b.outcome == "raised" or package(b.file) == "torch" or report.settings.get("nested_graph_breaks"):
        return None
    frames = {(f.file, f.code_name) for f in report.frames}
    return next((e for e in b.stack if package(e.file) == "torch" and (e.file, e.function) not in frames), None)


def is_asked_for(b: Break) -> bool:
    """Whether the user's own code asks for the break, if not for what became of it."""
    return b.type in ASKED_FOR and package(b.file) is None and not is_by_design(b)


def setting_in(hints: Iterable[str]) -> str | None:
    """The setting of `torch._dynamo.config` that the compiler's hints advise setting to True; None if they name none."""
    return next((match[1] for hint in hints if (match := _SETTING.search(hint))), None)


def _rank(cause: Cause) -> tuple[bool, bool, bool, bool, bool, int, float, int, int]:
    # what makes whole frames run eagerly costs more than others if its cost is unknown
    seconds = math.inf if cause.seconds is None and cause.skipped else cause.seconds or 0.0
    return (
        cause.asked_for or cause.by_design, not (cause.in_each_call or cause.at_limit), cause.kind == "recompile",
        cause.of_inputs or (cause.first_call and not cause.skipped), cause.by_design, -cause.at_limit, -seconds,
        -(cause.split + cause.skipped), -len(cause.frames),
    )  # fmt: skip
