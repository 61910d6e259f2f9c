"""Completes a report when a backward graph is compiled after the recording of its forward has ended.

Inductor compiles a backward graph at the first `.backward()`, perhaps in a later cell.  The recording that sees this compile
adds the backward graph to the report of the forward, which is referenced only weakly.
"""

from __future__ import annotations

import weakref

from dynascope.compiler.builder.graphs import kernels
from dynascope.compiler.capture.torch_private import caches
from dynascope.compiler.report import Report, plural
from dynascope.compiler.report import seconds as seconds_text

#: compile id -> (its generation, as in `caches.generation`; the report; id of the graph that waits for its backward)
_pending: dict[str, tuple[object, weakref.ref[Report], str]] = {}


def remember(report: Report) -> None:
    """Remember which of a report's graphs wait for their backward."""
    for graph in report.graphs:
        if graph.backward == "pending":
            compile_id = report.frame(graph.frame).compile_id
            if compile_id is not None:
                _pending[compile_id] = (caches.generation(), weakref.ref(report), graph.id)


def complete(report: Report) -> None:
    """Add the late backward graphs of `report` to the reports of their forwards, and their time and a note to `report`."""
    late, known = report.late_backwards, 0
    for backward in late:
        generation, reference, graph_id = _pending.pop(backward.compile_id, (None, None, ""))
        # compile ids restart with torch._dynamo.reset(), so the same id in another generation is another graph
        earlier = reference() if reference is not None and generation is caches.generation() else None
        if earlier is None:
            continue
        graph = earlier.graph(graph_id)
        graph.backward = "from cache" if backward.from_cache else "compiled"
        graph.backend_code = "\n\n".join(filter(None, [graph.backend_code, backward.code])) or None
        graph.kernels = kernels(graph.backend_code or "")
        known += 1
    if late:
        seconds = sum(backward.seconds or 0.0 for backward in late)
        took = "" if None in [backward.seconds for backward in late] else f" in {seconds_text(seconds)}"
        whose = "now shown in an earlier report" if known == len(late) else "of code compiled before this recording"
        whose += f", {known} of them now shown in an earlier report" if 0 < known < len(late) else ""
        report.notes.append(f"{plural(len(late), 'backward graph')} compiled{took}: {whose}.")
        report.summary.compile_seconds = round(report.summary.compile_seconds + seconds, 6)
