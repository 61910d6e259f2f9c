"""`--check=where`: what makes numbers wrong, and what helps.

It finds the stage of the compiler that makes a graph's results wrong; tries what could help, a setting of Inductor or another
formula, and offers only what does; and writes the text of an issue, with a script that shows on its own what the compiler makes
wrong.  Each trial compiles anew, without the caches on disk; nothing of it stays.  Each script is run before it is offered; it
draws its inputs from the range of the recorded ones.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any

import torch

from dynascope.compiler import compiling
from dynascope.compiler.capture.torch_private.bisector import bisect, inductor_config, inductor_setting
from dynascope.compiler.lab import check
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.trial import Trials
from dynascope.compiler.lab.fix.variations import RECORDED
from dynascope.compiler.lab.numbers.graphs import CapturedGraph, Compile, Formula, Measured
from dynascope.compiler.lab.numbers.verdict import WORSE, error_of, share_of
from dynascope.compiler.lab.recorded_call import RecordedCall
from dynascope.compiler.report import Numbers, NumbersRemedy, NumbersStage, input_name
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
        return f"{part} {number} of {name}{detail}"
    return f"{name}; setting {stage.part} differently removes it" if stage.part else name


# -- what helps ----------------------------------------------------------------------------------------------------------


#: the settings of Inductor to try, one after the other; the last one keeps a product and a sum from becoming one operation
_SETTINGS = {"fallback_random": True, "emulate_precision_casts": True, "cpp.enable_floating_point_contract_flag": "off"}


def setting_that_helps(call: RecordedCall, trials: Trials, backend: Any) -> Iterator[NumbersRemedy]:
    """The setting with which compiled and eager code agree, compiled anew for this call; if they agree without one, none."""
    with trials.eagerly() as run:
        eager = run(call, RECORDED)
    settings = [(name, value) for name, value in _SETTINGS.items() if inductor_setting(name) not in (None, value)]
    for setting in ({}, *({name: value} for name, value in settings if backend == "inductor")):
        with trials.anew(), inductor_config(**setting), trials.compiled(Plan(), backend, strict=False) as run:
            compiled = run(call, RECORDED)
        if compiled.error is None and eager.error is None and check.outcome(compiled, eager).agrees:
            change = [f"torch._inductor.config.{name} = {value!r}" for name, value in setting.items()]
            yield NumbersRemedy(change=change[0] if change else "code compiled for this call alone")
            return


def formulas_that_help(graph: CapturedGraph, name: str, compile: Compile) -> Iterator[NumbersRemedy]:
    """The formula or the precision with which this node has far smaller errors, compiled and in eager mode."""
    node = next((node for node in graph.module.graph.nodes if node.name == name), None)
    if node is None:
        return
    before = graph.cut(node).measure(lambda module: module)[0]
    with contextlib.closing(_changes(node)) as changes:
        for change, formula in changes:
            after = graph.cut(node, formula).measure(compile)[0]
            errors, own = ([error_of(value, of.exact) for value in (after.eager, after.compiled)] for of in (before, after))
            if max(map(share_of, errors)) * WORSE < share_of(error_of(before.eager, before.exact)):
                yield NumbersRemedy(change=change, eager=own[0], compiled=own[1])  # in float64, too, the formula is the better
                return


def _changes(node: Any) -> Generator[tuple[str, Formula | None]]:
    """What could help: a change in words, and the formula in place of the node's; settings are changed until the next one."""
    if (formula := _formula(node)) is not None:
        function, args, keywords = formula
        inputs = [*(input_name(str(arg)) for arg in args), *(f"{k}={v}" for k, v in keywords.items())]
        yield f"torch.{function.__name__}({', '.join(inputs)})", formula
    value = node.meta.get("example_value")
    if value is not None and value.dtype.itemsize <= 2 and node.op in ("call_function", "call_method"):
        raised = _in_float32(node.target, value.device.type)
        yield f"{raised.__name__} in float32", (raised, node.args, node.kwargs)
    with contextlib.suppress(RuntimeError):  # torch does not tell where a program uses both its old and its new settings
        cudnn: Any = torch.backends.cudnn
        if "conv" in str(node.target) and cudnn.allow_tf32:
            cudnn.allow_tf32 = False
            try:
                yield "torch.backends.cudnn.allow_tf32 = False", None
            finally:
                cudnn.allow_tf32 = True
        precision = torch.get_float32_matmul_precision()
        if precision != "highest":
            torch.set_float32_matmul_precision("highest")
            try:
                yield "torch.set_float32_matmul_precision('highest')", None
            finally:
                torch.set_float32_matmul_precision(precision)


def _in_float32(target: Any, device: str) -> Any:
    """A function that runs an operation in float32, also under autocast."""

    def raised(*args: Any, **keywords: Any) -> Any:
        args = tuple(a.float() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args)
        with torch.autocast(device, enabled=False):
            return getattr(args[0], target)(*args[1:], **keywords) if isinstance(target, str) else target(*args, **keywords)

    raised.__name__ = str(getattr(target, "__name__", target))
    return raised


