"""The Report: everything one recording learned, as plain data.

Schema 1.  The names of the fields are a contract: `report.to_dict()` is what is saved, what the
widget receives and what tests compare.  A Report holds strings, numbers, lists and dicts only; no
tensor, module or code object of the user's, so keeping one keeps nothing else alive.

`None` always means *unknown* (or *does not apply*), never "no".  Line numbers start at 1; columns
are 0-based character offsets, as in `ast`; times are seconds.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

SCHEMA = 1

FrameKind = Literal["function", "resume", "statements", "autograd"]
FrameStatus = Literal["compiled", "empty", "skipped", "failed", "ignored", "cached"]
Outcome = Literal["resumed", "skipped", "raised"]
Backward = Literal["none", "pending", "compiled", "from cache"]
SegmentKind = Literal["graph", "gap", "lookup", "prologue", "wait", "unaccounted", "kernel", "copy"]

#: How a Report becomes text, by file suffix or name: "package.module:function".  Filled by the
#: package's face (`dynascope/__init__.py`), because this layer knows of no view.
LOWERINGS: dict[str, str] = {}


@dataclass(kw_only=True)
class StackEntry:
    """One line of a stack in the user's code, outermost first in a list of them."""

    file: str
    line: int
    function: str
    column: int | None = None
    end_column: int | None = None
    cell: int | None = None
    source: str = ""


@dataclass(kw_only=True)
class Resume:
    """Where a resume function goes on, and what Dynamo hands it."""

    line: int
    column: int | None = None
    #: names of the locals it receives; what lies on the value stack is counted, it has no names
    locals: list[str] = field(default_factory=list)
    stack: int | None = None


@dataclass(kw_only=True)
class Frame:
    """A Python code object that Dynamo was asked to compile, once per compile id."""

    id: str
    compile_id: str | None
    #: the user's name for it; a resume function bears the name of the function that it continues
    name: str
    #: the name in the compiler (`torch_dynamo_resume_in_f_at_4`)
    code_name: str
    file: str
    #: first line of the function (of a resume function: the line it goes on from)
    line: int
    end_line: int | None = None
    cell: int | None = None
    kind: FrameKind = "function"
    status: FrameStatus = "compiled"
    reason: str | None = None
    #: of a resume function: the break that it follows; of another that was skipped or failed: the break that caused it
    break_: str | None = None
    #: the frame that this one continues after a break
    continues: str | None = None
    #: the frame that called this one, and from which line
    parent: str | None = None
    called_from: int | None = None
    graph: str | None = None
    #: a recompile: the frame (same code object) that was compiled before
    recompile_of: str | None = None
    resume: Resume | None = None
    compile_seconds: float | None = None
    #: seconds by phase, as the compiler names them ("dynamo", "backend", "inductor", "codegen", "guards")
    phases: dict[str, float] = field(default_factory=dict)
    guards: list[str] = field(default_factory=list)
    guard_count: int | None = None
    #: functions that were traced into this frame's graph: [{"name", "file", "line"}]
    inlined: list[dict[str, Any]] = field(default_factory=list)
    fullgraph: bool | None = None
    error_on_graph_break: bool | None = None
    thread: int | None = None
    #: compiled by a thread other than the one that recorded
    foreign: bool = False
    rank: int | None = None
    bytecode: str | None = None
    modified_bytecode: str | None = None


@dataclass(kw_only=True)
class Node:
    """One node of an FX graph."""

    name: str
    #: FX's own opcode: placeholder, get_attr, call_function, call_method, call_module, output
    op: str
    target: str
    #: names of the nodes that it reads
    inputs: list[str] = field(default_factory=list)
    #: innermost place in the user's code (not in torch), where known
    file: str | None = None
    line: int | None = None
    dtype: str | None = None
    shape: list[int | str] | None = None
    stride: list[int | str] | None = None
    device: str | None = None
    #: what the compiler printed for it
    code: str = ""
    #: path of the nn.Module that it ran in, where known ("encoder.layers.0")
    module: str | None = None


