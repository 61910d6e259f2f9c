"""The records of torch's structured trace: which kinds are read, the types of their fields, and the compiler's phases in them.

To read another record, add its name to `USED` (and remove it from `IGNORED` or `NOT_MADE_LIVE`).  An artifact's name goes into
`_ARTIFACTS`.  Declare its fields in `_FIELDS`, keep its content in `builder.compile_records`, and add it to the
Report in `builder.report_builder` or `builder.graphs`.

A value whose JSON type is not the one that torch 2.9 to 2.15 writes would cause an error later, or be displayed as if torch had
reported it.  So it is removed, and is then unknown.  Some values that are only read as text, with `str`, are not listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

import msgspec
from msgspec import Meta

from dynascope.compiler.builder.events import Timed

#: about symbols in shapes; a live recording makes these records itself, with only the innermost entries of the compiler's
#: stack, because collecting the whole stack is most of what they cost
SHAPES = frozenset({"create_symbol", "create_unbacked_symbol", "guard_added_fast", "symbolic_shape_specialization"})
#: kept as parts of a compile
USED = SHAPES | {
    "dynamo_start", "dynamo_output_graph", "dynamo_cpp_guards_str", "compilation_metrics", "bwd_compilation_metrics",
    "artifact", "aot_forward_graph", "aot_backward_graph", "aot_joint_graph", "aot_inference_graph", "chromium_event",
    "inductor_output_code", "compiled_autograd_graph", "optimize_ddp_split_child",
}  # fmt: skip
#: not needed by a live recording, which keeps torch from making them, because many of them are numerous or large; torch still
#: makes them if something else reads the trace, such as the user's TORCH_TRACE log
NOT_MADE_LIVE = frozenset({
    "str", "describe_tensor", "describe_storage", "describe_source", "guard_added",
    "propagate_real_tensors_provenance", "expression_created", "dump_file", "link", "torch_version", "exported_program",
    "dynamo_side_effects", "propagate_real_tensors", "optimize_ddp_split_graph",
})  # fmt: skip
#: known, but not kept as part of a compile, and not counted as unread; `str` is handled separately
IGNORED = NOT_MADE_LIVE | {
    "dynamo_guards", "compilation_metrics_runtime", "bwd_compilation_metrics_runtime",
    "aot_autograd_backward_compilation_metrics", "inductor_input_graph",
    "inductor_pre_grad_graph", "inductor_post_grad_graph", "graph_dump", "aot_joint_graph_fw_metadata", "rank", "stack",
    "missing_fake_kernel", "mismatched_fake_kernel", "inductor_provenance_tracking_node_mappings", "inductor_tlparse_runtime",
    "is_pure_callback", "aotautograd_cache_hit", "autotuning", "fake_kernel", "export", "ddp_splits",
    "inductor_runtime_and_tensor_meta", "guard_on_data_dependent_error",
}  # fmt: skip

#: names of artifacts whose text is read; bytecode (names that end with _BYTECODE) and `CACHE_LOOKUPS` are read, too
_ARTIFACTS = frozenset({"recompile_reasons", "dynamo_graph_break_reason", "dynamo_error", "torch_version"})
#: beginnings of the names of artifacts with the answer of a cache
CACHE_LOOKUPS = ("fx_graph_cache_", "aotautograd_cache_")

#: fields of a record that are about the record itself
_HEADER = frozenset({
    "rank", "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt", "severity", "timestamp", "pathname",
    "thread", "stack", "has_payload", "subgraph_name", "process", "lineno",
})  # fmt: skip


def record_name(metadata: dict[str, Any]) -> str:
    """The kind of a record: `dynamo_start`, `artifact`, ...; "?" if it has no name."""
    return next((str(key) for key in metadata if key not in _HEADER), "?")


def is_read(metadata: dict[str, Any]) -> bool:
    """Whether a report needs this record of a log."""
    name = record_name(metadata)
    if "frame_id" in metadata or "compiled_autograd_id" in metadata:
        return name in USED
    return name in ("artifact", "chromium_event")


def needs_payload(metadata: dict[str, Any]) -> bool:
    """Whether a report needs the payload of this record of a log."""
    if record_name(metadata) != "artifact":
        return is_read(metadata) and "compilation_metrics" not in metadata
    return reads_artifact(str(metadata["artifact"].get("name")))


def reads_artifact(name: str) -> bool:
    """Whether a report needs the artifacts of this name."""
    return name in _ARTIFACTS or name.endswith("_BYTECODE") or name.startswith(CACHE_LOOKUPS)


def record_compile_id(metadata: dict[str, Any]) -> str | None:
    """The id of the compile that a record belongs to, as torch prints it; None if it belongs to none.

    For example `3/0`, or in compiled autograd `!1` or `!1/3/0`.
    """
    frame, compiled = metadata.get("frame_id"), metadata.get("frame_compile_id")
    autograd = metadata.get("compiled_autograd_id")
    inner = None if frame is None else f"{frame}/{compiled}"
    if autograd is None:
        return inner
    return f"!{autograd}" if inner is None else f"!{autograd}/{inner}"


#: no number that torch counts or measures is larger, not even a time in microseconds
_MOST = 1 << 62
_Int = Annotated[int, Meta(gt=-_MOST, lt=_MOST)]
_Float = Annotated[float, Meta(gt=-float(_MOST), lt=float(_MOST))]


class _StackEntry(TypedDict):
    """An entry of a stack; the file is a name, or an id in the table of strings."""

    line: _Int
    name: str
    filename: str | _Int


_Stack = list[_StackEntry]

#: fields that a record of any kind may have
_HEADER_TYPES: dict[str, Any] = {
    "rank": _Int, "frame_id": _Int, "frame_compile_id": _Int, "compiled_autograd_id": _Int,
    "attempt": _Int, "has_payload": str, "stack": _Stack,
}  # fmt: skip
_METRICS: dict[str, Any] = {
    "co_name": str | None, "co_filename": str | None, "co_firstlineno": _Int | None, "cudagraph_skip_reason": str | None,
    "fail_type": str | None, "fail_reason": str | None, "fail_user_frame_filename": str | None,
    "fail_user_frame_lineno": _Int | None, "guard_count": _Int | None, "is_forward": bool | None, "cache_size": _Int | None,
    "dynamo_config": str | None, "entire_frame_compile_time_s": _Float | None, "inductor_compile_time_s": _Float | None,
}  # fmt: skip
_STACKS: dict[str, Any] = {"stack": _Stack, "user_stack": _Stack | None}
#: fields of a record's own content; without the first one, the record says nothing, unless it has metrics
_FIELDS: dict[str, dict[str, Any]] = {
    "dynamo_start": {"stack": _Stack},
    "artifact": {"name": str},
    "create_symbol": {"symbol": str, "val": str, "vr": str, "source": str, **_STACKS},
    "create_unbacked_symbol": {"symbol": str, "vr": str, **_STACKS},
    "guard_added_fast": {"expr": str, **_STACKS},
    "symbolic_shape_specialization": {"symbol": str, "value": str, "reason": str, **_STACKS},
    "optimize_ddp_split_child": {"name": str},
    "compilation_metrics": _METRICS,
    "bwd_compilation_metrics": _METRICS,
}


class _PhaseArguments(msgspec.Struct):
    compile_id: Any = None
    fn_name: Any = None


class _PhaseEvent(msgspec.Struct):
    """An event of torch's time line: phase "B" begins, "E" ends; the time is in microseconds."""

    name: str
    ph: str
    ts: _Float
    args: _PhaseArguments | None = None


