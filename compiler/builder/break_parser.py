"""Reads Dynamo's texts about graph breaks.

The same text comes with a structured-trace record and in an exception's message.  From torch 2.9 to 2.15, the labels
(Explanation, Hint, Developer debug context) stay the same, and the text around them changes.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynascope.compiler.builder.events.schema import Location
from dynascope.compiler.source.origin import torch_folder

_HEADER = re.compile(r"^Graph break[^\n]*? in user code at (?P<file>[^\n]+):(?P<line>\d+)$", re.M)
_SKIP_HEADER = re.compile(r"^Graph break: (?:torch\.compile|from user code)[^\n]*", re.M)
_REASON = re.compile(r"^Graph Break Reason: ?", re.M)
_CHAIN = re.compile(r"^\*\*\* While handling this graph break, another graph break occurred: \*\*\*$", re.M)
_END_OF_MESSAGE = re.compile(
    r"^(?:User code traceback:|from user code:|Traceback \(most recent call last\):|Set TORCHDYNAMO_VERBOSE)", re.M
)
_LEAD = re.compile(
    r"^(?:Encountered graph break when attempting to trace|Encountered graph break that we cannot resume from"
    r"|Failed to handle graph break gracefully)[^\n]*:\n\n",
    re.M,
)
_URL = re.compile(r"https?://\S*?/gb/gb(\d+)\.html")
_ENTRY = re.compile(r'^ *File "(?P<file>[^\n]*)", line (?P<line>\d+), in (?P<function>[^\n]*)$')
_STACK_HEADING = re.compile(
    r"^(?:User code traceback:|from user code:|The graph break occurred in the following user code:)", re.M
)
#: lines between the entries of a stack: the first with TORCHDYNAMO_VERBOSE, the second for recursive functions
_BETWEEN = ("==========", "  [Previous line repeated")
_CARETS = re.compile(r"^    (?P<before> *)(?P<marks>[~^]*)$")
_ERROR = re.compile(r"^[\w.]+(?:Unsupported|Error|Exception|SkipFrame)\w*: ", re.M)
#: torch 2.9 prints the function that it skips with its address and file, which differ from run to run
_CODE = re.compile(r'<code object (\S+) at 0x[0-9a-f]+, file "[^"\n]*", line \d+>')
#: a setting as a hint of torch's assigns it, to the package instead of its `config`, where all settings are
_MISPLACED = re.compile(r"\btorch\._dynamo\.(?=[a-z]\w*\s*=\s*(?:True|False)\b)")
#: match the error that Dynamo met, in the explanation or in the debug context
_ERRORS = (
    re.compile(r"(?::|^) got (?P<type>\w+)\((?P<arguments>.*)\)$", re.S),
    re.compile(r"^raised exception (?P<type>\w+)\((?P<arguments>.*)\)$", re.S),
    re.compile(r"^(?P<type>\w+) <[^<>]*>: (?P<message>.+)$", re.S),
)
#: the debug context of an assertion that is false, whatever the data
_FALSE = re.compile(r"^(?:attempted to jump with|value:) ConstantVariable\(bool: False\)$")
#: `Part.error` of an `if` or `assert` on a constant that is false
FALSE = "False"
_FIELD = re.compile(r"^  (Explanation|Hint|Developer debug context): ?(.*)$")


@dataclass
class Part:
    """One break of a text; a text has several if handling one break led to the next."""

    reason: str = ""
    explanation: str = ""
    hints: list[str] = field(default_factory=list)
    #: the error in tracing that caused it, `TypeError: argument 'is_causal' must be bool, not SymBool`; "" if none is known
    error: str = ""
    url: str | None = None
    gb_id: str | None = None

    @property
    def type(self) -> str:
        """The registry's name of this kind of break, else the reason."""
        return registry().get(self.gb_id or "", {}).get("Gb_type") or self.reason


@dataclass
class BreakText:
    """One of Dynamo's messages about a graph break, parsed."""

    #: the message, without the stacks printed after it; where torch prints the stack first, everything before the traceback,
    #: then the message
    text: str
    file: str | None = None
    line: int | None = None
    parts: list[Part] = field(default_factory=list)
    #: the user stack in the message, outermost first
    stack: list[Location] = field(default_factory=list)


@functools.cache
def registry() -> dict[str, dict[str, Any]]:
    """torch's own table of graph breaks by id (`GB0025`), read from a file of the installed torch; empty if there is none."""
    path = Path(torch_folder()) / "_dynamo" / "graph_break_registry.json"
    table = json.loads(path.read_text(encoding="utf-8")) if torch_folder() and path.is_file() else {}
    return {key: entries[0] if isinstance(entries, list) else entries for key, entries in table.items() if entries}


