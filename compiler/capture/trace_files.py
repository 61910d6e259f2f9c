"""Reads TORCH_TRACE logs and saved reports, without torch.

Records that are unknown or damaged are counted by kind in `report.unread`; with `strict=True` they are an error.  The known
kinds of records are in `events.trace_records`.

torch writes one log for each process, and nothing in the log names the run, so two runs in one folder must be told apart.  If
all ranks are known and different, there is one run.  Otherwise a new run begins with each process that starts more than
`_PAUSE` after all processes of the run before have ended, or whose rank that run already has.  The report is that of the last
run.

Reads one TORCH_TRACE log as a stream of records, without torch.

A log has lines in glog's style, each with one JSON record; lines that start with a tab are the payload of the record above.
The file may be compressed with gzip, and its lines may end with CRLF.

Problems are counted by kind.  Lines that cannot be read, repeats of a record that a report needs, and values whose JSON type is
not the one that torch writes are dropped.  A payload whose MD5 sum does not match and a record that is older than the one
before it are kept.

Lines are read one by one, and only the payloads that `events.trace_records` asks for are kept, so memory grows with what the
report shows, not with the log.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, cast

from dynascope.compiler import __version__
from dynascope.compiler.builder.events.schema import RecordingFacts, Trace
from dynascope.compiler.builder.events.trace_records import (
    IGNORED,
    OUTSIDE,
    SHAPES,
    USED,
    is_read,
    needs_payload,
    record_compile_id,
    record_name,
    remove_wrong_types,
)
from dynascope.compiler.builder.report_builder import build_report
from dynascope.compiler.report import Report, listed, plural

#: the first line of a record
HEAD = re.compile(
    rb"^[VDIWEC](?P<time>(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]) (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{1,6})"
    rb"\s+(?P<process>\d{1,20})\s+[^\n]*?:\d+\]\s?(?P<json>\{.*)$",
    re.DOTALL,
)
_JSON_ERRORS = (ValueError, RecursionError)
_GZIP_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)
#: the largest process id on Linux; a larger number is the id of a thread, which old releases of torch wrote instead
_MAX_PID = 1 << 22
#: payloads that are not needed are hashed and dropped in chunks of this many bytes
_CHUNK = 1 << 20
#: once there are this many kinds of problems, further unknown kinds of records are counted together
_MAX_KINDS = 100


@dataclass(slots=True)
class LogRecord:
    """One record of a log."""

    name: str
    metadata: dict[str, Any]
    #: whether a report needs the record
    read: bool
    #: the lines that follow the record's first line; None: there are none, or they are not needed
    payload: str | None
    #: id of the process that wrote the record; None: unknown
    process: int | None
    #: month, day and time of day, as a text that sorts by time within a year ("0822 14:00:48.899000")
    time: str


@dataclass(slots=True)
class _Head:
    """The first line of a record, and how to treat the payload that follows."""

    record: LogRecord
    line: bytes
    #: whether the line ends with CRLF
    crlf: bool
    #: MD5 sum of the payload; None: the record has no payload
    digest: str | None
    #: whether the payload is needed
    keep: bool


def read_log(file: Path, problems: Counter[str]) -> Iterator[LogRecord]:
    """The records of one log, in order, without repeats.  Its table of strings is not yielded: file names replace their ids."""
    strings: dict[int, str] = {}
    latest: dict[int | None, str] = {}
    seen: set[int] = set()
    for head, payload in _heads(file, problems):
        record = head.record
        if record.name == "str":
            _intern(record.metadata["str"], strings, problems)
            continue
        if record.read:
            before = latest.get(record.process, "")
            if record.time < before and not (before.startswith("12") and record.time.startswith("01")):
                problems["record older than the one before it"] += 1
            latest[record.process] = record.time
            key = hash(head.line)
            if key in seen:
                problems["repeated record"] += 1
                continue
            seen.add(key)
        _resolve(record.metadata, strings, problems)
        record.payload = payload
        yield record


def process_id(number: bytes) -> int | None:
    """The process id in a record's first line; None if the number is the id of a thread (see `_MAX_PID`)."""
    value = int(number)
    return value if value <= _MAX_PID else None


def read_lines(file: Path, problems: Counter[str]) -> Iterator[bytes]:
    """The lines of a log with their line ends, decompressed if the file is compressed."""
    try:
        with _open(file) as stream:
            first = True
            for line in stream:
                yield line.removeprefix(codecs.BOM_UTF8) if first else line
                first = False
    except _GZIP_ERRORS:
        problems["compressed file cut off or damaged"] += 1


def _open(file: Path) -> IO[bytes]:
    with file.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(file, "rb")) if packed else file.open("rb")


# -- lines ------------------------------------------------------------------------------------------


