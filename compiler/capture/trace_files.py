"""Reads TORCH_TRACE logs and saved reports, without torch.

Records that are unknown or damaged are counted by kind in `report.unread`; with `strict=True` they are an error.  The known
kinds of records are in `events.trace_records`.  If a folder holds several runs, the report is that of the last one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dynascope.compiler import __version__
from dynascope.compiler.builder.events.schema import RecordingFacts, Trace
from dynascope.compiler.builder.events.trace_records import OUTSIDE, record_compile_id
from dynascope.compiler.builder.report_builder import build_report
from dynascope.compiler.capture.log_reader import LogRecord, read_log
from dynascope.compiler.capture.outside_compiles import OutsideCompiles
from dynascope.compiler.capture.processes import LoggedProcess, Run, runs
from dynascope.compiler.report import Report, listed

_JSON_ERRORS = (ValueError, RecursionError)
#: suffixes of logs; torch names them `dedicated_log_torch_trace_rank_0_x.log`
_SUFFIXES = (".log", ".txt", "", ".gz")


def load(path: str | Path, *, strict: bool = False) -> Report:
    """The Report of a TORCH_TRACE log, of a folder of logs (one for each process), or of a saved report (.json).

    Raises FileNotFoundError if there is no such file or no log in the folder, and ValueError if nothing can be read or, with
    `strict`, if a record is unknown or damaged; each message is one line.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(f for f in path.rglob("*") if f.is_file() and f.suffix in _SUFFIXES)
        if not files:
            raise FileNotFoundError(f"no trace logs in {path}: run the program with TORCH_TRACE={path}")
    elif path.is_file():
        files = [path]
    else:
        raise FileNotFoundError(f"no such file or folder: {path}")
    report = _saved(path) if path.suffix == ".json" and path.is_file() else load_traces(files)
    if strict and report.unread:
        problems = "; ".join(f"{count} × {kind}" for kind, count in report.unread.items())
        raise ValueError(f"{path}: {problems}")
    return report


def _saved(path: Path) -> Report:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except _JSON_ERRORS as error:
        raise ValueError(f"{path} is not a saved report: {error}") from None
    return Report.from_dict(data)


def load_traces(files: list[Path]) -> Report:
    """One Report of the logs of several processes; if the logs are from several runs, of the last run."""
    found = runs(files)
    if not found:
        raise ValueError(f"no trace records in {listed(files, 3)}: is it a TORCH_TRACE log?")
    log = _Log(found[-1])
    report = build_report(log.events(), RecordingFacts(origin="trace"))
    report.versions = {"dynascope": __version__, "torch": log.torch_version, "python": None}
    report.unread = dict(Counter(report.unread) + log.problems)
    report.notes += [*_about_runs(found), *log.outside.notes()]
    return report


class _Log:
    """Makes events of the logs of one run; all attributes but `run` are complete once all events have been taken."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.problems: Counter[str] = Counter()
        self.outside = OutsideCompiles()
        self.torch_version: str | None = None

    def events(self) -> Iterator[Trace]:
        processes = self.run.processes
        for file in dict.fromkeys(p.file for p in processes):
            in_file = [(index, p) for index, p in enumerate(processes) if p.file == file]
            for record in read_log(file, self.problems):
                index, process = _writer(record, in_file)
                if process is None:
                    continue
                self.outside.add(record.name, record.metadata)
                self.version(record)
                if record.read:
                    if process.rank is not None:
                        record.metadata["rank"] = process.rank
                    yield self.event(record, index if len(processes) > 1 else None)

    def event(self, record: LogRecord, index: int | None) -> Trace:
        compile_id = record_compile_id(record.metadata)
        outside = compile_id is None and record.name in OUTSIDE
        return Trace(
            record.metadata, record.payload, compile_id=compile_id, thread=record.process, process=index, outside=outside
        )

    def version(self, record: LogRecord) -> None:
        """Store torch's version, which newer releases write as the second record of a log."""
        artifact = record.metadata.get("artifact")
        if self.torch_version is not None or artifact is None or artifact["name"] != "torch_version":
            return
        try:
            version = json.loads(record.payload or "").get("pytorch_version")
        except (*_JSON_ERRORS, AttributeError):
            return  # the log reader counts the damage
        self.torch_version = version if isinstance(version, str) else None


def _writer(record: LogRecord, processes: list[tuple[int, LoggedProcess]]) -> tuple[int, LoggedProcess | None]:
    """(number, process) of the process that wrote a record; (-1, None) if the record does not belong to the run."""
    same = [(i, p) for i, p in processes if p.pid == record.process]
    rank: Any = record.metadata.get("rank")
    of_rank = [(i, p) for i, p in same if p.rank == rank]
    return of_rank[0] if of_rank else same[0] if len(same) == 1 else (-1, None)


def _about_runs(found: list[Run]) -> list[str]:
    """Notes on the runs and processes in the logs, if there are several."""
    notes, run = [], found[-1]
    if len(found) > 1:
        earlier = ", ".join(f"{r.start:%m-%d %H:%M:%S} ({r.processes[0].file.name})" for r in found[:-1][-3:])
        notes.append(
            f"the logs are from {len(found)} runs, and this report shows the last one, which began at "
            f"{run.start:%m-%d %H:%M:%S}; earlier: {'… ' if len(found) > 4 else ''}{earlier}. "
            "Move each run's logs into a folder of its own to see them, or give TORCH_TRACE another folder for each run"
        )
    files = {p.file for p in run.processes}
    if len(files) == 1 and len(run.processes) > 1:
        ranks = sorted(p.rank for p in run.processes if p.rank is not None)
        words = f"ranks {listed(ranks, 8)}" if len(ranks) > 1 else f"{len(run.processes)} processes"
        notes.append(f"{run.processes[0].file.name} holds the records of {words}; torch writes a log for each")
    others = [p for p in run.processes if p.rank is None]
    if len(run.processes) > 1 and others:
        count = "a process" if len(others) == 1 else f"{len(others)} processes"
        notes.append(f"the counts include {count} without a rank that ran at the same time: {_names(others)}")
    return notes


def _names(processes: list[LoggedProcess]) -> str:
    return listed([p.file.name + (f" (process {p.pid})" if p.pid is not None else "") for p in processes], 4)
