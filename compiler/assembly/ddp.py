"""What DistributedDataParallel does to a compile: its optimizer splits graphs, and its own forward has graph breaks.

Autograd hands all gradients of one graph to DDP at once, at its end.  So DDP's optimizer splits a graph at the limits of DDP's
buckets of gradients: it goes through the graph backwards, and begins another part when the parameters of a part have as many
bytes as a bucket takes.  The gradients of a bucket are then reduced while earlier parts still compute theirs.

DDP's forward is not meant to be compiled as a whole.  It breaks where it prepares its reducer, and at a context manager that
Dynamo does not trace, so that the module inside becomes a graph of its own.  These breaks cut no graph.
"""

from __future__ import annotations

import re
from collections.abc import Container

from dynascope.compiler.assembly import graph_text
from dynascope.compiler.assembly.compile_records import CompileRecord
from dynascope.compiler.report import Break, GraphSplit, Node, Report, byte_text, label, plural

#: DDP's own module, and the function in it that Dynamo skips, which contextlib calls
_MODULE = re.compile(r"[\\/]torch[\\/]nn[\\/]parallel[\\/]distributed\.py$")
_SKIPPED = "`DistributedDataParallel._inside_ddp_forward`"
#: Dynamo's name of an input that is a parameter of a module
_PARAMETER = re.compile(r"_parameters_\w+$")


def splits(record: CompileRecord) -> list[GraphSplit]:
    """The parts of a graph that was split, with the parameters of each."""
    for split in record.splits:
        try:
            inputs = [n for n in graph_text.read(split.code)[0] if n.op == "placeholder"]
        except ValueError:
            continue  # it is damaged: its parameters are unknown
        counted = record.bucketed if record.bucket_limits else {n.name: _bytes(n) for n in inputs if _PARAMETER.search(n.name)}
        sizes = {n.name: counted[n.name] for n in inputs if n.name in counted}
        split.parameters = list(sizes)
        if counted and None not in sizes.values():
            split.parameter_bytes = sum(filter(None, sizes.values()))
    return record.splits


def _bytes(node: Node) -> int | None:
    """Bytes of a tensor; None if its size is symbolic or its type unknown."""
    bits = 8 if node.dtype == "bool" else int((re.findall(r"\d+", node.dtype or "") or [0])[0])
    total = bits // 8
    for size in node.shape or ():
        if not isinstance(size, int):
            return None
        total *= size
    return total or None if node.shape is not None else None


def split_note(record: CompileRecord) -> str:
    """A sentence on the split: into how many, how large, and why there."""
    sizes = [split.parameter_bytes for split in record.splits]
    words = f"DDP's optimizer split this graph into {len(sizes)}, one for each bucket of gradients"
    if None not in sizes:
        words += f", with parameters of {', '.join(byte_text(size or 0) for size in sizes)}"
    if record.bucket_limits:
        first, limit = map(byte_text, record.bucket_limits)
        limits = first if first == limit else f"{limit}, or {first} for the one that the backward fills first"
        words += f"; a bucket is full at {limits} (bucket_cap_mb)"
    return words


def take_wrapper_breaks(report: Report, breaks: list[Break], wrappers: Container[str]) -> list[Break]:
    """Move the graph breaks of DDP's own forward to `wrapper_breaks`; returns the others.  `wrappers`: ignored frames."""
    report.wrapper_breaks = [b for b in breaks if _in_wrapper(b) and all(hit.frame in wrappers for hit in b.hits)]
    if report.wrapper_breaks:
        places = ", ".join(f"{label(b.file, b.cell)}:{b.line}" for b in report.wrapper_breaks)
        report.notes.append(
            f"DistributedDataParallel's own forward has {plural(len(report.wrapper_breaks), 'graph break')} ({places}): by "
            "design it runs eagerly around the module, whose graphs this does not cut"
        )
    return [b for b in breaks if b not in report.wrapper_breaks]


def _in_wrapper(broken: Break) -> bool:
    in_module = all(_MODULE.search(entry.file) for entry in broken.stack)
    return (in_module and bool(broken.stack)) or _SKIPPED in broken.explanation
