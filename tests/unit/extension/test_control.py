"""Regions, expectations, Run again, `--check`: targets, refusals, what is restored (test_control_table.py has the rules)."""

from __future__ import annotations

import linecache
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from clicks import Clicks
from IPython.display import clear_output
from msgspec import structs
from unit.compiler.test_numbers_programs import edited, replaces, wrong_gradient

import dynascope
from dynascope.compiler.report import FlagOrigin
from dynascope.compiler.source.origin import origin
from dynascope.runs.rerun import Output
from dynascope.widgets.features.breaks import break_target

INNER = ["def inner(x):", "    x = x + 1", "    torch._dynamo.graph_break()", "    return x + 2"]
OUTER = ["def outer(x):", "    return inner(x)"]
FN = ["def fn(x):", "    x = x + 4", "    y = outer(x)", "    return y * 2", "fn(x)"]
CELL = [*INNER, *OUTER, *FN]  # the magic is line 1: the break is in line 4, the call of outer in line 10


def test_third_party_code(shell: Any, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "third_party.py").write_text(
        "import functools\n\nimport torch\n\n\ndef helper(x):\n    torch._dynamo.graph_break()\n    return x + 1\n\n\n"
        "class Block(torch.nn.Module):\n    def forward(self, x):\n        torch._dynamo.graph_break()\n"
        "        return x + 2\n\n\ndef logged(f):\n"
        "    @functools.wraps(f)\n    def wrapper(x):\n        print(f)\n        return f(x)\n\n    return wrapper\n"
    )
    shell("import third_party", "from third_party import helper, Block", "block = Block()",
          "def f(x): return third_party.helper(x) * 2", "h = torch._dynamo.error_on_graph_break(True)(f)",
          "def g(x): return block(x) * 2", "w = third_party.logged(g)")  # fmt: skip
    library = shell.ns["third_party"]

    def objects() -> list[Any]:
        own = vars(library.Block)["forward"]
        return [library.helper, library.helper.__code__, own, own.__code__, *vars(shell.ns["block"]).values()]

    before, keys = objects(), list(vars(shell.ns["block"]))
    for call, target in (("f(x)", "third_party.helper"), ("f(x)", "helper"), ("f(x)", "f"), ("h(x)", "h"), ("w(x)", "w"),
                         ("g(x)", "third_party.Block.forward"), ("g(x)", "Block"), ("g(x)", "block")):  # fmt: skip
        assert shell(f"%compile --error-on-graph-break {call}").error is not None
        report = shell.report(f"%compile --error-on-graph-break --region {target}=allow {call}")
        assert report.summary.unexpected == 0, target
        assert report.breaks[0].region == FlagOrigin(kind="option", name=target)
        assert all(a is b for a, b in zip(before, objects(), strict=True))
        assert list(vars(shell.ns["block"])) == keys
        assert shell(f"%compile --error-on-graph-break {call}").error is not None  # and it is gone again


