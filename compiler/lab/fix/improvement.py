"""Compares the reports of two trials: does the compiler do better with one more change?"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence

from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.text_edits import line_origins
from dynascope.compiler.lab.fix.trial import TrialResult
from dynascope.compiler.report import Break, Frame, Recompile, Report, first_line, label, plural
from dynascope.compiler.report.measurements import STAYS, THE_BREAK

#: a place in the original text: (file, line, column)
Place = tuple[str, int, "int | None"]
#: of a break: its place and type; of a recompile: the first line of its frame, without a column, and `recompile SOURCE`
Key = tuple[Place, str]

#: torch's type of a break of the backend's making; the repeated calls have another backend, which may not have it
OF_BACKEND = "Backend compiler exception"


def break_key(b: Break, plan: Plan) -> Key:
    """The place of a break in the original text, and its type.

    A changed line has no original line, so its negated number is used: no original line has that number.  But code that stands
    once in either text is the same code: it was only moved, or its line is another around it.
    """
    return _place(b, plan), b.type


def _place(at: Break | Frame, plan: Plan, earlier: Plan | None = None) -> Place:
    column, end = (at.column, at.end_column if at.end_line == at.line else None) if isinstance(at, Break) else (None, None)
    now, before = plan.text(at.file), plan.originals.get(at.file, "") if earlier is None else earlier.text(at.file)
    if at.file not in plan.texts or now == before:
        return at.file, at.line, column
    line = line_origins(before, now).get(at.line, -at.line)
    code = "".join(now.split("\n")[at.line - 1 : at.line])[column:end].strip()
    if line < 0 and code and (before.count(code), now.count(code)) == (1, 1):
        start = before.index(code)
        line, column = before.count("\n", 0, start) + 1, None if column is None else start - before.rfind("\n", 0, start) - 1
    return at.file, line, column


def why_no_better(after: Report, before: Report, plan: Plan, earlier: Plan, b: Break) -> str | None:
    """Why the compiler does no better with a change for the break `b`; None if it does.

    `earlier`: the plan without the change.
    """
    if failed := failure(after, before):
        return failed
    places = [(_place(other, plan, earlier), other) for other in after.breaks]
    own, known = (b.file, b.line, b.column), Counter((o.file, o.line, o.column, o.type) for o in before.breaks)
    if sum(place == own and other.type == b.type for place, other in places) >= known.get((*own, b.type), 1):
        return STAYS
    new = [(place, other) for place, other in places if (*place, other.type) not in known]
    if here := [other for place, other in new if place[:2] == own[:2]]:
        return f"{THE_BREAK} makes way for another one at its line: {_words(here[0])}"
    if changed := [other for (_, line, _), other in new if line < 0]:
        return f"{THE_BREAK} makes way for another one in the changed lines: {_words(changed[0])}"
    calls = {(entry.file, entry.line) for entry in b.stack}
    if moved := [other for place, other in new if place[:2] in calls]:
        return f"{THE_BREAK} makes way for another one at the call: {_words(moved[0])}"
    skipped = eager_frames(after) - eager_frames(before)
    if skipped > 0 and skipped >= len(before.breaks) - len(after.breaks):
        return f"{plural(skipped, 'more frame')} skipped"
    if (more := after.summary.recompiles - before.summary.recompiles) > 0:
        return f"{plural(more, 'more recompile')} in the repeated calls"
    if len(new) > 1 and len(after.breaks) > len(before.breaks):
        return f"{plural(len(new), 'new graph break')}: {', '.join(dict.fromkeys(_words(other) for _, other in new[:3]))}"
    return None


def failure(after: Report, before: Report) -> str:
    """What the run, or the compiler in more frames than before, fails with in `after`; "" if neither does.

    Such a frame may run eagerly in a trial; the user's torch.compile would raise the exception.
    """
    if after.error is not None and before.error is None:
        return f"{after.error.type}: {first_line(after.error.message)[:200]}"
    failed, known = failures(after), failures(before)
    return f"the compiler fails: {first_line(failed[-1])[:200]}" if len(failed) > len(known) else ""


def failures(report: Report) -> list[str]:
    """The reasons of the frames in which the compiler raised an exception."""
    return [f.reason or "reason unknown" for f in report.frames if f.status == "failed" or f.suppressed]


def _words(b: Break) -> str:
    """The type of a break, and the reason unless it begins with the type."""
    reason = first_line(b.reason)[:200]
    return b.type if not reason or reason.startswith(b.type) else f"{b.type}: {reason}"


def recompile_key(recompile: Recompile, report: Report, plan: Plan) -> Key:
    """The place of the frame that was compiled again, as in `break_key`, and the first guard that failed."""
    guards = [f"{guard.kind} {guard.source}" for guard in recompile.failed_guards[:1]]
    return _place(report.frame(recompile.frame), plan), " ".join(["recompile", *guards])


#: what two recompiles have in common, the most telling first: indices into (call, place, guard)
_ALIKE = (0, 1, 2), (0, 1), (0,), (1, 2), (1,)


def come_back(run: Report, first: Report, after: Report, plan: Plan) -> list[str]:
    """The recompiled frames of `run` that come back in its repeated calls, `first`, and in these calls with a plan.

    In `first`, the place and the guard are the same: other recompiles depend on what the calls have left.  From there on, a
    recompile is that of its call, whatever guard fails there: a guard that no longer fails may only have hidden another one.
    """

    def known(report: Report, plan: Plan) -> list[tuple[str, tuple[object, ...]]]:
        return [(r.frame, (r.call, *recompile_key(r, report, plan))) for r in report.recompiles]

    repeated = _matches(known(run, Plan()), known(first, Plan()), _ALIKE[3:4])
    left = _matches(known(first, Plan()), known(after, plan), _ALIKE)
    return [id for id, there in repeated.items() if there in left]


def _matches(
    ones: Sequence[tuple[str, tuple[object, ...]]], others: Sequence[tuple[str, tuple[object, ...]]],
    ways: Iterable[tuple[int, ...]],
) -> dict[str, str]:  # fmt: skip
    """For each id the id of another one that is alike, each of them once."""
    found, left = dict[str, str](), dict(others)
    for indices, (id, key) in itertools.product(ways, ones):
        alike = (other for other, of in left.items() if all(key[n] == of[n] for n in indices))
        if id not in found and (match := next(alike, None)) is not None:
            found[id] = match
            del left[match]
    return found


def gone(run: Report, again: Report) -> list[str]:
    """Ids of the breaks of `run` that are not in `again`, but for those in code of which no graph is made there: no gain."""
    known = {extent(b) for b in again.breaks}
    eager = {f.code for f in again.frames} - {f.code for f in again.frames if f.graph}
    absent = (b for b in run.own_breaks if extent(b) not in known and b.type != OF_BACKEND)
    hit = {b.id: {run.frame(h.frame).code for h in b.hits} for b in absent}
    return [id for id, codes in hit.items() if not codes <= eager]


def depends_on_values(report: Report, ids: Iterable[str]) -> bool:
    """Whether one of these breaks comes after a break at a condition on values, which decides whether a call reaches it."""
    breaks = {b.id: b for b in report.breaks}
    frames = [report.frame(hit.frame) for id in ids for hit in breaks[id].hits]
    for frame in frames:
        if frame.kind == "resume" and frame.continues is not None:
            if frame.break_ is not None and breaks[frame.break_].type == "Data-dependent branching":
                return True
            frames.append(report.frame(frame.continues))
    return False


def extent(b: Break) -> tuple[str, int, int | None, int | None]:
    return b.file, b.line, b.column, b.end_column


def removed(
    run: Report, after: Report, plan: Plan, before: Report, earlier: Plan, moved: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Ids of the breaks of `run` that are in `before`, under the plan `earlier`, but not in `after`.

    The second list has those that only move, to a call that leads to them.  `moved`: those of earlier changes.
    """
    were, stay = [break_key(b, earlier) for b in before.breaks], [break_key(b, plan) for b in after.breaks]
    breaks: list[str] = []
    own = [(break_key(b, Plan()), b.id) for b in run.breaks]
    for place, count in (Counter(at for at, _ in were) - Counter(at for at, _ in stay)).items():
        there = sorted((key in stay, key not in were, id) for key, id in own if key[0] == place)  # several may begin there
        breaks += [id for _, _, id in there[:count]]
    new = {(*place[:2], type) for place, type in stay if (place, type) not in were}
    went = [b.id for b in run.breaks if b.id in breaks and any((call.file, call.line, b.type) in new for call in b.stack)]
    breaks = [id for id in breaks if id not in went]
    gone = Counter(type for _, type in were) - Counter(type for _, type in stay)
    breaks += [b.id for b in run.breaks if b.id in moved and gone[b.type]][: max(0, len(were) - len(stay) - len(breaks))]
    return breaks, [b.id for b in run.breaks if b.id in (*went, *moved) and b.id not in breaks]


