"""Recompiles, guards and symbols in words: what changed, which line made the guard, in which call, and at what cost.

Promises: what is unknown is left out or called unknown.  The text is plain and not yet safe to show (see `words.printable`).
"""

from __future__ import annotations

import re

from msgspec.structs import asdict

from dynascope.compiler.report import (
    Break,
    Constraint,
    FailedGuard,
    FailedGuardKind,
    Frame,
    Guard,
    Recompile,
    Report,
    StackEntry,
    Symbol,
    plural,
    seconds,
)
from dynascope.widgets.labels.words import Places

#: the name of a symbol
SYMBOL = re.compile(r"\b(?:s|u|zf|zuf)\d+\b")
_GUARDS: dict[FailedGuardKind, str] = {
    "size": "{source} had another size in dimension {dimension}: {before} before, {now} now",
    "dtype": "{source} had another dtype: {before} before, {now} now",
    "rank": "{source} had another number of dimensions: {before} before, {now} now",
    "stride": "{source} had another memory layout (stride of dimension {dimension}): {before} before, {now} now",
    "tensor class": "{source} was another kind of tensor: {before} before, {now} now",
    "device": "{source} was on another device",
    "not a tensor": "{source} was no longer a tensor, but {now}",
    "type": "{source} had another type",
    "object": "{source} was another object",
    "length": "{source} had length {before} before, and has another now",
    "not empty": "{source} was empty when it was compiled, and is not now",
    "value": "{source} was {before} when it was compiled, and is not now",
    "range": "{source} was between {before} and {now} when it was compiled, and is not now",
    "minimum": "{source} was at least {before} when it was compiled, and is not now",
    "none": "{source} was None when it was compiled, and is not now",
    "new attribute": "{source} had no attribute {now} of its own when it was compiled, and has one now",
    "none found": "no reason found: all guards held when Dynamo looked for it (as when threads compile at the same time)",
    "expression": "this no longer held: {text}",
    "unknown": "a guard failed",
}
#: words for failed guards whose value in the call is known
_KNOWN_NOW: dict[FailedGuardKind, str] = {
    "type": "{source} was {before} when it was compiled, and is {now} now",
    "length": "{source} had length {before} when it was compiled, and has {actual} now",
    "value": "{source} was {before} when it was compiled, and is {actual} now",
    "range": "{source} was between {before} and {now} when it was compiled, and is {actual} now",
    "minimum": "{source} was at least {before} when it was compiled, and is {actual} now",
    "expression": "this no longer held: {text} ({actual})",
}
#: what needed a guard, by the guard's origin; if that is "code", the program itself, the line says enough
_ORIGINS = {"operation": "the rule of an operation on shapes", "compiler": "the compiler itself"}
_DYNAMIC = {
    "automatic": "its value changed between calls (automatic dynamic shapes)", "marked": "marked by the program (mark_dynamic)",
    "setting": "dynamic=True", "data": "depends on data, or marked (mark_unbacked)", "unknown": "unknown",
}  # fmt: skip


def guard_words(guard: FailedGuard) -> str:
    """Why compiled code could not be used again, in words for readers who do not know guards."""
    if guard.kind == "requires_grad":
        wanted = "required a gradient" if guard.before == "True" else "required no gradient"
        return f"{guard.source} {wanted} before, and does{' not' if guard.before == 'True' else ''} now"
    if guard.kind == "global state":
        return "a global setting of torch changed" + (f": {guard.source}" if guard.source else " (grad mode, autocast, ...)")
    words = _GUARDS[guard.kind]
    if guard.kind in _KNOWN_NOW and None not in ((guard.before, guard.now) if guard.kind == "type" else (guard.actual,)):
        words = _KNOWN_NOW[guard.kind]
    if guard.kind == "object" and guard.before:
        words += " of type {before}: each object that is used there gets a version of its own"
    if guard.kind == "value" and (guard.source or "").endswith("['lr']"):
        words += "; a learning rate that is a tensor, lr=torch.tensor({before}), may change without a recompile"
    return words.format(**asdict(guard))


def recompile_words(recompile: Recompile) -> list[str]:
    """A sentence for each guard that failed, without repetitions; if none is known, the compiler's reasons."""
    return list(dict.fromkeys(map(guard_words, recompile.failed_guards))) or recompile.reasons


def line_words(at: StackEntry | None, places: Places) -> str:
    """A line with its place, `model.py:12 if x.shape[0] > 10:`; empty if the line is unknown."""
    if at is None:
        return ""
    text = places.lines(at.file).get(at.line, at.source).strip()
    return f"{places.at(at.file, at.line, at.cell)} {text}".rstrip()


def wanted_by(part: FailedGuard | Guard | Constraint) -> str:
    """What needed a guard, `the rule of an operation on shapes (infer_size)`; empty for the program itself, or if unknown."""
    who = _ORIGINS.get(part.origin, "")
    return f"{who} ({part.asked_by})" if who and part.asked_by else who


def _because(part: FailedGuard | Constraint, places: Places) -> str:
    """The line that made a guard, and what else needed it: `model.py:12 return x * y (the compiler itself)`; "" if unknown."""
    line, who = line_words(part.at, places), wanted_by(part)
    return f"{line} ({who})" if line and who else line or who


def failed_words(guard: FailedGuard, places: Places) -> str:
    """What changed, and the line that made the guard: `n was 2 when it was compiled, and is 3 now → f.py:12 return z * n`."""
    because = _because(guard, places)
    return guard_words(guard) + (f" \N{RIGHTWARDS ARROW} {because}" if because else "")


