"""`ranks_model(report)`: the JSON-ready model from which the page, the widget and the picture of a RanksReport are made.

Promises: every text is safe to show; the model of thousands of ranks stays small, because each rank has few numbers, and only
a few groups have views.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypedDict

from dynascope.compiler.ranks import SOFT_KINDS, RankGroup, RanksReport
from dynascope.compiler.report import label
from dynascope.widgets.features import ranks as rank_words
from dynascope.widgets.guarded import guarded
from dynascope.widgets.model import ViewModel, view_model
from dynascope.widgets.words import capped, printable, shorten

#: limits on the groups that are shown, and on the characters of JSON in their views together; the first view is always kept
MOST_GROUPS, MOST_VIEWS = 24, 12_000_000
MOST_DIFFERENCES, MOST_UNWELL = 40, 40
#: the matrix of ranks and steps has at most this many cells; if there would be more, only the first steps are shown
MOST_CELLS = 400_000


class StepModel(TypedDict):
    """One compile of a group; `same`: a hash, equal for steps that compiled the same code."""

    frame: str
    name: str
    place: str
    status: str
    notes: list[str]
    same: str


class GroupModel(TypedDict):
    """Ranks that compiled the same code; `view` is None if it was left out or the report could not be read."""

    title: str
    ranks: str
    count: int
    counts: str
    steps: list[StepModel]
    view: ViewModel | None


class DifferenceModel(TypedDict):
    """A difference between a group, or some ranks, and the reference.

    `group`, `reference` and `step`: -1 if there is none, or if the group is not in the model; `frame` and `there`: ids of
    the step's frame in the two views; `side`: 1 if the place is in the reference's code, else 0.
    """

    title: str
    details: list[str]
    group: int
    reference: int
    step: int
    frame: str
    there: str
    side: int


class RankModel(TypedDict):
    """One rank: its group (-1: none), and milliseconds of each step (-1: unknown)."""

    rank: int
    group: int
    status: str
    words: str
    total: int
    times: list[int]


class RanksModel(TypedDict):
    """The model of a RanksReport; `more`: how many differences are left out."""

    headline: str
    alike: bool
    ranks: list[RankModel]
    groups: list[GroupModel]
    differences: list[DifferenceModel]
    more: int
    unwell: list[str]
    slow: list[str]
    notes: list[str]


def ranks_model(report: RanksReport) -> RanksModel:
    """Everything that a view shows of `report`."""
    ranks = list(report.ranks)
    steps = max((len(r.seconds) for r in ranks), default=0)
    shown_steps = min(steps, MOST_CELLS // max(1, len(ranks)))
    hard = [d for d in report.differences if d.kind not in SOFT_KINDS]
    notes = [*rank_words.remarks(report, MOST_DIFFERENCES), *report.notes]
    if len(report.groups) > MOST_GROUPS:
        notes.append(f"of {len(report.groups)} groups, the first {MOST_GROUPS} can be compared")
    if shown_steps < steps:
        notes.append(f"of {steps} compiles, the first {shown_steps} are in the matrix")
    return {
        "headline": printable(rank_words.headline(report), 2000),
        "alike": report.alike,
        "ranks": [
            {
                "rank": r.rank,
                "group": -1 if r.group is None else r.group,
                "status": r.status,
                "words": printable(rank_words.rank_line(report, r), 400),
                "total": round(1000 * r.compile_seconds),
                "times": [-1 if s is None else round(1000 * s) for s in r.seconds[:shown_steps]],
            }
            for r in ranks
        ],
        "groups": _groups(report),
        "differences": [
            {
                "title": printable(rank_words.difference_title(report, d), 600),
                "details": [printable(text, 1200) for text in rank_words.difference_details(report, d)],
                "group": _shown(d.group),
                "reference": _shown(d.reference_group),
                "step": -1 if d.step is None else d.step,
                "frame": d.frame or "",
                "there": d.reference_frame or "",
                "side": int(d.place_of == "reference"),
            }
            for d in hard[:MOST_DIFFERENCES]
        ],
        "more": max(0, len(hard) - MOST_DIFFERENCES),
        "unwell": [printable(text, 800) for text in capped(rank_words.rank_failures(report), MOST_UNWELL)],
        "slow": [printable(text, 800) for text in rank_words.slow_lines(report, 5)],
        "notes": [printable(text, 800) for text in notes],
    }


def _shown(group: int | None) -> int:
    return -1 if group is None or group >= MOST_GROUPS else group


def _groups(report: RanksReport) -> list[GroupModel]:
    groups: list[GroupModel] = []
    left = MOST_VIEWS
    for index, group in enumerate(report.groups[:MOST_GROUPS]):
        view = view_model(group.report) if group.report is not None and left > 0 else None
        size = len(json.dumps(view)) if view is not None else 0
        left -= size
        groups.append(
            {
                "title": _title(group.ranks),
                "ranks": shorten(rank_words.ranges(group.ranks), 80),
                "count": len(group.ranks),
                "counts": rank_words.counts(group.report) if group.report else "its report could not be read",
                "steps": _steps(group),
                "view": view if left > 0 or index == 0 else None,
            }
        )
    return groups


def _title(numbers: Sequence[int]) -> str:
    """The title of a group, `ranks 0-2, 5`; a long list is cut at its end."""
    name = rank_words.ranks_name(numbers)
    return name if len(name) <= 40 else name[:36].rpartition(",")[0] + ", …"


def _steps(group: RankGroup) -> list[StepModel]:
    breaks = {} if group.report is None else {g.frame: g.break_ for g in group.report.graphs if g.break_}
    places = {} if group.report is None else {b.id: b for b in group.report.breaks}
    steps: list[StepModel] = []
    for step in group.steps:
        notes = ["recompile"] if step.recompile else []
        broken = places.get(breaks.get(step.frame, "") or "")
        if broken is not None:
            notes.append(f"✂ {label(broken.file, broken.cell)}:{broken.line}")
        if step.splits:
            notes.append(f"split by DDP into {step.splits}")
        notes += _collective_words([c.kind for c in step.collectives])
        steps.append(
            {
                "frame": step.frame,
                "name": shorten(printable(step.name, 200), 60) + (" (resume)" if step.kind == "resume" else ""),
                "place": printable(f"{label(step.file, step.cell)}:{step.line}", 200),
                "status": step.status,
                "notes": [printable(note, 200) for note in notes],
                "same": step.hash,
            }
        )
    return steps


def _collective_words(kinds: Sequence[str]) -> list[str]:
    """Words for each kind of collective, in the order of their first calls: `⇄ 2 × all_reduce`."""
    words: list[str] = []
    for kind in dict.fromkeys(kinds):
        count = list(kinds).count(kind)
        words.append(f"⇄ {kind}" if count == 1 else f"⇄ {count} × {kind}")
    return words


def safe_ranks_model(report: RanksReport) -> RanksModel:
    """`ranks_model(report)`, or a model that says why it could not be made."""
    return guarded("This report", lambda: ranks_model(report), _undrawn)


def _undrawn(why: str) -> RanksModel:
    return {
        "headline": why, "alike": False, "ranks": [], "groups": [], "differences": [], "more": 0, "unwell": [],
        "slow": [], "notes": [],
    }  # fmt: skip
