"""Finds the first step in which two groups of ranks differ: what differs, where, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import Literal

from dynascope.compiler.ranks import structure
from dynascope.compiler.ranks.report import Collective, Difference, DifferenceKind
from dynascope.compiler.ranks.structure import (
    GroupNames,
    Normal,
    Step,
    Structure,
    basename,
    break_facts,
    collective_facts,
    recompile_facts,
    sizes,
    steps_of,
    without_integers,
)
from dynascope.compiler.report import Break, Frame, Node
from dynascope.compiler.report.schema import ReportData

#: matches torch's files, by the names of their folders, because the rank may have run on another machine
_IN_TORCH = re.compile(r"[\\/](?:site|dist)-packages[\\/](?:torch|functorch)[\\/]")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d.]*(?:e[+-]?\d+)?\b")
_PlaceOf = Literal["group", "reference"]


@dataclass
class Side:
    """One of the two groups that are compared, represented by one of its ranks."""

    report: ReportData
    structure: Structure
    names: GroupNames = field(default_factory=dict)
    finished: bool = True
    #: the rank's numbers, in the job and on its machine; unequal constants count as equal if each is a number of its own side
    numbers: frozenset[int | None] = frozenset()

    @cached_property
    def steps(self) -> list[Step]:
        return steps_of(self.report, finished=self.finished)

    def same_constants(self, mine: list[int], reference: Side, theirs: list[int]) -> bool:
        """Whether the integers of each pair are equal, or each is the number of its rank."""
        pairs = zip(mine, theirs, strict=False)
        same = all(a == b or (a in self.numbers and b in reference.numbers) for a, b in pairs)
        return same and len(mine) == len(theirs)

    def is_like(self, mine: int, reference: Side, theirs: int) -> bool:
        """Whether both groups have these steps, and they are the same up to constants that are the number of the rank."""
        a, b = self.structure, reference.structure
        if mine >= len(a.steps) or theirs >= len(b.steps) or a.loose[mine] != b.loose[theirs]:
            return False
        return self.same_constants(a.constants[mine], reference, b.constants[theirs])


def compare(side: Side, reference: Side) -> Difference | None:
    """The first difference between a group and the reference; None if they do not differ."""
    number = _first(side, reference)
    if number is None:
        return None
    steps = _Steps(side, reference, number)
    found = next(steps.differences(), None) or Difference(kind="graph")
    mine, theirs = steps.mine, steps.theirs
    found.step = number
    found.frame, found.reference_frame = mine.frame.id if mine else None, theirs.frame.id if theirs else None
    known = mine or theirs
    return _at(found, known.frame, steps.place_of(known)) if found.file is None and known is not None else found


def _first(side: Side, reference: Side) -> int | None:
    """The first step that Dynamo compiled differently; if there is none, the first with different collectives."""
    a, b = side.structure, reference.structure
    for number, (one, other) in enumerate(zip_longest(a.steps, b.steps)):
        if one != other and not side.is_like(number, reference, number):
            return number
    for mine, theirs in ((a.forward, b.forward), (a.backward, b.backward)):
        for number, (one, other) in enumerate(zip_longest(mine, theirs)):
            if one != other:
                return number
    return None


class _Steps:
    """A step of a group and that of the reference; one of the two may lack it."""

    def __init__(self, side: Side, reference: Side, number: int) -> None:
        self._sides, self._number = (side, reference), number
        self.mine, self.theirs = (s.steps[number] if number < len(s.steps) else None for s in self._sides)
        self._normals = Normal(side.names), Normal(reference.names)

    def place_of(self, step: Step) -> _PlaceOf:
        return "group" if step is self.mine else "reference"

    def differences(self) -> Iterator[Difference]:
        """The differences between the two steps, the one that explains most first."""
        mine, theirs = self.mine, self.theirs
        recompiles = [recompile_facts(step.recompile) if step is not None else None for step in (mine, theirs)]
        if recompiles[0] != recompiles[1]:
            yield self._recompiled(next(step for step in (mine, theirs) if step is not None and step.recompile is not None))
        if mine is None or theirs is None:
            yield Difference(kind="ends", value=_name(mine), reference=_name(theirs), subject=_name(mine or theirs))
            return
        a, b = mine.frame, theirs.frame
        if [basename(a.file), a.line, a.name, a.kind] != [basename(b.file), b.line, b.name, b.kind]:
            yield Difference(kind="function", value=_name(mine), reference=_name(theirs), subject="function")
        yield from self._outcomes(mine, theirs)
        broken = mine.broken or theirs.broken
        if broken is not None and break_facts(mine.broken) != break_facts(theirs.broken):
            found = Difference(kind="break", reason=broken.type or broken.reason)
            found.value, found.reference = _break(mine.broken), _break(theirs.broken)
            yield _at(found, broken, "group" if mine.broken else "reference")
        yield from self._collectives(mine, theirs)
        yield from self._graphs(mine, theirs)
        if a.status != b.status:
            yield Difference(kind="skip", value=a.status, reference=b.status, reason=a.reason or b.reason)

    def _recompiled(self, step: Step) -> Difference:
        """The difference between two steps, one of which is this recompile."""
        assert step.recompile is not None
        guards = step.recompile.failed_guards
        found = Difference(
            kind="recompile", subject=guards[0].source if guards else None, reason=next(iter(step.recompile.reasons), None),
            value=_failed(self.mine) or _name(self.mine), reference=_failed(self.theirs) or _name(self.theirs),
        )  # fmt: skip
        return _at(found, step.frame, self.place_of(step))

    def _outcomes(self, mine: Step, theirs: Step) -> Iterator[Difference]:
        """A frame that failed, was skipped, or came from a cache in only one of the groups."""
        order: dict[str, DifferenceKind] = {"failed": "error", "skipped": "skip", "cached": "cached"}
        statuses = mine.frame.status, theirs.frame.status
        status = next((s for s in order if s in statuses), None)
        if status is not None and statuses[0] != statuses[1]:
            step = mine if mine.frame.status == status else theirs
            reason = (step.broken.type if step.broken is not None else None) or step.frame.reason
            found = Difference(kind=order[status], value=statuses[0], reference=statuses[1], reason=reason)
            yield _at(found, step.broken or step.frame, self.place_of(step))

    def _collectives(self, mine: Step, theirs: Step) -> Iterator[Difference]:
        """The first collective that differs in kind, reduction, process group, dtype or shape, or in being in the backward."""
        own, others = (
            structure.collectives(step.graph, side.names) if step.graph else []
            for step, side in zip((mine, theirs), self._sides, strict=True)
        )
        for number, (one, other) in enumerate(zip_longest(own, others)):
            if _facts(one, self._normals[0]) != _facts(other, self._normals[1]):
                before = self._sides[0].steps[: self._number]
                yield Difference(
                    kind="collective", subject=(one or other).kind,
                    position=number + sum(len(structure.collectives(s.graph)) for s in before if s.graph),
                    value=_collective(one), reference=_collective(other),
                )  # fmt: skip
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
                    _at(found, step.frame, self.place_of(step))
                    found.cell = step.frame.cell if candidate.file == step.frame.file else None
                    found.file, found.line = candidate.file, candidate.line
                    break
            yield found
            return

    def _nodes(self, a: Node | None, b: Node | None) -> Difference | None:
        if a is None or b is None:
            return Difference(kind="graph", subject=(a or b).name, value=_node(a), reference=_node(b))  # type: ignore[union-attr]
        n, m = self._normals
        subject = _argument(a)
        plain = "a plain tensor"
        # (kind, subject, whether this differs, the values)
        facts: tuple[tuple[DifferenceKind, str, bool, str | None, str | None], ...] = (
            ("graph", subject, (a.op, a.target) != (b.op, b.target), _node(a), _node(b)),
            ("size", subject, sizes(a.shape, n) != sizes(b.shape, m), _shape(a), _shape(b)),
            ("dtype", subject, a.dtype != b.dtype, a.dtype, b.dtype),
            ("placement", subject, a.subclass != b.subclass, a.subclass or plain, b.subclass or plain),
            ("device", subject, n.device(a.device) != m.device(b.device), a.device, b.device),
            ("size", f"stride of {subject}", sizes(a.stride, n) != sizes(b.stride, m), str(a.stride), str(b.stride)),
        )
        for kind, what, differs, value, reference in facts:
            if differs:
                return Difference(kind=kind, subject=what, value=value, reference=reference)
        mine, theirs = n.code(a.code), m.code(b.code)
        integers: tuple[list[int], list[int]] = ([], [])
        alike = without_integers(mine, integers[0]) == without_integers(theirs, integers[1])
        if mine == theirs or (alike and self._sides[0].same_constants(integers[0], self._sides[1], integers[1])):
            return None
        same = _NUMBER.sub("#", mine) == _NUMBER.sub("#", theirs)
        return Difference(kind="constant" if same else "graph", subject=subject, value=a.code, reference=b.code)


def _at(found: Difference, part: Frame | Break, place_of: _PlaceOf) -> Difference:
    """Give a difference the place of a frame or a break."""
    found.file, found.line, found.cell, found.place_of = part.file, part.line, part.cell, place_of
    found.function, found.source = (part.function, part.source) if isinstance(part, Break) else (part.name, "")
    return found


def _name(step: Step | None) -> str | None:
    """What a step compiles: `f` or `the rest of f`."""
    return None if step is None else f"the rest of {step.frame.name}" if step.frame.kind == "resume" else step.frame.name


def _failed(step: Step | None) -> str | None:
    """The first guard that failed: `size of x dimension 0: 8 before, 7 now`."""
    guard = next(iter(step.recompile.failed_guards), None) if step and step.recompile else None
    if guard is None:
        return None
    dimension = f" dimension {guard.dimension}" if guard.dimension is not None else ""
    values = f": {guard.before} before, {guard.now} now" if guard.before is not None or guard.now is not None else ""
    return f"{guard.kind} of {guard.source}{dimension}{values}" if guard.source else guard.text or guard.kind


def _break(broken: Break | None) -> str | None:
    return None if broken is None else f"{basename(broken.file)}:{broken.line} {broken.source.strip()}"


def _collective(collective: Collective | None) -> str | None:
    return None if collective is None else structure.describe(collective)


def _facts(collective: Collective | None, normal: Normal) -> list[object] | None:
    return None if collective is None else [*collective_facts(collective, normal), collective.backward]


def _argument(node: Node) -> str:
    """The user's name of an input (x for `L_x_`), or the name of any other node."""
    match = re.match(r"^[Ll]_(?P<name>.+?)_*$", node.name) if node.op == "placeholder" else None
    return match["name"].rstrip("_") if match else node.name


def _node(node: Node | None) -> str | None:
    return None if node is None else f"{node.name} = {node.code}" if node.op.startswith("call_") else f"{node.op} {node.name}"


def _shape(node: Node) -> str | None:
    return None if node.shape is None else f"[{', '.join(map(str, node.shape))}]"
