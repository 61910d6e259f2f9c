"""Made programs through `explain(f, fix=True)`: what is proved holds under fullgraph on inputs that the search has not seen.

`DYNASCOPE_EXAMPLES=300 pytest --hypothesis-show-statistics` draws 300 programs and says how many of them were fixed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from example_counts import examples
from hypothesis import HealthCheck, Phase, assume, event, given, settings

sys.path.insert(0, str(Path(__file__).parent.parent / "fixes"))
from harness import arguments, imported, outcome, quiet, same
from test_rewrites import Made, programs

import dynascope

RECORDED = "torch.linspace(-1, 2, 4)"
NEW = ("torch.linspace(-3, 1, 4)", "torch.tensor([2., -0.5, 0.25, 0.])", "-torch.ones(4) * 9", "torch.ones(7) / 3")
WITH_GRADIENT = ("torch.linspace(-2, 3, 4).requires_grad_()",)


@settings(
    max_examples=examples(3),
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
    inputs = NEW if any("No gradients" in x.assumption for x in chosen) else NEW + WITH_GRADIENT
    options = {"backend": "aot_eager", "fullgraph": not found.breaks_after}
    torch._dynamo.reset()
    wrong = same(text, made.text, inputs, "RuntimeError", dict(found.settings), **options)
    assert not wrong, f"{[x.title for x in chosen]}\n{made.text}\n{text}\n{wrong}"
