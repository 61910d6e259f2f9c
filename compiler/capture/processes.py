"""Finds the processes that wrote a folder of logs, their ranks, and the runs that they belong to.

torch writes one log for each process, and nothing in the log names the run, so two runs in one folder must be told apart.  If
all ranks are known and different, there is one run.  Otherwise a new run begins with each process that starts more than
`_PAUSE` after all processes of the run before have ended, or whose rank that run already has.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from dynascope.compiler.capture.log_reader import HEAD, process_id, read_lines

_FILE_RANK = re.compile(r"rank_(\d+)")
#: the longest time between the last record of one process and the first record of another one of the same run; it is shorter
#: than the time that Python and torch take to start
_PAUSE = timedelta(seconds=1)


@dataclass(slots=True)
class LoggedProcess:
    """One process of a run, with the log that it wrote."""

    file: Path
    #: process id; None: the log does not have it
    pid: int | None
    #: number of the rank; None: unknown, or the process is not part of a job
    rank: int | None
    #: times of the process's first and last record; logs have no year, so the year is always 2000
    start: datetime
    end: datetime


@dataclass(slots=True)
class Run:
    """The processes that ran together, in the order of their ranks; those without a rank come last."""

    processes: list[LoggedProcess] = field(default_factory=list)

    @property
    def start(self) -> datetime:
        return min(p.start for p in self.processes)

    @property
    def end(self) -> datetime:
        return max(p.end for p in self.processes)


def runs(files: Iterable[Path]) -> list[Run]:
    """The runs that wrote these logs, in the order in which they began."""
    found = sorted((p for file in files for p in processes(file)), key=lambda p: (p.start, str(p.file)))
    ranks = [p.rank for p in found]
    if None not in ranks and len(set(ranks)) == len(ranks):
        return [_run(found)] if found else []
    grouped: list[list[LoggedProcess]] = []
    for process in found:
        last = grouped[-1] if grouped else []
        ended = bool(last) and process.start > max(p.end for p in last) + _PAUSE
        taken = process.rank is not None and process.rank in {p.rank for p in last}
        if not last or ended or taken:
            grouped.append([])
        grouped[-1].append(process)
    return [_run(group) for group in grouped]


def processes(file: Path) -> list[LoggedProcess]:
    """The processes whose records are in this file, in the order of their first records; a file that torch wrote has one."""
    spans: dict[int | None, dict[int | None, tuple[str, str]]] = {}
    for line in read_lines(file, Counter()):
        match = HEAD.match(line) if line[:1] != b"\t" else None
        if match:
            at, ranks = match["time"].decode("ascii"), spans.setdefault(process_id(match["process"]), {})
            rank = _rank(match["json"])
            first, last = ranks.get(rank, (at, at))
            ranks[rank] = min(first, at), max(last, at)
    named = _FILE_RANK.search(file.name)
    found = []
    for pid, ranks in spans.items():
        known = [rank for rank in ranks if rank is not None]
        if len(known) < 2:  # one process: its records before the process group was made have no rank
            firsts, lasts = zip(*ranks.values(), strict=True)
            ranks = {known[0] if known else None: (min(firsts), max(lasts))}
        found += [LoggedProcess(file, pid, rank, _time(first), _time(last)) for rank, (first, last) in ranks.items()]
    if named and len(found) == 1 and found[0].rank is None:
        found[0].rank = int(named[1])
    return found


def _run(found: list[LoggedProcess]) -> Run:
    return Run(sorted(found, key=lambda p: (p.rank is None, p.rank or 0)))


def _rank(text: bytes) -> int | None:
    """The rank in a record's JSON; None if there is none, or the JSON is damaged."""
    if b'"rank": ' not in text:
        return None
    try:
        rank = json.loads(text).get("rank")
    except (ValueError, RecursionError, AttributeError):
        return None
    return rank if type(rank) is int else None


def _time(text: str) -> datetime:
    try:
        return datetime.strptime(f"2000{text}", "%Y%m%d %H:%M:%S.%f")  # a leap year
    except ValueError:  # the 31st of February, say, in a damaged record
        return datetime(2000, 1, 1)