def within_line(run: Report, ids: Sequence[str], after: Report, plan: Plan) -> list[str]:
    """Those of the breaks `ids` of `run` at whose line `after` has another one: the line still splits the graph."""
    new = {break_key(b, plan) for b in after.breaks} - {break_key(b, Plan()) for b in run.breaks}
    return [b.id for b in run.breaks if b.id in ids and (b.file, b.line) in {place[:2] for place, _ in new}]


def appeared(after: Report, plan: Plan, before: Report, earlier: Plan) -> str:
    """The places of the graph breaks that are in `after` but not in `before`: `f.py:4 (if n == 0:)`; "" if there are none."""
    known = {break_key(b, earlier)[0] for b in before.breaks}
    new = [(b, _place(b, plan)[1]) for b in after.breaks if break_key(b, plan)[0] not in known]
    found = [(f"{label(b.file, b.cell)}:{line}" if line > 0 else "a changed line", b.source.strip()[:60]) for b, line in new]
    return " and ".join(dict.fromkeys(f"{at} ({text})" if text else at for at, text in found))


def why_recompiles_stay(after: Report, before: Report, plan: Plan, earlier: Plan, recompile: Recompile) -> str | None:
    """Why a change for a recompile does no better; None if it does.  `earlier`: the plan without the change."""
    if failed := failure(after, before):
        return failed
    is_worse = len(after.breaks) > len(before.breaks) or eager_frames(after) > eager_frames(before)
    if is_worse or after.summary.recompiles >= before.summary.recompiles:
        if new := appeared(after, plan, before, earlier):
            return f"a graph break appears at {new}"
        return "more of the program runs eagerly" if is_worse else "there are not fewer recompiles"
    if before.frame(recompile.frame).status in ("skipped", "failed") and eager_frames(after) == eager_frames(before):
        return "the function runs eagerly then, too"
    return None


