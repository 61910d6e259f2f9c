"""The symbols of a frame: what each stands for, why it is a symbol, and which lines constrained it or gave it one value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from dynascope.compiler.builder.guard_parser import user_expression
from dynascope.compiler.builder.guards.places import Place, Places, place_of
from dynascope.compiler.report import Constraint, DynamicCause, GuardSite, Symbol

_SIZE = re.compile(r"^(?P<tensor>.+)\.size\(\)\[(?P<dimension>\d+)\]$")
_SYMBOL = re.compile(r"\b(?:s|u|zf|zuf)\d+\b")
_RELATION = re.compile(r"^(?P<name>Eq|Ne)\((?P<operands>.*)\)$", re.S)
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


def in_python(expression: str) -> str:
    """A condition in Python's notation: `Eq(s77, 5)` becomes `s77 == 5`."""
    relation = _RELATION.match(expression)
    if relation is None:
        return expression
    left, right = _operands(relation["operands"])
    return f"{left} {'==' if relation['name'] == 'Eq' else '!='} {right}"


def _written(symbol: Symbol) -> str:
    """What a symbol stands for, as guards write it."""
    about = symbol.source or symbol.name
    return about if symbol.dimension is None else f"{about}.size()[{symbol.dimension}]"


def _operands(text: str) -> tuple[str, str]:
    """The two operands of a relation."""
    depth = 0
    for index, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            return text[:index].strip(), text[index + 1 :].strip()
    return text, ""


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
