"""`view_model(report)`: the one JSON-ready model that picture, widget and page are made from.

Promises: pure data (no object of the report is shared), every text safe to show, the same for the same
report; graphs are numbered 0, 1, 2, ... in the order in which they were captured; breaks come first.
"""

from __future__ import annotations

from dynascope.compiler.report import Break, Report, headline, plural
from dynascope.widgets.drawing.shapes import break_code
from dynascope.widgets.drawing.sizes import SIZES
from dynascope.widgets.drawing.split_graph import split_picture
from dynascope.widgets.labels.advice import outcome_words
from dynascope.widgets.labels.words import Places, printable, shorten
from dynascope.widgets.model.details import break_target, details
from dynascope.widgets.model.fold_details import fold_details
from dynascope.widgets.model.lens import lens
from dynascope.widgets.model.timeline import cost_text, timeline
from dynascope.widgets.wire import Chip, Row, ViewModel

#: of this model; the browser's side refuses another one
MODEL_SCHEMA = 1
_RANK = {"raised": 0, "skipped": 1, "resumed": 2}


def view_model(report: Report) -> ViewModel:
    """All that a view shows of `report`, with positions."""
    places = Places(report)
    split = split_picture(report, places)
    told = details(report, places) | fold_details(report, places, split)
    return {
        "schema": MODEL_SCHEMA, "headline": printable(headline(report), 2000), "name": _name(report),
        "counts": _counts(report), "chips": _chips(report, places), "first": first_id(report), "split": split,
        "drawing": SIZES.copy(), "lens": lens(report, places), "details": told, "breaks": break_rows(report, places),
        "time": timeline(report, places),
        "notes": [printable(n, 2000) for n in _notes(report)],
        "settings": {k: v if isinstance(v, bool) or v is None else printable(v, 2000) for k, v in report.settings.items()},
        "origin": report.origin,
    }  # fmt: skip


def sorted_breaks(report: Report) -> list[Break]:
    """What matters most first: what stopped, what skips a frame, what goes on (the dearest first); allowed ones last."""
    costs = {c.break_: c.seconds or 0.0 for c in report.profile.breaks} if report.profile else {}
    return sorted(report.breaks, key=lambda b: (bool(b.allowed), _RANK[b.outcome], -costs.get(b.id, 0.0)))


def first_id(report: Report) -> str:
    """The id of what a user should look at first; empty where there is nothing."""
    if report.error is not None and (report.error.break_ or report.error.frame):
        return report.error.break_ or report.error.frame or ""
    breaks = sorted_breaks(report)
    if breaks:
        return breaks[0].id
    for frame in report.frames:
        if frame.status in ("skipped", "failed") or frame.recompile_of:
            return frame.id
    shown = [f.id for f in report.frames if f.status != "ignored"]
    known = [g.id for g in report.graphs if g.ops is not None]
    return next(iter([*known, *shown]), "")


def break_rows(report: Report, places: Places) -> list[Row]:
    """The list of breaks."""
    costs = {c.break_: c for c in report.profile.breaks} if report.profile else {}
    rows: list[Row] = [{
        "id": b.id, "place": places.at(b.file, b.line, b.cell), "code": shorten(break_code(b, places), 120),
        "outcome": b.outcome, "told": outcome_words(report, b),
        "type": shorten((b.type or b.reason or "").replace("`", ""), 160), "hits": len(b.hits), "allowed": bool(b.allowed),
        "resumes": len({r for h in b.hits for r in h.resumes}), "target": break_target(b),
    } for b in sorted_breaks(report)]  # fmt: skip
    for row in rows:
        if row["id"] in costs:
            row["cost"] = cost_text(costs[row["id"]])
    return rows


def _name(report: Report) -> str:
    return printable(_unnamed(report), 2000)


def _counts(report: Report) -> list[list[str]]:
    """The headline after the name, as [number, words] pairs; what is no count has an empty number."""
    line = printable(headline(report))
    parts = line[len(printable(_unnamed(report))) :].removeprefix(": ").split(" · ")
    return [part.split(" ", 1) if part[:1].isdigit() else ["", part] for part in parts]


def _unnamed(report: Report) -> str:
    return ", ".join(report.compiled) or "nothing compiled"


def _chips(report: Report, places: Places) -> list[Chip]:
    """Short facts beside the headline: error, partial, skipped frames, recompiles."""
    chips: list[Chip] = []
    if report.error is not None:
        e = report.error
        first = (e.message.strip().splitlines() or [""])[0].replace("`", "")
        text = shorten(f"{e.type}: {first}".rstrip(": "), 90)
        if e.caught:
            text = "caught by your code: " + text
        kind = "note" if e.caught else "error"
        chip: Chip = {"text": text, "kind": kind, "full": printable(f"{e.type}: {e.message}", 3000)}
        if e.break_ or e.frame:
            chip["id"] = e.break_ or e.frame or ""
        chips.append(chip)
    if report.origin == "partial":
        chips.append({"text": "interrupted: a partial report", "kind": "note"})
    skipped = [f for f in report.frames if f.status == "skipped"]
    for f in skipped[:3]:
        chips.append(
            {
                "text": shorten(f"skipped: {places.name(f)}", 60),
                "kind": "skip",
                "id": f.id,
                "full": printable(f.reason or "", 1000),
            }
        )
    for r in report.recompiles[:2]:
        frame = next((f for f in report.frames if f.id == r.frame), None)
        if frame is not None:
            why = (r.words or r.reasons or ["a guard failed"])[0]
            chips.append(
                {
                    "text": shorten(f"recompiled: {places.name(frame)}", 60),
                    "kind": "note",
                    "id": frame.id,
                    "full": printable(why, 1000),
                }
            )
    return chips


def _notes(report: Report) -> list[str]:
    """The report's notes, and what of the compiler's records could not be used."""
    notes = list(report.notes)
    unread = sum(report.unread.values())
    if unread:
        kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(report.unread.items())[:5])
        notes.append(f"{plural(unread, 'record')} of the compiler could not be used ({kinds})")
    broken = [f"{name}: {why}" for name, why in report.hooks.items() if why is not True]
    if broken:
        notes.append("some facts may be missing, these hooks do not fit this torch: " + "; ".join(broken[:5]))
    return notes
