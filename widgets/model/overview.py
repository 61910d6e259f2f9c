"""The overview of a large report: what to do first, the causes, and the calls with what happened in each.

Promises: only a large report has one; every break and every recompile that was not refused is in one cause, and every frame
that is not ignored is in the row of its call.  A call is quiet if neither it nor any call below it is eventful
(`Call.is_eventful`); quiet calls are folded, several of one caller below a row that sums them up.
"""

from __future__ import annotations

from collections import defaultdict

from dynascope.compiler.report import Break, Frame, Report, plural
from dynascope.compiler.report.call_tree import OWNERS, Call, Owners, call_tree, ran_in
from dynascope.compiler.report.causes import causes
from dynascope.widgets.drawing.shapes import break_code
from dynascope.widgets.labels.causes import CauseWords, first_words, left_words, proved_words
from dynascope.widgets.labels.recompiles import recompile_words
from dynascope.widgets.labels.summary import nothing_to_do
from dynascope.widgets.labels.words import Places, listing, printable, shorten
from dynascope.widgets.wire import CallRow, CausePlace, CauseRow, Overview

#: a report is large if it has more frames than this, of more functions than this
MOST_FRAMES, MOST_FUNCTIONS = 12, 4


def is_large(report: Report) -> bool:
    """Whether a report has more frames of more functions than a picture shows at a glance; it then opens with its overview."""
    frames = [f for f in report.frames if f.status != "ignored"]
    functions = {(f.file, f.name) if f.kind == "resume" else (f.file, f.line) for f in frames}
    return len(frames) > MOST_FRAMES and len(functions) > MOST_FUNCTIONS


def overview(report: Report, places: Places) -> Overview | None:
    """The overview of a report; None if the report is not large."""
    if not is_large(report):
        return None
    owners = Owners(report)
    words = [CauseWords(report, places, cause) for cause in causes(report)]
    rows = [cause_row(number, one, owners) for number, one in enumerate(words)]
    named = words[0].breaks if words else []  # "first" names the first of these; the first of the sorted places may be another
    first, left = proved_words(report)
    costs = [one.cause.seconds for one in words if one.breaks]
    return {
        "first": printable(first or (first_words(words[0]) if words else nothing_to_do(report)), 1000),
        "left": left if first else left_words(words[1:]),
        "first_id": named[0].id if named else rows[0]["places"][0]["id"] if rows and rows[0]["places"] else "",
        "causes": rows,
        "calls": _Rows(report, places, owners).rows,
        "library": shorten(owners.library or "", 40),
        "well": _compiled_well(report, places),
        "measured": report.profile is not None,
        "by_cost": bool(costs) and None not in costs and costs == sorted(costs, key=lambda seconds: -(seconds or 0)),
    }


# -- causes -----------------------------------------------------------------------------------------


def cause_row(number: int, words: CauseWords, owners: Owners) -> CauseRow:
    """One cause with its places: those in the user's own code first, then in the model's library, then in other code."""
    breaks = [_break_place(b, words.places, owners) for b in words.breaks]
    places = breaks or _recompiled(words, owners)
    return {
        "id": f"cause{number}", "kind": words.cause.kind, "count": words.count(), "title": shorten(words.title(), 200),
        "fix": shorten(words.fix(), 300), "cost": shorten(words.cost(), 200), "eager": [shorten(e, 80) for e in words.eager()],
        "places": sorted(places, key=lambda place: OWNERS.index(place["owner"])),
    }  # fmt: skip


def _break_place(b: Break, places: Places, owners: Owners) -> CausePlace:
    return {
        "id": b.id, "place": places.at(b.file, b.line, b.cell), "code": shorten(break_code(b, places), 120),
        "function": shorten(places.function(b.function, b.file, b.line), 80), "times": len(b.hits),
        "owner": owners.of(b.file), "ids": [b.id],
    }  # fmt: skip


