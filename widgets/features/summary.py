"""A report as a whole: its headline, what to do first, the facts beside it, its error, and notes on what may be missing.

Promises: what is unknown (None) is called unknown or left out.  There is one recommendation, and it stands here: the view, the
page and the text show it in these words, and nothing else advises what to do first.  A hint of the compiler is never the first
advice unless it was tried; what is left after an advice is said only if a trial has shown it.
"""

from __future__ import annotations

import textwrap
from typing import TypedDict

from typing_extensions import NotRequired

from dynascope.compiler.report import Profile, Report, Summary, first_line, plural, seconds, time_text
from dynascope.compiler.report.overview import causes, package
from dynascope.widgets.features.breaks import helpful, instead_of, own_caller, sorted_breaks
from dynascope.widgets.features.comparisons import CHECK
from dynascope.widgets.features.fixes import copies, fix_row, fixes_summary, how_to_apply, times_with_fixes
from dynascope.widgets.features.graphs import splits
from dynascope.widgets.features.overview import OWN_STATE, WARM_UP, CauseWords, is_large, lower_first
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.run_time import SHARES, a_call, only_captures, verdict_words
from dynascope.widgets.terminal import Terminal
from dynascope.widgets.words import capped, grouped, printable, shorten

#: how a note begins that answers what the user asked for, by a flag or a button
_ANSWERS = (CHECK, "second call: ", "profile: ", "inputs: ", "--", "-f ")
#: from this share on, the device decides how long a call takes, not the processor
_BUSY = 0.5
#: sentences beside what to do first in a text
MOST_MORE = 5


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
    allowed = f" ({s.breaks - s.unexpected} allowed)" if s.breaks and s.unexpected != s.breaks else ""
    where = "an unknown place" if s.unknown_breaks == 1 else "unknown places"
    unplaced = f" and {s.unknown_breaks} at {where}" if s.breaks and s.unknown_breaks else ""
    extra = sum(run.recompiles for run in report.inputs or ())
    parts = [plural(s.graphs, "graph"), breaks(s) + allowed + unplaced, plural(s.resumes, "resume function")]
    parts += [f"{s.skipped} skipped"] * bool(s.skipped or not s.cached)  # what cached code skips is unknown
    parts += [plural(s.recompiles, "recompile")] if s.recompiles else []
    parts += [f"{extra} more for --inputs" if s.recompiles else f"{plural(extra, 'recompile')} for --inputs"] if extra else []
    parts += ["recompile limit reached"] * any(r.refused_by and r.frame not in report.of_inputs for r in report.recompiles)
    parts += [f"{count} {what}" for count, what in ((s.cached, "cached"), (s.unfinished, "unfinished")) if count]
    if not s.frames or any(f.compile_seconds is not None for f in report.frames):
        unknown = any(f.compile_seconds is None and f.status == "compiled" for f in report.frames)
        if report.frames or report.origin != "trace":  # something took time
            parts.append(f"compiled in {'at least ' if unknown else ''}{seconds(s.compile_seconds)}")
    elif not s.cached and not s.unfinished:
        parts.append("compile time unknown")
    return parts + ["stopped by an error"] * _is_stopped(report)


def _is_stopped(report: Report) -> bool:
    """Whether an error is known to have ended the run: no log says whether it was caught."""
    return report.error is not None and not report.error.caught and report.origin != "trace"


def breaks(s: Summary) -> str:
    """The number of graph breaks at known places: `2 graph breaks`, or `graph breaks unknown`, or the least number."""
    is_unknown = not s.breaks and (s.cached or s.unknown_breaks)  # the breaks of cached code are unknown: never "no breaks"
    return "graph breaks unknown" if is_unknown else "at least " * bool(s.cached) + plural(s.breaks, "graph break")


def name(report: Report) -> str:
    """What was compiled: `f, Net.forward`."""
    return ", ".join(report.compiled) or "nothing compiled"


def first_id(report: Report) -> str:
    """The id of what the user should look at first; empty if there is nothing."""
    failed = [report.error.break_, report.error.frame] if report.error is not None else []
    stopped = [f.id for f in report.frames if f.status in ("skipped", "failed", "unfinished") or f.recompile_of]
    known = [g.id for g in report.graphs if g.ops is not None]
    shown = [f.id for f in report.frames if f.status != "ignored"]
    return next(filter(None, [*failed, *(b.id for b in sorted_breaks(report)), *stopped, *known, *shown]), "")


