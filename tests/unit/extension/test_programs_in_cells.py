"""Every program with a known truth, as a cell under `%%compile` and, decorated, under `%%observe`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from example_counts import some
from programs import PROGRAMS, Program, check, flags, skip_where_unlike

import dynascope


@pytest.mark.parametrize("program", some(PROGRAMS, 2), ids=lambda p: p.name)
def test_compiled_by_the_magic(program: Program, shell: Any) -> None:
    skip_where_unlike(program)
    report = shell.report(f"%%compile --view none --backend eager {flags(program.options)}", program.text())
    check(program, report, shift=1)
    own = ["inner"] if program.name == "an_inner_fullgraph_refuses" else []  # called by eager code, behind a break
    assert report.compiled == ["fn", *own]
    assert all(b.cell is not None for b in report.breaks)


@pytest.mark.parametrize("program", some(PROGRAMS[1:], 2), ids=lambda p: p.name)
def test_observed(program: Program, shell: Any) -> None:
    skip_where_unlike(program)
    torch._dynamo.reset()  # %%observe runs code unchanged: torch's own wrappers, too, may have been compiled before
    shell.ns["compiled"] = dynascope.compile(backend="eager", **program.options)
    check(program, shell.report("%%observe --view none", program.text("@compiled")), shift=1)


@pytest.mark.parametrize("program", some(PROGRAMS, 4), ids=lambda p: p.name)
@pytest.mark.parametrize("options", ["", "--nested-graph-breaks"])
def test_the_same_cell_twice_has_an_empty_diff(program: Program, options: str, shell: Any) -> None:
    skip_where_unlike(program)
    lines = (f"%%compile --view none --backend eager {options} {flags(program.options)}", program.text())
    first, second = shell.report(*lines), shell.report(*lines)
    assert second.previous is first
    assert not second.diff(first), str(second.diff(first))
    assert second.diff(first).summary == "the same graph breaks and counts"