def _recompiled(words: CauseWords, owners: Owners) -> list[CausePlace]:
    """One place for each function that was compiled again, the most often recompiled one first."""
    reasons = {r.frame: recompile_words(r) for r in words.recompiles}
    found: dict[tuple[str, int, str], CausePlace] = {}
    for f in words.frames:
        key = (f.file, f.line, f.name)
        if key in found:
            found[key]["times"] += 1
            found[key]["ids"].append(f.id)
            continue
        found[key] = {
            "id": f.id, "place": words.places.frame(f), "code": shorten(next(iter(reasons.get(f.id, [])), ""), 160),
            "function": shorten(words.places.name(f), 80), "times": 1, "owner": owners.of(f.file), "ids": [f.id],
        }  # fmt: skip
    return sorted(found.values(), key=lambda place: -place["times"])


# -- calls ------------------------------------------------------------------------------------------


class _Rows:
    """The rows of the call tree."""

    def __init__(self, report: Report, places: Places, owners: Owners) -> None:
        self.report, self.places, self.owners = report, places, owners
        #: operations of each graph that is not from a recompile; recompiles are counted separately
        self.graphs = _first_versions(report)
        self.seconds, self.eager_seconds, self.eager_ops = _measured(report)
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
        """Add the rows for the calls of one caller."""
        quiet = [call for call in calls if id(call) not in self.eventful]
        for call in calls:
            if id(call) in self.eventful:
                self.row(call, depth)
        if len(quiet) == 1:
            self.row(quiet[0], depth, folded=True)
        elif quiet:
            self.quiet_row(quiet, depth)

    def row(self, call: Call, depth: int, *, folded: bool = False) -> None:
        passed: list[Call] = []
        while depth and len(call.calls) == 1 and not folded and self.is_empty(call):
            passed, call = [*passed, call], call.calls[0]
        whole = [*passed, *([c for _, c in call.walk()] if folded else [call])]
        self.sizes.append(self.part(whole))
        self.rows.append({
            "id": self.target(call), "depth": depth, "name": shorten(self.name(call), 120), "owner": self.owners.of(call.file),
            "place": self.places.at(call.file, call.line, call.cell), "events": self.events(whole),
            "ids": [id for c in whole for id in self.ids(c)], "part": 0, "eager": 0, "folded": folded,
        })  # fmt: skip
        self.below(call.calls, depth + 1)

    def is_empty(self, call: Call) -> bool:
        """Whether nothing was captured or happened in a call itself.

        If such a call has only one callee, the two share a row, unless the call is a root or folded.
        """
        return not call.is_eventful and not call.graphs

    def quiet_row(self, quiet: list[Call], depth: int) -> None:
        """Add a row that sums up several quiet calls, and their own rows below it."""
        whole = [c for call in quiet for _, c in call.walk()]
        self.sizes.append(self.part(whole))
        names = list(dict.fromkeys(_short(self.name(call)) for call in quiet))
        self.rows.append({
            "id": self.target(quiet[0]), "depth": depth, "name": f"{len(quiet)} more: {listing(names, 100)}",
            "owner": min((self.owners.of(c.file) for c in whole), key=OWNERS.index), "place": "",
            "events": self.events(whole), "ids": [], "part": 0, "eager": 0, "folded": True,
        })  # fmt: skip
        for call in quiet:
            self.row(call, depth + 1, folded=True)

    def name(self, call: Call) -> str:
        return self.places.function(call.name, call.file, call.line)

    def target(self, call: Call) -> str:
        """What a click on the row of a call selects: its first break, else the frame that was skipped, else its first frame."""
        frames = [f.id for f in ([call.skipped] if call.skipped else []) + call.frames]
        return next(iter([*call.breaks, *frames]), "")

    def ids(self, call: Call) -> list[str]:
        return [*call.breaks, *(f.id for f in call.frames), *call.graphs]

    def part(self, calls: list[Call]) -> tuple[float, float]:
        """How much of the program is in these calls, and how much of that is eager code, in seconds.

        If no run was profiled: the number of captured operations, and 0.
        """
        frames = [f.id for call in calls for f in call.frames]
        if self.seconds:
            return sum(self.seconds[id] for id in frames), sum(self.eager_seconds[id] for id in frames)
        return float(sum(self.graphs.get(g) or 0 for call in calls for g in call.graphs)), 0.0

    def events(self, calls: list[Call]) -> list[list[str]]:
        """What happened, as [kind, words] pairs."""
        frames = [f for call in calls for f in call.frames]
        found = [[str(f.status), str(f.status)] for f in frames if f.status in ("failed", "unfinished")][:1]
        if any(f.status == "skipped" for f in frames):
            rest = all(f.kind == "resume" for f in frames if f.status == "skipped")
            found.append(["skipped", "rest runs eagerly" if rest else "runs eagerly"])
        breaks = [b for call in calls for b in call.breaks]
        found += [["break", plural(len(breaks), "break")]] if breaks else []
        again = sum(call.recompiles for call in calls)
        found += [["recompile", plural(again, "recompile")]] if again else []
        return found + self.captured(calls, [] if found else frames)

    def captured(self, calls: list[Call], frames: list[Frame]) -> list[list[str]]:
        """The pairs for graphs and measured eager ops; without either, "nothing to compile" if all `frames` are empty."""
        graphs = [g for call in calls for g in call.graphs if g in self.graphs]
        ops = [self.graphs.get(g) for g in graphs]
        eager = sum(self.eager_ops[f.id] for call in calls for f in call.frames)
        known = "" if None in ops or not graphs else f", {plural(sum(op or 0 for op in ops), 'op')}"
        found = [["graph", plural(len(graphs), "graph") + known]] if graphs else []
        found += [["eager", plural(eager, "eager op")]] if eager else []
        if found:
            return found
        empty = frames and all(f.status == "empty" for f in frames)
        return [["empty", "nothing to compile"]] if empty else []


