"""Reads the folder of a job into one RanksReport: files of ranks, or TORCH_TRACE logs, one for each rank.

Ranks are read one at a time; no Report is kept meanwhile.  A file that cannot be read is left out, and the notes name it.

`scan` hashes what determines a rank's structure in its log (graphs, breaks, recompiles, outcomes) and reads what may differ
between equal ranks: times, answers of caches, schedules, settings.  It skips everything else.  Ranks with equal hashes have
equal structures, so a log with the same hash as an earlier one is not parsed.

A log with a damaged record or line is parsed in full, so that the damage is counted.  Records that are repeated or out of order
are counted only in the logs that are parsed; such a record changes the hash if its kind is hashed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from dynascope.compiler.builder.trace_records import IGNORED, USED, record_compile_id, record_name, remove_wrong_types
from dynascope.compiler.capture.trace_files import HEAD, load_trace
from dynascope.compiler.ranks.merge import merge
from dynascope.compiler.ranks.recorder import settings_of
from dynascope.compiler.ranks.report import Rank, RanksReport
from dynascope.compiler.ranks.structure import (
    SUFFIX,
    RankRecord,
    cache_answer,
    read,
    record_of,
    scheduled,
    steps_of,
)
from dynascope.compiler.report import Report, plural

#: a line and the lines of its payload; all of them end with a line end
_RECORD = re.compile(rb"(?P<line>[^\t\n][^\n]*)\n(?P<payload>(?:\t[^\n]*\n)*)")
#: artifacts that are hashed
_SHAPING = frozenset({"recompile_reasons", "dynamo_graph_break_reason", "dynamo_error"})
#: records that are part of a Report but not of the hash: a graph's later stages, times, and guards
_LATER = frozenset({
    "inductor_output_code", "dynamo_cpp_guards_str", "aot_joint_graph", "bwd_compilation_metrics", "chromium_event",
})  # fmt: skip
#: "str" is not skipped: it has the file names to which the stacks refer by number
_SKIPPED = IGNORED - {"str"} | _LATER
#: what may differ between the logs of equal ranks: folders, addresses, ids, times, hashes of payloads, and numbers of ranks,
#: processes, threads and ports
_VOLATILE = re.compile(
    rb"(?:/[\w.+@~<>-]+)+/|0x[0-9a-fA-F]+|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b\d{9,}\b"
    rb'|"(?:rank|has_payload|timestamp|process|thread)": ?(?:"[^"]*"|\d+)|\b(?:rank|pid|process|thread|port)[ =:]+\d+'
)
_DEVICE = re.compile(rb"\b(cuda|xpu|hpu|npu|mtia):(\d+)")
_RANK_IN_NAME = re.compile(r"_rank_(\d+)_|rank_(\d+)")


@dataclass
class Scan:
    """What `scan` reads from a log."""

    #: the hash; "" if a record or a line is damaged, or the log is empty
    digest: str = ""
    #: compile id -> seconds of each of its compiles
    seconds: dict[str, list[float | None]] = field(default_factory=lambda: defaultdict(list))
    #: compile id -> answers of the caches
    caches: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    #: compile id -> kinds of its collectives in the order of Inductor's code
    schedules: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    settings: dict[str, Any] = field(default_factory=dict)
    torch: str | None = None
    #: number of records of each unknown kind
    unread: dict[str, int] = field(default_factory=dict)


#: hash -> the record of the log with this hash that was parsed in full, and its steps, each as (compile id, index among the
#: compiles with this id)
Known = dict[str, tuple[RankRecord, list[tuple[str, int]]]]


def scan(path: Path) -> Scan:
    """Hash a log, and read the other facts of a `Scan`."""
    content = _content(path)
    digest, devices = hashlib.blake2b(digest_size=16), _Devices()
    found, intact = Scan(), 0
    for record in _RECORD.finditer(content):
        line = HEAD.match(record["line"])
        metadata = _metadata(line["json"], record["payload"]) if line is not None else None
        if line is None or metadata is None:
            continue
        intact += len(record[0])
        name, key = record_name(metadata), record_compile_id(metadata) or ""
        if name in _SKIPPED:
            continue
        if name not in USED and name != "str":
            found.unread[name] = found.unread.get(name, 0) + 1
        if name == "compilation_metrics":
            digest.update(_metrics(metadata[name], key, found))
            continue
        if name == "artifact":
            kind = metadata[name]["name"]
            stage, _, answer = kind.partition("_cache_")
            if answer and stage in ("fx_graph", "aotautograd"):
                found.caches[key].append(answer)
            if kind == "inductor_collective_schedule":
                found.schedules[key] += _scheduled(record["payload"])
            if kind == "torch_version":
                version = re.search(rb'"pytorch_version": ?"([^"]+)"', record["payload"])
                found.torch = version[1].decode(errors="replace") if version else found.torch
            if kind not in _SHAPING:
                continue
        digest.update(devices.normal(_VOLATILE.sub(b"", line["json"])))
        digest.update(devices.normal(_VOLATILE.sub(b"", record["payload"])))
    found.digest = digest.hexdigest() if content and intact == len(content) else ""
    return found


def _metadata(text: bytes, payload: bytes) -> dict[str, Any] | None:
    """The decoded JSON of a record; None if the log reader would count damage in the record."""
    if not text.isascii():
        return None
    try:
        metadata = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return None
    name, digest = record_name(metadata), metadata.get("has_payload")
    if name not in metadata or any(remove_wrong_types(name, metadata)):
        return None
    if digest is None:
        return None if payload else metadata
    lines = payload.removesuffix(b"\n")[1:].replace(b"\n\t", b"\n")
    return metadata if hashlib.md5(lines, usedforsecurity=False).hexdigest() == digest else None


def _content(path: Path) -> bytes:
    """The bytes of a log, decompressed, with the line ends that torch writes; b"" if gzip cannot read it."""
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):  # gzip, whatever the file's name
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            return b""  # parsing it in full will report the damage
    return data.replace(b"\r\n", b"\n")


class _Devices:
    """Replaces device indices by numbers in the order of their first use, as `structure.Normal` does."""

    def __init__(self) -> None:
        self.seen: dict[bytes, bytes] = {}

    def normal(self, text: bytes) -> bytes:
        return _DEVICE.sub(self._replace, text) if b":" in text else text

    def _replace(self, match: re.Match[bytes]) -> bytes:
        return match[1] + b":#" + self.seen.setdefault(match[2], str(len(self.seen)).encode())


def _scheduled(payload: bytes) -> list[str]:
    """Kinds of the collectives in a schedule; none if it is damaged."""
    try:
        names = json.loads(payload.replace(b"\t", b""))
    except (ValueError, RecursionError):
        return []
    return scheduled(str(name) for name in names) if isinstance(names, list) else []


def _metrics(metrics: dict[str, Any], key: str, found: Scan) -> bytes:
    """Note the time of a compile, and torch's version and settings; returns what is hashed."""
    if metrics.get("is_forward") is False:
        return b"backward"
    found.seconds[key].append(metrics.get("entire_frame_compile_time_s"))
    found.torch = found.torch or metrics.get("torch_version")
    if not found.settings:
        found.settings = settings_of(metrics)
    shaping = [key, metrics.get("co_name"), metrics.get("fail_type"), metrics.get("guard_count") is None]
    return str(shaping).encode()


