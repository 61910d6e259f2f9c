"""Merges the records of many ranks into one RanksReport.

Ranks with equal hashes form a group.  Ranks that differ only in constants that are their own numbers join it, and so do ranks
that did not finish, if the group begins with what they compiled.  One Report is read for each of the `MOST_GROUPS` largest
groups.  The largest group is the reference with which the others are compared; between equally large ones, the order of the
ranks decides.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from dynascope.compiler.ranks import structure
from dynascope.compiler.ranks.compare import Side, compare
from dynascope.compiler.ranks.report import Difference, DifferenceKind, Rank, RankGroup, RanksReport, StepSummary, StepTime
from dynascope.compiler.ranks.structure import RankRecord, hash_of
from dynascope.compiler.report import Report

#: groups whose Report is kept and compared; more would say little and cost much
MOST_GROUPS = 32
#: a slow rank takes this many seconds longer than the median of the others of its group, and this many times it
_SLOW_SECONDS, _SLOW_TIMES = 0.5, 1.5


@dataclass
class _Group:
    """A group of equal ranks, while it is being built."""

    #: the rank that represents the group
    first: RankRecord
    records: list[RankRecord]
    #: the steps with constants that are the number of the rank
    rank_constants: list[int] = field(default_factory=list)
    report: Report | None = None

    @property
    def ranks(self) -> list[int]:
        return sorted(r.rank.rank for r in self.records)

    @cached_property
    def side(self) -> Side:
        rank = self.first.rank
        return Side(self.first, self.report or Report(), frozenset({rank.rank, rank.local_rank}))


def merge(records: Iterable[RankRecord], *, world_size: int | None = None, notes: Iterable[str] = ()) -> RanksReport:
    """The RanksReport of these ranks; each rank is given once.

    `world_size`: number of ranks in the job; None: as the records say, or else the number of records.
    """
    known = sorted(records, key=lambda r: r.rank.rank)
    groups = _grouped(known)
    result = RanksReport(notes=list(notes))
    result.world_size = world_size or max((r.world_size or 0 for r in known), default=0) or len(known)
    result.notes += _read_reports(groups)
    for index, group in enumerate(groups):
        for record in group.records:
            record.rank.group = index
        result.groups.append(_shown(group))
    present = {r.rank.rank for r in known}
    missing = [Rank(rank=n, status="missing") for n in range(result.world_size) if n not in present]
    result.ranks = sorted([*(r.rank for r in known), *missing], key=lambda r: r.rank)
    if groups:
        result.versions = groups[0].first.versions
    result.differences = [*_divergences(groups), *_surroundings(known)]
    result.slow = _times(groups)
    return result


# -- groups -----------------------------------------------------------------------------------------


def _grouped(records: list[RankRecord]) -> list[_Group]:
    """The groups, largest first."""
    exact: dict[tuple[object, ...], list[RankRecord]] = defaultdict(list)
    for record in records:
        exact[tuple((step.exact, step.forward, step.backward) for step in record.steps)].append(record)
    loose: dict[tuple[object, ...], list[_Group]] = defaultdict(list)
    for equal in exact.values():
        key = tuple((step.loose, step.forward, step.backward) for step in equal[0].steps)
        loose[key].append(_Group(first=equal[0], records=equal))
    groups = _join_stopped([group for same in loose.values() for group in _by_constants(same)])
    return sorted(groups, key=lambda g: (-len(g.records), g.first.rank.rank))


def _by_constants(groups: list[_Group]) -> list[_Group]:
    """Join groups that differ only in integers that are the number of the rank (`x + dist.get_rank()`).

    The groups' loose hashes are equal already.

    An integer counts as the number of the rank only where it is that number in more than half of the groups (at least two).
    """
    step_of = [number for number, step in enumerate(groups[0].first.steps) for _ in step.constants]
    constants = ([value for step in group.first.steps for value in step.constants] for group in groups)
    columns = zip(step_of, zip(*constants, strict=False), strict=False)
    varying = [(step, values) for step, values in columns if len(set(values)) > 1]
    owns = [[_is_own_number(value, group) for value, group in zip(values, groups, strict=True)] for _, values in varying]
    buckets: dict[tuple[Any, ...], _Group] = {}
    for number, group in enumerate(groups):
        own = [each[number] and sum(each) > len(groups) / 2 for each in owns]
        key = tuple("own" if is_own else values[number] for is_own, (_, values) in zip(own, varying, strict=True))
        steps = [step for is_own, (step, _) in zip(own, varying, strict=True) if is_own]
        buckets.setdefault(key, _Group(first=group.first, records=[], rank_constants=steps)).records.extend(group.records)
    return list(buckets.values())


def _is_own_number(value: int, group: _Group) -> bool:
    """Whether the value is the number of each rank of the group, in the job or on its machine."""
    ranks = [r.rank for r in group.records]
    return all(r.rank == value for r in ranks) or all(r.local_rank == value for r in ranks)


def _join_stopped(groups: list[_Group]) -> list[_Group]:
    """Join each group in which no rank finished with the largest group that begins with what it compiled."""
    whole = [g for g in groups if any(r.rank.status == "finished" for r in g.records)]
    rest = (g for g in groups if all(r.rank.status != "finished" for r in g.records))
    for group in sorted(rest, key=lambda g: len(g.first.steps), reverse=True):
        if fitting := [g for g in whole if structure.begins(group.first.steps, g.first.steps)]:
            max(fitting, key=lambda g: len(g.records)).records.extend(group.records)
        else:
            whole.append(group)
    return whole


def _read_reports(groups: list[_Group]) -> list[str]:
    """Read one Report for each of the largest groups, trying up to three ranks; returns a sentence for each damaged Report."""
    damaged = []
    for group in groups[:MOST_GROUPS]:
        for record in sorted(group.records, key=lambda r: len(r.steps), reverse=True)[:3]:
            try:
                group.report, group.first = record.report(), record
                break
            except (ValueError, OSError) as error:
                damaged.append(f"rank {record.rank.rank}: its report cannot be read: {' '.join(str(error).split())}")
    return damaged


def _shown(group: _Group) -> RankGroup:
    shown = RankGroup(ranks=group.ranks, report=group.report)
    if group.report is None:
        return shown
    side = group.side
    for step, hashes in zip(side.steps, group.first.steps, strict=False):
        frame, graph = step.frame, step.graph
        shown.steps.append(
            StepSummary(
                frame=frame.id, name=frame.name, file=frame.file, line=frame.line, cell=frame.cell, kind=frame.kind,
                status=frame.status, recompile=frame.recompile_of is not None,
                hash=hash_of([hashes.loose, hashes.forward, hashes.backward]),
                splits=len(graph.splits) if graph else 0,
                collectives=structure.collectives(graph, group.first.names) if graph else [],
            )
        )  # fmt: skip
    numbers = dict.fromkeys(group.rank_constants)
    shown.rank_constants = [side.steps[number].frame.id for number in numbers if number < len(side.steps)]
    return shown


# -- differences ------------------------------------------------------------------------------------


def _divergences(groups: list[_Group]) -> list[Difference]:
    """The first difference of each group from the reference, sorted by step; groups without a Report come last."""
    found: list[Difference] = []
    reference = groups[0].side if groups and groups[0].report is not None else None
    for index, group in enumerate(groups[1:] if reference is not None else (), 1):
        difference: Difference | None = Difference(kind="graph")
        if group.report is not None and reference is not None:
            # groups that were not joined can still differ only in constants that happen to equal the ranks' numbers
            difference = compare(group.side, reference) or compare(replace(group.side, numbers=frozenset()), reference)
        if difference is not None:
            difference.group, difference.reference_group = index, 0
            found.append(difference)
    return sorted(found, key=lambda d: d.step if d.step is not None else 1 << 30)


def _unusual(values: Mapping[int, str]) -> Iterator[tuple[str, list[int], str]]:
    """(value, the ranks with it, the most frequent value) for each value but the most frequent one; `values`: by rank."""
    ranks: dict[str, list[int]] = defaultdict(list)
    for rank, value in values.items():
        ranks[value].append(rank)
    usual = max(ranks, key=lambda value: (len(ranks[value]), -min(ranks[value])), default="")
    return ((value, own, usual) for value, own in ranks.items() if value != usual)


def _surroundings(records: list[RankRecord]) -> list[Difference]:
    """Versions, settings and environment variables that differ between the ranks that recorded them."""
    found: list[Difference] = []
    kinds: tuple[DifferenceKind, ...] = ("versions", "settings", "environment")
    for kind in kinds:
        # each process has versions and settings: where there are none, they are not known
        of: dict[int, Mapping[str, Any] | None] = {r.rank.rank: getattr(r, kind) for r in records}
        known = {rank: values for rank, values in of.items() if values or (values is not None and kind == "environment")}
        for name in dict.fromkeys(name for values in known.values() for name in values):
            shown = {rank: "not set" if values.get(name) is None else str(values[name]) for rank, values in known.items()}
            for value, ranks, usual in _unusual(shown):
                found.append(Difference(kind=kind, ranks=ranks, subject=name, value=value, reference=usual))
    return found


# -- times ------------------------------------------------------------------------------------------


def _times(groups: list[_Group]) -> list[StepTime]:
    """Steps in which one rank took much longer than the others of its group, the longest difference first; at most 20."""
    slow = []
    for index, group in enumerate(groups):
        for step in range(max(len(r.rank.seconds) for r in group.records)):
            compiled = ((r.rank.rank, r.rank.seconds[step]) for r in group.records if step < len(r.rank.seconds))
            times = {rank: seconds for rank, seconds in compiled if seconds is not None}
            if len(times) < 2:
                continue
            rank = max(times, key=lambda r: times[r])
            slowest, median = times[rank], statistics.median(t for r, t in times.items() if r != rank)
            if slowest - median > _SLOW_SECONDS and slowest > _SLOW_TIMES * median:
                slow.append(StepTime(group=index, step=step, median=median, slowest=slowest, slowest_rank=rank))
    return sorted(slow, key=lambda s: s.median - s.slowest)[:20]
