"""The guards of a frame by the line that made them, and why guards of earlier versions failed.

Guards come from two texts of Dynamo: the guard tree (`dynamo_cpp_guards_str`), and the reasons of a recompile (see
`dynamo_texts`).

The places at which guards and symbols were made are read from Dynamo's own objects, records of the structured trace, or a
guard's text.  There, torch prints only the innermost entry, with a shortened path; the rest is filled in from files and other
stacks.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from msgspec.structs import replace

from dynascope.compiler.builder import dynamo_texts
from dynascope.compiler.builder.compile_records import CompileRecord, outcome
from dynascope.compiler.builder.dynamo_texts import split_comment, user_expression
from dynascope.compiler.builder.events import Location
from dynascope.compiler.report import FailedGuard, FailedGuardKind, Frame, Guard, GuardOrigin, GuardSite, Recompile, StackEntry
from dynascope.compiler.report.data import ZERO_ONE, Constraint, DynamicCause, Symbol
from dynascope.compiler.source.code import is_jump
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
    def line(self) -> dict[str, Any]:
        """The fields of the report's parts that have this place; the stack is empty if it would only repeat `at`."""
        return {"at": self.at, "stack": list(self.stack) if len(self.stack) > 1 or self.at is None else []}

    @property
    def fields(self) -> dict[str, Any]:
        return {**self.line, "origin": self.origin, "asked_by": self.asked_by}


def _stack_of(part: Constraint | Symbol) -> tuple[StackEntry, ...]:
    return tuple(part.stack or ([part.at] if part.at else []))


class Places:
    """Reads the stacks of one compile; `files`: those whose full paths are known."""

    def __init__(self, cell_of: CellResolver, files: Iterable[str] = ()) -> None:
        self.cell_of, self.files = cell_of, set(files)
        self.entry = functools.cache(self._entry)

    def _entry(self, file: str, line: int, function: str, column: int | None = None, end: int | None = None) -> StackEntry:
        return StackEntry(
            file=file, line=line, function=function, cell=self.cell_of(file), source=source_line(file, line).strip(),
            column=character_column(file, line, column), end_column=character_column(file, line, end),
        )  # fmt: skip

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

    def printed(self, comment: str, stacks: Iterable[list[Summary]] = ()) -> list[Place]:
        """The places that torch prints beside a guard; `stacks`: the stacks of guards on the same expression."""
        if comment.startswith("# duck sizing"):  # sizes must be equal because they were equal in the traced call
            return [Place(origin="compiler", asked_by="duck sizing")]
        return [self._printed(match, stacks) for match in _PRINTED.finditer(comment)]

    def _printed(self, match: re.Match[str], stacks: Iterable[list[Summary]]) -> Place:
        line, function, short, why = int(match["line"]), match["function"], match["file"], match["why"] or ""
        if short.startswith("("):  # torch knows no line of the program, and prints its own in the brackets
            return Place((), _origin(short[1:]), function)
        if ZERO_ONE in why:  # the line is that of the first use, which did not ask for the guard
            return Place((), "compiler", ZERO_ONE)
        if (asked := _FRAMEWORK.search(why)) is not None:
            place = Place((), _origin(asked["file"]), asked["function"])
        else:
            place = Place((), "compiler", function) if short.startswith(_TRACING) else Place((), "code")
        if place.origin == "compiler" and place.asked_by == function:
            return place
        return place._replace(stack=self._stack(short, line, function, stacks))

    def _stack(self, short: str, line: int, function: str, stacks: Iterable[list[Summary]]) -> tuple[StackEntry, ...]:
        """The stack that ends at this place; `short` is the end of the file's path."""
        for stack in stacks:
            for index, s in reversed([*enumerate(stack)]):
                if s.lineno == line and s.name == function and s.filename.endswith(short):
                    return tuple(
                        self.entry(e.filename, e.lineno or 0, e.name, getattr(e, "colno", None), getattr(e, "end_colno", None))
                        for e in stack[: index + 1]
                    )
        files = {f for f in self.files if f.endswith(short)}
        torch_file = os.path.join(torch_folder(), short)
        file = files.pop() if len(files) == 1 else torch_file if not files and os.path.isfile(torch_file) else short
        return (self.entry(file, line, function),)