def test_a_file_that_changed_after_its_import_has_no_region(shell: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "changed_later.py"
    file.write_text("import torch\n\n\ndef helper(x):\n    return torch.sin(x)\n")
    shell("import changed_later", "def f(x): return changed_later.helper(x)")
    file.write_text("import torch\n\n\ndef helper(x):\n    return torch.cos(x)\n")
    assert "no `def` with its code was found" in shell("%compile --region changed_later.helper=allow f(x)").text
    file.write_text("import torch\n\n\ndef helper(x):\n    return torch.sin(x)\n")
    linecache.clearcache()
    assert torch.equal(shell("%compile --region changed_later.helper=allow f(x)").result, torch.ones(3).sin())


@pytest.mark.parametrize(
    ("regions", "words"),
    [
        (["nowhere=allow"], "no 'nowhere' in the notebook"),
        (["without_source=allow"], "no `def` with its code was found"),
        (["inner=maybe"], "TARGET=error or TARGET=allow"),
        (["=allow"], "TARGET=error or TARGET=allow"),
        (["40=allow"], "ends at line 13"),
        (["1=allow"], "no statement in these lines"),
        (["9-3=allow"], "the first line first"),
        (["3-5=allow", "4-8=error"], "contradict each other"),
        (["inner=allow", "inner=error"], "contradict each other"),
        (["a b=error"], "neither a name"),
    ],
)
def test_bad_targets_are_one_line_before_anything_runs(shell: Any, regions: list[str], words: str) -> None:
    shell("ran = []", "without_source = lambda x: x")
    done = shell("%%compile " + " ".join(f"--region '{r}'" for r in regions), *CELL, "fn(ran.append(1) or x)")
    assert type(done.error).__name__ == "UsageError"
    assert words in str(done.error)
    assert "\n" not in str(done.error)
    assert shell.ns["ran"] == []
    assert "inner" not in shell.ns


def test_a_generator_has_no_region(shell: Any) -> None:
    cell = ["def gen(x):", "    yield x + 1", "list(gen(x))"]
    assert "it is a generator" in str(shell("%%compile --region gen=allow", *cell).error)
    report = shell.report("%%compile --region 3=allow --region 4=error", *cell)
    assert [note for note in report.notes if "had no effect" in note] == [
        f"--region {r} had no effect: nothing was traced with it in this run." for r in ("3=allow", "4=error")
    ]


def test_a_region_that_nothing_reached_says_so(shell: Any) -> None:
    report = shell.report("%%compile --region inner=error", *INNER, "def f(x): return x + 1", "f(x)")
    assert report.notes == ["--region inner=error had no effect: nothing was traced with it in this run."]
    cell = ["class A(torch.nn.Module):", "    def forward(self, x): return x + 1", "class C(A): pass", "C()(x)"]
    assert len(shell.report("%%compile --region C=error", *cell).notes) == 1
    for option in ("--region", "--error-on-graph-break --region"):
        shell(f"%%compile {option} logging.Logger.warning=allow", "import logging",
              "def f(x): logging.getLogger('x').warning('hi')", "f(x)")  # fmt: skip
        assert "logging.Logger.warning=allow had no effect" in str(dynascope.last().notes)


def test_a_region_in_an_inlined_function_had_its_effect(shell: Any) -> None:
    cell = ["def inner(x):", "    return x * 3", "class Net(torch.nn.Module):", "    def forward(self, x):",
            "        return inner(x) + 1", "net = Net()", "def f(x): return net(x)", "f(x)"]  # fmt: skip
    for target in ("inner", "Net.forward", "Net"):
        report = shell.report(f"%%compile -f f --region {target}=error", *cell)
        assert {"inner", "Net.forward"} <= {i.name for f in report.frames for i in f.inlined}
        assert not [note for note in report.notes if "had no effect" in note], target
    cell[5] = "net = torch.nn.Identity()"  # its `forward` is traced, but not the one of Net
    report = shell.report("%%compile -f f --region Net=error --region torch.nn.Identity.forward=error", *cell)
    assert [n for n in report.notes if "had no effect" in n] == [n for n in report.notes if "--region Net=" in n] != []


def test_regions_keep_lines_names_and_values(shell: Any) -> None:
    cell = ["y = x + 1", "torch._dynamo.graph_break()", "for i in range(2):", "    y = y * 2", "class K: a = 1",
            "z = [y, K]", "y"]  # fmt: skip
    shell(*cell)
    plain = shell.ns["y"]
    report = shell.report("%%compile --region 2-4=allow --region 7-8=error", *cell)
    assert torch.equal(shell.ns["y"], plain)
    assert shell.ns["K"].__qualname__ == "K"
    assert [b.line for b in report.breaks] == [3]


def test_the_lines_of_regions_are_in_the_report_also_where_nothing_breaks(shell: Any) -> None:
    flags = "--region 3=allow --region outer=error"
    cell = [line.replace("torch._dynamo.graph_break()", "x = x * 3") for line in CELL]
    report = shell.report(f"%%compile {flags}", *cell)
    assert report.breaks == []
    found = [(r.first, r.last, r.error_on_graph_break, r.set_by.name) for r in report.sources[0].regions]
    assert found == [(6, 7, True, "outer"), (3, 3, False, "3")]
    silent = shell.report(f"%%compile --fullgraph {flags}", *cell)
    assert silent.sources[0].regions == []  # fullgraph wins over them


def test_methods_and_nested_functions_of_the_cell(shell: Any) -> None:
    cell = ["class Net(torch.nn.Module):", "    def forward(self, x):", "        '''text'''",
            "        def deep(x):",
            "            torch._dynamo.graph_break()",
            "            return x + 1", "        return deep(x) * 2", "Net()(x)"]  # fmt: skip
    for target in ("Net.forward", "forward", "Net", "deep", "6", "3"):
        assert shell.report(f"%%compile --error-on-graph-break --region {target}=allow", *cell).summary.unexpected == 0, target
        forward = shell.ns["Net"].forward
        assert forward.__doc__ == "text"
        assert "__dynascope_region__" not in forward.__code__.co_names


def test_docstrings_and_future_imports_stay_where_python_wants_them(shell: Any) -> None:
    cell = ["from __future__ import annotations", "def f(x):", "    'text'", "    y = x + 1", "    torch._dynamo.graph_break()",
            "    return y * 2", "class K:", "    'of K'", "    a = 1", "f(x)"]  # fmt: skip
    report = shell.report("%%compile --region 2=error --region 4-6=allow --region 9-10=error", *cell)
    assert (shell.ns["f"].__doc__, shell.ns["K"].__doc__) == ("text", "of K")
    assert [(b.line, b.region.name) for b in report.breaks] == [(6, "4-6")]


# -- expectations and what changed ------------------------------------------------------------------------------


def test_expectations(shell: Any) -> None:
    assert shell("%%compile --expect breaks=1,graphs>=2,unexpected<=1", *CELL).error is None
    done = shell("%%compile --expect breaks=0", *CELL)
    assert type(done.error).__name__ == "ExpectationFailed"
    assert "expected breaks=0, found 1" in str(done.error)
    assert ":4 torch._dynamo.graph_break()" in str(done.error)
    assert dynascope.last().summary.breaks == 1
    done = shell("%%compile --fullgraph --expect breaks=0", *CELL)
    assert type(done.error).__name__ == "ExpectationFailed"
    assert done.text.index("torch._dynamo.graph_break()\n") < done.text.index("ExpectationFailed: "), "the cell's error, too"
    for options in ("--keep --region 4=allow", "--expect nonsense=1", "--expect check=agrees"):
        bad = shell(f"%%compile {options}", *CELL, "never = 1")
        assert type(bad.error).__name__ == "UsageError"
        assert "never" not in shell.ns
    assert "check=agrees needs --check" in str(bad.error)
    assert shell("%%compile --check --expect check=agrees", *CELL).error is None


# -- run again -------------------------------------------------------------------------------------------------


def test_run_again_shows_output_value_and_error(shell: Any, kernel: Any) -> None:
    shell("%%compile", "print('out')", "def f(x):", "    return x + n", "n = 1", "f(x)")
    kernel.again()
    assert kernel.view().printed[0] == {"type": "stream", "text": "out\n"}
    assert "tensor([2., 2., 2.])" in kernel.view().printed[-1]["text"]
    shell("%%compile", "f(x).nope")
    kernel.again()
    assert "AttributeError" in kernel.view().printed[-1]["text"]
    assert "magics.py" not in kernel.view().printed[-1]["text"]
    assert not kernel.view().busy
    assert dynascope.last().error is not None


def test_a_run_again_that_exits_leaves_the_kernel_alive(shell: Any, kernel: Any) -> None:
    shell("%%compile", "print('out')", "raise SystemExit('over')")
    kernel.again()  # raises nothing, as that would end the loop of a kernel
    assert kernel.view().printed == [{"type": "stream", "text": "out\n"}, {"type": "error", "text": "SystemExit: over\n"}]
    assert not kernel.view().busy


def test_a_second_click_is_refused_and_a_queued_run_can_be_taken_back(shell: Any, kernel: Any) -> None:
    shell("%%compile", *CELL)
    kernel.press("run_again", settings={}, regions=[])
    kernel.press("run_again", settings={}, regions=[])
    assert "already queued" in kernel.view().status["text"]
    assert len(kernel.loop.queued) == 1
    kernel.press("stop")
    before = dynascope.last()
    kernel.loop.run()
    assert dynascope.last() is before
    assert not kernel.view().busy


def test_stop_leaves_the_runs_of_another_view_alone(shell: Any, kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shell("%%compile", *CELL)
    shell("%%compile", "x + 2")
    kernel.press("run_again", 0, settings={}, regions=[])
    kernel.press("stop", 1)
    assert "this view has nothing running" in kernel.views[1].status["text"]
    before = dynascope.last()
    kernel.loop.run()
    assert dynascope.last() is not before, "the queued run of the first view has run"

    interrupted: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: interrupted.append(pid))
    shell.ns["press_stop"] = lambda: kernel.press("stop", 1)
    shell("%%compile", "press_stop()", "x + 1")
    kernel.press("run_again", 2, settings={}, regions=[])
    kernel.loop.run()
    assert interrupted == [], "Stop of one view interrupts no run of another"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"save": "/tmp/x"}, "cannot change save"),
        ({"backend": "nope"}, "unknown backend"),
        ({"backend": "inductor", "mode": "nonsense"}, "unknown mode 'nonsense': use one of default"),
        ({"dynamic": "maybe"}, "dynamic takes True or False, not 'maybe'"),
    ],
)
def test_what_a_view_asks_for_is_checked(shell: Any, kernel: Clicks, settings: dict[str, Any], words: str) -> None:
    shell("%%compile", *CELL)
    kernel.send(settings)
    kernel.loop.run()
    assert words in kernel.view().status["text"]
    assert not kernel.view().busy


