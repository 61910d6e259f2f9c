"""Compile time: the parts of the compiler that it went to, the phases that took longest, repeated blocks.

Promises: a row's `id` is the id of a frame, or empty; a sentence says what was left out and what is unknown.
"""

from __future__ import annotations

from typing import TypedDict

from dynascope.compiler.report import PhaseKind, RepeatedBlock, plural, seconds, time_text
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.run_time import Share, share_words
from dynascope.widgets.terminal import Terminal
from dynascope.widgets.words import grouped, printable, shorten

#: at most this many phases and operations, and this many repeated blocks
ROWS, REPEATS = 10, 5
#: name and explanation of each kind of phase
KINDS: dict[PhaseKind, tuple[str, str]] = {
    "dynamo": ("Dynamo", "tracing bytecode into graphs"),
    "guards": ("guards", "building the guards of compiled code"),
    "backend": ("backend", "the backend, without the phases that it names"),
    "aot": ("AOTAutograd", "tracing forward and backward, functionalization, partitioning"),
    "passes": ("graph passes", "Inductor's passes over the graphs"),
    "lowering": ("lowering", "Inductor: from a graph to its own operations"),
    "codegen": ("code generation", "Inductor: scheduling, fusing, writing kernels and their wrapper"),
    "compiler": ("C++ and Triton", "compilers of the generated code, and loading it"),
    "autotuning": ("autotuning", "trying variants of kernels"),
    "cache": ("caches", "computing keys, looking up, loading and saving"),
    "other": ("other", "phases that dynascope does not know"),
}


class PhaseRow(TypedDict):
    """One of the most expensive phases of the compiler; `id`: the frame in which it took longest, or empty."""

    name: str
    kind: str
    what: str
    own: str
    total: str
    count: int
    where: str
    id: str


class CompileTimeLine(TypedDict):
    """Where the time of the compiles went; `words`: sentences on repeated blocks, and what is unknown."""

    title: str
    total: str
    shares: list[Share]
    rows: list[PhaseRow]
    words: list[str]


def compile_time_line(places: Places) -> CompileTimeLine | None:
    """The compile time of a report; None if none was recorded."""
    time = places.report.compile_time
    if time is None or not time.seconds:
        return None
    own = {kind: sum(each) for kind, each in grouped((p.kind, p.self_seconds) for p in time.phases).items()}
    shares: list[Share] = [
        {"name": KINDS[kind][0], "kind": kind, "part": round(own[kind] / time.seconds, 4), "full": KINDS[kind][1]}
        for kind in sorted(KINDS, key=lambda kind: -own.get(kind, 0.0)) if own.get(kind, 0.0) > 0
    ]  # fmt: skip
    most = ", ".join(f"{s['name']} {100 * s['part']:.0f}%" for s in shares[:3])
    words = [repeat_words(block, places) for block in time.repeats[:REPEATS]]
    if time.unfinished:
        have, their = ("has", "its") if len(time.unfinished) == 1 else ("have", "their")
        ended = f"{plural(len(time.unfinished), 'phase')} {have} no recorded end; {their} time is not counted"
        words.append(f"{ended}: {', '.join(dict.fromkeys(time.unfinished))}")
    rows, total = list[PhaseRow](), seconds(time.elapsed) + " with --inputs" * bool(places.report.inputs)
    alike = grouped(((phase.name, phase.kind), phase) for phase in time.phases)
    spent = {key: sum(p.self_seconds for p in same) for key, same in alike.items()}  # without the phases nested in them
    for name, kind in sorted(spent, key=lambda key: -spent[key])[:ROWS]:
        same = alike[name, kind]
        frame = places.frames.get(max(same, key=lambda p: p.self_seconds).frame or "")
        rows.append({
            "name": shorten(name, 120), "kind": kind, "what": KINDS[kind][0], "own": time_text(spent[name, kind]),
            "total": time_text(sum(p.seconds for p in same)), "count": sum(p.count for p in same),
            "where": shorten(places.name(frame), 80) if frame else "", "id": frame.id if frame else "",
        })  # fmt: skip
    return {
        # the shares are fractions of the sum over all threads
        "title": f"Compile time · {total} · {most}", "total": total, "shares": shares,
        "rows": rows, "words": [printable(one, 800) for one in words],
    }  # fmt: skip


def repeat_words(block: RepeatedBlock, places: Places) -> str:
    """What repeats, and how often; regions may not take a block, such as one that updates buffers in training."""
    graphs = [str(places.graphs[g][0]) for g in block.graphs if g in places.graphs]
    about = f"{block.modules[0]} … {block.modules[-1]}" if block.modules else ", ".join(block.functions[:3])
    what = plural(block.ops, "operation") + (f" ({about})" if about else "")
    if len(graphs) > 1:
        listed = ", ".join(graphs[:8] + ["…"] * (len(graphs) > 8))
        # their inputs may have other sizes
        return f"Graphs {listed} have equal operations: {what}, captured {block.count} times."
    return (
        f"The same block of {what} is in graph {graphs[0] if graphs else '?'} {block.count} times: {100 * block.share:.0f}% of "
        "the graph. torch.compiler.nested_compile_region is for such blocks; whether it takes this one, and pays, is unknown."
    )


def compile_time_lines(places: Places, terminal: Terminal) -> list[str]:
    """Where the time of the compiles went: the most expensive phases, and repeated blocks."""
    line = compile_time_line(places)
    if line is None:
        return []
    out = ["", terminal.paint(f"compile time: {line['total']}", "bold"), *terminal.wrap(share_words(line["shares"]), "    ")]
    for row in line["rows"]:
        times = f" {row['count']}×" if row["count"] > 1 else ""
        inside = f" ({row['total']} with inner phases)" if row["total"] != row["own"] else ""
        out += terminal.wrap(f"{row['own']:>8} {row['name']}{times}, {row['what']}{inside}", "    ", 2)
    return out + [line for words in line["words"] for line in terminal.wrap(words, "    ", 6)]
