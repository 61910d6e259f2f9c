"""Reads TORCH_TRACE logs, and saved reports, without torch.

A log has lines in glog's style, each with one JSON record; lines that start with a tab are the payload of the record above.
Each file is the log of one process.  Records that are unknown or damaged are skipped, counted by kind and shown in
`report.unread`; with `strict=True` the first of them is an error.  Which records are known is listed in `events.records`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynascope.compiler import __version__
from dynascope.compiler.assembly.assemble import assemble
from dynascope.compiler.assembly.facts import RecordingFacts
from dynascope.compiler.events.records import KNOWN, SHAPES, record_compile_id
from dynascope.compiler.events.schema import Trace
from dynascope.compiler.report import Report

_LINE = re.compile(
    r"^[VDIWEC](?P<month>\d{2})(?P<day>\d{2}) (?P<time>\d{2}:\d{2}:\d{2}\.\d{1,6})\s+(?P<thread>\d+)\s+"
    r"(?P<path>[^\n]*?):(?P<line>\d+)\]\s?(?P<json>\{.*)$"
)
_RANK = re.compile(r"rank_(\d+)")
_JSON_DEPTH_ERRORS = (ValueError, RecursionError)
#: records with stacks that are read
_STACKED = ("dynamo_start", *sorted(SHAPES))


def load(path: str | Path, *, strict: bool = False) -> Report:
    """The Report of a TORCH_TRACE log, of a folder of them (one for each rank), or of a saved report.json.

    Raises FileNotFoundError if there is no such file or no log in the folder, and ValueError if nothing can be read or, with
    `strict`, at the first record that is unknown or damaged; each message is one line.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(f for f in path.rglob("*") if f.is_file() and f.suffix in (".log", ".txt", ""))
        if not files:
            raise FileNotFoundError(f"no trace logs in {path}: run the program with TORCH_TRACE={path}")
    elif path.is_file():
        files = [path]
    else:
        raise FileNotFoundError(f"no such file or folder: {path}")
    if path.suffix == ".json" and path.is_file():
        return _saved(path)
    return load_traces(files, strict=strict)


def _saved(path: Path) -> Report:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except _JSON_DEPTH_ERRORS as error:
        raise ValueError(f"{path} is no saved report: {error}") from None
    return Report.from_dict(data)


def load_traces(files: list[Path], *, strict: bool = False) -> Report:
    """One Report of several logs, one for each process."""
    problems: Counter[str] = Counter()
    events: list[Trace] = []
    for index, file in enumerate(files):
        for event in read_events(file, problems):
            if len(files) > 1:
                match = _RANK.search(file.name)
                event.metadata.setdefault("rank", int(match.group(1)) if match else index)
                event.process = index
            events.append(event)
        if strict and problems:
            raise ValueError(f"{file}: {_format_problems(problems)}")
    if not events:
        raise ValueError(f"no trace records in {', '.join(map(str, files[:3]))}: is it a TORCH_TRACE log?")
    versions = {"dynascope": __version__, "torch": _torch_version(events), "python": None}
    report = assemble(events, RecordingFacts(origin="trace", versions=versions))
    report.unread = dict(Counter(report.unread) + problems)
    if strict and report.unread:
        raise ValueError(f"{files[0]}: {_format_problems(report.unread)}")
    return report


def _format_problems(problems: dict[str, int]) -> str:
    return "; ".join(f"{count} × {kind}" for kind, count in problems.items())


@dataclass(slots=True)
class _Head:
    """The first line of a record; `keep`: whether its payload is needed."""

    metadata: dict[str, Any]
    thread: int
    keep: bool


def read_events(file: Path, problems: Counter[str]) -> Iterator[Trace]:
    """The trace events of one log, in order; what cannot be read is counted in `problems`."""
    strings: dict[int, str] = {}
    for head, payload in _records(file, problems):
        metadata = head.metadata
        if "str" in metadata:
            _intern(metadata["str"], strings, problems)
            continue
        expected = metadata.get("has_payload")
        if expected is not None and hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest() != expected:
            problems["payload damaged"] += 1
        _resolve(metadata, strings)
        if type(metadata.get("rank", 0)) is not int:
            del metadata["rank"]
            problems["rank unreadable"] += 1
        try:
            compile_id = record_compile_id(metadata)
        except Exception:
            problems["compile id unreadable"] += 1
            continue
        yield Trace(metadata, payload if expected is not None else None, compile_id=compile_id, thread=head.thread)


def _records(file: Path, problems: Counter[str]) -> Iterator[tuple[_Head, str]]:
    head: _Head | None = None
    payload: list[str] = []
    with file.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            line = line.removesuffix("\n")
            if line.startswith("\t"):
                if head is not None and head.keep:
                    payload.append(line[1:])
                elif head is None:
                    problems["payload without a record"] += 1
                continue
            if head is not None:
                yield head, "\n".join(payload)
            head, payload = _head(line, problems), []
    if head is not None:
        yield head, "\n".join(payload)


def _head(line: str, problems: Counter[str]) -> _Head | None:
    match = _LINE.match(line)
    if match is None:
        if line.strip():
            problems["line that is no record"] += 1
        return None
    try:
        metadata = json.loads(match["json"])
    except _JSON_DEPTH_ERRORS:
        problems["record that is no JSON"] += 1
        return None
    if not isinstance(metadata, dict):
        problems["record that is no object"] += 1
        return None
    keep = "str" in metadata or not (KNOWN & metadata.keys() - {"rank", "stack"})
    if not keep:
        metadata.pop("has_payload", None)  # nothing in it is shown, so it is not kept and not checked
    return _Head(metadata, int(match["thread"]), keep)


def _intern(value: Any, strings: dict[int, str], problems: Counter[str]) -> None:
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], int):
        strings[value[1]] = str(value[0])
    else:
        problems["string table damaged"] += 1


def _resolve(metadata: dict[str, Any], strings: dict[int, str]) -> None:
    """Fill in the file names that the log keeps in its table of strings; each file has its own."""
    fields: dict[str, Any] = next((metadata[name] for name in _STACKED if isinstance(metadata.get(name), dict)), {})
    for stack in (fields.get("stack"), fields.get("user_stack")):
        for entry in stack if isinstance(stack, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("filename"), int):
                entry["filename"] = strings.get(entry["filename"], "?")


def _torch_version(events: Iterable[Trace]) -> str | None:
    for event in events:
        for name in ("torch_version", "compilation_metrics"):
            value = event.metadata.get(name)
            if isinstance(value, dict) and value.get("torch_version"):
                return str(value["torch_version"])
    return None
