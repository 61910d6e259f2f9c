"""The detail of what is selected in a view: its facts and its tabs, and how each kind of tab is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypedDict

from typing_extensions import NotRequired

from dynascope.widgets.words import guarded, printable

#: one text has at most this many characters (a backend's code can have megabytes)
TEXT_LIMIT = 200_000
#: a list has at most this many rows of one kind; the locals of a resume function are all listed
ROWS = 500


PartKind = Literal["prose", "code", "source", "stack", "graph", "list", "run", "fix"]


class ProseBody(TypedDict):
    """Sentences, what to do, and lines of code."""

    text: list[str]
    todo: list[str]
    code: list[str]


class CodeBody(TypedDict):
    """A long text; `start`: the number of its first line, which the front end sets for the source of a frame."""

    text: str
    lang: str
    start: NotRequired[int]


class SourceBody(TypedDict):
    """Lines of a file in the source view."""

    file: str
    start: int
    end: int


class Part(TypedDict):
    """One tab of a detail; what `body` holds depends on `kind`."""

    key: str
    name: str
    kind: PartKind
    body: Any


class Way(TypedDict):
    """How the user's own code leads to a place in a library: their line, and the functions called from there on."""

    file: str
    line: int
    names: list[str]


class Detail(TypedDict):
    """The detail of one selected break, frame or graph."""

    kind: str
    title: str
    code: str
    place: str
    copy: str
    facts: list[list[str]]
    parts: list[Part]
    links: NotRequired[list[list[str]]]
    target: NotRequired[str]
    file: NotRequired[str]
    line: NotRequired[int]
    way: NotRequired[Way]


def guarded_detail(kind: str, title: str, make: Callable[[], Detail]) -> Detail:
    """One detail; if it cannot be made, it says so."""
    return guarded("This detail", make, lambda why: not_drawn(kind, title, why))


def not_drawn(kind: str, title: str, why: str) -> Detail:
    """A detail that says why something could not be drawn."""
    return {
        "kind": kind, "title": title, "code": "", "place": "", "copy": "", "facts": [],
        "parts": prose("about", "What is known", [why]),
    }  # fmt: skip


def facts(*rows: tuple[str, object, str]) -> list[list[str]]:
    """Facts with a name, a value, and the id that a click selects, or ""; those that are unknown (None, "") are left out."""
    return [[name, str(value), id] for name, value, id in rows if value is not None and value != ""]


def guarded_part(key: str, name: str, make: Callable[[], list[Part]]) -> list[Part]:
    """One tab; if it cannot be made, the tab says so."""
    return guarded("This part", make, lambda why: prose(key, name, [why]))


def tab(key: str, name: str, kind: PartKind, body: Any) -> list[Part]:
    """A tab; none without a body."""
    return [{"key": key, "name": name, "kind": kind, "body": body}] if body else []


def prose(key: str, name: str, text: Iterable[str], todo: Iterable[str] = (), code: Iterable[str] = ()) -> list[Part]:
    """A tab with sentences, advice, and lines of code; none without any."""
    body: ProseBody = {"text": list(text), "todo": list(todo), "code": list(code)}
    return tab(key, name, "prose", body if any(body.values()) else None)


def code_part(key: str, name: str, text: str | None, lang: str) -> list[Part]:
    """A tab with a long text; none without."""
    body: CodeBody = {"text": printable(text or "", TEXT_LIMIT), "lang": lang}
    return tab(key, name, "code", body if text else None)


def list_part(key: str, name: str, rows: list[list[str]], count: int | None = None) -> list[Part]:
    """A tab with a list and the number of its rows, or another `count`; none without rows.

    A row has a name, a value, a remark, and the id that a click selects, or "".
    """
    return tab(key, f"{name} ({len(rows) if count is None else count})", "list", rows[:ROWS])
