"""Recompiles, guards and symbols: what changed, which line made the guard, in which call, and at what cost.

Promises: what is unknown is left out or called unknown; sentences are plain text that is not yet safe to show (see
`words.printable`).  Functions that reached the recompile limit come first in the list, guards on values (`VALUES`) in a tab.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypedDict

from msgspec.structs import asdict

from dynascope.compiler.report import FailedGuard, Frame, Recompile, Report, StackEntry, Symbol, plural, seconds, site_place
from dynascope.compiler.report.data import ZERO_ONE
from dynascope.widgets.detail import Part, list_part, prose
from dynascope.widgets.features.places import Places, is_wrapper
from dynascope.widgets.terminal import Terminal
from dynascope.widgets.words import capped, grouped, printable, shorten

#: the list has at most this many rows
MOST = 200
#: how a line with the compiler's own advice begins
HINT = "the compiler's hint: "
#: kinds of guards on values that a program changes, as opposed to identities and types
VALUES = frozenset({
    "SHAPE", "TENSOR_MATCH", "EQUALS_MATCH", "DICT_LENGTH", "SEQUENCE_LENGTH", "LENGTH_CHECK", "CONSTANT_MATCH", "NOT_NONE",
    "BOOL_MATCH", "TRUE_MATCH", "FALSE_MATCH", "NONE_MATCH", "SET_CONTAINS", "RANGE_ITERATOR_MATCH", "TUPLE_ITERATOR_LEN",
})  # fmt: skip
_GUARDS = {
    "size": "{source} had another size in dimension {dimension}: {before} before, {now} now",
    "dtype": "{source} had another dtype: {before} before, {now} now",
    "rank": "{source} had another number of dimensions: {before} before, {now} now",
    "stride": "{source} had another memory layout (stride of dimension {dimension}): {before} before, {now} now",
    "tensor class": "{source} had other dispatch keys",  # inference mode changes them, too
    "device": "{source} was on another device",
    "not a tensor": "{source} is of another class now: {now}",  # Parameter, for example, after a plain tensor
    "type": "{source} had another type",
    "object": "{source} was another object when it was compiled: that version is for it alone",
    "length": "{source} had length {before} when it was compiled, and has {length} now",
    "not empty": "{source} was empty when it was compiled, and is not now",
    "missing": "{source} was there when it was compiled, and is not now",
    "value": "{source} was {before} when it was compiled, and {then} now",
    "range": "{source} was between {before} and {now} when it was compiled, and {then} now",
    "minimum": "{source} was at least {before} when it was compiled, and {then} now",
    "none": "{source} was None when it was compiled, and is not now",
    "new attribute": "{source} had no attribute {now} of its own when it was compiled, and has one now",
    "requires_grad": "{source} required {gradient} gradient before, and {does} now",
    "global state": "a global setting of torch changed{state}",
    "none found": "no reason found: all guards held when Dynamo looked for it (as when threads compile at the same time)",
    "freed": "{source} was another object, now gone, when it was compiled: that version was for it alone",
    "expression": "this guard failed: {text}",
    "unknown": "a guard failed",
}
_DYNAMIC = {
    "automatic": "automatic dynamic shapes, if its value changed between calls", "marked": "marked as dynamic",
    "setting": "dynamic=True, or a setting like it", "data": "depends on data, or marked (mark_unbacked)", "unknown": "unknown",
}  # fmt: skip


class RecompileRow(TypedDict):
    """One recompile, or the first one that the recompile limit prevented (`refused`).

    `title`: it in one line; `place`: the call that needed it; `cause`: the first sentence on why; `full`: all sentences, one a
    line, after the title if it was refused.
    """

    id: str
    title: str
    name: str
    place: str
    cause: str
    full: str
    facts: str
    refused: bool


def guard_words(guard: FailedGuard) -> str:
    """Why compiled code could not be used again, in words for readers who do not know guards."""
    words, required, source = _GUARDS[guard.kind], guard.before == "True", guard.source or ""
    if guard.kind in ("type", "not a tensor") and len({guard.before, guard.now, None}) == 3:  # two classes can have one name
        words = "{source} was {before} when it was compiled, and is {now} now"
    if guard.kind == "expression" and guard.actual:
        words += " ({actual})"
    if guard.kind == "missing" and not source.endswith("]"):  # torch looks into one dict, not for the attribute
        words += ", or is None or kept elsewhere"
    if guard.kind == "value" and ".param_groups[" in source and source.endswith("['lr']"):  # an optimizer's
        words += "; as a float tensor, where the optimizer takes one, it may change without a recompile"
    if guard.kind == "tensor class":
        before, now = (frozenset(re.findall(r"\w+", text or "")) for text in (guard.before, guard.now))
        words += ": " + ", ".join(f"{key} only {'now' if key in now else 'before'}" for key in sorted(before ^ now))
    words += "; torch compiles for 0 and 1 apart" * (guard.asked_by == ZERO_ONE)
    return words.format(
        **asdict(guard), then=f"is {guard.actual}" if guard.actual else "is not", length=guard.actual or "another length",
        gradient="a" if required else "no", does="does not" if required else "does",
        state=f": {guard.source}" if guard.source else " (grad mode, autocast, ...)",
    )  # fmt: skip


def recompile_words(recompile: Recompile) -> list[str]:
    """A sentence for each guard that failed, without repetitions; if none is known, the compiler's reasons."""
    return list(dict.fromkeys(map(guard_words, recompile.failed_guards))) or recompile.reasons


