"""`%%compile --fix`, `%fix`, and `dynascope fix`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from clicks import Clicks
from fixes.planting import Planted, only

from dynascope.compiler.driver import last
from dynascope.compiler.lab.fix.plan import WARM_UP
from dynascope.runs import display

BRANCH = (
    "def f(x):  # the function",
    "    if x.sum() > 0:",
    "        y = x * 2",
    "    else:",
    "        y = x * 3",
    "    return y",
)


@pytest.fixture
def texts(shell: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is put below the cells."""
    texts: list[str] = []

    def put(text: str, replace: bool = False) -> None:
        assert not replace
        texts.append(text)

    monkeypatch.setattr(shell.ip, "set_next_input", put)
    return texts


def test_the_fixed_cell_is_put_below_and_has_no_break(shell: Any, texts: list[str]) -> None:
    cell = ("%%compile --fix --fix-seconds 600 --backend eager", *BRANCH, "", "f(torch.ones(3))")
    text = " ".join(str(shell.report(*cell)).split())
    assert "1 fix: graph breaks 1 → 0, graphs 2 → 1" in text
    assert "+ y = torch.where(x.sum() > 0, x * 2, x * 3)" in text
    before = shell.ns["f"]
    assert shell("%fix").error is None
    assert shell.ns["f"] is before
    [fixed] = texts
    assert fixed.splitlines() == [cell[0], BRANCH[0], "    y = torch.where(x.sum() > 0, x * 2, x * 3)", BRANCH[-1], *cell[-2:]]
    report = shell.report(*fixed.splitlines())
    assert (report.summary.breaks, report.fixes) == (0, [])
    assert shell("%fix").text.strip() == "The latest report has no graph break to fix."


def test_a_view_tries_all_fixes_and_says_what_it_tries(shell: Any, kernel: Clicks, monkeypatch: pytest.MonkeyPatch) -> None:
    shell("%%compile --backend eager", *BRANCH, "", "f(torch.ones(3))")
    view, stages = kernel.view(), []
    assert view.content["fixable"]
    view.observe(lambda change: stages.append(change["new"].get("stage", "")), "now")
    monkeypatch.setattr(display, "_PROGRESS_EVERY", 0)
    report = kernel.again({"fix": True})
    assert (report.fix_set.before.breaks, report.fix_set.after.breaks) == (1, 0)
    assert "trying change 1: Choose with torch.where" in stages
    assert view.command == "%%compile --fix"
    assert not view.content["fixable"]
    [text] = report.fix_set.cells.values()
    assert "    y = torch.where(x.sum() > 0, x * 2, x * 3)\n" in text


def test_a_view_tries_the_hints_of_the_compiler(shell: Any, kernel: Clicks) -> None:
    code = ["def f(x):", "    y = x * x.sum().item()", "    print('here')", "    return y + 1"]
    shell("%%compile --backend eager", *code, "f(torch.ones(3))")
    view = kernel.view()
    assert [trial.breaks for trial in kernel.again({"second_call": True}).trials] == [2, 1]
    step = "capture_scalar_outputs = True`: in the repeated calls, 2 graph breaks become 1."
    assert step in view.content["advice"]["first"]
    assert not view.content["advice"]["hints"]


