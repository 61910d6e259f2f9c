"""What the stages after Dynamo made of a graph: AOTAutograd, the backend, their caches, DDP's optimizer, CUDA graphs.

Pure functions over a draft.
"""

from __future__ import annotations

import re
from typing import Any

from dynascope.compiler.assembly.compile_records import Draft
from dynascope.compiler.report import Graph, GraphSplit

_PHASES = {
    "dynamo_cumulative_compile_time_us": "dynamo",
    "aot_autograd_cumulative_compile_time_us": "AOTAutograd",
    "backend_compile_time_s": "backend",
    "inductor_compile_time_s": "inductor",
    "code_gen_time_s": "code generation",
    "inductor_cumulative_compile_time_us": "inductor",
    "triton_compile_time_us": "triton",
}


def tell(draft: Draft, graph: Graph) -> None:
    """Fill in the graph's later stages; a backward that is not compiled yet is pending."""
    aot = {name: "\n\n".join(texts) for name, texts in draft.aot.items()}  # several, where the graph was split
    graph.aot_forward = aot.get("aot_forward_graph") or aot.get("aot_inference_graph")
    graph.aot_backward = aot.get("aot_backward_graph")
    graph.splits = [GraphSplit(**split) for split in draft.splits]
    graph.backend_code = "\n\n".join(draft.output_codes) or None
    graph.caches = _caches(draft)
    if graph.caches:
        graph.from_cache = "hit" in graph.caches.values()
    if graph.aot_backward is not None:
        compiled = bool(draft.backward_metrics) or len(draft.output_codes) > 1
        graph.backward = "compiled" if compiled else "pending"
        if graph.from_cache and graph.backward != "pending":
            graph.backward = "from cache"


def _caches(draft: Draft) -> dict[str, str]:
    """{"aot" | "fx": "hit" | "miss" | "bypass"}; where a graph was looked up in parts, each answer once."""
    found: dict[str, list[str]] = {}
    for name in draft.artifacts:
        stage, _, verdict = name.partition("_cache_")
        if verdict:
            found.setdefault("aot" if stage == "aotautograd" else "fx", []).append(verdict)
    return {stage: ", ".join(verdicts) for stage, verdicts in found.items()}


def notes(draft: Draft) -> list[str]:
    """Sentences on what DDP's optimizer did, and on what CUDA graphs did not."""
    found = []
    if draft.splits:
        found.append(f"DDP's optimizer split this graph into {len(draft.splits)}, one for each bucket of gradients")
    for metrics, which in ((draft.metrics, ""), (draft.backward_metrics, " of the backward")):
        reason = str(metrics.get("cudagraph_skip_reason") or "").split("Found from", 1)[0]
        words = re.sub(r"^(?:skipping cudagraphs due to )+", "", reason.strip()).rstrip(" .")
        if words:
            found.append(f"CUDA graphs{which} were skipped: {words}")
    return found


def phases(metrics: dict[str, Any]) -> dict[str, float]:
    """Seconds that each phase of a compile took, as far as the metrics tell."""
    found: dict[str, float] = {}
    for name, phase in _PHASES.items():
        value = metrics.get(name)
        if value and phase not in found:
            found[phase] = value / 1e6 if name.endswith("_us") else float(value)
    return found
