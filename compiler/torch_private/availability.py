"""Which private names of torch are missing: a feature that the installed torch lacks is left out and named in the report."""

from __future__ import annotations

from types import TracebackType

#: name of what the installed torch lacks -> why; shown in `report.hooks`
missing: dict[str, str] = {}


def note_missing(what: str, why: str) -> None:
    missing[what] = why


class guarded:
    """Context manager: an exception ends the block and is recorded as the reason why `what` is missing."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, Exception):
            note_missing(self.what, f"{type(error).__name__}: {error}")
            return True
        return False
