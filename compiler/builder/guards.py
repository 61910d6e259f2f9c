"""The guards of a frame by the line that made them, and why guards of earlier versions failed.

Guards come from two texts of Dynamo: the guard tree (`dynamo_cpp_guards_str`), and the reasons of a recompile (see
`dynamo_texts`).

The places at which guards and symbols were made are read from Dynamo's own objects, records of the structured trace, or a
guard's text.  There, torch prints only the innermost entry, with a shortened path; the rest is filled in from files and other
stacks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec.structs import replace

from dynascope.compiler.builder.compile_records import CompileRecord, outcome
from dynascope.compiler.builder.dynamo_texts import (
    COMPILE,
    LIMIT,
    REFUSED,
    failed_guard,
    in_python,
    recompile_texts,
    split_comment,
    user_expression,
    without_stack,
)
from dynascope.compiler.report import (
    Constraint,
    DynamicCause,
    FailedGuard,
    FailedGuardKind,
    Frame,
    Guard,
    GuardOrigin,
    GuardSite,
    Recompile,
    StackEntry,
    Symbol,
)
from dynascope.compiler.source.code import is_jump, user_name
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
        self._files: set[str] = set()

    def know_files(self, files: Iterable[str]) -> None:
        """Add files whose full paths are known."""
        self._files.update(files)

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
        files = {f for f in self._files if f.endswith(short)}
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
        if not (is_plumbing(s.file) or in_torch(s.file) or is_jump(s.function))
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


_TENSOR = re.compile(
    r"check_tensor\((?P<source>.*?), (?P<type>\w+), .*?torch\.(?P<dtype>\w+), device=(?P<device>[^,]+), "
    r"requires_grad=(?P<grad>\w+), size=\[(?P<size>[^\]]*)\]"
)
#: kinds of guards that, outside the tree, are conditions on symbols (sizes, numbers); Dynamo checks them last
ON_SYMBOLS = ("LAMBDA_GUARD", "SYMBOLIC_SHAPE_GUARD")
#: kinds of guards that Dynamo adds for itself, such as those on types, identities, global state and marks of dynamic sizes
NOISE = frozenset({
    "ID_MATCH", "TYPE_MATCH", "DIMENSION_DYNAMIC_MARKING_GUARD", "NO_HASATTR", "DICT_CONTAINS", "NO_TENSOR_ALIASING",
    "LAMBDA_GUARD", "GLOBAL_STATE", "TORCH_FUNCTION_MODE_STACK", "DEFAULT_DEVICE", "DUAL_LEVEL_MATCH",
    "DETERMINISTIC_ALGORITHMS", "CLASS_MATCH", "CLOSURE_MATCH", "FUNCTION_MATCH", "MODULE_MATCH",
    "CONSTANT_SUBCLASS_MATCH", "WEAKREF_ALIVE", "DYNAMIC_INDICES",
})  # fmt: skip


def as_written(text: str) -> str:
    """A guard's condition in readable form."""
    tensor = _TENSOR.match(text)
    if tensor:
        grad = ", requires grad" if tensor["grad"] == "True" else ""
        device = "" if tensor["device"] == "None" else f" on device {tensor['device']}"
        return f"{user_expression(tensor['source'])} is a {tensor['dtype']} tensor of shape [{tensor['size']}]{device}{grad}"
    return user_expression(text)


_ENTRY = re.compile(
    r"^(?P<bars>[| ]*)\+- (?:(?P<kind>[A-Z_]+): (?P<text>.*)"
    r"|.*?GuardManager: source=(?P<source>.*?), (?:accessed_by=.*?, )?type=<class '(?P<type>[^']*)'>.*)$",
    re.M,
)
_RANGE = re.compile(r"^(?P<low>-?\w+) <= (?P<about>.+) <= (?P<high>-?\w+)$")
_ABOUT = re.compile(r"^-?\d\w* <= (?P<a>.+?)$|^(?P<b>.+?) (?:==|!=|<=|<|>=|>) ")
_INDEX = re.compile(r"(?<=[\[.])\d+(?=[\].]|$)")
_MARKED = re.compile(
    r"^\(\((?:getattr\()?(?P<about>.+?)(?:, '|\.)_dynamo_\w*(?:dynamic|unbacked)_indices"
    r"(?:', set\(\)\))?\.issubset\(\{(?P<dims>[\d, ]+)\}"
)
#: kinds of guards on dimensions that are marked as dynamic: in torch 2.9, and in later releases
_MARKS = ("DYNAMIC_INDICES", "DIMENSION_DYNAMIC_MARKING_GUARD")


