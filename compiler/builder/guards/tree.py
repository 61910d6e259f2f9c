"""Reads the guards of a frame from Dynamo's tree (`dynamo_cpp_guards_str`), and groups them by the stack that made them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from dynascope.compiler.builder import guard_parser
from dynascope.compiler.builder.guards.places import Place, Places
from dynascope.compiler.report import Guard, GuardSite, StackEntry
from dynascope.compiler.source.origin import in_torch

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
_SAME = re.compile(r"^___check_obj_id\((?P<about>.+), \d+\)")


@dataclass
class GuardTree:
    """What the guards of one frame say."""

    sites: list[GuardSite] = field(default_factory=list)
    #: guarded expression, as the user writes it -> class of its value in the traced call
    types: dict[str, str] = field(default_factory=dict)
    #: guarded expression, as the user writes it -> (kind, condition, place) of each guard on it; "" has the conditions on
    #: symbols, and the guards on no expression (on global state, for example)
    made: dict[str, list[tuple[str, str, Place]]] = field(default_factory=dict)
    #: each (tensor, dimension) that the program marked as dynamic
    marked: set[tuple[str, int]] = field(default_factory=set)


def read(text: str, places: Places, stacks: Mapping[str, list[list[Any]]], shapes: Mapping[str, Place]) -> GuardTree:
    """Read a guard tree.

    `stacks`: guarded expression -> the stacks at which guards on it were made; `shapes`: condition on symbols -> its place.
    """
    reader = _Reader(places, stacks, shapes)
    for match in _ENTRY.finditer(text):
        if match["kind"] is None:
            reader.source, reader.about = match["source"], guard_parser.user_expression(match["source"])
            reader.tree.types[reader.about] = match["type"]
        else:
            reader.add(match["kind"], match["text"], outside=not match["bars"])
    return reader.tree


class _Reader:
    def __init__(self, places: Places, stacks: Mapping[str, list[list[Any]]], shapes: Mapping[str, Place]) -> None:
        self.places, self.stacks, self.shapes = places, stacks, shapes
        self.tree = GuardTree()
        #: the guarded expression as Dynamo writes it, and as the user writes it
        self.source = self.about = ""
        self.sites: dict[tuple[StackEntry, ...], GuardSite] = {}
        #: (id of the site, kind, what the guards that are counted together have in common) -> the guard that counts them
        self.known: dict[tuple[int, str, str], Guard] = {}

    def add(self, kind: str, text: str, outside: bool) -> None:
        code, comment = guard_parser.split_comment(text)
        if outside and kind in guard_parser.ON_SYMBOLS:
            self.shape(guard_parser.user_expression(code), comment)
            return
        places = self.places.printed(comment, self.stacks.get(self.source, ()))
        place = places[0] if places else Place(origin="compiler")
        about = self.about or None
        self.tree.made.setdefault(self.about, []).append((kind, code, place))
        if kind in guard_parser.NOISE:
            if kind in _MARKS:
                marked = _MARKED.search(code)
                if marked is not None:
                    about = guard_parser.user_expression(marked["about"])
                    self.tree.marked |= {(about, int(d)) for d in marked["dims"].split(",")}
                return  # not shown: each tensor has several, and most of them say that it is not marked
            self.put(place, Guard(kind=kind, text=self.noise(kind, code, about), source=about), kind)
        else:
            words = guard_parser.as_written(code)
            first, _, rest = words.partition(" ")
            self.put(place, Guard(kind=kind, text=words, source=about), f"{_INDEX.sub('*', first)} {rest}")

    def noise(self, kind: str, code: str, about: str | None) -> str:
        """A condition that Dynamo adds for itself, without addresses."""
        if kind == "TYPE_MATCH":
            return f"type({about}) is {self.tree.types.get(about or '', '?')}"
        same = _SAME.match(guard_parser.user_expression(code))
        if same is not None:
            return f"{same['about']} is the same object"
        return guard_parser.user_expression(code).partition(" against ")[0][:200]

    def shape(self, code: str, comment: str) -> None:
        """Add a condition on symbols; each end of a range has its own place."""
        places = self.places.printed(comment)
        range_ = _RANGE.match(code)
        if range_ is not None and len(places) == 2:
            parts = [f"{range_['low']} <= {range_['about']}", f"{range_['about']} <= {range_['high']}"]
        else:
            parts, places = [code], places[:1] or [self.shapes.get(code, Place())]
        for part, place in zip(parts, places, strict=True):
            self.tree.made.setdefault("", []).append(("SHAPE", part, place))
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
            caller = self.tree.sites.index(self.site(stack[:-1])) if len(stack) > 1 else None
            at = replace(stack[-1], source="") if stack else None  # the report has the text of lines once
            known = self.sites[stack] = GuardSite(at=at, caller=caller, in_torch=at is not None and in_torch(at.file))
            self.tree.sites.append(known)
        return known
