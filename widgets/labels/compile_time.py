"""The words of the compile time: kinds of phases, what the caches gave, notes."""

from __future__ import annotations

from collections import Counter

from dynascope.compiler.report import CompileTime, PhaseKind, plural, seconds

#: name and explanation of each kind
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


def cache_words(time: CompileTime) -> list[str]:
    """What each cache gave: `FX graph cache: 2 hits (saved 4.1 s), 1 bypass (reason)`."""
    sentences = []
    for cache in dict.fromkeys(lookup.cache for lookup in time.caches):
        lookups = [lookup for lookup in time.caches if lookup.cache == cache]
        parts = []
        for outcome, count in Counter(lookup.outcome for lookup in lookups).items():
            same = [lookup for lookup in lookups if lookup.outcome == outcome]
            saved = sum(lookup.saved_seconds or 0.0 for lookup in same)
            reasons = [*dict.fromkeys(lookup.reason for lookup in same if lookup.reason)]
            more = f"saved {seconds(saved)}" if saved else "; ".join(reasons[:3])
            parts.append(f"{count} {outcome}" + (f" ({more})" if more else ""))
        sentences.append(f"{cache} cache: {', '.join(parts)}")
    return sentences


def missing_words(time: CompileTime) -> list[str]:
    """What of the compile time is unknown or not drawn."""
    notes = []
    if time.unfinished:
        names = ", ".join(dict.fromkeys(time.unfinished))
        notes.append(f"{plural(len(time.unfinished), 'phase')} without a recorded end, whose time is not counted: {names}")
    if time.left_out:
        notes.append(f"{plural(time.left_out, 'short phase')} not drawn; the table has them")
    return notes
