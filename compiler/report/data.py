"""The Report without its methods: what is saved, loaded and compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dynascope.compiler.report.fixes import Fix, FixSet
from dynascope.compiler.report.measurements import Check, InputRun, Profile
from dynascope.compiler.report.schema import (
    Break,
    Failure,
    Frame,
    Graph,
    LateBackward,
    Recompile,
    Source,
    Summary,
)

#: version of the data; `upgrade` converts older ones.  A new field with a default needs no new version.
SCHEMA = 2
#: the value of one setting; `options` is a dict
Setting = bool | int | float | str | list[str] | dict[str, bool | int | float | str | None] | None


@dataclass(kw_only=True)
class ReportData:
    """Everything one recording learned, as plain data."""

    schema: int = SCHEMA
    versions: dict[str, str | None] = field(default_factory=dict)
    #: what was compiled: names of functions and modules, or ["the cell's statements"]
    compiled: list[str] = field(default_factory=list)
    settings: dict[str, Setting] = field(default_factory=dict)
    #: each hook into torch: True, or why it does not fit this torch
    hooks: dict[str, bool | str] = field(default_factory=dict)
    summary: Summary = field(default_factory=Summary)
    frames: list[Frame] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    recompiles: list[Recompile] = field(default_factory=list)
    error: Failure | None = None
    sources: list[Source] = field(default_factory=list)
    #: where the time of a call goes; only with `--profile`
    profile: Profile | None = None
    #: one entry for each input of a list; only with `--inputs`
    inputs: list[InputRun] | None = None
    #: compiled against eager; only with `--check`
    check: Check | None = None
    #: what was tried for each graph break; only with `--fix`
    fixes: list[Fix] | None = None
    #: the proved fixes that were chosen, together; only with `--fix`
    fix_set: FixSet | None = None
    #: remarks for the user, one sentence each
    notes: list[str] = field(default_factory=list)
    late_backwards: list[LateBackward] = field(default_factory=list)
    #: records that could not be used, counted by kind
    unread: dict[str, int] = field(default_factory=dict)
    #: "live", "trace" (TORCH_TRACE files) or "partial" (interrupted)
    origin: Literal["live", "trace", "partial"] = "live"
