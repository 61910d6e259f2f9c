"""A guard of compiled code that failed, as structured facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FailedGuardKind = Literal[
    "size", "dtype", "rank", "stride", "requires_grad", "tensor class", "device", "not a tensor", "type", "object", "length",
    "not empty", "global state", "value", "range", "minimum", "none found", "expression", "text", "unknown",
]  # fmt: skip


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
