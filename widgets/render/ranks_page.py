"""A RanksReport as a page, which is also the live view, and as what a saved notebook shows.

Promises: nothing is loaded, and every text is escaped, as in `page` and `static_output`; all but the views of groups' reports
is HTML that needs no script; only a few groups have views.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Any

from dynascope.compiler.ranks import Difference, RanksReport
from dynascope.compiler.report import encodable, label, plural
from dynascope.compiler.report.comparison import MIME
from dynascope.widgets.features import ranks as words
from dynascope.widgets.features.places import graph_tone
from dynascope.widgets.model import ViewModel, view_model
from dynascope.widgets.render.page import document, empty_page
from dynascope.widgets.words import capped, guarded, printable

#: limits on the groups that have a view, and on the characters of JSON in their views together; the first one is always kept
MOST_GROUPS, MOST_VIEWS = 24, 12_000_000
MOST_DIFFERENCES, MOST_FAILURES, MOST_LISTED = 40, 40, 5000


def to_html(report: RanksReport) -> str:
    """`report` as one HTML document."""
    return guarded("This report", lambda: document(report.headline(), {"views": views(report)}, body(report)), empty_page)


def to_mimebundle(report: RanksReport) -> dict[str, Any]:
    """`text/html` without script, `text/plain`, and the outline that docs tests compare."""
    html = f'<div class="dyn-static">{body(report, static=True)}</div>'
    return {"text/html": html, "text/plain": encodable(words.to_text(report, width=100)), MIME: outline(report)}


def outline(report: RanksReport) -> dict[str, Any]:
    """The number of ranks, groups and differences, and the breaks in which ranks differ, in the form of `report.outline`."""
    hard = words.hard(report)
    counts = {"ranks": len(report.ranks), "groups": len(report.groups), "differences": len(hard)}
    found = ((d, label(d.file or "", d.cell)) for d in hard if d.kind == "break")
    breaks = [{"type": d.reason, "line": d.line, "outcome": d.kind, "place": place} for d, place in found]
    torch = str(report.versions.get("torch") or "").partition("+")[0]
    return {"summary": counts, "breaks": breaks, **({"torch": torch} if torch else {})}


def views(report: RanksReport) -> list[ViewModel | None]:
    """The models of the groups' reports; None where there is no report, or where the others are large enough already."""
    models: list[ViewModel | None] = []
    left = MOST_VIEWS
    for group in report.groups[:MOST_GROUPS]:
        model = view_model(group.report) if group.report is not None and left > 0 else None
        left -= len(json.dumps(model)) if model is not None else 0
        models.append(model if left > 0 or not models else None)
    return models


def body(report: RanksReport, static: bool = False) -> str:
    """All but the views of the groups; `static`: for places that show no controls."""
    return guarded("This report", lambda: _body(report, static), escape)


def _body(report: RanksReport, static: bool) -> str:
    alike = ("good", "alike") if report.alike else ("bad", "not alike")
    badge = f'<span class="dyn-rk-badge dyn-rk-{alike[0]}">{alike[1]}</span>' if len(report.ranks) > 1 else ""
    hard, most, headline = words.hard(report), 12 if static else MOST_DIFFERENCES, words.headline(report)
    notes = [*words.remarks(report, MOST_DIFFERENCES), *report.notes]
    if len(report.groups) > MOST_GROUPS:
        notes.append(f"of {len(report.groups)} groups, the first {MOST_GROUPS} can be compared")
    parts = [
        f'<div class="dyn-rk-top"><h2>{_text(headline)}</h2>{badge}</div>',
        *(_difference(report, d, number == 0, static) for number, d in enumerate(hard[:most])),
        _list("more", [f"… and {plural(len(hard) - most, 'more difference')}"] if len(hard) > most else []),
        _list("failed", capped(words.rank_failures(report), MOST_FAILURES)),
        _list("slow", words.slow_lines(report, 5)),
        "" if static else _choice(report) + _ranks(report),
        _list("notes", notes),
    ]
    title = _text(f"dynascope view: {headline}", 300)
    return f'<div class="dyn dyn-ranks" role="region" aria-label="{title}">{"".join(parts)}</div>'


def _text(text: str, most: int = 2000) -> str:
    return escape(printable(text, most), quote=True)


def _list(kind: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f'<ul class="dyn-rk-list dyn-rk-{kind}">{items}</ul>' if items else ""


def _difference(report: RanksReport, d: Difference, first: bool, static: bool) -> str:
    """A difference; opened, it shows the views of both groups."""
    details = "".join(f"<code>{_text(text)}</code><br>" for text in words.difference_details(report, d))
    title, groups = _text(words.difference_title(report, d)), (d.group, d.reference_group)
    if static:
        return f"<p>✗ <strong>{title}</strong><br>{details}</p>"
    tone = "var(--dyn-skip)" if d.group is None else f"var(--dyn-g{graph_tone(d.group)})"
    frames = escape(f"{d.frame or ''} {d.reference_frame or ''}")
    has_views = all(group is not None and group < MOST_GROUPS for group in groups)
    place = f' data-groups="{d.group} {d.reference_group}" data-frames="{frames}"' if has_views else ""
    return (
        f'<details class="dyn-rk-card" style="--dyn-tone:{tone}"{place}{" open" if first else ""}>'
        f"<summary>{title}</summary>{details}</details>"
    )


def _choice(report: RanksReport) -> str:
    """The choice of two groups, with room for their views side by side."""
    groups = report.groups[:MOST_GROUPS]
    options = ""
    for number, group in enumerate(groups):
        counts = words.counts(group.report) if group.report else "its report could not be read"
        name = words.ranks_name(group.ranks)
        name = name if len(name) <= 40 else name[:36].rpartition(",")[0] + ", …"
        options += f"<option value={number}>{_text(f'{name} ({len(group.ranks)}): {counts}', 200)}</option>"
    beside = f"<label>beside <select><option value=-1>nothing</option>{options}</select></label>" if len(groups) > 1 else ""
    bar = f'<div class="dyn-rk-bar"><label>Report of <select>{options}</select></label>{beside}</div>'
    pair = f'{bar}<div class="dyn-rk-pair"><div></div><div></div></div>'
    return f'<section aria-label="reports of groups">{pair}</section>' if groups else ""


def _ranks(report: RanksReport) -> str:
    """All ranks, each in a line, folded, with a field that finds one."""
    if len(report.ranks) < 2:
        return ""
    named = [(rank.rank, words.rank_line(rank)) for rank in report.ranks[:MOST_LISTED]]
    lines = "".join(f'<li data-rank="{number}">{_text(line, 400)}</li>' for number, line in named)
    rest = f"<p>… and {len(report.ranks) - MOST_LISTED} more</p>" if len(report.ranks) > MOST_LISTED else ""
    total = plural(len(report.ranks), "rank")
    search = '<input type="search" placeholder="Find a rank" aria-label="Find a rank by number, host or status">'
    return f'<details class="dyn-rk-all"><summary>{total}</summary>{search}<ul>{lines}</ul>{rest}</details>'
