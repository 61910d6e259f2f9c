"""How many programs a property test draws, and how much of a table a test goes through."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

_T = TypeVar("_T")


def examples(count: int, full: int = 150) -> int:
    """`count`, in `make test-all` `full`, or what DYNASCOPE_EXAMPLES says: the same programs first, then more."""
    return int(os.environ.get("DYNASCOPE_EXAMPLES") or (full if os.environ.get("DYNASCOPE_FULL") else count))


def some(table: Sequence[_T], every: int) -> Sequence[_T]:
    """Each so-manyth row of a table that another test goes through whole; in `make test-all`, all rows."""
    return table if os.environ.get("DYNASCOPE_FULL") else table[::every]
