"""Reads TORCH_TRACE logs and saved reports, without torch.

torch writes one log for each process.  A log has lines in glog's style, each with one JSON record; lines that start with a tab
are the payload of the record above.  The file may be compressed with gzip, and its lines may end with CRLF.

Records that are unknown or damaged are counted by kind in `report.unread`; with `strict=True` they are an error.  Lines that
cannot be read, and values whose JSON type is not the one that torch writes, are dropped; a payload whose MD5 sum does not match
is kept.  The known kinds of records are in `builder.trace_records`.

Only the payloads that `builder.trace_records` asks for are kept, so memory grows with what the report shows, not with the log.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from dynascope.compiler import __version__
from dynascope.compiler.builder import trace_records
from dynascope.compiler.builder.events import RecordingFacts, Trace
from dynascope.compiler.builder.report_builder import build_report
from dynascope.compiler.parsing import errors_as
from dynascope.compiler.report import Report, plural

#: the first line of a record; an editor may have put a byte order mark before the first one
HEAD = re.compile(
    rb"^(?:\xef\xbb\xbf)?[VDIWEC](?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]) (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{1,6}"
    rb"\s+\d{1,20}\s+[^\n]*?:\d+\]\s?(?P<json>\{.*)$",
    re.DOTALL,
)
_JSON_ERRORS = (ValueError, RecursionError)
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
        found = (f for f in path.rglob("*") if f.is_file() and f.suffix in _SUFFIXES)
        files = [f for f in found if any(HEAD.match(line) for line in islice(log_lines(f, Counter()), 100))]
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


def _saved(path: Path) -> Report:
    with errors_as(ValueError, f"{path} is not a saved report: ", _JSON_ERRORS):
        data = json.loads(path.read_text(encoding="utf-8"))
    return Report.from_dict(data)


def load_trace(file: Path, seen: Callable[[Trace], object] = lambda event: None) -> Report:
    """The Report of one log; raises ValueError if it has no record.  `seen`: gets the records that the report is made of."""
    log = _Log(file, seen)
    report = build_report(log.events(), RecordingFacts(origin="trace", strings=log.strings))
    if not log.count:
        raise ValueError(f"no trace records in {file}: is it a TORCH_TRACE log? Of a saved report, only the .json can be read")
    report.versions = {"dynascope": __version__, "torch": log.torch_version, "python": None}
    report.unread = dict(Counter(report.unread) + log.problems)
    if not report.frames and any(map(_EXPORT.search, log.strings.values())):
        report.notes.append("torch.export or AOTInductor wrote this log; a report shows what torch.compile compiled")
    return report


def log_lines(file: Path, problems: Counter[str]) -> Iterator[bytes]:
    """The lines of a log, decompressed if the file is compressed."""
    try:
        with file.open("rb") as raw:
            is_packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            yield from gzip.GzipFile(fileobj=raw) if is_packed else raw
    except (EOFError, zlib.error, gzip.BadGzipFile):
        problems["compressed file cut off or damaged"] += 1


class _Log:
    """One log, and what is known of it as a whole once its records have been read."""

    def __init__(self, file: Path, seen: Callable[[Trace], object]) -> None:
        self.file, self._seen = file, seen
        #: number of records that belong to no table
        self.count = 0
        self.problems = Counter[str]()
        #: the log's table of strings; file names are in it
        self.strings: dict[int, str] = {}
        #: from an artifact that newer releases write as the second record of a log
        self.torch_version: str | None = None

    def events(self) -> Iterator[Trace]:
        """The records that a report needs, in order."""
        metadata: dict[str, Any] | None = None
        payload = bytearray()
        for line in chain(log_lines(self.file, self.problems), [b""]):  # the last one ends the last record
            if line[:1] == b"\t":
                self.problems["payload without a record"] += metadata is None and not payload
                payload += line
            elif line not in (b"\n", b"\r\n"):
                if metadata is not None:
                    yield from self._record(metadata, self._payload(metadata, payload))
                metadata, payload = self._metadata(line) if line else None, bytearray()

    def _metadata(self, line: bytes) -> dict[str, Any] | None:
        """The metadata of the record that begins with this line; None if it cannot be read."""
        match = HEAD.match(line)
        if match is None:
            self.problems["line that is not a record"] += 1
            return None
        try:
            metadata: dict[str, Any] = json.loads(match["json"].decode("ascii"))  # torch escapes all other characters
        except _JSON_ERRORS:
            self.problems["record that is not JSON"] += 1
            return None
        name = trace_records.record_name(metadata)
        self.problems.update(f"wrong type: {wrong}" for wrong in trace_records.remove_wrong_types(name, metadata))
        if name not in metadata:
            self.problems["record without a name"] += name == "?"
            return None
        if name not in trace_records.USED and name not in trace_records.IGNORED and name != "str":
            known = name in self.problems or len(self.problems) < _MAX_KINDS
            self.problems[name[:80] if known else "record of unknown kind"] += 1
        return metadata

    def _payload(self, metadata: dict[str, Any], lines: bytearray) -> str | None:
        """The payload that these lines, each with its tab, give; None if there is none, or a report does not need it."""
        digest = metadata.get("has_payload")
        if digest is None:
            self.problems["payload of a record that has none"] += bool(lines)
            return None
        end = b"\r\n" if lines.endswith(b"\r\n") else b"\n"
        text = lines.removesuffix(end).replace(end + b"\t", b"\n")
        del text[:1]
        self.problems["payload damaged"] += hashlib.md5(text, usedforsecurity=False).hexdigest() != digest
        return text.decode("utf-8", errors="replace") if trace_records.needs_payload(metadata) else None

    def _record(self, metadata: dict[str, Any], payload: str | None) -> Iterator[Trace]:
        """The event of a record, if a report needs it; what it says of the whole log is noted."""
        if trace_records.record_name(metadata) == "str":
            self._intern(metadata["str"])
            return
        self.count += 1
        if metadata.get("artifact", {}).get("name") == "torch_version":
            with contextlib.suppress(*_JSON_ERRORS, AttributeError):  # the damage is counted
                version = json.loads(payload or "").get("pytorch_version")
                self.torch_version = self.torch_version or (version if isinstance(version, str) else None)
        if trace_records.is_read(metadata):
            event = Trace(metadata, payload, compile_id=trace_records.record_compile_id(metadata))
            self._seen(event)
            yield event

    def _intern(self, value: Any) -> None:
        """Add an entry to the table of strings."""
        match value:
            case [str(text), int(number)]:
                self.problems["string id used twice"] += self.strings.get(number, text) != text
                self.strings[number] = text
            case _:
                self.problems["string table damaged"] += 1
