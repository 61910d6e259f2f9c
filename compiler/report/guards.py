"""Guards of compiled code and the symbols in its shapes: what they are about, and the line of the program that made them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

FailedGuardKind = Literal[
    "size", "dtype", "rank", "stride", "requires_grad", "tensor class", "device", "not a tensor", "type", "object", "length",
    "not empty", "global state", "value", "range", "minimum", "none", "new attribute", "none found", "expression", "text",
    "unknown",
]  # fmt: skip


#: who wanted a guard.  "code": the program itself read the value (a branch, a Python number that is used); "operation": an
#: operation's rule on shapes (broadcasting); "compiler": torch's own (0/1 specialization, its global state); or unknown
GuardOrigin = Literal["code", "operation", "compiler", "unknown"]
#: why a size or number is a symbol: it changed between calls, it was marked (`mark_dynamic`), `dynamic=True`, it is data
DynamicCause = Literal["automatic", "marked", "setting", "data", "unknown"]


@dataclass(kw_only=True, unsafe_hash=True)
class StackEntry:
    """One entry of a stack in the user's code; lists of them are outermost first."""

    file: str
    line: int
    function: str
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    cell: int | None = None
    source: str = ""


@dataclass(kw_only=True)
class Guard:
    """A condition under which compiled code may be used again."""

    #: as the compiler names it (TENSOR_MATCH, EQUALS_MATCH); SHAPE for a condition on sizes
    kind: str
    #: the condition, as the user writes it
    text: str
    #: what is guarded ("self.scale", "x.size()[0]")
    source: str | None = None
    origin: GuardOrigin = "unknown"
    #: torch's function that asked for it ("infer_size"), or its own words
    asked_by: str | None = None
    #: guards of this kind at this line; `text` and `source` are those of the first
    count: int = 1


@dataclass(kw_only=True)
class GuardSite:
    """A line, and the guards that tracing it made, as one of a frame's: lines that only call others are sites, too."""

    #: None: unknown
    at: StackEntry | None = None
    #: the site that called it, as an index; None: the frame itself, or unknown
    caller: int | None = None
    #: it is in torch's own code (an nn.Linear): the line of the program is that of a caller
    in_torch: bool = False
    guards: list[Guard] = field(default_factory=list)


def site_stack(sites: list[GuardSite], index: int) -> list[int]:
    """The sites that lead to one, itself included, outermost first."""
    stack = [index]
    while (caller := sites[stack[0]].caller) is not None and caller not in stack:
        stack.insert(0, caller)
    return stack


def site_place(sites: list[GuardSite], index: int) -> StackEntry | None:
    """The line of the program that made a site's guards: the innermost one outside torch."""
    return next((sites[i].at for i in reversed(site_stack(sites, index)) if not sites[i].in_torch), None)


@dataclass(kw_only=True)
class Constraint:
    """A condition on symbols that tracing found to hold, and the line that needed it."""

    #: as the compiler writes it ("Eq(s77, 5)"), and with the symbols' sources
    expression: str
    text: str = ""
    #: the only value that it leaves to a symbol, if it leaves one
    value: str | None = None
    at: StackEntry | None = None
    stack: list[StackEntry] = field(default_factory=list)
    origin: GuardOrigin = "unknown"
    asked_by: str | None = None


@dataclass(kw_only=True)
class Symbol:
    """A size, or a number, that a frame was traced with as a symbol."""

    name: str
    #: what it stands for, and which dimension of it: "x", 0; None: no input ("u0" depends on data), or no dimension
    source: str | None = None
    dimension: int | None = None
    #: its value in the traced call
    hint: str | None = None
    #: its least and greatest value, as the compiler writes them ("2", "int_oo")
    low: str | None = None
    high: str | None = None
    dynamic: DynamicCause = "unknown"
    #: the first use, where it was created
    at: StackEntry | None = None
    stack: list[StackEntry] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)

    @property
    def value(self) -> str | None:
        """The only value that it may have, if the trace specialized it."""
        return next((c.value for c in self.constraints if c.value is not None), None)


@dataclass(kw_only=True)
class FailedGuard:
    """Why compiled code could not be used again: what it expected, and what it got."""

    #: "none found": all guards held when Dynamo looked for the reason; "expression": only `text` is known, the compiler's own
    #: expression; "text": only `text` is known, a sentence (reports of schema 1)
    kind: FailedGuardKind = "unknown"
    #: what was guarded, as the user writes it ("x", "self.scale"), or which global state
    source: str | None = None
    #: the dimension of a size or stride
    dimension: int | None = None
    #: the value that the code was compiled for, and the actual value; for a range, its start and its end
    before: str | None = None
    now: str | None = None
    text: str = ""
    #: the compiled version that it belongs to ("0/1")
    compile_id: str | None = None
    #: the value in the call that failed; for an expression, those of the sizes in it
    actual: str | None = None
    #: the line that made it, and the calls that lead to it; None: unknown
    at: StackEntry | None = None
    stack: list[StackEntry] = field(default_factory=list)
    origin: GuardOrigin = "unknown"
    asked_by: str | None = None
