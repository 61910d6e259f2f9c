"""The kinds of records in torch's structured trace: which are read, and which are ignored.

To read another record, add its name to `USED` (and remove it from `IGNORED` or `NOT_MADE_LIVE`).  An artifact's name goes into
`_ARTIFACTS`; if it is the text of one of a graph's later stages, into `STAGES`, and its title into `_STAGES` of
`widgets/features/graphs.py`.  Declare its fields in `events.field_types`, keep its content in `builder.compile_records`, and
add it to the Report in `builder.assemble` or `builder.stages`.

`jobs.log_scan` treats ranks as alike if their records have the same hash.  It hashes every kind of record that is not
ignored, so add a kind that should not tell ranks apart to `_LATER` there.  It hashes an artifact only if its name is in
`_SHAPING`.
"""

from __future__ import annotations

from typing import Any

#: kept as parts of a compile
USED = frozenset({
    "dynamo_start", "dynamo_output_graph", "dynamo_cpp_guards_str", "compilation_metrics", "bwd_compilation_metrics",
    "artifact", "aot_forward_graph", "aot_backward_graph", "aot_joint_graph", "aot_inference_graph",
    "inductor_output_code", "compiled_autograd_graph", "optimize_ddp_split_child",
    "create_symbol", "create_unbacked_symbol", "guard_added_fast", "symbolic_shape_specialization", "chromium_event",
    "guard_on_data_dependent_error",
})  # fmt: skip
#: about symbols in shapes; a live recording makes these records itself, with only the innermost entries of the compiler's
#: stack, because collecting the whole stack is most of what they cost
SHAPES = frozenset({"create_symbol", "create_unbacked_symbol", "guard_added_fast", "symbolic_shape_specialization"})
#: not needed by a live recording, which keeps torch from making them, because many of them are numerous or large; torch still
#: makes them if something else reads the trace, such as the user's TORCH_TRACE log
NOT_MADE_LIVE = frozenset({
    "str", "describe_tensor", "describe_storage", "describe_source", "guard_added",
    "propagate_real_tensors_provenance", "expression_created", "dump_file", "link", "torch_version", "exported_program",
    "dynamo_side_effects", "propagate_real_tensors", "optimize_ddp_split_graph",
})  # fmt: skip
#: known, but not kept as part of a compile, and not counted as unread; some of them are read where they belong to no compile
#: (`OUTSIDE`), and `str` is handled separately
IGNORED = NOT_MADE_LIVE | {
    "dynamo_guards", "compilation_metrics_runtime", "bwd_compilation_metrics_runtime",
    "aot_autograd_backward_compilation_metrics", "inductor_input_graph",
    "inductor_pre_grad_graph", "inductor_post_grad_graph", "graph_dump", "aot_joint_graph_fw_metadata", "rank", "stack",
    "missing_fake_kernel", "mismatched_fake_kernel", "inductor_provenance_tracking_node_mappings", "inductor_tlparse_runtime",
    "is_pure_callback", "aotautograd_cache_hit", "autotuning", "fake_kernel", "export", "ddp_splits",
    "inductor_runtime_and_tensor_meta",
}  # fmt: skip

#: read where they belong to no compile: torch.export, AOTInductor, or AOTAutograd used by itself wrote them
OUTSIDE = frozenset({
    "exported_program", "aot_forward_graph", "aot_backward_graph", "aot_joint_graph", "aot_inference_graph",
    "inductor_output_code", "graph_dump", "guard_added", "guard_added_fast", "compilation_metrics",
})  # fmt: skip
#: artifacts that are texts of a graph's later stages; they are large, so they are kept beside the report's data, not in it
STAGES = frozenset({"after_pre_grad_graph", "inductor_post_grad_graph", "fx_graph_runnable"})
#: names of other artifacts whose text is read; bytecode (names that end with _BYTECODE) and `CACHE_LOOKUPS` are read, too
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
    return name in OUTSIDE or name in ("artifact", "chromium_event")


def needs_payload(metadata: dict[str, Any]) -> bool:
    """Whether a report needs the payload of this record of a log."""
    if record_name(metadata) != "artifact":
        return is_read(metadata) and "compilation_metrics" not in metadata
    name = str(metadata["artifact"].get("name"))
    return name in _ARTIFACTS or name in STAGES or name.endswith("_BYTECODE") or name.startswith(CACHE_LOOKUPS)


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