def line_words(at: StackEntry | None, places: Places) -> str:
    """A line with its place, `model.py:12 if x.shape[0] > 10:`; empty if the line is unknown."""
    if at is None:
        return ""
    return f"{places.at(at.file, at.line, at.cell)} {places.lines(at.file).get(at.line, at.source).strip()}".rstrip()


def failures(recompile: Recompile, places: Places, *, is_all: bool = False) -> list[str]:
    """A sentence for each guard that failed, with the first line that made it, without repetitions; or the compiler's reasons.

    After it, the compiler's hint about it, if there is one.  `is_all`: also guards that the same version had failed by before.

    `n was 2 when it was compiled, and is 3 now → f.py:12 return z * n`
    """
    words: dict[str, str] = {}
    guards = recompile.failed_guards
    for guard in guards if is_all else places.new_failures.get(recompile.frame, guards):
        said = guard_words(guard)
        words[said] = words.get(said) or line_words(guard.at, places)
        if guard.hint:
            words.setdefault(HINT + guard.hint, "")
    # the line counts more than the end of a long condition
    told = [f"{shorten(said, 120)} \N{RIGHTWARDS ARROW} {because}" if because else said for said, because in words.items()]
    return told or recompile.reasons or ["a guard failed"]


def every_recompile(places: Places) -> list[RecompileRow]:
    """The rows of the list: functions that reached the limit come first."""
    return [*recompile_rows(places, refused=True), *recompile_rows(places, refused=False)][:MOST]


def is_at_limit(frame: Frame) -> bool:
    """Whether a frame was skipped as a recompile was refused: only calls that fit no version of its function run eagerly."""
    return frame.status == "skipped" and (frame.reason or "").startswith("Dynamo recompile limit exceeded")


def recompile_rows(places: Places, *, refused: bool) -> list[RecompileRow]:
    """The rows of the recompiles that were made, or of the first one of each function that the limit refused."""
    if not refused:
        return [recompile_row(r, places) for r in compiled_again(places.report)]
    limited = ((places.frames.get(r.frame), r) for r in places.report.recompiles if r.refused_by is not None)
    first = grouped((f.code, r) for f, r in limited if f is not None)
    return [recompile_row(r, places) for r, *_ in first.values()]


def recompile_row(recompile: Recompile, places: Places) -> RecompileRow:
    frame, limit, refused = places.frames.get(recompile.frame), recompile.limit, recompile.refused_by is not None
    name, id, took, others = recompile.frame, "", "", list[str]()
    count = recompile.entries
    versions = "" if count is None else plural(count, "version") if limit is None else f"{count} of {plural(limit, 'version')}"
    if frame is not None:
        name, id = places.name(frame), f" {frame.compile_id}" if frame.compile_id else ""
        others = [other for other in places.names.get(recompile.of or "", ()) if other != name]
        took = seconds(frame.compile_seconds) if frame.compile_seconds is not None and not refused else ""
        if frame.status in ("skipped", "empty") and not refused and frame.reason:
            versions = "no new version"
        elif versions and others:
            versions += f", which it shares with {', '.join(capped(others, 3))}"
    # the number counts calls of the outermost compiled function: said of that alone, not of code that others share; who called
    # a refused frame is unknown, but the caller of the version before it is not
    versions_of = [f for f in (frame, places.frames.get(recompile.of or "")) if f is not None]
    is_own = frame is not None and not (others or any(f.parent or f.continues or is_wrapper(f) for f in versions_of))
    called = [f"call {recompile.call}"] if recompile.call and is_own else []
    called += [places.at(caller.file, caller.line, caller.cell) for caller in recompile.stack[-1:]]
    inputs = [number for number, run in enumerate(places.report.inputs or (), 1) if recompile.frame in run.frames]
    place = f"input {inputs[0]} of --inputs" if inputs else ", ".join(filter(None, called))
    causes, facts = failures(recompile, places), "; ".join(filter(None, (place, took, versions)))
    title = f"recompile{id} of {name}" + (f" ({facts})" if facts else "")
    if refused:
        setting = recompile.refused_by if limit is None else f"{recompile.refused_by} = {limit}"
        title = f"{name} has reached the recompile limit ({setting}): no new version"
        title += f" (first at {place})" if place else ""
    return {
        "id": recompile.frame, "title": printable(title, 2000), "name": shorten(f"{shorten(name, 60)}{id}", 100),
        "place": printable(place, 200), "cause": printable(causes[0], 400),
        "full": printable("\n".join([title, *causes] if refused else causes), 3000),
        "facts": " · ".join(filter(None, (took, versions))), "refused": refused,
    }  # fmt: skip