def error_message(report: Report) -> str:
    """The line of a report's error that says most, without its type unless that is another one."""
    assert report.error is not None
    cause = next((b.error for b in report.breaks if b.id == report.error.break_ and report.error.origin == "compiler"), "")
    return cause or first_line(report.error.message)


def chips(places: Places) -> list[Chip]:
    """Short facts beside the headline: the error, what can be fixed, interrupted, skipped and unfinished code."""
    report, found, e = places.report, list[Chip](), places.report.error
    if e is not None:
        first = error_message(report).replace("`", "")
        text = ("did not end the run: " if e.caught else "") + shorten(f"{e.type}: {first}".rstrip(": "), 90)
        found = [{"text": text, "kind": "note" if e.caught else "error", "full": printable(f"{e.type}: {e.message}", 3000)}]
        if e.break_ or e.frame:
            found[0]["id"] = e.break_ or e.frame or ""
    if report.origin == "partial":
        found.append({"text": "interrupted: a partial report", "kind": "note"})
    for status, kind, most in (("skipped", "skip", 3), ("unfinished", "note", 2)):
        for f in [f for f in report.frames if f.status == status][:most]:
            text = shorten(f"{status}: {places.name(f)}", 60)
            found.append({"text": text, "kind": kind, "id": f.id, "full": printable(f.reason or "", 1000)})
    return found


def record_notes(report: Report) -> list[str]:
    """Sentences on records that could not be used, and on hooks that do not fit this torch: facts may be missing."""
    notes, unread = list[str](), sorted(report.unread.items(), key=lambda item: (-item[1], item[0]))
    if any(report.unread.values()):
        lost = f"{plural(sum(report.unread.values()), 'record')} of the compiler could not be used"
        damaged = "the log is damaged, incomplete or from an unknown torch, so this report may be wrong"
        kinds = ", ".join(f"{kind} {n}" for kind, n in unread[:5])
        notes.append(f"{damaged if report.origin == 'trace' else lost} ({kinds})")
    if unfit := [f"{name}: {why}" for name, why in report.hooks.items() if why is not True]:
        notes.append("some facts may be missing, because these hooks do not fit this torch: " + "; ".join(unfit[:5]))
    return notes


def notes(report: Report) -> list[str]:
    """What may be missing in a report, and the notes of the search for fixes and of the run, but those of the check."""
    fixes = report.fix_set.notes if report.fix_set is not None else []
    return [printable(note, 2000) for note in [*record_notes(report), *fixes, *report.notes] if not note.startswith(CHECK)]


# -- what to do first -------------------------------------------------------------------------------


class Recommendation(TypedDict):
    """What to do first, made of all that is known; `id`: what it is about, for a click.

    `more`: further sentences, the most important first; `hints`:
    whether the compiler's hints name settings of unknown effect, though the calls could be traced again; `copies`: what
    buttons copy, by their labels.
    """

    first: str
    id: str
    more: list[str]
    hints: bool
    copies: dict[str, str]


#: what to do, with what is left after it if that was tried, and the id of what it is about
Step = tuple[str, str]


