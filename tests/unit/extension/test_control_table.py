"""fullgraph and error_on_graph_break, every row of PyTorch's own table and every way to nest, by each way of steering.

The table: fullgraph wins over all and cannot be taken back; else the innermost error_on_graph_break holds, and is inherited
by what is called; under it the first break is an error, without it every break is reported.  The ways: `--region` of the
magic, and Run again from the view of a cell that ran before; `dynascope.region` in the code is in tests/property.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from clicks import Clicks
from example_counts import some
from programs import flags

import dynascope
from dynascope.compiler.report import FlagOrigin

#: with the magic as line 1 inner's break is in line 5, and fn's own, outside of every region, in line 12
INNER = ["#", "def inner(x):", "    x = x + 1", "    torch._dynamo.graph_break()", "    return x + 2"]
OUTER = ["#", "def outer(x):", "    return inner(x)"]
FN = ["def fn(x):", "    y = outer(x)", "    torch._dynamo.graph_break()", "    return y * 2", "fn(x)"]
CELL = [*INNER, *OUTER, *FN]
IN_INNER, IN_FN = 5, 12

WORDS = {True: "error", False: "allow"}
SETTINGS = list(product((False, True), (None, True)))
REGIONS = list(product((None, False, True), (None, False, True)))
ROWS = [*((*s, *r) for s in SETTINGS for r in REGIONS), (False, False, None, None), (False, False, True, None)]
Row = tuple[bool, bool | None, bool | None, bool | None]


def name_of(row: Row) -> str:
    fullgraph, flag, outer, inner = row
    words = ["fullgraph"] * fullgraph + ([] if flag is None else [f"run-{WORDS[flag]}"])
    words += [f"{name}-{WORDS[to]}" for name, to in (("outer", outer), ("inner", inner)) if to is not None]
    return " ".join(words) or "default"


def truth(row: Row) -> tuple[list[tuple[int, bool]], int | None]:
    """((line, allowed) of each break, the line where the compiler raises): the table, in six lines."""
    fullgraph, flag, outer, inner = row
    explicit = inner if inner is not None else outer
    if fullgraph or (flag if explicit is None else explicit):
        return [(IN_INNER, False)], IN_INNER
    return [(IN_INNER, explicit is not None), (IN_FN, False)], IN_FN if flag else None


def told(report: Any) -> tuple[list[tuple[int, bool]], int | None]:
    assert report.summary.unexpected == sum(b.allowed is not True for b in report.breaks)
    raised = [b.line for b in report.breaks if b.outcome == "raised"]
    assert (report.error is not None) is bool(raised)
    return [(b.line, b.allowed) for b in report.breaks], raised[0] if raised else None


def settings(row: Row) -> dict[str, bool]:
    return ({"fullgraph": True} if row[0] else {}) | ({} if row[1] is None else {"error_on_graph_break": row[1]})


def regions(row: Row) -> dict[str, str]:
    return {name: WORDS[to] for name, to in (("outer", row[2]), ("inner", row[3])) if to is not None}


def line(row: Row, targets: dict[str, str] | None = None) -> str:
    words = ["%%compile", flags(settings(row)), *(f"--region {target}={to}" for target, to in (targets or {}).items())]
    return " ".join(filter(None, words))


def test_the_lines_are_those_of_the_breaks() -> None:
    numbered = dict(enumerate(["%%compile", *CELL], start=1))
    assert [n for n, text in numbered.items() if "graph_break" in text] == [IN_INNER, IN_FN]


@pytest.mark.parametrize("row", some(ROWS, 2), ids=name_of)
def test_by_the_magic(shell: Any, row: Row) -> None:
    before = regions(row)
    done = shell(line(row, before), *CELL)
    report = dynascope.last()
    assert told(report) == truth(row)
    assert (done.error is None) is (report.error is None)
    if before and not row[0]:
        assert report.breaks[0].region == FlagOrigin(kind="option", name="inner" if row[3] is not None else "outer")
    lost = [f"--region {t}={to} had no effect: fullgraph=True wins over it." for t, to in before.items() if row[0]]
    assert [note for note in report.notes if "wins over" in note and not note.startswith("error_on_graph_break has")] == lost
    assert shell.ns["inner"].__code__.co_names == ("torch", "_dynamo", "graph_break")


@pytest.mark.parametrize("row", some(ROWS, 3), ids=name_of)
def test_by_run_again_on_warm_code(shell: Any, kernel: Clicks, row: Row) -> None:
    shell("%%compile", *CELL)
    first, count = dynascope.last(), shell.ip.execution_count
    report = kernel.again(settings(row), regions(row))
    assert told(report) == truth(row)
    assert report.previous is first
    assert shell.ip.execution_count == count
    command = line(row, regions(row)).replace(" --no-error-on-graph-break", "")
    assert kernel.view().command == ("" if command == "%%compile" else command) or row[1] is False
    assert ("error" in {part["type"] for part in kernel.view().printed}) is (truth(row)[1] is not None)
    assert bool(report.diff(first)) is (truth(row) != truth((False, None, None, None)))


# -- lines ----------------------------------------------------------------------------------------------------

#: --region lines, and what they come to: whether inner's break is allowed (None: it raises)
LINES = {
    "a line": ("--error-on-graph-break", ["5=allow"], True),
    "a line, to error": ("", ["5=error"], None),
    "the line of a call": ("--error-on-graph-break", ["9=allow"], True),
    "lines in lines": ("", ["2-13=error", "4-5=allow"], True),
    "the line of the cell's own call": ("--error-on-graph-break", ["14=allow"], None),
    "a line in a function": ("", ["inner=error", "5=allow"], True),
    "fullgraph over a line": ("--fullgraph", ["5=allow"], None),
}


@pytest.mark.parametrize("row", LINES)
@pytest.mark.parametrize("way", ["magic", "run again"])
def test_lines(shell: Any, kernel: Clicks, row: str, way: str) -> None:
    options, targets, allowed = LINES[row]
    if way == "magic":
        shell(f"%%compile {options} " + " ".join(f"--region {t}" for t in targets), *CELL)
    else:
        shell("%%compile", *CELL)
        wanted = dict(t.split("=") for t in targets)
        kernel.again({options[2:].replace("-", "_"): True} if options else {}, wanted)
    found = dynascope.last().breaks[0]
    assert (found.line, found.outcome) == (IN_INNER, "raised" if allowed is None else "resumed")
    assert found.allowed is (allowed is True)


# -- third-party code, and functions that are compiled themselves --------------------------------------------


@pytest.mark.parametrize("to", ["allow", "error"])
def test_third_party_code_by_run_again(
    shell: Any, kernel: Clicks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    """The view names a break in a library by its function and line; test_control.py has all names of such code."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "third_table.py").write_text(
        "import torch\n\n\nclass Block(torch.nn.Module):\n    def forward(self, x):\n"
        "        torch._dynamo.graph_break()\n        return x + 2\n\n\nblock = Block()\n"
    )
    shell("import third_table")
    block = shell.ns["third_table"].block
    before = dict(vars(block)), type(block).forward, type(block).forward.__code__
    shell("%%compile", "def fn(x):", "    return third_table.block(x) * 2", "fn(x)")
    report = kernel.again({"error_on_graph_break": True} if to == "allow" else {}, {"forward:6": to})
    assert f"--region third_table.Block.forward={to}" in kernel.view().command
    outcome = "raised" if to == "error" else "resumed"
    assert [(b.line, b.outcome, b.allowed) for b in report.breaks] == [(6, outcome, to == "allow")]
    assert (dict(vars(block)), type(block).forward, type(block).forward.__code__) == before


def test_run_again_on_functions_that_were_skipped_before(shell: Any, kernel: Clicks) -> None:
    body = ["def loop(x):", "    for i in range(2):", "        x = x + i", "        torch._dynamo.graph_break()",
            "    return x", "def fn(x):", "    return loop(x * 2) + 1", "fn(x)"]  # fmt: skip
    first = shell.report("%%compile", *body)
    assert [f.name for f in first.frames if f.status == "skipped"] == ["loop"]
    assert [(b.line, b.outcome) for b in kernel.again({}, {"5": "error"}).breaks] == [(5, "raised")]
    allowed = kernel.again({"error_on_graph_break": True}, {"loop": "allow", "5": "allow"})
    assert [(b.line, b.outcome, b.allowed) for b in allowed.breaks] == [(5, "skipped", True)]
    assert [f.name for f in allowed.frames if f.status == "skipped"] == ["loop"]
    assert not shell.report("%%compile", *body).diff(first)
    assert torch.equal(shell("fn(x)").result, (torch.ones(3) * 2 + 1) + 1)
