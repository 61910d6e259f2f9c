"""What one rank recorded, and the file that it writes: one line with the rank and its hashes, and one line with its Report.

A file is replaced as a whole, so a reader sees either the old or the new one, and a rank that is killed leaves the last one
that it wrote.  If two ranks are equal, the Report of only one of them is read.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from dynascope.compiler.ranks.report import Rank
from dynascope.compiler.ranks.structure import GroupNames, Structure, steps_of, structure
from dynascope.compiler.report import Report, first_line
from dynascope.compiler.report.data import Part

SUFFIX = ".rank"
VERSION = 2
#: answers of caches, in order: the first of them that any stage gave is the answer of the step
_CACHE_ORDER = ("miss", "bypass", "hit")
_Made = TypeVar("_Made")


class RankRecord(Part, kw_only=True, dict=True):
    """What one rank wrote.  Its hashes are read at once, its Report on demand."""

    rank: Rank
    structure: Structure
    names: GroupNames = {}
    versions: dict[str, str | None] = {}
    settings: dict[str, Any] = {}
    #: None: not recorded, as in a log
    environment: dict[str, str] | None = None
    world_size: int | None = None
    #: identifies the job: equal for all its ranks; None: not known
    job: str | None = None

    def reading(self, report: Callable[[], Report]) -> RankRecord:
        """Set the function that reads the Report; it raises ValueError or OSError if the Report is damaged."""
        self.report = report
        return self


def record_of(rank: Rank, report: Report, *, names: GroupNames | None = None, **known: Any) -> RankRecord:
    """The record of a rank with this report; also sets the fields of `rank` that the report determines.

    `known`: other fields of the record.
    """
    finished = rank.status == "finished"
    steps = steps_of(report, finished=finished)
    rank.seconds = [step.frame.compile_seconds for step in steps]
    rank.compile_seconds = report.summary.compile_seconds
    rank.caches = [cache_answer(step.graph.caches.values()) if step.graph else "" for step in steps]
    rank.unread = dict(report.unread)
    if not finished:
        rank.compiling = next((f.name for f in reversed(report.frames) if f.status == "unfinished"), None)
    if report.error is not None and rank.error is None and not report.error.caught:
        rank.error = f"{report.error.type}: {first_line(report.error.message)}"
    hashes = structure(report, names or {}, finished=finished)
    record = RankRecord(rank=rank, structure=hashes, names=names or {}, **{"versions": report.versions, **known})
    return record.reading(lambda: report)


def cache_answer(answers: Iterable[str]) -> str:
    """One word for the lookups of all stages: "miss" if there was any, else "bypass", else "hit"; "" without a lookup."""
    words = {word for answer in answers for word in answer.split(", ")}
    return next((w for w in _CACHE_ORDER if w in words), "")


def write(folder: Path, record: RankRecord, report: bytes) -> Path:
    """Write the file of a rank, such as `3-host-4711.rank`, which replaces the one written before.

    Its name is unique for each process, even if jobs share a folder.  `report`: the record's Report, encoded.  Raises OSError
    if the file cannot be written.
    """
    rank = record.rank
    host = "".join(c if c.isalnum() or c in ".-" else "_" for c in rank.host or "host")
    path = folder / f"{rank.rank}-{host}-{rank.pid}{SUFFIX}"
    new = path.with_name(f".{path.name}.{threading.get_ident()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with new.open("wb") as file:
            file.write(encoded(head(record)) + report)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)
    return path


def encoded(data: dict[str, Any]) -> bytes:
    """Data as one line of the file."""
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def head(record: RankRecord) -> dict[str, Any]:
    """The data of the first line of the file: everything but the Report."""
    return {"dynascope_rank": VERSION, **msgspec.to_builtins(record)}


def from_head(head: Any, report: Callable[[], Report]) -> RankRecord:
    """The record that the data of a first line describes; raises ValueError if it is damaged or of another version."""
    try:
        if head["dynascope_rank"] != VERSION:
            raise ValueError("written by another version of dynascope")
        return msgspec.convert(head, RankRecord).reading(report)
    except (KeyError, TypeError, msgspec.MsgspecError) as error:
        raise ValueError(f"not the file of a rank, or damaged: {first_line(str(error))}") from None


def read(path: Path) -> RankRecord:
    """The record in the file of a rank; its Report is read on demand.  Raises ValueError if its line is damaged."""
    return _line(path, 0, lambda head: from_head(head, lambda: _line(path, 1, Report.from_dict)))


def _line(path: Path, number: int, made: Callable[[Any], _Made]) -> _Made:
    with path.open("rb") as file:
        line = [file.readline() for _ in range(number + 1)][-1]
    try:
        return made(msgspec.json.decode(line))
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise ValueError(f"{path.name}: {first_line(str(error))}") from None
