"""Makes the API page of `make docs`, as Markdown, from signatures, docstrings and the `#:` comments of fields."""

from __future__ import annotations

import inspect
import re
import typing
from typing import Any

import dynascope
from dynascope.compiler.ranks import RanksReport
from dynascope.compiler.report import Report
from dynascope.compiler.report.data import Part
from dynascope.compiler.report.report import Shown

_SECTION = re.compile(r"^(Args|Returns|Raises|Yields):\n((?:    .*\n|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^(\*{0,2}[\w.]+): ", re.MULTILINE)
_FIELD = re.compile(r"((?:^    #:.*\n)*)^    (\w+): (.*)", re.MULTILINE)


def page() -> str:
    """The text of the page."""
    functions = [getattr(dynascope, name) for name in dynascope.__all__ if not name.startswith("_")]
    report, *parts = parts_in(Report)
    ranks, *rank_parts = (c for c in parts_in(RanksReport) if c not in (report, *parts))
    return "\n".join(
        [
            "# Python API\n\nEverything that `import dynascope` offers, and the Report with its parts.\n",
            *(function_text(f, f"dynascope.{f.__name__}") for f in functions),
            class_text(report, "## The Report"),
            *methods("report", Report),
            *(class_text(part, "###") for part in parts),
            class_text(ranks, "## The report of ranks"),
            *methods("ranks", RanksReport),
            *(class_text(part, "###") for part in rank_parts),
        ]
    )


def methods(name: str, kind: type) -> list[str]:
    """The texts of a report's public methods, also of those that all reports share; `name`: what the examples call it."""
    return [function_text(m, f"{name}.{n}", "###") for n, m in {**vars(Shown), **vars(kind)}.items() if is_public(n, m)]


def is_public(name: str, member: Any) -> bool:
    """Whether a member of a class is a method to document."""
    return not name.startswith("_") and callable(getattr(member, "__func__", member))


def parts_in(cls: type[Part]) -> list[type[Part]]:
    """A part of a report and the parts of its fields, each once, outermost first."""
    found = [cls]
    for one in found:
        for annotation in typing.get_type_hints(one).values():
            parts = [leaf for leaf in leaves(annotation) if isinstance(leaf, type) and issubclass(leaf, Part)]
            found += [part for part in parts if part not in found]
    return found


def leaves(annotation: Any) -> list[Any]:
    """The types that an annotation is built from."""
    inner = typing.get_args(annotation)
    return [leaf for part in inner for leaf in leaves(part)] if inner else [annotation]


def function_text(function: Any, name: str, level: str = "##") -> str:
    """The section on a function: heading, signature and docstring."""
    function = getattr(function, "__func__", function)
    signature = inspect.signature(function)
    given = [p.replace(annotation=Unquoted(p.annotation)) for n, p in signature.parameters.items() if n not in ("self", "cls")]
    shown = signature.replace(parameters=given, return_annotation=Unquoted(signature.return_annotation))
    return f"{level} {name.rpartition('.')[2]}\n\n```python\n{name}{shown}\n```\n\n{docstring(function)}\n"


class Unquoted(str):
    """An annotation that a signature shows as it was written, without quotes."""

    __repr__ = str.__str__


def class_text(cls: type[Part], level: str) -> str:
    """The section on a part of a report: heading, docstring, and a table of the fields with their comments."""
    heading = level if " " in level else f"{level} {cls.__name__}"
    rows = []
    for base in reversed(cls.__mro__):
        if issubclass(base, Part):
            for comment, name, rest in _FIELD.findall(inspect.getsource(base)):
                kind = rest.partition(" = ")[0].replace("|", "\\|")
                words = " ".join(comment.replace("#:", "").split()).replace("|", "\\|")
                rows += [f"| `{name}` | `{kind}` | {words} |"] if name in cls.__struct_fields__ else []
    table = "\n".join(["| field | type | |", "| --- | --- | --- |", *rows])
    return f"{heading}\n\n{docstring(cls)}\n\n{table}\n"


def docstring(thing: Any) -> str:
    """A docstring as Markdown: sections get a bold heading, and the entries of `Args` and `Raises` become lists."""
    text = inspect.cleandoc(thing.__doc__ or "") + "\n"

    def section(found: re.Match[str]) -> str:
        body = inspect.cleandoc(found.group(2))
        entries = _ENTRY.sub(r"- `\1`: ", body) if found.group(1) in ("Args", "Raises") else body
        return f"**{found.group(1)}**\n\n{entries}\n\n"

    return _SECTION.sub(section, text).strip()
