"""Tabs of a graph's detail on what the backend made of the graph: kernels with source lines, and texts of later stages.

Promises: a kernel has source lines only if the compiler's own comment names the nodes that it computes; if the
texts of a report are long in total, they are not in the model, and a view in a notebook fetches a text when it is opened.
"""

from __future__ import annotations

from dynascope.compiler.report import Graph, Kernel, Report, plural
from dynascope.widgets.labels.words import Places, printable, shorten
from dynascope.widgets.wire import Part

#: one text has at most this many characters (a backend's code can have megabytes)
TEXT_LIMIT = 200_000
#: the model includes the texts of a report if they have at most this many characters together
_WHOLE = 100_000
#: one list has at most this many rows
_ROWS = 500
_NAMES = {
    "after_pre_grad_graph": "Pre-grad graph", "inductor_post_grad_graph": "Post-grad graph",
    "fx_graph_runnable": "Runnable script",
}  # fmt: skip


def stage_parts(report: Report, graph: Graph, places: Places) -> list[Part]:
    """The tabs on a graph's kernels and on the texts of its later stages."""
    parts: list[Part] = []
    if graph.kernels:
        at = {n.name: places.at(n.file, n.line) for n in graph.nodes if n.file is not None and n.line is not None}
        rows = [_kernel(kernel, at) for kernel in graph.kernels[:_ROWS]]
        parts.append({"key": "kernels", "name": f"Kernels ({len(graph.kernels)})", "kind": "list", "body": rows})
    total = sum(len(t) for texts in report.stage_texts.values() for several in texts.values() for t in several)
    stages = report.stage_texts.get(graph.id, {})
    for stage, name in _NAMES.items():
        for number, text in enumerate(stages.get(stage, ())):
            body = {"graph": graph.id, "stage": stage, "number": number}
            part: Part = {"key": f"{stage}{number or ''}", "name": name + (f" {number + 1}" if number else ""),
                          "kind": "stage", "body": body}  # fmt: skip
            if total <= _WHOLE:
                part["body"] = {**body, "text": printable(text, TEXT_LIMIT)}
            parts.append(part)
    return parts


def _kernel(kernel: Kernel, at: dict[str, str]) -> list[str]:
    """The row of a kernel: its name, its source lines, and the ops that it computes."""
    lines = list(dict.fromkeys(at[node] for node in kernel.nodes if node in at))
    words = ", ".join(lines[:6]) + (f" and {plural(len(lines) - 6, 'more line')}" if len(lines) > 6 else "")
    ops = ", ".join(kernel.ops)
    times = f" ({kernel.count} times)" if kernel.count > 1 else ""
    fused = f"fuses {ops}" if ops and "_fused_" in kernel.name else ops
    return [shorten(kernel.name, 120) + times, printable(words, 400), printable(fused, 400), ""]