def read_tree(text: str, places: Places, stacks: Mapping[str, list[list[Any]]], shapes: Mapping[str, Place]) -> Version:
    """Read a guard tree.

    `stacks`: guarded expression -> the stacks at which guards on it were made; `shapes`: condition on symbols -> its place.
    """
    reader = _TreeReader(places, stacks, shapes)
    for match in _ENTRY.finditer(text):
        if match["kind"] is None:
            reader.source, reader.about = match["source"], user_expression(match["source"])
            reader.version.types[reader.about] = match["type"]
        else:
            reader.add(match["kind"], match["text"], outside=not match["bars"])
    return reader.version


class _TreeReader:
    def __init__(self, places: Places, stacks: Mapping[str, list[list[Any]]], shapes: Mapping[str, Place]) -> None:
        self.places, self.stacks, self.shapes = places, stacks, shapes
        self.version = Version()
        #: the guarded expression as Dynamo writes it, and as the user writes it
        self.source = self.about = ""
        self.sites: dict[tuple[StackEntry, ...], GuardSite] = {}
        #: (id of the site, kind, what the guards that are counted together have in common) -> the guard that counts them
        self.known: dict[tuple[int, str, str], Guard] = {}

    def add(self, kind: str, text: str, outside: bool) -> None:
        code, comment = split_comment(text)
        if outside and kind in ON_SYMBOLS:
            self.shape(user_expression(code), comment)
            return
        places = self.places.printed(comment, self.stacks.get(self.source, ()))
        place = places[0] if places else Place(origin="compiler")
        self.version.made.setdefault(self.about, []).append((kind, code, place))
        if kind in _MARKS and (marked := _MARKED.search(code)) is not None:
            self.version.marked |= {(user_expression(marked["about"]), int(d)) for d in marked["dims"].split(",")}
        if kind not in NOISE:
            words = as_written(code)
            first, _, rest = words.partition(" ")
            self.put(place, Guard(kind=kind, text=words, source=self.about or None), f"{_INDEX.sub('*', first)} {rest}")

    def shape(self, code: str, comment: str) -> None:
        """Add a condition on symbols; each end of a range has its own place."""
        places = self.places.printed(comment)
        range_ = _RANGE.match(code)
        if range_ is not None and len(places) == 2:
            parts = [f"{range_['low']} <= {range_['about']}", f"{range_['about']} <= {range_['high']}"]
        else:
            parts, places = [code], [self.shapes.get(code) or (places[0] if places else Place())]
        for part, place in zip(parts, places, strict=True):
            self.version.made.setdefault("", []).append(("SHAPE", part, place))
            about = _ABOUT.match(part)
            self.put(place, Guard(kind="SHAPE", text=part, source=about and (about["a"] or about["b"])), part)

    def put(self, place: Place, guard: Guard, like: str) -> None:
        site = self.site(place.stack)
        same = self.known.setdefault((id(site), guard.kind, like), guard)
        if same is guard:
            guard.origin, guard.asked_by = place.origin, place.asked_by
            site.guards.append(guard)
        else:
            same.count += 1

    def site(self, stack: tuple[StackEntry, ...]) -> GuardSite:
        """The site of a stack; if it is new, it is made, with the sites of its callers."""
        known = self.sites.get(stack)
        if known is None:
            caller = self.version.sites.index(self.site(stack[:-1])) if len(stack) > 1 else None
            at = replace(stack[-1], source="") if stack else None  # the report has the text of lines once
            known = self.sites[stack] = GuardSite(at=at, caller=caller, in_torch=at is not None and in_torch(at.file))
            self.version.sites.append(known)
        return known


#: a tensor's size in one dimension, as guards write it
SIZE = re.compile(r"(?P<tensor>[\w.\[\]'\"]+)\.size\(\)\[(?P<dimension>\d+)\]")
_SHAPE = re.compile(r"size=\[(?P<sizes>[^\]]*)\]")
#: kinds of failures that all come from one TENSOR_MATCH guard
_OF_TENSORS = frozenset[FailedGuardKind](
    {"size", "dtype", "rank", "stride", "requires_grad", "tensor class", "device", "not a tensor"}
)


