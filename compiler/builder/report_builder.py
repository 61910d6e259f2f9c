"""Makes a Report from events: each frame's graph and outcome, the breaks that it ran into, and how frames are linked.

A link, a column or a flag that the events do not show stays None.
"""

from __future__ import annotations

import copy
import functools
import linecache
import re
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

from dynascope.compiler.builder import compile_records, dynamo_texts, graphs
from dynascope.compiler.builder.breaks import BreakTable, Links
from dynascope.compiler.builder.compile_records import CompileRecord, CompileRecords
from dynascope.compiler.builder.compile_time import compile_time, repeated_blocks
from dynascope.compiler.builder.events import CacheHit, Code, Event, RecordingFacts, ResumeMade
from dynascope.compiler.builder.guards import Recompiles
from dynascope.compiler.builder.notes import annotate
from dynascope.compiler.report import Excerpt, Failure, Frame, Graph, InlinedFunction, Later, Report, Source, Summary
from dynascope.compiler.report.formatting import first_line, label, plural, seconds
from dynascope.compiler.source import lines
from dynascope.compiler.source.code import STATEMENTS, is_resume, user_name
from dynascope.compiler.source.origin import in_torch, is_plumbing, is_users, is_weakref_callback

_CACHED = "compiled before this recording: whether and why it breaks is unknown"
_KNOWN = "Dynamo knew this function before the recording and ran no compiled code for it"


def build_report(events: Iterable[Event], facts: RecordingFacts | None = None) -> Report:
    """Make the Report of these events, which are in the order in which they were recorded."""
    facts = facts or RecordingFacts()
    facts.cell_of = functools.cache(facts.cell_of)  # a cell that runs again has another number
    with lines.with_old(facts.old_functions):
        report = _ReportBuilder(CompileRecords(events, facts.strings), facts).report()
        annotate(report, facts)
    return report