def _heads(file: Path, problems: Counter[str]) -> Iterator[tuple[_Head, str | None]]:
    """Each record's first line, with its payload."""
    head: _Head | None = None
    payload = _Payload(None, problems)
    orphaned = False
    for line in read_lines(file, problems):
        if line[:1] == b"\t":
            if head is None and not orphaned:
                problems["payload without a record"] += 1
                orphaned = True
            payload.add(line)
        elif not line.strip(b"\r\n"):
            payload.blank()
        else:
            if head is not None:
                yield head, payload.end()
            head = _head(line, problems)
            payload = _Payload(head, problems)
            orphaned = head is None  # the payload of an unreadable line is not counted again
    if head is not None:
        yield head, payload.end()


class _Payload:
    """The payload of one record while its lines are read."""

    def __init__(self, head: _Head | None, problems: Counter[str]) -> None:
        self.head, self.problems = head, problems
        #: the lines that are not hashed yet, with their tabs and line ends
        self.lines = bytearray()
        self.hash = hashlib.md5(usedforsecurity=False)
        self.hashed = False
        #: number of empty lines since the last line with a tab
        self.blanks = 0

    def add(self, line: bytes) -> None:
        """Add a line with its tab and its line end."""
        if self.head is None:
            return
        if self.blanks:
            self.lines += b"\n" * self.blanks
            self.blanks = 0
        self.lines += line
        if len(self.lines) > _CHUNK and not self.head.keep:
            self.hash = self._hash(self._text())
            self.hashed = True
            self.lines.clear()

    def blank(self) -> None:
        """Add an empty line whose tab was removed, by an editor for example."""
        if self.lines or self.hashed:
            self.blanks += 1

    def end(self) -> str | None:
        """The text, once all lines are read; None if the record has no payload, or the payload is not needed."""
        head = self.head
        if head is None:
            return None
        if head.digest is None:
            if self.lines or self.hashed:
                self.problems["payload of a record that has none"] += 1
            return None
        text = self._text()
        if self.blanks and self._digest(text) != head.digest:
            text += b"\n" * self.blanks  # empty lines at the end may belong to the payload
        if self._digest(text) != head.digest:
            self.problems["payload damaged"] += 1
        return text.decode("utf-8", errors="replace") if head.keep else None

    def _text(self) -> bytes:
        """The lines without their tabs, with LF for CRLF, and without the line end of the last one."""
        lines = b"\n" + bytes(self.lines).removesuffix(b"\n")
        if self.head is not None and self.head.crlf:
            lines = lines.removesuffix(b"\r").replace(b"\r\n", b"\n")
        return lines.replace(b"\n\t", b"\n")[1:]

    def _hash(self, text: bytes) -> hashlib._Hash:
        """The hash of everything hashed so far, followed by this text."""
        combined = self.hash.copy()
        # `_text` leaves out the last line end; if more lines follow, that line end belongs to the payload
        combined.update(b"\n" + text if self.hashed and self.lines else text)
        return combined

    def _digest(self, text: bytes) -> str:
        return self._hash(text).hexdigest()


# -- the first line of a record ---------------------------------------------------------------------


def _head(line: bytes, problems: Counter[str]) -> _Head | None:
    crlf = line.endswith(b"\r\n")
    match = HEAD.match(line.rstrip(b"\r\n"))
    if match is None:
        problems["line that is not a record"] += 1
        return None
    try:
        metadata = json.loads(match["json"].decode("ascii"))  # torch escapes all other characters
    except UnicodeDecodeError:
        problems["record with damaged characters"] += 1
        return None
    except _JSON_ERRORS:
        problems["record that is not JSON"] += 1
        return None
    if not isinstance(metadata, dict):
        problems["record that is not a JSON object"] += 1
        return None
    name = record_name(metadata)
    for wrong in remove_wrong_types(name, metadata):
        problems[f"wrong type: {wrong}"] += 1
    if name not in metadata:
        problems["record without a name"] += name == "?"
        return None
    if name not in USED and name not in IGNORED and name != "str":
        known = name in problems or len(problems) < _MAX_KINDS
        problems[name[:80] if known else "record of unknown kind"] += 1
    written_by, at = process_id(match["process"]), match["time"].decode("ascii")
    record = LogRecord(name, metadata, is_read(metadata), None, written_by, at)
    return _Head(record, line, crlf, metadata.get("has_payload"), needs_payload(metadata))


# -- the table of strings ---------------------------------------------------------------------------


def _intern(value: Any, strings: dict[int, str], problems: Counter[str]) -> None:
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and type(value[1]) is int:
        if strings.setdefault(value[1], value[0]) != value[0]:
            problems["string id used twice"] += 1
            strings[value[1]] = value[0]
    else:
        problems["string table damaged"] += 1


def _resolve(metadata: dict[str, Any], strings: dict[int, str], problems: Counter[str]) -> None:
    """Fill in the file names that the log keeps in its table of strings; each log has its own table."""
    fields = [metadata.get(name, {}) for name in ("dynamo_start", *SHAPES)]
    stacks = [metadata.get("stack"), *(f.get(which) for f in fields for which in ("stack", "user_stack"))]
    for entry in (e for stack in stacks for e in stack or ()):
        if type(entry["filename"]) is int:
            name = strings.get(entry["filename"])
            if name is None:
                problems["string missing"] += 1
            entry["filename"] = name or "?"


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
