"""The detail of a fold: what the box stands for, each frame and break a link of its own.

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
    found: dict[str, Detail] = {}
    for shape in picture["boxes"]:
        if shape["kind"] != "fold":
            continue
        held = shape.get("holds", [])
        inside = [frames[id] for id in held if id in frames]
        met = [breaks[id] for id in held if id in breaks]
        rows = [[shorten(places.name(f), 120), places.frame(f), f.status, f.id] for f in inside[:ROWS]]
        parts: list[Part] = [{"key": "frames", "name": f"Frames ({len(inside)})", "kind": "list", "body": rows}]
        if met:
            rows = [
                [shorten(break_code(b, places), 120), places.at(b.file, b.line, b.cell), b.outcome, b.id] for b in met[:ROWS]
            ]
            parts.append({"key": "breaks", "name": f"Graph breaks ({len(met)})", "kind": "list", "body": rows})
        if "inside" in shape:
            found |= fold_details(report, places, shape["inside"])
        found[shape["id"]] = {
            "kind": "fold", "title": "Folded", "code": shape["full"].replace(", folded", ""), "place": "", "copy": "",
            "facts": [["frames", str(len(inside)), ""], ["graph breaks", str(len(met)), ""]], "parts": parts,
        }  # fmt: skip
    return found