def read_log(path: Path, known: Known) -> RankRecord:
    """The record of the rank that wrote this log; raises ValueError, in one line, if nothing in the log can be read.

    `known`: the hash of this log is added if it is new.
    """
    found = scan(path)
    if found.digest in known:
        like, steps = known[found.digest]
        seconds = [times[number] if number < len(times := found.seconds[key]) else None for key, number in steps]
        rank = replace(
            like.rank, rank=number_of(path), unread=found.unread, seconds=seconds,
            compile_seconds=round(sum(s for s in seconds if s), 6),
            caches=[cache_answer(found.caches[key]) for key, _ in steps],
        )  # fmt: skip
        record = replace(like, rank=rank)
    else:
        report = load_trace(path)
        steps = _compiles(report)
        rank = Rank(rank=number_of(path, report), status="no end" if _is_cut_off(path, report) else "finished")
        record = record_of(rank, report)
        if found.digest:
            known[found.digest] = record, steps
    record.settings, record.versions = found.settings, {**record.versions, "torch": found.torch or record.versions["torch"]}
    record.structure = replace(record.structure, schedules=[" ".join(found.schedules[key]) for key, _ in steps])
    record.rank.written = path.stat().st_mtime
    return record.reading(lambda: load_trace(path))


def _is_cut_off(path: Path, report: Report) -> bool:
    """Whether a log ends in the middle of a line or of a compile; a log that was cut off elsewhere cannot be recognized."""
    if not _content(path).endswith(b"\n"):
        return True
    frames = [f for f in report.frames if f.status != "ignored"]
    return bool(frames) and frames[-1].status == "unfinished"


