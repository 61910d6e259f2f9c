"""The graph breaks of a report, and how its frames are linked (`Links`).

There is one break for each place and type, with the hits of all frames and the flags in force there (`RegionFlags`).

A break is identified by its innermost place in the user's code (file, line, column, end) and its type; if its text has no
cause, by the place.  The place comes from the hooks where they know it (with columns and the flag in force), else from the
compiler's text.

Which region set `error_on_graph_break` at a break is derived frame by frame from what the hooks observed.  A region may be in
the traced code itself.  Or a resume function has entered the region again, and does not know the region's line.  Or the region
is in the caller of a function that is compiled on its own after a break.

`Links` says which frame called which, and which resume function continues which frame.

A live run knows from which code object a resume function was made; a trace file has only names and lines.  Both have the stack
at the start of a compile, whose entries are names of functions and lines.  If a function has several frames, the caller is the
one whose break is at the entry's line.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from dynascope.compiler.builder import compile_records, dynamo_texts
from dynascope.compiler.builder.compile_records import CompileRecord, same_line
from dynascope.compiler.builder.dynamo_texts import BreakText
from dynascope.compiler.builder.events import FrameEnd, GraphEnd, Location, Region, ResumeMade, Stop, TracedCall
from dynascope.compiler.builder.guards import callers
from dynascope.compiler.report import Break, FlagOrigin, Frame, Hit, Outcome, Resume, StackEntry
from dynascope.compiler.source import lines
from dynascope.compiler.source.code import is_resume, user_name
from dynascope.compiler.source.origin import in_torch, is_plumbing

#: the setting that a hint names for a break at `x.item()`
_CAPTURE = "capture_scalar_outputs"


class Flags(NamedTuple):
    """The settings in force at one hit of a break; None: unknown."""

    error_on_graph_break: bool | None = None
    fullgraph: bool | None = None
    #: what set error_on_graph_break: a decorator or a `with` block; unknown if no region was traced
    region: FlagOrigin = FlagOrigin()

    @property
    def allowed(self) -> bool | None:
        """Whether an explicit region allows the break."""
        if self.error_on_graph_break is None or self.fullgraph is None:
            return None
        return self.region.is_region and not self.error_on_graph_break and not self.fullgraph


class _ActiveRegion(NamedTuple):
    """A region that is in force, and its flag."""

    origin: FlagOrigin
    flag: bool


_Around = list[list[_ActiveRegion]]


class RegionFlags:
    """Follows the regions of one recording from frame to frame, in the order in which the frames were compiled."""

    def __init__(self, cell_of: lines.CellResolver) -> None:
        self.cell_of = cell_of
        #: uid of a resume function's code -> the regions that the function enters again, outermost first
        self._entered_by_resume: dict[int | None, list[_ActiveRegion]] = {}
        #: id of a frame -> the innermost region around the call of the frame
        self._caller: dict[str, _ActiveRegion | None] = {}
        #: id of a frame, and the line if it runs eagerly -> the innermost region around its break, and so around its call there
        self._inside: dict[tuple[str, int | None], _ActiveRegion | None] = {}

    def begin(self, frame: Frame, caller: str | None, line: int | None) -> None:
        """Start a frame; `caller` and `line`: as `Links.caller` returns them."""
        around = self._inside.get((caller or "", line)) or self._inside.get((caller or "", None))
        outer = self._caller.get(frame.continues or "") if caller is None else around
        self._caller[frame.id] = self._inside[frame.id, None] = outer

    def at_graph_end(self, frame: Frame, end: GraphEnd | None, resumes: list[ResumeMade]) -> Flags:
        """The flags at a break that ended a graph.

        The break itself may lie deeper, in calls that Dynamo had just failed to trace (`end.stopped`).
        """
        if end is None:
            return Flags()
        calls, stopped = end.around, end.stopped
        if stopped and end.stack and same_line(stopped[0].location, end.stack[-1]):
            calls = [*(s.call for s in stopped), *calls]
        around = self._regions_around(calls)
        within = {call.uid: regions for call, regions in zip(calls, around, strict=True)}
        self._entered_by_resume |= {made.resume.uid: within[made.code.uid] for made in resumes if made.code.uid in within}
        return self._flags(frame, end.error_on_graph_break, end.fullgraph, around)

    def at_stop(self, frame: Frame, end: FrameEnd | None, depth: int) -> Flags:
        """The flags at the place where tracing stopped for good, `depth` calls deep.

        After a failure in an inlined call, Dynamo traces the frame again, but not that call: its regions are then unknown.
        """
        if end is None:
            return Flags()
        flag = end.stopped[0].error_on_graph_break if end.stopped else end.error_on_graph_break
        lines = [s.location.line for s in end.stopped]
        flags = self._flags(frame, flag, end.fullgraph, self._regions_around([s.call for s in end.stopped]), *lines[-1:])
        return Flags() if 0 < len(lines) < depth and not (flag or flags.region.is_region) else flags

    def _flags(self, frame: Frame, flag: bool | None, full: bool | None, around: _Around, line: int | None = None) -> Flags:
        if around and around[-1]:
            self._inside[frame.id, line] = around[-1][-1]
        caller = self._caller.get(frame.id)
        inner = [regions[-1] for regions in [*around, [caller] if caller is not None else []] if regions]
        return Flags(flag, full, next((region.origin for region in inner if region.flag == flag), FlagOrigin()))

    def _regions_around(self, calls: list[TracedCall]) -> _Around:
        """For each of these calls, the active regions, outermost first; the calls are nested and given innermost first."""
        around = []
        for call, inner in zip(calls, ["", *(call.function for call in calls)], strict=False):
            again = self._entered_by_resume.get(call.uid, [])
            # for a region that a resume function enters again, Dynamo gives no line, or the one where the function continues
            at = call.function.rpartition("_at_")[2]
            count = min(len(again), sum(not r.line or str(r.line) == at for r in call.regions))
            around.append([*again[:count], *(_ActiveRegion(self._origin(r, inner), r.flag) for r in call.regions[count:])])
        return around

    def _origin(self, region: Region, inner: str) -> FlagOrigin:
        """What set a region's flag: a decorator, whose `with` is in torch's wrapper, or a `with` block."""
        if is_plumbing(region.file) and inner:
            return FlagOrigin(kind="decorator", name=user_name(inner))
        return FlagOrigin(kind="with", file=region.file, line=region.line or None, cell=self.cell_of(region.file))


#: torch 2.9 gives neither line nor reason if the break is in a block that contains an `if` on values
_STEPPED = """Graph break that cannot be resumed
  Explanation: Dynamo hit a graph break after this line and cannot resume there. This torch does not say at which line."""
#: the worst last
_OUTCOMES: list[Outcome] = ["resumed", "skipped", "raised"]


class Latest(NamedTuple):
    """The break that a frame ran into last, its hit, and the stack from the frame to the break."""

    broken: Break
    hit: Hit
    stack: list[StackEntry]


class BreakTable:
    """All breaks of a report, in the order of their first hits."""

    def __init__(self, cell_of: lines.CellResolver, marks_columns: bool) -> None:
        """`marks_columns`: whether any stack marks columns: if not, an entry without marks says nothing."""
        self.cell_of, self.marks_columns = cell_of, marks_columns
        self.regions = RegionFlags(cell_of)
        self.breaks: list[Break] = []
        self._by_place: dict[tuple[str, int, str], list[Break]] = {}
        #: by id of the frame
        self.latest: dict[str, Latest] = {}
        #: id() of a hit -> the flags in force there
        self._flags: dict[int, Flags] = {}

    def left_at(self, frame: str) -> int | None:
        """The line at which a compiled frame leaves for a resume function; None if it does not, or if the line is unknown."""
        latest = self.latest.get(frame)
        return latest.hit.line if latest is not None and latest.hit.outcome == "resumed" else None

    def ended(self, record: CompileRecord, frame: Frame) -> str | None:
        """Record the break that ended a compiled frame's graph; returns its id, or None if no break is known."""
        end, texts = record.graph_end, dynamo_texts.read_breaks(record.break_texts)
        if not (texts if end is None else end.graph_break):
            return None
        stack = (list(end.stack) or [end.location]) if end is not None else []
        # torch 2.9 to 2.13: "step_unsupported" ends the graph at the last statement before a block that cannot be resumed; the
        # break is deeper, where the text says, and the rest of the function runs eagerly
        stepped = end is not None and end.reason == "step_unsupported"
        matching = texts[-1] if stepped and texts else _matching(texts, stack)
        text = matching or dynamo_texts.read_break(_STEPPED if stepped else end.reason if end else "")
        own = stack
        if stepped or not stack or "skipping the rest of the function" in text.text:
            stack = self.printed_stack(text, record) or stack
        if not stack:
            return None
        if end is not None and stack[-1].column is None and stack[-1].carets is None:
            stack[-1] = _with_columns(stack[-1], end)
        stack = [*stack, *_in_generators(stack[-1], end.stopped if end is not None else [])]
        # from Python 3.12 on, a comprehension is part of the function: Dynamo runs it eagerly, and resumes after it
        resumed_here = bool(record.resumes) and len(stack if stepped or not own else own) == 1
        rest_is_eager = (stepped or "skipping the rest of the function" in text.text) and not resumed_here
        if rest_is_eager:
            frame.reason = "Dynamo could not resume after the break: the rest of the function runs eagerly"
        flags = self.regions.at_graph_end(frame, end, record.resumes)
        return self.hit(frame, stack, text, "skipped" if rest_is_eager else "resumed", flags, record)

    def forget(self, frames: set[str]) -> None:
        """Remove the hits of these frames, which are not the user's, from breaks that have other hits."""
        for broken in self.breaks:
            kept = [h for h in broken.hits if h.frame not in frames]
            if kept and len(kept) < len(broken.hits):
                broken.hits, broken.outcome = [], "resumed"
                for hit in kept:
                    self.add(broken, hit)

    def before(self, record: CompileRecord, frame: Frame) -> None:
        """Record the breaks of earlier attempts at a skipped frame; handling them led to the break that stopped the frame.

        The flags that were in force at these breaks are unknown.
        """
        texts = dynamo_texts.read_breaks(record.break_texts)
        for text in texts[:-1]:
            if text.line is not None and (text.file, text.line) != (texts[-1].file, texts[-1].line):
                self.hit(frame, self.printed_stack(text, record), text, "skipped", Flags(), record)

    def stopped(self, record: CompileRecord, frame: Frame, outcome: Outcome) -> str | None:
        """Record the break that made Dynamo skip the frame or fail.

        Returns its id; None if something else was the cause, or if the place of the break is unknown.
        """
        if not compile_records.is_break(record):
            return None
        text, known = compile_records.text_of(record), compile_records.stack_of(record)
        # the exception may be of the failure to handle a break that was deeper
        stack = max(known, self.printed_stack(text, record), key=len) or _failed_line(record)
        if not stack or not (text.parts or known):
            return None
        id = self.hit(frame, stack, text, outcome, self.regions.at_stop(frame, record.frame_end, len(stack)), record)
        hit = self.latest[frame.id].hit
        hit.block = self.block(record, hit, text)
        return id

    def named_line(self, record: CompileRecord) -> StackEntry | None:
        """The user's line that the message of an error names; None if it names none."""
        stack = reversed(compile_records.text_of(record).stack)
        return next((e.entry(self.cell_of) for e in stack if not in_torch(e.file)), None)

    def block(self, record: CompileRecord, hit: Hit, text: BreakText) -> StackEntry | None:
        """The first line of the `try` because of which Dynamo skipped the frame, if that is known.

        It makes no difference for an error that torch.compile raises, nor if the text says what else led to the skip.
        """
        is_other = compile_records.is_raised(record) or len(text.parts) > 1 or hit.outcome != "skipped"
        stopped = record.frame_end.stopped if record.frame_end and not is_other else []
        at = next((s.location for s in reversed(stopped) if s.in_try), None)  # the outermost
        first = lines.statement_at(at.file, at.line, "try") if at is not None else None
        return Location(at.file, first, at.function).entry(self.cell_of) if at is not None and first is not None else None

    def printed_stack(self, text: BreakText, record: CompileRecord) -> list[Location]:
        """The stack that a text prints, from the frame's own entry on: Dynamo does not trace the outer entries.

        Without such an entry, only the innermost one; without a stack, the line that the text names, if any.
        """

        def of_frame(entry: Location) -> bool:  # a text names a resume function after the function that it continues
            return user_name(entry.function) == name and entry.file == record.file

        if self.marks_columns:
            for entry in text.stack:
                entry.carets = entry.carets or (0, None)
        name = user_name(record.name)
        outside = sum(map(of_frame, record.stack))
        own = [i for i, e in enumerate(text.stack) if of_frame(e)]
        if own:  # the entries of outer calls of the same function come before the frame's own entry
            return text.stack[own[min(max(outside, 1), len(own)) - 1] :]
        if text.stack:
            return text.stack[-1:]
        return [Location(text.file, text.line, "")] if text.file is not None and text.line is not None else []

    def hit(
        self, frame: Frame, stack: list[Location], text: BreakText, outcome: Outcome, flags: Flags, record: CompileRecord
    ) -> str:
        last = stack[-1]
        for (file, line, function), tested in record.frame_end.jumps.items() if record.frame_end is not None else ():
            if (file, line, user_name(function)) == (last.file, last.line, user_name(last.function)):
                stack = [*stack[:-1], replace(tested, function=last.function)]
        entries = [e.entry(self.cell_of) for e in stack if not is_plumbing(e.file)]
        # the break of a frame of torch's own, as of torch.cond, is part of the one at the user's line that led to it
        user = [] if entries else callers(record.callers, self.cell_of)[-1:]
        broken = next((b for b in self.breaks if user and (b.file, b.line) == (user[0].file, user[0].line)), None)
        entries = entries or (user if broken is not None else [stack[-1].entry(self.cell_of)])
        at = entries[-1]
        first = text.parts[0] if text.parts else dynamo_texts.Part(reason="unknown")
        broken = broken or self.known(at, first) or self.new(at, entries, text, first)
        # a text names a resume function after the user's function that it continues; a text without a stack names only the
        # innermost line, so the frame's own line is then unknown
        own = [e.line for e in stack if e.file == frame.file and e.function in (frame.code_name, user_name(frame.code_name))]
        hit = Hit(frame=frame.id, line=own[0] if own else None, outcome=outcome)
        self._flags[id(hit)] = flags
        known = broken.outcome == "raised", len(broken.stack)
        self.add(broken, hit)
        if (outcome == "raised", len(entries)) > known or (not broken.function and at.function):
            broken.stack, broken.function = entries, at.function
        self.latest[frame.id] = Latest(broken, hit, entries)
        return broken.id

    def add(self, broken: Break, hit: Hit) -> None:
        """Add a hit to its break, which has the worst outcome of its hits.

        It has the flags of its first hit that raised, else of one that no region allows, else of one with known flags.
        """
        flags = self._flags[id(hit)]
        if not broken.hits or _weight(hit.outcome, flags.allowed) > _weight(broken.outcome, broken.allowed):
            broken.error_on_graph_break, broken.fullgraph, broken.region = flags
            # what is raised from inside a region went through a caller that does not allow it
            broken.allowed = flags.allowed and hit.outcome != "raised"
        broken.hits.append(hit)
        broken.outcome = max(broken.outcome, hit.outcome, key=_OUTCOMES.index)

    def known(self, at: StackEntry, first: dynamo_texts.Part) -> Break | None:
        """The known break of this type at this place; if a column is unknown, the only one on the line."""
        candidates = self._by_place.get((at.file, at.line, first.type), [])
        for broken in candidates:
            # the two calls in `f(x).g()` begin in the same column
            ends = {(b.end_line, b.end_column) for b in (broken, at) if b.end_column is not None}
            if broken.column == at.column and len(ends) < 2:
                broken.end_line, broken.end_column = next(iter(ends), (None, None))
                return broken
        if len(candidates) != 1 or (at.column is not None and candidates[0].column is not None):
            return None
        broken = candidates[0]
        if broken.column is None and at.column is not None:
            broken.column, broken.end_column, broken.end_line = at.column, at.end_column, at.end_line
        return broken

    def new(self, at: StackEntry, entries: list[StackEntry], text: BreakText, first: dynamo_texts.Part) -> Break:
        """A new break; or the one at this place of which more is known now, or was before (see `_is_cause_unknown`)."""
        source = lines.source_line(at.file, at.line)
        is_false = first.type == "Assertion failed on symbolic shapes"
        error = dynamo_texts.FALSE if is_false else next((p.error for p in text.parts if p.error), "")
        branches = lines.statement_at(at.file, at.line, "item") is not None  # captured, the branch itself breaks
        is_caught = lines.statement_at(at.file, at.line, "try") is not None  # perhaps, if it raises
        kinds = ("break", "other") if is_caught else ("break", "raise", "other")
        is_decided = branches or first.type == "Data-dependent branching"
        broken = Break(
            **structs.asdict(at) | {"source": source}, id=f"b{len(self.breaks)}", stack=entries,
            gb_ids=[p.gb_id for p in text.parts if p.gb_id], urls=[p.url for p in text.parts if p.url],
            type=first.type, reason=first.reason, explanation=first.explanation, error=error,
            hints=[h for h in dict.fromkeys(h for p in text.parts for h in p.hints) if not (_CAPTURE in h and branches)],
            text=text.text, undecided=dynamo_texts.undecided_in(text.text),
            decides=next((kind for kind in kinds if is_decided and lines.statement_at(at.file, at.line, kind)), ""),
        )  # fmt: skip
        here = {(at.file, at.line, at.column, at.end_line, at.end_column)} if at.column is not None else ()
        met = next((b for b in self.breaks if (b.file, b.line, b.column, b.end_line, b.end_column) in here
                    and (_is_cause_unknown(b) or _is_cause_unknown(broken))), None)  # fmt: skip
        if met is None:
            self.breaks.append(broken)
        elif _is_cause_unknown(met):
            for name in ("type", "reason", "explanation", "hints", "gb_ids", "urls", "text"):
                setattr(met, name, getattr(broken, name))
        broken = met or broken
        self._by_place.setdefault((at.file, at.line, first.type), []).append(broken)
        return broken


