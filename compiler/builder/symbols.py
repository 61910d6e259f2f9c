"""The symbols of a frame: what each stands for, and what constrained it; and the places at which guards and symbols were made.

Places are read from Dynamo's own objects, records of the structured trace, or a guard's text.  In a guard's text, torch prints
only the innermost entry, with a shortened path; the rest is filled in from files and other stacks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from dynascope.compiler.builder.dynamo_texts import in_python, user_expression
from dynascope.compiler.report import Constraint, DynamicCause, GuardOrigin, GuardSite, StackEntry, Symbol
from dynascope.compiler.source.code import user_name
from dynascope.compiler.source.lines import CellResolver, character_column, source_line
from dynascope.compiler.source.origin import in_torch, is_plumbing, torch_folder

_PRINTED = re.compile(
    r"# (?P<file>[^#\n]+?):(?P<line>\d+) in (?P<function>[^\s()]+)(?: \((?P<why>(?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\))?"
)
_FRAMEWORK = re.compile(r"(?P<file>\S+):\d+ in (?P<function>\S+)")
#: the parts of torch that trace the program: they ask for a guard because the program reads a value
_TRACING = ("_dynamo/", "_dynamo\\")
_COMPILING = ("_inductor", "_functorch", "fx/", "fx\\")
#: torch files at the inner end of a stack, called by the code that asks for the guard
_BETWEEN = re.compile(
    r"[/\\]torch[/\\](?:fx[/\\]experimental[/\\](?:symbolic_shapes|sym_node|recording)|_logging[/\\]\w+|utils[/\\]_stats|__init__"
    r"|utils[/\\]_traceback|fx[/\\]interpreter|_subclasses[/\\]fake_tensor)\.py$"
)
Summary = Any  # a traceback.FrameSummary


class Place(NamedTuple):
    """Where a guard comes from: the program's stack, outermost first, and what needed the guard.

    `asked_by` is the function of torch that asked for the guard, or torch's words for the reason.
    """

    stack: tuple[StackEntry, ...] = ()
    origin: GuardOrigin = "unknown"
    asked_by: str | None = None

    @property
    def at(self) -> StackEntry | None:
        """The innermost entry outside torch."""
        return next((e for e in reversed(self.stack) if not in_torch(e.file)), None)

    @property
    def calls(self) -> list[StackEntry]:
        """The whole stack; empty if it would only repeat `at`."""
        return list(self.stack) if len(self.stack) > 1 or self.at is None else []


def place_of(part: Constraint) -> Place:
    """The place of a constraint."""
    return Place(tuple(part.stack or ([part.at] if part.at else [])), part.origin, part.asked_by)


class Places:
    """Reads the stacks of one compile."""

    def __init__(self, cell_of: CellResolver) -> None:
        self.cell_of = cell_of
        self._entries: dict[tuple[Any, ...], StackEntry] = {}
        #: (line, function) of a stack's innermost entry -> such stacks
        self._ending: dict[tuple[int, str], list[tuple[StackEntry, ...]]] = {}
        self._files: set[str] = set()

    def know_files(self, files: Iterable[str]) -> None:
        """Add files whose full paths are known."""
        self._files.update(files)

    def know(self, stack: tuple[StackEntry, ...]) -> None:
        """Add a stack that is known as a whole."""
        if stack:
            known = self._ending.setdefault((stack[-1].line, stack[-1].function), [])
            if stack not in known:
                known.append(stack)

    def entry(self, file: str, line: int, function: str, column: int | None = None, end: int | None = None) -> StackEntry:
        key = (file, line, function, column, end)
        known = self._entries.get(key)
        if known is None:
            known = self._entries[key] = StackEntry(
                file=file, line=line, function=function, cell=self.cell_of(file), source=source_line(file, line).strip(),
                column=character_column(file, line, column), end_column=character_column(file, line, end),
            )  # fmt: skip
        return known

    def objects(self, summaries: Iterable[Summary]) -> tuple[StackEntry, ...]:
        """Convert a stack of `traceback.FrameSummary` objects."""
        return tuple(
            self.entry(s.filename, s.lineno or 0, s.name, getattr(s, "colno", None), getattr(s, "end_colno", None))
            for s in summaries
        )

    def record(self, fields: dict[str, Any]) -> Place:
        """The place in a record of the structured trace, which has the program's stack and the compiler's."""
        stack = tuple(
            self.entry(str(s["filename"]), int(s["line"]), str(s["name"]), s.get("column"), s.get("end_column"))
            for s in fields.get("user_stack") or ()
        )
        outside = [s for s in fields.get("stack") or () if not _BETWEEN.search(str(s["filename"]))]
        if not outside:
            return Place(stack)
        file, function = str(outside[-1]["filename"]), str(outside[-1]["name"])
        return Place(stack, _origin(re.split(r"[/\\]torch[/\\]", file)[-1]), function)

    def printed(self, comment: str, stacks: Iterable[Iterable[Summary]] = ()) -> list[Place]:
        """The places that torch prints beside a guard; `stacks`: the stacks of guards on the same expression."""
        if comment.startswith("# duck sizing"):  # sizes must be equal because they were equal in the traced call
            return [Place(origin="compiler", asked_by="duck sizing")]
        return [self._printed(match, stacks) for match in _PRINTED.finditer(comment)]

    def _printed(self, match: re.Match[str], stacks: Iterable[Iterable[Summary]]) -> Place:
        line, function, short = int(match["line"]), match["function"], match["file"]
        why = match["why"] or ""
        asked = _FRAMEWORK.search(why)
        origin: GuardOrigin
        by: str | None
        if "0/1 specialization" in why:
            origin, by = "compiler", "0/1 specialization"
        elif asked is not None:
            origin, by = _origin(asked["file"]), asked["function"]
        else:
            origin, by = ("compiler", function) if short.startswith(_TRACING) else ("code", None)
        if origin == "compiler" and by == function:
            return Place((), origin, by)
        return Place(self._stack(short, line, function, stacks), origin, by)

    def _stack(self, short: str, line: int, function: str, stacks: Iterable[Iterable[Summary]]) -> tuple[StackEntry, ...]:
        """The stack that ends at this place; `short` is the end of the file's path."""
        for stack in stacks:
            summaries = list(stack)
            for end in range(len(summaries), 0, -1):
                s = summaries[end - 1]
                if s.lineno == line and s.name == function and s.filename.endswith(short):
                    return self.objects(summaries[:end])
        known = [s for s in self._ending.get((line, function), ()) if s[-1].file.endswith(short)]
        if len(known) == 1:
            return known[0]
        if known and len({s[:-1] for s in known}) == 1:  # they differ only in the columns of the last entry
            return (*known[0][:-1], self.entry(known[0][-1].file, line, function))
        files = {s[-1].file for s in known} or {f for f in self._files if f.endswith(short)}
        torch_file = os.path.join(torch_folder(), short)
        file = files.pop() if len(files) == 1 else torch_file if not files and os.path.isfile(torch_file) else short
        return (self.entry(file, line, function),)