def recommendation(places: Places) -> Recommendation | None:
    """The recommendation of a report; None for a small one in which nothing was measured or tried, or nothing happened."""
    report, profile = places.report, places.report.profile
    words = [CauseWords(places, cause) for cause in causes(report)]
    slower = _slower(report, profile) if profile is not None else ""
    if not (is_large(report) or ((profile or report.trials or report.fix_set) and (words or report.breaks)) or slower):
        return None
    removed = {id for fix in report.fixes or () if fix.chosen for id in fix.removes}
    hinted = [one for one in words if one.cause.setting is not None and not removed.issuperset(one.cause.breaks)]
    untried = [one for one in hinted if one.helps is None]
    tried = _fixes(report) or _trial(report)
    found = report.fixes_to_apply(conditional=True)
    own = [one for one in words if one.breaks and not (one.cause.asked_for or any(fix.chosen for fix in one.considered))]
    lasting = (one for one in words if one.cause.in_each_call or one.cause.at_limit)
    left = [one for one in lasting if removed.isdisjoint(one.cause.frames)]
    state = found.after.compiled_again if found is not None and not left else []
    left = left or (own if found is not None and found.runs_no_less else [])  # the causes that come before what was tried
    action, id = tried if tried and not left else _cause(left or words, report)
    said = [action, *(tried[:1] if left and tried else ())]
    if state:
        names = ", ".join(capped(state, 3))
        what = f"; {OWN_STATE}" * (" == " in names)  # a guard on a value, such as a counter
        again = f"look into what the fourth of four equal repeated calls still compiles: {names}{what}."
        said = [again, *(said if tried or left else ())]
    dearer = _dearer(words, report) if tried and not left and report.fix_set is None else None
    if dearer is not None and profile is not None and profile.is_worth_fixing:  # what was tried gains less
        said, id = [_first_words(dearer, report), action], dearer.breaks[0].id
    if profile is not None:
        said.append(_dominant(places, profile))
        if slower and words and words[0].frames:  # warm calls have no recompile
            said.insert(1, slower)
        elif slower:
            said[0] = f"{slower} {_capital(said[0])}"
    said += [*_chosen(places), *(f"the compiler's hint {one.shown}." for one in hinted if one.helps is False)]
    if untried:
        quoted = ", ".join(dict.fromkeys(f"`{one.cause.setting} = True`" for one in untried))
        # a search for fixes begins with such a trace; what is only observed has no flags
        tries = report.origin == "live" and report.settings and not (report.trials or report.settings.get("fix"))
        how = " (`--second-call`, or second_call=True, shows it, if the calls can be repeated)" if tries else ""
        said.append(f"the compiler hints at {quoted}: whether it helps is not known{how}, and it can make things worse.")
    raised = next((f for f in report.frames if f.suppressed and f.stopped_by is None), None)
    if raised is not None and not (found and found.fixes):  # a backend that fails leaves eager what no change at a break does
        at, why = places.at(raised.file, raised.line, raised.cell), first_line(raised.reason or "reason unknown")
        said, id = [f"look into the error in compiling {places.name(raised)} at {at}: {why.rstrip('.')}.", *said], raised.id
    if profile is None and words and report.settings:  # a run that is only observed has no such flags
        why = next((note.partition(": not measured: ")[2] for note in report.notes if note.startswith("profile: ")), "")
        said.append(f"what a call spends its time on is not known: {why or '`--profile`, or profile=10, measures it'}.")
    return {
        "first": printable(said[0], 1500), "id": id,
        "more": [printable(_capital(one), 600) for one in said[1:] if one],
        "hints": bool(untried) and report.origin == "live" and not report.trials, "copies": copies(report),
    }  # fmt: skip


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _fixes(report: Report) -> Step | None:
    """Apply the fixes that hold, or review them if that is done."""
    fixes = report.fixes_to_apply(conditional=True)
    if fixes is None or not fixes.fixes:
        return None
    id = next((id for fix in report.fixes or () if fix.chosen for id in fix.removes), "")
    slower = times_with_fixes(report)[1] and not only_captures(report)
    more = fixes.runs_no_less and (fixes.after.graph_runs or 0) > (fixes.before.graph_runs or 0)
    does = "leave" if slower or more else "apply" if report.patched_by else "review"
    how = how_to_apply(report) if does == "apply" else ""
    return f"{does} {fixes_summary(report)}.{f' {how}.' if how else ''}", id


def _chosen(places: Places) -> list[str]:
    """The fixes that hold, each with its condition and its figures; if none does, what was tried in vain."""
    chosen, summary = [fix for fix in places.report.fixes or () if fix.chosen], fixes_summary(places.report)
    found: list[str] = []
    for fix, row in ((fix, fix_row(fix)) for fix in chosen[:3]):
        gain = row["gain"] or "no known count changes with it alone"
        told = filter(None, [row["condition"].rstrip("."), gain])  # in this order: the end of a long line is cut off
        found.append(f"Fix: {fix.title} ({fix.verdict}): {'; '.join(told)}.")
    found += [f"{len(chosen) - 3} more, listed with the breaks and recompiles."] if len(chosen) > 3 else []
    return found or ([f"{summary}."] if summary else [])


