"""Made programs through `explain(f, fix=True)`: what is proved holds under fullgraph on inputs that the search has not seen.

`DYNASCOPE_EXAMPLES=300 pytest --hypothesis-show-statistics` draws 300 programs and says how many of them were fixed.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import torch
from example_counts import examples
from hypothesis import HealthCheck, Phase, assume, event, given, settings
from notebook import Notebook

sys.path.insert(0, str(Path(__file__).parent.parent / "fixes"))
from harness import arguments, imported, outcome, quiet, same
from test_rewrites import Made, programs

import dynascope

RECORDED = "torch.linspace(-1, 2, 4)"
NEW = ("torch.linspace(-3, 1, 4)", "torch.tensor([2., -0.5, 0.25, 0.])", "-torch.ones(4) * 9", "torch.ones(7) / 3")
#: said of fixes that hold only where no gradients are asked for
NO_GRADIENTS = "No gradients are asked for"
WITH_GRADIENT = ("torch.linspace(-2, 3, 4).requires_grad_()",)


@settings(
    max_examples=examples(2),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(programs())
def test_proved_fixes_hold_on_new_inputs(made: Made) -> None:
    assume(not outcome(made.text, RECORDED).error)
    with imported(made.text) as module, quiet():
        report = dynascope.explain(module.f, backend="eager", fix=True, fix_seconds=120)(*arguments(RECORDED))
        found = report.fix_set
        text = report.live_fixes.plan.texts.get(module.__file__, made.text)
    assume(report.breaks)
    assert found is not None
    if not found.fixes:
        event("nothing is proved" if found.is_complete else "cut short")
        return
    event("no break remains" if not found.breaks_after else "fewer breaks, or more is captured")
    chosen = [x for x in report.fixes or () if x.chosen]
    inputs = NEW if any(NO_GRADIENTS in x.assumption for x in chosen) else NEW + WITH_GRADIENT
    options = {"backend": "aot_eager", "fullgraph": not found.breaks_after}
    torch._dynamo.reset()
    wrong = same(text, made.text, inputs, "RuntimeError", dict(found.settings), **options)
    assert not wrong, f"{[x.title for x in chosen]}\n{made.text}\n{text}\n{wrong}"


HEAD, RETURNED = "import torch\n\ndef f(x):\n", "y, z * 1\n"


@settings(
    max_examples=examples(1),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    deadline=None,
)
@given(programs())
def test_proved_fixes_of_a_cell_hold_on_new_inputs(made: Made) -> None:
    """The body of each program as a cell; the fixed cell as a body again."""
    whole = made.text.replace("\r\n", "\n")
    body, _, _ = whole.removeprefix(HEAD).rpartition("    return ")
    assume("return" not in body and not outcome(whole, RECORDED).error)
    cell, setup = textwrap.dedent(body) + RETURNED, f"import torch\nx = {RECORDED}"
    notebook = Notebook()
    plain = notebook.run(setup, cell)
    with quiet():
        done = notebook.run(setup, cell, "%%compile --fix --fix-seconds 120 --backend eager --view none")
    assert (done.names, done.same) == (plain.names, plain.same)
    report = dynascope.last()
    found = report.fix_set
    assert found is not None
    assume(report.breaks)
    if not found.fixes:
        event("nothing is proved" if found.is_complete else "cut short")
        return
    event("no break remains" if not found.breaks_after else "fewer breaks, or more is captured")
    fixed = next(iter(report.live_fixes.plan.texts.values()), cell)
    lines = [line for line in fixed.removesuffix(RETURNED).splitlines() if not line.startswith(("# %%compile", "import torch"))]
    text = HEAD + textwrap.indent("\n".join(lines), "    ") + f"\n    return {RETURNED}"
    chosen = [x for x in report.fixes or () if x.chosen]
    # a tensor that is printed names the function of its gradient, which is another one when compiled
    no_gradients = any(NO_GRADIENTS in x.assumption for x in chosen) or any(f"print({name})" in body for name in "xyz")
    inputs = NEW if no_gradients else NEW + WITH_GRADIENT
    torch._dynamo.reset()
    options = {"backend": "aot_eager", "fullgraph": not found.breaks_after}
    wrong = same(text, whole, inputs, "RuntimeError", dict(found.settings), **options)
    assert not wrong, f"{[x.title for x in chosen]}\n{cell}\n{text}\n{wrong}"
