"""What happened to a graph after Dynamo: in DDP's optimizer, AOTAutograd, the backend, their caches, and CUDA graphs."""

from __future__ import annotations

import re
from typing import Any

from dynascope.compiler.builder import data_parallel
from dynascope.compiler.builder.compile_records import CompileRecord
from dynascope.compiler.report import Graph, Kernel

_SOURCE = re.compile(
    r"^\s*(?:#|//) (?:Topologically Sorted|Unsorted) Source Nodes: \[(?P<nodes>[^\]]*)\], Original ATen: \[(?P<ops>[^\]]*)\]"
)
_DEFINED = re.compile(r"^(?P<name>\w+) = async_compile\.\w+\(")
_LISTED = re.compile(r"[^\s,]+")
_CALLED = re.compile(
    r"^\s+(?:\w+ = )?(?P<name>extern_kernels\.\w+|torch\.ops\.[\w.]+|(?:cpp|triton|halide|mps|cutlass)_\w+)(?:\.run)?\("
)

_PHASES = {
    "dynamo_cumulative_compile_time_us": "dynamo",
    "aot_autograd_cumulative_compile_time_us": "AOTAutograd",
    "backend_compile_time_s": "backend",
    "inductor_compile_time_s": "inductor",
    "code_gen_time_s": "code generation",
    "inductor_cumulative_compile_time_us": "inductor",
    "triton_compile_time_us": "triton",
}


def add_stages(record: CompileRecord, graph: Graph) -> None:
    """Fill in the graph's later stages; a backward that is not compiled yet is pending."""
    aot = {name: "\n\n".join(texts) for name, texts in record.aot_graphs.items()}  # several texts if the graph was split
    graph.aot_forward = aot.get("aot_forward_graph") or aot.get("aot_inference_graph")
    graph.aot_backward = aot.get("aot_backward_graph")
    graph.splits, graph.bucket_limits = data_parallel.splits(record), record.bucket_limits if record.splits else []
    graph.backend_code = "\n\n".join(record.output_codes) or None
    graph.kernels = kernels(graph.backend_code or "")
    graph.caches = {stage: ", ".join(answers) for stage, answers in record.caches.items()}
    if graph.caches:
        graph.from_cache = "hit" in graph.caches.values()
    if graph.aot_backward is not None:
        forwards = len(record.aot_graphs.get("aot_forward_graph", ()))  # each part of a split graph has code of its own
        compiled = bool(record.backward_metrics) or len(record.output_codes) > max(1, forwards)
        graph.backward = "compiled" if compiled else "pending"
        if graph.from_cache and graph.backward != "pending":
            graph.backward = "from cache"


def kernels(code: str) -> list[Kernel]:
    """The kernels that Inductor's code calls, with what comments in the code say about each (nothing about C++ kernels)."""
    defined: dict[str, re.Match[str]] = {}
    found: dict[tuple[str, str], Kernel] = {}
    comment: re.Match[str] | None = None
    for line in code.splitlines():
        if (source := _SOURCE.match(line)) is not None:
            comment = source
        elif (made := _DEFINED.match(line)) is not None:
            if comment is not None:
                defined[made["name"]] = comment
            comment = None
        elif (called := _CALLED.match(line)) is not None:
            said, comment = comment or defined.get(called["name"]), None
            ops, nodes = (said["ops"], said["nodes"]) if said is not None else ("", "")
            kernel = found.get((called["name"], nodes))
            if kernel is None:
                kernel = Kernel(name=called["name"], count=0, ops=_LISTED.findall(ops), nodes=_LISTED.findall(nodes))
                found[called["name"], nodes] = kernel
            kernel.count += 1
    return list(found.values())


def stage_notes(record: CompileRecord) -> list[str]:
    """Sentences about a split by DDP's optimizer, and about CUDA graphs that were skipped."""
    sentences = []
    if record.splits:
        sentences.append(data_parallel.split_note(record))
    for metrics, which in ((record.metrics, ""), (record.backward_metrics, " of the backward")):
        reason = str(metrics.get("cudagraph_skip_reason") or "").split("Found from", 1)[0]
        words = re.sub(r"^(?:skipping cudagraphs due to )+", "", reason.strip()).rstrip(" .")
        if words:
            sentences.append(f"CUDA graphs{which} were skipped: {words}")
    return sentences


def compile_seconds(metrics: dict[str, Any]) -> float | None:
    """Seconds of the whole compile; None: unknown.

    torch 2.6 writes only Dynamo's cumulative time, which covers the whole compile.
    """
    seconds, microseconds = metrics.get("entire_frame_compile_time_s"), metrics.get("dynamo_cumulative_compile_time_us")
    return seconds if seconds is not None or microseconds is None else microseconds / 1e6


def metric_seconds(metrics: dict[str, Any]) -> dict[str, float]:
    """Seconds of each phase of a compile, as far as the metrics have them; a phase includes those that run inside it."""
    seconds: dict[str, float] = {}
    for name, phase in _PHASES.items():
        value = metrics.get(name)
        if value and phase not in seconds:
            seconds[phase] = value / 1e6 if name.endswith("_us") else float(value)
    return seconds
