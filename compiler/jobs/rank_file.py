"""Writes and reads the file of one rank: one line with the rank and its hashes, and one line with its Report.

A file is replaced as a whole, so a reader sees either the old or the new one, and a rank that is killed leaves the last one
that it wrote.  If two ranks are equal, the Report of only one of them is read.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from dynascope.compiler.ranks import RankRecord
from dynascope.compiler.ranks.schema import Rank
from dynascope.compiler.ranks.structure import GroupNames, steps_of, structure
from dynascope.compiler.report import Report, first_line

SUFFIX = ".rank"
VERSION = 1
#: the artifact in which Inductor logs its estimates of run times
RUN_TIMES = "inductor_runtime_and_tensor_meta"
#: answers of caches, in order: the first of them that any stage gave is the answer of the step
_CACHE_ORDER = ("miss", "bypass", "hit")


def record_of(
    rank: Rank,
    report: Report,
    *,
    names: GroupNames | None = None,
    settings: dict[str, Any] | None = None,
    environment: dict[str, str] | None = None,
    world_size: int | None = None,
    job: str | None = None,
) -> RankRecord:
    """The record of a rank with this report; also sets the fields of `rank` that the report determines."""
    finished = rank.status == "finished"
    steps = steps_of(report, finished=finished)
    rank.seconds = [step.frame.compile_seconds for step in steps]
    rank.compile_seconds = report.summary.compile_seconds
    rank.caches = [cache_answer(step.graph.caches.values()) if step.graph else "" for step in steps]
    rank.unread = dict(report.unread)
    if not finished:
        unfinished = [f for f in report.frames if f.status == "unfinished"]
        rank.compiling = unfinished[-1].name if unfinished else None
    if report.error is not None and rank.error is None and not report.error.caught:
        rank.error = f"{report.error.type}: {first_line(report.error.message)}"
    return RankRecord(
        rank=rank, structure=structure(report, names, finished=finished), names=names or {}, versions=report.versions,
        settings=settings or {}, environment=environment, world_size=world_size, job=job,
    ).reading(lambda: report)  # fmt: skip


def cache_answer(answers: Any) -> str:
    """One word for the lookups of all stages: "miss" if there was any, else "bypass", else "hit"; "" without a lookup."""
    words = {word for answer in answers for word in str(answer).split(", ")}
    return next((w for w in _CACHE_ORDER if w in words), "")


def run_time(payload: str | bytes) -> list[float]:
    """Inductor's estimate of a graph's run time, in seconds, as a list of one; [] if the record is damaged."""
    try:
        operations = json.loads(payload)["ops"]
        return [sum(float(operation["estimated_runtime_ns"]) for operation in operations) / 1e9]
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return []


def write(folder: str | Path, record: RankRecord, report: bytes) -> Path:
    """Write the file of a rank, which replaces the one written before; raises OSError if it cannot be written.

    `report`: the record's Report, encoded.
    """
    path = Path(folder) / file_name(record.rank)
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


def file_name(rank: Rank) -> str:
    """The name of a rank's file, such as `3-host-4711.rank`: unique for each process, even if jobs share a folder."""
    host = "".join(c if c.isalnum() or c in ".-" else "_" for c in rank.host or "host")
    return f"{rank.rank}-{host}-{rank.pid}{SUFFIX}"


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
    """The record in the file of a rank; its Report is read on demand.  Raises ValueError if the first line is damaged."""
    with path.open("rb") as file:
        line = file.readline()
    try:
        return from_head(msgspec.json.decode(line), lambda: read_report(path))
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise ValueError(f"{path.name}: {first_line(str(error))}") from None


def read_report(path: Path) -> Report:
    """The Report in the file of a rank; raises ValueError if it is damaged."""
    with path.open("rb") as file:
        file.readline()
        line = file.readline()
    try:
        return Report.from_dict(msgspec.json.decode(line))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"{path.name}: its report is damaged: {first_line(str(error))}") from None
