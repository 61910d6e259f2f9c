"""The overview of a large report: the causes, and the calls with what happened in each.

Promises: only a large report has one; every break and every recompile that was not refused is in one cause, and every frame
that is not ignored is in the row of its call.  A call is quiet if neither it nor any call below it is eventful
(`Call.is_eventful`); quiet calls are folded, several of one caller below a row that sums them up.  A setting is presented as
the compiler's advice, or with what a trial showed, never as a certain fix; a cost is either measured or a number of frames.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TypedDict

from dynascope.compiler.report import Break, FailedGuard, Frame, Report, plural, time_text
from dynascope.compiler.report.overview import OWNERS, Call, Cause, Owners, call_tree, causes, ran_in
from dynascope.widgets.features.breaks import GENERAL, MOVES, advice, instead_of, outcome
from dynascope.widgets.features.fixes import considered, is_refused
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.recompiles import HINT, guard_words, is_at_limit
from dynascope.widgets.terminal import Terminal
from dynascope.widgets.words import compiler_text, grouped, listing, shorten

#: a report is large if it has more frames than this, of more functions than this
MOST_FRAMES, MOST_FUNCTIONS = 12, 4
#: lines of a screen
SCREEN = 45
#: causes that are shown with their places, and functions named in one line
PLACED, FUNCTIONS = 4, 5
#: setting that the compiler's hints name -> what the breaks with such a hint have in common
_SETTINGS = {
    "capture_scalar_outputs": "a tensor's value is read in Python (`.item()`, `int()`, `tolist()`)",
    "capture_dynamic_output_shape_ops": "a result's shape depends on data (`nonzero`, `where`, `nms`)",
    "trace_autograd_ops": "gradients are computed in the compiled code", "allow_rnn": "an RNN, GRU or LSTM",
}  # fmt: skip
#: torch's type of a break -> what happens, and what to do
_TYPES = {
    "Data-dependent branching": ("a condition depends on a tensor's value",
        "move it out of the compiled code, or, for an `if`, use `torch.where` or `torch.cond`"),
    "Attempted to call function marked as skipped": ("a call into code that Dynamo does not trace",
        "move the call out of the compiled code"),
    "Data dependent operator": ("an operator returns a number or flag that depends on values",
        "move the call out of the compiled code, or use a tensor instead, in `torch.where` or `torch.cond`"),
}  # fmt: skip
#: for a value that differs in each call; whether the function itself changes it is not known
OWN_STATE = "where the compiled function itself changes it, change and read it outside, or, in tensor arithmetic, use a tensor"
#: the kind of a guard that failed -> what changed, and what to do
_GUARDS = {
    "size": ("another size", "where input sizes vary between calls, try `mark_dynamic`"),
    "value": ("another value",
        "a number in arithmetic with tensors can be a tensor; what the compiled function itself changes, change and read "
        "outside; any other value may need a version of its own"),
    "stride": ("another memory layout", "give it the same layout in each call"),
    "global state": ("a global setting of torch changed",
        "keep grad mode, autocast and whatever else differs the same in each call"),
    "freed": ("a new object each time",
        "make it once, and use it in each call, or, if it is a method of a list or dict that changes, call it outside of the "
        "compiled code: a version is for one object alone"),
}  # fmt: skip
_FIRST_CALL = "gone when the same calls are repeated"
#: what to do about them; whether it helps depends on calls that nobody has made yet
WARM_UP = "make the calls once in eager mode before compiling, if later calls do not lead to these graph breaks again"


class Placed(TypedDict):
    """What has a place; `ids`: the breaks, frames and graphs that it represents, of which a click selects `id`."""

    id: str
    place: str
    owner: str
    ids: list[str]


class CausePlace(Placed):
    """One break, or one function that was compiled again, `times` times."""

    code: str
    function: str
    times: int


class CauseRow(TypedDict):
    """Breaks or recompiles that one change may remove; `eager`: functions that run eagerly because of them."""

    id: str
    kind: str
    count: str
    title: str
    fix: str
    cost: str
    eager: list[str]
    places: list[CausePlace]


class CallRow(Placed):
    """A call in the tree, or the sum of several quiet calls, with no `ids`; rows below it follow, with a greater `depth`.

    `part`: its time, or else its captured operations, as a percentage of the largest row's; `eager`: how much of `part` is
    eager code; `events`: pairs of kind and words; `folded`: whether the rows below it are hidden at first.
    """

    depth: int
    name: str
    events: list[list[str]]
    part: int
    eager: int
    folded: bool


class Overview(TypedDict):
    """What a large report opens with.

    `library`: the package, other than torch, that most frames are from, or ""; `measured`: whether run times were measured.
    """

    causes: list[CauseRow]
    calls: list[CallRow]
    library: str
    measured: bool


def is_large(report: Report) -> bool:
    """Whether a report has more frames of more functions than a picture shows at a glance; it then opens with its overview."""
    frames = [f for f in report.frames if f.status != "ignored"]
    functions = {(f.file, f.name) if f.kind == "resume" else (f.file, f.line) for f in frames}
    return len(frames) > MOST_FRAMES and len(functions) > MOST_FUNCTIONS


def overview(places: Places) -> Overview | None:
    """The overview of a report; None if the report is not large."""
    report = places.report
    if not is_large(report):
        return None
    owners = Owners(report, list(places.sources))
    words = [CauseWords(places, cause) for cause in causes(report)]
    return {
        "causes": [one.row(number, owners) for number, one in enumerate(words)],
        "calls": _Rows(places, owners).rows,
        "library": shorten(owners.library or "", 40),
        "measured": report.profile is not None,
    }


# -- causes -----------------------------------------------------------------------------------------


class CauseWords:
    """The words of one cause.

    `count`: how much it explains, `8 graph breaks`, `19 recompiles`; `title`: what happens at each of its places.
    """

    def __init__(self, places: Places, cause: Cause) -> None:
        self.report, self.places, self.cause = places.report, places, cause
        self.breaks: list[Break] = [places.breaks[id] for id in cause.breaks]
        frames = [places.frames[id] for id in cause.frames if id in places.frames]
        often = Counter(f.code for f in frames)
        #: those of the code that is compiled most often come first: one of them is the example
        self.frames: list[Frame] = sorted(frames, key=lambda f: -often[f.code])
        #: of each of the frames, those that failed; the first is of the cause's kind
        self.guards: list[list[FailedGuard]] = [cause.frames[f.id] for f in self.frames]
        self.count = plural(len(self.breaks), "graph break") if self.breaks else plural(len(self.frames), "recompile")
        #: the changes considered for the cause; if it has a setting, those with this setting
        self.considered = considered(self.report, [*cause.breaks, *cause.frames], cause.setting)
        #: whether the cause's setting helps, and what trying it showed; (None, why) if nobody has tried it
        self.helps, self.shown = outcome(self.report, cause.setting or "", [*cause.breaks, *cause.frames])
        self.title, self.step = self.meaning()

    def row(self, number: int, owners: Owners) -> CauseRow:
        """The cause with its places: those in the user's own code first, then in the model's library, then in other code."""
        found = self.broken(owners) or self.recompiled(owners)
        return {
            "id": f"cause{number}", "kind": self.cause.kind, "count": self.count, "title": shorten(self.title, 200),
            "fix": shorten(self.fix(), 400), "cost": shorten(self.cost(), 200), "eager": [shorten(e, 80) for e in self.eager()],
            "places": sorted(found, key=lambda place: OWNERS.index(place["owner"])),
        }  # fmt: skip

    def broken(self, owners: Owners) -> list[CausePlace]:
        return [{
            "id": b.id, "place": self.places.at(b.file, b.line, b.cell), "code": shorten(self.places.code(b), 120),
            "function": shorten(self.places.function_of(b), 80), "times": 1,  # how often it ran is not known
            "owner": owners.of(b.file), "ids": [b.id],
        } for b in self.breaks]  # fmt: skip

    def recompiled(self, owners: Owners) -> list[CausePlace]:
        """One place for each function that was compiled again, the most often recompiled one first."""
        found: list[CausePlace] = [{
            "id": f.id, "place": self.places.frame(f), "code": shorten(guard_words(self.cause.frames[f.id][0]), 160),
            "function": shorten(self.places.name(f), 80), "times": len(again), "owner": owners.of(f.file),
            "ids": [f.id for f in again],
        } for again in grouped(((f.file, f.line, f.name), f) for f in self.frames).values() for f in again[:1]]  # fmt: skip
        return sorted(found, key=lambda place: -place["times"])

    def meaning(self) -> tuple[str, str]:
        """What happens, and what to do."""
        cause = self.cause
        if cause.kind == "recompile":
            words = dict.fromkeys(guard_words(first) for first, *_ in self.guards)
            title, step = _GUARDS.get(cause.guard or "", ("for example, " * (len(words) > 1) + next(iter(words)), ""))
            step = OWN_STATE if cause.in_each_call and cause.guard in ("length", "value") else step
            sizes = [s for f in self.frames for s in f.symbols]
            small = {value for failed in self.guards for g in failed for value in (g.before, g.now)} & {"0", "1"}
            if cause.guard == "size" and (small or not sizes or any(s.dynamic == "setting" or s.constraints for s in sizes)):
                step = ""  # sizes 0 and 1, and those of which the code asks something, may need a version of their own
            others = any(len({g.kind for g in failed}) > 1 for failed in self.guards)
            hint, *mixed = {first.hint for first, *_ in self.guards}
            step = "; ".join(filter(None, [step, HINT + hint if hint and not (mixed or self.considered) else ""]))
            return title + (self.example() if cause.guard in _GUARDS else "") + ", beside other guards" * others, step
        if cause.first_call:
            return _FIRST_CALL, f"{WARM_UP} (tried with the same data)"
        b = self.breaks[0]
        steps = (next((s for s in advice(self.report, b) if not s.startswith((MOVES, *GENERAL))), "") for b in self.breaks)
        own, *differing = dict.fromkeys(steps)
        step = own if own and not differing else instead_of("")  # what is said of one break may not fit the others
        if cause.by_design:
            return "torch's own breaks, for training", step
        if cause.type in _TYPES and not b.error:
            title, usual = _TYPES[cause.type]
            return title, step if any(one.decides for one in self.breaks) else usual
        title = _SETTINGS.get(cause.setting or "") or _TYPES.get(cause.type, (lower_first(b.type),))[0]
        title = b.error if {b.error} == {b.error for b in self.breaks} and b.error else title
        return compiler_text(title, 200), shorten(step, 200)

    def example(self) -> str:
        """For recompiles, what the failed guard of the first expected and what it got: `, such as boxes: 308, then 0`."""
        guard = self.guards[0][0]
        if not guard.source:
            return ""
        values = f": {guard.before}, then {guard.now}" if guard.before and guard.now and guard.before != guard.now else ""
        return f", such as {compiler_text(guard.source, 60)}{compiler_text(values, 60)}"

    def fix(self) -> str:
        """What to do about the cause; "" if nothing is known to help."""
        setting, is_again = self.cause.setting, self.cause.kind == "recompile"
        chosen, every = [fix for fix in self.considered if fix.chosen], {*self.cause.breaks, *self.cause.frames}
        gone = every.intersection(id for fix in chosen for id in fix.removes)
        some = f" for {len(gone)} of {len(every)}" if 0 < len(gone) < len(every) else ""
        if setting is not None:
            step = lower_first(instead_of(setting)) if self.helps is False else f"set `torch._dynamo.config.{setting} = True`"
            return f"{step} ({self.shown}{some})"
        if titles := dict.fromkeys(f"{lower_first(fix.title)} (tried: {fix.verdict}{some})" for fix in chosen):
            return "; ".join([*titles][:2])
        if self.step != OWN_STATE and is_refused(self.considered) and (is_again or self.cause.type in _TYPES):
            return "" if is_again else f"{lower_first(instead_of(''))} (what was tried was refused)"
        return self.step

    def cost(self) -> str:
        """What the cause costs: `1.2 ms a call · 34 eager ops`, `seen from 27 frames`; "" if only the count is known."""
        if self.cause.seconds:
            ops = f" · {plural(self.cause.eager_ops, 'eager op')}" if self.cause.eager_ops else ""
            return f"{time_text(self.cause.seconds)} a call{ops}"
        seen = len(set().union(*map(self.report.seen_from, self.breaks)))
        return f"seen from {seen} frames" if seen > len(self.breaks) else ""

    def eager(self) -> list[str]:
        """The functions that run eagerly because of this cause; for recompiles, those that were compiled too often."""
        again, ids, is_again = {f.code for f in self.frames}, self.cause.breaks, self.cause.kind == "recompile"
        stopped = (f for f in self.report.frames if f.status == "skipped" and f.stopped_by in ids)
        frames = [f for f in self.report.frames if is_at_limit(f) and f.code in again] if is_again else stopped
        return list(dict.fromkeys(map(self.places.name, frames)))


def lower_first(words: str) -> str:
    return words if words[1:2].isupper() else words[:1].lower() + words[1:]


# -- calls ------------------------------------------------------------------------------------------


class _Rows:
    """The rows of the call tree."""

    def __init__(self, places: Places, owners: Owners) -> None:
        report, self.places, self.owners = places.report, places, owners
        again = {f.graph for f in report.frames if f.recompile_of is not None}
        #: operations of each graph that is not from a recompile; recompiles are counted separately
        self.graphs = {g.id: g.ops for g in report.graphs if g.id not in again}
        #: the segments of the profiled call in each frame, and those of eager code
        self.segments = grouped(ran_in(report))
        self.eager = {frame: [s for s in segments if s.kind == "gap"] for frame, segments in self.segments.items()}
        self.rows: list[CallRow] = []
        #: what `part` returns for each row
        self.sizes: list[tuple[float, float]] = []
        roots = call_tree(report)
        self.eventful = {id(call) for root in roots for _, call in root.walk() if any(c.is_eventful for _, c in call.walk())}
        self.below(roots, 0)
        largest = max((size for size, _ in self.sizes), default=0.0) or 1.0
        for row, (size, eager) in zip(self.rows, self.sizes, strict=True):
            row["part"], row["eager"] = round(100 * size / largest), round(100 * eager / largest)

    def below(self, calls: list[Call], depth: int) -> None:
        """Add the rows for the calls of one caller: those of quiet ones last, below a sum if there are several."""
        quiet = [call for call in calls if id(call) not in self.eventful]
        for call in calls:
            if id(call) in self.eventful:
                self.row(call, depth)
        if len(quiet) > 1:
            names = listing(list(dict.fromkeys(_short(self.name(call)) for call in quiet)), 100)
            whole = [c for call in quiet for _, c in call.walk()]
            self.add(quiet[0], whole, depth, f"{len(quiet)} more: {names}", folded=True, ids=[])
        for call in quiet:
            self.row(call, depth + (len(quiet) > 1), folded=True)

    def row(self, call: Call, depth: int, *, folded: bool = False) -> None:
        """Add a row for a call; one in which nothing was captured or happened shares the row of its only callee."""
        passed: list[Call] = []
        while depth and len(call.calls) == 1 and not (folded or call.is_eventful or call.graphs):
            passed, call = [*passed, call], call.calls[0]
        whole = [*passed, *([c for _, c in call.walk()] if folded else [call])]
        ids = [id for c in whole for id in (*c.breaks, *(f.id for f in c.frames), *c.graphs)]
        self.add(call, whole, depth, shorten(self.name(call), 120), folded=folded, ids=ids)
        self.below(call.calls, depth + 1)

    def add(self, call: Call, whole: list[Call], depth: int, name: str, *, folded: bool, ids: list[str]) -> None:
        """Add a row for all calls in `whole`; a click selects a call's first break, else its skipped or its first frame."""
        own = [call] if ids else whole  # a sum without ids is of nobody's call
        frames = [f.id for f in ([call.skipped] if call.skipped else []) + call.frames]
        self.sizes.append(self.part(whole))
        self.rows.append({
            "id": next(iter([*call.breaks, *frames]), ""), "depth": depth, "name": name,
            "owner": min((self.owners.of(c.file) for c in own), key=OWNERS.index),
            "place": self.places.at(call.file, call.line, call.cell) if ids else "", "events": self.events(whole), "ids": ids,
            "part": 0, "eager": 0, "folded": folded,
        })  # fmt: skip

    def name(self, call: Call) -> str:
        return self.places.function(call.name, call.file, call.line)

    def part(self, calls: list[Call]) -> tuple[float, float]:
        """How much of the program is in these calls, and how much of that is eager code, in seconds.

        If no run was profiled: the number of captured operations, and 0.
        """
        if not self.segments:
            return float(sum(self.graphs.get(g) or 0 for call in calls for g in call.graphs)), 0.0
        frames = [f.id for call in calls for f in call.frames]
        whole, eager = (sum(s.duration for id in frames for s in ran.get(id, ())) for ran in (self.segments, self.eager))
        return whole, eager

    def events(self, calls: list[Call]) -> list[list[str]]:
        """What happened, as [kind, words] pairs."""
        frames = [f for call in calls for f in call.frames]
        found = [[str(f.status), str(f.status)] for f in frames if f.status in ("failed", "unfinished")][:1]
        skipped = [f for f in frames if f.status == "skipped"]
        words = "rest runs eagerly" if all(f.kind == "resume" for f in skipped) else "runs eagerly"
        found += [["skipped", "at the recompile limit" if all(map(is_at_limit, skipped)) else words]] if skipped else []
        graphs = [self.graphs[g] for call in calls for g in call.graphs if g in self.graphs]
        known = "" if None in graphs else f", {plural(sum(ops or 0 for ops in graphs), 'op')}"
        counts = (
            ("break", "break", sum(len(call.breaks) for call in calls), ""),
            ("recompile", "recompile", sum(call.recompiles for call in calls), ""),
            ("graph", "graph", len(graphs), known),
            ("eager", "eager op", sum(s.op_count or 0 for f in frames for s in self.eager.get(f.id, ())), ""),
        )
        found += [[kind, plural(count, what) + more] for kind, what, count, more in counts if count]
        return [["empty", "no graph"]] if frames and not found and all(f.status == "empty" for f in frames) else found


