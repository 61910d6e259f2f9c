"""A RanksReport as a stand-alone page, as one picture, and as what a saved notebook shows.

Promises: nothing is loaded, and every text is escaped, as in `page` and `static_output`; the picture of thousands of ranks has
no more shapes than that of a few hundred.
"""

from __future__ import annotations

import base64
import math
from html import escape
from typing import Any

from dynascope.compiler.ranks import SOFT_KINDS, RanksReport
from dynascope.compiler.report import encodable, plural
from dynascope.compiler.report.outline import MIME
from dynascope.widgets.drawing.palette import GRAPHS_LIGHT, LIGHT
from dynascope.widgets.features.places import graph_tone
from dynascope.widgets.features.ranks import to_text
from dynascope.widgets.guarded import guarded
from dynascope.widgets.ranks_model import RankModel, RanksModel, safe_ranks_model
from dynascope.widgets.render.page import document, empty_page

#: the picture's matrix has at most this many columns and rows; if there are more ranks, a column shows the slowest compiles of
#: several
COLUMNS, ROWS = 256, 60
_WIDTH, _LEFT, _TOP, _STRIP, _ROW = 900, 150, 46, 22, 14


def to_html(report: RanksReport) -> str:
    """`report` as one HTML document."""
    return guarded("This report", lambda: _page(report), empty_page)


def _page(report: RanksReport) -> str:
    model = safe_ranks_model(report)
    return document(model["headline"], model, guarded("The static picture", lambda: _body(model), escape), "ranks")


def to_mimebundle(report: RanksReport) -> dict[str, Any]:
    """`text/html` without script, `text/plain`, and the outline that docs tests compare."""
    body = guarded("This report", lambda: _body(safe_ranks_model(report)), escape)
    html = f'<div class="dyn-static">{body}</div>'
    return {"text/html": html, "text/plain": encodable(to_text(report, width=100)), MIME: outline(report)}


def outline(report: RanksReport) -> dict[str, Any]:
    """The number of ranks, groups and differences, and the breaks in which ranks differ, in the form of `report.outline`."""
    hard = [d for d in report.differences if d.kind not in SOFT_KINDS]
    counts = {"ranks": len(report.ranks), "groups": len(report.groups), "differences": len(hard)}
    breaks = [{"type": d.reason, "line": d.line, "outcome": d.kind} for d in hard if d.kind == "break"]
    torch = str(report.versions.get("torch") or "").partition("+")[0]
    return {"summary": counts, "breaks": breaks, **({"torch": torch} if torch else {})}


def _body(model: RanksModel) -> str:
    out = [f'<p style="margin:4px 0 8px"><strong>{escape(model["headline"])}</strong></p>']
    for difference in model["differences"][:12]:
        details = "".join(f"<br><code>{escape(text)}</code>" for text in difference["details"])
        out.append(f'<p style="margin:6px 0">✗ <strong>{escape(difference["title"])}</strong>{details}</p>')
    more = len(model["differences"][12:]) + model["more"]
    out += [f"<p>… and {plural(more, 'more difference')}</p>"] if more else []
    out += [f'<p style="margin:2px 0">{escape(text)}</p>' for text in [*model["unwell"], *model["slow"], *model["notes"]]]
    data = base64.b64encode(_svg(model).encode("utf-8", "replace")).decode("ascii")
    alt = escape("compiles by rank: " + model["headline"], quote=True)
    out.append(f'<p style="margin:8px 0"><img alt="{alt}" style="max-width:100%" src="data:image/svg+xml;base64,{data}"></p>')
    return "".join(out)


def to_svg(report: RanksReport) -> str:
    """The picture as one SVG document: a strip with the group of each rank, and the matrix of compiles by rank."""
    return _svg(safe_ranks_model(report))


def _svg(model: RanksModel) -> str:
    ranks = model["ranks"]
    rows = min(ROWS, max((len(r["times"]) for r in ranks), default=0))
    height = _TOP + _STRIP + 8 + rows * _ROW + 12
    columns = _columns(ranks)
    width = (_WIDTH - _LEFT - 12) / max(1, len(columns))
    usual = [_median([r["times"][n] for r in ranks if n < len(r["times"])]) for n in range(rows)]
    shapes = []
    for number, column in enumerate(columns):
        x = _LEFT + number * width
        shown = max(column, key=lambda r: (r["group"] != 0, r["status"] != "finished"))
        stroke = f' stroke="{LIGHT["error"]}" stroke-width="2"' if shown["status"] != "finished" else ""
        shapes.append(_rect(x, _TOP, width, _STRIP, _tone(shown), 0.45, stroke))
        for row in range(rows):
            times = [r["times"][row] for r in column if row < len(r["times"])]
            if times:
                strength = 0.22 + 0.78 * _slowness(max(times), usual[row])
                shapes.append(_rect(x, _TOP + _STRIP + 8 + row * _ROW, width, _ROW - 2, _tone(shown), strength, ""))
    first = model["groups"][0]["steps"] if model["groups"] else []
    names = [
        f'<text x="{_LEFT - 8}" y="{_TOP + _STRIP + 8 + n * _ROW + 10}" text-anchor="end">{escape(step["name"][:24])}</text>'
        for n, step in enumerate(first[:rows])
    ]
    ends = [ranks[0]["rank"], ranks[-1]["rank"]] if ranks else ["", ""]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="system-ui, sans-serif" font-size="11">'
        f'<rect width="{_WIDTH}" height="{height}" fill="{LIGHT["bg"]}"/>'
        f'<g fill="{LIGHT["ink"]}">'
        f'<text x="12" y="20" font-size="14" font-weight="600">{escape(model["headline"][:110])}</text>'
        f'<text x="{_LEFT - 8}" y="{_TOP + 15}" text-anchor="end">ranks {ends[0]} to {ends[1]}</text>{"".join(names)}</g>'
        f"{''.join(shapes)}</svg>\n"
    )


def _columns(ranks: list[RankModel]) -> list[list[RankModel]]:
    """The ranks of each column of the picture."""
    each = -(-len(ranks) // COLUMNS) if ranks else 1
    return [ranks[n : n + each] for n in range(0, len(ranks), each)]


def _rect(x: float, y: float, width: float, height: float, fill: str, strength: float, more: str) -> str:
    gap = 1 if width > 4 else 0
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.5, width - gap):.1f}" height="{height}" fill="{fill}" '
        f'fill-opacity="{strength:.2f}"{more}/>'
    )


def _tone(rank: RankModel) -> str:
    return LIGHT["skip"] if rank["group"] < 0 else GRAPHS_LIGHT[graph_tone(rank["group"])][0]


def _median(values: list[int]) -> int:
    known = sorted(v for v in values if v >= 0)
    return known[len(known) // 2] if known else -1


def _slowness(time: int, usual: int) -> float:
    """How slow a compile is: from 0 (as usual, or at most 50 ms) to 1 (eight times as long as usual, or longer)."""
    if time <= 50 or usual < 0 or time <= usual:
        return 0.0
    return min(1.0, math.log2(time / max(usual, 1)) / 3)
