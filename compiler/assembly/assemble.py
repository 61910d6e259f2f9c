"""*Events in, Report out*: a pure function, the same for a live run and for TORCH_TRACE files.

`assemble(events, ...)` groups the events by frame (`drafts`), then tells what became of each frame, which
break stopped which graph, and how the frames hang together.  Nothing is guessed: a link, a column or a
flag that the events do not hold stays None.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from typing import Any

from dynascope.compiler.assembly import graph_text, guard_text, skip_reasons, stages, summary
from dynascope.compiler.assembly.breaks import BreakTable
from dynascope.compiler.assembly.compile_records import Draft, Drafts, Event
from dynascope.compiler.assembly.frame_links import Links
from dynascope.compiler.report import (
    Failure,
    Frame,
    Graph,
    Recompile,
    Report,
)
from dynascope.compiler.source import places

_CACHED = "compiled before this recording: whether and why it breaks is unknown; --fresh traces it again"
_KNOWN = (
    "Dynamo knew this function before the recording and holds no compiled code for it, so it ran eagerly; "
    "--fresh traces it again and tells why"
)


def assemble(
    events: Iterable[Event],
    *,
    strings: dict[int, str] | None = None,
    cell_of: places.CellResolver = lambda file: None,
    owner_thread: int | None = None,
    origin: str = "live",
    no_end: str = "the log does not hold the end of this compile",
) -> Report:
    """The Report of these events, in their order.

    `strings`: interned strings of the structured trace.  `owner_thread`: frames compiled by another are foreign.
    `no_end`: what to say of a compile whose end is not among the events.
    """
    drafts = Drafts(strings).feed(events)
    for file in {str(d.code.get("file")) for d in drafts.drafts}:
        linecache.checkcache(file)  # edited and loaded again: the lines are the new ones, as in every printed traceback
    return _Assembly(drafts, cell_of, owner_thread, origin == "trace", no_end).report()


class _Assembly:
    def __init__(self, drafts: Drafts, cell_of: places.CellResolver, owner: int | None, from_file: bool, no_end: str) -> None:
        self.drafts = drafts
        self.cell_of = cell_of
        self.owner = owner
        self.from_file = from_file
        self.no_end = no_end
        self.result = Report(origin="trace" if from_file else "live")
        self.frame_of: dict[int, Frame] = {}  # by the draft's order
        #: code object -> its latest frame; for files, (name, file) stand for it
        self.latest: dict[Any, Frame] = {}
        self.extents: dict[str, set[tuple[int, int]]] = {}
        self.breaks = BreakTable(cell_of)
        self.links = Links(drafts.drafts, self.breaks)

    def report(self) -> Report:
        for draft in self.drafts.drafts:
            if draft.recompile_text is not None and not draft.code:  # the recompile limit refused it; a file names it elsewhere
                draft.code = self.drafts.code_like(draft)
            if not (draft.code or draft.stack or draft.graph_text):
                self.late(draft)
            else:
                try:
                    self.add(draft)
                except Exception as error:  # damaged records of one frame must not cost the others
                    self.drafts.count(f"frame: {type(error).__name__}")
        self.ignore_wrappers()
        by_code: dict[int, Frame] = {}
        for event in self.drafts.cached:
            self.add_cached(event, by_code)
        result = self.result
        result.unread = dict(self.drafts.unread)
        result.breaks = self.breaks.breaks
        result.sources = places.sources(self.extents, self.cell_of)
        result.summary = summary.summarise(result)
        result.notes = self.changed_files()
        return result

    def changed_files(self) -> list[str]:
        """Sources are read from the files: of one that was edited meanwhile, or belongs to another version, they mislead."""
        own = [f for f in self.result.frames if f.kind == "function" and f.cell is None and f.file in self.extents]
        changed = dict.fromkeys(f.file for f in own if places.is_changed(f.file, f.code_name, f.line))
        return [
            f"{places.label(file, None)} has changed since it was loaded: its lines are shown as they are now, not as they ran."
            for file in changed
        ]

    def ignore_wrappers(self) -> None:
        """Torch's wrappers around the user's functions: nothing is captured in them, and what they call has its own frames."""
        kept = {f.continues for f in self.result.frames if f.status != "empty"}
        ignored: dict[str, Frame] = {}
        for frame in self.result.frames:
            nothing = frame.status == "empty" or (frame.status == "unfinished" and frame.graph is None)
            if nothing and places.is_plumbing(frame.file) and frame.id not in kept:
                frame.status = "ignored"
                ignored[frame.id] = frame
        for frame in self.result.frames:
            while frame.parent in ignored:  # the user's function called it, through the wrapper
                wrapper = ignored[frame.parent]
                frame.parent, frame.called_from = wrapper.parent, wrapper.called_from
        self.breaks.forget(set(ignored))

    # -- one frame ------------------------------------------------------------------------------------

    def add(self, draft: Draft) -> None:
        frame = self.frame(draft)
        self.frame_of[draft.order] = frame
        self.result.frames.append(frame)
        made = self.links.link(draft, frame)
        self.breaks.regions.begin(frame)
        self.graph(draft, frame)
        self.end(draft, frame)
        self.recompile(draft, frame)
        self.latest[self.key(draft)] = frame
        self.links.add(draft, frame)
        if made is not None:
            self.note_place(frame.file, made["original"]["line"], made["original"]["end_line"])
        if frame.status != "ignored":
            self.note_place(frame.file, frame.line, frame.end_line)

    def late(self, draft: Draft) -> None:
        """A backward whose forward was compiled before the recording."""
        if draft.output_codes or draft.backward_metrics:
            seconds = draft.backward_metrics.get("inductor_compile_time_s")
            hit = any(name.endswith("_hit") for name in draft.artifacts)
            code = "\n\n".join(draft.output_codes)
            self.result.late_backwards.append({"compile_id": draft.cid, "seconds": seconds, "code": code, "from_cache": hit})

    def add_cached(self, event: Event, by_code: dict[int, Frame]) -> None:
        """A frame that ran from code compiled before the recording: its graphs are known by number, nothing else is."""
        code, count = event["code"], len(event["graphs"])
        before = by_code.get(event["continues"] or 0)
        frame = Frame(
            id=f"f{len(self.result.frames)}",
            compile_id=event["compile_id"],
            name=self.drafts.entries.get(code["uid"]) or places.user_name(code["name"]),
            code_name=code["name"],
            file=code["file"],
            line=code["line"],
            end_line=code["end_line"],
            cell=self.cell_of(code["file"]),
            kind="resume" if places.is_resume(code["name"]) else "function",
            status="cached",
            reason=_CACHED if event["compile_id"] is not None else _KNOWN,
            continues=before.id if before else None,
        )
        by_code.setdefault(code["uid"], frame)
        self.result.frames.append(frame)
        self.note_place(frame.file, frame.line, frame.end_line)
        for _ in range(count):
            graph = Graph(id=f"g{len(self.result.graphs)}", frame=frame.id, ops=None, notes=["compiled before this recording"])
            frame.graph = frame.graph or graph.id
            self.result.graphs.append(graph)

    def key(self, draft: Draft) -> Any:
        code = draft.code
        return code.get("uid") or (draft.process, code.get("name"), code.get("file"), code.get("line"))

    def frame(self, draft: Draft) -> Frame:
        code = draft.code
        if not code and draft.stack:  # cut off before the compiler told its name: the frame is the innermost entry
            last = draft.stack[-1]
            code = draft.code = {"name": last["function"], "file": last["file"], "line": last["line"]}
        code_name = str(code.get("name") or "?")
        event, metrics = draft.frame or {}, draft.metrics
        file, line = str(code.get("file") or "?"), int(code.get("line") or 0)
        frame = Frame(
            id=f"f{len(self.result.frames)}",
            compile_id=draft.cid,
            name=places.user_name(code_name),
            code_name=code_name,
            file=file,
            line=line,
            end_line=code.get("end_line"),
            cell=self.cell_of(file),
            fullgraph=event.get("fullgraph"),
            error_on_graph_break=event.get("error_on_graph_break"),
            thread=draft.thread,
            rank=draft.rank,
            foreign=self.owner is not None and draft.thread is not None and draft.thread != self.owner,
            compile_seconds=metrics.get("entire_frame_compile_time_s"),
            phases=stages.phases(metrics),
            guard_count=metrics.get("guard_count"),
            guards=guard_text.guards(draft.guard_text) if draft.guard_text else [],
            bytecode=draft.artifacts.get("original_bytecode"),
            modified_bytecode=draft.artifacts.get("modified_bytecode"),
        )
        entry = self.drafts.entries.get(code.get("uid", -1))
        if entry is not None and (places.is_plumbing(file) or code_name in ("forward", "inner", "wrapper")):
            frame.name = entry  # "forward" of which module, the wrapper of which function
        if draft.cid is not None and draft.cid.startswith("!"):
            frame.kind = "autograd"
        elif places.is_resume(code_name):
            frame.kind = "resume"
        elif code_name == places.STATEMENTS:
            frame.kind = "statements"
        if frame.end_line is None:
            extent = places.function_extent(file, line)
            frame.end_line = extent[1] if extent else None
        return frame

    # -- its graph ----------------------------------------------------------------------------------------

    def graph(self, draft: Draft, frame: Frame) -> None:
        if draft.graph_text is None:
            return
        graph = Graph(id=f"g{len(self.result.graphs)}", frame=frame.id, ops=0, code=draft.graph_text)
        try:
            graph.nodes, graph.outputs = graph_text.read(draft.graph_text)
        except ValueError:
            self.drafts.count("dynamo_output_graph: unreadable")
        for node in graph.nodes:
            node.module = _module(draft.modules.get(node.name))
            if node.file is not None and node.line is not None and node.op.startswith("call_"):
                self.note_place(node.file, node.line)
        graph.inputs = [n.name for n in graph.nodes if n.op == "placeholder"]
        graph.ops = graph_text.ops(graph.nodes)
        graph.sizes = draft.sizes
        graph.notes = [*stages.notes(draft), *summary.unrolled(graph.nodes, self.cell_of)]
        stages.tell(draft, graph)
        frame.graph = graph.id
        frame.inlined = self.inlined(frame, graph)
        self.result.graphs.append(graph)

    def inlined(self, frame: Frame, graph: Graph) -> list[dict[str, Any]]:
        """Functions whose lines are in the graph beside the frame's own."""
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for node in graph.nodes:
            if node.file is None or node.line is None:
                continue
            if node.file == frame.file and frame.line <= node.line <= (frame.end_line or frame.line):
                continue
            extent = places.function_extent(node.file, node.line)
            if extent and (node.file, extent[0]) not in found:
                found[(node.file, extent[0])] = {"file": node.file, "line": extent[0], "end_line": extent[1]}
        return list(found.values())

    # -- what became of it ------------------------------------------------------------------------------------

    def end(self, draft: Draft, frame: Frame) -> None:
        """Status, reason and the break that ended or stopped the frame."""
        outcome = self.outcome(draft)
        graph = self.result.graphs[-1] if frame.graph else None
        if outcome == "compiled":
            frame.status = "compiled" if frame.graph else "empty"
            found = self.breaks.ended(draft, frame)
            if graph is not None:
                graph.end = "break" if found else _end_word(draft)
                graph.break_ = found
        elif outcome == "raised":
            cause = self.breaks.stopped(draft, frame, "raised")
            frame.status, frame.reason = "failed", skip_reasons.reason_of(draft)
            frame.break_ = frame.break_ or cause
            self.failure(draft, frame, cause)
        elif outcome == "unfinished":
            frame.status, frame.reason = "unfinished", self.why_unfinished(draft)
        else:
            frame.status, frame.reason = self.skipped(draft)
            if frame.status == "skipped":
                self.breaks.before(draft, frame)
                cause = self.breaks.stopped(draft, frame, "skipped")
                frame.break_ = frame.break_ or cause
        for entry in self.breaks.stack_of(frame.id):
            self.note_place(entry.file, entry.line)

    def why_unfinished(self, draft: Draft) -> str:
        """What is known of a compile without an end."""
        reason = "interrupted before this compile had ended" if skip_reasons.interrupted(draft) else self.no_end
        known = (
            "its guards were built" if draft.guard_text is not None
            else "its graph was captured" if draft.graph_text is not None
            else "it had met a graph break" if draft.break_texts
            else ""
        )  # fmt: skip
        return f"{reason} ({known})" if known else reason

    def outcome(self, draft: Draft) -> str:
        if draft.unfinished or skip_reasons.interrupted(draft):
            return "unfinished"
        if draft.frame is not None:
            return str(draft.frame["outcome"])
        metrics = draft.metrics
        if metrics.get("guard_count") is not None or draft.guard_text is not None:
            return "compiled"
        if draft.error_text is not None and not draft.break_texts:
            return "raised"  # what fullgraph and error_on_graph_break refuse gives an error and no break's text
        if metrics and skip_reasons.not_swallowed(draft):
            return "raised"
        if draft.break_texts or metrics:
            return "skipped"
        return "compiled" if draft.graph_text is not None else "skipped"

    def skipped(self, draft: Draft) -> tuple[Any, str | None]:
        reason = (draft.frame or {}).get("skip_reason")
        if draft.cid is None and places.is_compilers_own(str(draft.code.get("file"))):
            return "ignored", skip_reasons.reason_of(draft) or reason  # a generator of a library's, met on the way
        if draft.break_texts or draft.error_text or skip_reasons.error_of(draft)["type"]:
            return ("empty" if skip_reasons.nothing_to_compile(draft) else "skipped"), skip_reasons.reason_of(draft) or reason
        if draft.cid is None:
            return "ignored", reason
        return "empty", reason or "nothing to compile in it"

    def failure(self, draft: Draft, frame: Frame, cause: str | None) -> None:
        """The last frame that failed is what stopped the run (outer frames fail with the same error)."""
        error = skip_reasons.error_of(draft)
        at = self.breaks.get(cause)
        self.result.error = Failure(
            type=error["type"] or "error",
            message=skip_reasons.message_of(draft),
            break_=cause,
            frame=frame.id,
            file=at.file if at else frame.file,
            line=at.line if at else frame.line,
            cell=at.cell if at else frame.cell,
        )

    def recompile(self, draft: Draft, frame: Frame) -> None:
        if draft.cid is None or draft.recompile_text is None or not (draft.started or draft.unfinished):
            return  # ended without a start: the recompile limit refused it
        before = self.latest.get(self.key(draft))
        frame.recompile_of = before.id if before else None
        reasons = guard_text.recompile_reasons(draft.recompile_text)
        self.result.recompiles.append(
            Recompile(
                frame=frame.id,
                of=frame.recompile_of,
                reasons=reasons,
                words=list(dict.fromkeys(guard_text.reason_words(r) for r in reasons)),
            )
        )

    def note_place(self, file: str, line: int, end_line: int | None = None) -> None:
        """Remember that the report speaks of these lines, so that their source is in it."""
        if places.is_plumbing(file) or places.in_torch(file) or line < 1:
            return
        if end_line is None:
            extent = places.function_extent(file, line)
            line, end_line = extent if extent else (line, line)
        self.extents.setdefault(file, set()).add((line, end_line))


def _module(path: str | None) -> str | None:
    """`L['self'].enc.norm1` as the user would write it: `enc.norm1`."""
    if not path:
        return None
    text = guard_text.source(path)
    return text.removeprefix("self.") or None


def _end_word(draft: Draft) -> str | None:
    reason = (draft.graph_end or {}).get("reason")
    return None if reason is None else "return" if reason == "return_value" else str(reason).splitlines()[0]
