"""The rules of fullgraph and error_on_graph_break on generated programs, in all three ways of steering.

The same program with the same regions: by `--region` of the magic, by `region()` in traced code, and by Run again from a
view whose cell was run plainly before; also with functions in a library, which is patched and put back.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import linecache
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from clicks import Clicks, clicks
from control_programs import LIBRARY, Expected, Program, controlled
from example_counts import examples
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from made_programs import Function, programs, text

import dynascope
from dynascope.compiler import driver

#: a program compiles up to some dozen frames
FEW = settings(
    max_examples=examples(6), deadline=None, print_blob=True, suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)  # fmt: skip


@pytest.fixture(scope="module")
def ip() -> Iterator[Any]:
    made = InteractiveShell.instance()
    made.run_line_magic("load_ext", "dynascope")
    made.run_line_magic("config", "DynascopeMagics.backend = 'eager'")
    made.run_line_magic("config", "DynascopeMagics.view = 'none'")
    made.user_ns["dynascope"] = dynascope
    yield made
    made.run_line_magic("unload_ext", "dynascope")


@pytest.fixture(scope="module")
def buttons(ip: Any) -> Iterator[Clicks]:
    with clicks(ip) as made:
        yield made


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / f"{LIBRARY}.py"


def agrees(report: Any, expected: Expected, shown: str, cell: int = 1, border: int = 0) -> None:
    """Compare; lines from `border` on are the cell's, which has `cell` lines above them."""

    def line(number: int, is_library: bool) -> int:
        return number if is_library else number - cell

    met = {line(b.line, b.line < border and b.cell is None): b for b in report.breaks}
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
    flags = [("--" if on else "--no-") + name.replace("_", "-") for name, on in program.settings().items()]
    line = " ".join(["%%compile", *flags, *(f"--region {t}={to}" for t, to in targets.items())])
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
    source, name = written.region_source(), "<controlled>"
    module = types.ModuleType("controlled_program")
    module.__dict__["dynascope"] = dynascope
    sys.modules["controlled_program"] = module
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), vars(module))
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


@FEW
@given(controlled())
def test_by_run_again_on_warm_code(ip: Any, buttons: Clicks, program: Program) -> None:
    source = with_call(program, program.source())
    first = run(ip, f"%%compile\n{source}")
    agrees(first, Program(program.functions).expected(), source)
    regions = program.regions(1)
    report = buttons.again(program.settings(), regions)
    agrees(report, program.expected(), f"{program.settings()} {regions}\n{source}")
    assert report.previous is first
    plain = run(ip, f"%%compile\n{source}")
    assert plain.previous is report or plain.previous is None
    assert not plain.diff(first), source


@FEW
@given(program=controlled(), data=st.data())
def test_with_functions_of_a_library(ip: Any, buttons: Clicks, library: Path, program: Program, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(program.functions) - 1))
    theirs, ours = program.split(count)
    inside = set(map(id, program.statements())) - {id(s) for s in Program(program.functions[count:]).statements()}
    every = program.statements()
    program.on_statements = {i: to for i, to in program.on_statements.items() if id(every[i]) not in inside}
    library.write_text(theirs)
    ip.user_ns.pop(LIBRARY, None)
    sys.modules.pop(LIBRARY, None)
    importlib.invalidate_caches()
    linecache.checkcache()
    module = importlib.import_module(LIBRARY)
    functions = {name: value for name, value in vars(module).items() if name.startswith("f")}
    codes = {name: value.__code__ for name, value in functions.items()}
    source = with_call(program, ours)
    border = program.functions[count].line
    cell = line_of(program, program.regions(1, count), source)
    agrees(run(ip, cell), program.expected(), theirs + cell, border=border)
    run(ip, f"%%compile\n{source}")
    agrees(buttons.again(program.settings(), program.regions(1, count)), program.expected(), theirs + cell, border=border)
    assert {name: vars(module)[name] for name in functions} == functions
    assert all(functions[name].__code__ is code for name, code in codes.items())


@FEW
@given(programs())
def test_an_unedited_second_run_has_an_empty_diff(ip: Any, functions: list[Function]) -> None:
    """Whatever the program: loops, `try` and `with` that make frames be skipped, breaks, refusals."""
    cell = f"%%compile\n{text(functions)}{functions[-1].name}(torch.arange(4.0))"
    first, second = run(ip, cell), run(ip, cell)
    assert not second.diff(first), f"{second.diff(first)}\n{cell}"
    assert [(f.name, f.status) for f in second.frames] == [(f.name, f.status) for f in first.frames], cell
