"""Groups the graph breaks and recompiles of a report by cause, so that one change may remove a whole group.

Breaks that occur only in the first call are one group, and so are those that torch's optimizers make by design.  Other breaks
are in one group if the compiler's hints name the same
setting for them.  If the hints name none, the breaks that may follow from an earlier break are one group, and the rest is
grouped by type.  Recompiles are in one group if their first failed guards are of the same kind.  If no times were measured,
groups are ranked by the number of frames that they split or cause to run eagerly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from dynascope.compiler.report.call_tree import package
from dynascope.compiler.report.guards import FailedGuardKind
from dynascope.compiler.report.schema import Break, ReportData

_SETTING = re.compile(r"torch\._dynamo\.(?:config\.)?(\w+) ?= ?True")
#: matches torch's files for training, or what the compiler says of their functions
_TRAINING = re.compile(
    r"[\\/]torch[\\/](?:optim|amp)[\\/]|`(?:Optimizer|LRScheduler|GradScaler)\.\w+`|torch\.optim\.|Tensor\.backward\(\)"
)
_CONSEQUENCE = "may have been caused by an earlier graph break"


@dataclass(kw_only=True)
class Cause:
    """Graph breaks, or recompiles, that one change may remove."""

    kind: Literal["break", "recompile"]
    #: the setting of `torch._dynamo.config` that the compiler's hints name for these breaks; None: another cause
    setting: str | None = None
    #: torch's type of the breaks; if they have another cause in common, the type of the first
    type: str = ""
    #: for recompiles, the kind of the first guard that failed
    guard: FailedGuardKind | None = None
    #: ids of the breaks, the most expensive first
    breaks: list[str] = field(default_factory=list)
    #: ids of the recompiled frames
    frames: list[str] = field(default_factory=list)
    #: how often a frame ran into one of the breaks
    split: int = 0
    #: number of frames that run eagerly because of the breaks
    skipped: int = 0
    #: measured cost of the breaks in a call, in seconds; None: not measured
    seconds: float | None = None
    #: number of operations of a call that run eagerly because of the breaks, counted by the profiler; None: not measured
    eager_ops: int | None = None
    #: whether the compiler says that an earlier break may have caused these breaks
    consequence: bool = False
    #: whether torch breaks the graph there on purpose
    by_design: bool = False
    #: whether the breaks do not occur when the calls are repeated
    first_call: bool = False


def causes(report: ReportData) -> list[Cause]:
    """The causes of graph breaks, then those of recompiles, the most expensive first.

    Breaks that may follow from earlier ones come after the other breaks.  Breaks that occur only in the first call come
    after all other breaks, unless Dynamo skipped frames because of them: these frames run eagerly in later calls, too.
    """
    groups: dict[tuple[str, str], Cause] = {}
    ops = _eager_ops(report)
    costs = {c.break_: c.seconds for c in report.profile.breaks} if report.profile else {}
    skipped = [f.break_ for f in report.frames if f.status == "skipped" and f.break_ and f.kind != "resume"]
    for broken in sorted(report.breaks, key=lambda b: (-(costs.get(b.id) or 0), -len(b.hits))):
        setting = setting_in(broken.hints)
        consequence = setting is None and any(_CONSEQUENCE in hint for hint in broken.hints)
        key = ("consequence", "") if consequence else ("setting", setting) if setting else ("type", broken.type)
        cause = Cause(kind="break", setting=setting, type=broken.type, consequence=consequence)
        if is_by_design(broken):
            key, cause = ("by design", ""), Cause(kind="break", type=broken.type, by_design=True)
        if broken.first_call_only:
            key, cause = ("first call", ""), Cause(kind="break", type=broken.type, first_call=True)
        cause = groups.setdefault(key, cause)
        cause.breaks.append(broken.id)
        cause.split += len(broken.hits)
        cause.skipped += skipped.count(broken.id) or _skips(broken)
        seconds = costs.get(broken.id)
        if seconds is not None:
            cause.seconds = (cause.seconds or 0.0) + seconds
        if broken.id in ops:
            cause.eager_ops = (cause.eager_ops or 0) + ops[broken.id]
    for recompile in (r for r in report.recompiles if r.refused_by is None):
        guard = recompile.failed_guards[0].kind if recompile.failed_guards else "unknown"
        cause = groups.setdefault(("guard", guard), Cause(kind="recompile", guard=guard))
        cause.frames.append(recompile.frame)
    return sorted(groups.values(), key=_rank)


def is_by_design(b: Break) -> bool:
    """Whether torch breaks the graph there on purpose: in an optimizer or scaler, at `backward`, at its own `graph_break()`."""
    own = package(b.file) == "torch" and b.type.startswith("Call to `torch._dynamo.graph_break()`")
    return own or _TRAINING.search(f"{b.file} {b.explanation}") is not None


def setting_in(hints: Iterable[str]) -> str | None:
    """The setting of `torch._dynamo.config` that the compiler's hints advise setting to True; None if they name none."""
    return next((match[1] for hint in hints if (match := _SETTING.search(hint))), None)


def _eager_ops(report: ReportData) -> dict[str, int]:
    """Id of a break -> number of operations that run eagerly because of it; empty if the call was not profiled."""
    found: dict[str, int] = {}
    for segment in report.profile.segments if report.profile else []:
        if segment.break_ is not None and segment.op_count is not None:
            found[segment.break_] = found.get(segment.break_, 0) + segment.op_count
    return found


def _skips(broken: Break) -> int:
    return sum(hit.outcome == "skipped" for hit in broken.hits)


def _rank(cause: Cause) -> tuple[bool, bool, bool, bool, float, int, int]:
    return (
        cause.kind == "recompile",
        cause.first_call and not cause.skipped,
        cause.by_design,
        cause.consequence,
        -(cause.seconds or 0.0),
        -(cause.split + cause.skipped),
        -len(cause.frames),
    )
