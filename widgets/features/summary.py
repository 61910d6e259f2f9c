"""A report as a whole: its headline, the facts beside it, its error, and notes on what may be missing.

Promises: what is unknown (None) is called unknown or left out.
"""

from __future__ import annotations

import textwrap
from typing import TypedDict

from typing_extensions import NotRequired

from dynascope.compiler.report import Frame, Report, Summary, place, plural, seconds, time_text
from dynascope.widgets.features.breaks import sorted_breaks
from dynascope.widgets.features.fixes import fixes_summary, how_to_apply
from dynascope.widgets.features.graphs import splits
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.run_time import costly_break
from dynascope.widgets.terminal import Terminal
from dynascope.widgets.words import capped, printable, shorten


class Chip(TypedDict):
    """A short fact in the header; `id`: what a click selects."""

    text: str
    kind: str
    id: NotRequired[str]
    full: NotRequired[str]


def headline(report: Report) -> str:
    """The headline: `f: 2 graphs · 1 graph break · 1 resume function · 0 skipped · compiled in 0.80 s`."""
    return f"{name(report)}: " + " · ".join(headline_parts(report))


def headline_parts(report: Report) -> list[str]:
    """The parts of the headline after the name."""
    s = report.summary
    parts = [plural(s.graphs, "graph"), breaks(s)]
    if s.breaks and s.unexpected != s.breaks:
        parts[-1] += f" ({s.breaks - s.unexpected} allowed)"
    if s.breaks and s.unknown_breaks:
        parts[-1] += f" and {s.unknown_breaks} at {'an unknown place' if s.unknown_breaks == 1 else 'unknown places'}"
    parts += [plural(s.resumes, "resume function"), f"{s.skipped} skipped"]
    extra = sum(run.recompiles for run in report.inputs or ())
    of_inputs = "" if not extra else " for --inputs" if extra == s.recompiles else f" ({extra} for --inputs)"
    parts += [plural(s.recompiles, "recompile") + of_inputs] if s.recompiles else []
    parts += ["recompile limit reached"] if any(r.refused_by for r in report.recompiles) else []
    parts += [f"{s.cached} cached"] if s.cached else []
    parts += [f"{s.unfinished} unfinished"] if s.unfinished else []
    if report.origin == "trace" and not report.frames:
        pass  # there is nothing that took time
    elif not s.frames or any(f.compile_seconds is not None for f in report.frames):
        unknown = any(f.compile_seconds is None and f.status == "compiled" for f in report.frames)
        parts.append(f"compiled in {'at least ' if unknown else ''}{seconds(s.compile_seconds)}")
    elif not s.cached and not s.unfinished:
        parts.append("compile time unknown")
    if report.error is not None and not report.error.caught:
        parts.append("stopped by an error")
    costly = costly_break(report.profile) if report.profile else None
    if costly is not None:
        parts.append(f"fix first: {place(report.break_(costly.break_))} ({time_text(costly.seconds or 0)} a call)")
    return parts


def breaks(s: Summary) -> str:
    """The number of graph breaks at known places: `2 graph breaks`, or `graph breaks unknown`."""
    is_unknown = not s.breaks and (s.cached or s.unknown_breaks)  # the breaks of cached code are unknown: never "no breaks"
    return "graph breaks unknown" if is_unknown else plural(s.breaks, "graph break")


def nothing_to_do(report: Report) -> str:
    """What to do first in a program without a known cause of breaks or recompiles."""
    s = report.summary
    is_known = not (s.cached or s.unknown_breaks)
    refused = sum(r.refused_by is not None for r in report.recompiles)
    counts = [(s.failed, "failed"), (s.skipped, "skipped"), (s.unfinished, "unfinished"), (s.cached, "cached")]
    facts = [f"{'no graph break' if is_known else breaks(s)}, no recompile"]
    facts += [f"{plural(n, 'frame')} {word}" for n, word in counts if n]
    facts += [f"{plural(refused, 'recompile')} refused"] if refused else []
    return f"nothing: {'; '.join(facts)}." if is_known else f"unknown ({'; '.join(facts)})."


def name(report: Report) -> str:
    """What was compiled: `f, Net.forward`."""
    return ", ".join(report.compiled) or "nothing compiled"


def first_id(report: Report) -> str:
    """The id of what the user should look at first; empty if there is nothing."""
    if report.error is not None and (report.error.break_ or report.error.frame):
        return report.error.break_ or report.error.frame or ""
    stopped = [f.id for f in report.frames if f.status in ("skipped", "failed", "unfinished") or f.recompile_of]
    known = [g.id for g in report.graphs if g.ops is not None]
    shown = [f.id for f in report.frames if f.status != "ignored"]
    return next(iter([*(b.id for b in sorted_breaks(report)), *stopped, *known, *shown]), "")


