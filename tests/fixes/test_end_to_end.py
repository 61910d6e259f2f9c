"""Each program of the corpus through `explain(f, fix=True)`: what is proved holds on inputs that the search did not see."""

from __future__ import annotations

import pytest
import torch
from corpus import FixProgram, some_programs
from harness import arguments, imported, quiet, same

import dynascope
from dynascope.compiler.report import Report

PROGRAMS = some_programs(30)


def fixed_text(program: FixProgram) -> tuple[str, dict[str, object], Report]:
    """The program with all of its proved fixes, and the settings of the compiler that belong to it."""
    source = program.source.removeprefix("\n")
    with imported(source) as module, quiet(), torch.set_grad_enabled(not program.without_gradients):
        report = dynascope.explain(module.f, backend="eager", fix=True, fix_seconds=300)(*arguments(program.inputs[0]))
        assert report.fix_set is not None
        assert report.fix_set.is_complete
        live = report.live_fixes  # None: the call cannot be repeated
        text = source if live is None else live.plan.texts.get(module.__file__, source)
    return text, dict(report.fix_set.settings), report


@pytest.mark.slow
@pytest.mark.parametrize("program", [pytest.param(p, id=p.name) for p in PROGRAMS])
def test_what_is_proved_holds(program: FixProgram) -> None:
    text, settings, report = fixed_text(program)
    assert report.fix_set is not None
    options: dict[str, object] = {"backend": "aot_eager", "dynamic": settings.pop("dynamic", None)}
    if report.fix_set.breaks_after == 0 != report.fix_set.breaks_before:
        options["fullgraph"] = True
    if report.fix_set.fixes:
        with torch.set_grad_enabled(not program.without_gradients):
            assert same(text, program.source.removeprefix("\n"), program.inputs, program.raises, settings, **options) == ""
    if program.verdict == "fixed" or program.instead == "setting":
        tried = [(x.title, x.verdict, x.reason) for x in report.fixes or ()]
        assert report.fix_set.breaks_after == 0, tried
