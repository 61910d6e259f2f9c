"""The Report: everything one recording learned, as plain data.

Schema 1.  The names of the fields are a contract: `report.to_dict()` is what is saved, what the
widget receives and what tests compare.  A Report holds strings, numbers, lists and dicts only; no
tensor, module or code object of the user's, so keeping one keeps nothing else alive.

The parts are in `parts`; here is the whole, its way out to plain data and back, and its headline.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dynascope.compiler.report.schema import (
    Backward,
    Break,
    BreakCost,
    Failure,
    Frame,
    FrameKind,
    FrameStatus,
    Graph,
    GraphRun,
    Hit,
    InputRun,
    Node,
    Outcome,
    Profile,
    Recompile,
    Resume,
    Segment,
    SegmentKind,
    Source,
    StackEntry,
    Summary,
    Verdict,
)
from dynascope.compiler.settings import SAVE_SUFFIXES

__all__ = [
    "LOWERINGS",
    "SCHEMA",
    "Backward",
    "Break",
    "BreakCost",
    "Failure",
    "Frame",
    "FrameKind",
    "FrameStatus",
    "Graph",
    "GraphRun",
    "Hit",
    "InputRun",
    "Node",
    "Outcome",
    "Profile",
    "Recompile",
    "Report",
    "Resume",
    "Segment",
    "SegmentKind",
    "Source",
    "StackEntry",
    "Summary",
    "Verdict",
    "dynamic_words",
    "headline",
    "plural",
    "seconds",
]

SCHEMA = 1

#: How a Report becomes text, by file suffix or name: "package.module:function".  Filled by the
#: package's face (`dynascope/__init__.py`), because this layer knows of no view.
LOWERINGS: dict[str, str] = {}


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
    #: each input of a list, one after the other; only where it was asked for (`--inputs`)
    inputs: list[InputRun] | None = None
    #: compiled against eager; only where it was asked for (`--check`): {"agrees", "compared", "differences", "why_not"}
    check: dict[str, Any] | None = None
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
    #: it came from a file: its graphs may call torch's own operators only
    loaded: bool = field(default=False, compare=False, repr=False, metadata={"beside": True})

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
        parts = [(plain, name) for name in ("profile", "inputs", "check")]
        for owner, part in [*parts, *((graph, "run") for graph in plain["graphs"])]:
            if owner[part] is None:
                del owner[part]  # a part of its own, that most reports do not have
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
        report.loaded = True
        return report

    def headline(self) -> str:
        """The one line that is always shown."""
        return headline(self)

    def diff(self, before: Report) -> Any:
        """What changed since an earlier report of the same code: `report.diff(report.previous)`."""
        from dynascope.compiler.report.diff import diff

        return diff(before, self)

    def expect(self, expected: str = "", /, **counts: int | str) -> Report:
        """Fail where a count is another: `report.expect("breaks<=1", graphs=2)`.

        Raises ExpectationFailed (an AssertionError) that tells what was found and where, ValueError for an unknown count.
        """
        from dynascope.compiler.report import expect

        expect.check(self, expect.read(expected, **counts))
        return self

    def run_graph(self, id: str, *, device: str | None = None, backend: str | None = None, calls: int = 10) -> GraphRun:
        """Run one captured graph again on its own: made-up data of the recorded shapes, eager against compiled.

        Args:
            id: of the graph ("g0").
            device: in place of the recorded one ("cpu", "cuda").
            backend: what compiles it; None: the backend of the run, or "inductor" where that one only traces.
            calls: how many timed calls of each.

        Returns:
            A GraphRun: seconds (medians), speed-up, time of each operation, memory peak in bytes.  It is also kept
            in the graph's `run`, and every view shows it.

        Raises KeyError for an unknown graph and ValueError, in one sentence, where it cannot be run again.  Of a report
        that was loaded, this runs the graphs that are written in its file, as far as they call torch's own operators.
        """
        from dynascope.compiler.graph_benchmark import benchmark

        graph, own = self.graph(id), not self.loaded and self.origin != "trace"
        run = benchmark.run_graph(graph, device, backend or benchmark.own_backend(self.settings), calls, own)
        if backend is None and (self.settings.get("mode") or self.settings.get("options")):
            run.notes.append("compiled with the backend's default mode and options, not with those of the run")
        graph.run = run
        return run

    def save(self, path: str | Path) -> Path:
        """Write the report to `path`, as its suffix says: .html .json .svg .dot .txt .

        Raises ValueError for another suffix, before anything is written.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix not in SAVE_SUFFIXES:
            raise ValueError(f"cannot save a report as {suffix or path.name}: use one of {', '.join(SAVE_SUFFIXES)}")
        text = json.dumps(self.to_dict(), indent=1) if suffix == ".json" else self._lower(suffix[1:])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def to_html(self) -> str:
        """A stand-alone page, clickable without a network."""
        return str(self._lower("html"))

    def to_svg(self) -> str:
        """The split graph as one SVG picture."""
        return str(self._lower("svg"))

    def view(self) -> Any:
        """The live view, an anywidget: the last value of a cell in marimo, say; `%%compile` shows it by itself."""
        return self._lower("view")

    def to_graphviz(self) -> Any:
        """The split graph as a `graphviz.Digraph`."""
        return self._lower("graphviz")

    def __str__(self) -> str:
        return str(self._lower("txt"))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = self._lower("mimebundle")
        return bundle

    def _lower(self, name: str) -> Any:
        module, _, function = LOWERINGS[name].partition(":")
        lower: Callable[[Report], Any] = getattr(importlib.import_module(module), function)
        return lower(self)


