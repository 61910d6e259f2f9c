"""Records that a log must have, and lacks: lines were deleted, moved, or never written."""

from __future__ import annotations

from collections import Counter

from dynascope.compiler.recording.log_reader import LogRecord


class MissingRecords:
    def __init__(self) -> None:
        pass

    def add(self, record: LogRecord, process: int) -> None:
        pass

    def problems(self) -> Counter[str]:
        return Counter()