def _formula(node: Any) -> Formula | None:
    """A formula with smaller errors: of E[x^2] - E[x]^2; exp(x) - 1; logarithms of 1 + x, a softmax, a sum of exponentials."""
    match _term(node, 2):
        case ("sub", _, ("exp", _, x), 1):
            return torch.expm1, (x,), {}
        case ("log", _, ("add", _, 1, x) | ("add", _, x, 1)):
            return torch.log1p, (x,), {}
        case ("log", _, ("softmax", how, x, *dims)):
            return torch.log_softmax, (x, *dims), {k: v for k, v in how.items() if k in ("dim", "dtype") and v is not None}
    match _term(node, 3):
        case ("log", _, ("sum", how, ("exp", _, x), *dims)) if dims:
            return torch.logsumexp, (x, *dims), how
        case ("sub", _, ("mean", how, ("squared", _, x), *dims), ("squared", _, ("mean", *mean))) if [how, x, *dims] == mean:
            return torch.var, (x, *dims[:1]), {**how, "correction": 0}
    return None


def _term(node: Any, depth: int) -> Any:
    """The name of what a node calls, its keywords and its arguments: of these, nodes are terms too, but for the deepest."""
    if not depth or not isinstance(node, torch.fx.Node) or not node.op.startswith("call_"):
        return node
    name, args = str(getattr(node.target, "__name__", node.target)), node.args
    if name == "square" or (name == "mul" and args[:1] == args[1:]) or (name == "pow" and args[1:] == (2,)):
        name, args = "squared", args[:1]
    return name, dict(node.kwargs), *(_term(arg, depth - 1) for arg in args)


# -- the text of an issue ------------------------------------------------------------------------------------------------


_SCRIPT = """import torch
{imports}

{function}


def run(function, dtype=None):
    torch.manual_seed(0)
    inputs = [
        {inputs}
    ]
    inputs = [x.to(dtype or x.dtype) if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs]
{run}

exact, eager = run(f, torch.float64), run(f)
compiled = run(torch.compile(f, backend={backend!r}))
for name, values in (("eager", eager), ("compiled", compiled)):
    errors = [((x - e).abs().max() / e.abs().max()).item() for x, e in zip(values, exact)]
    print(f"{{name}} is off by {{max(errors):.1e}} of the largest value in float64")
"""
#: names that FX uses in code -> their modules
_IMPORTS = {"inf": "math", "nan": "math", "device": "torch"}
_FORWARD = "    return function(*inputs)[:1]"
_BACKWARD = """    inputs = [x.requires_grad_() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs]
    leaves = [x for x in inputs if torch.is_tensor(x) and x.requires_grad]
    return torch.autograd.grad(function(*inputs)[0].sum(), leaves)"""


def issue_text(graph: CapturedGraph, found: Numbers, backend: str, unit: float) -> str:
    """The text; "" if no script shows it."""
    if found.origin is None or found.stage is None:
        return ""
    node = next(node for node in graph.module.graph.nodes if node.name == found.origin.node)
    for smaller in (graph.alone(node), graph.cut(node)):
        script = _script(smaller, backend, found.origin.is_backward)
        namespace, printed = dict[str, Any](), io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(script, "<script of an issue>", "exec"), namespace)
            shown = map(Measured, *(namespace[who] for who in ("eager", "compiled", "exact")))
            if any(values.is_wrong(found.verdict, unit) for values in shown):
                said = f"**Compiled code gives a wrong result**; it comes from {stage_words(found.stage)}."
                versions = f"Versions: torch {torch.__version__}"
                return "\n\n".join([said, f"```python\n{script}```", f"It prints:\n\n```\n{printed.getvalue()}```", versions])
        except Exception:  # this one does not show it
            continue
    return ""


def _script(graph: CapturedGraph, backend: str, is_backward: bool) -> str:
    """The script; "" if the graph holds parameters or constants, or has inputs that cannot be drawn."""
    made = graph.module.graph.python_code("self", verbose=False)
    names = [name for name in made.globals if name != "torch" and re.search(rf"\b{name}\b", made.src)]
    inputs = [*map(_drawn, graph.inputs)]
    if re.search(r"\bself\.", made.src) or not all(inputs) or not _IMPORTS.keys() >= set(names):
        return ""
    function = re.sub(r";  \w+ = None(  #.*)?$", "", made.src.strip(), flags=re.M).replace("def forward(self, ", "def f(")
    return _SCRIPT.format(
        imports="".join(f"from {_IMPORTS[name]} import {name}\n" for name in names),
        function=function, inputs=",\n        ".join(inputs), backend=backend,
        run=_BACKWARD if is_backward else _FORWARD,
    )  # fmt: skip


def _drawn(value: Any) -> str:
    """An expression that draws a tensor from the range of this one; "" if there is none."""
    if not isinstance(value, torch.Tensor):
        return repr(value) if isinstance(value, (int, float)) else ""
    if type(value) is not torch.Tensor or not value.numel() or not value.isfinite().all():
        return ""
    shape, device = tuple(value.shape), "" if value.device.type == "cpu" else f", device={value.device.type!r}"
    low, high = value.min().item(), value.max().item()
    if value.is_floating_point():
        return f"torch.empty({shape}, dtype={value.dtype}{device}).uniform_({low:.6g}, {high:.6g})"
    return f"torch.randint({int(low)}, {int(high) + 1}, {shape}{device}).to({value.dtype})"
