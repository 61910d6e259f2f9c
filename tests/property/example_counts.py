"""How many programs a property test draws."""

from __future__ import annotations

import os


def examples(count: int, full: int = 300) -> int:
    """`count`, in `make test-all` `full`, or what DYNASCOPE_EXAMPLES says: the same programs first, then more."""
    return int(os.environ.get("DYNASCOPE_EXAMPLES") or (full if os.environ.get("DYNASCOPE_FULL") else count))
