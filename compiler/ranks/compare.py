"""Finds the first step in which two groups of ranks differ: what differs, where, why, and which guards differ."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from itertools import zip_longest

from dynascope.compiler.ranks import collectives
from dynascope.compiler.ranks.normal import Normal, basename
from dynascope.compiler.ranks.schema import Collective, Difference, DifferenceKind, GuardPair
from dynascope.compiler.ranks.structure import (
    GroupNames,
    Step,
    Structure,
    break_facts,
    collective_facts,
    hash_of,
    normalizer,
    recompile_facts,
    sizes,
    steps_of,
    without_integers,
)
from dynascope.compiler.report import Break, Node
from dynascope.compiler.report.schema import ReportData

#: at most this many guards are shown with one difference
_GUARDS = 6
#: matches torch's files, by the names of their folders, because the rank may have run on another machine
_IN_TORCH = re.compile(r"[\\/](?:site|dist)-packages[\\/](?:torch|functorch)[\\/]")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d.]*(?:e[+-]?\d+)?\b")
_COMPARISON = re.compile(r"^(?P<left>.+?) (?P<sign>==|!=|is|in|<=|>=|<|>) (?P<right>.+)$")


@dataclasses.dataclass
class Side:
    """One of the two groups that are compared, represented by one of its ranks."""

    report: ReportData
    structure: Structure
    names: GroupNames = dataclasses.field(default_factory=dict)
    finished: bool = True
    #: the rank's numbers, in the job and on its machine; unequal constants count as equal if each is a number of its own side
    numbers: frozenset[int | None] = frozenset()


def compare(here: Side, there: Side) -> Difference | None:
    """The first difference between two groups; `there` is the reference.  None if they do not differ."""
    first = _first(here, there)
    if first is None:
        return None
    mine, theirs = (
        steps[first] if first < len(steps) else None
        for steps in (steps_of(side.report, finished=side.finished) for side in (here, there))
    )
    normals = normalizer(here.names), normalizer(there.names)
    differences = list(_differences(mine, theirs, (here, there), normals, _positions(here, first)))
    found = differences[0] if differences else Difference(kind="graph")
    found.step = first
    found.frame, found.reference_frame = mine.frame.id if mine else None, theirs.frame.id if theirs else None
    found.guards = _guards(mine, theirs, normals) if mine and theirs else []
    if found.file is None:
        _place(found, mine or theirs, "group" if mine else "reference")
    return found


def _first(here: Side, there: Side) -> int | None:
    """The first step that Dynamo compiled differently; if there is none, the first with different collectives."""
    mine, theirs = here.structure, there.structure
    for a, b in ((mine.steps, theirs.steps), (mine.forward, theirs.forward), (mine.backward, theirs.backward)):
        for number, (one, other) in enumerate(zip_longest(a, b)):
            if one != other and not (a is mine.steps and _rank_numbers_alone(here, there, number)):
                return number
    return None


def _rank_numbers_alone(here: Side, there: Side, step: int) -> bool:
    """Whether both sides have this step, and it is the same up to constants that are the number of the rank."""
    both = step < min(len(here.structure.steps), len(there.structure.steps))
    return both and _alike(here, there, step, step)


def _alike(here: Side, there: Side, mine: int, theirs: int) -> bool:
    """Whether two steps are the same up to constants that are the number of the rank."""
    a, b = here.structure, there.structure
    return a.loose[mine] == b.loose[theirs] and _own_numbers(a.constants[mine], b.constants[theirs], here, there)


def step_hashes(here: Side, there: Side) -> list[str]:
    """A hash of each step of `here`; a step of `there` that is equal up to the number of the rank has the same hash."""
    mine, theirs = here.structure, there.structure
    by_loose: dict[str, list[int]] = {}
    for number, loose in enumerate(theirs.loose):
        by_loose.setdefault(loose, []).append(number)
    hashes = []
    for number, step_hash in enumerate(mine.steps):
        like = (n for n in by_loose.get(mine.loose[number], ()) if _alike(here, there, number, n))
        same = next(like, None)
        later = [mine.forward[number], mine.backward[number]]
        hashes.append(hash_of([step_hash if same is None else theirs.steps[same], *later]))
    return hashes


def _own_numbers(mine: list[int], theirs: list[int], here: Side, there: Side) -> bool:
    """Whether the integers of each pair are equal, or each is the number of its rank."""
    return len(mine) == len(theirs) and all(
        a == b or (a in here.numbers and b in there.numbers) for a, b in zip(mine, theirs, strict=True)
    )


def _positions(side: Side, step: int) -> int:
    """Number of collectives in the steps before this one."""
    before = steps_of(side.report, finished=side.finished)[:step]
    return sum(len(collectives.collectives(s.graph)) for s in before if s.graph)


_Normals = tuple[Normal, Normal]


def _differences(
    mine: Step | None, theirs: Step | None, sides: tuple[Side, Side], normals: _Normals, position: int
) -> Iterator[Difference]:
    """The differences between two steps, the one that explains most first."""
    if mine is None or theirs is None:
        step = mine or theirs
        assert step is not None
        if step.recompile is not None:
            yield _one_recompiled(mine, theirs)
        yield Difference(kind="ends", here=_what(mine), there=_what(theirs), subject=step.frame.name)
        return
    yield from _recompiled(mine, theirs)
    yield from _functions(mine, theirs)
    yield from _outcomes(mine, theirs)
    yield from _breaks(mine, theirs)
    yield from _collectives(mine, theirs, normals, position, (sides[0].names, sides[1].names))
    yield from _graphs(mine, theirs, sides, normals)
    if mine.frame.status != theirs.frame.status:
        yield Difference(
            kind="skip", here=mine.frame.status, there=theirs.frame.status, reason=mine.frame.reason or theirs.frame.reason
        )


def _what(step: Step | None) -> str | None:
    """What a step compiles: `f` or `the rest of f`."""
    return None if step is None else f"the rest of {step.frame.name}" if step.frame.kind == "resume" else step.frame.name


def _functions(mine: Step, theirs: Step) -> Iterator[Difference]:
    a, b = (_identity(s) for s in (mine, theirs))
    if a != b:
        yield Difference(kind="function", here=_what(mine), there=_what(theirs), subject="function")


def _identity(step: Step) -> tuple[str, int, str, str]:
    return basename(step.frame.file), step.frame.line, step.frame.name, step.frame.kind


def _recompiled(mine: Step, theirs: Step) -> Iterator[Difference]:
    if recompile_facts(mine.recompile) != recompile_facts(theirs.recompile):
        yield _one_recompiled(mine, theirs)


def _one_recompiled(mine: Step | None, theirs: Step | None) -> Difference:
    """The difference between two steps, at least one of which is a recompile."""
    is_mine = mine is not None and mine.recompile is not None
    step = mine if is_mine else theirs
    assert step is not None
    assert step.recompile is not None
    recompile = step.recompile
    guard = next(iter(recompile.failed_guards), None)
    difference = Difference(
        kind="recompile",
        subject=guard.source if guard else None,
        reason=next(iter(recompile.reasons), None),
        here=_failed(mine) or _what(mine),
        there=_failed(theirs) or _what(theirs),
    )
    _place(difference, step, "group" if is_mine else "reference")
    return difference


def _failed(step: Step | None) -> str | None:
    """The first guard that failed: `size of x dimension 0: 8 before, 7 now`."""
    guard = next(iter(step.recompile.failed_guards), None) if step and step.recompile else None
    if guard is None:
        return None
    dimension = f" dimension {guard.dimension}" if guard.dimension is not None else ""
    values = f": {guard.before} before, {guard.now} now" if guard.before is not None or guard.now is not None else ""
    return f"{guard.kind} of {guard.source}{dimension}{values}" if guard.source else guard.text or guard.kind


def _outcomes(mine: Step, theirs: Step) -> Iterator[Difference]:
    """A frame that failed, was skipped, or came from a cache in only one of the groups."""
    statuses = mine.frame.status, theirs.frame.status
    if statuses[0] == statuses[1]:
        return
    order: tuple[tuple[str, DifferenceKind], ...] = (("failed", "error"), ("skipped", "skip"), ("cached", "cached"))
    for status, kind in order:
        if status in statuses:
            step = mine if mine.frame.status == status else theirs
            found = Difference(kind=kind, here=statuses[0], there=statuses[1], reason=step.frame.reason)
            if step.broken is not None:
                _at_break(found, step.broken, "group" if step is mine else "reference")
                found.reason = step.broken.type or found.reason
            else:
                _place(found, step, "group" if step is mine else "reference")
            yield found
            return


def _breaks(mine: Step, theirs: Step) -> Iterator[Difference]:
    if break_facts(mine.broken) == break_facts(theirs.broken):
        return
    broken = mine.broken or theirs.broken
    assert broken is not None
    found = Difference(kind="break", reason=broken.type or broken.reason, here=_break(mine), there=_break(theirs))
    _at_break(found, broken, "group" if mine.broken else "reference")
    yield found


def _break(step: Step) -> str | None:
    return None if step.broken is None else f"{basename(step.broken.file)}:{step.broken.line} {step.broken.source.strip()}"


def _at_break(found: Difference, broken: Break, place_of: str) -> None:
    found.file, found.line, found.cell, found.function = broken.file, broken.line, broken.cell, broken.function
    found.source = broken.source
    found.place_of = "group" if place_of == "group" else "reference"


def _collectives(
    mine: Step, theirs: Step, normals: _Normals, position: int, names: tuple[GroupNames, GroupNames]
) -> Iterator[Difference]:
    """The first collective that differs in kind, reduction, process group, dtype or shape, or in being in the backward."""
    a, b = (
        collectives.collectives(step.graph, called) if step.graph else []
        for step, called in zip((mine, theirs), names, strict=True)
    )
    for number, (one, other) in enumerate(zip_longest(a, b)):
        if _facts(one, normals[0]) != _facts(other, normals[1]):
            yield Difference(
                kind="collective",
                position=position + number,
                subject=one.kind if one else other.kind if other else None,
                here=collectives.describe(one) if one else None,
                there=collectives.describe(other) if other else None,
            )
            return


def _facts(collective: Collective | None, normal: Normal) -> list[object] | None:
    return None if collective is None else [*collective_facts(collective, normal), collective.backward]


def _graphs(mine: Step, theirs: Step, sides: tuple[Side, Side], normals: _Normals) -> Iterator[Difference]:
    """The first node in which the graphs differ."""
    a, b = (step.graph.nodes if step.graph else [] for step in (mine, theirs))
    for one, other in zip_longest(a, b):
        found = _nodes(one, other, sides, normals)
        if found is not None:
            node, found.place_of = (one, "group") if one is not None else (other, "reference")
            assert node is not None
            at = _users_line(node, a if one is not None else b)
            if at is not None:
                step = mine if one is not None else theirs
                found.file, found.line = at
                found.function, found.cell = step.frame.name, step.frame.cell if at[0] == step.frame.file else None
            yield found
            return


def _users_line(node: Node, nodes: list[Node]) -> tuple[str, int] | None:
    """The place of a node in the user's code; if it has none, that of the first of its readers that has one."""
    for candidate in (node, *(n for n in nodes if node.name in n.inputs)):
        if candidate.file is not None and candidate.line is not None and not _IN_TORCH.search(candidate.file):
            return candidate.file, candidate.line
    return None


