"""Frames: what the compiler made of each function, resume function and piece of a cell, and why.

Promises: each frame that is not ignored has a detail; what the report does not know (None) is called "unknown" or left out.
"""

from __future__ import annotations

from dynascope.compiler.report import Break, Frame, plural, seconds
from dynascope.widgets.detail import Detail, Part, SourceBody, code_part, facts, list_part, prose, tab
from dynascope.widgets.features.breaks import advice, frame_words, is_beside
from dynascope.widgets.features.fixes import fix_parts
from dynascope.widgets.features.places import Places, ops_text
from dynascope.widgets.features.recompiles import guard_part, symbol_part, why_part
from dynascope.widgets.terminal import Terminal
from dynascope.widgets.words import compiler_text, printable, shorten

#: status -> the first sentence on a frame that was not compiled
_STORIES = {
    "skipped": "Dynamo skipped this frame: it ran eagerly, as plain Python.",
    "failed": "The compiler stopped here with an error.",
    "empty": "No graph was captured from it.",
    "unfinished": "The end of this compile was not recorded, so its result is unknown.",
}


def frame_detail(f: Frame, places: Places) -> Detail:
    """All that is known of a frame.

    Its `target`, for a region in it, is its name; outside cells also a line, as files may repeat a name.
    """
    place, name, (number, graph) = places.frame(f), places.name(f), places.graphs.get(f.graph or "", (0, None))
    title = {"resume": "Resume function", "autograd": "Backward"}.get(f.kind, "Frame")
    if f.status not in ("compiled", "ignored"):
        title = f"{f.status.capitalize()} frame"
    elif f.kind == "resume":
        name = name.removeprefix("resume in ")
    before = places.breaks.get(f.break_ or "") if f.kind == "resume" else None
    cause = places.breaks.get(f.stopped_by or "") if f.status in ("skipped", "failed") else None
    others = (("continues", f.continues), ("called by", f.parent), ("compiled before as", f.recompile_of))
    called_from = f", line {f.called_from}" if f.called_from else ""
    return {
        "kind": f.status if f.status != "compiled" else f.kind, "title": title, "code": shorten(name, 160), "place": place,
        "copy": place, "facts": facts(
            ("status", f.status, ""),
            ("compile id", printable(f.compile_id or "", 40), ""),
            *((label, frame_words(places.frames[id], places) + (called_from if label == "called by" else ""), id)
              for label, id in others if id in places.frames),
            ("graph", graph and f"graph {number} · {ops_text(graph.ops)}", f.graph or ""),
            *((label, "✂ " + shorten(places.code(b), 60), b.id)
              for label, b in (("after break", before), ("at break", cause)) if b is not None),
            ("receives", shorten(", ".join(f.resume.locals), 200) if f.resume and f.kind == "resume" else "", ""),
            ("compiled in", None if f.compile_seconds is None else seconds(f.compile_seconds), ""),
            ("guards", f.guard_count, ""),
            ("error_on_graph_break", f.error_on_graph_break, ""),
            ("fullgraph", f.fullgraph, ""),
            ("compiler's name", shorten(f.code_name, 120) if f.code_name != f.name else "", ""),
            ("thread", "not the recording's" if f.foreign else "", ""),
        ), "parts": _parts(f, places, before, cause),
        "file": printable(f.file, 1000), "line": f.line,
        "target": printable(f.name, 1000) + ("" if f.cell is not None else f":{f.line}"),
    }  # fmt: skip


def _parts(f: Frame, places: Places, before: Break | None, cause: Break | None) -> list[Part]:
    again = (places.frames[id] for id in (places.recompiled if places.report.fixes else ()) if id in places.frames)
    same = {g.id for g in again if f.id in places.recompiled and (g.file, g.line, g.name) == (f.file, f.line, f.name)}
    called = [[frame_words(c, places), places.frame(c), c.status, c.id] for c in places.called[f.id]]
    inlined = [[shorten(i.name or "?", 120), places.at(i.file, i.line, i.cell), "", ""] for i in f.inlined]
    return [
        *why_part(f, places),
        *fix_parts(same, f.file, places),
        *prose("about", "What happened", _story(f, places, before), advice(places.report, cause) if cause else []),
        *_source(f, places),
        *list_part("calls", "Calls", called),
        *symbol_part(f, places),
        *guard_part(f, places),
        *list_part("inlined", "Traced into", inlined),
        *code_part("bytecode", "Bytecode", f.bytecode, "text"),
        *code_part("modified", "Compiled bytecode", f.modified_bytecode, "text"),
    ]


def _story(f: Frame, places: Places, before: Break | None) -> list[str]:
    """Sentences on what happened to a frame."""
    reason = compiler_text(places.with_cell_names((f.reason or "").strip()), 5000)
    where = f" after `{shorten(places.code(before), 80)}`" if before else ""
    text = [_STORIES.get(f.status, ""), reason]
    if f.status == "compiled":
        resumed = f"The continuation of {shorten(f.name, 80)}{where}: a function that Dynamo made, compiled on its own."
        text = [resumed if f.kind == "resume" else "", reason and f"Not all of it is compiled: {reason}"]
    elif f.status == "skipped":
        text[1] = reason or "The reason is not known."
    return [t for t in text if t]


def _source(f: Frame, places: Places) -> list[Part]:
    """The tab with a frame's source, for a resume function from the line where it continues; [] if no line is known."""
    lines = places.lines(f.file)
    start = f.resume.line if f.resume else f.line
    numbers = [n for n in range(start, min(places.end_of(f), start + 1999) + 1) if n in lines]
    if not numbers:
        return []
    name = f"Source from line {start}" if f.kind == "resume" else "Source"
    # the text is in the source view: with a copy for each resume function, the model would grow quadratically
    body: SourceBody = {"file": printable(f.file, 1000), "start": numbers[0], "end": numbers[-1]}
    return tab("source", name, "source", body)


def skipped_lines(places: Places, terminal: Terminal, most: int) -> list[str]:
    """The first frames that were skipped, failed or not finished, and why."""
    frames = [f for f in places.report.frames if f.status in ("skipped", "failed", "unfinished")]
    out: list[str] = []
    for f in frames[:most]:
        cause, why = places.breaks.get(f.stopped_by or ""), compiler_text(f.reason or "reason unknown", 1000).split("\n")[0]
        if cause:
            more = f.reason is not None and not f.reason.startswith(cause.reason)  # why it could not be resumed
            block = next((h.block for h in cause.hits if h.frame == f.id), None)
            if block is not None and not more:
                why = f"in the `try` at {places.at(block.file, block.line, block.cell)}"
            elif not more:
                why = compiler_text(cause.type or cause.reason, 200)
            at = f"the break at {places.at(cause.file, cause.line, cause.cell)}"
            why = f"{'at' if is_beside(cause, [f]) else 'because of'} {at}" + f": {why}" * (f.status == "skipped" or more)
        sign = "…" if f.status == "unfinished" else "–"
        out += terminal.wrap(f"{sign} {f.status} frame {places.name(f)} at {places.frame(f)}: {why}", "", 3, "soft")
    out += [terminal.paint(f"… and {plural(len(frames) - most, 'more frame')}", "soft")] if len(frames) > most else []
    return ["", *out] if out else []
