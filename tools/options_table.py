"""The README's table of options, made from Settings.

python -m tools.options_table           print it
python -m tools.options_table --write   put it into README.md
"""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

from dynascope.compiler.settings import CHOICE, PAIRS, REPEAT, SWITCH, Settings, option_flag

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- options: python -m tools.options_table --write -->", "<!-- end of options -->"
_GROUPS = {"compile": "What the compiler is told", "run": "How the cell runs", "view": "What is shown and kept"}


def table() -> str:
    """Every option in Markdown, one table for each group."""
    parts = []
    for group, title in _GROUPS.items():
        rows = [
            f"| {_flag(f)} | {_default(f)} | {_help(f)} |" for f in dataclasses.fields(Settings) if f.metadata["group"] == group
        ]
        parts += [f"**{title}**", "", "| option | default | |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(parts).rstrip()


def _flag(f: dataclasses.Field[Any]) -> str:
    meta, flag = f.metadata, option_flag(f)
    if meta["kind"] == SWITCH:
        return f"`--[no-]{flag[2:]}`"
    short = f"`-{meta['short']}`, " if meta["short"] else ""
    # a long list of choices would break the line
    value = "MODE" if f.name == "mode" else "{" + ",".join(meta["choices"]) + "}" if meta["kind"] == CHOICE else meta["metavar"]
    value = f"[{value}]" if meta.get("bare") is not None else value
    return f"{short}`{flag} {value}`".replace("|", "\\|")


def _default(f: dataclasses.Field[Any]) -> str:
    if f.metadata["kind"] in (REPEAT, PAIRS) or f.default is None:
        return ""
    if f.metadata["kind"] == SWITCH:
        return "on" if f.default else "off"
    return f"`{f.default}`"


def _help(f: dataclasses.Field[Any]) -> str:
    text = f.metadata["help"]
    if f.name == "mode":
        text += " " + ", ".join(f"`{c}`" for c in f.metadata["choices"]) + "."
    if f.name == "backend":
        text += " The variable DYNASCOPE_BACKEND sets another default."
    return str(re.sub(r"(?<![`\w])(--[a-z][\w-]*)", r"`\1`", text).replace("|", "\\|"))


def with_table(readme: str) -> str:
    """The README with the table as it should be."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md lacks the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Print the table, or write it."""
    if "--write" in arguments:
        README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