def _trial(report: Report) -> Step | None:
    """What the best trace of the calls did; None if it has as many breaks, at other places, or removes only allowed ones."""
    trials, gains, count = helpful(report, report.trials), _gains(report), len(report.own_breaks)
    allowed = {b.id for b in report.breaks if b.allowed}
    if not trials or allowed.issuperset(trials[-1].removes) or (trials[-1].breaks or 0) >= count:
        return None
    best = trials[-1]
    steps = [WARM_UP] if trials[0].removes else []
    steps += [" and ".join(f"set `{name} = {value}`" for name, value in best.settings.items())] if best.settings else []
    became = f"{plural(count, 'graph break')} {'becomes' if count == 1 else 'become'} {best.breaks or 'none'}"
    dearest = max(best.removes, key=lambda id: gains.get(id, 0.0))
    return f"{', then '.join(steps)}: in the repeated calls, {became}.", dearest


def _gains(report: Report) -> dict[str, float]:
    """What the measured breaks cost a call, by id; those of unknown cost are left out."""
    return {c.break_: c.seconds for c in report.profile.breaks if c.seconds} if report.profile else {}


def _dearer(words: list[CauseWords], report: Report) -> CauseWords | None:
    """The cause of breaks that costs most, if that is more than what the best trace of the calls gains."""
    removed = {id for trial in helpful(report, report.trials)[-1:] for id in trial.removes}
    gain = sum(seconds for id, seconds in _gains(report).items() if id in removed)
    left = [one for one in words if one.cause.kind == "break" and not (one.cause.asked_for or {*one.cause.breaks} <= removed)]
    dearest = max(left, key=lambda one: one.cause.seconds or 0.0, default=None)
    return dearest if dearest is not None and (dearest.cause.seconds or 0.0) > gain else None


def _cause(words: list[CauseWords], report: Report) -> Step:
    """What to do about the first cause."""
    if not words or words[0].cause.asked_for:
        return _nothing(report, is_asked=bool(words)), next((b.id for one in words for b in one.breaks), "")
    return _first_words(words[0], report), (words[0].breaks or words[0].frames)[0].id


def _first_words(words: CauseWords, report: Report) -> str:
    """What to do about a cause, and where."""
    cause, where = words.cause, words.places
    is_vain = cause.setting is not None and not words.helps  # untried or tried, it has a sentence of its own
    fix = instead_of(cause.setting or "") if is_vain else words.fix().removesuffix(".")
    if cause.kind == "recompile":
        every = sum(r.refused_by is None for r in report.recompiles)
        of = f"{len(words.frames)} of {plural(every, 'recompile')}" if len(words.frames) < every else words.count
        return f"look into {of}: {words.title}{'; ' * bool(fix)}{fix}."
    b, *others = words.breaks
    at = f"{where.at(b.file, b.line, b.cell)} in {where.function_of(b)}"
    reached = f", reached from {where.at(own.file, own.line, own.cell)}" if (own := own_caller(b)) else ""
    more = f" and {plural(len(others), 'more place')}" if others else ""
    library = ", also in a library" if package(b.file) else ""
    has_flags = report.settings and not (report.settings.get("fix") or cause.by_design)  # what is only observed has none
    tries = f"; `--fix`, or fix=True, looks for a change that holds{library}" if has_flags else ""
    what = words.title.removesuffix(".") + (f" ({time_text(cause.seconds)} a call)" if cause.seconds else "")
    return f"at {at} ({package(b.file) or 'your code'}{reached}){more}, {what}: {lower_first(fix)}{tries}."


def _nothing(report: Report, *, is_asked: bool) -> str:
    """What to do first in a program without a known cause of breaks or recompiles, but for the breaks that it asks for."""
    s = report.summary
    is_known, refused = not (s.cached or s.unknown_breaks), sum(r.refused_by is not None for r in report.recompiles)
    counts = [(s.failed, "failed"), (s.skipped, "skipped"), (s.unfinished, "unfinished"), (s.cached, "cached")]
    facts = [f"{'no graph break' if is_known and not s.breaks else headline_parts(report)[1]}, no recompile"]
    facts += [f"{plural(n, 'frame')} {word}" for n, word in counts if n]
    facts += [f"{plural(refused, 'recompile')} refused"] if refused else []
    unless = ", unless a graph break that the program asks for is not meant" * is_asked
    what = "look into what is not compiled" if facts[1:] else f"nothing{unless}"
    what = "look into the error" if _is_stopped(report) else what
    return f"{what}: {'; '.join(facts)}." if is_known else f"unknown ({'; '.join(facts)})."


