"""What a run adds to the assembled Report: a short ordered list of `Report -> Report` annotators.

`assemble` makes the Report from events alone.  What a run measured or set up besides is added here, in this order and nowhere
else; each annotator changes only its own part of the Report that it is given, and returns it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dynascope.compiler.accuracy.check import Checked
from dynascope.compiler.driver.regions import RegionsInForce
from dynascope.compiler.profile import inputs, measure
from dynascope.compiler.report import Report


@dataclass
class RunFacts:
    """What a run knows that no event tells."""

    #: sentences for the user
    notes: list[str] = field(default_factory=list)
    regions: RegionsInForce | None = None
    checked: Checked | None = None
    measured: measure.Measured | None = None
    tried: list[inputs.Tried] | None = None


def annotate(report: Report, facts: RunFacts) -> Report:
    """The Report with everything that the run adds."""
    for annotator in ANNOTATORS:
        report = annotator(report, facts)
    return report


def annotate_regions(report: Report, facts: RunFacts) -> Report:
    """Names the `--region` options as the user wrote them, and says which had no effect."""
    if facts.regions is not None:
        facts.regions.annotate(report)
    return report


def annotate_inputs(report: Report, facts: RunFacts) -> Report:
    """`report.inputs`: what each input made the compiler do."""
    if facts.tried is not None:
        report.inputs = inputs.told(facts.tried, report)
    return report


def annotate_profile(report: Report, facts: RunFacts) -> Report:
    """`report.profile`: where the time of a call goes."""
    if facts.measured is not None:
        report.profile = measure.tell(facts.measured, report)
    return report


def annotate_check(report: Report, facts: RunFacts) -> Report:
    """`report.check`: compiled against eager."""
    if facts.checked is not None:
        report.check = facts.checked.to_dict()
        facts.notes.append(facts.checked.words())
    return report


def annotate_notes(report: Report, facts: RunFacts) -> Report:
    """The run's own notes come first, each once."""
    report.notes = list(dict.fromkeys([*facts.notes, *report.notes]))
    return report


ANNOTATORS: tuple[Callable[[Report, RunFacts], Report], ...] = (
    annotate_regions,
    annotate_inputs,
    annotate_profile,
    annotate_check,
    annotate_notes,
)
