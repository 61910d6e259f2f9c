"""Details: all that the report knows about one break, frame or graph, as facts and parts (tabs).

Promises: each break, each graph and each frame that is not ignored has a detail; what the report does not know (None) is called
"unknown" or left out; a detail that cannot be made says so, and the others remain.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

from dynascope.compiler.ranks.collectives import collectives, describe
from dynascope.compiler.report import Break, Frame, Graph, Recompile, Report, plural, seconds
from dynascope.widgets.drawing.shapes import break_code, ops_text
from dynascope.widgets.guarded import guarded
from dynascope.widgets.labels.advice import (
    advice,
    cause_of,
    compiler_text,
    eager_because_of,
    flag_words,
    issue_text,
    outcome_words,
    reasons,
)
from dynascope.widgets.labels.bands import region_name
from dynascope.widgets.labels.recompiles import (
    SYMBOL,
    failures,
    limit_words,
    recompile_title,
    symbol_title,
    undecided_words,
    versions,
)
from dynascope.widgets.labels.run_time import cost_method
from dynascope.widgets.labels.summary import split_title
from dynascope.widgets.labels.words import Places, printable, shorten
from dynascope.widgets.model.compile_time import times_part
from dynascope.widgets.model.fixes import fix_parts
from dynascope.widgets.model.fx_graph import fx_body, value_text
from dynascope.widgets.model.graph_run import run_part
from dynascope.widgets.model.guard_parts import guard_parts
from dynascope.widgets.model.stages import TEXT_LIMIT, stage_parts
from dynascope.widgets.model.timeline import cost_facts
from dynascope.widgets.wire import Detail, Part

#: a list has at most this many rows of one kind; the locals of a resume function are all listed
ROWS = 500
#: what Dynamo replaces in the name of a graph's input
_INPUT = re.compile(r"[^a-zA-Z0-9]+")
_GRAPH_FROM_BEFORE = "The graph was compiled before this recording, so its operations are unknown."


def details(report: Report, places: Places) -> dict[str, Detail]:
    """The details of the breaks, frames and graphs, by id."""
    return _Details(report, places).all()


class _Details:
    def __init__(self, report: Report, places: Places) -> None:
        self.report, self.places = report, places
        self.frames = {f.id: f for f in report.frames}
        self.graphs = {g.id: (n, g) for n, g in enumerate(report.graphs)}
        self.ended: dict[str, list[tuple[int, Graph]]] = defaultdict(list)
        for n, g in self.graphs.values():
            if g.break_ is not None:
                self.ended[g.break_].append((n, g))
        self.breaks = {b.id: b for b in report.breaks}
        self.costs = {c.break_: c for c in report.profile.breaks} if report.profile else {}
        self.recompiles: dict[str, list[Recompile]] = defaultdict(list)
        for r in report.recompiles:
            self.recompiles[r.frame].append(r)
        #: (file, line, name) of a function -> ids of its frames that were recompiled, or whose recompile was refused
        self.again: dict[tuple[str, int, str], set[str]] = defaultdict(set)
        for f in (f for f in report.frames if f.id in self.recompiles):
            self.again[f.file, f.line, f.name].add(f.id)
        self.versions = versions(report)
        self.called: dict[str, list[Frame]] = defaultdict(list)
        for f in report.frames:
            if f.parent is not None and f.status != "ignored":
                self.called[f.parent].append(f)

    def all(self) -> dict[str, Detail]:
        by_id: dict[str, Detail] = {}
        for b in self.report.breaks:
            by_id[b.id] = _one("break", "Graph break", partial(self._break, b))
        for f in self.report.frames:
            if f.status != "ignored":
                by_id[f.id] = _one(f.kind, "Frame", partial(self._frame, f))
        for number, g in enumerate(self.report.graphs):
            by_id[g.id] = _one("graph", f"Graph {number}", partial(self._graph, number, g))
        return by_id

    # -- breaks -----------------------------------------------------------------------------------

    def _break(self, b: Break) -> Detail:
        place = self.places.of_break(b)
        function = self.places.function(b.function, b.file, b.line)
        facts = self._break_facts(b)
        why = [compiler_text(self.places.with_cell_names(t), 5000) for t in reasons(b)] or ["The compiler gave no reason."]
        why += [printable(t, 2000) for t in undecided_words(b, self.report, self.places)]
        parts: list[Part] = [_prose("reason", "Reason", why, advice(self.report, b))]
        parts += fix_parts(self.report, [b.id], b.file, self.places)
        if b.id in self.costs:
            facts += cost_facts(self.costs[b.id])
            parts.append(_prose("cost", "Cost", [printable(cost_method(self.costs[b.id]) + ".", 2000)], []))
        if len(b.hits) > 1:
            parts.append(list_part("hits", f"Frames ({len(b.hits)})", self._hit_rows(b)))
        if b.stack:
            parts.append({"key": "stack", "name": f"Stack ({len(b.stack)})", "kind": "stack", "body": self._stack(b)})
        parts.append(
            {"key": "issue", "name": "Text for an issue", "kind": "issue", "body": issue_text(self.report, b, self.places)}
        )
        if b.text:
            parts.append(_code("text", "Compiler's text", self.places.with_cell_names(b.text), "prose"))
        detail: Detail = {
            "kind": "break", "title": "Graph break", "code": shorten(break_code(b, self.places), 160),
            "place": place + (f" in {shorten(function, 120)}" if function else ""),
            "copy": place, "facts": facts, "parts": parts, "file": printable(b.file, 1000), "line": b.line,
            "target": break_target(b),
        }  # fmt: skip
        urls = [u for u in b.urls if u.startswith(("https://", "http://"))]
        if urls:
            ids = [next((id for id in b.gb_ids if id.lower() in url.lower()), "page") for url in urls]
            detail["links"] = [[printable(id, 40), url] for id, url in zip(ids, urls, strict=True)]
        return detail

    def _break_facts(self, b: Break) -> list[list[str]]:
        facts = [["outcome", self._outcome(b), ""]]
        resumes = dict.fromkeys(r for h in b.hits for r in h.resumes if r in self.frames)
        facts += [["continues in", self._frame_words(self.frames[r]), r] for r in list(resumes)[:6]]
        facts += [["runs eagerly", self._frame_words(f), f.id] for f in eager_because_of(self.report, b)[:6]]
        facts.append(["seen from", plural(len(b.hits), "frame"), ""])
        flag = flag_words(b, region_name(b, self.places))
        facts.append(["error_on_graph_break", printable(flag, 200), ""])
        if b.fullgraph is not None:
            facts.append(["fullgraph", str(b.fullgraph), ""])
        if b.allowed:
            facts.append(["expected", "yes, allowed here", ""])
        if b.first_call_only is not None:
            facts.append(["second call", "does not meet it" if b.first_call_only else "meets it, too", ""])
        return facts + [["ends", f"graph {n}", g.id] for n, g in self.ended[b.id][:4]]

    def _outcome(self, b: Break) -> str:
        """The worst outcome of a break's hits, with how many had it."""
        of = sum(h.outcome == b.outcome for h in b.hits)
        return outcome_words(self.report, b) + (f" ({of} of {len(b.hits)})" if 0 < of < len(b.hits) else "")

    def _hit_rows(self, b: Break) -> list[list[str]]:
        rows = []
        for hit in b.hits[:ROWS]:
            frame = self.frames.get(hit.frame)
            name = self._frame_words(frame) if frame else hit.frame
            at = self.places.at(frame.file, hit.line, frame.cell) if frame else ""
            rows.append([name, f"at {at}" if at else "", hit.outcome, hit.frame])
        return rows

    def _stack(self, b: Break) -> list[dict[str, Any]]:
        return [{
            "place": self.places.at(e.file, e.line, e.cell), "function": shorten(e.function, 200), 
            "source": printable(e.source.strip(), 500), "file": printable(e.file, 1000), "line": e.line,
        } for e in b.stack[:300]]  # fmt: skip

    # -- frames -----------------------------------------------------------------------------------

    def _before(self, f: Frame) -> Break | None:
        """The break that a resume function continues after."""
        return self.breaks.get(f.break_ or "") if f.kind == "resume" else None

    def _cause(self, f: Frame) -> Break | None:
        """The break that made Dynamo skip a frame or fail in it."""
        return cause_of(self.report, f) if f.status in ("skipped", "failed") else None

    def _frame_words(self, frame: Frame) -> str:
        id = f" ({printable(frame.compile_id, 40)})" if frame.compile_id else ""
        return shorten(self.places.name(frame), 120) + id

    def _frame(self, f: Frame) -> Detail:
        place = self.places.frame(f)
        facts = [["status", f.status, ""]]
        if f.compile_id:
            facts.append(["compile id", printable(f.compile_id, 40), ""])
        for label, id in (("continues", f.continues), ("called by", f.parent), ("compiled before as", f.recompile_of)):
            if id in self.frames:
                line = f", line {f.called_from}" if label == "called by" and f.called_from else ""
                facts.append([label, self._frame_words(self.frames[id]) + line, id])
        if f.graph in self.graphs:
            n, g = self.graphs[f.graph]
            facts.append(["graph", f"graph {n} · {ops_text(g.ops)}", g.id])
        for label, b in (("after break", self._before(f)), ("because of", self._cause(f))):
            if b is not None:
                facts.append([label, "✂ " + shorten(break_code(b, self.places), 60), b.id])
        if f.compile_seconds is not None:
            facts.append(["compiled in", seconds(f.compile_seconds), ""])
        facts += [[f"  {name}", seconds(value), ""] for name, value in f.phases.items()]
        if f.guard_count is not None or f.guards:
            facts.append(["guards", str(f.guard_count if f.guard_count is not None else len(f.guards)), ""])
        if f.error_on_graph_break is not None:
            facts.append(["error_on_graph_break", str(f.error_on_graph_break), ""])
        if f.fullgraph is not None:
            facts.append(["fullgraph", str(f.fullgraph), ""])
        if f.code_name and f.code_name != f.name:
            facts.append(["compiler's name", shorten(f.code_name, 120), ""])
        if f.foreign:
            facts.append(["thread", "not the recording's", ""])
        title = {"resume": "Resume function", "autograd": "Backward"}.get(f.kind, "Frame")
        if f.status not in ("compiled", "ignored"):
            title = f"{f.status.capitalize()} frame"
        name = self.places.name(f)
        if title == "Resume function":
            name = name.removeprefix("resume in ")
        return {
            "kind": f.status if f.status != "compiled" else f.kind, "title": title, "code": shorten(name, 160), "place": place,
            "copy": place, "facts": facts, "parts": self._frame_parts(f), "file": printable(f.file, 1000),
            "line": f.line, "target": frame_target(f),
        }  # fmt: skip

    def _frame_parts(self, f: Frame) -> list[Part]:
        parts: list[Part] = []
        again = self.recompiles.get(f.id, [])
        if again:
            words = [w for r in again for w in self._why_recompiled(f, r)]
            reasons = [printable(x, 2000) for r in again for x in r.reasons]
            parts.append(_prose("recompile", "Why recompiled", [printable(w, 2000) for w in words], [], reasons))
            parts += fix_parts(self.report, self.again[f.file, f.line, f.name], f.file, self.places)
        text, todo = self._frame_story(f)
        if text or todo:
            parts.append(_prose("about", "What happened", text, todo))
        source = self._source(f)
        if source:
            parts.append(source)
        if f.kind == "resume" and f.resume:
            parts.append(list_part("receives", "Receives", self._receives(f)))
        if self.called.get(f.id):
            rows = [[self._frame_words(c), self.places.frame(c), c.status, c.id] for c in self.called[f.id][:ROWS]]
            parts.append(list_part("calls", f"Calls ({len(self.called[f.id])})", rows))
        parts += guard_parts(self.report, f, self.versions[f.id], self.places)
        parts += times_part(self.report, f)
        if f.inlined:
            rows = [[shorten(i.name or "?", 120), self.places.at(i.file, i.line, i.cell), "", ""] for i in f.inlined[:ROWS]]
            parts.append(list_part("inlined", f"Traced into ({len(f.inlined)})", rows))
        if f.bytecode:
            parts.append(_code("bytecode", "Bytecode", f.bytecode, "text"))
        if f.modified_bytecode:
            parts.append(_code("modified", "Compiled bytecode", f.modified_bytecode, "text"))
        return parts

    def _why_recompiled(self, f: Frame, r: Recompile) -> list[str]:
        """Why a frame was recompiled, or reached the limit: the failed guards, then one line on the recompile or the limit."""
        name = self.places.name(f)
        title = limit_words(r, name, self.places) if r.refused_by else recompile_title(r, f, name, self.places)
        return [*(failures(r, self.places) or ["a guard failed"]), title]

    def _frame_story(self, f: Frame) -> tuple[list[str], list[str]]:
        """Sentences on what happened to a frame, and advice on the break that made Dynamo skip it or fail."""
        text: list[str] = []
        reason = compiler_text(self.places.with_cell_names((f.reason or "").strip()), 5000)
        inside = [c for c in self.called.get(f.id, []) if c.status == "compiled"]
        if f.status == "skipped":
            text.append("Dynamo skipped this frame: all of it runs eagerly, as plain Python.")
            text.append(reason or "The reason is not known.")
            if inside:
                names = ", ".join(shorten(self.places.name(c), 60) for c in inside[:6])
                text.append(f"The functions it calls are still compiled on their own: {names}.")
        elif f.status == "failed":
            text += ["The compiler stopped here with an error.", reason]
        elif f.status == "empty":
            text += ["There is nothing to compile in it, so nothing is lost.", reason]
        elif f.status == "cached":
            text.append(reason)
        elif f.status == "unfinished":
            text += ["The end of this compile was not recorded, so its result is unknown.", reason]
        elif f.kind == "resume":
            before = self._before(f)
            where = f" after `{shorten(break_code(before, self.places), 80)}`" if before else ""
            text.append(f"The continuation of {shorten(f.name, 80)}{where}: a function that Dynamo made, compiled on its own.")
        if f.status == "compiled" and reason:
            text.append(f"Not all of it is compiled: {reason}")
        cause = self._cause(f)
        return [t for t in text if t], advice(self.report, cause) if cause else []

    def _source(self, f: Frame) -> Part | None:
        """The tab with a frame's source, for a resume function from the line where it continues; None if no line is known."""
        lines = self.places.lines(f.file)
        start = f.resume.line if f.resume else f.line
        numbers = range(start, min(self.places.end_of(f), start + 1999) + 1)
        first, last = (next((n for n in order if n in lines), None) for order in (numbers, reversed(numbers)))
        if first is None:
            return None
        name = f"Source from line {start}" if f.kind == "resume" else "Source"
        # the text is in the lens: with a copy for each resume function, the model would grow quadratically
        body = {"file": printable(f.file, 1000), "start": first, "end": last}
        return {"key": "source", "name": name, "kind": "source", "body": body}

    def _receives(self, f: Frame) -> list[list[str]]:
        assert f.resume is not None
        nodes = self.graphs[f.graph][1].nodes if f.graph in self.graphs else []
        values = {node.target: value_text(node) for node in nodes if node.op == "placeholder"}
        inputs = [_INPUT.sub("_", f"L['{name}']") for name in f.resume.locals]  # as Dynamo names the graph's input for it
        rows = [
            [shorten(name, 120), values.get(input, "") if inputs.count(input) == 1 else "", "local", ""]
            for name, input in zip(f.resume.locals, inputs, strict=True)
        ]
        if f.resume.stack:
            rows.append([plural(f.resume.stack, "value"), "", "on the stack", ""])
        return rows or [["nothing", "", "", ""]]

    # -- graphs -----------------------------------------------------------------------------------

    def _graph(self, number: int, g: Graph) -> Detail:
        frame = self.frames.get(g.frame)
        facts = [["operations", "unknown" if g.ops is None else str(g.ops), ""]]
        if frame:
            facts.append(["frame", self._frame_words(frame), frame.id])
        if g.break_ in self.breaks:
            facts.append(["ends at", "✂ " + shorten(break_code(self.breaks[g.break_], self.places), 60), g.break_])
        elif g.end:
            facts.append(["ends at", printable(g.end, 200), ""])
        if g.ops is not None:  # of a graph that was compiled before the recording, only its existence is known
            facts += [
                ["inputs", str(len(g.inputs)), ""],
                ["outputs", str(len(g.outputs)), ""],
                ["backward", printable(g.backward, 40), ""],
            ]
        if g.splits:
            facts.append(["split by DDP", plural(len(g.splits), "part"), ""])
        if g.from_cache is not None:
            facts.append(["from cache", "yes" if g.from_cache else "no", ""])
        facts += [[f"  {printable(name, 40)} cache", printable(value, 80), ""] for name, value in g.caches.items()]
        parts: list[Part] = []
        if g.ops is None:
            parts.append(_prose("about", "What is known", [_GRAPH_FROM_BEFORE], []))
        if g.nodes:
            parts.append(_part("graph", "Graph", lambda: self._picture(g)))
        if g.ops and g.code:
            parts.append(_part("run", "Run alone", lambda: run_part(self.report, g)))
        splits = "\n\n".join(f"# {split_title(split, g)}\n{split.code}" for split in g.splits)
        for key, name, text in (
            ("code", "Python code", g.code), ("splits", "Split by DDP", splits), ("aot", "AOT forward", g.aot_forward),
            ("aotb", "AOT backward", g.aot_backward), ("backend", "Backend code", g.backend_code),
        ):  # fmt: skip
            if text:
                parts.append(_code(key, name, text, "python"))
        parts += stage_parts(self.report, g, self.places)
        if g.inputs or g.outputs:
            values = {n.name: value_text(n) for n in g.nodes}
            ends = [*((x, "input") for x in g.inputs[:ROWS]), *((x, "output") for x in g.outputs[:ROWS])]
            rows = [[shorten(x, 200), values.get(x, ""), end, ""] for x, end in ends]
            parts.append(list_part("ends", "Inputs, outputs", rows))
        if found := collectives(g):
            rows = [
                [printable(describe(c), 300), "backward" if c.backward else "forward", "" if c.waited else "no wait in it", ""]
                for c in found[:ROWS]
            ]
            parts.append(list_part("collectives", f"Collectives ({len(found)})", rows))
        if g.notes:
            parts.append(_prose("notes", "Notes", [printable(n, 2000) for n in g.notes], []))
        first = next((n for n in g.nodes if n.op not in ("placeholder", "get_attr", "output") and n.line and n.file), None)
        place = self.places.at(first.file, first.line) if first and first.file else self.places.frame(frame) if frame else ""
        detail: Detail = {
            "kind": "graph", "title": f"Graph {number}", "code": f"of {shorten(self.places.name(frame), 120)}" if frame else "",
            "place": place, "copy": place, "facts": facts, "parts": parts,
        }  # fmt: skip
        used = set(SYMBOL.findall(g.code))
        about = {s.name: printable(symbol_title(s), 200) for s in frame.symbols if s.name in used} if frame else {}
        if frame and about:
            detail["symbols"] = {"frame": frame.id, "about": about}
        if first and first.file and first.line:
            detail["file"], detail["line"] = printable(first.file, 1000), first.line
        return detail

    def _picture(self, g: Graph) -> Part:
        return {"key": "graph", "name": "Graph", "kind": "graph", "body": fx_body(g, self.places)}


