"""Reads TORCH_TRACE logs and saved reports, without torch.

Records that are unknown or damaged are counted by kind in `report.unread`; with `strict=True` they are an error.  The known
kinds of records are in `events.trace_records`.

torch writes one log for each process, and nothing in the log names the run, so two runs in one folder must be told apart.  If
all ranks are known and different, there is one run.  Otherwise a new run begins with each process that starts more than
`_PAUSE` after all processes of the run before have ended, or whose rank that run already has.  The report is that of the last
run.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from dynascope.compiler import __version__
from dynascope.compiler.builder.events.schema import RecordingFacts, Trace
from dynascope.compiler.builder.events.trace_records import OUTSIDE, record_compile_id
from dynascope.compiler.builder.report_builder import build_report
from dynascope.compiler.capture.log_reader import HEAD, LogRecord, process_id, read_lines, read_log
from dynascope.compiler.report import Report, listed, plural

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
        return [_run_of(found)] if found else []
    grouped: list[list[LoggedProcess]] = []
    for process in found:
        last = grouped[-1] if grouped else []
        ended = bool(last) and process.start > max(p.end for p in last) + _PAUSE
        taken = process.rank is not None and process.rank in {p.rank for p in last}
        if not last or ended or taken:
            grouped.append([])
        grouped[-1].append(process)
    return [_run_of(group) for group in grouped]


def processes(file: Path) -> list[LoggedProcess]:
    """The processes whose records are in this file, in the order of their first records; a file that torch wrote has one."""
    spans: dict[int | None, dict[int | None, tuple[str, str]]] = {}
    for line in read_lines(file, Counter()):
        match = HEAD.match(line) if line[:1] != b"\t" else None
        if match:
            at, ranks = match["time"].decode("ascii"), spans.setdefault(process_id(match["process"]), {})
            rank = _rank_in(match["json"])
            first, last = ranks.get(rank, (at, at))
            ranks[rank] = min(first, at), max(last, at)
    named = _FILE_RANK.search(file.name)
    found = []
    for pid, ranks in spans.items():
        known = [rank for rank in ranks if rank is not None]
        if len(known) < 2:  # one process: its records before the process group was made have no rank
            firsts, lasts = zip(*ranks.values(), strict=True)
            ranks = {known[0] if known else None: (min(firsts), max(lasts))}
        found += [
            LoggedProcess(file, pid, rank, _record_time(first), _record_time(last)) for rank, (first, last) in ranks.items()
        ]
    if named and len(found) == 1 and found[0].rank is None:
        found[0].rank = int(named[1])
    return found


def _run_of(found: list[LoggedProcess]) -> Run:
    return Run(sorted(found, key=lambda p: (p.rank is None, p.rank or 0)))


def _rank_in(text: bytes) -> int | None:
    """The rank in a record's JSON; None if there is none, or the JSON is damaged."""
    if b'"rank": ' not in text:
        return None
    try:
        rank = json.loads(text).get("rank")
    except (ValueError, RecursionError, AttributeError):
        return None
    return rank if type(rank) is int else None


def _record_time(text: str) -> datetime:
    try:
        return datetime.strptime(f"2000{text}", "%Y%m%d %H:%M:%S.%f")  # a leap year
    except ValueError:  # the 31st of February, say, in a damaged record
        return datetime(2000, 1, 1)


_GRAPHS = frozenset({"exported_program", "aot_forward_graph", "aot_inference_graph", "aot_joint_graph"})
_GUARDS = frozenset({"guard_added", "guard_added_fast"})
_FOLDERS = ("torch/export/", "torch/_export/", "torch\\export\\", "torch\\_export\\")


class OutsideCompiles:
    """Counts the records of one run that torch.export wrote, and the graphs from outside torch.compile."""

    def __init__(self) -> None:
        self._graphs = 0
        self._started: set[str] = set()
        #: number of records that torch.export wrote
        self._of_export = 0
        #: the guards, each once, in the order of their first record
        self._guards: dict[str, None] = {}

    def add(self, name: str, metadata: dict[str, Any]) -> None:
        """Count a record, even one that reports do not show."""
        compile_id = record_compile_id(metadata)
        if compile_id is not None:
            # torch.export(strict=True) traces with Dynamo, which then logs no dynamo_start (in torch 2.9 it does)
            if name == "dynamo_start":
                self._started.add(compile_id)
            self._graphs += name == "dynamo_output_graph" and compile_id not in self._started
            if name != "create_symbol" or compile_id in self._started:
                return
        self._graphs += name in _GRAPHS
        stack = metadata.get("stack") or (metadata[name].get("stack") if name == "create_symbol" else None)
        files = (str(entry["filename"]) for entry in stack or ())
        self._of_export += name == "exported_program" or any(folder in file for file in files for folder in _FOLDERS)
        if name in _GUARDS:
            self._guards[str(metadata[name].get("expr"))] = None

    def notes(self) -> list[str]:
        """One sentence if torch.export ran and the log has no graph from outside torch.compile; else none."""
        if not self._of_export or self._graphs:
            return []
        words = f", which added {plural(len(self._guards), 'guard')}: {listed(self._guards, 5)}" if self._guards else ""
        return [f"torch.export ran{words}; this version of torch does not write the graph of an export into the log"]


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
