"""Notes which private parts of torch are missing: the report names the parts, and features that need them are left out."""

from __future__ import annotations

from types import TracebackType

#: what the installed torch lacks -> why; part of `report.hooks`
missing: dict[str, str] = {}


def note_missing(what: str, why: str) -> None:
    missing[what] = why


class guarded:
    """Context manager that suppresses an exception of its block and records it as the reason why `what` is missing."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, Exception):
            note_missing(self.what, f"{type(error).__name__}: {error}")
            return True
        return False