def compiled_again(report: Report) -> list[Recompile]:
    """The recompiles that led to another version."""
    return [r for r in report.recompiles if r.refused_by is None]


# -- the tabs of a frame ----------------------------------------------------------------------------


def why_part(frame: Frame, places: Places) -> list[Part]:
    """The tab on why a frame was recompiled or reached the limit: the failed guards, then the recompile or the limit."""
    again = places.recompiled.get(frame.id, [])
    text = [printable(w, 2000) for r in again for w in [*failures(r, places, is_all=True), recompile_row(r, places)["title"]]]
    return prose("recompile", "Why recompiled", text, code=[printable(x, 2000) for r in again for x in r.reasons])


def symbol_part(frame: Frame, places: Places) -> list[Part]:
    """The symbols of a frame, each followed by the conditions on it."""
    rows = [row for symbol in frame.symbols for row in _symbol(symbol, places)]
    return list_part("symbols", "Symbols", rows, len(frame.symbols))


def _symbol(symbol: Symbol, places: Places) -> Iterator[list[str]]:
    """What a symbol stands for, its range, why it is dynamic; then each condition, and the line that needed it."""
    low, high = ("" if bound is None or "oo" in bound else bound for bound in (symbol.low, symbol.high))
    ends = f"{low} to {high}" if low and high else f"{low} or more" if low else f"{high} or less" if high else ""
    first, of = line_words(symbol.at, places), "" if symbol.dimension is None else f", dimension {symbol.dimension}"
    why = _DYNAMIC[symbol.dynamic] + (f"; first used at {first}" if first else "")
    range_ = (ends or "any" * (not symbol.constraints)) if symbol.value is None else f"only {symbol.value}"
    title = f"{symbol.name} = {symbol.source or 'data'}{of}, {symbol.hint or 'unknown'} in this call"
    yield [printable(title, 200), printable(range_, 200), printable(why, 500), ""]
    for c in symbol.constraints[:50]:
        words = f"{c.text} ({c.expression})" if c.text != c.expression else c.text
        pins = "one value" if c.value is not None else ""
        yield ["    " + printable(words, 300), pins, printable(line_words(c.at, places), 400), ""]


def guard_part(frame: Frame, places: Places) -> list[Part]:
    """The guards of a frame with their lines: guards on values first, then by line, unknown lines last."""
    found: list[tuple[tuple[bool, bool, str, int], list[str]]] = []
    for index, site in enumerate(frame.guard_sites):
        at = site_place(frame.guard_sites, index)
        words, place = printable(line_words(at, places), 300), (at is None, at.file if at else "", at.line if at else 0)
        for guard in site.guards:
            times = f" ({guard.count} of this kind)" if guard.count > 1 else ""
            found.append(((guard.kind not in VALUES, *place), [shorten(guard.text, 300) + times, words, "", ""]))
    found.sort(key=lambda entry: entry[0])
    return list_part("guards", "Guards", [row for _, row in found], frame.guard_count)


# -- text -------------------------------------------------------------------------------------------


def recompile_lines(rows: list[RecompileRow], terminal: Terminal, most: int, guards: int) -> list[str]:
    """The first of these recompiles, or of these refused ones: title, and of the first `guards` what changed, with lines.

    Each of the compiler's hints is there once.
    """
    out, hints = list[str](), set[str]()
    for row in rows[:most]:
        refused, reasons = row["refused"], [r for r in row["full"].split("\n")[row["refused"] :] if r not in hints]
        hints.update(r for r in reasons if r.startswith(HINT))
        out += terminal.wrap(f"{'✗' if refused else '↻'} {row['title']}", "", 3, "red" if refused else "cyan")
        out += [line for reason in reasons[:guards] for line in terminal.wrap(reason, "    ")]
        out += [f"    … and {len(reasons) - guards} more"] if 0 < guards < len(reasons) else []
    for row in rows[most : most + 1]:
        what, at = ("more function", " at the limit") if row["refused"] else ("more recompile", "")
        out.append(f"… and {plural(len(rows) - most, what)}{at}")
    of = "    (of each version, the first guard that failed, if it had not failed before)"
    out += [of] if guards and rows and not rows[0]["refused"] else []
    return ["", *out] if out else []