class _ReportBuilder:
    def __init__(self, records: CompileRecords, facts: RecordingFacts) -> None:
        self.records = records
        self.facts, self.cell_of = facts, facts.cell_of
        self.result = Report(origin=facts.origin)
        #: code object (see `_key`) -> its latest frame
        self.latest: dict[Any, Frame] = {}
        #: file -> (first line, last line) of each part that the report refers to
        self.extents: dict[str, set[tuple[int, int]]] = {}
        self.breaks = BreakTable(facts.cell_of, records.marks_columns)
        self.links = Links(records.records, self.breaks)
        self.recompiles = Recompiles(facts.cell_of)
        #: each frame, except cached ones, with its record
        self.made: list[tuple[CompileRecord, Frame]] = []
        #: reads a file again if it was edited (and perhaps loaded again) since it was read; only once for a report
        self.check = functools.cache(linecache.checkcache)

    def report(self) -> Report:
        late: list[CompileRecord] = []  # of backward graphs alone
        for record in self.records.records:
            if record.recompile_text is not None and record.code is None:  # refused at the recompile limit, or cut off
                record.code = self.records.code_like(record)
            if not (record.code or record.stack or record.graph_text):
                late += [record] if record.compile_id is not None and (record.output_codes or record.backward_metrics) else []
            elif record.code is None or not is_weakref_callback(record.code.name, record.code.file):
                try:
                    self.add(record)
                except Exception as error:  # damaged records of one frame must not keep out the others
                    self.records.unread[f"frame: {type(error).__name__}"] += 1
        for record, frame in self.made:
            if frame.suppressed:
                self.suppressed(record, frame)
        wrappers = self.ignore_wrappers()
        by_code: dict[int | None, Frame] = {}
        for event in self.records.cache_hits:
            self.add_cache_hit(event, by_code)
        result = self.result
        frames = {record.order: frame.id for record, frame in self.made}
        unread = self.records.unread if result.origin == "trace" else Counter[str]()
        result.compile_time = compile_time(self.records, frames, unread)
        result.breaks = graphs.take_wrapper_breaks(result, self.breaks.breaks, wrappers)
        result.summary = summary(result)
        self.late(late)
        for file in {f for record, _ in self.made for f in record.files | record.guarded_files}:
            lines.file_lines(file)  # read now, so that it does not matter when somebody looks
            self.cell_of(file)
        result.unread = dict(self.records.unread)
        now = lines.as_it_is_now()
        make = Later(functools.partial(now.run, self.details))
        result.leave(make, "sources")
        result.brief_sources = functools.partial(now.run, _sources, self.extents, self.cell_of)
        if result.compile_time is not None:
            result.compile_time.leave(make, "repeats")
        for _, frame in self.made:
            frame.leave(make, "guard_sites", "symbols")
        if result.origin == "trace":
            make()  # what is damaged in a log is said at once
        return result

    def details(self) -> None:
        """Read the guards and symbols, and take the lines that the report refers to.

        A text summary needs none of them, and they are most of what a report costs.
        """
        for record, frame in self.made:
            try:
                version = self.recompiles.version(record)
                frame.guard_sites, frame.symbols = version.sites, [*version.symbols.values()]
            except Exception as error:
                self.records.unread[f"frame: {type(error).__name__}"] += 1
                frame.guard_sites, frame.symbols = [], []
            for site in frame.guard_sites:
                if site.at is not None and (site.at.file in self.extents or is_users(site.at.file)):
                    self.note_lines(site.at.file, site.at.line, site.at.line)
        if self.result.compile_time is not None:
            self.result.compile_time.repeats = repeated_blocks(self.result.graphs, self.result.frames, self.cell_of)
        self.result.sources, self.result.brief_sources = _sources(self.extents, self.cell_of), None
        self.result.unread = dict(self.records.unread)

    def ignore_wrappers(self) -> set[str]:
        """Mark as ignored the frames of wrappers around functions of the user in which nothing was compiled; returns their ids.

        Wrappers are in torch's compiler or, for example, in contextlib; the functions that they call have frames of their own.
        A wrapper that continues in a frame that is not empty keeps its status.
        """
        kept = {f.continues for f in self.result.frames if f.status != "empty"}
        ignored: dict[str, Frame] = {}
        for frame in self.result.frames:
            nothing = frame.status == "empty" or (frame.status == "unfinished" and frame.graph is None)
            if nothing and is_plumbing(frame.file) and frame.id not in kept:
                frame.status = "ignored"
                ignored[frame.id] = frame
        for frame in self.result.frames:
            while frame.parent in ignored:  # the wrapper's caller called it, through the wrapper
                wrapper = ignored[frame.parent]
                frame.parent, frame.called_from = wrapper.parent, wrapper.called_from
        self.breaks.forget(set(ignored))
        return set(ignored)

    # -- one frame ------------------------------------------------------------------------------------

    def add(self, record: CompileRecord) -> None:
        frame = self.frame(record)
        self.result.frames.append(frame)
        self.made.append((record, frame))
        made = self.links.link(record, frame)
        is_outermost = frame.parent is None and frame.continues is None
        if self.result.origin == "trace" and is_outermost and frame.name == "forward" and frame.qualname is not None:
            frame.name = frame.qualname.removesuffix(".forward")  # a log does not name modules, which a recording does
        self.breaks.regions.begin(frame, *self.links.caller(record, frame))
        self.graph(record, frame)
        self.end(record, frame, made)
        self.recompile(record, frame)
        self.latest[_key(record)] = frame
        self.links.add(record, frame)
        if made is not None:
            self.note_lines(frame.file, made.original.line, made.original.end_line)
        if frame.status != "ignored":
            self.note_lines(frame.file, frame.line, frame.end_line)

    def late(self, records: list[CompileRecord]) -> None:
        """Note the backward graphs whose forward was compiled before the recording, and count their time."""
        if records:
            times = [record.backward_metrics.get("inductor_compile_time_s") for record in records]
            total = sum(time or 0.0 for time in times)
            took = "" if None in times else f" in {seconds(total)}"
            graphs = plural(len(records), "backward graph")
            self.result.notes.append(f"{graphs} compiled{took}: of code compiled before this recording.")
            if self.result.compile_time is None:
                self.result.summary.compile_seconds = round(self.result.summary.compile_seconds + total, 6)

    def add_cache_hit(self, event: CacheHit, by_code: dict[int | None, Frame]) -> None:
        """Add the frame of a version that was compiled before the recording, or of a function that ran eagerly.

        Of a version's graphs, only the number is known.
        """
        code, before = event.code, by_code.get(event.continues) if event.continues else None
        frame = self.new_frame(code, event.compile_id)
        frame.status, frame.reason = "cached", _CACHED
        full = "has as many versions as torch._dynamo.config.recompile_limit, or more"
        if event.compile_id is None:
            why = f"it {full}" if event.is_full else "why is unknown"  # it may be full, and run eagerly for another reason
            frame.reason = f"{_KNOWN}, so it ran eagerly; {why}"
            if event.is_full is not None and not any(note.startswith("calls ran eagerly") for note in self.facts.notes):
                self.result.notes.append(f"{frame.name} ran eagerly in this recording; {why}.")
        elif event.is_full and event.code.uid not in by_code:
            self.result.notes.append(f"{frame.name} {full}: calls that fit none of them may run eagerly.")
        frame.continues = before.id if before else None
        by_code.setdefault(code.uid, frame)
        self.result.frames.append(frame)
        self.note_lines(frame.file, frame.line, frame.end_line)
        for _ in range(event.graphs):
            graph = Graph(id=f"g{len(self.result.graphs)}", frame=frame.id, ops=None, notes=["compiled before this recording"])
            frame.graph = frame.graph or graph.id
            self.result.graphs.append(graph)

    def new_frame(self, code: Code, compile_id: str | None) -> Frame:
        is_autograd = compile_id is not None and compile_id.startswith("!")
        function = lines.function_at(code.file, code.line)
        name = user_name(code.name)
        known = function is not None and function[0].rpartition(".")[2] == name
        return Frame(
            id=f"f{len(self.result.frames)}", compile_id=compile_id, name=name, code_name=code.name,
            qualname=function[0] if function is not None and known else None, file=code.file, line=code.line,
            end_line=code.end_line, cell=self.cell_of(code.file),
            kind="autograd" if is_autograd else "resume" if is_resume(code.name)
            else "statements" if code.name == STATEMENTS else "function",
        )  # fmt: skip

    def frame(self, record: CompileRecord) -> Frame:
        if record.code is None and record.stack:  # cut off before the name was recorded: the frame is the innermost entry
            last = record.stack[-1]
            record.code = Code(last.function, last.file, last.line)
        code = record.code or Code("?" if record.started else "exported program", "?", 0)
        end, metrics = record.frame_end, record.metrics
        self.check(code.file)
        is_known = is_resume(code.name) or lines.old_function_at(code.file, code.line) is not None
        if not is_known and is_users(code.file) and lines.is_changed(code.file, code.name, code.line):
            self.facts.old_functions.append(lines.OldFunction(code.name, code.file, code.line, code.end_line or sys.maxsize))
        frame = self.new_frame(code, record.compile_id)
        if frame.end_line is None and (function := lines.function_at(code.file, code.line)) is not None:
            frame.end_line = function[2]
        frame.thread = record.thread
        frame.foreign = record.thread not in (None, self.facts.owner_thread) and self.facts.owner_thread is not None
        frame.compile_seconds, frame.guard_count = metrics.get("entire_frame_compile_time_s"), metrics.get("guard_count")
        frame.bytecode, frame.modified_bytecode = record.bytecode.get("original"), record.bytecode.get("modified")
        runs_for = called = None
        if end is not None:
            frame.fullgraph, frame.error_on_graph_break = end.fullgraph, end.error_on_graph_break
            runs_for, called = end.runs_for, self.records.entries.get((code.uid, end.target))
        names = {name for (uid, _), name in self.records.entries.items() if uid == code.uid}
        if names and (is_plumbing(code.file) or code.name in ("forward", "inner", "wrapper")):
            # such names say too little, so the name of the call is used, or that of the class or function that it runs for;
            # of several closures, which one a frame runs for is not known
            frame.name = called or runs_for or (names.pop() if len(names) == 1 else frame.name)
        return frame

    # -- a frame's graph ----------------------------------------------------------------------------------

    def graph(self, record: CompileRecord, frame: Frame) -> None:
        if record.graph_text is None or compile_records.outcome(record) == "skipped":  # a graph that torch has thrown away
            return
        if not record.nodes:
            try:
                record.nodes = graphs.read_graph(record.graph_text)
            except ValueError:
                self.records.unread["dynamo_output_graph: unreadable"] += 1
        nodes = [*map(copy.copy, record.nodes)]  # other recordings may have the same nodes
        calls = [n for n in nodes if n.op.startswith("call_")]
        for node in nodes:
            # `L['self'].enc.norm1` as the user would write it: `enc.norm1`
            node.module = dynamo_texts.user_expression(node.module or "").removeprefix("self.") or None
        for node in calls:
            if node.file is not None and node.line is not None:
                self.note_lines(node.file, node.line)
        graph = Graph(
            id=f"g{len(self.result.graphs)}", frame=frame.id, ops=len(calls), nodes=nodes, code=record.graph_text,
            inputs=[n.name for n in nodes if n.op == "placeholder"],
            outputs=[name for n in nodes if n.op == "output" for name in n.inputs], sizes=record.sizes,
        )  # fmt: skip
        graphs.add_stages(record, graph)
        graph.notes = graphs.stage_notes(record)
        if frame.kind != "autograd":  # a backward has several operations for a line of the forward, without any loop
            graph.notes += graphs.unrolled(graph.nodes, self.cell_of)
        frame.graph = graph.id
        frame.inlined = self.inlined(frame, ((n.file, n.line) for n in graph.nodes))
        self.result.graphs.append(graph)

    def inlined(self, frame: Frame, places: Iterable[tuple[str | None, int | None]]) -> list[InlinedFunction]:
        """The functions, other than the frame's own, whose lines these are."""
        functions = {}
        for file, line in dict.fromkeys(places):
            if file is None or line is None or (file == frame.file and frame.line <= line <= (frame.end_line or frame.line)):
                continue
            self.check(file)
            if (function := lines.function_at(file, line)) is not None:
                name, first, last = function
                cell = self.cell_of(file)
                functions[file, first] = InlinedFunction(name=name, file=file, line=first, end_line=last, cell=cell)
        return list(functions.values())

    # -- a frame's outcome --------------------------------------------------------------------------------

    def end(self, record: CompileRecord, frame: Frame, made: ResumeMade | None) -> None:
        """Set the frame's status and reason, and record the breaks that it ran into; `made`: of a resume function."""
        outcome = compile_records.outcome(record)
        if outcome == "compiled":
            frame.status = "compiled" if frame.graph else "empty"
            broken = self.breaks.ended(record, frame)
            if frame.graph:
                graph = self.result.graphs[-1]
                end = record.graph_end.reason.splitlines()[0] if record.graph_end and record.graph_end.reason else None
                graph.end, graph.break_ = "break" if broken else "return" if end == "return_value" else end, broken
        elif outcome == "raised":
            frame.stopped_by = self.breaks.stopped(record, frame, "raised")
            stack = self.breaks.latest[frame.id].stack if frame.stopped_by else ()
            frame.inlined = self.inlined(frame, ((entry.file, entry.line) for entry in stack))
            frame.status, frame.reason = "failed", compile_records.reason_of(record)
            self.failure(record, frame)
        elif outcome == "unfinished":
            frame.status, frame.reason = "unfinished", self.facts.no_end_words
            if compile_records.interrupted(record):
                frame.reason = "interrupted before this compile had ended"
        else:
            frame.status, frame.reason = compile_records.skipped(record)
            if frame.status == "skipped":
                self.breaks.before(record, frame)
                frame.stopped_by = self.breaks.stopped(record, frame, "skipped")
                frame.suppressed = compile_records.is_raised(record)
            elif frame.status == "empty" and record.call and (code := made.original if made else record.code) is not None:
                calls = (r.call for r in self.records.records[record.order + 1 :] if r.call and r.code in (code, record.code))
                later = next(calls, self.facts.calls.get(code.uid or 0, 0) + 1) - record.call - 1  # until a reset
                # most often, the rest of a function ends where the function does, and is the same in each call; an `if` has two
                is_sole = made is not None and all(len(r.resumes) == 1 for r in self.records.records if made in r.resumes)
                stops = [stop.location for stop in record.frame_end.stopped] if is_sole and record.frame_end else []
                early = [f", which ended at line {at.line}" for at in stops if (at.end_line or at.line) < (frame.end_line or 0)]
                rest = "".join(lines.file_lines(frame.file)[frame.line - 1 : frame.end_line])
                may_differ = frame.kind == "function" or early or (is_sole and re.search(r"\b(if|for|while)\b", rest))
                if later > 0 and may_differ and not in_torch(frame.file) and self.links.caller(record, frame)[0] == "":
                    what, it, only = _what(frame), "it", ""
                    if frame.kind == "function":
                        it, only = "a function", " Call it only where there is something to compile."
                        # classes that inherit a `forward` share its code
                        what = frame.qualname if frame.qualname and is_users(frame.file) else frame.name
                    self.result.notes.append(
                        f"{what} had nothing to compile in call {record.call}{''.join(early)}. After such a call torch may "
                        f"run {it} eagerly, whatever it is given: {plural(later, 'later call')} followed. What it calls may "
                        f"still be compiled.{only}"
                    )
        if frame.kind != "resume":
            frame.break_ = frame.stopped_by
        latest = self.breaks.latest.get(frame.id)
        for entry in latest.broken.stack if latest is not None else ():
            self.note_lines(entry.file, entry.line)

    def suppressed(self, record: CompileRecord, frame: Frame) -> None:
        """Note that a frame runs eagerly because its error was suppressed; what torch's wrapper calls may be compiled."""
        line = self.breaks.named_line(record)
        at = f" at {label(line.file, line.cell)}:{line.line}" if line is not None else ""
        why = f"without suppress_errors, torch.compile raises{at}: {first_line(frame.reason or 'reason unknown')}"
        wraps = in_torch(frame.file) and any(f.parent == frame.id and f.status == "compiled" for f in self.result.frames)
        what = "torch's wrapper around " * wraps + _what(frame)
        self.result.notes.append(f"a compile of {what} failed, and it ran eagerly; {why}")

    def failure(self, record: CompileRecord, frame: Frame) -> None:
        """Set the report's error to this frame's, in place of an earlier frame's (outer frames fail with the same error)."""
        latest, cause = self.breaks.latest.get(frame.id), frame.stopped_by
        at = latest.broken if latest is not None else self.breaks.named_line(record) or frame
        error = compile_records.error_of(record)
        message = re.split("\n\n(?:from user code|User stack):|\nSet TORCHDYNAMO_VERBOSE", error.message, maxsplit=1)[0].strip()
        self.result.error = Failure(
            type=error.type or "error", message=message, break_=cause, frame=frame.id, file=at.file, line=at.line, cell=at.cell
        )

    def recompile(self, record: CompileRecord, frame: Frame) -> None:
        """Add the recompile that led to the frame."""
        if record.compile_id is not None and record.recompile_text is not None:
            before = self.latest.get(_key(record))
            if record.started or record.unfinished:  # else it was refused, and nothing was compiled again
                frame.recompile_of = before.id if before else None
            self.result.recompiles.append(self.recompiles.recompile(record, frame, before))
        self.recompiles.add(record)

    def note_lines(self, file: str, line: int, end_line: int | None = None) -> None:
        """Add lines to the report's sources, except torch's and plumbing; without `end_line`, the function around the line."""
        if is_plumbing(file) or in_torch(file) or line < 1:
            return
        self.check(file)
        if end_line is None:
            function = lines.function_at(file, line)
            line, end_line = function[1:] if function else (line, line)
        self.extents.setdefault(file, set()).add((line, end_line))