@dataclass(kw_only=True)
class Graph:
    """An FX graph captured from one frame, and what later stages made of it."""

    id: str
    frame: str
    #: number of nodes that are neither placeholder, get_attr nor output; None: compiled before the recording
    ops: int | None
    nodes: list[Node] = field(default_factory=list)
    code: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    #: how the graph ended: "return", "break", or the compiler's own word
    end: str | None = None
    #: the break that ended it
    break_: str | None = None
    aot_forward: str | None = None
    aot_backward: str | None = None
    backend_code: str | None = None
    backward: Backward = "none"
    from_cache: bool | None = None
    #: {"aot": "hit" | "miss" | "bypass", "fx": ...}
    caches: dict[str, str] = field(default_factory=dict)
    #: further stages: "CUDA graphs skipped: ...", split graphs and the like
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Hit:
    """One frame that ran into a break."""

    frame: str
    #: the line in that frame (a call further out, where the break is deeper)
    line: int | None
    outcome: Outcome
    #: the resume functions made for it (two after a data-dependent `if`)
    resumes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Break:
    """One place in the user's code where a graph had to stop."""

    id: str
    file: str
    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    function: str = ""
    cell: int | None = None
    source: str = ""
    gb_ids: list[str] = field(default_factory=list)
    type: str = ""
    reason: str = ""
    explanation: str = ""
    hints: list[str] = field(default_factory=list)
    #: page of each GB id, as the compiler names it
    urls: list[str] = field(default_factory=list)
    #: the worst of its hits
    outcome: Outcome = "resumed"
    #: the flag in force at the break; None where the source cannot know it
    error_on_graph_break: bool | None = None
    fullgraph: bool | None = None
    #: who set the flag: None (unknown), "default", "this run" or a region's place ("In[3]:4", "block")
    region: str | None = None
    #: True: inside an explicit allow; False: not; None: unknown
    allowed: bool | None = None
    stack: list[StackEntry] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    #: the compiler's own text, whole
    text: str = ""


@dataclass(kw_only=True)
class Recompile:
    """A frame compiled again because a guard failed."""

    frame: str
    of: str | None
    reasons: list[str] = field(default_factory=list)
    #: the same, in words a newcomer understands
    words: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Failure:
    """What stopped the run."""

    type: str
    message: str
    break_: str | None = None
    frame: str | None = None
    file: str | None = None
    line: int | None = None
    cell: int | None = None
    #: "compiler": what the compiler refused; "user": an error of the user's own code
    origin: Literal["compiler", "user"] = "compiler"
    #: the user's code caught it and went on
    caught: bool = False


@dataclass(kw_only=True)
class Source:
    """The text of one file or cell that the report speaks of, as excerpts."""

    file: str
    #: short name to show ("In[3]", "model.py")
    label: str
    cell: int | None = None
    #: [{"line": first line, "text": str}], in order, not overlapping
    excerpts: list[dict[str, Any]] = field(default_factory=list)


@dataclass(kw_only=True)
class Segment:
    """One stretch of a call on one lane.  The segments of the first lane follow one another without a hole."""

    #: graph, gap (eager code and its ops), lookup (of guards in the cache), prologue (of a graph), wait (for the device),
    #: unaccounted; on the lane of a device: kernel or copy
    kind: SegmentKind
    lane: str
    #: seconds from the start of the call, and how long it took, in the one call that is drawn
    start: float
    duration: float
    label: str
    frame: str | None = None
    graph: str | None = None
    #: the break without which this stretch would not be there
    break_: str | None = None
    #: over all calls that went the same way: median, and the middle half of them
    median: float | None = None
    spread: list[float] = field(default_factory=list)
    #: of a gap: the eager ops in it, slowest first: [{"name", "seconds", "count"}]
    ops: list[dict[str, Any]] = field(default_factory=list)


@dataclass(kw_only=True)
class BreakCost:
    """What one break costs a call."""

    break_: str
    #: what would be gone without the break: median over the calls; None: unknown
    seconds: float | None
    #: of the call's time
    share: float | None = None
    spread: list[float] = field(default_factory=list)
    #: in plain words
    how: str = ""
    #: {"lookups", "prologue", "python", "synchronisation"}: what `seconds` is made of
    parts: dict[str, float] = field(default_factory=dict)
    #: eager ops of the gap: they would still have to run, in a graph, how fast is unknown
    ops_seconds: float = 0.0
    #: where the break makes Dynamo skip a frame: how long it runs eagerly
    eager_seconds: float | None = None
    #: how often a call meets it
    times: float = 0.0


@dataclass(kw_only=True)
class Verdict:
    """Compiled or not?  Timed without the profiler; None: unknown."""

    eager_seconds: float | None = None
    compiled_seconds: float | None = None
    #: the compiled call without what its breaks cost
    without_breaks_seconds: float | None = None
    compile_seconds: float | None = None
    #: calls after which compiling has paid for itself; None: unknown, or never
    payback_calls: int | None = None
    words: str = ""


