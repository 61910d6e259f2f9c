"""What DDP and FSDP do to a compile: DDP's optimizer splits graphs, and the wrapper code of both has graph breaks.

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
from collections.abc import Container

from dynascope.compiler.builder import graph_parser
from dynascope.compiler.builder.compile_records import CompileRecord
from dynascope.compiler.report import Break, GraphSplit, Node, Report, byte_text, label, plural

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
