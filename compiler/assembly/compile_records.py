"""Groups events by the frame they speak of: the first half of *events in, Report out*.

A draft collects, for one compile id, everything that the structured trace and the hooks said of it.
Compile ids restart when the user's code calls `torch._dynamo.reset()`, and a record for a frame can come
long after it (a backward compiled in a later cell), so a draft is opened by the records that start a
compile and found by its id afterwards.  Pure: no torch, no clock, no files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]

#: structured-trace records that are understood and put to use
USED = frozenset({
    "dynamo_start", "dynamo_output_graph", "dynamo_cpp_guards_str", "compilation_metrics", "bwd_compilation_metrics",
    "artifact", "aot_forward_graph", "aot_backward_graph", "aot_joint_graph", "aot_inference_graph",
    "inductor_output_code", "compiled_autograd_graph", "optimize_ddp_split_graph", "optimize_ddp_split_child",
})  # fmt: skip
#: records that are known and hold nothing that the report shows
KNOWN = frozenset({
    "str", "chromium_event", "describe_tensor", "describe_storage", "describe_source", "create_symbol",
    "create_unbacked_symbol", "guard_added", "guard_added_fast", "propagate_real_tensors_provenance",
    "expression_created", "symbolic_shape_specialization", "dump_file", "link", "torch_version", "exported_program",
    "inductor_pre_grad_graph", "inductor_post_grad_graph", "graph_dump", "dynamo_side_effects",
    "aot_joint_graph_fw_metadata", "rank", "stack", "missing_fake_kernel", "mismatched_fake_kernel",
    "inductor_provenance_tracking_node_mappings", "inductor_tlparse_runtime", "is_pure_callback",
    "aotautograd_cache_hit", "autotuning", "fake_kernel", "export", "ddp_splits", "inductor_runtime_and_tensor_meta",
})  # fmt: skip
#: the line of ^^^^ with which Python marks columns
_MARKS = re.compile(r"^ +~*\^+~*$", re.M)


@dataclass
class Draft:
    """What is known of one compile of one frame."""

    cid: str | None
    order: int
    thread: int | None = None
    rank: int | None = None
    #: of the files of several processes: which one
    process: int | None = None
    #: {"uid", "name", "qualname", "file", "line", "end_line"}; without hooks no uid and no end_line
    code: dict[str, Any] = field(default_factory=dict)
    #: the Python stack at the start, outermost first: {"file", "line", "function"}
    stack: list[dict[str, Any]] = field(default_factory=list)
    break_texts: list[str] = field(default_factory=list)
    error_text: str | None = None
    recompile_text: str | None = None
    graph_text: str | None = None
    guard_text: str | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    backward_metrics: dict[str, Any] = field(default_factory=dict)
    graph_end: Event | None = None
    frame: Event | None = None
    #: node name -> path of the nn.Module that it ran in
    modules: dict[str, str] = field(default_factory=dict)
    #: what the symbols of its graph stood for
    sizes: dict[str, int | float] = field(default_factory=dict)
    resumes: list[Event] = field(default_factory=list)
    aot: dict[str, list[str]] = field(default_factory=dict)
    #: what DDP's optimizer made of the graph, one for each bucket of gradients: {"name", "code"}
    splits: list[dict[str, str]] = field(default_factory=list)
    output_codes: list[str] = field(default_factory=list)
    artifacts: dict[str, str] = field(default_factory=dict)
    started: bool = False
    closed: bool = False
    #: whether its process marks columns in the stacks of its texts; an entry without marks is then marked as a whole
    marks_columns: bool = False
    #: its last steps are recorded, and the thread has begun another compile since
    over: bool = False

    @property
    def unfinished(self) -> bool:
        """Whether nothing that is recorded shows that this compile has ended; torch writes metrics at every end."""
        if self.cid is None or self.frame is not None or self.metrics or self.over:
            return False
        return self.started or self.recompile_text is not None  # torch.export traces without a start, and without metrics


class Drafts:
    """Feed events in order; read `drafts` (in order of their start) and `unread`."""

    def __init__(self, strings: dict[int, str] | None = None) -> None:
        self.strings = dict(strings or {})
        self.drafts: list[Draft] = []
        self.unread: dict[str, int] = {}
        self.records = 0
        self.cached: list[Event] = []
        #: code object that was called compiled -> the user's name for it, in order of the first call
        self.entries: dict[int, str] = {}
        self._open: dict[tuple[int | None, str], Draft] = {}  # by process and compile id
        #: by process and thread: compiles that have only their metrics to come
        self._ending: dict[tuple[int | None, int | None], list[Draft]] = {}
        self._marking: set[int | None] = set()  # processes that mark columns

    def feed(self, events: Iterable[Event]) -> Drafts:
        for event in events:
            self.records += 1
            try:
                self._event(event)
            except Exception as error:  # a record of an unknown shape must not cost the others
                self.count(f"{_name(event)}: {type(error).__name__}")
        for draft in self.drafts:
            draft.marks_columns = draft.process in self._marking
        return self

    def code_like(self, draft: Draft) -> dict[str, Any]:
        """The code of an earlier compile of the same frame: compile ids are the frame's number, and which compile of it."""
        number = str(draft.cid).rpartition("/")[0]
        same = (
            d.code
            for d in reversed(self.drafts[: draft.order])
            if d.code and d.process == draft.process and str(d.cid).rpartition("/")[0] == number
        )
        return next(same, {})

    def count(self, kind: str) -> None:
        self.unread[kind] = self.unread.get(kind, 0) + 1

    def draft(self, event: Event, *, opens: bool = False) -> Draft:
        """The draft that an event belongs to; a new one where it opens a compile."""
        process = event.get("process")
        key = (process, str(event.get("cid")))
        draft = self._open.get(key) if event.get("cid") is not None else None
        if draft is None or (opens and draft.closed):
            draft = Draft(cid=event.get("cid"), order=len(self.drafts), thread=event.get("thread"), process=process)
            self.drafts.append(draft)
            if draft.cid is not None:
                self._open[key] = draft
        if draft.rank is None:  # torch tells it from when the process group is there
            draft.rank = (event.get("metadata") or {}).get("rank")
        return draft

    def _event(self, event: Event) -> None:
        kind = event["kind"]
        if kind == "trace":
            self._trace(event)
        elif kind == "frame":
            draft = self.draft(event)
            draft.frame, draft.closed = event, True
            draft.code = event["code"]
            draft.thread = event.get("thread", draft.thread)
        elif kind == "graph_end":
            draft = self.draft(event)
            draft.graph_end = event
            draft.code = draft.code or event["code"]  # torch.export traces without a frame
        elif kind == "nodes":
            self.draft(event).modules = event["modules"]
            self.draft(event).sizes = event["sizes"]
        elif kind == "resume":
            self.draft(event).resumes.append(event)
        elif kind == "entry":
            self.entries.setdefault(event["code"]["uid"], event["name"])
        elif kind == "cached":
            self.cached.append(event)
        else:
            self.count(str(kind))

    def _trace(self, event: Event) -> None:
        metadata = event["metadata"]
        name = _name(event)
        if name == "str":
            text, number = metadata["str"]
            self.strings[int(number)] = str(text)
            return
        if name == "create_symbol" and event.get("cid") is not None:
            self._symbol(self.draft(event), metadata[name])
            return
        if name in KNOWN:
            return
        if name not in USED:
            self.count(name)
            return
        if event.get("cid") is None:
            return  # said of no frame: caches and settings at large
        payload = event.get("payload")
        if name == "artifact":
            self._artifact(event, metadata["artifact"], payload)
            return
        draft = self.draft(event, opens=name == "dynamo_start" and not metadata.get("attempt"))
        if name == "dynamo_start":
            draft.started = True
            for before in self._ending.pop((draft.process, event.get("thread")), []):
                before.over = before is not draft
            draft.stack = [
                {"file": self.string(s["filename"]), "line": s["line"], "function": s["name"]}
                for s in metadata["dynamo_start"].get("stack") or ()
            ]
            if event.get("callers") is not None:  # of a live run, and whole
                draft.stack[:-1] = event["callers"]
        elif name == "dynamo_output_graph":
            draft.graph_text = str(payload)
        elif name == "dynamo_cpp_guards_str":
            draft.guard_text = str(payload)
            self._nearly_over(draft, event)
        elif name == "compilation_metrics":
            self._metrics(draft, metadata[name])
        elif name == "bwd_compilation_metrics":
            draft.backward_metrics = dict(metadata[name])
        elif name == "inductor_output_code":
            draft.output_codes.append(_settled(str(payload)))
        elif name == "optimize_ddp_split_child":
            draft.splits.append({"name": str(metadata[name].get("name")), "code": str(payload)})
        elif payload is not None and name != "optimize_ddp_split_graph":
            draft.aot.setdefault(name, []).append(str(payload))

    def _nearly_over(self, draft: Draft, event: Event) -> None:
        self._ending.setdefault((draft.process, event.get("thread")), []).append(draft)

    def _symbol(self, draft: Draft, told: dict[str, Any]) -> None:
        value = str(told.get("val"))
        if value.lstrip("-").isdigit():
            draft.sizes[str(told["symbol"])] = int(value)

    def _metrics(self, draft: Draft, metrics: dict[str, Any]) -> None:
        if metrics.get("is_forward") is False:
            draft.backward_metrics = dict(metrics)
            return
        draft.metrics, draft.closed = dict(metrics), True
        if not draft.code and metrics.get("co_name"):
            draft.code = {"name": metrics["co_name"], "file": metrics["co_filename"], "line": metrics["co_firstlineno"]}

    def _artifact(self, event: Event, artifact: dict[str, Any], payload: Any) -> None:
        name = str(artifact.get("name"))
        if name == "recompile_reasons":
            self.draft(event, opens=True).recompile_text = _text(payload)
            return
        draft = self.draft(event)
        if name == "dynamo_graph_break_reason":
            draft.break_texts.append(_text(payload))
            if _MARKS.search(_text(payload).split("\nTraceback (most recent call last)", 1)[0]):
                self._marking.add(draft.process)
        elif name == "dynamo_error":
            draft.error_text = _text(payload)
            self._nearly_over(draft, event)
        elif name.startswith(("fx_graph_cache_", "aotautograd_cache_")):
            draft.artifacts[name] = ""
        elif name.endswith("_BYTECODE"):
            draft.artifacts[name.rsplit("_", 2)[-2].lower() + "_bytecode"] = _capped(_settled(_text(payload)))

    def string(self, value: Any) -> str:
        """An interned string; a file that was cut may lack it."""
        if isinstance(value, int):
            return self.strings.get(value, "?")
        return str(value)


