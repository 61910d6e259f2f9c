"""`--check=where`: the text of an issue, with a script that shows on its own what the compiler makes wrong.

Each script is run before it is offered.  It draws its inputs from the range of the recorded ones.
"""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import torch

from dynascope.compiler.lab.numbers.graphs import CapturedGraph, Measured
from dynascope.compiler.lab.numbers.stage import stage_words
from dynascope.compiler.report import Numbers

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
