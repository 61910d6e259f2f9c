"""How many programs a property test draws."""

from __future__ import annotations

import os


def examples(count: int) -> int:
    """`count`, or what DYNASCOPE_EXAMPLES says: a long run draws the same programs first, then more."""
    return int(os.environ.get("DYNASCOPE_EXAMPLES") or count)