def failures(recompile: Recompile, places: Places) -> list[str]:
    """A sentence for each guard that failed, without repetitions; if none is known, the compiler's reasons."""
    return list(dict.fromkeys(failed_words(g, places) for g in recompile.failed_guards)) or recompile.reasons


def call_words(recompile: Recompile, places: Places) -> str:
    """The call that needed a recompile: `call 3, train.py:40`; empty if it is unknown."""
    caller = recompile.stack[-1] if recompile.stack else None
    parts = [f"call {recompile.call}" if recompile.call is not None else ""]
    parts.append(places.at(caller.file, caller.line, caller.cell) if caller is not None else "")
    return ", ".join(filter(None, parts))


def cache_words(recompile: Recompile) -> str:
    """How many versions the cache has after a recompile: `3 of 8 versions`; empty if that is unknown."""
    if recompile.entries is None:
        return ""
    return (
        plural(recompile.entries, "version")
        if recompile.limit is None
        else f"{recompile.entries} of {plural(recompile.limit, 'version')}"
    )


def recompile_title(recompile: Recompile, frame: Frame | None, name: str, places: Places) -> str:
    """A recompile in one line: `recompile 0/2 of f (call 3, train.py:40; 0.35 s; 3 of 8 versions)`."""
    id = f" {frame.compile_id}" if frame is not None and frame.compile_id else ""
    took = seconds(frame.compile_seconds) if frame is not None and frame.compile_seconds is not None else ""
    facts = "; ".join(filter(None, (call_words(recompile, places), took, cache_words(recompile))))
    return f"recompile{id} of {name}" + (f" ({facts})" if facts else "")


def limit_words(recompile: Recompile, name: str, places: Places) -> str:
    """A sentence on a function that reached the recompile limit, and on what follows."""
    limit = f"torch._dynamo.config.{recompile.refused_by}" + (f" = {recompile.limit}" if recompile.limit is not None else "")
    call = call_words(recompile, places)
    return f"{name} has reached the recompile limit ({limit}): calls that fit none of its versions now run eagerly" + (
        f" (first at {call})" if call else ""
    )


def refused_recompiles(report: Report) -> list[Recompile]:
    """For each function that reached a recompile limit, the first recompile that the compiler refused."""
    frames = {f.id: f for f in report.frames}
    first: dict[tuple[str, str, int], Recompile] = {}
    for r in report.recompiles:
        frame = frames.get(r.frame)
        if r.refused_by is not None and frame is not None:
            first.setdefault((frame.code_name, frame.file, frame.line), r)
    return list(first.values())


def compiled_again(report: Report) -> list[Recompile]:
    """The recompiles that led to another version."""
    return [r for r in report.recompiles if r.refused_by is None]


def versions(report: Report) -> dict[str, list[Frame]]:
    """For each frame, by id, the frames that are versions of the same code in this recording, in order."""
    rows: dict[str, list[Frame]] = {}
    for frame in report.frames:
        row = rows.setdefault(frame.id, rows.get(frame.recompile_of or "", []))
        if not row or row[-1].id == frame.recompile_of:
            row.append(frame)
    return rows


def symbol_title(symbol: Symbol) -> str:
    """What a symbol stands for: `s77 = x, dimension 0, 8 in this call`."""
    about = symbol.source or "data"
    what = about if symbol.dimension is None else f"{about}, dimension {symbol.dimension}"
    return f"{symbol.name} = {what}, {symbol.hint or 'unknown'} in this call"


def symbol_words(symbol: Symbol) -> list[str]:
    """The row of a symbol: what it stands for, its range, why it is dynamic."""
    pinned = symbol.value
    low, high = ("" if bound is None or "oo" in bound else bound for bound in (symbol.low, symbol.high))
    ends = f"{low} to {high}" if low and high else f"{low} or more" if low else f"{high} or less" if high else "any"
    range_ = f"only {pinned}" if pinned is not None else ends
    return [symbol_title(symbol), range_, _DYNAMIC[symbol.dynamic]]


def constraint_words(constraint: Constraint, places: Places) -> tuple[str, str]:
    """A condition, `x.size()[0] == 5 (Eq(s77, 5))`, and the line that needed it, `model.py:12 return x * y`."""
    words = f"{constraint.text} ({constraint.expression})" if constraint.text != constraint.expression else constraint.text
    return words, _because(constraint, places)


def undecided_words(b: Break, report: Report, places: Places) -> list[str]:
    """Sentences on the data-dependent fact that tracing needed, where it comes from, and the `torch._check` that states it."""
    if b.undecided is None:
        return []
    expression, checks = b.undecided.expression, b.undecided.checks
    condition = b.undecided.needed == "condition"
    needed = f"whether `{expression}` holds" if condition else f"the value of `{expression}`"
    words = [f"Tracing needed to know {needed}; it depends on data, and no `torch._check` before this line decides it."]
    known = {s.name: s for f in report.frames for h in b.hits if h.frame == f.id for s in f.symbols}
    for name in dict.fromkeys(SYMBOL.findall(expression)):
        symbol = known.get(name)
        if symbol is not None and symbol.at is not None:
            words.append(f"`{name}` is made at {line_words(symbol.at, places)}.")
    if checks:
        words.append("The compiler suggests, before this line: " + " or ".join(f"`{c}`" for c in checks) + ".")
    elif condition:
        words.append(
            f"If you know it, say so before this line: `torch._check({expression})`, or its opposite, with the name that your "
            "code has for " + " and ".join(f"`{n}`" for n in dict.fromkeys(SYMBOL.findall(expression))) + "."
        )
    return words