def callers(stack: Iterable[Location], cell_of: CellResolver) -> list[StackEntry]:
    """The entries of a Python stack, outermost first, without those of torch and plumbing."""
    return [at.entry(cell_of) for at in stack if not (is_plumbing(at.file) or in_torch(at.file) or is_jump(at.function))]


def _origin(file: str) -> GuardOrigin:
    """What needs a guard that a torch file asks for; the path is relative to torch's folder."""
    return "code" if file.startswith(_TRACING) else "compiler" if file.startswith(_COMPILING) else "operation"


_SIZE = re.compile(r"^(?P<tensor>.+)\.size\(\)\[(?P<dimension>\d+)\]$")
_SYMBOL = re.compile(r"\b(?:s|u|zf|zuf)\d+\b")
_BOUND = re.compile(r"^(?P<low>-?(?:\d\w*|int_oo)) <= (?P<a>.+)$|^(?P<b>.+) <= (?P<high>-?(?:\d\w*|int_oo))$")
#: an equality that holds for only one value of a symbol
_ONE_VALUE = re.compile(r"Eq\((?:[-+. \de]|[*/](?![*/]))*(?:s|zf)\d+(?:[-+. \de]|[*/](?![*/]))*, [-+.\de]+\)")
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
#: the name of a global, without the id of the compile
_GLOBAL = re.compile(r"\bG\['(\w+?)(?:_c\d+)?'\]")
#: kinds of guards on dimensions that are marked as dynamic: in torch 2.9, and in later releases
_MARKS = ("DYNAMIC_INDICES", "DIMENSION_DYNAMIC_MARKING_GUARD")
#: a tensor's size in one dimension, as guards write it
SIZE = re.compile(r"(?P<tensor>[\w.\[\]'\"]+)\.size\(\)\[(?P<dimension>\d+)\]")
_SHAPE = re.compile(r"size=\[(?P<sizes>[^\]]*)\]")
#: kinds of failures that all come from one TENSOR_MATCH guard
_OF_TENSORS = frozenset[FailedGuardKind](
    {"size", "dtype", "rank", "stride", "requires_grad", "tensor class", "device", "not a tensor"}
)


