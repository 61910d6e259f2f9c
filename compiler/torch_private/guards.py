"""Private names of torch can change with each release: what is not as it was is left out, and named in the report."""

from __future__ import annotations

from types import TracebackType

#: what does not fit the installed torch, by name, and why; shown in `report.hooks`
missing: dict[str, str] = {}


def note_missing(what: str, why: str) -> None:
    missing[what] = why


class guarded:
    """An exception in the block ends the block, and is noted as the reason why `what` is missing."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, Exception):
            note_missing(self.what, f"{type(error).__name__}: {error}")
            return True
        return False
