"""Reads the record of one rank from its TORCH_TRACE log.  A log with the same hash as an earlier one is not parsed.

`scan` hashes what determines a rank's structure (graphs, breaks, recompiles, outcomes) and reads what may differ between equal
ranks: times, answers of caches, schedules, settings.  It skips everything else.  Ranks with equal hashes have equal structures.
`python -m dynascope.compiler.ranks.logs` reads many logs for another process.

A log with a damaged record or line is parsed in full, so that the damage is counted.  Records that are repeated or out of order
are counted only in the logs that are parsed; such a record changes the hash if its kind is hashed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sys
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from dynascope.compiler.builder.events.trace_records import IGNORED, USED, record_compile_id, record_name, remove_wrong_types
from dynascope.compiler.capture.log_reader import HEAD
from dynascope.compiler.capture.trace_files import load_traces
from dynascope.compiler.ranks.collectives import scheduled
from dynascope.compiler.ranks.record import RankRecord, cache_answer, head, record_of
from dynascope.compiler.ranks.recorder import settings_of
from dynascope.compiler.ranks.report import Rank
from dynascope.compiler.ranks.structure import steps_of
from dynascope.compiler.report import Report

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
    """Replaces device indices by numbers in the order of their first use, as `ranks.normal` does."""

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


def read(path: Path, known: Known) -> RankRecord:
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
        report = load_traces([path])
        steps = _compiles(report)
        rank = Rank(rank=number_of(path, report), status="no end" if _is_cut_off(path, report) else "finished")
        record = record_of(rank, report)
        if found.digest:
            known[found.digest] = record, steps
    record.settings, record.versions = found.settings, {**record.versions, "torch": found.torch or record.versions["torch"]}
    record.structure = replace(record.structure, schedules=[" ".join(found.schedules[key]) for key, _ in steps])
    record.rank.written = path.stat().st_mtime
    return record.reading(lambda: load_traces([path]))


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


def main() -> None:
    """Read the logs that standard input lists, separated by NUL, and write a line of JSON for each.

    A line has the log's index, and the data of the first line of a rank's file (`record.head`) or the error.
    """
    known: Known = {}
    for number, path in enumerate(sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\0")):
        try:
            answer: dict[str, object] = {"head": head(read(Path(path), known))}
        except (ValueError, OSError) as error:
            answer = {"error": " ".join(str(error).split())}
        print(json.dumps({"number": number, **answer}))


if __name__ == "__main__":
    main()
