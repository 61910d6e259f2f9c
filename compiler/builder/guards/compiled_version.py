"""One compiled version of a code object: its guards, its symbols, and the input values that these reveal."""

from __future__ import annotations

import re

from dynascope.compiler.builder import guard_parser
from dynascope.compiler.builder.compile_records import CompileRecord
from dynascope.compiler.builder.guards.places import Place, Places, place_of
from dynascope.compiler.builder.guards.symbols import Symbols
from dynascope.compiler.builder.guards.tree import GuardTree, read
from dynascope.compiler.report import FailedGuard, FailedGuardKind, Symbol
from dynascope.compiler.source.lines import CellResolver

#: a tensor's size in one dimension, as guards write it
SIZE = re.compile(r"(?P<tensor>[\w.\[\]'\"]+)\.size\(\)\[(?P<dimension>\d+)\]")
_SHAPE = re.compile(r"size=\[(?P<sizes>[^\]]*)\]")
#: kinds of failures that all come from one TENSOR_MATCH guard
_OF_TENSORS = frozenset[FailedGuardKind](
    {"size", "dtype", "rank", "stride", "requires_grad", "tensor class", "device", "not a tensor"}
)


class Version:
    """One compiled version of a code object: its guards, and the symbols in its shapes."""

    def __init__(self, tree: GuardTree | None = None, symbols: list[Symbol] | None = None) -> None:
        self.tree = tree or GuardTree()
        self.symbols = symbols or []

    def value(self, about: str) -> str | None:
        """The value that an expression ("x.size()[0]", "self.scale") had in the traced call; None: unknown."""
        size = SIZE.fullmatch(about)
        name, dimension = (size["tensor"], int(size["dimension"])) if size else (about, None)
        for symbol in self.symbols:
            if (symbol.source, symbol.dimension) == (name, dimension):
                return symbol.hint
        for _, condition, _ in self.tree.made.get(name, ()):
            shape = _SHAPE.search(condition) if dimension is not None else None
            if shape is not None and dimension is not None:
                sizes = shape["sizes"].split(", ")
                known = sizes[dimension] if dimension < len(sizes) else None
                return known if known and known.isdigit() else None
            written, _, value = guard_parser.user_expression(condition).partition(" == ")
            if written == name and value:
                return value
        return None

    def length(self, about: str) -> str | None:
        """The length that a container had in the traced call; None: unknown."""
        conditions = (guard_parser.user_expression(c).partition(" == ") for _, c, _ in self.tree.made.get(about, ()))
        return next((value for written, _, value in conditions if written == f"len({about})"), None)

    def place(self, guard: FailedGuard, condition: str) -> Place | None:
        """Where one of this version's guards comes from; None: unknown."""
        if guard.kind == "range":
            return self._end_of_range(guard)
        made = self.tree.made
        own = made.get(str(guard.source), [])
        if guard.kind in _OF_TENSORS:
            return self._pinned(guard) or next((place for kind, _, place in own if kind == "TENSOR_MATCH"), None)
        every = (m for candidates in (own, made.get("", []), *made.values()) for m in candidates)
        return next((place for _, written, place in every if guard_parser.user_expression(written) == condition), None)

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
        return next((place for _, written, place in self.tree.made.get("", ()) if written == text), None)


def read_version(record: CompileRecord, cell_of: CellResolver, files: set[str]) -> Version:
    """The guards and symbols of a compile; `files`: names of files in its stacks and graph."""
    places = Places(cell_of)
    places.know_files(files)
    symbols = Symbols(record.shapes, places)
    tree = read(record.guard_text or "", places, record.guard_stacks, symbols.conditions)
    config = str(record.metrics.get("dynamo_config"))
    return Version(tree, symbols.describe(tree.sites, tree.marked, config))