def _weight(outcome: Outcome, allowed: bool | None) -> tuple[bool, int]:
    """How much a hit's flags count for its break."""
    return outcome == "raised", [None, True, False].index(allowed)


def _is_cause_unknown(broken: Break) -> bool:
    """Whether a break's text has only a bare error, or what became of the frame: one from another frame may have the cause."""
    return not broken.gb_ids or broken.type == "graph break in loop"


def _failed_line(record: CompileRecord) -> list[Location]:
    file, line = record.metrics.get("fail_user_frame_filename"), record.metrics.get("fail_user_frame_lineno")
    return [Location(file, line, record.name)] if file and line else []


def _matching(texts: list[BreakText], stack: list[Location]) -> BreakText | None:
    """The text about this place among a frame's texts (one for each attempt); the last one if none matches."""
    at = (stack[-1].file, stack[-1].line) if stack else None
    return next((t for t in reversed(texts) if (t.file, t.line) == at), texts[-1] if texts else None)


def _with_columns(innermost: Location, end: GraphEnd) -> Location:
    """Add the columns of the instruction, which Dynamo's translators know: torch 2.9 and 2.11 give few columns or none."""
    candidates = [*(s.location for s in end.stopped[:1]), end.location]
    return replace(next((c for c in candidates if same_line(c, innermost)), innermost), function=innermost.function)


