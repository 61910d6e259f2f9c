"""Error handling for views: if a part cannot be drawn, the rest is drawn, and one line says what is missing and why.

Promises: a drawing error never reaches the user's cell or script; an interrupt does.  Tests must see such errors: if the
environment variable `DYNASCOPE_DRAWING_ERRORS` is "raise", as in this project's tests, they are raised.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from dynascope.widgets.words import shorten

VARIABLE = "DYNASCOPE_DRAWING_ERRORS"

T = TypeVar("T")


def guarded(what: str, make: Callable[[], T], instead: Callable[[str], T]) -> T:
    """Return `make()`; if it raises, return `instead(line)`, with one line that says what could not be drawn."""
    try:
        return make()
    except Exception as error:
        if os.environ.get(VARIABLE) == "raise":
            raise
        return instead(missing(what, error))


def missing(what: str, error: Exception) -> str:
    """`the split graph could not be drawn (KeyError: 'n3')`: one line, safe to show."""
    return shorten(f"{what} could not be drawn ({type(error).__name__}: {error}".rstrip(": ") + ")", 300)