def callers(stack: Iterable[Any], cell_of: CellResolver) -> list[StackEntry]:
    """The entries of a Python stack of `schema.Location` objects, outermost first, without those of torch and plumbing."""
    return [
        StackEntry(
            file=s.file,
            line=s.line,
            function=user_name(s.function),
            cell=cell_of(s.file),
            source=source_line(s.file, s.line).strip(),
        )
        for s in stack
        if not is_plumbing(s.file) and not in_torch(s.file)
    ]


def _origin(file: str) -> GuardOrigin:
    """What needs a guard that a torch file asks for; the path is relative to torch's folder."""
    return "code" if file.startswith(_TRACING) else "compiler" if file.startswith(_COMPILING) else "operation"


_SIZE = re.compile(r"^(?P<tensor>.+)\.size\(\)\[(?P<dimension>\d+)\]$")
_SYMBOL = re.compile(r"\b(?:s|u|zf|zuf)\d+\b")
_BOUND = re.compile(r"^(?P<low>-?(?:\d\w*|int_oo)) <= (?P<a>.+)$|^(?P<b>.+) <= (?P<high>-?(?:\d\w*|int_oo))$")


class Symbols:
    """The symbols of one compile, from records of the structured trace, which are given in order."""

    def __init__(self, records: Iterable[tuple[str, dict[str, Any]]], places: Places) -> None:
        self.symbols: dict[str, Symbol] = {}
        self._constraints: list[Constraint] = []
        for name, fields in records:
            place = places.record(fields)
            places.know(place.stack)
            if name.startswith("create_"):
                self._create(fields, place)
            elif name == "guard_added_fast":
                self._constrain(str(fields["expr"]), place)
            elif fields.get("value") is not None:
                self._specialize(str(fields["symbol"]), str(fields["value"]), str(fields.get("reason")), place)

    @property
    def conditions(self) -> dict[str, Place]:
        """Each constraint as the user writes it -> its place; an equality is also there with its sides exchanged."""
        places: dict[str, Place] = {}
        for made in self._constraints:
            left, equal, right = made.text.partition(" == ")
            for text in (made.text, f"{right}{equal}{left}"):
                places.setdefault(text, place_of(made))
        return places

    def _create(self, fields: dict[str, Any], place: Place) -> None:
        name, about = str(fields["symbol"]), fields.get("source")
        text = user_expression(str(about)) if about else None
        size = _SIZE.match(text or "")
        low, _, high = str(fields.get("vr") or "").strip("[]").partition(", ")
        self.symbols[name] = Symbol(
            name=name, source=size["tensor"] if size else text, dimension=int(size["dimension"]) if size else None,
            hint=fields.get("val"), low=low or None, high=high or None, at=place.at, stack=place.calls,
        )  # fmt: skip

    def _constrain(self, expression: str, place: Place, value: str | None = None) -> Constraint:
        made = Constraint(
            expression=expression, text=self._text(expression), value=value,
            at=place.at, stack=place.calls, origin=place.origin, asked_by=place.asked_by,
        )  # fmt: skip
        self._constraints.append(made)
        for name in dict.fromkeys(_SYMBOL.findall(expression)):
            if name in self.symbols:
                self.symbols[name].constraints.append(made)
        return made

    def _specialize(self, name: str, value: str, reason: str, place: Place) -> None:
        """Record a symbol's only value with the constraint that caused it; a new constraint is made if none is known."""
        symbol = self.symbols.get(name)
        if symbol is None or symbol.value is not None:
            return
        cause = symbol.constraints[-1] if symbol.constraints else None
        if reason == "find":  # found later, through another symbol that this one depends on
            others = [self.symbols.get(n) for c in symbol.constraints for n in _SYMBOL.findall(c.expression) if n != name]
            cause = next((c for other in others if other for c in other.constraints if c.value is not None), None)
            if cause is not None:
                symbol.constraints.append(replace(cause, value=value))
                return
        elif (
            cause is not None
            and (cause.at, cause.stack) == (place.at, place.calls)
            and _SYMBOL.findall(cause.expression) == [name]
        ):
            cause.value = value
            return
        self._constrain(f"Eq({name}, {value})", place, value)

    def _text(self, expression: str) -> str:
        """A condition as the user writes it: `Eq(s77, 5)` becomes `x.size()[0] == 5`."""
        return _SYMBOL.sub(lambda m: _written(self.symbols[m[0]]) if m[0] in self.symbols else m[0], in_python(expression))

    def describe(self, sites: Iterable[GuardSite], marked: set[tuple[str, int]], config: str) -> list[Symbol]:
        """The symbols, each with the range that the guards check and the reason why it is dynamic."""
        by_source = {_written(s): s for s in self.symbols.values()}
        for text in _conditions(sites):
            bound = _BOUND.match(text)
            symbol = by_source.get(bound["a"] or bound["b"]) if bound else None
            if symbol is not None and bound is not None:
                symbol.low, symbol.high = bound["low"] or symbol.low, bound["high"] or symbol.high
        for symbol in self.symbols.values():
            symbol.dynamic = _cause(symbol, marked, config)
        return list(self.symbols.values())


def _written(symbol: Symbol) -> str:
    """What a symbol stands for, as guards write it."""
    about = symbol.source or symbol.name
    return about if symbol.dimension is None else f"{about}.size()[{symbol.dimension}]"


def _conditions(sites: Iterable[GuardSite]) -> Iterator[str]:
    return (g.text for site in sites for g in site.guards if g.kind == "SHAPE")


def _cause(symbol: Symbol, marked: set[tuple[str, int]], config: str) -> DynamicCause:
    if symbol.name.startswith(("u", "zuf")):
        return "data"
    if symbol.source is not None and symbol.dimension is not None and (symbol.source, symbol.dimension) in marked:
        return "marked"
    if '"assume_static_by_default": false' in config:
        return "setting"
    return "automatic" if '"automatic_dynamic_shapes": true' in config else "unknown"
