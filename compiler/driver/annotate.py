"""What a run adds to the assembled Report: a short ordered list of `Report -> Report` annotators.

`assemble` makes the Report, with its notes on the compile, from events alone.  Whatever else a run measured or set up is added
here, in this order and nowhere else; each annotator changes only its own part of the given Report, and returns it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dynascope.compiler.accuracy import check
from dynascope.compiler.driver.regions import RegionsInForce
from dynascope.compiler.profile import inputs, measure
from dynascope.compiler.report import Check, Report


@dataclass
class RunFacts:
    """What a run knows beyond its events."""

    #: sentences for the user
    notes: list[str] = field(default_factory=list)
    regions: RegionsInForce | None = None
    checked: Check | None = None
    measured: measure.Measured | None = None
    tried: list[inputs.Tried] | None = None


def annotate(report: Report, facts: RunFacts) -> Report:
    """Apply all annotators to the Report."""
    for annotator in ANNOTATORS:
        report = annotator(report, facts)
    return report


def annotate_regions(report: Report, facts: RunFacts) -> Report:
    """Name the `--region` options as the user wrote them, and note which had no effect."""
    if facts.regions is not None:
        facts.regions.annotate(report)
    return report


def annotate_inputs(report: Report, facts: RunFacts) -> Report:
    """Set `report.inputs`: what the compiler did for each input."""
    if facts.tried is not None:
        inputs.annotate_inputs(report, facts.tried)
    return report


def annotate_profile(report: Report, facts: RunFacts) -> Report:
    """Set `report.profile`: where the time of a call goes."""
    if facts.measured is not None:
        measure.annotate_profile(report, facts.measured)
    return report


def annotate_check(report: Report, facts: RunFacts) -> Report:
    """Set `report.check`: compiled against eager."""
    if facts.checked is not None:
        report.check = facts.checked
        facts.notes.append(check.words(facts.checked))
    return report


def annotate_notes(report: Report, facts: RunFacts) -> Report:
    """Put the run's own notes before the others, each once."""
    report.notes = list(dict.fromkeys([*facts.notes, *report.notes]))
    return report


ANNOTATORS: tuple[Callable[[Report, RunFacts], Report], ...] = (
    annotate_regions,
    annotate_inputs,
    annotate_profile,
    annotate_check,
    annotate_notes,
)