def _slower(report: Report, profile: Profile) -> str:
    """That compiled code is slower than eager code; "" if it is not slower, or was not made to be faster."""
    is_slower = profile.verdict.payback == "slower" and not only_captures(report)
    return f"{times}." if is_slower and (times := verdict_words(profile)) else ""


def _dominant(places: Places, profile: Profile) -> str:
    """What takes most of a call and, if that is the graphs, the one that takes most.

    A device that is busy for most of the call decides how long it takes, whatever the processor does meanwhile.
    """
    # the profiler slows down the processor alone
    slowed = (profile.profiled_seconds or 0.0) / profile.call_seconds if profile.call_seconds else 0.0
    busy = min(1.0, profile.shares.get("device busy", 0.0) * max(1.0, slowed))
    kinds = {"graphs": ["graph"], "device busy": ["kernel", "copy"]}
    left_out = ("device busy", "waiting") if busy else ()
    processor = {name: part for name, part in profile.shares.items() if name in SHARES and name not in left_out}
    shares = {"device busy": busy} if busy >= _BUSY else processor
    name = max(shares, key=shares.__getitem__, default="")
    if not name:
        return ""
    parts = grouped((s.graph, s.duration) for s in profile.segments if s.kind in kinds.get(name, ()))
    spent = {id: sum(durations) for id, durations in parts.items()}
    id = max(spent, key=spent.__getitem__, default=None)
    words = f"the largest part of {a_call(profile)}: {SHARES[name][0]}, {shares[name]:.0%}"
    if id in places.graphs:  # and not in code that the report lacks
        number, graph = places.graphs[id]
        whose = f" (`{places.name(frame)}`)" if (frame := places.frames.get(graph.frame)) else ""
        words += f"; graph {number} alone, {shares[name] * spent[id] / sum(spent.values()):.0%}{whose}"
    return f"{words}."


# -- text -------------------------------------------------------------------------------------------


def headline_lines(report: Report, terminal: Terminal) -> list[str]:
    """The headline, between its parts wrapped to the width."""
    head, _, rest = printable(headline(report), 500).partition(": ")
    glued = f"{head}: {rest}".replace(" ", "\xa0").replace("\xa0·\xa0", "\xa0· ")
    lines = [line.replace("\xa0", " ") for line in textwrap.wrap(glued, terminal.width, subsequent_indent="  ")]
    return [terminal.paint(head, "bold") + lines[0].removeprefix(head), *lines[1:]]


def first_lines(found: Recommendation | None, terminal: Terminal) -> list[str]:
    """The recommendation: what to do first, and what else is known."""
    more = [line for one in (found["more"][:MOST_MORE] if found else ()) for line in terminal.wrap(one, " " * 15, 3)]
    return ["", *terminal.labelled("Do this first: ", found["first"], 9, "green", "bold"), *more] if found else []


def error_lines(places: Places, terminal: Terminal) -> list[str]:
    e = places.report.error
    if e is None:
        return []
    at = f" at {places.at(e.file, e.line, e.cell)}" if e.file else ""
    text = f"✗ {e.type}{at}{', did not end the run' if e.caught else ''}: {error_message(places.report)}"
    return terminal.wrap(text.rstrip(": "), "", 3, "red")


def note_lines(report: Report, terminal: Terminal, most: int, longest: int = 3) -> list[str]:
    """All notes on unread records, because of which the report may be wrong, all answers, and the first of the others.

    `longest`: a note has at most this many lines.
    """
    lost = [*record_notes(report), *(note for note in report.notes if note.startswith(_ANSWERS))]
    own = [note for note in report.notes if note not in lost]
    told = [f"note: {note}" for note in (*lost, *own[:8], *splits(report), *own[8:])]
    lines = [line for note in capped(told, max(most, len(lost)), "note") for line in terminal.wrap(note, "", longest)]
    return ["", *lines] if lines else []
