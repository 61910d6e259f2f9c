"""All texts of Dynamo that say why something happened: graph breaks, skips, guards that failed, and expressions in guards.

The text of a break comes with a structured-trace record and in an exception's message.  From torch 2.9 to 2.15, the labels
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

from dynascope.compiler.builder.events import Location
from dynascope.compiler.report import FailedGuard, FailedGuardKind, Undecided
from dynascope.compiler.report.formatting import first_line
from dynascope.compiler.source.origin import is_plumbing, torch_folder

_HEADER = re.compile(r"^Graph break[^\n]*? in user code at (?P<file>[^\n]+):(?P<line>\d+)$", re.M)
_SKIP_HEADER = re.compile(r"^Graph break: (?:torch\.compile|from user code)[^\n]*", re.M)
_REASON = re.compile(r"^Graph Break Reason: ?", re.M)
_CHAIN = re.compile(r"^\*\*\* While handling this graph break, another graph break occurred: \*\*\*$", re.M)
_END_OF_MESSAGE = re.compile(
    r"^(?:User code traceback:|from user code:|User stack:|Traceback \(most recent call last\):|Set TORCHDYNAMO_VERBOSE)", re.M
)
_LEAD = re.compile(
    r"^(?:Encountered graph break when attempting to trace|Encountered graph break that we cannot resume from"
    r"|Failed to handle graph break gracefully)[^\n]*:\n\n",
    re.M,
)
_UNHANDLED = re.compile(r"^Graph Break Reason: (?:Encountered graph break that we cannot resume|Failed to handle)", re.M)
_URL = re.compile(r"https?://\S*?/gb/gb(\d+)\.html")
_ENTRY = re.compile(r'^ *File "(?P<file>[^\n]*)", line (?P<line>\d+), in (?P<function>[^\n]*)$')
_STACK_HEADING = re.compile(
    r"^(?:User code traceback:|from user code:|User stack:|The graph break occurred in the following user code:)", re.M
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
#: the debug context of an assertion that is false, whatever the data: its value is a constant, or an empty list
_FALSE = re.compile(r"^(?:attempted to jump with|value:) (?:Lazy\w+\(realized: )?(?:ConstantVariable\(|\w+\(length=0\))")
#: `Part.error` of such an assertion
FALSE = "AssertionError: the assertion is false"
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


def read_break(text: str) -> BreakText:
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
    message = _END_OF_MESSAGE.split(_LEAD.sub("", text[start:], count=1), 1)[0]
    if start > len(result.text) and message.strip():
        result.text += f"\n\n{message.rstrip()}"
    result.parts = [_part(p) for p in _CHAIN.split(message) if p.strip()]
    result.stack = stack_of(text)
    if result.line is None and result.stack:
        result.file, result.line = result.stack[-1].file, result.stack[-1].line
    return result


def read_breaks(texts: list[str]) -> list[BreakText]:
    """Parse the texts of one compile; a failure to handle the break before it, at the same place, becomes a part of it."""
    results = list[BreakText]()
    for text in map(read_break, texts):
        # it may be met in a function of torch's own, which does what a builtin does
        stacks = ((e for t in which for e in t.stack if not is_plumbing(e.file)) for which in ([text], results[-1:]))
        place, before = ([(e.file, e.line) for e in stack] for stack in stacks)
        if place and before[: len(place)] == place and _UNHANDLED.search(text.text):
            results[-1].text += f"\n\n{text.text}"
            results[-1].parts += text.parts
        else:
            results.append(text)
    return results


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
    part.reason = _CODE.sub(r"\1", first_line("\n".join(fields[0][1])))
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
    entries: list[Location] = []
    for line in "".join(_STACK_HEADING.split(text, 1)[1:]).splitlines()[1:]:
        match = _ENTRY.match(line)
        if match:
            entries.append(Location(match["file"], int(match["line"]), match["function"]))
        elif entries and entries[-1].carets is None and (marks := _CARETS.match(line)) is not None:
            # Tildes and carets together mark the expression; if it spans several lines, only its first line is used.
            start, count = len(marks["before"]), len(marks["marks"])
            # Python 3.13 and newer print a line of spaces instead of marks for an expression of several lines.
            entries[-1].carets = (start, start + count) if count else (start or None, None)
        elif entries and line.strip() and not line.startswith(("    ", *_BETWEEN)):
            break
    # Python omits the marks where they would cover the whole line, and below some calls (see `source.lines.caret_columns`).  So
    # if any entry has marks, one without them gets (0, None), "nothing is marked"; otherwise all stay None, unknown (torch
    # before 2.13 prints no marks)
    if any(e.carets for e in entries):
        for e in entries:
            e.carets = e.carets or (0, None)
    return entries


_SAID = re.compile(
    r"Could not (?P<what>guard on|extract specialized integer from) data-dependent expression (?P<expression>.+?) \(unhinted: ",
    re.S,
)
_CHECK = re.compile(r"^ *\d+\. (torch\._check\w*\(.*\))$", re.M)


def undecided_in(text: str) -> Undecided | None:
    """The condition or number that the text of a break names; None if it names none."""
    said = _SAID.search(text)
    if said is None:
        return None
    return Undecided(
        expression=in_python(said["expression"]), needed="condition" if said["what"] == "guard on" else "integer",
        checks=list(dict.fromkeys(_CHECK.findall(text))),
    )  # fmt: skip


# -- guards and symbols -----------------------------------------------------------------------------

#: a condition, whose strings may have number signs of their own, and the comment beside it
_COMMENTED = re.compile(r"""((?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^'"])*?)\s{2,}(# .*)""", re.S)
_RELATION = re.compile(r"^(?P<name>Eq|Ne)\((?P<operands>[^|&]*)\)$")


def split_comment(text: str) -> tuple[str, str]:
    """A guard's condition, and what torch prints beside it, which is usually the line that made the guard."""
    match = _COMMENTED.fullmatch(text)
    return (match[1].strip(), match[2]) if match is not None else (text.strip(), "")


@functools.lru_cache(8192)
def user_expression(text: str) -> str:
    """An expression of Dynamo's as the user writes it: `L['x']` and `G['x']` become `x`."""
    text = re.sub(r"L\['(\w+)'\]", r"\1", text)
    # values on Python's stack where a resume function continues
    text = re.sub(r"\b___stack(\d+)\b", lambda m: f"(value {int(m[1]) + 1} passed on at the break)", text)
    text = re.sub(r"G\['___unnamed_scope_\w+'\]", "G", text)  # globals of another module than the frame's
    text = re.sub(r"G\['(\w+)'\]", r"\1", text)
    text = re.sub(r"(not )?___dict_contains\(([^,()]+|\(.*\)), ([^()]+)\)", r"\2 \1in \3", text)
    text = re.sub(r"\b___(?:from_numpy|as_tensor)\(([^()]+)\)", r"\1", text)  # what the graph has of an array or a number
    text = re.sub(r"\b__builtins_dict___\d+", "__builtins__", text)  # numbers and addresses differ from run to run
    text = re.sub(r"(?<=\w)_\d{9,}(?:_c\d+)?\b", "", text)
    text = re.sub(r"\._(?:modules|parameters|buffers)\['(\w+)'\]", r".\1", text)
    return re.sub(r"__import_(\w+?)(?=\W|$)", lambda m: m.group(1).replace("_dot_", "."), text)


def with_sources(text: str, sources: list[str]) -> str:
    """A text of Dynamo's with the sources of values on Python's stack in place of these values, where they have one."""
    known = {str(index): source for index, source in enumerate(sources) if source}
    return re.sub(r"L\['___stack(\d+)'\]|\b___stack(\d+)\b", lambda m: known.get(m[1] or m[2], m[0]), text)


def recompile_texts(text: str) -> list[str]:
    """The reasons of a recompile, one for each compiled version that was tried, each with the stack that torch adds."""
    try:
        data = json.loads(text)
    except ValueError:  # torch 2.11 and later write a single reason as plain text
        data = text
    return [str(r) for r in (data if isinstance(data, list) else [data]) if str(r).strip()]


def without_stack(reason: str) -> str:
    """A reason of a recompile without the stack that torch adds."""
    return reason.split("\nUser stack trace:", 1)[0].strip()


#: a value as guards print it: what else stands there is an expression, of other values
_VALUE = r"-?\d[\w.]*(?:(?<=e)[-+]\d+)?|-?inf|True|False|[\[{].*[\]}]|\([^a-ik-z]*\)|'[^']*'|\"[^\"]*\"|torch\.\w+|device\(.*\)"
#: what of a tensor torch compares in the same words
_COMPARED: tuple[FailedGuardKind, ...] = "size", "dtype", "rank", "stride"
#: torch's messages for failed guards; `n` is the guarded expression, `i` a dimension, `a` the expected value, `b` the actual
#: value; for another object, `a` is the type of the expected one; for a range, `a` and `b` are its ends; for a new attribute,
#: `b` is its name; for global state, `n` is what changed
_FAILED: list[tuple[re.Pattern[str], FailedGuardKind]] = [
    *((re.compile(rf"tensor '(?P<n>.+?)' {kind} mismatch(?: at index (?P<i>\d+))?\. expected (?P<a>\S+), actual (?P<b>\w+)"),
       kind) for kind in _COMPARED),
    (re.compile(r"tensor '(?P<n>.+?)' requires_grad mismatch(?:\. expected requires_grad=(?P<a>0|False))?"), "requires_grad"),
    (re.compile(r"tensor '(?P<n>.+?)' dispatch key set mismatch\. expected (?P<a>.+?\)), actual (?P<b>.+?\))"), "tensor class"),
    (re.compile(r"Unexpected recompilation: runtime guards failed"), "none found"),
    (re.compile(r"^Cache line invalidated because (?P<n>.+) got deallocated"), "freed"),
    (re.compile(r"tensor '(?P<n>.+?)' (?:Tensor )?device (?:index )?mismatch"), "device"),
    (re.compile(r"expected type of '(?P<n>.+?)' to be a tensor type, .*?but found (?:<class ')?(?P<b>[^'>]+)"), "not a tensor"),
    (re.compile(r"___check_type_id\((?P<n>.+?), \d+\)"), "type"),
    (re.compile(r"^CodeGuardAccessor: Not a function on (?P<n>.+)\.__code__"), "type"),
    (re.compile(r"^\w+GuardAccessor: Not a function on (?P<n>.+)"), "missing"),  # a function without a closure, for example
    (re.compile(r"___check_obj_id\((?P<n>.+?), \d+\)(?:, type=<\w+ '(?:[^']*\.)?(?P<a>[^'.]+)'>)?"), "object"),
    (re.compile(r"^(?:len|___tuple_iterator_len)\((?P<n>.+)\) [!=]= (?P<a>\w+)$"), "length"),
    (re.compile(r"^not (?P<n>(?:dict\([\w.()'\[\]]+\))?[\w.'\[\]]+)$"), "not empty"),
    (re.compile(r"^KeyError on (?P<n>.+)$"), "missing"),
    (re.compile(r"^(?P<n>[\w.'\[\]]+) is None$"), "none"),
    (re.compile(r"^not ___dict_contains\('(?P<b>\w+)', (?P<n>.+?)\.__dict__\)$"), "new attribute"),
    (re.compile(r"(?:GLOBAL_STATE changed: |___check_(?=torch))(?P<n>.+?)(?:\(\))?$|___check_global_state"), "global state"),
    (re.compile(rf"^(?P<n>(?:list\(dict\.keys\([^)]+\)\)|[^\W\d])[\w.'\[\]]*) == (?P<a>{_VALUE})$"), "value"),
    (re.compile(r"^(?P<a>-?\d[\w.]*) <= (?P<n>\S+) <= (?P<b>-?\d[\w.]*)$"), "range"),
    (re.compile(r"^(?P<a>-?\d[\w.]*) <= (?P<n>\S+)$"), "minimum"),
]  # fmt: skip
#: what torch itself explains or advises beside a guard; of a parameter, whatever has changed, it says how its size may
_HINT = re.compile(r"\(HINT: .*observing recompilation, (.+?)\.?\)$|  # (duck sizing .+)|size mismatch.* parameter, (.+?)\.?$")


def condition_of(reason: str) -> str:
    """The condition that failed, in a reason of a recompile."""
    return split_comment(COMPILE.sub("", without_stack(reason)))[0]


def failed_guard(reason: str) -> FailedGuard:
    """One reason of a recompile as facts; only its expression, as the user writes it, if no pattern matches."""
    text, of, hint = condition_of(reason), COMPILE.match(reason), _HINT.search(without_stack(reason))
    known: dict[str, Any] = {"compile_id": of and of["id"], "hint": hint and hint[hint.lastindex or 0]}
    for pattern, kind in _FAILED:
        if (match := pattern.search(text)) is not None:
            facts = {k: user_expression(v) for k, v in match.groupdict().items() if v is not None}
            if kind == "requires_grad":  # `a` is captured only if torch expected False
                facts["a"], facts["b"] = ("False", "True") if "a" in facts else ("True", "False")
            return FailedGuard(
                kind=kind, source=facts.get("n"), dimension=int(facts["i"]) if "i" in facts else None,
                before=facts.get("a"), now=facts.get("b"), **known,
            )  # fmt: skip
    return FailedGuard(kind="expression", text=user_expression(text), **known)


def in_python(expression: str) -> str:
    """A condition in Python's notation: `Eq(s77, 5)` becomes `s77 == 5`."""
    relation = _RELATION.match(expression)
    if relation is None:
        return expression
    left, right = _operands(relation["operands"])
    return f"{left} {'==' if relation['name'] == 'Eq' else '!='} {right}"


def _operands(text: str) -> tuple[str, str]:
    """The two operands of a relation."""
    depth = 0
    for index, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            return text[:index].strip(), text[index + 1 :].strip()
    return text, ""


# -- reasons of recompiles --------------------------------------------------------------------------

#: how a reason of a recompile begins: the id of the compile whose guard failed, `0/1` or, in compiled autograd, `!2/0/1`
COMPILE = re.compile(r"^(?P<id>(?:!\d+/)?\d+/\d+): ")
#: of torch 2.9, and of later releases
REFUSED = re.compile(
    r"(?P<old>(?:accumulated_)?recompile_limit) reached"
    r"|exceeding the (?P<name>\w+) cache size limit \(currently set to (?P<value>\d+)\)"
)


LIMIT = re.compile(r'"(?P<name>(?:accumulated_)?recompile_limit)": (?P<value>\d+)')
