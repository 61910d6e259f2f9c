"""The detail of a fold: the folded frames and breaks, each with a link.

Promises: every folded frame and break is counted; the first `ROWS` of each are listed.
"""

from __future__ import annotations

from dynascope.compiler.report import Report
from dynascope.widgets.drawing.shapes import break_code
from dynascope.widgets.labels.words import Places, shorten
from dynascope.widgets.wire import Detail, Part, Picture

ROWS = 500


def fold_details(report: Report, places: Places, picture: Picture) -> dict[str, Detail]:
    """Detail by id, for each fold of a picture."""
    frames = {f.id: f for f in report.frames}
    breaks = {b.id: b for b in report.breaks}
    by_id: dict[str, Detail] = {}
    for shape in picture["boxes"]:
        if shape["kind"] != "fold":
            continue
        held = shape.get("holds", [])
        inside = [frames[id] for id in held if id in frames]
        folded_breaks = [breaks[id] for id in held if id in breaks]
        rows = [[shorten(places.name(f), 120), places.frame(f), f.status, f.id] for f in inside[:ROWS]]
        parts: list[Part] = [{"key": "frames", "name": f"Frames ({len(inside)})", "kind": "list", "body": rows}]
        if folded_breaks:
            rows = [
                [shorten(break_code(b, places), 120), places.at(b.file, b.line, b.cell), b.outcome, b.id]
                for b in folded_breaks[:ROWS]
            ]
            parts.append({"key": "breaks", "name": f"Graph breaks ({len(folded_breaks)})", "kind": "list", "body": rows})
        if "inside" in shape:
            by_id |= fold_details(report, places, shape["inside"])
        by_id[shape["id"]] = {
            "kind": "fold", "title": "Folded", "code": shape["full"].replace(", folded", ""), "place": "", "copy": "",
            "facts": [["frames", str(len(inside)), ""], ["graph breaks", str(len(folded_breaks)), ""]], "parts": parts,
        }  # fmt: skip
    return by_id
