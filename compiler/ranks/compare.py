"""Finds the first step in which two groups of ranks differ: what differs, where, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, TypeVar

from dynascope.compiler.ranks import structure
from dynascope.compiler.ranks.report import Difference, DifferenceKind
from dynascope.compiler.ranks.structure import Normal, RankRecord, Step
from dynascope.compiler.report import Break, Frame, Node, ReportData

#: matches torch's files, by the names of their folders, because the rank may have run on another machine
_IN_TORCH = re.compile(r"[\\/](?:site|dist)-packages[\\/](?:torch|functorch)[\\/]")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d.]*(?:e[+-]?\d+)?\b")
_Of = TypeVar("_Of")


@dataclass
class Side:
    """One of the two groups that are compared, represented by one of its ranks."""

    record: RankRecord
    report: ReportData
    #: the rank's numbers, in the job and on its machine; unequal constants count as equal if each is a number of its own side
    numbers: frozenset[int | None]

    @cached_property
    def steps(self) -> list[Step]:
        return structure.steps_of(self.report, finished=self.record.rank.status == "finished")

    def same_constants(self, mine: list[int], reference: Side, theirs: list[int]) -> bool:
        """Whether the integers of each pair are equal, or each is the number of its rank."""
        pairs = zip(mine, theirs, strict=False)
        return len(mine) == len(theirs) and all(a == b or (a in self.numbers and b in reference.numbers) for a, b in pairs)


def compare(side: Side, reference: Side) -> Difference | None:
    """The first difference between a group and the reference; None if they do not differ."""
    number = _first(side, reference)
    if number is None:
        return None
    steps = _Steps(side, reference, number)
    found = next(steps.differences(), None) or Difference(kind="graph")
    found.step = number
    found.frame, found.reference_frame = (step.frame.id if step is not None else None for step in steps.both)
    known = next(filter(None, steps.both), None)
    return steps.at(found, known) if found.file is None and known is not None else found


def _first(side: Side, reference: Side) -> int | None:
    """The first step that Dynamo compiled differently; if there is none, the first with different collectives."""
    for stage in ("exact", "forward", "backward"):
        for number, (one, other) in enumerate(zip_longest(side.record.steps, reference.record.steps)):
            if one is None or other is None:
                return number
            if getattr(one, stage) != getattr(other, stage):
                is_alike = stage == "exact" and one.loose == other.loose  # up to constants that are the number of the rank
                if not (is_alike and side.same_constants(one.constants, reference, other.constants)):
                    return number
    return None


def _both(words: Callable[[_Of], str | None], mine: _Of | None, theirs: _Of | None) -> dict[str, Any]:
    """The values of a difference in words; None for what a side lacks."""
    return {"value": None if mine is None else words(mine), "reference": None if theirs is None else words(theirs)}


class _Steps:
    """A step of a group and that of the reference; one of the two may lack it."""

    def __init__(self, side: Side, reference: Side, number: int) -> None:
        self._sides, self._number = (side, reference), number
        self.both = [s.steps[number] if number < len(s.steps) else None for s in self._sides]
        self._normals = Normal(side.record.names), Normal(reference.record.names)

    def at(self, found: Difference, step: Step, part: Frame | Break | None = None) -> Difference:
        """Give a difference the place of a part of a step, if not of its frame."""
        part = part or step.frame
        found.file, found.line, found.cell = part.file, part.line, part.cell
        found.place_of = "group" if step is self.both[0] else "reference"
        found.function, found.source = (part.function, part.source) if isinstance(part, Break) else (part.name, "")
        return found

    def differences(self) -> Iterator[Difference]:
        """The differences between the two steps, the one that explains most first."""
        mine, theirs = self.both
        names = _both(_name, mine, theirs)
        recompiles = [structure.recompile_facts(step.recompile) if step is not None else None for step in self.both]
        if recompiles[0] != recompiles[1]:
            step, recompile = next((s, s.recompile) for s in self.both if s is not None and s.recompile is not None)
            guards = recompile.failed_guards
            subject, reason = guards[0].source if guards else None, next(iter(recompile.reasons), None)
            values = _both(lambda step: _failed(step) or _name(step), mine, theirs)
            yield self.at(Difference(kind="recompile", subject=subject, reason=reason, **values), step)
        if mine is None or theirs is None:
            yield Difference(kind="ends", subject=names["value"] or names["reference"], **names)
            return
        a, b = mine.frame, theirs.frame
        if structure.function_facts(a) != structure.function_facts(b):
            yield Difference(kind="function", subject="function", **names)
        # a frame that failed, was skipped, or came from a cache in only one of the groups
        statuses: dict[str, Any] = {"value": a.status, "reference": b.status}
        status = next((s for s in _OUTCOMES if s in statuses.values()), None)
        if status is not None and a.status != b.status:
            step = mine if a.status == status else theirs
            reason = (step.broken.type if step.broken is not None else None) or step.frame.reason
            yield self.at(Difference(kind=_OUTCOMES[status], reason=reason, **statuses), step, step.broken)
        broken = mine.broken or theirs.broken
        if broken is not None and structure.break_facts(mine.broken) != structure.break_facts(theirs.broken):
            words = _both(lambda b: f"{structure.basename(b.file)}:{b.line} {b.source.strip()}", mine.broken, theirs.broken)
            found = Difference(kind="break", reason=broken.type or broken.reason, **words)
            yield self.at(found, mine if mine.broken else theirs, broken)
        yield from self._collectives()
        yield from self._graphs(mine, theirs)
        if a.status != b.status:
            yield Difference(kind="skip", reason=a.reason or b.reason, **statuses)

    def _collectives(self) -> Iterator[Difference]:
        """The first collective that differs in kind, reduction, process group, dtype or shape, or in being in the backward."""
        own, others = (
            structure.collectives(step.graph, side.record.names) if step is not None and step.graph else []
            for step, side in zip(self.both, self._sides, strict=True)
        )
        for number, (one, other) in enumerate(zip_longest(own, others)):
            pairs = zip((one, other), self._normals, strict=True)
            mine, theirs = (c and [*structure.collective_facts(c, normal), c.backward] for c, normal in pairs)
            if mine != theirs:
                before = self._sides[0].steps[: self._number]
                position = number + sum(len(structure.collectives(s.graph)) for s in before if s.graph)
                values = _both(structure.describe, one, other)
                yield Difference(kind="collective", subject=(one or other).kind, position=position, **values)
                return

    def _graphs(self, mine: Step, theirs: Step) -> Iterator[Difference]:
        """The first node in which the graphs differ."""
        own, others = (step.graph.nodes if step.graph else [] for step in (mine, theirs))
        for one, other in zip_longest(own, others):
            found = self._nodes(one, other)
            if found is None:
                continue
            step, node, nodes = (mine, one, own) if one is not None else (theirs, other, others)
            # the place in the user's code; if the node has none, that of the first of its readers that has one
            for candidate in (node, *(n for n in nodes if node.name in n.inputs)):
                if candidate.file is not None and candidate.line is not None and not _IN_TORCH.search(candidate.file):
                    self.at(found, step)
                    found.cell = step.frame.cell if candidate.file == step.frame.file else None
                    found.file, found.line = candidate.file, candidate.line
                    break
            yield found
            return

    def _nodes(self, a: Node | None, b: Node | None) -> Difference | None:
        if a is None or b is None:
            return Difference(kind="graph", subject=(a or b).name, **_both(_node, a, b))  # type: ignore[union-attr]
        subject = _argument(a)
        if (a.op, a.target) != (b.op, b.target):
            return Difference(kind="graph", subject=subject, **_both(_node, a, b))
        mine, theirs = (structure.op_facts(node, normal) for node, normal in zip((a, b), self._normals, strict=True))
        for fact, kind, words in _FACTS:
            if mine[fact] != theirs[fact]:
                subject = f"stride of {subject}" if fact == "stride" else subject
                return Difference(kind=kind, subject=subject, **_both(words, a, b))
        own, others = list[int](), list[int]()
        alike = structure.without_integers(mine["code"], own) == structure.without_integers(theirs["code"], others)
        if alike and self._sides[0].same_constants(own, self._sides[1], others):
            return None
        same = _NUMBER.sub("#", mine["code"]) == _NUMBER.sub("#", theirs["code"])
        return Difference(kind="constant" if same else "graph", subject=subject, value=a.code, reference=b.code)


def _name(step: Step) -> str:
    """What a step compiles: `f` or `the rest of f`."""
    return f"the rest of {step.frame.name}" if step.frame.kind == "resume" else step.frame.name


def _failed(step: Step) -> str | None:
    """The first guard that failed: `size of x dimension 0: 8 before, 7 now`."""
    guard = next(iter(step.recompile.failed_guards), None) if step.recompile else None
    if guard is None:
        return None
    dimension = f" dimension {guard.dimension}" if guard.dimension is not None else ""
    values = f": {guard.before} before, {guard.now} now" if guard.before is not None or guard.now is not None else ""
    return f"{guard.kind} of {guard.source}{dimension}{values}" if guard.source else guard.text or guard.kind


def _argument(node: Node) -> str:
    """The user's name of an input (x for `L_x_`), or the name of any other node."""
    match = re.match(r"^[Ll]_(?P<name>.+?)_*$", node.name) if node.op == "placeholder" else None
    return match["name"].rstrip("_") if match else node.name


def _node(node: Node) -> str:
    return f"{node.name} = {node.code}" if node.op.startswith("call_") else f"{node.op} {node.name}"


#: status of a frame -> the difference, if only one of the groups has it; the first ones count most
_OUTCOMES: dict[str, DifferenceKind] = {"failed": "error", "skipped": "skip", "cached": "cached"}
#: (fact of a node, the difference, the fact in words), in the order in which they are compared
_FACTS: tuple[tuple[str, DifferenceKind, Callable[[Node], str | None]], ...] = (
    ("shape", "size", lambda node: None if node.shape is None else f"[{', '.join(map(str, node.shape))}]"),
    ("dtype", "dtype", lambda node: node.dtype),
    ("subclass", "placement", lambda node: node.subclass or "a plain tensor"),
    ("device", "device", lambda node: node.device),
    ("stride", "size", lambda node: str(node.stride)),
)