def plural(n: int, word: str) -> str:
    """`1 graph`, `2 graphs`."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def dynamic_words(frame: Frame) -> str:
    """Why a frame was traced with symbolic sizes at once."""
    names = ", ".join(frame.dynamic_before)
    return (
        f"{frame.name} was traced with symbolic sizes because of earlier runs: {names} had other sizes there "
        "(automatic dynamic shapes)"
    )


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
    if s.unfinished:
        parts.append(f"{s.unfinished} unfinished")
    known = not s.frames or any(f.compile_seconds is not None for f in report.frames) or not s.unfinished
    if known and (s.frames or not s.cached):
        parts.append(f"compiled in {seconds(s.compile_seconds)}")
    if report.error is not None and not report.error.caught:
        parts.append("stopped by an error")
    dearest = next((c for c in report.profile.breaks if c.seconds), None) if report.profile else None
    if dearest is not None:
        from dynascope.compiler.profile.break_costs import place, time_text

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
    "verdict": Verdict, "run": GraphRun,
}  # fmt: skip
#: where the same name means another part
_ELSEWHERE: dict[tuple[str, str], type | None] = {
    ("Break", "stack"): StackEntry, ("Profile", "breaks"): BreakCost, ("Report", "inputs"): InputRun,
    ("InputRun", "frames"): None, ("InputRun", "graphs"): None,  # ids
}  # fmt: skip


def _build(cls: type, data: dict[str, Any]) -> Any:
    values = {}
    for f in dataclasses.fields(cls):
        outside = _OUTSIDE.get(f.name, f.name)
        if outside not in data or f.metadata.get("beside"):
            continue
        value = data[outside]
        key = (cls.__name__, f.name)
        part = _ELSEWHERE[key] if key in _ELSEWHERE else _PARTS.get(f.name)
        if part is not None and isinstance(value, list):
            value = [_build(part, v) for v in value]
        elif part is not None and isinstance(value, dict):
            value = _build(part, value)
        values[f.name] = value
    try:
        return cls(**values)
    except TypeError as error:
        raise ValueError(f"not a dynascope report: {cls.__name__.lower()}: {error}") from None