def _in_generators(innermost: Location, stopped: list[Stop]) -> list[Location]:
    """The places in the generators that run at the innermost entry of a user stack, which lacks them."""
    places = [s.location for s in stopped]
    depth = next((i for i, p in enumerate(places) if same_line(p, innermost) and p.function == innermost.function), 0)
    return places[:depth][::-1]


#: (`CompileRecord.reset_period`, name of a function, its file)
_Function = tuple[int, str, str]


class Links:
    """Links each frame to its caller and to the frame that it continues; both were compiled before it."""

    def __init__(self, records: list[CompileRecord], breaks: BreakTable) -> None:
        self.breaks = breaks
        #: whether stacks lack the innermost callers
        self._cut = _are_stacks_cut(records)
        #: by the user's name of the function
        self._frames: dict[_Function, list[Frame]] = {}
        #: a function that was called at a break -> the frame with the break, and the line of the break
        self._called: dict[_Function, tuple[Frame | None, int]] = {}
        #: uid of a resume function's code -> the frames for which Dynamo made the function, with the events
        self._made: dict[int | None, list[tuple[Frame, ResumeMade]]] = {}

    def link(self, record: CompileRecord, frame: Frame) -> ResumeMade | None:
        """Set the frame's caller and, for a resume function, the frame that it continues.

        Returns the `ResumeMade` event of a resume function; None for any other frame, or if the event is not recorded.
        """
        caller, line = self._caller(record, frame)
        if caller is not None:
            frame.parent, frame.called_from = caller.id, line
        if frame.kind != "resume":
            return None
        name = user_name(frame.code_name)
        # branches that join share one resume function: each of its frames continues the frame that called it
        makers = self._made.get(record.code.uid if record.code else None, [])
        before, made = next((m for m in reversed(makers) if m[0] is caller), makers[-1] if makers else (None, None))
        if made is not None:
            line = made.position.line or frame.line
            column = lines.character_column(frame.file, line, made.position.column)
            received = [n for n in made.receives if not n.startswith("__")]
            frame.resume = Resume(line=line, column=column, locals=received, stack=made.stack)
            frame.end_line = made.original.end_line
        else:
            frames = self._frames.get((record.reset_period, name, frame.file), [])
            continued = [f for f in frames if self.breaks.left_at(f.id) == frame.line]
            before = next((f for f in continued if f is caller), continued[-1] if continued else caller)
            frame.resume = Resume(line=frame.line)
        if before is not None:
            frame.continues = before.id
            if user_name(before.code_name) == name:
                frame.name = before.name
        if self._cut:
            frame.parent, frame.called_from = frame.continues, frame.line
        if (latest := self.breaks.latest.get(frame.continues or "")) is not None:
            latest.hit.resumes.append(frame.id)
            frame.break_ = latest.broken.id
        return made

    def add(self, record: CompileRecord, frame: Frame) -> None:
        """Remember a frame for the links of later frames; its breaks must have been recorded."""
        for made in record.resumes:
            self._made.setdefault(made.resume.uid, []).append((frame, made))
        self._frames.setdefault((record.reset_period, user_name(frame.code_name), frame.file), []).append(frame)
        line, latest = self.breaks.left_at(frame.id), self.breaks.latest.get(frame.id)
        callee = next((e for e in (latest.stack[1:] if latest else ()) if not in_torch(e.file)), None)
        if callee is not None and line is not None:
            self._called[(record.reset_period, callee.function, callee.file)] = (frame, line)

    def _caller(self, record: CompileRecord, frame: Frame) -> tuple[Frame | None, int]:
        """The frame that called this one, and the line of the call."""
        if self._cut:
            return self._called.pop((record.reset_period, frame.code_name, frame.file), (None, 0))
        callers = ((self._standing(entry, record.reset_period), entry.line) for entry in reversed(record.stack[:-1]))
        return next(((caller, line) for caller, line in callers if caller is not None), (None, 0))

    def caller(self, record: CompileRecord, frame: Frame) -> tuple[str | None, int | None]:
        """The id of the frame that called the function, of which a resume function is a part, and the line of the call.

        The id is "" if no frame did, and None if that is unknown.
        """
        if frame.kind != "resume":
            return frame.parent or "", frame.called_from
        stack = itertools.dropwhile(lambda entry: is_resume(entry.function), reversed(record.stack[:-1]))
        if self._cut or next(stack, None) is None:
            return None, None
        known = ((found.id, entry.line) for entry in stack if (found := self._standing(entry, record.reset_period)))
        return next(known, ("", None))

    def _standing(self, entry: Location, period: int) -> Frame | None:
        """The latest frame that fits a stack entry by name and lines, and if possible by its break; None if none fits."""
        line, named = entry.line, self._frames.get((period, user_name(entry.function), entry.file), [])
        candidates = [f for f in named if f.code_name == entry.function]
        around = [f for f in candidates if f.line <= line <= (f.end_line or f.line)]
        if not around and len({f.line for f in candidates}) == 1:
            # a resume function in a loop goes back to lines before its own, and the end of a function is not always known
            around = [f for f in candidates if f.kind == "resume" or f.end_line is None]
        # of several versions, prefer those that are not compiled, and those whose break is at this line: compiled code calls
        # other functions only there
        standing = [f for f in around if f.status not in ("compiled", "empty") or self.breaks.left_at(f.id) == line]
        return next(reversed(standing or around), None)


def _are_stacks_cut(records: list[CompileRecord]) -> bool:
    """Whether stacks lack the innermost callers, because torch left out more frames than its own.

    Resume functions show it: the caller of a resume function must be the frame that it continues or, with nested graph breaks,
    another compiled frame.
    """
    known = {(r.name, r.file) for r in records}
    resumes = [r for r in records if r.stack and is_resume(r.name)]
    callers = [(r.name, r.stack[-2] if len(r.stack) > 1 else Location("", 0, "")) for r in resumes]
    return any(user_name(c.function) != user_name(name) and (c.function, c.file) not in known for name, c in callers)
