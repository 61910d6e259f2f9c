"""`--check=where`: finds the stage of the compiler that makes a graph's results wrong, and tries what could help.

Each trial compiles anew, without the caches on disk; nothing of it stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dynascope.compiler import compiling
from dynascope.compiler.capture.torch_private.bisector import bisect
from dynascope.compiler.report import NumbersStage
from dynascope.compiler.settings import Settings

_STAGES = {
    "eager": "Dynamo's capture of the program", "aot_eager": "AOTAutograd's tracing",
    "aot_eager_decomp_partition": "decompositions and the partitioner", "inductor": "Inductor",
}  # fmt: skip
_PARTS = {
    "decomposition": "decomposition", "pre_grad_passes": "pre-grad pass", "joint_graph_passes": "joint pass",
    "post_grad_passes": "post-grad pass", "lowerings": "lowering", "cudagraphs": "CUDA graph",
}  # fmt: skip


def compiler_of(settings: Settings) -> Callable[[Any], Callable[..., Any]]:
    """A function that compiles a graph's module; always anew, as Dynamo keeps what it has compiled for a code object."""
    return lambda module: compiling.entry_point(torch.fx.GraphModule(module, module.graph), settings)


def stage_of(is_right: Callable[[Callable[[Any], Callable[..., Any]]], bool], settings: Settings) -> NumbersStage | None:
    """The stage that makes it wrong; `is_right`: whether the result is right if modules are compiled with this function."""

    if settings.backend not in _STAGES:
        is_captured = is_right(compiler_of(settings.replace(backend="eager", mode=None, options={})))
        return NumbersStage(backend=str(settings.to_dict()["backend"])) if is_captured else NumbersStage(backend="eager")
    found = bisect(lambda: is_right(compiler_of(settings)), str(settings.backend))
    if found is None:
        return None
    backend, part, number, detail = found
    return NumbersStage(backend=backend, part=part.removeprefix(f"{backend}_"), number=number, detail=detail)


def stage_words(stage: NumbersStage) -> str:
    """The stage, as the end of a sentence."""
    name = _STAGES.get(stage.backend, f"the backend {stage.backend}")
    if stage.part in _PARTS:
        part, number = _PARTS[stage.part], (stage.number or 0) + 1
        if stage.part == "lowerings":
            return f"{name}'s lowering of `{stage.detail or number}`"
        detail = f" ({stage.detail})" if stage.detail else ""
        return f"the {number}{_ENDINGS.get(number if number < 20 else number % 10, 'th')} {part} of {name}{detail}"
    if stage.part:
        return f"{name}; setting {stage.part} differently removes it"
    return name


_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
