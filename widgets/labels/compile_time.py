"""Words about the compile time: kinds of phases, caches, autotuning, repeated blocks, notes."""

from __future__ import annotations

from collections import Counter

from dynascope.compiler.report import AutotuneChoice, CompileTime, PhaseKind, RepeatedBlock, Report, plural, seconds, time_text
from dynascope.widgets.labels.words import Places

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


#: outcome of a lookup in a cache -> its plural; any other word is the compiler's own
_OUTCOMES = {"hit": "hits", "miss": "misses", "bypass": "bypasses"}


def cache_words(time: CompileTime) -> list[str]:
    """What each cache gave: `FX graph cache: 2 hits (saved 4.10 s), 1 bypass (reason)`."""
    sentences = []
    for cache in dict.fromkeys(lookup.cache for lookup in time.caches):
        lookups = [lookup for lookup in time.caches if lookup.cache == cache]
        parts = []
        for outcome, count in Counter(lookup.outcome for lookup in lookups).items():
            same = [lookup for lookup in lookups if lookup.outcome == outcome]
            saved = sum(lookup.saved_seconds or 0.0 for lookup in same)
            reasons = [*dict.fromkeys(lookup.reason for lookup in same if lookup.reason)]
            more = f"saved {seconds(saved)}" if saved else "; ".join(reasons[:3])
            word = outcome if count == 1 else _OUTCOMES.get(outcome, outcome)
            parts.append(f"{count} {word}" + (f" ({more})" if more else ""))
        sentences.append(f"{cache} cache: {', '.join(parts)}")
    return sentences


def choice_words(choice: AutotuneChoice) -> tuple[str, str, str]:
    """The operation, the trials, and the fastest: `mm 8x64, 64x8 (float32)`, `3 variants timed in 1.20 s`, `name, 12 µs`."""
    kinds = ", ".join(dict.fromkeys((choice.dtypes or "").split(", ")))
    what = " ".join(part for part in (choice.op, choice.shapes, f"({kinds})" if kinds else "") if part)
    tried = plural(choice.choices, "variant") if choice.choices is not None else "variants"
    best = choice.best or "unknown"
    if choice.best_ms is not None:
        best += f", {time_text(choice.best_ms / 1e3)}"
    if choice.best_description:
        best += f" ({choice.best_description})"
    return what, f"{tried} timed in {seconds(choice.seconds)}", best


def repeat_words(block: RepeatedBlock, report: Report, places: Places) -> str:
    """What repeats, how often, and how to compile it only once."""
    numbers = {g.id: n for n, g in enumerate(report.graphs)}
    graphs = [numbers[g] for g in block.graphs if g in numbers]
    about = [f"{block.modules[0]} … {block.modules[-1]}"] if block.modules else []
    about += [", ".join(block.functions[:3])] if block.functions else []
    about += [places.at(block.file, block.line, block.cell)] if block.file is not None and block.line is not None else []
    where = f" ({'; '.join(about)})" if about else ""
    if len(graphs) > 1:
        frames = {g.frame for g in report.graphs if g.id in block.graphs[1:]}
        later = [f.compile_seconds for f in report.frames if f.id in frames]
        took = f": the compiles after the first took {seconds(sum(s or 0.0 for s in later))}" if None not in later else ""
        listed = ", ".join(map(str, graphs[:8])) + (", …" if len(graphs) > 8 else "")
        return f"Graphs {listed} are equal: {plural(block.ops, 'operation')}{where} compiled {block.count} times{took}."
    number = graphs[0] if graphs else "?"
    return (
        f"The same block of {plural(block.ops, 'operation')}{where} was compiled {block.count} times in graph {number}: "
        f"{100 * block.share:.0f}% of the graph. As a region (torch.compiler.nested_compile_region), it would be compiled "
        "once; what that would save is unknown."
    )


def missing_words(time: CompileTime, choices: int) -> list[str]:
    """Notes on what is unknown or not shown; `choices`: how many choices of autotuning are listed."""
    notes = []
    if (more := len(time.autotuning) - choices) > 0:
        notes.append(f"{plural(more, 'more operation')} autotuned: report.compile_time.autotuning has them")
    if time.unfinished:
        names = ", ".join(dict.fromkeys(time.unfinished))
        have, their = ("has", "its") if len(time.unfinished) == 1 else ("have", "their")
        ended = f"{plural(len(time.unfinished), 'phase')} {have} no recorded end; {their} time is not counted"
        notes.append(f"{ended}: {names}")
    if time.left_out:
        notes.append(f"{plural(time.left_out, 'short phase')} not drawn, but counted in the table")
    return notes
