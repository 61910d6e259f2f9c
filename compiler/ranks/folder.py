"""Reads the folder of a job into one RanksReport: files of ranks, or TORCH_TRACE logs, one for each rank.

Ranks are read one at a time; no Report is kept meanwhile.  A file that cannot be read is left out, and the notes name it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from dynascope.compiler.builder.events import Trace
from dynascope.compiler.capture.trace_files import load_trace, log_lines
from dynascope.compiler.parsing import errors_as
from dynascope.compiler.ranks.merge import merge
from dynascope.compiler.ranks.recorder import settings_in
from dynascope.compiler.ranks.report import Rank, RanksReport
from dynascope.compiler.ranks.structure import SUFFIX, RankRecord, read, record_of
from dynascope.compiler.report import plural

_RANK_IN_NAME = re.compile(r"rank_(\d+)")


def read_log(path: Path) -> RankRecord:
    """The record of the rank that wrote this log; raises ValueError, in one line, if nothing in the log can be read."""
    events: list[Trace] = []
    report = load_trace(path, events.append)
    (last,) = deque(log_lines(path, Counter()), maxlen=1)
    frames = [f for f in report.frames if f.status != "ignored"]
    # a log that was cut off neither in a line nor in a compile cannot be recognized
    is_cut_off = not last.endswith(b"\n") or (bool(frames) and frames[-1].status == "unfinished")
    rank = Rank(rank=number_of(path), status="no end" if is_cut_off else "finished", written=path.stat().st_mtime)
    return record_of(rank, report, settings=settings_in(events)).reading(lambda: load_trace(path))


def number_of(path: Path) -> int:
    """The number of the rank that wrote a log, from the file's name; 0 if it has none."""
    match = _RANK_IN_NAME.search(path.name)
    return int(match[1]) if match else 0


def load(path: Path, *, strict: bool = False) -> RanksReport | None:
    """The RanksReport of a job's folder, or of a saved file; None if the path is neither.

    Raises what `read_job` raises, and ValueError if the saved file is damaged.  With `strict`, it also raises ValueError if a
    rank has unread records, or if the report has notes (about files that were left out, for example).
    """
    report = read_job(path) if is_job(path) else _saved(path)
    if strict and report is not None:
        damage = [f"rank {r.rank}: {count} × {kind}" for r in report.ranks for kind, count in r.unread.items()]
        if damage or report.notes:
            raise ValueError(f"{path}: {'; '.join([*damage, *report.notes][:5])}")
    return report


def _saved(path: Path) -> RanksReport | None:
    """The RanksReport in a saved file; None if the path is no such file."""
    if path.suffix != ".json" or not path.is_file():
        return None
    with path.open("rb") as file:
        if b'"ranks_schema"' not in file.read(200):
            return None
    with errors_as(ValueError, f"{path} is not a saved report of ranks: ", (ValueError, RecursionError)):
        return RanksReport.from_dict(json.loads(path.read_text(encoding="utf-8")))


def is_job(folder: Path) -> bool:
    """Whether the folder has files of ranks, or logs of more than one rank."""
    return bool(rank_files(folder)) or len({number_of(f) for f in trace_logs(folder)}) > 1


def rank_files(folder: Path) -> list[Path]:
    """The files that recorded ranks wrote."""
    return sorted(f for f in folder.rglob(f"*{SUFFIX}") if f.is_file() and not f.name.startswith("."))


def trace_logs(folder: Path) -> list[Path]:
    """The files that are named as TORCH_TRACE names the log of a rank, compressed or not."""
    return sorted(f for f in folder.rglob("dedicated_log_torch_trace_rank_*") if f.is_file() and f.suffix in (".log", ".gz"))


def read_job(folder: str | Path, *, world_size: int | None = None) -> RanksReport:
    """The RanksReport of a folder.

    Raises FileNotFoundError if it holds neither files of ranks nor logs, and ValueError if none of them can be read; each
    message is one line.
    """
    folder, notes = Path(folder), list[str]()
    if files := rank_files(folder):
        found = list(_read(files, read, notes))
    elif paths := _latest_logs(trace_logs(folder), notes):
        found = list(_read(paths, read_log, notes))
    else:
        raise FileNotFoundError(f"no ranks in {folder}: run the job with dynascope run, or with TORCH_TRACE={folder}")
    if not found:
        raise ValueError(f"no rank in {folder} can be read: {notes[-1] if notes else 'its files are empty'}")
    return merge(_one_each(_one_job(found, notes), notes), world_size=world_size, notes=notes)


def _read(files: Iterable[Path], read: Callable[[Path], RankRecord], notes: list[str]) -> Iterator[RankRecord]:
    for file in files:
        try:
            yield read(file)
        except (ValueError, OSError) as error:
            notes.append(f"left out: {' '.join(str(error).split())}")


def _one_job(records: list[RankRecord], notes: list[str]) -> list[RankRecord]:
    """The records of the job in which a rank started last."""
    latest = max(records, key=lambda record: record.rank.started or 0.0).job
    own = [record for record in records if record.job == latest]
    if (left := len(records) - len(own)) > 0:
        jobs = len({record.job for record in records})
        notes.append(f"this folder holds {jobs} jobs: the last one is shown, {plural(left, 'file')} of the others left out")
    return own


def _one_each(records: list[RankRecord], notes: list[str]) -> list[RankRecord]:
    """One record for each rank; the last one if a rank was started several times."""
    processes = {(r.rank.host, r.rank.pid, r.rank.rank) for r in records}
    # a process that a rank starts (to load data, say) inherits the rank's environment, and so looks like the rank: leave it out
    records = [r for r in records if (r.rank.host, r.rank.parent, r.rank.rank) not in processes or r.rank.parent is None]
    latest = {r.rank.rank: r for r in sorted(records, key=lambda r: (r.rank.restarts, r.rank.started or 0.0))}
    if (repeated := len(records) - len(latest)) > 0:
        notes.append(f"left out: {plural(repeated, 'earlier file')} of the same ranks")
    return list(latest.values())


def _latest_logs(paths: list[Path], notes: list[str]) -> list[Path]:
    """One log for each rank: the newest."""
    latest = {number_of(path): path for path in sorted(paths, key=lambda p: (p.stat().st_mtime, p.name))}
    if (repeated := len(paths) - len(latest)) > 0:
        notes.append(f"this folder holds several logs of the same rank: the newest of each is read, {repeated} left out")
    return [latest[rank] for rank in sorted(latest)]
