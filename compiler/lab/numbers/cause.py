"""`--check=where`: finds the stage of the compiler that makes a graph's results wrong, and tries settings that could help.

Each trial compiles anew, without the caches on disk; nothing of it stays.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from dynascope.compiler import compiling
from dynascope.compiler.capture.torch_private.bisector import bisect, inductor_config, inductor_setting
from dynascope.compiler.lab import check
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.trial import Trials
from dynascope.compiler.lab.fix.variations import recorded
from dynascope.compiler.lab.numbers.graphs import CapturedGraph, Compile
from dynascope.compiler.lab.numbers.verdict import WORSE, error_of, share_of
from dynascope.compiler.lab.recorded_call import RecordedCall
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
#: the settings of Inductor to try, one after the other; the last one keeps a product and a sum from becoming one operation
_SETTINGS = {
    "fallback_random": True, "emulate_precision_casts": True, "cpp.enable_floating_point_contract_flag": "off",
}  # fmt: skip


def compiler_of(settings: Settings) -> Compile:
    """A function that compiles a graph's module; always anew, as Dynamo keeps what it has compiled for a code object."""
    import torch

    return lambda module: compiling.entry_point(torch.fx.GraphModule(module, module.graph), settings)


def stage_of(is_right: Callable[[Compile], bool], settings: Settings) -> NumbersStage | None:
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


# -- what helps --------------------------------------------------------------------------------------------------------


def settings_that_help(call: RecordedCall, trials: Trials, backend: Any) -> Iterator[str]:
    """The first setting of Inductor with which compiled and eager code agree, as a statement."""
    if backend != "inductor":
        return
    with trials.eagerly() as run:
        eager = run(call, recorded())
    for name, value in _SETTINGS.items():
        if inductor_setting(name) in (None, value):
            continue
        with trials.anew(), inductor_config(**{name: value}), trials.compiled(Plan(), backend, strict=False) as run:
            compiled = run(call, recorded())
        if compiled.error is None and eager.error is None and check.outcome(compiled, eager).agrees:
            yield f"torch._inductor.config.{name} = {value!r}"
            return


def full_precision_that_helps(graph: CapturedGraph, name: str, compile: Compile) -> Iterator[str]:
    """The setting without which products of float32 are less precise, if this node has far smaller errors with it."""
    import torch

    part = next((graph.cut(node) for node in graph.module.graph.nodes if node.name == name), None)
    if part is None:
        return
    before, cudnn = part.measure(lambda module: module)[0], torch.backends.cudnn
    convolutions, products = functools.partial(setattr, cudnn, "allow_tf32"), torch.set_float32_matmul_precision
    with contextlib.suppress(RuntimeError):  # torch does not tell where a program uses both its old and its new settings
        settings: list[tuple[str, Any, Any, Callable[[Any], None]]] = [
            ("torch.backends.cudnn.allow_tf32 = False", cudnn.allow_tf32, False, convolutions),
            ("torch.set_float32_matmul_precision('highest')", torch.get_float32_matmul_precision(), "highest", products),
        ]
        for statement, now, full, write in settings:
            if now == full:
                continue
            write(full)
            try:
                after = part.measure(compile)[0]
            finally:
                write(now)
            errors = [share_of(error_of(value, before.exact)) for value in (after.eager, after.compiled)]
            if max(errors) * WORSE < share_of(error_of(before.eager, before.exact)):
                yield statement
                return
