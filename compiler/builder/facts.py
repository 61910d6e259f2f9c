"""What `assembly` needs besides the events of a recording; little of it is known for a trace file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dynascope.compiler.builder.events.schema import Sizes
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.lines import CellResolver, OldFunction


@dataclass(slots=True)
class RecordingFacts:
    """Everything that the Report needs and the events do not contain."""

    origin: Literal["live", "trace"] = "live"
    #: id -> interned string of the structured trace; empty for a log, whose reader looks up the strings
    strings: dict[int, str] = field(default_factory=dict)
    cell_of: CellResolver = lambda file: None
    #: frames compiled by another thread than this one are foreign; None: unknown
    owner_thread: int | None = None
    settings: Settings | None = None
    #: the reason given for a compile whose end is not among the events
    no_end_words: str = "the log does not hold the end of this compile"
    #: names of what was compiled, which the report shows first
    compiled: list[str] = field(default_factory=list)
    #: sentences for the user
    notes: list[str] = field(default_factory=list)
    hooks: dict[str, bool | str] = field(default_factory=dict)
    versions: dict[str, str | None] = field(default_factory=dict)
    #: what Dynamo had recorded about the sizes of inputs when the recording began, and when it ended
    sizes_before: Sizes = field(default_factory=dict)
    sizes_after: Sizes = field(default_factory=dict)
    #: functions whose lines their files no longer have; more may be added
    old_functions: list[OldFunction] = field(default_factory=list)
    #: the error that ended the recorded block
    error: BaseException | None = None
    #: the user's stack, as torch prints it, of the operation of a graph that raised the error; "": unknown, or none did
    failed_operation: str = ""