def _what(frame: Frame) -> str:
    """The name of a frame in a note; a cell may have several runs of statements."""
    at = f" (lines {frame.line}\N{EN DASH}{frame.end_line})" * (frame.kind == "statements")
    return f"the rest of {frame.name}, from line {frame.line} on," if frame.kind == "resume" else frame.name + at


def _key(record: CompileRecord) -> Any:
    """What identifies a record's code object: its uid, or in a log its name and place."""
    code = record.code or Code("", "", 0)
    return code.uid or (code.name, code.file, code.line)


def _sources(files: dict[str, set[tuple[int, int]]], cell_of: lines.CellResolver) -> list[Source]:
    """The sources of a report: cells and short files in full, of other files the given ranges of lines."""
    sources = []
    for file, extents in files.items():
        # without the lines of functions that were edited since: how they ran is not known
        known = {n: text for n, text in enumerate(lines.file_lines(file), 1) if lines.old_function_at(file, n) is None}
        if not known:
            continue
        cell, last = cell_of(file), max(known)
        whole = cell is not None or len(known) <= 120
        shown = [n for first, end in ([(1, last)] if whole else lines.merge(extents, last)) for n in range(first, end + 1)]
        excerpts = [
            Excerpt(line=first, text="".join(known[n] for n in range(first, end + 1)).rstrip("\n"))
            for first, end in lines.merge(((n, n) for n in shown if n in known), last, gap=1)
        ]
        sources.append(Source(file=file, label=label(file, cell), cell=cell, excerpts=excerpts))
    return sources


