"""The list of recompiles, and the marks of lines that make guards.

Promises: functions that reached the recompile limit come first; a line's mark counts guards on values (`VALUES`), not those on
identities and types, and says whether the first failed guard of a recompile is from the line.
"""

from __future__ import annotations

from collections import defaultdict

from dynascope.compiler.report import Report, seconds, site_place
from dynascope.widgets.labels.recompiles import (
    cache_words,
    call_words,
    compiled_again,
    failures,
    limit_words,
    refused_recompiles,
)
from dynascope.widgets.labels.words import Places, printable, shorten
from dynascope.widgets.wire import LensGuards, RecompileRow

#: the list has at most this many rows
MOST = 200
#: kinds of guards on values that a program changes, as opposed to identities and types
VALUES = frozenset({
    "SHAPE", "TENSOR_MATCH", "EQUALS_MATCH", "DICT_LENGTH", "SEQUENCE_LENGTH", "LENGTH_CHECK", "CONSTANT_MATCH", "NOT_NONE",
    "BOOL_MATCH", "TRUE_MATCH", "FALSE_MATCH", "NONE_MATCH", "SET_CONTAINS", "RANGE_ITERATOR_MATCH", "TUPLE_ITERATOR_LEN",
})  # fmt: skip


def recompile_rows(report: Report, places: Places) -> list[RecompileRow]:
    """The rows of the list of recompiles."""
    frames = {f.id: f for f in report.frames}
    rows: list[RecompileRow] = []
    for recompile in [*refused_recompiles(report), *compiled_again(report)][:MOST]:
        frame = frames.get(recompile.frame)
        name = places.name(frame) if frame is not None else recompile.frame
        causes = failures(recompile, places) or ["a guard failed"]
        took = seconds(frame.compile_seconds) if frame is not None and frame.compile_seconds is not None else ""
        facts = [took if recompile.refused_by is None else "", cache_words(recompile)]
        rows.append({
            "id": recompile.frame,
            "name": shorten(f"{shorten(name, 60)} {frame.compile_id if frame and frame.compile_id else ''}".rstrip(), 100),
            "place": printable(call_words(recompile, places), 200), "cause": printable(causes[0], 400),
            "full": printable("\n".join([limit_words(recompile, name, places)] if recompile.refused_by else causes), 3000),
            "facts": " · ".join(filter(None, facts)), "refused": recompile.refused_by is not None,
        })  # fmt: skip
    return rows


def guard_marks(report: Report) -> dict[tuple[str, int], LensGuards]:
    """For each (file, line) that makes guards on values: how many different ones, the first 20, whether one failed first."""
    made: dict[tuple[str, int], dict[str, None]] = defaultdict(dict)
    for frame in report.frames:
        for index, site in enumerate(frame.guard_sites):
            values = [g.text for g in site.guards if g.kind in VALUES]
            at = site_place(frame.guard_sites, index) if values else None
            if at is not None:
                made[at.file, at.line] |= dict.fromkeys(values)
    failed = {(g.at.file, g.at.line) for r in report.recompiles for g in r.failed_guards[:1] if g.at is not None}
    return {
        line: {"count": len(texts), "full": printable("\n".join(list(texts)[:20]), 2000), "failed": line in failed}
        for line, texts in made.items()
    }