def test_a_region_for_a_break_in_another_cell_or_a_library(shell: Any, kernel: Any) -> None:
    shell(*INNER)
    earlier = break_target(shell.report("%%compile", "inner(x)").breaks[0])
    assert kernel.again({"error_on_graph_break": True}, {earlier: "allow"}).summary.unexpected == 0
    assert "--region inner=allow" in kernel.view().command
    report = shell.report("%%compile", "def outer(x):", "    torch._dynamo.graph_break()", "    return inner(x)", "outer(x)")
    own, earlier = [break_target(b) for b in report.breaks]  # both are in line 3
    assert [b.allowed for b in kernel.again({"error_on_graph_break": True}, {own: "allow"}).breaks] == [True, False]
    assert "--region 3=allow" in kernel.view().command
    assert kernel.again({}, {earlier: "allow"}).summary.unexpected == 0
    assert "--region 3=allow --region inner=allow" in kernel.view().command


def test_compiled_code_of_a_run_goes_when_it_is_over(shell: Any) -> None:
    def left() -> int:
        return sum(name.startswith(("__compiled_fn", "__resume_at")) for name in shell.ns)

    shell("%%compile", *CELL)
    before = left()
    for _ in range(3):
        shell("%%compile", *CELL)
    assert left() == before


# -- --check ---------------------------------------------------------------------------------------------------