def _remove(fields: dict[str, Any], types: dict[str, Any]) -> list[str]:
    """Remove the fields that have other types than these; returns their names."""
    wrong = []
    for name in [name for name in types if name in fields]:
        try:
            msgspec.convert(fields[name], types[name])
        except msgspec.ValidationError:
            del fields[name]
            wrong.append(name)
    return wrong


def remove_wrong_types(name: str, metadata: dict[str, Any]) -> Iterator[str]:
    """Remove the fields of a wrong type from a record; yields a description of each problem.

    The whole content is removed if it is not an object, if a required field is missing, or if the compile id is damaged.  The
    content of `str`, a list, is checked by the log reader.
    """
    yield from (wrong := _remove(metadata, _HEADER_TYPES))
    if not {"frame_id", "frame_compile_id", "compiled_autograd_id"}.isdisjoint(wrong):
        metadata.pop(name, None)
    if ("frame_id" in metadata) != ("frame_compile_id" in metadata) and metadata.pop(name, None) is not None:
        yield "compile id"
    if name not in metadata or name == "str":
        return
    fields, types = metadata[name], _FIELDS.get(name, {})
    if not isinstance(fields, dict):
        del metadata[name]
        yield name
        return
    yield from (f"{name}.{field}" for field in _remove(fields, types))
    needed = next(iter(types), None) if types is not _METRICS else None
    if needed is not None and needed not in fields:
        del metadata[name]
        yield f"{name} without {needed}"


def timed(event: Any) -> Timed | None:
    """The beginning or the end of a phase; None if the event is neither.

    `event`: the dict that torch makes, or its JSON text.  Raises ValueError if the event is damaged.
    """
    try:
        found = msgspec.json.decode(event, type=_PhaseEvent) if isinstance(event, str) else msgspec.convert(event, _PhaseEvent)
    except msgspec.MsgspecError as error:
        raise ValueError(f"not a chromium event: {error}") from None
    if found.ph not in ("B", "E"):
        return None
    arguments = found.args or _PhaseArguments()
    compile_id = None if arguments.compile_id in (None, "None") else str(arguments.compile_id)
    return Timed(found.name, found.ph == "B", found.ts / 1e6, str(arguments.fn_name or "") or None, compile_id=compile_id)
