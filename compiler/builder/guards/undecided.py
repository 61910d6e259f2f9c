"""Finds the condition or number that tracing needed at a graph break and could not evaluate, because it depends on data."""

from __future__ import annotations

import re
from typing import Any

from dynascope.compiler.builder.guards.symbols import in_python
from dynascope.compiler.report import Break, Undecided

_SAID = re.compile(
    r"Could not (?P<what>guard on|extract specialized integer from) data-dependent expression (?P<expression>.+?) \(unhinted: ",
    re.S,
)
_CHECK = re.compile(r"^ *\d+\. (torch\._check\w*\(.*\))$", re.M)


def printed(text: str) -> Undecided | None:
    """The condition or number that the text of a break names; None if it names none."""
    said = _SAID.search(text)
    if said is None:
        return None
    return Undecided(
        expression=in_python(said["expression"]), needed="condition" if said["what"] == "guard on" else "integer",
        checks=list(dict.fromkeys(_CHECK.findall(text))),
    )  # fmt: skip


def recorded(broken: Break, records: list[dict[str, Any]]) -> Undecided | None:
    """The condition that was recorded at the line of a break, for a branch whose break text does not name it.

    None in a trace file: torch's own records have no `user_stack`.
    """
    if "SymNodeVariable" not in broken.text:  # the branch is on something else, such as a tensor
        return None
    for record in records:
        stack = record.get("user_stack") or [{}]
        if (stack[-1].get("filename"), stack[-1].get("line")) == (broken.file, broken.line):
            return Undecided(expression=in_python(str(record["expr"])))
    return None