@dataclass(kw_only=True)
class Profile:
    """Where the time of a call goes, from `calls` more calls under torch.profiler."""

    calls: int
    #: of one call under the profiler: median, and the middle half
    median_seconds: float
    spread: list[float] = field(default_factory=list)
    lanes: list[str] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    #: of the call's time, median over the calls: graphs, gaps, lookups, prologue, waiting, unaccounted
    shares: dict[str, float] = field(default_factory=dict)
    #: the dearest first; unknown ones last
    breaks: list[BreakCost] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)
    #: one sentence: which break to fix first; empty where there is none
    first: str = ""
    #: names of the devices it ran on
    devices: list[str] = field(default_factory=list)
    #: what repeating the call could not undo, and how far the figures can be trusted
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Summary:
    frames: int = 0
    graphs: int = 0
    ops: int = 0
    breaks: int = 0
    resumes: int = 0
    skipped: int = 0
    recompiles: int = 0
    compile_seconds: float = 0.0
    empty: int = 0
    cached: int = 0
    failed: int = 0
    #: breaks that no explicit allow covers (unknown counts as unexpected)
    unexpected: int = 0


@dataclass(kw_only=True)
class Report:
    """What the compiler did during one recording."""

    schema: int = SCHEMA
    versions: dict[str, str | None] = field(default_factory=dict)
    #: what was compiled: names of functions and modules, or ["the cell's statements"]
    compiled: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    #: each hook into torch: True, or why it does not fit this torch
    hooks: dict[str, bool | str] = field(default_factory=dict)
    summary: Summary = field(default_factory=Summary)
    frames: list[Frame] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    recompiles: list[Recompile] = field(default_factory=list)
    error: Failure | None = None
    sources: list[Source] = field(default_factory=list)
    #: where the time of a call goes; only where it was asked for (`--profile`)
    profile: Profile | None = None
    #: what the user should know beside the facts, one sentence each
    notes: list[str] = field(default_factory=list)
    #: backward graphs compiled here whose forward was not: [{"compile_id", "seconds", "code", "from_cache"}]
    late_backwards: list[dict[str, Any]] = field(default_factory=list)
    #: records that could not be used, counted by kind
    unread: dict[str, int] = field(default_factory=dict)
    #: "live", "trace" (TORCH_TRACE files) or "partial" (interrupted)
    origin: Literal["live", "trace", "partial"] = "live"
    #: the report of the run before, of the same cell or function; kept beside the data, not in it
    previous: Report | None = field(default=None, compare=False, repr=False, metadata={"beside": True})

    # -- looking up ---------------------------------------------------------------------------

    def frame(self, id: str) -> Frame:
        """The frame with this id; KeyError where there is none."""
        found: Frame = _find(self.frames, id)
        return found

    def graph(self, id: str) -> Graph:
        """The graph with this id; KeyError where there is none."""
        found: Graph = _find(self.graphs, id)
        return found

    def break_(self, id: str) -> Break:
        """The graph break with this id; KeyError where there is none."""
        found: Break = _find(self.breaks, id)
        return found

    # -- out and in -----------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data (schema 1)."""
        plain: dict[str, Any] = _plain(self)
        if plain["profile"] is None:
            del plain["profile"]  # a part of its own, that most reports do not have
        return plain

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Report:
        """The report that `to_dict` gave; unknown keys are passed over, so later additions load too.

        Raises ValueError, in one line, where the data is no report or of a newer schema.
        """
        if not isinstance(data, dict) or "schema" not in data:
            raise ValueError("not a dynascope report: no 'schema' in it")
        if data["schema"] != SCHEMA:
            raise ValueError(f"report of schema {data['schema']!r}; this dynascope reads schema {SCHEMA}: update dynascope")
        report: Report = _build(cls, data)
        return report

    def headline(self) -> str:
        """The one line that is always shown."""
        return headline(self)

    def diff(self, before: Report) -> Any:
        """What changed since an earlier report of the same code: `report.diff(report.previous)`."""
        from dynascope.compiler.diff import diff

        return diff(before, self)

    def expect(self, expected: str = "", /, **counts: int | str) -> Report:
        """Fail where a count is another: `report.expect("breaks<=1", graphs=2)`.

        Raises ExpectationFailed (an AssertionError) that tells what was found and where, ValueError for an unknown count.
        """
        from dynascope.compiler import expect

        terms = [expected, *(f"{k}={v}" if isinstance(v, int) else f"{k}{v}" for k, v in counts.items())]
        expect.check(self, expect.parse(",".join(t for t in terms if t)))
        return self

    def save(self, path: str | Path) -> Path:
        """Write the report to `path`, as its suffix says: .html .json .svg .dot .txt .

        Raises ValueError for another suffix, before anything is written.
        """
        path = Path(path)
        suffix = path.suffix.lstrip(".").lower()
        text = json.dumps(self.to_dict(), indent=1) if suffix == "json" else self._lower(suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def to_html(self) -> str:
        """A stand-alone page, clickable without a network."""
        return str(self._lower("html"))

    def to_svg(self) -> str:
        """The split graph as one SVG picture."""
        return str(self._lower("svg"))

    def to_graphviz(self) -> Any:
        """The split graph as a `graphviz.Digraph`."""
        return self._lower("graphviz")

    def __str__(self) -> str:
        return str(self._lower("txt"))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = self._lower("mimebundle")
        return bundle

    def _lower(self, name: str) -> Any:
        if name not in LOWERINGS:
            known = ", ".join(f".{n}" for n in ("html", "json", "svg", "dot", "txt"))
            raise ValueError(f"cannot save a report as .{name}: use one of {known}")
        module, _, function = LOWERINGS[name].partition(":")
        lower: Callable[[Report], Any] = getattr(importlib.import_module(module), function)
        return lower(self)


def plural(n: int, word: str) -> str:
    """`1 graph`, `2 graphs`."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def headline(report: Report) -> str:
    """`f: 2 graphs · 1 graph break · 1 resume function · 0 skipped · compiled in 0.8 s`."""
    s = report.summary
    unknown = s.cached > 0 and s.breaks == 0  # a cache hit says nothing of breaks: never "no breaks"
    parts = [plural(s.graphs, "graph"), "graph breaks unknown" if unknown else plural(s.breaks, "graph break")]
    if s.breaks and s.unexpected != s.breaks:
        parts[-1] += f" ({s.breaks - s.unexpected} allowed)"
    parts += [plural(s.resumes, "resume function"), f"{s.skipped} skipped"]
    if s.recompiles:
        parts.append(plural(s.recompiles, "recompile"))
    if s.cached:
        parts.append(f"{s.cached} cached")
    if s.frames or not s.cached:
        parts.append(f"compiled in {seconds(s.compile_seconds)}")
    if report.error is not None and not report.error.caught:
        parts.append("stopped by an error")
    dearest = next((c for c in report.profile.breaks if c.seconds), None) if report.profile else None
    if dearest is not None:
        from dynascope.compiler.break_costs import place, time_text

        parts.append(f"fix first: {place(report.break_(dearest.break_))} ({time_text(dearest.seconds or 0)} a call)")
    name = ", ".join(report.compiled) or "nothing compiled"
    return f"{name}: " + " · ".join(parts)


def seconds(value: float) -> str:
    """`0.84 s`, `31 ms`."""
    return f"{value * 1000:.0f} ms" if value < 0.1 else f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def _find(items: list[Any], id: str) -> Any:
    for item in items:
        if item.id == id:
            return item
    raise KeyError(id)


_OUTSIDE = {"break_": "break"}  # a keyword in Python, the plain word in the data


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f for f in dataclasses.fields(value) if not f.metadata.get("beside")]
        return {_OUTSIDE.get(f.name, f.name): _plain(getattr(value, f.name)) for f in fields}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


_PARTS: dict[str, type] = {
    "frames": Frame, "graphs": Graph, "breaks": Break, "recompiles": Recompile, "sources": Source, "nodes": Node,
    "hits": Hit, "summary": Summary, "error": Failure, "resume": Resume, "profile": Profile, "segments": Segment,
    "verdict": Verdict,
}  # fmt: skip
#: where the same name means another part
_ELSEWHERE: dict[tuple[str, str], type] = {("Break", "stack"): StackEntry, ("Profile", "breaks"): BreakCost}


def _build(cls: type, data: dict[str, Any]) -> Any:
    values = {}
    for f in dataclasses.fields(cls):
        outside = _OUTSIDE.get(f.name, f.name)
        if outside not in data or f.metadata.get("beside"):
            continue
        value = data[outside]
        part = _ELSEWHERE.get((cls.__name__, f.name)) or _PARTS.get(f.name)
        if part is not None and isinstance(value, list):
            value = [_build(part, v) for v in value]
        elif part is not None and isinstance(value, dict):
            value = _build(part, value)
        values[f.name] = value
    try:
        return cls(**values)
    except TypeError as error:
        raise ValueError(f"not a dynascope report: {cls.__name__.lower()}: {error}") from None