class Version:
    """One compiled version of a code object: what its guards say, and the symbols in its shapes.

    The symbols are made from records of the structured trace, which are in order; then the guard tree is read.
    """

    def __init__(self, record: CompileRecord, cell_of: CellResolver) -> None:
        self.sites: list[GuardSite] = []
        #: guarded expression, as the user writes it -> class of its value in the traced call
        self.types: dict[str, str] = {}
        #: guarded expression, as the user writes it -> (kind, condition, place) of each guard on it; "" has the conditions on
        #: symbols, and the guards on no expression (on global state, for example)
        self.made: dict[str, list[tuple[str, str, Place]]] = {}
        #: each guarded expression, as the user writes it, and the global that it begins at, or ""
        self.names: set[tuple[str, str]] = set()
        self._places = Places(cell_of, record.files)
        #: by name, in the order in which they were made
        self.symbols: dict[str, Symbol] = {}
        #: what stands for a symbol in guards ("x.size()[0]") -> the symbol
        self._written: dict[str, Symbol] = {}
        #: constraint, as the user writes it -> its place; an equality is also there with its sides exchanged
        self._conditions: dict[str, Place] = {}
        #: each (tensor, dimension) that the program marked as dynamic
        self._marked: set[tuple[str | None, int | None]] = set()
        self._site_of: dict[tuple[StackEntry, ...], GuardSite] = {}
        #: (id of the site, kind, what the guards that are counted together have in common) -> the guard that counts them
        self._alike: dict[tuple[int, str, str], Guard] = {}
        for name, fields in record.shapes:
            place = self._places.record(fields)
            if name.startswith("create_"):
                self._create(fields, place)
            elif name == "guard_added_fast":
                self._constrain(str(fields["expr"]), place)
            elif fields.get("value") is not None:
                self._specialize(str(fields["symbol"]), str(fields["value"]), str(fields.get("reason")), place)
        source = about = ""  # the guarded expression as Dynamo writes it, and as the user writes it
        for match in _ENTRY.finditer(record.guard_text or ""):
            kind, code, comment = match["kind"], *split_comment(match["text"] or "")
            if kind is None:
                source, about = match["source"], user_expression(match["source"])
                self.names.add((about, begins[1] if (begins := _GLOBAL.search(source)) is not None else ""))
                self.types.setdefault(about, match["type"])  # a function's defaults have its source, and come after it
            elif kind in ON_SYMBOLS and not match["bars"]:  # outside the tree
                self._shape(user_expression(code), comment)
            else:
                places = self._places.printed(comment, record.guard_stacks.get(source, ()))
                self._guard(kind, code, about, places[0] if places else Place(origin="compiler"))
        for symbol in self.symbols.values():
            symbol.dynamic = self._cause(symbol, record)

    # -- symbols ----------------------------------------------------------------------------------------

    def _create(self, fields: dict[str, Any], place: Place) -> None:
        name, about = str(fields["symbol"]), fields.get("source")
        text = user_expression(str(about)) if about else None
        size = _SIZE.match(text or "")
        low, _, high = str(fields.get("vr") or "").strip("[]").partition(", ")
        symbol = self.symbols[name] = Symbol(
            name=name, source=size["tensor"] if size else text, dimension=int(size["dimension"]) if size else None,
            hint=fields.get("val"), low=low or None, high=high or None, **place.line,
        )  # fmt: skip
        self._written[_written(symbol.source or name, symbol.dimension)] = symbol

    def _constrain(self, expression: str, place: Place, value: str | None = None) -> None:
        known = {name: self.symbols[name] for name in _SYMBOL.findall(expression) if name in self.symbols}
        as_user = {name: _written(symbol.source or name, symbol.dimension) for name, symbol in known.items()}
        text = _SYMBOL.sub(lambda m: as_user.get(m[0], m[0]), dynamo_texts.in_python(expression))
        made = Constraint(expression=expression, text=text, value=value, **place.fields)
        for symbol in known.values():
            symbol.constraints.append(made)
        left, equal, right = text.partition(" == ")
        for condition in (text, f"{right}{equal}{left}"):
            self._conditions.setdefault(condition, place)

    def _specialize(self, name: str, value: str, reason: str, place: Place) -> None:
        """Record a symbol's only value with the constraint that caused it; a new constraint is made if none is known."""
        symbol = self.symbols.get(name)
        if symbol is None or symbol.value is not None:
            return
        if reason == "find":  # found later, through another symbol that this one depends on
            others = [self.symbols.get(n) for c in symbol.constraints for n in _SYMBOL.findall(c.expression) if n != name]
            found = next((c for other in others if other for c in other.constraints if c.value is not None), None)
            if found is not None:
                symbol.constraints.append(replace(found, value=value))
                return
        elif symbol.constraints:
            cause = symbol.constraints[-1]
            if (cause.at, _stack_of(cause)) == (place.at, place.stack) and _SYMBOL.findall(cause.expression) == [name]:
                cause.value = value
                return
        self._constrain(f"Eq({name}, {value})", place, value)

    def _cause(self, symbol: Symbol, record: CompileRecord) -> DynamicCause:
        config = str(record.metrics.get("dynamo_config"))
        if symbol.name.startswith(("u", "zuf")) or str(symbol.source).endswith(".item()"):  # the number that a tensor holds
            return "data"
        if (symbol.source, symbol.dimension) in self._marked:
            return "marked"
        if '"assume_static_by_default": false' in config:
            return "setting"
        is_first = str(record.compile_id).endswith("/0")  # no call before it: a size of a nested tensor, for example
        return "automatic" if '"automatic_dynamic_shapes": true' in config and not is_first else "unknown"

    # -- the guard tree ---------------------------------------------------------------------------------

    def _guard(self, kind: str, code: str, about: str, place: Place) -> None:
        self.made.setdefault(about, []).append((kind, code, place))
        if kind in _MARKS and (marked := _MARKED.search(code)) is not None:
            self._marked |= {(user_expression(marked["about"]), int(d)) for d in marked["dims"].split(",")}
        if kind not in NOISE:
            words = as_written(code)
            first, _, rest = words.partition(" ")
            self._put(place, Guard(kind=kind, text=words, source=about or None), f"{_INDEX.sub('*', first)} {rest}")

    def _shape(self, code: str, comment: str) -> None:
        """Add a condition on symbols; each end of a range has its own place."""
        places = self._places.printed(comment)
        range_ = _RANGE.match(code)
        if range_ is not None and len(places) == 2:
            parts = [f"{range_['low']} <= {range_['about']}", f"{range_['about']} <= {range_['high']}"]
        else:
            parts, places = [code], [self._conditions.get(code) or (places[0] if places else Place())]
        for part, place in zip(parts, places, strict=True):
            self.made.setdefault("", []).append(("SHAPE", part, place))
            about, bound = _ABOUT.match(part), _BOUND.match(part)
            self._put(place, Guard(kind="SHAPE", text=part, source=about and (about["a"] or about["b"])), part)
            if bound is not None and (symbol := self._written.get(bound["a"] or bound["b"])) is not None:
                symbol.low, symbol.high = bound["low"] or symbol.low, bound["high"] or symbol.high

    def _put(self, place: Place, guard: Guard, like: str) -> None:
        site = self._site(place.stack)
        same = self._alike.setdefault((id(site), guard.kind, like), guard)
        if same is guard:
            guard.origin, guard.asked_by = place.origin, place.asked_by
            site.guards.append(guard)
        else:
            same.count += 1

    def _site(self, stack: tuple[StackEntry, ...]) -> GuardSite:
        """The site of a stack; if it is new, it is made, with the sites of its callers."""
        known = self._site_of.get(stack)
        if known is None:
            caller = self.sites.index(self._site(stack[:-1])) if len(stack) > 1 else None
            at = replace(stack[-1], source="") if stack else None  # the report has the text of lines once
            known = self._site_of[stack] = GuardSite(at=at, caller=caller, in_torch=at is not None and in_torch(at.file))
            self.sites.append(known)
        return known

    # -- what a failed guard expected -------------------------------------------------------------------

    def value(self, about: str) -> str | None:
        """The value that an expression ("x.size()[0]", "self.scale") had in the traced call; None: unknown."""
        if about in self._written:
            return self._written[about].hint
        size = SIZE.fullmatch(about)
        for _, condition, _ in self.made.get(size["tensor"] if size else about, ()):
            if size is not None and (shape := _SHAPE.search(condition)) is not None:
                known = dict(enumerate(shape["sizes"].split(", "))).get(int(size["dimension"]), "")
                return known if known.isdigit() else None
            written, _, value = user_expression(condition).partition(" == ")
            if written == about and value:
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
        own, of_symbols = self.made.get(str(guard.source), []), self.made.get("", [])
        if guard.kind == "range":  # the place that set the bound that the value violates
            numbers = [int(n) for n in (guard.before, guard.actual, guard.now) if n is not None and n.lstrip("-").isdigit()]
            if len(numbers) != 3:
                return None
            low, value, high = numbers  # in a guard on a range, `before` is its start and `now` its end (see FailedGuard)
            text = f"{low} <= {guard.source}" if value < low else f"{guard.source} <= {high}"
            return next((place for _, written, place in of_symbols if written == text), None)
        # if it was specialized to one value: where; torch may say so later, too, without a line
        symbol = self._written.get(_written(guard.source, guard.dimension)) if guard.kind in ("size", "value") else None
        constraints = symbol.constraints if symbol is not None else []
        pinned = next((c for c in constraints if c.value is not None or _ONE_VALUE.fullmatch(c.expression)), None)
        if pinned is not None:
            return Place(_stack_of(pinned), pinned.origin, pinned.asked_by)
        if guard.kind in _OF_TENSORS:
            return next((place for kind, _, place in own if kind == "TENSOR_MATCH"), None)
        every = chain(own, of_symbols, *self.made.values())
        return next((place for _, written, place in every if user_expression(written) == condition), None)

    def first_use(self, guard: FailedGuard) -> Place:
        """Where this version's trace first used the size that another version's guard checks."""
        symbol = self._written.get(_written(guard.source, guard.dimension))
        return Place(_stack_of(symbol), "code") if symbol is not None and symbol.at else Place()