def test_what_a_repeated_call_compiles_is_not_in_the_report(shell: Any) -> None:
    report = shell.report(
        "%%compile --check", "net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.0))",
        "optimizer = torch.optim.SGD(net.parameters())", "for _ in range(2):", "    net.train()",
        "    net(torch.ones(1, 3)).sum().backward()", "    optimizer.step()", "    net.eval()",
    )  # fmt: skip
    assert report.check.agrees is True
    assert [(frame.name, frame.status) for frame in report.frames] == [("net", "compiled")]


def test_check_compares_gradients_wherever_parameters_are_reached(shell: Any) -> None:
    shell("net = torch.nn.Linear(3, 1)", "holder = type('H', (), {})()", "holder.deep = {'net': torch.nn.Linear(3, 1)}",
          "def make(scale):", "    def inside(x): return net(x * scale) + holder.deep['net'](x)", "    return inside",
          "scale = torch.ones(3, requires_grad=True)", "g = make(scale)")  # fmt: skip
    assert shell.report("%%compile --check -f g", "y = g(x)").check.compared["gradients"] == 5  # two linears and scale
    report = shell.report("%%compile --check", "def f(x): return net(x).sum()", "f(x)")
    assert (report.check.agrees, report.check.compared["gradients"]) == (True, 2)
    assert shell.report("%%compile --check", "y = net(x)", "z = y * 2").check.compared["gradients"] == 2  # of y, z
    assert shell.report("%%compile --check", "y = net(x)", "y * 2").check.compared["gradients"] == 2
    report = shell.report("%%compile --check", "def step(x):", "    loss = net(x).sum()", "    loss.backward()",
                          "    return loss", "step(x)")  # fmt: skip
    assert (report.check.agrees, report.check.compared["gradients"]) == (True, 2)  # those that it left in .grad
    assert torch.equal(shell.ns["net"].bias.grad, torch.ones(1))


def test_check_finds_wrong_gradients_of_a_global_module(shell: Any) -> None:
    with edited(replaces(torch.tanh, wrong_gradient(torch.tanh)))() as backend:
        torch._dynamo.register_backend(backend, name="wrong_gradients")
    shell("net = torch.nn.Linear(3, 1)")
    report = shell.report("%%compile --check --backend wrong_gradients", "def f(x): return torch.tanh(net(x))", "f(x)")
    assert report.check.agrees is False
    assert [d.partition(" (")[0] for d in report.check.differences] == ["gradient of net.weight", "gradient of net.bias"]