def _nodes(one: Node | None, other: Node | None, sides: tuple[Side, Side], normals: _Normals) -> Difference | None:
    if one is None or other is None:
        return Difference(kind="graph", subject=(one or other).name, here=_node(one), there=_node(other))  # type: ignore[union-attr]
    (a, b), (n, m) = (one, other), normals
    subject = _argument(a)
    if (a.op, a.target) != (b.op, b.target):
        return Difference(kind="graph", subject=subject, here=_node(a), there=_node(b))
    if sizes(a.shape, n) != sizes(b.shape, m):
        return Difference(kind="size", subject=subject, here=_shape(a), there=_shape(b))
    if a.dtype != b.dtype:
        return Difference(kind="dtype", subject=subject, here=a.dtype, there=b.dtype)
    if a.subclass != b.subclass:
        plain = "a plain tensor"
        return Difference(kind="placement", subject=subject, here=a.subclass or plain, there=b.subclass or plain)
    if n.device(a.device) != m.device(b.device):
        return Difference(kind="device", subject=subject, here=a.device, there=b.device)
    if sizes(a.stride, n) != sizes(b.stride, m):
        return Difference(kind="size", subject=f"stride of {subject}", here=str(a.stride), there=str(b.stride))
    mine, theirs = n.code(a.code), m.code(b.code)
    if mine == theirs:
        return None
    integers: tuple[list[int], list[int]] = ([], [])
    alike = without_integers(mine, integers[0]) == without_integers(theirs, integers[1])
    if alike and _own_numbers(*integers, *sides):
        return None
    same = _NUMBER.sub("#", mine) == _NUMBER.sub("#", theirs)
    return Difference(kind="constant" if same else "graph", subject=subject, here=a.code, there=b.code)