def error_message(report: Report) -> str:
    """The line of a report's error that says most, without its type unless that is another one."""
    assert report.error is not None
    cause = next((b.error for b in report.breaks if b.id == report.error.break_ and report.error.origin == "compiler"), "")
    lines = [line.strip() for line in report.error.message.splitlines() if line.strip()]
    first = " ".join(lines[: 1 + lines[0].endswith(":")]) if lines else ""  # `backend='...' raised:` says nothing yet
    return cause or first


def chips(places: Places) -> list[Chip]:
    """Short facts beside the headline: the error, what can be fixed, interrupted, skipped and unfinished code."""
    report, found = places.report, list[Chip]()
    if report.error is not None:
        e = report.error
        first = error_message(report).replace("`", "")
        text = ("caught by your code: " if e.caught else "") + shorten(f"{e.type}: {first}".rstrip(": "), 90)
        chip: Chip = {"text": text, "kind": "note" if e.caught else "error", "full": printable(f"{e.type}: {e.message}", 3000)}
        if e.break_ or e.frame:
            chip["id"] = e.break_ or e.frame or ""
        found.append(chip)
    fixed = fixes_summary(report)
    if fixed and report.fix_set is not None:
        see = "see the Fix tabs, or report.patch()" if report.fix_set.edits else how_to_apply(report)
        found.append({"text": printable(f"{fixed}: {see}" if see else fixed, 2000), "kind": "fix"})
    if report.origin == "partial":
        found.append({"text": "interrupted: a partial report", "kind": "note"})

    def frame_chip(frame: Frame, what: str, kind: str, why: str | None) -> Chip:
        text = shorten(f"{what}: {places.name(frame)}", 60)
        return {"text": text, "kind": kind, "id": frame.id, "full": printable(why or "", 1000)}

    found += [frame_chip(f, "skipped", "skip", f.reason) for f in report.frames if f.status == "skipped"][:3]
    found += [frame_chip(f, "unfinished", "note", f.reason) for f in report.frames if f.status == "unfinished"][:2]
    return found


def record_notes(report: Report) -> list[str]:
    """Sentences on records that could not be used, and on hooks that do not fit this torch: facts may be missing."""
    notes: list[str] = []
    unread = sum(report.unread.values())
    if unread:
        kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(report.unread.items(), key=lambda item: (-item[1], item[0]))[:5])
        if report.origin == "trace":
            notes.append(f"the log is damaged, incomplete or from an unknown torch, so this report may be wrong ({kinds})")
        else:
            notes.append(f"{plural(unread, 'record')} of the compiler could not be used ({kinds})")
    unfit = [f"{name}: {why}" for name, why in report.hooks.items() if why is not True]
    if unfit:
        notes.append("some facts may be missing, because these hooks do not fit this torch: " + "; ".join(unfit[:5]))
    return notes


def notes(report: Report) -> list[str]:
    """All notes of a report: what may be missing, and the notes of the search for fixes and of the run itself."""
    fixes = report.fix_set.notes if report.fix_set is not None else []
    return [printable(note, 2000) for note in [*record_notes(report), *fixes, *report.notes]]


# -- text -------------------------------------------------------------------------------------------


def headline_lines(report: Report, terminal: Terminal) -> list[str]:
    """The headline, between its parts wrapped to the width."""
    head, _, rest = printable(headline(report), 500).partition(": ")
    glued = f"{head}: {rest}".replace(" ", "\xa0").replace("\xa0·\xa0", "\xa0· ")
    lines = [line.replace("\xa0", " ") for line in textwrap.wrap(glued, terminal.width, subsequent_indent="  ")]
    return [terminal.paint(head, "bold") + lines[0].removeprefix(head), *lines[1:]]


def error_lines(places: Places, terminal: Terminal) -> list[str]:
    e = places.report.error
    if e is None:
        return []
    at = f" at {places.at(e.file, e.line, e.cell)}" if e.file else ""
    caught = ", caught by your code" if e.caught else ""
    text = f"✗ {e.type}{at}{caught}: {error_message(places.report)}".rstrip(": ")
    return terminal.wrap(text, "", 3, "red")


def note_lines(report: Report, terminal: Terminal, most: int, longest: int = 3) -> list[str]:
    """All notes on unread records, because of which the report may be wrong, and the first of the other notes.

    `longest`: a note has at most this many lines.
    """
    lost, own = record_notes(report), report.notes
    others = [*own[:8], *splits(report), *own[8:]]
    shown = capped(["note: " + note for note in [*lost, *others]], max(most, len(lost)), "note")
    lines = [line for note in shown for line in terminal.wrap(note, "", longest)]
    return ["", *lines] if lines else []