@dataclass
class Version:
    """One compiled version of a code object: what its guards say, and the symbols in its shapes."""

    sites: list[GuardSite] = field(default_factory=list)
    #: guarded expression, as the user writes it -> class of its value in the traced call
    types: dict[str, str] = field(default_factory=dict)
    #: guarded expression, as the user writes it -> (kind, condition, place) of each guard on it; "" has the conditions on
    #: symbols, and the guards on no expression (on global state, for example)
    made: dict[str, list[tuple[str, str, Place]]] = field(default_factory=dict)
    #: each (tensor, dimension) that the program marked as dynamic
    marked: set[tuple[str, int]] = field(default_factory=set)
    symbols: list[Symbol] = field(default_factory=list)

    def value(self, about: str) -> str | None:
        """The value that an expression ("x.size()[0]", "self.scale") had in the traced call; None: unknown."""
        size = SIZE.fullmatch(about)
        name, dimension = (size["tensor"], int(size["dimension"])) if size else (about, None)
        for symbol in self.symbols:
            if (symbol.source, symbol.dimension) == (name, dimension):
                return symbol.hint
        for _, condition, _ in self.made.get(name, ()):
            shape = _SHAPE.search(condition) if dimension is not None else None
            if shape is not None and dimension is not None:
                sizes = shape["sizes"].split(", ")
                known = sizes[dimension] if dimension < len(sizes) else None
                return known if known and known.isdigit() else None
            written, _, value = user_expression(condition).partition(" == ")
            if written == name and value:
                return value
        return None

    def length(self, about: str) -> str | None:
        """The length that a container had in the traced call; None: unknown."""
        conditions = [user_expression(c) for _, c, _ in self.made.get(about, ())]
        known = (c.removeprefix(f"len({about})")[4:] for c in conditions if c.startswith(f"len({about}) "))
        # iterating over a dict makes a guard on each key
        keys = sum(name.startswith(f"list(dict.keys({about}))[") for name in self.made)
        return next(known, "0" if f"not {about}" in conditions else str(keys) if keys else None)

    def place(self, guard: FailedGuard, condition: str) -> Place | None:
        """Where one of this version's guards comes from; None: unknown."""
        if guard.kind == "range":
            return self._end_of_range(guard)
        made = self.made
        own = made.get(str(guard.source), [])
        if guard.kind in _OF_TENSORS:
            return self._pinned(guard) or next((place for kind, _, place in own if kind == "TENSOR_MATCH"), None)
        every = (m for candidates in (own, made.get("", []), *made.values()) for m in candidates)
        return next((place for _, written, place in every if user_expression(written) == condition), None)

    def first_use(self, guard: FailedGuard) -> Place:
        """Where this version's trace first used the size that another version's guard checks."""
        found = (s for s in self.symbols if s.at and (s.source, s.dimension) == (guard.source, guard.dimension))
        return next((Place(tuple(s.stack) or ((s.at,) if s.at else ()), "code") for s in found), Place())

    def _pinned(self, guard: FailedGuard) -> Place | None:
        """Where the guarded size was specialized to one value; None if it has no symbol, or was not specialized."""
        for symbol in self.symbols:
            if guard.dimension is not None and (symbol.source, symbol.dimension) == (guard.source, guard.dimension):
                cause = next((c for c in symbol.constraints if c.value is not None), None)
                return None if cause is None else place_of(cause)
        return None

    def _end_of_range(self, guard: FailedGuard) -> Place | None:
        """The place that set the bound that the value violates; None if the value, a bound or the place is unknown."""
        numbers = [n for n in (guard.before, guard.actual, guard.now) if n is not None and n.lstrip("-").isdigit()]
        if len(numbers) != 3:
            return None
        low, value, high = map(int, numbers)  # in a guard on a range, `before` is its start and `now` its end (see FailedGuard)
        text = f"{low} <= {guard.source}" if value < low else f"{guard.source} <= {high}"
        return next((place for _, written, place in self.made.get("", ()) if written == text), None)


def _read_version(record: CompileRecord, cell_of: CellResolver) -> Version:
    places = Places(cell_of)
    places.know_files(record.files)
    symbols = Symbols(record.shapes, places)
    version = read_tree(record.guard_text or "", places, record.guard_stacks, symbols.conditions)
    version.symbols = symbols.describe(version.sites, version.marked, str(record.metrics.get("dynamo_config")))
    return version


_STACK = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)', re.M)


