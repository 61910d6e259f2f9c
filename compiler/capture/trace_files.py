"""Reads TORCH_TRACE logs and saved reports, without torch.

torch writes one log for each process.  A log has lines in glog's style, each with one JSON record; lines that start with a tab
are the payload of the record above.  The file may be compressed with gzip, and its lines may end with CRLF.

Records that are unknown or damaged are counted by kind in `report.unread`; with `strict=True` they are an error.  Lines that
cannot be read, and values whose JSON type is not the one that torch writes, are dropped; a payload whose MD5 sum does not match
is kept.  The known kinds of records are in `builder.trace_records`.

Only the payloads that `builder.trace_records` asks for are kept, so memory grows with what the report shows, not with the log.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from dynascope.compiler import __version__
from dynascope.compiler.builder.events import RecordingFacts, Trace
from dynascope.compiler.builder.report_builder import build_report
from dynascope.compiler.builder.trace_records import (
    IGNORED,
    SHAPES,
    USED,
    is_read,
    needs_payload,
    record_compile_id,
    record_name,
    remove_wrong_types,
)
from dynascope.compiler.report import Report, plural

#: the first line of a record
HEAD = re.compile(
    rb"^[VDIWEC](?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]) (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{1,6}"
    rb"\s+\d{1,20}\s+[^\n]*?:\d+\]\s?(?P<json>\{.*)$",
    re.DOTALL,
)
_JSON_ERRORS = (ValueError, RecursionError)
_GZIP_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)
#: once there are this many kinds of problems, further unknown kinds of records are counted together
_MAX_KINDS = 100
_EXPORT = re.compile(r"[/\\]torch[/\\]_?export[/\\]")
#: suffixes of logs; torch names them `dedicated_log_torch_trace_rank_0_x.log`
_SUFFIXES = (".log", ".txt", "", ".gz")


def load(path: str | Path, *, strict: bool = False) -> Report:
    """The Report of a TORCH_TRACE log, of the newest log in a folder, or of a saved report (.json).

    Raises FileNotFoundError if there is no such file or no log in the folder, and ValueError if nothing can be read or, with
    `strict`, if a record is unknown or damaged; each message is one line.
    """
    path = Path(path)
    if path.is_dir():
        files = [f for f in path.rglob("*") if f.is_file() and f.suffix in _SUFFIXES and _is_log(f)]
        if not files:
            raise FileNotFoundError(f"no trace logs in {path}: run the program with TORCH_TRACE={path}")
        newest = max(files, key=lambda file: (file.stat().st_mtime, file.name))
        report = load_trace(newest)
        if len(files) > 1:
            left = plural(len(files) - 1, "other log")
            report.notes.append(f"this is {newest.name}, the newest log in {path}; {left} there can be read by name")
    elif not path.is_file():
        raise FileNotFoundError(f"no such file or folder: {path}")
    else:
        report = _saved(path) if path.suffix == ".json" else load_trace(path)
    if strict and report.unread:
        problems = "; ".join(f"{count} × {kind}" for kind, count in report.unread.items())
        raise ValueError(f"{path}: {problems}")
    return report


def _is_log(file: Path) -> bool:
    return any(HEAD.match(line.rstrip(b"\n")) for line in islice(log_lines(file, Counter()), 100))


def _saved(path: Path) -> Report:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except _JSON_ERRORS as error:
        raise ValueError(f"{path} is not a saved report: {error}") from None
    return Report.from_dict(data)


def load_trace(file: Path, read: list[Trace] | None = None) -> Report:
    """The Report of one log; raises ValueError if it has no record.  `read`: gets the records that the report is made of."""
    problems, versions, strings, count = Counter[str](), dict[str, None](), dict[int, str](), 0

    def events() -> Iterator[Trace]:
        nonlocal count
        for record in _read(file, strings, problems):
            count += 1
            versions.update(dict.fromkeys(_torch_version(record)))
            if record.is_read:
                event = Trace(record.metadata, record.payload, compile_id=record_compile_id(record.metadata))
                if read is not None:
                    read.append(event)
                yield event

    report = build_report(events(), RecordingFacts(origin="trace"))
    if not count:
        raise ValueError(f"no trace records in {file}: is it a TORCH_TRACE log?")
    report.versions = {"dynascope": __version__, "torch": next(iter(versions), None), "python": None}
    report.unread = dict(Counter(report.unread) + problems)
    if not report.frames and any(map(_EXPORT.search, strings.values())):
        report.notes.append("torch.export or AOTInductor wrote this log; a report shows what torch.compile compiled")
    return report


def _torch_version(record: _Record) -> Iterator[str]:
    """torch's version, which newer releases write as the second record of a log."""
    artifact = record.metadata.get("artifact")
    if artifact is not None and artifact["name"] == "torch_version":
        try:
            version = json.loads(record.payload or "").get("pytorch_version")
        except (*_JSON_ERRORS, AttributeError):
            return  # the damage is counted
        if isinstance(version, str):
            yield version