def _written(about: str | None, dimension: int | None) -> str:
    """What a symbol stands for, as guards write it."""
    return str(about) if dimension is None else f"{about}.size()[{dimension}]"


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
            self._versions[record.order] = Version(record, self.cell_of)
        return self._versions[record.order]

    def recompile(self, record: CompileRecord, frame: Frame, before: Frame | None) -> Recompile:
        """The recompile that led to a frame; if the compiler refused it, the frame runs eagerly."""
        metrics = record.metrics
        began = record.started or record.unfinished
        refusal = None if began else dynamo_texts.REFUSED.search(str(metrics.get("fail_reason")))
        limits = {m["name"]: int(m["value"]) for m in dynamo_texts.LIMIT.finditer(str(metrics.get("dynamo_config")))}
        least = min(limits, key=lambda name: limits[name], default="recompile_limit")
        refused_by = None if began else refusal["name"] or refusal["old"] if refusal else least
        # the global state is checked first: where other versions fail at another guard, they are of this state
        texts = sorted(dynamo_texts.recompile_texts(record.recompile_text or ""), key=lambda text: "GLOBAL_STATE" in text)
        guards = self.failed(record, texts, self.version(record))
        if in_torch(frame.file):  # a wrapper around the user's module `fn`, or a function, with names of its own
            for guard in guards:
                source = re.sub(r"^args\[(\d+)\]", lambda m: f"argument {int(m[1]) + 1}", guard.source or "")
                if frame.code_name == "inner":
                    source = "what is compiled" if source == "fn" else re.sub(r"^fn(?=[.\[])", frame.name, source)
                guard.source = re.sub(r"^kwargs\['(\w+)'\]", r"\1", source) or None
        entries_before = metrics.get("cache_size") if refused_by is None else len(texts)
        is_added = outcome(record) == "compiled"  # a version may have no graph, or be of a wrapper of torch's
        return Recompile(
            frame=frame.id, of=before.id if before else None, reasons=[dynamo_texts.without_stack(t) for t in texts],
            failed_guards=guards,
            stack=callers(record.callers, self.cell_of), call=record.call,
            entries=None if entries_before is None else entries_before + is_added,
            limit=int(refusal["value"]) if refusal and refusal["value"] else limits.get(refused_by or least),
            refused_by=refused_by,
        )  # fmt: skip

    def failed(self, record: CompileRecord, texts: list[str], new: Version) -> list[FailedGuard]:
        """The failed guards, with values and source lines from the versions that they belong to and from the new one."""
        guards = [dynamo_texts.failed_guard(text) for text in texts]
        #: what the failing call has, as the failed checks print it: ("size", "x.size()[0]") -> "3"
        printed = {(g.kind, _written(g.source, g.dimension)): g.now for g in guards}
        unknown = Version(CompileRecord(None), self.cell_of)
        for guard, text in zip(guards, texts, strict=True):
            of = self._records.get((record.reset_period, guard.compile_id))
            old, now = self.version(of) if of is not None else unknown, new
            condition, about = user_expression(dynamo_texts.condition_of(text)), str(guard.source)
            name = about.partition(".size()")[0]
            if sum(named == name for named, _ in old.names | new.names) > 1:  # a local and a global, for example: which is it?
                old = now = unknown
            if guard.kind in ("type", "not a tensor"):
                guard.before, guard.now = old.types.get(about), now.types.get(about) or printed.get(("not a tensor", about))
            elif guard.kind == "length":
                guard.actual = now.length(about)
            elif guard.kind == "expression":
                values = {m[0]: now.value(m[0]) or printed.get(("size", m[0])) for m in SIZE.finditer(condition)}
                guard.actual = ", ".join(f"{name} is {value}" for name, value in values.items() if value) or None
            elif guard.kind in ("value", "range", "minimum"):
                guard.actual = now.value(about) or printed.get(("size", about))
            place, beside = old.place(guard, condition) or Place(), self.printed(text)
            if len(beside.stack) > len(place.stack) and place.asked_by != ZERO_ONE:
                place = beside if place.origin == "unknown" else place._replace(stack=beside.stack)
            if place.at is None and guard.kind == "size":
                place = now.first_use(guard)
            for name, value in place.fields.items():
                setattr(guard, name, value)
        return guards

    def printed(self, text: str) -> Place:
        """The place that torch prints with a reason: the whole stack after it, or the innermost line beside it."""
        if stack := dynamo_texts.entries(text):
            return Place(tuple(at.entry(self.cell_of) for at in stack), "code")
        beside = Places(self.cell_of).printed(split_comment(text)[1])
        return beside[0] if len(beside) == 1 else Place()