class Recompiles:
    """Makes the recompiles of a report; compiles are added in the order in which they began."""

    def __init__(self, cell_of: CellResolver) -> None:
        self.cell_of = cell_of
        #: by reset period (see `CompileRecord`) and compile id
        self._records: dict[tuple[int, str | None], CompileRecord] = {}
        #: by index of the record
        self._versions: dict[int, Version] = {}

    def add(self, record: CompileRecord) -> None:
        self._records[record.reset_period, record.compile_id] = record

    def version(self, record: CompileRecord) -> Version:
        """The guards and symbols of a compile: reading them is most of what a report costs."""
        if record.order not in self._versions:
            self._versions[record.order] = _read_version(record, self.cell_of)
        return self._versions[record.order]

    def recompile(self, record: CompileRecord, frame: Frame, before: Frame | None) -> Recompile:
        """The recompile that led to a frame; if the compiler refused it, the frame runs eagerly."""
        metrics = record.metrics
        began = record.started or record.unfinished
        refusal = None if began else REFUSED.search(str(metrics.get("fail_reason")))
        refused_by = None if began else refusal["name"] or refusal["old"] if refusal else "recompile_limit"
        limits = {m["name"]: int(m["value"]) for m in LIMIT.finditer(str(metrics.get("dynamo_config")))}
        texts = recompile_texts(record.recompile_text or "")
        guards = self.failed(record, texts, self.version(record))
        if in_torch(frame.file):  # a wrapper around the user's module `fn`, or a function, with names of its own
            for guard in guards:
                source = re.sub(r"^args\[(\d+)\]", lambda m: f"argument {int(m[1]) + 1}", guard.source or "")
                source = re.sub(r"^fn(?=[.\[])", frame.name, source) if frame.code_name == "inner" else source
                guard.source = re.sub(r"^kwargs\['(\w+)'\]", r"\1", source) or None
        entries_before = metrics.get("cache_size") if refused_by is None else len(texts)
        is_added = outcome(record) == "compiled"  # a version may have no graph, or be of a wrapper of torch's
        return Recompile(
            frame=frame.id, of=before.id if before else None, reasons=[without_stack(t) for t in texts],
            failed_guards=guards,
            stack=callers(record.callers, self.cell_of), call=record.call,
            entries=None if entries_before is None else entries_before + is_added,
            limit=int(refusal["value"]) if refusal and refusal["value"] else limits.get(refused_by or "recompile_limit"),
            refused_by=refused_by,
        )  # fmt: skip

    def failed(self, record: CompileRecord, texts: list[str], new: Version) -> list[FailedGuard]:
        """The failed guards, with values and source lines from the versions that they belong to and from the new one."""
        guards = [failed_guard(without_stack(text)) for text in texts]
        #: sizes in the failing call, as the failed tensor checks print them
        sizes = {f"{g.source}.size()[{g.dimension}]": g.now for g in guards if g.kind == "size"}
        for guard, text in zip(guards, texts, strict=True):
            version = COMPILE.match(text)
            guard.compile_id = version["id"] if version else None
            of = self._records.get((record.reset_period, guard.compile_id))
            old = self.version(of) if of is not None else Version()
            printed_condition, _ = split_comment(COMPILE.sub("", without_stack(text)))
            condition = user_expression(printed_condition)
            about = str(guard.source)
            if guard.kind == "type":
                guard.before, guard.now = old.types.get(about), new.types.get(about)
            elif guard.kind == "length":
                guard.actual = new.length(about)
            elif guard.kind == "expression":
                values = {m[0]: new.value(m[0]) or sizes.get(m[0]) for m in SIZE.finditer(condition)}
                guard.actual = ", ".join(f"{name} is {value}" for name, value in values.items() if value) or None
            elif guard.kind in ("value", "range", "minimum"):
                guard.actual = new.value(about) or sizes.get(about)
            place, printed = old.place(guard, condition) or Place(), self.printed(text)
            if len(printed.stack) > len(place.stack):
                place = printed if place.origin == "unknown" else place._replace(stack=printed.stack)
            if place.at is None and guard.kind == "size":
                place = new.first_use(guard)
            guard.at, guard.stack, guard.origin, guard.asked_by = place.at, place.calls, place.origin, place.asked_by
        return guards

    def printed(self, text: str) -> Place:
        """The place that torch prints with a reason: the whole stack after it, or the innermost line beside it."""
        places = Places(self.cell_of)
        stack = tuple(places.entry(m["file"], int(m["line"]), m["function"]) for m in _STACK.finditer(text))
        if stack:
            return Place(stack, "code")
        beside = places.printed(split_comment(text)[1])
        return beside[0] if len(beside) == 1 else Place()
