"""`%%compile --fix`, `%fix`, and `dynascope fix`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from clicks import clicks

from dynascope.compiler.fixes import setting_cures
from dynascope.runs import display

BRANCH = (
    "def f(x):  # the function",
    "    if x.sum() > 0:",
    "        y = x * 2",
    "    else:",
    "        y = x * 3",
    "    return y",
)


def next_inputs(shell: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is put below the cell from now on."""
    texts: list[str] = []

    def put(text: str, replace: bool = False) -> None:
        assert not replace
        texts.append(text)

    monkeypatch.setattr(shell.ip, "set_next_input", put)
    return texts


def test_the_fixed_cell_is_put_below_and_has_no_break(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = next_inputs(shell, monkeypatch)
    shell("import torch")
    cell = ("%%compile --fix --fix-seconds 600 --backend eager", *BRANCH, "", "f(torch.ones(3))")
    text = str(shell.report(*cell))
    assert "1 of 1 graph break can be fixed: 2 graphs → 1" in text
    assert "+    y = torch.where(x.sum() > 0, x * 2, x * 3)" in text
    before = shell.ns["f"]
    assert shell("%fix").error is None
    assert shell.ns["f"] is before
    [fixed] = texts
    assert fixed.splitlines() == [cell[0], BRANCH[0], "    y = torch.where(x.sum() > 0, x * 2, x * 3)", BRANCH[-1], *cell[-2:]]
    report = shell.report(*fixed.splitlines())
    assert report.summary.breaks == 0
    assert report.fixes == []
    assert shell("%fix").text.strip() == "There is no graph break to fix."


def test_a_view_tries_all_fixes_and_says_what_it_tries(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with clicks(shell.ip) as kernel:
        shell("import torch")
        shell("%%compile --backend eager", *BRANCH, "", "f(torch.ones(3))")
        view, stages = kernel.view(), []
        assert view.content["fixable"]
        view.observe(lambda change: stages.append(change["new"].get("stage", "")), "now")
        monkeypatch.setattr(display, "_PROGRESS_EVERY", 0)
        report = kernel.again({"fix": True})
        assert (report.fix_set.breaks_before, report.fix_set.breaks_after) == (1, 0)
        assert "trying change 1: Choose with torch.where" in stages
        assert view.command == "%%compile --fix"
        assert not view.content["fixable"]
        [text] = report.fix_set.cells.values()
        assert "    y = torch.where(x.sum() > 0, x * 2, x * 3)\n" in text


def test_a_cell_that_has_torch_gets_no_import(shell: Any) -> None:
    shell("import torch", "x = torch.ones(3)")
    report = shell.report("%%compile --fix --backend eager", *BRANCH, "f(x)")
    assert "torch.where" in report.patch()
    assert "import torch" not in report.patch()


def test_fix_says_what_is_missing(shell: Any) -> None:
    shell("import torch")
    shell("%%compile --backend eager", *BRANCH, "f(torch.ones(3))")
    assert "run the cell with %%compile --fix" in shell("%fix").text
    assert "takes no arguments" in shell("%fix 3").text


def test_statements_of_a_cell_keep_their_settings_outside(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the cell they would be compiled, too."""
    texts = next_inputs(shell, monkeypatch)
    shell("import torch", "x = torch.ones(3)")
    shell("%%compile --fix --fix-seconds 600 --backend eager", "y = x + 1", 'print("half way")', "y * 2")
    text = shell("%fix").text
    assert texts == []
    assert "Not in the cell: torch._dynamo.config.reorderable_logging_functions.add(print)" in text


def test_one_compile_for_all_sizes(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = next_inputs(shell, monkeypatch)
    shell("import torch")
    cell = ("def f(x):", "    return x.sin() + x.shape[0]", "f(torch.ones(3))", "f(torch.ones(5))")
    report = shell.report("%%compile --fix --fix-seconds 600 --backend eager", *cell)
    [chosen] = [x for x in report.fixes if x.chosen]
    assert (chosen.verdict, chosen.settings, chosen.recompile) == ("proved", {"dynamic": True}, report.recompiles[0].frame)
    assert (report.fix_set.recompiles_before, report.fix_set.recompiles_after) == (1, 0)
    assert "1 of 1 recompile can be fixed: 2 graphs → 1" in str(report)
    assert report.patch() == ""
    assert shell("%fix").text.strip() == ""
    [fixed] = texts
    assert fixed.splitlines() == ["%%compile --fix --fix-seconds 600 --backend eager --dynamic true", *cell]
    shell.report(*fixed.splitlines()).expect("recompiles=0,graphs=1")


COUNTED = (
    "class Net(torch.nn.Module):",
    "    def __init__(self):",
    "        super().__init__()",
    "        self.steps = 0",
    "    def forward(self, x):",
    "        self.steps += 1",
    "        return x * self.steps",
    "net = Net()",
    "for _ in range(3): net(torch.ones(3))",
)


def test_a_number_that_counts_up_in_a_module(shell: Any) -> None:
    shell("import torch")
    report = shell.report("%%compile --fix --fix-seconds 600 --backend eager", *COUNTED)
    [chosen] = [x for x in report.fixes if x.chosen]
    assert chosen.settings == {"torch._dynamo.config.allow_unspec_int_on_nn_module": True, "dynamic": True}
    assert (report.fix_set.recompiles_before, report.fix_set.recompiles_after) == (2, 0)
    assert shell.ns["net"].steps == 3


def test_a_number_that_counts_up_becomes_a_tensor(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setting_cures, "for_recompile", lambda recompile: [])
    shell("import torch")
    report = shell.report("%%compile --fix --fix-seconds 600 --backend eager", *COUNTED)
    [chosen] = [x for x in report.fixes if x.chosen]
    assert (chosen.title, chosen.verdict) == ("Keep self.steps in a tensor", "proved")
    assert "+        self.steps = torch.tensor(0)" in report.patch()
    # in torch 2.13 the gradient is wrong where the tensor itself is changed
    assert "+        self.steps = self.steps + 1" in report.patch()
    assert shell.ns["net"].steps == 3
    with report.fixed() as net:
        assert torch.equal(net.steps, torch.tensor(3))
    assert shell.ns["net"].steps == 3
    [fixed] = report.fix_set.cells.values()
    shell.report(*fixed.splitlines()).expect("recompiles=0,graphs=1")


def test_a_global_that_changes_becomes_a_tensor(shell: Any) -> None:
    """The loop that calls the function is not run again by the trials."""
    shell("import torch", "calls = []")
    cell = ("scale = 2", "def f(x): return x * scale", "for _ in range(3):", "    calls.append(scale)",
            "    y = f(torch.ones(3))", "    scale += 1")  # fmt: skip
    report = shell.report("%%compile --fix --fix-seconds 600 --backend eager", *cell)
    assert shell.ns["calls"] == [2, 3, 4]
    assert shell.ns["scale"] == 5
    assert (report.fix_set.recompiles_before, report.fix_set.recompiles_after) == (2, 0)
    assert "+scale = torch.tensor(2)" in report.patch()
    assert "+    scale = scale + 1" in report.patch()


def test_a_changed_text_stays_a_recompile(shell: Any) -> None:
    shell("import torch")
    cell = ("def f(x, mode): return x + 1 if mode == 'a' else x - 1", "for mode in 'abc': f(torch.ones(3), mode)")
    report = shell.report("%%compile --fix --fix-seconds 600 --backend eager", *cell)
    assert [(x.title, x.verdict) for x in report.fixes] == [("Compile for all sizes at once", "refused")]
    assert report.patch() == ""


SCRIPT = """
import torch


@torch.compile(backend="eager")
def f(x):
    if x.sum() > 0:  # a branch on values
        y = x * 2
    else:
        y = x * 3
    return y


print(f(torch.ones(3)))
"""


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dynascope", *arguments], cwd=cwd, capture_output=True, text=True, timeout=300)


def test_a_script_is_fixed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert command("run", "--expect", "breaks=0", "script.py", cwd=tmp_path).returncode == 1
    done = command("fix", "script.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert script.read_text() == SCRIPT
    assert done.stdout.startswith("--- a/script.py\n+++ b/script.py\n")
    assert "tensor([2., 2., 2.])" in done.stderr
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=done.stdout, text=True, check=True)
    fixed = script.read_text()
    assert fixed != SCRIPT
    run = command("run", "--expect", "breaks=0,graphs=1", "script.py", cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    script.write_text(SCRIPT)
    assert command("fix", "--apply", "script.py", cwd=tmp_path).returncode == 0
    assert script.read_text() == fixed


def test_bad_usage_of_the_command(tmp_path: Path) -> None:
    assert command("fix", "absent.py", cwd=tmp_path).returncode == 2
    (tmp_path / "a.py").write_text("")
    assert command("run", "--expect", "cats=3", "a.py", cwd=tmp_path).returncode == 2
