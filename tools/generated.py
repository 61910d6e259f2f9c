"""Writes files that are generated from the code or the environment, and committed.

python -m tools.generated options   the table of options in examples/reference/options.md
python -m tools.generated schema    the JSON Schemas of a saved report and of a saved report of ranks
python -m tools.generated wire      the front end's types of what Python sends
python -m tools.generated pins      the versions that `make` installs (`make pins`)
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
from typing_extensions import NotRequired

from dynascope.compiler import report
from dynascope.compiler.ranks import report as ranks_report
from dynascope.compiler.report.data import Part
from dynascope.compiler.settings import CHOICE, PAIRS, REPEAT, SWITCH, Settings, option_flag
from dynascope.widgets import model
from tools.environment import CONSTRAINTS, ROOT

SCHEMA = ROOT / "examples" / "reference" / "report.schema.json"
RANKS_SCHEMA = SCHEMA.with_name("ranks.schema.json")
WIRE = ROOT / "widgets" / "frontend" / "wire.d.ts"
WIRE_HEADER = "// What Python sends to the front end.  Written by `python -m tools.generated wire`."
BEGIN, END = "<!-- options: python -m tools.generated options -->", "<!-- end of options -->"
GROUPS = {"compile": "How the code is compiled", "run": "How the cell runs", "view": "What is shown and kept"}
OLD_PYTHON = ' ; python_version < "3.11"'
NEW_PYTHON = ' ; python_version >= "3.11"'
#: distributions without a pin; setuptools is one because each torch has another upper bound for it
NOT_PINNED = {"dynascope", "pip", "setuptools", "torch"}
PINS_HEADER = """\
# What `make` installs: the versions that the whole test suite passed with.  torch itself is chosen by `make TORCH=...`.
# To renew: upgrade in .venv, run `make test`, then `make pins`.
"""


def with_table(page: str) -> str:
    """The page of options with the table as `Settings` declares it."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"options.md lacks the lines {BEGIN} and {END}")
    parts = []
    for group, title in GROUPS.items():
        rows = [
            f"| {_flag(f)} | {_default(f)} | {_help(f)} |" for f in dataclasses.fields(Settings) if f.metadata["group"] == group
        ]
        parts += [f"**{title}**", "", "| option | default | |", "| --- | --- | --- |", *rows, ""]
    return f"{before}{BEGIN}\n\n" + "\n".join(parts) + f"\n{END}{after}"


def _flag(f: dataclasses.Field[Any]) -> str:
    meta, flag = f.metadata, option_flag(f)
    if meta["kind"] == SWITCH:
        return f"`--[no-]{flag[2:]}{''.join(f'[={value}]' for value in meta['choices'])}`"
    short = f"`-{meta['short']}`, " if meta["short"] else ""
    # the modes are too many for this column: `_help` lists them
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


def json_schema_text(present: str = "") -> str:
    """The JSON Schema of a saved report, from the types of `dynascope.compiler.report`."""
    return schema_text(report.Report, "schema", report.SCHEMA)


def ranks_schema_text(present: str = "") -> str:
    """The JSON Schema of a saved report of ranks."""
    return schema_text(ranks_report.RanksReport, "ranks_schema", ranks_report.SCHEMA)


def schema_text(cls: type[Part], key: str, version: int) -> str:
    """The JSON Schema of the data of a report, the same under every Python: from 3.13 on, docstrings are not indented."""
    schema = msgspec.json.schema(cls)
    top = schema["$defs"][cls.__name__]
    top["properties"][key], top["required"] = {"const": version}, [key]
    for part in schema["$defs"].values():
        if "description" in part:
            part["description"] = inspect.cleandoc(part["description"])
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=1) + "\n"


def wire_types(present: str = "") -> str:
    """The types of a view's model in TypeScript, from the TypedDicts of `dynascope.widgets`."""
    pending, done = [model.ViewModel], dict[str, str]()

    def typescript(kind: Any) -> str:
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Literal:
            return " | ".join(json.dumps(value) for value in inner)
        if origin in (Union, UnionType):
            return " | ".join(map(typescript, inner))
        if origin is list:
            return f"{typescript(inner[0])}[]"
        if origin is dict:
            return f"Record<string, {typescript(inner[1])}>"
        if is_typeddict(kind):
            pending.append(kind)
            return "AnyPart" if kind.__name__ == "Part" else str(kind.__name__)
        return {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}.get(kind, "unknown")

    parts = [f'  | Part<"{kind}", {typescript(body)}>' for kind, body in model.BODIES.items()]
    while pending:
        kind = pending.pop()
        if kind.__name__ not in done:
            done[kind.__name__] = ""
            fields = []
            for name, hint in get_type_hints(kind, include_extras=True).items():
                optional = get_origin(hint) is NotRequired
                fields.append(f"{name}{'?' if optional else ''}: {typescript(get_args(hint)[0] if optional else hint)}")
            done[kind.__name__] = f"export type {kind.__name__} = {{ {'; '.join(fields)} }};"
    done["Part"] = "export type Part<Kind, Body> = { key: string; name: string; kind: Kind; body: Body };"
    return "\n".join([WIRE_HEADER, *(done[name] for name in sorted(done)), "export type AnyPart =", *parts]) + ";\n"


def canonical(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def with_pins(present: str) -> str:
    """The constraints file with the versions that are installed here.

    A version that Python 3.10 cannot have gets a marker.  Lines for Python 3.10 alone are kept (they are written by hand, from
    a resolution under 3.10).  torch is left out, because `make` chooses its version.
    """
    pins = [line for line in present.splitlines() if line.endswith(OLD_PYTHON)]
    for found in metadata.distributions():
        name = canonical(found.metadata["Name"])
        needs = str(found.metadata.json.get("requires_python") or "")
        marker = NEW_PYTHON if re.search(r">=?\s*3\.1[1-9]", needs) else ""
        if name not in NOT_PINNED:
            pins.append(f"{name}=={found.version.partition('+')[0]}{marker}")
    return PINS_HEADER + "\n".join(sorted(set(pins))) + "\n"


def main(arguments: list[str]) -> int:
    """Rewrite the files that the first argument names."""
    files: dict[str, tuple[Path, Callable[[str], str]]] = {
        "options": (SCHEMA.with_name("options.md"), with_table),
        "schema": (SCHEMA, json_schema_text),
        "ranks schema": (RANKS_SCHEMA, ranks_schema_text),
        "wire": (WIRE, wire_types),
        "pins": (ROOT / CONSTRAINTS, with_pins),
    }
    chosen = [name for name in files if arguments and arguments[0] in (name, name.rpartition(" ")[2])]
    if not chosen:
        print("usage: python -m tools.generated options|schema|wire|pins")
        return 2
    for name in chosen:
        path, renew = files[name]
        path.write_text(renew(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