def _compiles(report: Report) -> list[tuple[str, int]]:
    """Each step as (compile id, index among the compiles with this id)."""
    counts: dict[str, int] = defaultdict(int)
    steps = []
    for step in steps_of(report):
        key = str(step.frame.compile_id)
        steps.append((key, counts[key]))
        counts[key] += 1
    return steps


def number_of(path: Path, report: Report | None = None) -> int:
    """The number of the rank that wrote a log: from the file's name, else from the report's frames, else 0."""
    match = _RANK_IN_NAME.search(path.name)
    if match:
        return int(match[1] or match[2])
    ranks = [f.rank for f in report.frames if f.rank is not None] if report is not None else []
    return ranks[0] if ranks else 0


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
    try:
        return RanksReport.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a saved report of ranks: {error}") from None


def is_job(folder: Path) -> bool:
    """Whether the folder has files of ranks, or logs of more than one rank."""
    if not folder.is_dir():
        return False
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
    files = rank_files(folder)
    if files:
        found = list(_read(files, read, notes))
    elif paths := _latest_logs(trace_logs(folder), notes):
        known: Known = {}
        found = list(_read(paths, lambda path: read_log(path, known), notes))
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
    jobs: dict[str | None, list[RankRecord]] = defaultdict(list)
    for record in records:
        jobs[record.job].append(record)
    if len(jobs) == 1:
        return records
    latest = max(jobs, key=lambda job: max(r.rank.started or 0.0 for r in jobs[job]))
    left = sum(len(others) for job, others in jobs.items() if job != latest)
    notes.append(f"this folder holds {len(jobs)} jobs: the last one is shown, {plural(left, 'file')} of the others left out")
    return jobs[latest]


def _one_each(records: list[RankRecord], notes: list[str]) -> list[RankRecord]:
    """One record for each rank; the last one if a rank was started several times."""
    latest: dict[int, RankRecord] = {}
    processes = {(r.rank.host, r.rank.pid, r.rank.rank) for r in records}
    # a process that a rank starts (to load data, say) inherits the rank's environment, and so looks like the rank: leave it out
    records = [r for r in records if (r.rank.host, r.rank.parent, r.rank.rank) not in processes or r.rank.parent is None]
    for record in sorted(records, key=lambda r: (r.rank.restarts, r.rank.started or 0.0)):
        latest[record.rank.rank] = record
    repeated = len(records) - len(latest)
    if repeated:
        notes.append(f"left out: {plural(repeated, 'earlier file')} of the same ranks")
    return list(latest.values())


def _latest_logs(paths: list[Path], notes: list[str]) -> list[Path]:
    """One log for each rank: the newest."""
    latest: dict[int, Path] = {}
    for path in sorted(paths, key=lambda p: (p.stat().st_mtime, p.name)):
        latest[number_of(path)] = path
    repeated = len(paths) - len(latest)
    if repeated:
        notes.append(f"this folder holds several logs of the same rank: the newest of each is read, {repeated} left out")
    return [latest[rank] for rank in sorted(latest)]