def _capped(text: str, limit: int = 5000) -> str:
    """Bytecode of a long function is repeated by each of its resume functions; all of it is in TORCH_LOGS=bytecode."""
    return text if len(text) <= limit else text[:limit].rsplit("\n", 1)[0] + "\n... (cut; TORCH_LOGS=bytecode prints all)\n"


_COUNTED = re.compile(
    r"(__compiled_fn)_\d+(?:_[0-9a-f]{8}(?:_[0-9a-f]{4}){3}_[0-9a-f]{12})?|(__resume_at_\d+)_\d+|# AOT ID: .*\n"
)


def _settled(text: str) -> str:
    """Without the numbers that torch counts up in a process: the same code gives the same report."""
    return _COUNTED.sub(lambda m: m.group(1) or m.group(2) or "", text)


def _text(payload: Any) -> str:
    if isinstance(payload, str):
        return payload
    return "" if payload is None else str(payload)


_RESERVED = frozenset({
    "rank", "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt", "severity", "timestamp", "pathname",
    "thread", "stack", "has_payload", "subgraph_name", "process", "lineno",
})  # fmt: skip


def _name(event: Event) -> str:
    metadata = event.get("metadata") or {}
    return next((str(k) for k in metadata if k not in _RESERVED), "?")


def record_compile_id(metadata: dict[str, Any]) -> str | None:
    """`3/0` of a structured-trace record; `!1` marks compiled autograd, as torch prints it."""
    frame, compiled = metadata.get("frame_id"), metadata.get("frame_compile_id")
    autograd = metadata.get("compiled_autograd_id")
    inner = None if frame is None else f"{frame}/{compiled}"
    if autograd is None:
        return inner
    return f"!{autograd}" if inner is None else f"!{autograd}/{inner}"
