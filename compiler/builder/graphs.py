"""A captured graph and what became of it: in DDP's optimizer, AOTAutograd, the backend, their caches, and CUDA graphs.

Autograd hands all gradients of one graph to DDP at once, when the graph's backward ends.  So DDP's optimizer splits a graph at
the limits of DDP's buckets of gradients: it goes through the graph backwards, and begins another part when the parameters of a
part have as many bytes as a bucket takes.  The gradients of a bucket are then reduced while the backward of earlier parts still
runs.

The forward of DDP, and the hooks with which FSDP gathers parameters, are not meant to be compiled: Dynamo breaks there, so that
the module inside becomes a graph of its own.  If nothing else was in the frame, such a break cuts no graph.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container
from typing import Any

from dynascope.compiler.builder import graph_parser
from dynascope.compiler.builder.compile_records import CompileRecord
from dynascope.compiler.report import Break, Graph, GraphSplit, Kernel, Node, Report, byte_text, label, plural
from dynascope.compiler.source.lines import CellResolver
from dynascope.compiler.source.origin import in_torch

_SOURCE_NODES = re.compile(
    r"^\s*(?:#|//) (?:Topologically Sorted|Unsorted) Source Nodes: \[(?P<nodes>[^\]]*)\], Original ATen: \[(?P<ops>[^\]]*)\]"
)
_DEFINED = re.compile(r"^(?P<name>\w+) = async_compile\.\w+\(")
_LISTED = re.compile(r"[^\s,]+")
_CALLED = re.compile(
    r"^\s+(?:\w+ = )?(?P<name>extern_kernels\.\w+|torch\.ops\.[\w.]+|(?:cpp|triton|halide|mps|cutlass)_\w+)(?:\.run)?\("
)

#: a line with at least this many calls of one function in a graph was most likely in a loop
_OFTEN = 8

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
    graph.splits, graph.bucket_limits = splits(record), record.bucket_limits if record.splits else []
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
        if (source := _SOURCE_NODES.match(line)) is not None:
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
        sentences.append(split_note(record))
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


#: wrapper of a module -> the files of its code
_WRAPPERS = {
    "DistributedDataParallel": re.compile(r"[\\/]torch[\\/]nn[\\/]parallel[\\/]distributed\.py$"),
    "FSDP": re.compile(r"[\\/]torch[\\/]distributed[\\/]fsdp[\\/]"),
}
#: in the explanation of DDP's break in contextlib: the function of DDP that contextlib calls there, and that Dynamo skips
_SKIPPED = "`DistributedDataParallel._inside_ddp_forward`"
#: Dynamo's name of an input that is a parameter of a module
_PARAMETER = re.compile(r"_parameters_\w+$")


def splits(record: CompileRecord) -> list[GraphSplit]:
    """The parts of a graph that was split, with the parameters of each."""
    for split in record.splits:
        try:
            inputs = [n for n in graph_parser.read(split.code)[0] if n.op == "placeholder"]
        except ValueError:
            continue  # the text is damaged: the parameters are unknown
        counted = record.bucketed if record.bucket_limits else {n.name: _bytes(n) for n in inputs if _PARAMETER.search(n.name)}
        sizes = {n.name: counted[n.name] for n in inputs if n.name in counted}
        split.parameters = list(sizes)
        if counted and None not in sizes.values():
            split.parameter_bytes = sum(filter(None, sizes.values()))
    return record.splits


def _bytes(node: Node) -> int | None:
    """Bytes of a tensor; None if its size is symbolic, or its shape or dtype is unknown."""
    bits = 8 if node.dtype == "bool" else int((re.findall(r"\d+", node.dtype or "") or [0])[0])
    sizes = [size for size in node.shape or () if isinstance(size, int)]
    if node.shape is None or len(sizes) < len(node.shape) or bits < 8:
        return None
    return bits // 8 * math.prod(sizes)


def split_note(record: CompileRecord) -> str:
    """A sentence on the split: the number of parts, their sizes, and the limits of the buckets."""
    sizes = [split.parameter_bytes for split in record.splits]
    words = f"DDP's optimizer split this graph into {len(sizes)}, one for each bucket of gradients"
    if None not in sizes:
        words += f", with parameters of {', '.join(byte_text(size or 0) for size in sizes)}"
    if record.bucket_limits:
        first, limit = map(byte_text, record.bucket_limits)
        limits = first if first == limit else f"{limit}, or {first} for the one that the backward fills first"
        words += f"; a bucket is full at {limits} (bucket_cap_mb)"
    return words


def take_wrapper_breaks(report: Report, breaks: list[Break], ignored: Container[str]) -> list[Break]:
    """Move the graph breaks that DDP and FSDP make by design to `wrapper_breaks`, with a note; returns the others.

    `ignored`: ids of frames that are not the user's and have no graph.  A break in any other frame cuts a graph of the user's.
    """
    for wrapper in _WRAPPERS:
        own = [b for b in breaks if _wrapper(b) == wrapper and all(hit.frame in ignored for hit in b.hits)]
        if own:
            report.wrapper_breaks += own
            places = ", ".join(f"{label(b.file, b.cell)}:{b.line}" for b in own)
            report.notes.append(
                f"{wrapper}'s own code has {plural(len(own), 'graph break')} ({places}): by design, it runs eagerly around "
                "the module and cuts none of the module's graphs"
            )
    return [b for b in breaks if b not in report.wrapper_breaks]


def _wrapper(broken: Break) -> str | None:
    """The wrapper whose code a break is in; None: in no wrapper."""
    if _SKIPPED in broken.explanation:
        return "DistributedDataParallel"
    return next((name for name, files in _WRAPPERS.items() if files.search(broken.file)), None)


def unrolled(nodes: list[Node], cell_of: CellResolver) -> list[str]:
    """One sentence for each line outside torch that occurs many times in a graph, because Dynamo unrolls loops."""
    times = Counter((n.file, n.line, n.target) for n in nodes if n.file and n.line and n.op.startswith("call_"))
    most: dict[tuple[str, int], int] = {}
    for (file, line, _), count in times.items():
        if file and line and count >= _OFTEN and not in_torch(file):
            most[(file, line)] = max(count, most.get((file, line), 0))
    return [
        f"{label(file, cell_of(file))}:{line} occurs {count} times in this graph: Dynamo unrolls loops"
        for (file, line), count in most.items()
    ]