def break_target(b: Break) -> str:
    """The `target` in a request for a region at a break: `In[3]:12` in a cell, else `forward:12`, function and line."""
    return f"In[{b.cell}]:{b.line}" if b.cell is not None else f"{printable(b.function, 1000)}:{b.line}"


def frame_target(f: Frame) -> str:
    """The `target` in a request for a region in a function: its name; outside cells also a line, as files may repeat a name."""
    return printable(f.name, 1000) if f.cell is not None else f"{printable(f.name, 1000)}:{f.line}"


def not_drawn(kind: str, title: str, why: str) -> Detail:
    """A detail that says why something could not be drawn."""
    return {
        "kind": kind, "title": title, "code": "", "place": "", "copy": "", "facts": [],
        "parts": [_prose("about", "What is known", [why], [])],
    }  # fmt: skip


def _one(kind: str, title: str, make: Callable[[], Detail]) -> Detail:
    return guarded("This detail", make, lambda why: not_drawn(kind, title, why))


def _part(key: str, name: str, make: Callable[[], Part]) -> Part:
    """One tab; if it cannot be made, the tab says so."""
    return guarded("This part", make, lambda why: _prose(key, name, [why], []))


def _prose(key: str, name: str, text: list[str], todo: list[str], code: list[str] | None = None) -> Part:
    return {"key": key, "name": name, "kind": "prose", "body": {"text": text, "todo": todo, "code": code or []}}


def _code(key: str, name: str, text: str, lang: str) -> Part:
    return {"key": key, "name": name, "kind": "code", "body": {"text": printable(text, TEXT_LIMIT), "lang": lang}}


def list_part(key: str, name: str, rows: list[list[str]]) -> Part:
    """A tab with a list; a row has a name, a value, a remark, and the id that a click selects, or ""."""
    return {"key": key, "name": name, "kind": "list", "body": rows}