def _argument(node: Node) -> str:
    """The user's name of an input (x for `L_x_`), or the name of any other node."""
    match = re.match(r"^[Ll]_(?P<name>.+?)_*$", node.name) if node.op == "placeholder" else None
    return match["name"].rstrip("_") if match else node.name


def _node(node: Node | None) -> str | None:
    return None if node is None else f"{node.name} = {node.code}" if node.op.startswith("call_") else f"{node.op} {node.name}"


def _shape(node: Node) -> str | None:
    return None if node.shape is None else f"[{', '.join(map(str, node.shape))}]"


def _place(found: Difference, step: Step | None, place_of: str) -> None:
    if step is not None:
        frame = step.frame
        found.file, found.line, found.cell, found.function = frame.file, frame.line, frame.cell, frame.name
        found.place_of = "group" if place_of == "group" else "reference"


def _guards(mine: Step, theirs: Step, normals: _Normals) -> list[GuardPair]:
    """The guards that only one of two steps has, pairs first; a pair is of the same kind and on the same expression."""
    a, b = ({n.text(g): g for g in s.frame.guards} for s, n in zip((mine, theirs), normals, strict=True))
    here, there = [g for t, g in a.items() if t not in b], [g for t, g in b.items() if t not in a]
    pairs = []
    for guard in here:
        match = next((g for g in there if _subject(g) == _subject(guard)), None)
        if match is not None:
            there.remove(match)
        pairs.append(GuardPair(here=guard, there=match))
    pairs.sort(key=lambda pair: pair.there is None)
    return [*pairs, *(GuardPair(there=g) for g in there)][:_GUARDS]


def _subject(guard: str) -> str:
    """What a guard checks, without the value: `L['rank'] ==` for `L['rank'] == 3`."""
    match = _COMPARISON.match(guard)
    return f"{match['left']} {match['sign']}" if match else guard.partition("(")[0] + guard.partition(",")[0]
