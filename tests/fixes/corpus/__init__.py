"""Programs, and what the search for fixes must make of them: data for the tests of fixes, in the `.txt` files of this folder.

    == name
    @ key: value                what the report says: the keys are fields of `FixProgram`, and may occur more than once
    # a remark
    the text of a module that defines `f`, or, indented, the body of `f(x)`; torch is imported
    -- name of a change
    @ refused: a part of the reason
    the changed body or module; or lines to remove (`-`) and those in their place (`+`), with a blank line between two places

Without changes, the search tries all that it knows.  With changes, it tries only these, in turn: ones that were once taken for
right, and ones that a comparison must see through.  Only the last may have no reason to be refused: then it is right.  What
stands above the first `==` holds for the whole file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
CALLS = ("torch.arange(4.) + 1", "-torch.arange(4.) - 1", "torch.tensor([-2., 1., 0.5, 3.])")
_LAYOUTS = {"": ("", ""), "tabs": ("    ", "\t"), "crlf": ("\n", "\r\n")}
Keys = dict[str, list[str]]


@dataclass(frozen=True)
class Change:
    """A change of a program that a test plants in the search."""

    title: str
    text: str
    #: a part of the reason why it is refused; None: it is right
    refused: str | None
    #: conditions that it takes over into a tensor operation, and settings of Dynamo that belong to it
    test: tuple[str, ...]
    setting: tuple[str, ...]


@dataclass(frozen=True)
class FixProgram:
    """A program, and what a search for fixes has to say of it."""

    name: str
    text: str
    #: the only changes that the search may try; none: it tries all that it knows
    changes: tuple[Change, ...]
    #: torch 2.13's name for the type of the first break; "": whatever it is
    kind: str
    #: titles of changes that must be chosen; if there is none, none may be; "*": whatever is chosen must be right
    fix: tuple[str, ...]
    #: how many breaks remain where something is chosen
    left: int
    #: arguments: the first call is recorded, the others are calls that the search has not seen, on both sides of every branch
    call: tuple[str, ...]
    #: the exception of the fixed program, where the original raises another one
    raises: str | None
    #: whether gradients are recorded: some fixes hold only without them
    gradients: bool
    #: what the report says of a change that is chosen, or of one that is refused
    says: tuple[str, ...]
    refused: tuple[str, ...]
    #: lines of the fixed program
    line: tuple[str, ...]
    #: whether it takes many seconds
    slow: bool


def all_programs() -> list[FixProgram]:
    """The whole corpus, in order."""
    return [program for file in sorted(FOLDER.glob("*.txt")) for program in _programs(file)]


def some_programs() -> list[FixProgram]:
    """Those with changes of their own, the shortest for each fix, and a few more; in `make test-all`, all."""
    programs = all_programs()
    if os.environ.get("DYNASCOPE_EXAMPLES") or os.environ.get("DYNASCOPE_FULL"):
        return programs
    programs = [program for program in programs if not program.slow]
    longest_first = sorted(programs, key=lambda program: -len(program.text))
    shortest = {title: program for program in longest_first for title in program.fix if title != "*"}.values()
    return [p for number, p in enumerate(programs) if p.changes or p in shortest or number % 50 == 0]


def _programs(file: Path) -> Iterator[FixProgram]:
    above, *sections = re.split(r"^== ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for section in sections:
        program, *changes = re.split(r"^-- ", section, flags=re.MULTILINE)
        name, keys, text = _block(program)
        yield _program(name, _module(text), changes, {**_keys(above), **keys})


def _block(text: str) -> tuple[str, Keys, str]:
    """Name, keys and text of a block."""
    name, _, rest = text.partition("\n")
    lines = rest.splitlines(keepends=True)
    head = next((n for n, line in enumerate(lines) if not line.startswith(("@ ", "# "))), len(lines))
    return name, _keys("".join(lines[:head])), "".join(lines[head:]).rstrip() + "\n"


def _keys(text: str) -> Keys:
    keys: Keys = {}
    for key, value in re.findall(r"^@ (\w+): ?(.*)$", text, flags=re.MULTILINE):
        keys.setdefault(key, []).append(value)
    return keys


def _module(text: str) -> str:
    if text.startswith("    "):
        text = f"def f(x):\n{text}"
    return text if text.startswith(("import torch\n", "import torch as", '"""')) else f"import torch\n\n{text}"


def _changed(source: str, change: str) -> str:
    """The source with a change; if that is a diff, the lines of each of its parts must be in the source once."""
    if not change.startswith(("-", "+")):
        return _module(change)
    for part in change.split("\n\n"):
        before, after = ("".join(f"{line[1:]}\n" for line in part.splitlines() if line[0] == sign) for sign in "-+")
        assert source.count(before) == 1, part
        source = source.replace(before, after)
    return source


def _change(block: str, text: str, setting: list[str]) -> Change:
    title, keys, changed = _block(block)
    refused = keys.get("refused", [None])[0]
    return Change(title, _changed(text, changed), refused, tuple(keys.get("test", ())), (*setting, *keys.get("setting", ())))


def _program(name: str, text: str, blocks: list[str], keys: Keys) -> FixProgram:
    def one(key: str, default: str) -> str:
        [value] = keys.pop(key, [default])
        return value

    changes = [_change(block, text, keys.get("setting", [])) for block in blocks]
    keys.pop("setting", None)
    if changes and changes[-1].refused is None:
        keys["fix"], keys["says"] = [changes[-1].title], _block(blocks[-1])[1].get("says", [])
    text = text.replace(*_LAYOUTS[one("layout", "")])
    program = FixProgram(
        name, text, tuple(changes),
        kind=one("break", ""), left=int(one("left", "0")), raises=one("raises", "") or None,
        gradients=one("gradients", "on") == "on", slow=one("slow", "no") == "yes", call=tuple(keys.pop("call", CALLS)),
        **{key: tuple(keys.pop(key, ())) for key in ("fix", "says", "refused", "line")},
    )  # fmt: skip
    assert not keys, (name, keys)
    return program
