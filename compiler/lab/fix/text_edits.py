"""Applies edits to a text, and compares two texts: the edits between them, and which of their lines are the same."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from dynascope.compiler.report import FixEdit
from dynascope.compiler.source.lines import split_lines


class NotApplicable(Exception):
    """The change cannot be made here; the message says why, as the end of a sentence."""


def with_edits(text: str, edits: Iterable[FixEdit]) -> str:
    """The text with these edits; raises NotApplicable if the lines that an edit replaces have changed, or if edits overlap."""
    lines = split_lines(text)
    last_replaced = len(lines) + 1
    for edit in sorted(edits, key=lambda edit: (edit.first_line, edit.last_line), reverse=True):
        first, last = edit.first_line - 1, edit.last_line
        if edit.last_line >= last_replaced or not 0 <= first <= last <= len(lines):
            raise NotApplicable("its lines overlap, or are not in the file")
        if "".join(lines[first:last]).rstrip("\n") != edit.before.rstrip("\n"):
            raise NotApplicable("the lines that it replaces have changed")
        lines[first:last] = split_lines(edit.after if not edit.after or edit.after.endswith("\n") else edit.after + "\n")
        last_replaced = edit.first_line
    return "".join(lines)


def edits_between(file: str, before: str, after: str) -> list[FixEdit]:
    """The edits that turn `before` into `after`: only lines that differ."""
    old, new = split_lines(before), split_lines(after)
    changed = [change for change in _changes(old, new) if change[0] != "equal"]
    return [FixEdit(file, i1 + 1, i2, "".join(old[i1:i2]), "".join(new[j1:j2])) for _, i1, i2, j1, j2 in changed]


def line_origins(before: str, after: str) -> dict[int, int]:
    """Line of `after` -> the same line of `before`; lines that are new or changed are missing."""
    origins: dict[int, int] = {}
    for tag, i1, i2, j1, _ in _changes(*([line.rstrip("\n") for line in split_lines(text)] for text in (before, after))):
        if tag == "equal":
            origins |= {j1 + k + 1: i1 + k + 1 for k in range(i2 - i1)}
    return origins


def _changes(old: list[str], new: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    return difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