def read(text: str) -> BreakText:
    """Parse a break's text; what is not there stays empty."""
    result = BreakText(text=_END_OF_MESSAGE.split(text, 1)[0].rstrip())
    if header := _HEADER.search(text):
        result.file, result.line = header["file"], int(header["line"])
    start = 0
    if reason := _REASON.search(text):
        start = reason.end()
    elif skip := _SKIP_HEADER.search(text):
        # here, torch prints the stack first, and the exception last, in a traceback
        start = max((m.end() for m in re.finditer(r"^torch\._dynamo\.exc\.\w+: ", text, re.M)), default=skip.end())
    body = _LEAD.sub("", text[start:], count=1)
    tail = _END_OF_MESSAGE.search(body)
    message = body[: tail.start()] if tail else body
    if start > len(result.text) and message.strip():
        result.text += f"\n\n{message.rstrip()}"
    result.parts = [_part(p) for p in _CHAIN.split(message) if p.strip()]
    result.stack = stack_of(text)
    if result.line is None and result.stack:
        result.file, result.line = result.stack[-1].file, result.stack[-1].line
    return result


def message_of(traceback_text: str) -> str:
    """The message of the exception that a printed traceback ends with."""
    return next((traceback_text[m.end() :] for m in reversed(list(_ERROR.finditer(traceback_text)))), "")


def _part(text: str) -> Part:
    part = Part()
    fields: list[tuple[str, list[str]]] = [("Reason", [])]  # (label, its lines), in order
    for line in text.splitlines():
        if url := _URL.search(line):
            part.url, part.gb_id = url.group(0), f"GB{int(url.group(1)):04d}"
            continue
        if match := _FIELD.match(line):
            fields.append((match.group(1), []))
            line = match.group(2)
        if line.strip():
            fields[-1][1].append(line.strip())
    part.explanation, context = ("\n".join(line for name, lines in fields for line in lines if name == wanted)
                                 for wanted in ("Explanation", "Developer debug context"))  # fmt: skip
    matches = [match for text in (part.explanation, context) for pattern in _ERRORS if (match := pattern.search(text))]
    part.error = _error(matches[0]) if matches else FALSE if _FALSE.match(context) else ""
    part.hints = [_MISPLACED.sub("torch._dynamo.config.", "\n".join(lines)) for name, lines in fields if name == "Hint"]
    first = fields[0][1] or [""]
    part.reason = _CODE.sub(r"\1", " ".join(first[:2]) if first[0].endswith(":") else first[0])
    return part


def _error(match: re.Match[str]) -> str:
    """An error as Python prints it, from its `repr`."""
    found = match.groupdict()
    message = found.get("message") or found["arguments"]
    kind = getattr(builtins, found["type"], Exception)
    if "arguments" in found and isinstance(kind, type) and issubclass(kind, Exception):
        with contextlib.suppress(ValueError, SyntaxError, TypeError):
            message = str(kind(*ast.literal_eval(f"({message},)" if message else "()")))
    return f"{found['type']}: {message}".rstrip(": ")


def entries(text: str) -> list[Location]:
    """The entries of a printed stack, outermost first."""
    matches = map(_ENTRY.match, text.splitlines())
    return [Location(match["file"], int(match["line"]), match["function"]) for match in matches if match]


def stack_of(text: str) -> list[Location]:
    """The user's stack printed after one of the headings of `_STACK_HEADING`, outermost first."""
    heading = _STACK_HEADING.search(text)
    if not heading:
        return []
    entries: list[Location] = []
    for line in text[heading.end() :].splitlines()[1:]:
        match = _ENTRY.match(line)
        if match:
            entries.append(Location(match["file"], int(match["line"]), match["function"]))
        elif entries and entries[-1].carets is None and (marks := _CARETS.match(line)) is not None:
            # Tildes and carets together mark the expression; if it spans several lines, only its first line is used.
            start, count = len(marks["before"]), len(marks["marks"])
            # Python 3.13 and newer print a line of spaces instead of marks for an expression of several lines.
            entries[-1].carets = (start, start + count) if count else (start or None, None)
        elif not line.strip() or line.startswith(_BETWEEN):
            continue
        elif entries and not line.startswith("    "):
            break
    # Python omits the marks where they would cover the whole line, and below some calls (see `source.lines.caret_columns`).  So
    # if any entry has marks, one without them gets (0, None), "nothing is marked"; otherwise all stay None, unknown (torch
    # before 2.13 prints no marks)
    if any(e.carets for e in entries):
        for e in entries:
            e.carets = e.carets or (0, None)
    return entries