# -- records ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Record:
    """One record of a log."""

    name: str
    metadata: dict[str, Any]
    #: whether a report needs the record
    is_read: bool
    #: the lines that follow the record's first line; None: there are none, or they are not needed
    payload: str | None = None


def _read(file: Path, strings: dict[int, str], problems: Counter[str]) -> Iterator[_Record]:
    """The records of a log, in order.  Its table of strings goes into `strings`: file names replace their ids."""
    for record in _records(file, problems):
        if record.name == "str":
            _intern(record.metadata["str"], strings, problems)
            continue
        _resolve(record.metadata, strings, problems)
        yield record


def _records(file: Path, problems: Counter[str]) -> Iterator[_Record]:
    record: _Record | None = None
    payload = bytearray()
    for line in log_lines(file, problems):
        if line[:1] == b"\t":
            problems["payload without a record"] += record is None and not payload
            payload += line
        elif line != b"\n":
            if record is not None:
                yield _with_payload(record, payload, problems)
            record, payload = _head(line, problems), bytearray()
    if record is not None:
        yield _with_payload(record, payload, problems)


def log_lines(file: Path, problems: Counter[str]) -> Iterator[bytes]:
    """The lines of a log with the line ends that torch writes, decompressed if the file is compressed."""
    is_crlf = False
    try:
        with _open(file) as stream:
            for number, line in enumerate(stream):
                is_crlf = is_crlf if number else line.endswith(b"\r\n")
                line = line if number else line.removeprefix(codecs.BOM_UTF8)
                yield line[:-2] + b"\n" if is_crlf and line.endswith(b"\r\n") else line
    except _GZIP_ERRORS:
        problems["compressed file cut off or damaged"] += 1


def _open(file: Path) -> IO[bytes]:
    with file.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(file, "rb")) if packed else file.open("rb")


def _with_payload(record: _Record, lines: bytearray, problems: Counter[str]) -> _Record:
    """The record with its payload, of which these are the lines, each with its tab."""
    digest = record.metadata.get("has_payload")
    if digest is None:
        problems["payload of a record that has none"] += bool(lines)
        return record
    text = lines.removesuffix(b"\n").replace(b"\n\t", b"\n")
    del text[:1]
    problems["payload damaged"] += hashlib.md5(text, usedforsecurity=False).hexdigest() != digest
    if needs_payload(record.metadata):
        record.payload = text.decode("utf-8", errors="replace")
    return record


def _head(line: bytes, problems: Counter[str]) -> _Record | None:
    """The record that begins with this line."""
    match = HEAD.match(line.rstrip(b"\n"))
    if match is None:
        problems["line that is not a record"] += 1
        return None
    try:
        metadata = json.loads(match["json"].decode("ascii"))  # torch escapes all other characters
    except _JSON_ERRORS:
        problems["record that is not JSON"] += 1
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
    return _Record(name, metadata, is_read(metadata))


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
