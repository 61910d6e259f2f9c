"""The only code that uses private parts of torch.

Parts that not every torch has are guarded, and `report.hooks` names those that are missing (`missing`): features that need them
are left out.

To observe torch: `hooks` has the observed call sites in torch and their handlers (a new hook goes there), `hook_installer`
installs and removes them, and makes a function of torch's call an observer, `translators` reads the objects of Dynamo and FX.
To steer torch, and to read and restore its state: `config`, `marks`, `caches`, `running`, `tensors`.
To find out about numbers: `float64` follows a run in higher precision, `bisector` finds the part of the compiler at fault.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

#: what the installed torch lacks -> why; part of `report.hooks`
missing: dict[str, str] = {}


def note_missing(what: str, why: str) -> None:
    missing[what] = why


class NotLoaded(Exception):
    """A module of torch's is not loaded, and so has no state."""


def loaded(module: str) -> Any:
    """A module of torch's; raises NotLoaded if the program has not loaded it."""
    if module not in sys.modules:
        raise NotLoaded(module)
    return sys.modules[module]


class if_present:
    """Context manager that suppresses an exception of its block and records it as the reason why `what` is missing.

    What is in a module that is not loaded is not missing.
    """

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, Exception) and not isinstance(error, NotLoaded):
            note_missing(self.what, f"{type(error).__name__}: {error}")
        return isinstance(error, Exception)