def summary(report: Report) -> Summary:
    """The counts of a report; frames with status `ignored` and what `--inputs` added are not counted."""
    added = report.of_inputs
    frames = [f for f in report.frames if f.status != "ignored" and f.id not in added]
    graphs = [g for g in report.graphs if g.frame not in added]
    breaks = report.own_breaks
    statuses, time = Counter(f.status for f in frames), report.compile_time
    resumes = [f for f in frames if f.kind == "resume" and f.recompile_of is None]
    refused = {r.frame for r in report.recompiles if r.refused_by is not None}
    # versions of one function share the number before the "/"; those that are cached or were refused have no other link
    numbers = [((f.compile_id or f.id).split("/")[0], f.status == "cached" or f.id in refused) for f in resumes]
    compiled = [number for number, has_no_link in numbers if not has_no_link]
    # resume functions continue there although no break is known; code compiled before the recording is left out
    cached = {f.id for f in report.frames if f.status == "cached"}
    later = [f for f in report.frames if f.kind == "resume" and f.id not in cached and f.continues not in cached]
    return Summary(
        frames=len(frames),
        graphs=len(graphs),
        ops=sum(g.ops or 0 for g in graphs),
        breaks=len(breaks),
        resumes=len(compiled) + len({number for number, _ in numbers} - {*compiled}),
        recompiles=sum(r.refused_by is None and r.frame not in added for r in report.recompiles),
        # with that of backward graphs, which may be compiled later than their frames
        compile_seconds=time.elapsed if time is not None else round(sum(f.compile_seconds or 0.0 for f in frames), 6),
        unexpected=sum(b.allowed is not True for b in breaks),
        unknown_breaks=len({(f.file, f.code_name) for f in later if f.break_ is None}),
        **{name: statuses[name] for name in ("skipped", "empty", "cached", "failed", "unfinished")},
    )