def test_fix_says_what_is_missing(shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell("%%compile --backend eager", *BRANCH, "f(torch.ones(3))")
    assert "run the cell with %%compile --fix" in shell("%fix").text
    assert "takes only --conditional" in shell("%fix 3").text
    (tmp_path / "branching.py").write_text("\n".join(BRANCH))
    monkeypatch.syspath_prepend(tmp_path)
    shell("%%compile --fix --fix-seconds 600 --backend eager", "from branching import f", "f(torch.ones(3))")
    assert " print(dynascope.last().patch()) has those in branching.py." in " ".join(str(last()).split())
    assert "For branching.py, print(dynascope.last().patch()) has the diff" in shell("%fix").text


@pytest.fixture
def settings() -> Iterator[None]:
    """The settings of Dynamo that fixed cells set, restored."""
    with torch._dynamo.config.patch(capture_scalar_outputs=False, reorderable_logging_functions=set()):
        yield


@pytest.mark.usefixtures("settings")
def test_the_statements_of_a_cell_are_fixed(shell: Any, texts: list[str]) -> None:
    shell("x, y, ran = torch.arange(3), torch.arange(3), []")
    cell = ("%%compile --fix --fix-seconds 600 --backend eager", "if x.sum() > 0:  # a branch", "    y = x * 2",
            "scale = y.max().item()", 'print("scaled by", y.max())', "z = y * scale", "ran.append(1)", "z + 1")  # fmt: skip
    before = set(shell.ns)
    report = shell.report(*cell)
    assert {name for name in set(shell.ns) - before if not name.startswith("_")} == {"scale", "z"}
    assert shell.ns["ran"] == [1]
    assert all(x.verdict == "verified" for x in report.fixes if x.chosen)
    assert report.fix_set.before.breaks > report.fix_set.after.breaks == 0
    assert "Not in the cell" not in shell("%fix").text
    [fixed] = texts
    assert [line for line in fixed.splitlines() if line and line not in cell] == [
        "# a branch",
        "torch._dynamo.config.capture_scalar_outputs = True",
        "torch._dynamo.config.reorderable_logging_functions.add(print)",
        "y = torch.where(x.sum() > 0, x * 2, y)",
    ]
    shell.report(*fixed.splitlines()).expect("breaks=0,graphs=1")
    assert shell.ns["z"].tolist() == [0, 8, 16]


def test_a_change_that_only_holds_for_the_recorded_values_of_a_cells_names(shell: Any) -> None:
    """It reads one name less, which is restored with the others."""
    shell("x, n = torch.ones(3), torch.ones(3)")
    x, n = shell.ns["x"], shell.ns["n"]
    with only(Planted("one value", "y = x * n.max().item()\n", "y = x * 1\n")):
        report = shell.report("%%compile --fix --backend eager", "y = x * n.max().item()")
    assert [(tried.verdict, "other random values" in tried.reason) for tried in report.fixes] == [("refused", True)]
    assert shell.ns["x"] is x
    assert shell.ns["n"] is n
    assert (x.tolist(), n.tolist()) == ([1, 1, 1], [1, 1, 1])


def test_one_compile_for_all_sizes(shell: Any, texts: list[str]) -> None:
    shell("import torch")
    cell = ("def f(x):", "    return x.sin() + x.shape[0]", "f(torch.ones(3))", "f(torch.ones(5))", "f(torch.ones(2, 2))")
    report = shell.report("%%compile --fix --fix-seconds 600 --backend eager", *cell)
    [chosen] = [x for x in report.fixes if x.chosen]
    assert (chosen.verdict, chosen.settings, chosen.recompile) == ("verified", {"dynamic": True}, report.recompiles[0].frame)
    assert chosen.removes == [chosen.recompile], "not that of another number of dimensions"
    assert (report.fix_set.before.recompiles, report.fix_set.after.recompiles) == (2, 1)
    assert "1 fix: recompiles 2 → 1, graphs 3 → 2 in the repeated calls" in str(report)
    assert "%fix puts the fixes into a new cell" in " ".join(str(report).split())
    assert report.patch() == "# dynascope: no file changes; needed: torch.compile(..., dynamic=True)\n"
    assert shell("%fix").text.strip() == ""
    [fixed] = texts
    assert fixed.splitlines() == ["%%compile --fix --fix-seconds 600 --backend eager --dynamic true", *cell]
    earlier = dict.fromkeys(shell.ip.compile._filename_map.keys() - report.fix_set.cells.keys(), "import numpy")
    report.fix_set.cells = earlier | report.fix_set.cells
    assert " changes, too: edit it, and run it before the new cell\n--- In[" in (said := shell("%fix").text)
    assert "-import torch\n+import numpy\n" in said
    shell.report(*fixed.splitlines()).expect("recompiles=1,graphs=2")


def test_a_change_removes_the_recompiles_of_the_calls_that_no_longer_compile(shell: Any) -> None:
    """Whatever guard fails in the others by then: the second call, and not one of those of another guard at first."""
    lines = "def forward(self, x):", "    self.n += 1", "    return x.sin() * (2 if self.n <= 2 else 3)"
    calls = "net = M()", "net.n = 0", "for size in (3, 4, 5, 4): net(torch.ones(size))"
    cell = "import torch", "class M(torch.nn.Module):", *(f"    {line}" for line in lines), *calls
    report = shell.report("%%compile --fix --fix-seconds 600 --backend eager", *cell)
    of_call = {r.frame: r.call for r in report.recompiles}
    assert [[of_call[id] for id in x.removes] for x in report.fixes if x.chosen] == [[4], [2]]
    assert not any(of_call.get(x.recompile) == 2 and "dynamic" in x.settings for x in report.fixes if not x.chosen)


def test_recompiles_are_counted_with_the_guards_that_aotautograd_adds(shell: Any) -> None:
    lines = "def f(x, b): return x * b, b * 0.5", "for b in (0.5, 0.6, 0.7): f(torch.ones(3), b)"
    report = shell.report("%%compile --fix --fix-seconds 600 --backend aot_eager --no-cache", *lines)
    assert (report.summary.recompiles, {x.reason for x in report.fixes}) == (2, {"there are not fewer recompiles"})


def test_a_break_that_values_do_not_reach_any_more_is_not_one_of_the_first_call(shell: Any) -> None:
    shell("m = torch.nn.Linear(1, 1, bias=False)", "m.weight.data.fill_(1)")
    lines = "def f(x):", "    if m(x).sum() > 0.5: print()", "    return x * 2", "f(torch.ones(1))", "m.weight.data.zero_()"
    report = shell.report("%%compile --fix --fix-seconds 600 --backend eager", *lines)
    assert len(report.breaks) == 2
    assert not any(WARM_UP in fix.settings for fix in report.fixes)


def test_the_size_that_varies_is_marked(shell: Any, texts: list[str]) -> None:
    cell = ("%%compile --fix --fix-seconds 600 --backend eager", "def f(x):", "    return x.sin() * 2", "def g(z): return -z",
            "for n in (3, 5):", "    batch = torch.ones(2, n)", "    y = f(batch) * g(torch.ones(1))")  # fmt: skip
    report = shell.report(*cell)
    [chosen] = [x for x in report.fixes if x.chosen]
    assert (chosen.verdict, chosen.settings) == ("verified", {"torch._dynamo.mark_dynamic": ["x, 1"]})
    assert not hasattr(shell.ns["batch"], "_dynamo_dynamic_indices")
    assert shell("%fix").text.strip() == ""
    [fixed] = texts
    assert fixed.splitlines() == [*cell[:-1], "    torch._dynamo.mark_dynamic(batch, 1)", cell[-1]]
    report = shell.report(*fixed.splitlines())
    report.expect("recompiles=0,graphs=2")
    assert [s.dynamic for frame in report.frames for s in frame.symbols] == ["marked"]


def test_what_a_size_in_a_text_costs_is_told(shell: Any) -> None:
    cell = ("import torch", "def f(x):", "    y = x.sin()", "    print(x.shape[0])", "    return y * 2",
            "for n in range(3, 5): f(torch.ones(n))")  # fmt: skip
    text = " ".join(str(shell.report("%%compile --fix --fix-seconds 600 --backend eager", *cell)).split())
    assert "Each size in them may get a compiled version of its own" in text


def test_only_arguments_of_repeated_calls_are_marked(shell: Any) -> None:
    cell = ("import torch", "def part(b): return b.relu() * 2", "def f(x):", "    for k in (4, 3):",
            "        torch._dynamo.graph_break()", "        y = part(x[:k])", "    return y", "f(torch.ones(4))")  # fmt: skip
    report = shell.report("%%compile --fix --fix-seconds 600 --backend eager -f f", *cell)
    assert report.recompiles
    assert not any("Mark dimension" in fix.title for fix in report.fixes)


def test_what_is_no_tensor_in_some_call_is_not_marked(shell: Any) -> None:
    cell = ("import torch", "def f(x, mask): return x * 2 if mask is None else x.sum() * mask",
            "for mask in (torch.ones(3), torch.ones(4), None): y = f(torch.ones(3), mask)")  # fmt: skip
    [fix] = [fix for fix in shell.report("%%compile --fix --backend eager", *cell).fixes if "Mark dimension" in fix.title]
    assert fix.reason == "with the recorded inputs: raises TypeError: mask is no tensor, and cannot be marked"


def test_a_decorated_forward_is_no_more_code_than_by_itself(shell: Any) -> None:
    cell = ("import torch", "class Steps(torch.nn.Module):", "    calls = [0]", "    @torch.no_grad()",
            "    def forward(self, x):", "        self.calls[0] += 1", "        if x.sum() > 0: x = x * 2",
            "        return x + 1", "m = Steps()", "for n in range(3): y = m(torch.ones(2))")  # fmt: skip
    report = shell.report("%%compile --fix --backend eager", *cell)
    assert "verified" in [fix.verdict for fix in report.fixes if fix.break_]


def test_a_change_whose_parts_are_chosen_is_not_refused(shell: Any) -> None:
    cell = ("class Steps(torch.nn.Module):", "    calls = 0", "    def forward(self, x):", "        self.calls += 1",
            "        return x * self.calls", "m = Steps()", "for n in range(3): y = m(torch.ones(2))")  # fmt: skip
    report = shell.report("%%compile --fix --backend eager", *cell)
    assert [(len(fix.settings), fix.chosen) for fix in report.fixes] == [(1, True), (1, True)], "and not their sum"


def test_a_change_with_which_calls_go_on_compiling_more_code_is_refused(shell: Any) -> None:
    lines = "k = int(x.argmax().item())", "log.append(len(log))", "return x * k"
    cell = ("import torch", "log = []", "@torch.inference_mode()", "def f(x):", *(f"    {line}" for line in lines))
    calls = "for i in range(4): f(torch.arange(4.) * (1 if i % 2 else -1))"
    text = " ".join(str(shell.report("%%compile --fix --fix-seconds 600 --backend eager", *cell, calls)).split())
    assert "refused, the fourth of four equal repeated calls compiles f; without it, only resume in f" in text
    shell("import dataclasses", "@dataclasses.dataclass", "class Made:", "    x: torch.Tensor", "    seen: tuple = ()")
    shell("made = Made(torch.arange(3.0))")
    lines = "    choice = (made.x + 1).argmax().item()", "    return dataclasses.replace(made, seen=(*made.seen, choice))"
    shell("def g(made):", *lines)
    text = str(shell.report("%%compile --fix --backend eager -f g", "for _ in range(3): made = g(made)"))
    assert "when repeated, later calls, which compiled nothing, compile g (2 times over all calls)" in " ".join(text.split())


def test_a_global_that_changes_stays_a_recompile(shell: Any) -> None:
    """The loop that calls the function is not run again by the trials."""
    shell("calls = []")
    cell = ("scale = 2", "def f(x): return x * scale", "for _ in range(3):", "    calls.append(scale)",
            "    y = f(torch.ones(3))", "    scale += 1")  # fmt: skip
    report = shell.report("%%compile --fix --fix-seconds 600 --backend eager", *cell)
    assert (shell.ns["calls"], shell.ns["scale"]) == ([2, 3, 4], 5)
    assert (report.fix_set.before.recompiles, report.fix_set.after.recompiles) == (2, 2)
    assert [x.verdict for x in report.fixes] == ["refused"]
    assert report.patch() == ""


def test_what_was_not_tried_is_not_said_to_be_impossible(shell: Any) -> None:
    shell("cache = []")
    cell = ("def f(x):", "    cache.append(x)", "    return torch.cat(cache)", "for n in range(3): y = f(torch.ones(1))")
    text = " ".join(str(shell.report("%%compile --fix --fix-seconds 600 --backend eager", *cell)).split())
    assert "no fix was tried note: Repeating 3 calls after the run, each by itself, gives 0 recompiles, not 2: no" in text
    shell('exec(compile("def g(x): return x if x.sum() > 0 else -x", "<made>", "exec"))')  # Python 3.13 knows a "<string>"
    unread = "No change was tried: its source cannot be read"
    assert unread in str(shell.report("%%compile --fix --backend eager -f g", "y = g(torch.ones(2))"))
    shell("def h(x):", "    torch._dynamo.graph_break()", "    return x + 1")
    for more in ("", "    if y.sum() > 0: y = -y"):
        report = shell.report("%%compile --fix --backend eager", "for _ in range(3):", "    y = h(torch.ones(2))", more)
        assert report.fix_set.before.graphs == 1, "not repeated once more in the loop"
    shell("rnn = torch.nn.LSTM(2, 2)", "def r(x): return rnn(x)[0]")
    report = shell.report("%%compile --fix --backend eager -f r", "for _ in range(6): y = r(torch.ones(1, 2))")
    assert "note: 4 calls repeated: with the fixes, others may break or compile again" in " ".join(str(report).split())
    shell("seen = [0]")
    cell = ("def f(x):", "    seen[0] += 1", "    if seen[0] % 4 == 0:", "        print('fourth')", "    return x * seen[0]",
            "for _ in range(8): y = f(torch.ones(3))")  # fmt: skip
    text = " ".join(str(shell.report("%%compile --fix --fix-seconds 600 --backend eager", *cell)).split())
    assert "each by itself, gives 0 graph breaks, not 1, and 0 recompiles, not" in text
    assert "No change was tried: it is not in the repeated calls" in text
    assert "in eager mode" not in text, "eight more calls lead to it again"
    text = " ".join(str(shell.report("%%compile --second-call --backend eager", *cell)).split())
    assert "in eager mode" not in text
    assert "second call: not compared: when the calls are traced again, calls in a row go on compiling" in text
    cell = ("@torch.compile(backend='eager')", "def own(x): return print('no part of what is repeated') or x", "own(f(x))")
    for option, told in ("--second-call", "not traced: not all that was"), ("--fix", "for what is not in these calls"):
        of = "def f(x): return x if x.sum() > 0 else -x", "x = torch.ones(1)"
        text = " ".join(str(shell.report(f"%%compile {option}", *of, *cell)).split())
        assert (told in text, "in eager mode" in text) == (True, False), "only a part of the run was traced again"
    assert "note: 1 call repeated: with the fixes, others may break" in text
    cell = ("def g(x): return x + 1", "y = g(torch.ones(1)), g(torch.ones(1, dtype=torch.int64))")
    assert "no fix was tried" in str(shell.report("%%compile --fix --backend eager", *cell))
    shell("p = torch.ones(2, requires_grad=True)", "def clip():", "    if p.grad.norm() > 1: p.grad.mul_(0.5)")
    steps = "p.sum().backward()", "clip()", "p.grad = None"
    text = " ".join(str(shell.report("%%compile --fix --backend eager -f clip", *steps)).split())
    raised = "When repeated, a call of clip raised AttributeError: 'NoneType' object has no attribute 'norm'"
    assert f"No change was tried: it is not in the repeated calls note: {raised}" in text
