"""Regions and restoring on generated programs, against the model of `made_programs`; interrupts at random points."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interrupted_cells import names_regions, new_shell
from made_programs import Function, Model, Statement, programs, text

import dynascope

EXAMPLES = examples(25)


@pytest.fixture(scope="module")
def shell() -> Any:
    made = new_shell()
    yield made
    made.run_line_magic("unload_ext", "dynascope")


def with_region(functions: list[Function], chosen: Statement, flag: bool) -> list[Function]:
    """The same program, as data, with one statement inside an `allow` or `forbid`."""

    def walk(body: list[Statement]) -> list[Statement]:
        out = []
        for s in body:
            if s is chosen:
                out.append(Statement("forbid" if flag else "allow", [s], line=s.line))
            else:
                out.append(Statement(s.kind, walk(s.body), s.value, s.line))
        return out

    return [Function(f.name, walk(f.body), f.line) for f in functions]


def all_of(body: list[Statement]) -> list[Statement]:
    return [inner for s in body for inner in (s, *all_of(s.body))]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.booleans(), st.data())
def test_line_regions_do_what_a_with_does(shell: Any, functions: list[Function], outer: bool, data: st.DataObject) -> None:
    source = text(functions)
    # the model does not know a block that cannot be resumed inside one that can
    every = [s for s in all_of([s for f in functions for s in f.body]) if s.kind not in ("for", "try", "manager")]
    chosen = data.draw(st.sampled_from(every))
    last = chosen
    while last.body:
        last = last.body[-1]
    flag = not outer
    model = Model(with_region(functions, chosen, flag), flag=outer).run()
    lines = f"{chosen.line + 1}" if not chosen.body else f"{chosen.line + 1}-{last.line + 1}"
    magic = f"%%compile {'--error-on-graph-break' if outer else ''} --region {lines}={'error' if flag else 'allow'}"
    shell.run_cell(f"{magic}\n{source}{functions[-1].name}(torch.arange(4.0))", store_history=False)
    report = dynascope.last()
    assert {b.line - 1: b.outcome for b in report.breaks} == model.breaks, magic + "\n" + source
    assert (report.error.line - 1 if report.error and report.error.line else None) == model.refused
    for f in functions:
        assert not names_regions(shell.user_ns[f.name].__code__)


def test_interrupts_at_random_points_restore_every_object(tmp_path: Path) -> None:
    """In a process of its own: an interrupt may leave torch half changed, which the tests after it would see."""
    command = [sys.executable, str(Path(__file__).parent / "interrupted_cells.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 0  # interrupts that came while the cell ran