def _short(name: str) -> str:
    """`Block` for `Block.forward`, `decode` for `BoxCoder.decode`."""
    owner, _, own = name.rpartition(".")
    return owner if owner and own in ("forward", "__call__", "__init__") else own


def _first_versions(report: Report) -> dict[str, int | None]:
    """By id, the number of operations of each graph that is not from a recompile; None: unknown."""
    again = {f.graph for f in report.frames if f.recompile_of is not None}
    return {g.id: g.ops for g in report.graphs if g.id not in again}


def _compiled_well(report: Report, places: Places) -> str:
    """A sentence on the functions that have graphs, were compiled in this recording, and are not eventful themselves.

    "" without any, or if no ops are known.
    """
    ops = _first_versions(report)
    calls = [call for root in call_tree(report) for _, call in root.walk()]
    sizes = {id(call): sum(ops.get(g) or 0 for g in call.graphs) for call in calls}
    unclear = [c for c in calls if c.is_eventful or any(f.status == "cached" for f in c.frames)]
    eventful = {(c.name, c.file, c.line) for c in unclear}
    well = [c for c in calls if c.graphs and (c.name, c.file, c.line) not in eventful]
    whole = sum(sizes.values())
    if not well or not whole:
        return ""
    well.sort(key=lambda call: -sizes[id(call)])
    names = list(dict.fromkeys(_short(places.function(call.name, call.file, call.line)) for call in well))
    part = round(100 * sum(sizes[id(c)] for c in well) / whole)
    return f"{plural(len(names), 'function')} (without what they call), {part}% of the captured ops: {listing(names, 120)}"


def _measured(report: Report) -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
    """For the profiled call, by frame: its seconds, those of eager code, and the number of eager operations."""
    seconds, eager, ops = defaultdict[str, float](float), defaultdict[str, float](float), defaultdict[str, int](int)
    for frame, segment in ran_in(report):
        seconds[frame] += segment.duration
        if segment.kind == "gap":
            eager[frame] += segment.duration
            ops[frame] += segment.op_count or 0
    return seconds, eager, ops