def _short(name: str) -> str:
    """`Block` for `Block.forward`, `decode` for `BoxCoder.decode`."""
    owner, _, own = name.rpartition(".")
    return owner if owner and own in ("forward", "__call__", "__init__") else own


# -- text -------------------------------------------------------------------------------------------


def overview_lines(shown: Overview, terminal: Terminal, room: int) -> list[str]:
    """The causes in at most `room` lines: the first ones with their places, the others in one line each."""
    rows = shown["causes"]
    owners = {place["owner"] for cause in rows for place in cause["places"]}
    named = {"own": "your code", "model": shown["library"], "other": "other libraries"}
    whose = [named[owner] for owner in named if owner in owners]
    note = terminal.paint(f"  ({'all ' * (len(whose) == 1)}in {', '.join(whose)})" if whose else "", "soft")
    out = ["", terminal.paint(f"Causes: {len(rows)}", "bold") + note] if rows else []
    for number, row in enumerate(rows):
        left = room - len(out) - (number < len(rows) - 1) - 2
        if left < 1:
            out.append(terminal.paint(f"    … and {plural(len(rows) - number, 'more cause')}", "soft"))
            break
        text = f"{number + 1:>2}. {row['count']}" + (f" ({row['cost']})" if row["cost"] else "") + ": "
        more = _placed(row, shown["library"], owners, terminal) if number < PLACED else []
        more = more if len(more) < left else []
        others = f" and {plural(len(row['places']) - 1, 'more place')}" if len(row["places"]) > 1 else ""
        title = row["title"] if more else f"at {row['places'][0]['place']}{others}: {row['title']}"
        out += [*terminal.labelled(text, title, 1, "cyan" if row["kind"] == "recompile" else "yellow", "bold"), *more]
    return [*out, "", terminal.paint("More: -o r.html; in Python, print(dynascope.last().details())", "soft")]


def _placed(row: CauseRow, library: str, owners: set[str], terminal: Terminal) -> list[str]:
    """The other lines of a cause: what to do, where, and what runs eagerly because of it."""
    out = terminal.labelled("    → ", row["fix"], 1, "green") if row["fix"] else []
    for owner, group in groupby(row["places"], lambda place: place["owner"]):
        whose = {"own": "your code: ", "model": f"{library}: "}.get(owner, "other libraries: ")
        whose = whose if len(owners) > 1 or owner == "own" else ""
        at = (f"{p['place']} {p['function']}" + (f" ({p['times']}×)" if p["times"] > 1 else "") for p in group)
        out += terminal.wrap(whose + ", ".join(at), "      ", 2)
    if row["eager"]:
        words = "runs eagerly: " if row["kind"] == "break" else "at the recompile limit: "
        names = listing(row["eager"][:FUNCTIONS], terminal.width - 6 - len(words))
        out.append(terminal.paint("      " + words + names, "soft"))
    return out