def test_where_numbers_begin_to_differ_is_searched_at_a_click(shell: Any, kernel: Clicks) -> None:
    with edited(replaces(torch.tanh, torch.cos))() as backend:
        torch._dynamo.register_backend(backend, name="cos_for_tanh")
    shell("%%compile --check --backend cos_for_tanh", "def f(x):", "    a = torch.sin(x)", "    return torch.tanh(a)", "f(x)")
    assert kernel.view().content["check"]["searchable"]
    kernel.again({"check": "where"})
    assert any("The error begins at" in line for line in kernel.view().content["check"]["lines"])
    assert kernel.view().command.endswith("--check=where")


# -- among other tools -----------------------------------------------------------------------------------------


def test_under_time_autoreload_and_run(shell: Any, tmp_path: Any) -> None:
    assert shell.report("%%time", "%%compile --error-on-graph-break --region 5=allow", *CELL).summary.unexpected == 0
    shell("%load_ext autoreload", "%autoreload 2")
    assert shell.report("%%compile --region inner=allow", *CELL).summary.unexpected == 0
    shell("%autoreload 0")
    script = tmp_path / "script.py"
    script.write_text("\n".join(["import torch", "x = torch.ones(3)", *CELL]))
    shell(f"%run {script}")
    assert shell.report("%compile --error-on-graph-break --region inner=allow fn(x)").summary.unexpected == 0


def test_the_output_of_a_run_from_the_view_is_as_in_a_cell(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Progress bars write over their line, `clear_output` clears, and a logger that the cell sets up writes elsewhere later."""
    shown: list[Any] = []
    with Output(SimpleNamespace(output=shown.append)).collecting():
        print("cleared")
        clear_output(wait=True)
        for percent in (10, 20):
            print(f"{percent} %", end="\r")
        print("done")
        kept = sys.stderr
    assert shown[-1] == [{"type": "stream", "text": "done\n"}]
    kept.write("later\n")
    kept.flush()
    assert len(shown[-1]) == 1
    assert capsys.readouterr().err == "later\n"


def test_run_again_replaces_the_report_that_the_cell_displayed(shell: Any, kernel: Clicks) -> None:
    shell("%%compile", *CELL)
    assert kernel.updates == []
    kernel.again({"fullgraph": True})
    (report,) = kernel.updates
    assert "stopped by an error" in report["text/plain"]
    assert "<img" in report["text/html"]


@pytest.mark.parametrize(
    "line",
    ["print('half way', x)", "sys.stdout.write('half way')", "sys.stdout.flush()", "display('half way')", "clear_output()"],
)
def test_a_run_from_the_view_reports_what_the_cell_reported(shell: Any, kernel: Any, line: str) -> None:
    """The view's own output, which compiled code calls in its eager gaps, is no frame of the program and hides no break."""
    shell("import sys", "from IPython.display import clear_output")
    first = shell.report("%%compile", "def f(x):", "    x = x + 1", f"    {line}", "    return x * 2", "f(x)")
    again = [kernel.again(), kernel.again(), kernel.again({"fix": True})]
    for report in again:
        assert structs.replace(report.summary, compile_seconds=0) == structs.replace(first.summary, compile_seconds=0)
        assert [(b.file, b.line, b.column) for b in report.breaks] == [(b.file, b.line, b.column) for b in first.breaks]
        assert not [f.file for f in report.frames if origin(f.file) == "dynascope"]


def test_notebook_plumbing_is_no_skipped_frame(shell: Any) -> None:
    torch._dynamo.reset()  # it looks only once at each of IPython's functions
    report = shell.report("%%compile", "def f(x):", "    x = x + 1", "    display('half way')", "    return x * 2", "f(x)")
    assert (report.summary.skipped, report.summary.breaks) == (0, 1)


def test_the_path_to_a_stop_is_that_of_the_call_which_stopped(shell):
    shell("def log(h): print(h.shape)")
    cell = "def block(x):", "    log(x + 1)", "    log(x + 2)", "block(x)"
    for flag, name in (("--error-on-graph-break", None), ("--region block=error", "block")):  # both regions begin at line 3
        assert shell(f"%%compile -o report {flag} --region 3=allow", *cell).error is not None
        assert [e.line for e in shell.ns["report"].breaks[0].stack] == [4, 1]
        assert shell.ns["report"].breaks[0].region.name == name
