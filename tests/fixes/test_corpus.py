"""Each program of the corpus through `explain(f, fix=True)`: what the report says, and whether what is chosen is right.

What is chosen does what the program did, also compiled, on calls that the search has not seen.  The search leaves behind what
one call leaves.
"""

from __future__ import annotations

import contextlib
import json
import re

import pytest
import torch
from corpus import Change, FixProgram, all_programs, some_programs
from harness import fixed, same
from planting import Planted, only

COMMENT, LINE_END = re.compile(r"# .*"), re.compile(r"\r?\n")


def test_the_corpus() -> None:
    programs = all_programs()
    assert len(programs) == len({program.name for program in programs}) >= 250
    assert len({program.kind for program in programs}) >= 40


def planted(text: str, change: Change) -> Planted:
    pairs = (setting.split(" = ") for setting in change.setting)
    return Planted(change.title, text, change.text, change.test, {name: json.loads(value) for name, value in pairs})


@pytest.mark.slow
@pytest.mark.parametrize("program", [pytest.param(p, id=p.name) for p in some_programs()])
def test_a_program(program: FixProgram) -> None:
    with only(*(planted(program.text, change) for change in program.changes)) if program.changes else contextlib.nullcontext():
        done = fixed(program.text, program.call[0], gradients=program.gradients)
    report, found = done.report, done.report.fixes_to_apply(conditional=True)
    assert (found.is_complete, done.traces) == (True, "")
    if program.kind and torch.__version__.startswith("2.13"):  # other versions have other names, or no break
        assert report.breaks[0].type == program.kind
    tried = report.fixes or []
    assert not {x.title for x in tried if x.chosen} & {x.title for x in tried if x.reason.startswith("not needed")}
    everything = "\n".join(f"{fix.title}: {fix.verdict}: {fix.reason}. {fix.assumption}. {fix.condition}" for fix in tried)
    chosen = [f"{fix.title}: {fix.reason}. {fix.assumption}. {fix.condition}" for fix in tried if fix.chosen]
    refused = [f"{fix.title}: {fix.reason}" for fix in tried if fix.verdict == "refused"]
    if program.fix != ("*",):
        assert all(any(one.startswith(title) for one in chosen) for title in program.fix), everything
        assert bool(chosen) == bool(program.fix), everything
    for part in program.refused:
        assert any(part in one for one in refused), everything
    for change in program.changes:
        if change.refused is not None:
            assert any(one.startswith(f"{change.title}: ") and change.refused in one for one in refused), everything
    for part in program.says:
        assert any(part in one for one in chosen), everything
    if not chosen:
        assert done.text == program.text
        assert report.patch(conditional=True) == ""
        return
    assert all(bool(fix.condition) == (fix.verdict == "conditional") for fix in tried), everything
    assert "There was no time" not in everything
    if program.fix != ("*",):
        assert found.after.breaks == program.left, everything
    assert not set(program.line) - set(done.text.splitlines()), done.text
    assert not set(COMMENT.findall(program.text)) - set(COMMENT.findall(done.text)), done.text
    assert set(LINE_END.findall(done.text)) == set(LINE_END.findall(program.text))
    options = {"backend": "aot_eager", "dynamic": done.settings.pop("dynamic", None), "fullgraph": not found.after.breaks}
    with torch.set_grad_enabled(program.gradients):
        says = not any(word in fix.condition for fix in tried for word in (" it warns ", " it logs ", " empty, "))
        assert same(done.text, program.text, program.call, program.raises, done.settings, says=says, **options) == ""
