"""The rules of fullgraph and error_on_graph_break on generated programs, in both ways of steering.

The same program with the same regions: by `--region` of the magic, and by `region()` in traced code.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from control_programs import Expected, Program, controlled
from example_counts import examples
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from interrupted_cells import new_shell
from observed import loaded
from programs import flags

import dynascope
from dynascope.compiler import driver

#: a program compiles up to some dozen frames
FEW = settings(
    max_examples=examples(6), deadline=None, print_blob=True, suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)  # fmt: skip


@pytest.fixture(scope="module")
def ip() -> Iterator[Any]:
    made = new_shell()
    made.user_ns["dynascope"] = dynascope
    yield made
    made.run_line_magic("unload_ext", "dynascope")


def agrees(report: Any, expected: Expected, shown: str, cell: int = 1) -> None:
    """Compare; `cell`: lines above the program in its cell."""
    met = {b.line - cell: b for b in report.breaks}
    assert met.keys() == expected.breaks.keys(), shown
    assert {n: met[n].allowed for n in expected.sure} == expected.sure, shown
    assert [n for n, b in met.items() if b.outcome == "raised"] == [expected.refused] * (expected.refused is not None), shown
    assert (report.error is not None) is (expected.refused is not None), shown
    assert report.summary.unexpected == sum(b.allowed is not True for b in report.breaks)


def run(ip: Any, cell: str) -> Any:
    printed, before = io.StringIO(), driver._latest
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        ip.run_cell(cell, store_history=False)
    assert dynascope.last() is not before, printed.getvalue()
    return dynascope.last()


def line_of(program: Program, targets: dict[str, str], source: str) -> str:
    line = " ".join(["%%compile", flags(program.settings()), *(f"--region {t}={to}" for t, to in targets.items())])
    return f"{line}\n{source}"


def with_call(program: Program, source: str) -> str:
    """The cell's text with the call."""
    return f"{source}{program.functions[-1].name}(torch.arange(4.0))"


@FEW
@given(controlled())
def test_by_the_magic(ip: Any, program: Program) -> None:
    cell = line_of(program, program.regions(1), with_call(program, program.source()))
    agrees(run(ip, cell), program.expected(), cell)


@FEW
@given(controlled(), st.sampled_from([None, True, False]))
def test_by_region_from_python(program: Program, on_call: bool | None) -> None:
    """No notebook at all: `dynascope.explain`, the call itself in a region."""
    written = program.in_the_code()
    source = written.region_source()
    module = loaded("controlled_program", source, dynascope=dynascope)
    explained = dynascope.explain(getattr(module, written.functions[-1].name), backend="eager", **written.settings())
    around = contextlib.nullcontext()
    if on_call is not None and written.flag is None:  # the run's own setting lies inside this region
        written.on_call = on_call
        around = dynascope.region(error_on_graph_break=on_call)
    with around:
        report = explained(torch.arange(4.0))
    expected = written.expected()
    if written.on_call is not None:
        expected.breaks = {line: {found for found in met if not found} for line, met in expected.breaks.items()}
    agrees(report, expected, source, cell=0)
