"""A module that is edited while the notebook runs: lines are those of the code that ran, or unknown."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dynascope.compiler.report import Report

MODULE = """\
import torch
UNUSED = 1

class Other:
    def forward(self, x):
        return x + 1

class Net:
    def forward(self, x):
        print("here", flush=True)
        return x + 1

def f(x):
    y = x + 1
    print("here", y.shape)
    return x + 1

def g(x):
    return f(x) * 2
"""
WITHOUT_A_LINE = MODULE.replace("UNUSED = 1\n", "")
Write = Callable[[str], Any]


@pytest.fixture
def write(shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes the module's file; the first time, it is imported, too."""
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "edited_module.py"

    def write(text: str) -> Any:
        is_new = not file.exists()
        file.write_text(text)
        if is_new:
            shell("import edited_module")
        return shell.ns["edited_module"]

    yield write
    shell("%autoreload 0") if "autoreload" in shell.ip.magics_manager.magics["line"] else None
    sys.modules.pop("edited_module", None)


def places(report: Report) -> list[tuple[int, str]]:
    return [(b.line, b.source.strip()) for b in report.breaks]


def excerpts_are_consistent(report: Report) -> bool:
    shown = {e.line + i: line for s in report.sources for e in s.excerpts for i, line in enumerate(e.text.split("\n"))}
    return all(shown.get(b.line, b.source).strip() == b.source.strip() for b in report.breaks)


@pytest.mark.parametrize(
    "text",
    [
        WITHOUT_A_LINE,
        MODULE.replace("    y = x", "    # a comment\n    y = x"),
        MODULE.replace("    y = x", "    y = torch.exp(x)"),  # by itself, the function has other instructions
    ],
)
def test_what_autoreload_leaves_alone_or_loads_again_stands_where_it_stands_now(shell: Any, write: Write, text: str) -> None:
    shell("%load_ext autoreload", "%autoreload 2")
    module = write(MODULE)
    shell.report("%compile edited_module.g(x)")
    code = module.f.__code__
    write(text.replace('"here", flush', '"there", flush'))
    line = text.split("\n").index('    print("here", y.shape)') + 1
    report = shell.report("%%compile --fix", "edited_module.g(x)")
    assert (places(report), report.notes) == ([(line, 'print("here", y.shape)')], [])
    assert shell.report("%%compile --region edited_module.f=allow", "edited_module.g(x)").notes == []
    assert excerpts_are_consistent(report)
    assert "def f(x):" in report.patch()
    assert '-    print("here", y.shape)' in report.patch()
    if module.f.__code__.co_firstlineno == code.co_firstlineno:  # some releases of IPython load the whole module again
        assert module.f.__code__ is code
    shell.ns["net"] = module.Net()
    line = text.split("\n").index('        print("here", flush=True)') + 1
    report = shell.report("%compile net.forward(x)")  # autoreload gave it the code of another class
    assert (places(report), report.notes) == ([(line, 'print("there", flush=True)')], [])


def test_a_function_that_was_edited_and_not_loaded_again_is_not_shown_with_other_lines(shell: Any, write: Write) -> None:
    module = write(MODULE)
    shell.report("%compile edited_module.g(x)")
    write(MODULE.replace('"here", y', '"there", y'))
    report = shell.report("%compile edited_module.g(x)")
    assert places(report) == [(15, "")]
    assert report.notes == [
        "line numbers of f are of the code in memory, which is not the code of edited_module.py as it is now."
    ]
    assert excerpts_are_consistent(report)
    assert "there" not in str(report.to_dict())
    importlib.invalidate_caches()
    importlib.reload(module)
    report = shell.report("%compile edited_module.g(x)")
    assert (places(report), report.notes) == ([(15, 'print("there", y.shape)')], [])
