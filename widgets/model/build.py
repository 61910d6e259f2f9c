"""`view_model(report)`: the JSON-ready model from which the picture, the widget and the page are made.

Promises: plain data that shares no mutable object with the report; every text is safe to show; the same report gives the same
model.  Graphs are numbered 0, 1, 2, ... in the order of capture.  A part that cannot be made is left empty, and a note says
so; if no detail can be made, a single detail says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dynascope.compiler.report import Break, Frame, Recompile, Report
from dynascope.widgets.drawing.shapes import SIZES, break_code
from dynascope.widgets.drawing.split_graph import split_picture, whole_picture
from dynascope.widgets.guarded import guarded
from dynascope.widgets.labels.advice import error_message, outcome_words
from dynascope.widgets.labels.fixes import fixes_summary, how_to_apply, is_fixable
from dynascope.widgets.labels.recompiles import recompile_words
from dynascope.widgets.labels.run_time import cost_words
from dynascope.widgets.labels.summary import headline, name, record_notes
from dynascope.widgets.labels.words import Places, printable, shorten
from dynascope.widgets.model.compile_time import compile_time_line
from dynascope.widgets.model.details import ROWS, break_target, details, list_part, not_drawn
from dynascope.widgets.model.lens import lens
from dynascope.widgets.model.overview import is_large, overview
from dynascope.widgets.model.recompiles import recompile_rows
from dynascope.widgets.model.timeline import timeline
from dynascope.widgets.wire import Chip, Detail, Part, Picture, Row, ViewModel

#: version of the model; the front end draws no other
MODEL_SCHEMA = 1
T = TypeVar("T")
_RANK = {"raised": 0, "skipped": 1, "resumed": 2}


def view_model(report: Report) -> ViewModel:
    """Everything that a view shows of `report`, with the positions of all shapes."""
    return guarded("This report", lambda: _model(report), _undrawn)


def _model(report: Report) -> ViewModel:
    places = Places(report)
    missing: list[str] = []

    def part(what: str, make: Callable[[], T], instead: T) -> T:
        """Return `make()`; if it raises, add a note and return `instead`."""

        def left_out(why: str) -> T:
            missing.append(why)
            return instead

        return guarded(what, make, left_out)

    head = part("The headline", lambda: headline(report), name(report))
    large = is_large(report)
    draw = whole_picture if large else split_picture
    split = part("The split graph", lambda: draw(report, places), _no_picture())
    all_details = guarded("The details", lambda: details(report, places), _no_details)
    folds: dict[str, Detail] = {}
    all_details |= part("The details of the folds", lambda: fold_details(report, places, split), folds)
    model: ViewModel = {
        "schema": MODEL_SCHEMA, "headline": printable(head, 2000), "name": printable(name(report), 2000),
        "counts": _counts(report, printable(head)),
        "chips": part("The facts beside the headline", lambda: _chips(report, places), []),
        "first": part("What matters most", lambda: first_id(report), ""),
        "overview": part("The overview", lambda: overview(report, places), None), "split": split, "drawing": SIZES.copy(),
        "lens": part("The source", lambda: lens(report, places, large), []), "details": all_details,
        "breaks": part("The list of breaks", lambda: break_rows(report, places), []),
        "recompiles": part("The list of recompiles", lambda: recompile_rows(report, places), []),
        "time": part("The run time", lambda: timeline(report), None),
        "compile_time": part("The compile time", lambda: compile_time_line(report, places), None),
        "notes": [printable(n, 2000) for n in [*record_notes(report), *_fix_notes(report), *report.notes]],
        "settings": {k: v if isinstance(v, bool) or v is None else printable(v, 2000) for k, v in report.settings.items()},
        "origin": report.origin, "fixable": is_fixable(report),
    }  # fmt: skip
    if model["overview"] is not None and report.error is None and model["overview"]["first_id"]:
        model["first"] = model["overview"]["first_id"]
    model["notes"] = [*missing, *model["notes"]]
    return model


def _fix_notes(report: Report) -> list[str]:
    """Notes on fixes: what can be fixed, and the notes of the search itself."""
    summary = fixes_summary(report)
    if not summary or report.fix_set is None:
        return []
    see = "see the Fix tabs, or report.patch()" if report.fix_set.edits else how_to_apply(report)
    return [f"{summary}: {see}" if see else summary, *report.fix_set.notes]


def _undrawn(why: str) -> ViewModel:
    """The model of a report of which nothing can be drawn; all that it says is `why`."""
    return {
        "schema": MODEL_SCHEMA, "headline": why, "name": "dynascope", "counts": [["", why]], "chips": [], "first": "view0",
        "overview": None, "split": _no_picture(), "drawing": SIZES.copy(), "lens": [],
        "details": _no_details(why), "breaks": [], "recompiles": [], "time": None, "compile_time": None, "notes": [],
        "settings": {}, "origin": "live", "fixable": False,
    }  # fmt: skip


def _no_picture() -> Picture:
    return {"width": 0.0, "height": 0.0, "groups": [], "boxes": [], "arrows": [], "folded": ""}


def _no_details(why: str) -> dict[str, Detail]:
    """The details if they could not be made: a single one, which says why."""
    return {"view0": not_drawn("view", "Not drawn", why)}


def sorted_breaks(report: Report) -> list[Break]:
    """The breaks by outcome (raised, skipped, resumed), then by cost, the greatest first; allowed breaks come last."""
    costs = {c.break_: c.seconds or 0.0 for c in report.profile.breaks} if report.profile else {}
    return sorted(report.breaks, key=lambda b: (bool(b.allowed), _RANK[b.outcome], -costs.get(b.id, 0.0)))


def first_id(report: Report) -> str:
    """The id of what the user should look at first; empty if there is nothing."""
    if report.error is not None and (report.error.break_ or report.error.frame):
        return report.error.break_ or report.error.frame or ""
    breaks = sorted_breaks(report)
    if breaks:
        return breaks[0].id
    for frame in report.frames:
        if frame.status in ("skipped", "failed", "unfinished") or frame.recompile_of:
            return frame.id
    shown = [f.id for f in report.frames if f.status != "ignored"]
    known = [g.id for g in report.graphs if g.ops is not None]
    return next(iter([*known, *shown]), "")


def break_rows(report: Report, places: Places) -> list[Row]:
    """The rows of the list of breaks."""
    costs = {c.break_: c for c in report.profile.breaks} if report.profile else {}
    rows: list[Row] = [{
        "id": b.id, "place": places.at(b.file, b.line, b.cell), "code": shorten(break_code(b, places), 120),
        "outcome": b.outcome, "outcome_text": outcome_words(report, b, brief=True),
        "type": shorten((b.type or b.reason or "").replace("`", ""), 160), "hits": len(b.hits), "allowed": bool(b.allowed),
        "resumes": len({r for h in b.hits for r in h.resumes}), "target": break_target(b),
    } for b in sorted_breaks(report)]  # fmt: skip
    for row in rows:
        if row["id"] in costs:
            row["cost"] = cost_words(costs[row["id"]])
    return rows


def _counts(report: Report, line: str) -> list[list[str]]:
    """The headline after the name, as [number, words] pairs; the number is empty if a part is not a count."""
    parts = line[len(printable(name(report))) :].removeprefix(": ").split(" · ")
    return [part.split(" ", 1) if part[:1].isdigit() else ["", part] for part in parts if part]


def _chips(report: Report, places: Places) -> list[Chip]:
    """Short facts beside the headline: the error, an interrupted run, skipped and unfinished frames, recompiles."""
    chips: list[Chip] = []
    if report.error is not None:
        e = report.error
        first = error_message(report).replace("`", "")
        text = ("caught by your code: " if e.caught else "") + shorten(f"{e.type}: {first}".rstrip(": "), 90)
        chip: Chip = {"text": text, "kind": "note" if e.caught else "error", "full": printable(f"{e.type}: {e.message}", 3000)}
        if e.break_ or e.frame:
            chip["id"] = e.break_ or e.frame or ""
        chips.append(chip)
    if report.origin == "partial":
        chips.append({"text": "interrupted: a partial report", "kind": "note"})

    def frame_chip(frame: Frame, what: str, kind: str, why: str | None) -> Chip:
        text = shorten(f"{what}: {places.name(frame)}", 60)
        return {"text": text, "kind": kind, "id": frame.id, "full": printable(why or "", 1000)}

    chips += [frame_chip(f, "skipped", "skip", f.reason) for f in report.frames if f.status == "skipped"][:3]
    chips += [frame_chip(f, "unfinished", "note", f.reason) for f in report.frames if f.status == "unfinished"][:2]
    frames = {f.id: f for f in report.frames}
    again: dict[str, Recompile] = {}  # the first recompile of each function
    for r in report.recompiles:
        if r.frame in frames:
            again.setdefault(places.name(frames[r.frame]), r)
    for r in list(again.values())[:2]:
        chips.append(frame_chip(frames[r.frame], "recompiled", "note", (recompile_words(r) or ["a guard failed"])[0]))
    return chips


def fold_details(report: Report, places: Places, picture: Picture) -> dict[str, Detail]:
    """The detail of each fold of a picture, and of folds inside it: the number of its frames and breaks, and links to them."""
    frames = {f.id: f for f in report.frames}
    breaks = {b.id: b for b in report.breaks}
    by_id: dict[str, Detail] = {}
    for shape in picture["boxes"]:
        if shape["kind"] != "fold":
            continue
        held = shape.get("contents", [])
        inside = [frames[id] for id in held if id in frames]
        broken = [breaks[id] for id in held if id in breaks]
        rows = [[shorten(places.name(f), 120), places.frame(f), f.status, f.id] for f in inside[:ROWS]]
        parts: list[Part] = [list_part("frames", f"Frames ({len(inside)})", rows)]
        if broken:
            at = [(b, places.at(b.file, b.line, b.cell)) for b in broken[:ROWS]]
            rows = [[shorten(break_code(b, places), 120), place, b.outcome, b.id] for b, place in at]
            parts.append(list_part("breaks", f"Graph breaks ({len(broken)})", rows))
        if "inside" in shape:
            by_id |= fold_details(report, places, shape["inside"])
        by_id[shape["id"]] = {
            "kind": "fold", "title": "Folded", "code": shape["full"].replace(", folded", ""), "place": "", "copy": "",
            "facts": [["frames", str(len(inside)), ""], ["graph breaks", str(len(broken)), ""]], "parts": parts,
        }  # fmt: skip
    return by_id
