"""A report as a whole in words: headline, notes on damage, and how DDP split graphs.

Promises: what is unknown (None) is called unknown or left out.  The text is plain and not yet safe to show (see
`words.printable`).
"""

from __future__ import annotations

import re

from dynascope.compiler.report import Graph, GraphSplit, Report, Summary, byte_text, place, plural, seconds, time_text


def headline(report: Report) -> str:
    """The headline: `f: 2 graphs · 1 graph break · 1 resume function · 0 skipped · compiled in 0.80 s`."""
    s = report.summary
    parts = [plural(s.graphs, "graph"), breaks(s)]
    if s.breaks and s.unexpected != s.breaks:
        parts[-1] += f" ({s.breaks - s.unexpected} allowed)"
    if s.breaks and s.unknown_breaks:
        parts[-1] += f" and {s.unknown_breaks} at {'an unknown place' if s.unknown_breaks == 1 else 'unknown places'}"
    parts += [plural(s.resumes, "resume function"), f"{s.skipped} skipped"]
    if s.recompiles:
        parts.append(plural(s.recompiles, "recompile"))
    if any(r.refused_by for r in report.recompiles):
        parts.append("recompile limit reached")
    if s.cached:
        parts.append(f"{s.cached} cached")
    if s.unfinished:
        parts.append(f"{s.unfinished} unfinished")
    if report.origin == "trace" and not report.frames:
        pass  # there is nothing that took time
    elif not s.frames or any(f.compile_seconds is not None for f in report.frames):
        unknown = any(f.compile_seconds is None and f.status == "compiled" for f in report.frames)
        parts.append(f"compiled in {'at least ' if unknown else ''}{seconds(s.compile_seconds)}")
    elif not s.cached and not s.unfinished:
        parts.append("compile time unknown")
    if report.error is not None and not report.error.caught:
        parts.append("stopped by an error")
    costly = next((c for c in report.profile.breaks if c.seconds), None) if report.profile else None
    if costly is not None:
        parts.append(f"fix first: {place(report.break_(costly.break_))} ({time_text(costly.seconds or 0)} a call)")
    return f"{name(report)}: " + " · ".join(parts)


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


def splits(report: Report) -> list[str]:
    """Sentences on how and why DDPOptimizer split graphs."""
    return [f"graph {n}: {note}" for n, g in enumerate(report.graphs) if g.splits for note in g.notes if note.startswith("DDP")]


def split_title(split: GraphSplit, graph: Graph) -> str:
    """One split: `submod_1: parameters of 1.0 MiB (layers.1.weight, layers.1.bias), a full bucket: its limit is 1.0 MiB`."""
    if split.parameter_bytes is None:
        return split.name
    names = ", ".join(map(_parameter, split.parameters[:20])) + (", …" if len(split.parameters) > 20 else "")
    words = f"{split.name}: parameters of {byte_text(split.parameter_bytes)} ({names})"
    if not graph.bucket_limits:
        return words
    limit = graph.bucket_limits[0 if split is graph.splits[-1] else 1]
    full = split.parameter_bytes >= limit
    return f"{words}, " + (f"a full bucket: its limit is {byte_text(limit)}" if full else "less than a full bucket")


def _parameter(name: str) -> str:
    """The program's name of a parameter: `layers.1.weight` for `l_self_modules_layers_modules_1_parameters_weight_`."""
    return re.sub(r"_(?:modules|parameters)_", ".", re.sub(r"^[lL]_self_(?:modules_|parameters_)?", "", name)).rstrip("_")
