"""Merges the records of many ranks into one RanksReport.

Ranks with equal hashes form a group.  Ranks that differ only in constants that are their own numbers join it, and so do ranks
that did not finish, if the group begins with what they compiled.  One Report is read for each of the `MOST_GROUPS` largest
groups.  The largest group is the reference with which the others are compared; between equally large ones, the order of the
ranks decides.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dynascope.compiler.ranks import collectives
from dynascope.compiler.ranks.compare import Side, compare, step_hashes
from dynascope.compiler.ranks.report import RanksReport
from dynascope.compiler.ranks.schema import Difference, DifferenceKind, Rank, RankGroup, RunTimeSkew, StepSummary, StepTime
from dynascope.compiler.ranks.structure import GroupNames, Structure, steps_of
from dynascope.compiler.report import Report
from dynascope.compiler.report.data import Part

#: groups whose Report is kept and compared; more would say little and cost much
MOST_GROUPS = 32
#: steps of a group whose caches and schedules are compared
_MOST_STEPS = 1000
#: a slow rank takes this many seconds longer than the fastest of its group, and this many times the median of the others
_SLOW_SECONDS, _SLOW_TIMES = 0.5, 1.5


class RankRecord(Part, kw_only=True, dict=True):
    """What one rank wrote.  Its hashes are read at once, its Report on demand."""

    rank: Rank
    structure: Structure
    names: GroupNames = {}
    versions: dict[str, str | None] = {}
    settings: dict[str, Any] = {}
    #: None: not recorded, as in a log
    environment: dict[str, str] | None = None
    world_size: int | None = None
    #: identifies the job: equal for all its ranks; None: not known
    job: str | None = None

    def reading(self, report: Callable[[], Report]) -> RankRecord:
        """Set the function that reads the Report; it raises ValueError or OSError if the Report is damaged."""
        self.report = report
        return self


@dataclass
class _Group:
    """A group of equal ranks, while it is being built."""

    #: the rank that represents the group
    first: RankRecord
    records: list[RankRecord]
    #: constants that are the number of the rank: (step, index in the step's constants)
    rank_constants: list[tuple[int, int]] = field(default_factory=list)
    report: Report | None = None

    @property
    def ranks(self) -> list[int]:
        return sorted(r.rank.rank for r in self.records)


def merge(records: Iterable[RankRecord], *, world_size: int | None = None, notes: Iterable[str] = ()) -> RanksReport:
    """The RanksReport of these ranks; each rank is given once.

    `world_size`: number of ranks in the job; None: as the records say, or else the number of records.
    """
    known = sorted(records, key=lambda r: r.rank.rank)
    groups = _grouped(known)
    result = RanksReport(notes=list(notes))
    result.world_size = world_size or max((r.world_size or 0 for r in known), default=0) or len(known)
    damaged = _read_reports(groups)
    result.notes += damaged
    for index, group in enumerate(groups):
        for record in group.records:
            record.rank.group = index
        result.groups.append(_shown(group, groups[0]))
    result.ranks = [r.rank for r in known]
    present = {r.rank.rank for r in known}
    result.ranks += [Rank(rank=n, status="missing") for n in range(result.world_size) if n not in present]
    result.ranks.sort(key=lambda r: r.rank)
    if groups:
        result.versions = groups[0].first.versions
    schedules = _inside(groups, result.groups, "collective")
    result.differences = [*_divergences(groups), *schedules, *_surroundings(known), *_inside(groups, result.groups, "cache")]
    result.slow = _times(groups)
    result.skew = _skew(result.ranks)
    return result


# -- groups -----------------------------------------------------------------------------------------


def _grouped(records: list[RankRecord]) -> list[_Group]:
    """The groups, largest first."""
    exact: dict[str, list[RankRecord]] = defaultdict(list)
    for record in records:
        exact[record.structure.key].append(record)
    groups = [_Group(first=equal[0], records=equal) for equal in exact.values()]
    groups = _join_rank_constants(groups)
    groups = _join_stopped(groups)
    return sorted(groups, key=lambda g: (-len(g.records), g.first.rank.rank))


def _join_rank_constants(groups: list[_Group]) -> list[_Group]:
    """Join groups that differ only in integers that are the number of the rank (`x + dist.get_rank()`)."""
    loose: dict[str, list[_Group]] = defaultdict(list)
    for group in groups:
        loose[group.first.structure.loose_key].append(group)
    joined: list[_Group] = []
    for same in loose.values():
        joined += [same[0]] if len(same) == 1 else _by_constants(same)
    return joined


def _by_constants(groups: list[_Group]) -> list[_Group]:
    """Join groups whose integers are equal up to the number of the rank; the groups' loose hashes are equal already.

    An integer counts as the number of the rank only where it is that number in more than half of the groups (at least two).
    """
    places = [(step, n) for step, constants in enumerate(groups[0].first.structure.constants) for n in range(len(constants))]
    values = {place: [g.first.structure.constants[place[0]][place[1]] for g in groups] for place in places}
    varying = [place for place in places if len(set(values[place])) > 1]
    ranked = {p for p in varying if sum(_is_own_number(v, g) for v, g in zip(values[p], groups, strict=True)) > len(groups) / 2}
    buckets: dict[tuple[Any, ...], _Group] = {}
    for number, group in enumerate(groups):
        own = [p for p in varying if p in ranked and _is_own_number(values[p][number], group)]
        key = tuple("own" if p in own else values[p][number] for p in varying)
        into = buckets.setdefault(key, _Group(first=group.first, records=[], rank_constants=own))
        into.records += group.records
    return list(buckets.values())


def _is_own_number(value: int, group: _Group) -> bool:
    """Whether the value is the number of each rank of the group, in the job or on its machine."""
    ranks = [r.rank for r in group.records]
    return all(r.rank == value for r in ranks) or all(r.local_rank == value for r in ranks)


def _join_stopped(groups: list[_Group]) -> list[_Group]:
    """Join each group in which no rank finished with the largest group that begins with what it compiled."""
    whole = [g for g in groups if any(r.rank.status == "finished" for r in g.records)]
    rest = [g for g in groups if not any(g is other for other in whole)]
    rest.sort(key=lambda g: len(g.first.structure.steps), reverse=True)
    for group in rest:
        fitting = [g for g in whole if group.first.structure.begins(g.first.structure)]
        if fitting:
            max(fitting, key=lambda g: len(g.records)).records.extend(group.records)
        else:
            whole.append(group)
    return whole


def _read_reports(groups: list[_Group]) -> list[str]:
    """Read one Report for each of the largest groups, trying up to three ranks; returns a sentence for each damaged Report."""
    damaged = []
    for group in groups[:MOST_GROUPS]:
        whole = sorted(group.records, key=lambda r: len(r.structure.steps), reverse=True)
        for record in whole[:3]:
            try:
                group.report, group.first = record.report(), record
                break
            except (ValueError, OSError) as error:
                damaged.append(f"rank {record.rank.rank}: its report cannot be read: {' '.join(str(error).split())}")
    return damaged


def _shown(group: _Group, reference: _Group) -> RankGroup:
    shown = RankGroup(ranks=group.ranks, report=group.report)
    if group.report is None:
        return shown
    steps = steps_of(group.report, finished=_has_ended(group.first))
    for step, hashed in zip(steps, step_hashes(_side(group), _side(reference)), strict=False):
        frame = step.frame
        shown.steps.append(
            StepSummary(
                frame=frame.id, name=frame.name, file=frame.file, line=frame.line, cell=frame.cell, kind=frame.kind,
                status=frame.status, recompile=frame.recompile_of is not None, hash=hashed,
                splits=len(step.graph.splits) if step.graph else 0,
                collectives=collectives.collectives(step.graph, group.first.names) if step.graph else [],
            )
        )  # fmt: skip
    for number in dict.fromkeys(step for step, _ in group.rank_constants):
        if number < len(steps):
            shown.rank_constants.append(steps[number].frame.id)
    return shown


def _has_ended(record: RankRecord) -> bool:
    return record.rank.status == "finished"


# -- differences ------------------------------------------------------------------------------------


def _divergences(groups: list[_Group]) -> list[Difference]:
    """The first difference of each group from the reference, sorted by step; groups without a Report come last."""
    found: list[Difference] = []
    if not groups or groups[0].report is None:
        return found
    there = _side(groups[0])
    for index, group in enumerate(groups[1:], 1):
        if group.report is None:
            found.append(Difference(kind="graph", group=index, reference=0))
            continue
        here = _side(group)
        # groups that were not joined can still differ only in constants that happen to equal the ranks' numbers
        difference = compare(here, there) or compare(replace(here, numbers=frozenset()), there)
        if difference is not None:
            difference.group, difference.reference = index, 0
            found.append(difference)
    return sorted(found, key=lambda d: d.step if d.step is not None else 1 << 30)


def _side(group: _Group) -> Side:
    first = group.first
    numbers = frozenset({first.rank.rank, first.rank.local_rank})
    return Side(
        report=group.report or Report(),
        structure=first.structure,
        names=first.names,
        finished=_has_ended(first),
        numbers=numbers,
    )


def _surroundings(records: list[RankRecord]) -> list[Difference]:
    """Versions, settings and environment variables that differ between the ranks that recorded them."""
    found: list[Difference] = []
    kinds: tuple[tuple[DifferenceKind, Callable[[RankRecord], Mapping[str, Any] | None]], ...] = (
        ("versions", lambda r: r.versions or None),
        ("settings", lambda r: r.settings or None),
        ("environment", lambda r: r.environment),
    )
    for kind, of in kinds:
        known = {r.rank.rank: values for r in records if (values := of(r)) is not None}
        for name in dict.fromkeys(name for values in known.values() for name in values):
            by_value: dict[str, list[int]] = defaultdict(list)
            for rank, values in known.items():
                value = values.get(name)
                by_value["not set" if value is None else str(value)].append(rank)
            usual = max(by_value, key=lambda v: (len(by_value[v]), -min(by_value[v])))
            found += [
                Difference(kind=kind, ranks=ranks, subject=name, here=value, there=usual)
                for value, ranks in by_value.items()
                if value != usual
            ]
    return found


def _inside(groups: list[_Group], shown: list[RankGroup], kind: DifferenceKind) -> list[Difference]:
    """Differences between the ranks of the same group, step by step.

    `kind`: "cache" compares the answers of the compiler's caches, "collective" the order of collectives in Inductor's code.
    """
    found = []
    for index, (group, shown_group) in enumerate(zip(groups, shown, strict=True)):
        for step, summary in enumerate(shown_group.steps[:_MOST_STEPS]):
            answers: dict[str, list[int]] = defaultdict(list)
            for record in group.records:
                values = record.rank.caches if kind == "cache" else record.structure.schedules
                if step < len(values) and values[step]:
                    answers[values[step]].append(record.rank.rank)
            if len(answers) < 2:
                continue
            usual = max(answers, key=lambda a: (len(answers[a]), -min(answers[a])))
            found += [
                Difference(
                    kind=kind, group=index, reference=index, step=step, frame=summary.frame, ranks=ranks, here=answer,
                    there=usual, subject=summary.name, file=summary.file, line=summary.line, cell=summary.cell,
                    function=summary.name,
                )
                for answer, ranks in answers.items()
                if answer != usual
            ]  # fmt: skip
    return found


# -- times ------------------------------------------------------------------------------------------


def _times(groups: list[_Group]) -> list[StepTime]:
    """Steps in which one rank took much longer than the others of its group, the longest wait first; at most 20."""
    slow = []
    for index, group in enumerate(groups):
        count = max((len(r.rank.seconds) for r in group.records), default=0)
        for step in range(count if len(group.records) > 1 else 0):
            times = {
                r.rank.rank: seconds
                for r in group.records
                if step < len(r.rank.seconds) and (seconds := r.rank.seconds[step]) is not None
            }
            if len(times) < 2:
                continue
            rank = max(times, key=lambda r: times[r])
            others = sorted(t for r, t in times.items() if r != rank)
            median, waited = statistics.median(others), times[rank] - others[0]
            if waited > _SLOW_SECONDS and times[rank] > _SLOW_TIMES * median:
                slow.append(
                    StepTime(
                        group=index, step=step, median=median, slowest=times[rank], slowest_rank=rank, waited=waited
                    )
                )  # fmt: skip
    return sorted(slow, key=lambda s: -s.waited)[:20]


def _skew(ranks: list[Rank]) -> list[RunTimeSkew]:
    """At most 20 graphs whose estimated run times differ between ranks; none if the numbers of estimates differ."""
    known = {
        r.rank: [(step, time) for step, times in enumerate(r.run_times) for time in times] for r in ranks if any(r.run_times)
    }
    if len(known) < 2 or len({len(times) for times in known.values()}) > 1:
        return []
    found = []
    for graph, times in enumerate(zip(*known.values(), strict=True)):
        by_rank = dict(zip(known, times, strict=True))
        fastest, slowest = (extreme(by_rank, key=lambda r: by_rank[r][1]) for extreme in (min, max))
        (_, least), (step, most) = by_rank[fastest], by_rank[slowest]
        if most > least:
            found.append(
                RunTimeSkew(
                    graph=graph, step=step, fastest_rank=fastest, fastest=least, slowest_rank=slowest, slowest=most
                )
            )  # fmt: skip
    return sorted(found, key=lambda s: s.fastest - s.slowest)[:20]
