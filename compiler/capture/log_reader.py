"""Reads one TORCH_TRACE log as a stream of records, without torch.

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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from dynascope.compiler.builder.events.trace_records import (
    IGNORED,
    SHAPES,
    USED,
    is_read,
    needs_payload,
    record_name,
    remove_wrong_types,
)

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
