"""`view_model(report)`: the JSON-ready model from which the picture, the widget and the page are made.

Promises: plain data that shares no mutable object with the report; every text is safe to show; the same report gives the same
model.  Graphs are numbered 0, 1, 2, ... in the order of capture.  A part that cannot be made is left empty, and a note says
so; if no detail can be made, a single detail says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypedDict, TypeVar

from dynascope.compiler.report import Report
from dynascope.widgets.detail import CodeBody, Detail, ProseBody, SourceBody, guarded_detail, not_drawn
from dynascope.widgets.drawing.fx_picture import FxPicture, fx_picture
from dynascope.widgets.drawing.split_graph import MOST as MOST_FRAMES
from dynascope.widgets.drawing.split_graph import split_picture
from dynascope.widgets.drawing.split_svg import Drawn, drawn
from dynascope.widgets.features import summary
from dynascope.widgets.features.breaks import BreakRow, StackRow, break_detail, break_rows
from dynascope.widgets.features.comparisons import CheckPart, check_part
from dynascope.widgets.features.compile_time import CompileTimeLine, compile_time_line
from dynascope.widgets.features.fixes import FixBody, is_fixable
from dynascope.widgets.features.frames import frame_detail
from dynascope.widgets.features.graphs import FxNode, RunBody, graph_detail
from dynascope.widgets.features.overview import Overview, is_large, overview
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.recompiles import RecompileRow, every_recompile
from dynascope.widgets.features.run_time import TimeLine, timeline
from dynascope.widgets.features.source_view import SourceFile, source_view, ways
from dynascope.widgets.words import guarded, printable

T = TypeVar("T")


class FxBody(TypedDict):
    """An FX graph: all of its nodes, and the picture."""

    nodes: list[FxNode]
    picture: FxPicture


#: what the body of a tab is, by the tab's kind
BODIES: dict[str, Any] = {
    "prose": ProseBody, "code": CodeBody, "source": SourceBody, "stack": list[StackRow], "graph": FxBody,
    "list": list[list[str]], "run": RunBody, "fix": FixBody,
}  # fmt: skip


class ViewModel(TypedDict):
    """All that a view shows of one report."""

    headline: str
    name: str
    counts: list[list[str]]
    chips: list[summary.Chip]
    first: str
    advice: summary.Recommendation | None
    overview: Overview | None
    split: Drawn
    sources: list[SourceFile]
    details: dict[str, Detail]
    breaks: list[BreakRow]
    recompiles: list[RecompileRow]
    time: TimeLine | None
    compile_time: CompileTimeLine | None
    notes: list[str]
    check: CheckPart | None
    settings: dict[str, Any]
    fixable: bool  # there are breaks or recompiles, and not every fix was tried


def view_model(report: Report) -> ViewModel:
    """Everything that a view shows of `report`, with the positions of all shapes."""
    return guarded("This report", lambda: _model(report), _empty)


def _empty(why: str) -> ViewModel:
    """The model of a report of which nothing can be drawn; all that it says is `why`."""
    return {
        "headline": why, "name": "dynascope", "counts": [["", why]], "chips": [], "first": "view0",
        "advice": None, "overview": None,
        "split": {"width": 0.0, "height": 0.0, "large": False, "left_out": "", "svg": ""},
        "sources": [], "details": {"view0": not_drawn("view", "Not drawn", why)},
        "breaks": [], "recompiles": [], "time": None, "compile_time": None, "notes": [], "check": None,
        "settings": {}, "fixable": False,
    }  # fmt: skip


def _model(report: Report) -> ViewModel:
    places, missing, large = Places(report), list[str](), is_large(report)

    def part(what: str, make: Callable[[], T], instead: T) -> T:
        """Return `make()`; if it raises, add a note and return `instead`."""

        def left_out(why: str) -> T:
            missing.append(why)
            return instead

        return guarded(what, make, left_out)

    blank, own_name = _empty(""), printable(summary.name(report), 2000)
    is_split_large = large or sum(f.status != "ignored" for f in report.frames) > MOST_FRAMES
    headline = part("The headline", lambda: summary.headline(report), own_name)
    advice = part("What to do first", lambda: summary.recommendation(places), None)
    first = part("What matters most", lambda: summary.first_id(report), "")
    if large and advice is not None and report.error is None:
        first = advice["id"] or first
    model: ViewModel = {
        "headline": printable(headline, 2000), "name": own_name,
        "counts": part("The headline", lambda: [_count(printable(words)) for words in summary.headline_parts(report)], []),
        "chips": part("The facts beside the headline", lambda: summary.chips(places), []),
        "first": first, "advice": advice, "overview": part("The overview", lambda: overview(places), None),
        "split": part("The split graph", lambda: drawn(split_picture(report, places, None), is_split_large), blank["split"]),
        "sources": part("The source", lambda: source_view(places, large), []),
        "details": guarded("The details", lambda: details(places), lambda why: _empty(why)["details"]),
        "breaks": part("The list of breaks", lambda: break_rows(places), []),
        "recompiles": part("The list of recompiles", lambda: every_recompile(places), []),
        "time": part("The run time", lambda: timeline(places), None),
        "compile_time": part("The compile time", lambda: compile_time_line(places), None), "notes": [],
        "check": part("The check", lambda: check_part(report), None),
        "settings": {k: v if isinstance(v, bool) or v is None else printable(v, 2000) for k, v in report.settings.items()},
        "fixable": is_fixable(report),
    }  # fmt: skip
    model["notes"] = [*missing, *summary.notes(report)]
    return model


def _count(words: str) -> list[str]:
    """A part of the headline as a number and words; the number is empty if the part is not a count."""
    return words.split(" ", 1) if words[:1].isdigit() else ["", words]


def details(places: Places) -> dict[str, Detail]:
    """The details of the breaks, frames and graphs, by id; one that cannot be made says so, and the others remain."""
    by_id: dict[str, Detail] = {}
    for b in places.report.breaks:
        by_id[b.id] = guarded_detail("break", "Graph break", partial(break_detail, b, places))
    for f in places.report.frames:
        if f.status != "ignored":
            by_id[f.id] = guarded_detail(f.kind, "Frame", partial(frame_detail, f, places))
    for number, g in places.graphs.values():
        by_id[g.id] = guarded_detail("graph", f"Graph {number}", partial(graph_detail, number, g, places, fx_picture))
    for id, way in ways(places).items():
        if id in by_id:
            by_id[id]["way"] = way
    return by_id