def captures_more(after: Report, before: Report) -> bool:
    """Whether more of the program is compiled, or as much in fewer graphs, without more breaks, eager frames or recompiles.

    Two examples: a loop around the break is compiled although the break stays; a message printed at the end of the function
    no longer splits the graph.
    """
    is_no_worse = len(after.breaks) <= len(before.breaks) and eager_frames(after) <= eager_frames(before)
    now, then = after.summary, before.summary
    is_no_worse = is_no_worse and now.recompiles <= then.recompiles and after.error is None
    return is_no_worse and (operations(after), -now.graphs) > (operations(before), -then.graphs)


def operations(report: Report, last: Frame | None = None) -> int:
    """The number of operations in graphs, but for those of recompiles; `last`: up to those of this frame.

    `clone` and `detach` are left out: rewrites add them, and compiling them gains nothing.
    """
    frames = report.frames[: report.frames.index(last) + 1] if last is not None else report.frames
    known = {f.id for f in frames if f.recompile_of is None}
    graphs = [g for g in report.graphs if g.frame in known]
    return sum((g.ops or 0) - sum(node.target in ("clone", "detach") for node in g.nodes) for g in graphs)


def more_captured(after: TrialResult, before: TrialResult) -> int:
    """How many operations fewer a call runs outside of graphs; where that was not counted, how many more are in graphs."""
    if after.eager_ops is None or before.eager_ops is None:
        return operations(after.report) - operations(before.report)
    return before.eager_ops - after.eager_ops


def why_worse_elsewhere(after: TrialResult, before: TrialResult) -> str:
    """What is worse, whatever became of a break: recompiles are more, or less is captured; "" if neither.

    Less is captured if fewer operations are in graphs, and a call then does more outside of them, more frames run eagerly or no
    operation is in a graph.  Messages printed after a graph cost less.
    """
    more_eager = eager_frames(after.report) > eager_frames(before.report) or not operations(after.report)
    is_costly = more_eager or after.counts.cost > (before.counts.cost or math.inf)
    if is_costly and operations(after.report) < operations(before.report):
        return "less is captured then"
    more = after.report.summary.recompiles - before.report.summary.recompiles
    return f"{plural(more, 'more recompile')} in the repeated calls" if more > 0 else ""


def ends(run: Report, report: Report, plan: Plan) -> list[Break]:
    """The breaks at which a run would end that a break has ended: such a break, or one that the run does not have."""
    known = {break_key(b, Plan())[0]: b.outcome for b in run.breaks}
    return [b for b in report.breaks if "raised" in known.values() and known.get(break_key(b, plan)[0], "raised") == "raised"]


def before_end(run: Report, report: Report, plan: Plan) -> float:
    """How many operations are in graphs when the run would end at a break; infinity if it would not."""
    return min((operations(report, report.frame(b.hits[0].frame)) for b in ends(run, report, plan)), default=math.inf)


def gain(after: Report, before: Report) -> str:
    """What is better (see `captures_more`) although the graph break stays, as a sentence."""
    more = operations(after) > operations(before)
    return f"The graph break stays; {'more of the program is in graphs' if more else 'there are fewer graphs'}"


def eager_frames(report: Report) -> int:
    return report.summary.skipped + report.summary.failed
