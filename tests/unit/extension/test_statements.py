"""The statements of a cell, compiled as functions."""

from __future__ import annotations

import sys

import pytest
import torch


def test_statements_are_compiled(shell):
    report = shell.report("%%compile", "y = x + 1", "torch._dynamo.graph_break()", "z = y * 2", "z")
    assert report.compiled == ["the cell's statements"]
    assert (report.summary.graphs, report.summary.breaks, report.summary.resumes) == (2, 1, 1)
    assert report.breaks[0].line == 3
    assert shell.ns["z"].tolist() == [4, 4, 4]
    assert "_in" not in shell.ns


def test_value_of_the_last_expression_is_the_result(shell):
    assert shell("%%compile", "x + 1").result.tolist() == [2, 2, 2]
    assert shell("%%compile", "x + 1;").result is None
    assert shell("%%compile", "y = x").result is None
    assert shell("%compile x * 3").result.tolist() == [3, 3, 3]
    assert shell("%compile --no-fullgraph --backend=eager 'a  b'").result == "a  b"


def test_name_that_may_not_be_bound_raises_name_error(shell):
    done = shell("%%compile", "if x.sum() < 0:", "    y = 1", "z = x + 1", "print(y)")
    assert type(done.error) is NameError
    assert "y" not in shell.ns
    done = shell("%%compile", "try:", "    late", "except NameError:", "    late = x", "late = late + 1")
    assert done.error is None
    assert shell.ns["late"].tolist() == [2, 2, 2]


def test_callees_find_what_the_cell_assigned(shell):
    shell("def helper(t): return t * scale")
    report = shell.report("%%compile", "y = x + 1", "scale = 2.0", "z = helper(y)", "z")
    assert (report.summary.graphs, report.summary.breaks, report.summary.skipped) == (2, 0, 0)  # `scale` ends the first one
    report = shell.report("%%compile", "y = x + 1", "scale = 2.0", "z = helper(y)", "z")  # where it is bound already
    assert (report.summary.graphs, report.summary.breaks, report.summary.skipped) == (1, 0, 0)
    del shell.ns["scale"]
    assert type(shell("%%compile", "z = helper(x)", "scale = 2.0").error) is NameError


@pytest.mark.parametrize(
    ("lines", "graphs"),
    [
        (["z = helper(x)", "y = z + 1", "w = y * 2"], 2),
        (["z = net(x)", "y = z + 1", "w = y * 2"], 2),  # `net` is torch's, and holds a module that calls `helper`
        (["y = 1", "del y", "z = helper(x)", "y = z + 1"], 1),
        (["for i in range(2):", "    y = x * i", "z = helper(y) + y", "y = z + 1"], 2),
    ],
)
def test_statements_that_bind_a_name_which_a_callee_may_read_end_a_part(shell, lines, graphs):
    shell("def helper(t, late=False): return t + y if late else t * 2",
          "class Block(torch.nn.Module):", "    def forward(self, t): return helper(t)",
          "net = torch.nn.Sequential(Block())")  # fmt: skip
    report = shell.report("%%compile", *lines)
    assert (report.summary.graphs, report.summary.breaks, report.summary.skipped) == (graphs, 0, 0)


@pytest.mark.parametrize(
    "lines",
    [
        ["@torch.no_grad()", "def get(t): return late"],
        ["def wrap(f): return lambda t: f(t)", "@wrap", "def get(t): return late"],
        ["class A:", "    def f(self, t): return late", "get = A().f"],
        ["class A:", "    @staticmethod", "    def f(t): return late", "get = A.f"],
        ["class A:", "    @classmethod", "    def f(cls, t): return late", "holder = [A]", "def get(t): return holder[0].f(t)"],
        ["def f(t): return late", "get = torch.compile(f, backend='eager')"],
        ["def f():", "    yield late", "it = f()", "def get(t): return next(it)"],
    ],
    ids=["no_grad", "closure", "bound method", "static method", "class method", "compiled", "generator"],
)
def test_no_callee_sees_the_stand_in_of_a_name(shell, lines):
    """Where the plain cell raises NameError, a function behind a decorator, a method or a generator does so, too."""
    shell(*lines)
    assert type(shell("%%compile", "z = get(x)", "late = 1").error) is NameError
    assert "z" not in shell.ns


@pytest.mark.parametrize(
    "statement",
    ["no and (late := 5)", "1 > 2 > (late := 5)", "(late := 5) if no else 0", "[late := i for i in []]",
     "assert not no, (late := 5)"],
)  # fmt: skip
def test_a_walrus_that_was_skipped_binds_nothing(shell, statement):
    shell("no = False")
    assert type(shell("%%compile", statement, "z = [late]").error) is NameError
    assert "z" not in shell.ns


def test_lambdas_are_as_in_a_plain_cell(shell):
    shell.report("%%compile", "late = lambda t: t + k", "k = 2", "late(x)")
    assert (shell.ns["late"].__qualname__, shell.ns["late"].__code__.co_name) == ("<lambda>", "<lambda>")
    shell.ns["k"] = 5
    assert shell.ns["late"](1) == 6


@pytest.mark.parametrize(
    ("lines", "name", "value"),
    [
        (["class C: pass", "y = C.__qualname__"], "y", "C"),
        (["from math import *", "y = pi > 3"], "y", True),
        (["y = locals() is globals()"], "y", True),
        pytest.param(
            ["number: int = 3", "y = __annotations__['number'] is int"],
            "y",
            True,
            marks=pytest.mark.skipif(sys.version_info >= (3, 14), reason="annotations are evaluated when they are asked for"),
        ),
        (["'some text'", "y = __doc__"], "y", "some text"),
        (["y = 1", "del y", "y = 2"], "y", 2),
        (["global y", "y = 4"], "y", 4),
        (["y = [i for i in range(3)]", "assert 'i' not in globals()"], "y", [0, 1, 2]),
        (["_in = 3", "y = _in + 1"], "y", 4),
        (["while (y := 5) < 5: pass"], "y", 5),
        (["f = lambda t=(y := 5): t"], "y", 5),
        (["y = (lambda names=dir(): 'torch' in names)()"], "y", True),
        (["a, *y = 1, 2, 3"], "y", [2, 3]),
        (["match [1, 2]:", "    case [1, y]: pass"], "y", 2),
        (["import math as y", "y = y.pi > 3"], "y", True),
        (["m = torch.compile(torch.nn.ReLU())", "y = type(m).__name__"], "y", "OptimizedModule"),
        (["with torch.compiler.set_stance('force_eager'):", "    y = x.shape[0]"], "y", 3),
    ],
)
def test_statements_that_mean_something_else_in_a_function(shell, lines, name, value):
    shell.report("%%compile", *lines)
    assert shell.ns[name] == value


def test_the_users_own_compiled_module_is_compiled_where_the_cell_calls_it(shell):
    report = shell.report("%%compile", "import re", "m = torch.compile(torch.nn.ReLU())", "a = re.compile('a+')", "y = m(x)")
    why = "torch.compile(), a new Module, re.compile(), calls of compiled code"
    assert report.notes[0] == f"lines 3–5 ran uncompiled ({why})."
    assert (report.compiled, report.summary.graphs, report.summary.skipped) == (["ReLU"], 1, 0)


def test_what_ran_outside_is_told(shell):
    report = shell.report("%%compile", "dir = x + 1; number: int = 3")  # only a read of `dir` is about the frame
    assert report.notes == ["parts of line 2 ran uncompiled (annotated assignment)."]
    assert report.summary.graphs == 1
    shell("def shown(): return t")
    report = shell.report("%%compile", "%who_ls Tensor", "for t in [x, x]: y = t * 2")
    reasons = "a magic or shell command, a function reads a name that is bound here"
    assert report.notes[0] == f"lines 2–3 ran uncompiled ({reasons})."
    assert report.notes[1].startswith("nothing was compiled: the cell's statements ran uncompiled, and called no")
    shell("vars = x", "def eval(t): return t + 1")
    report = shell.report(
        "%%compile", "z = (lambda z: z.sin())(vars); eval(z)"
    )  # a parameter of that name, names of the user's
    assert (report.notes, report.summary.graphs) == ([], 1)
    shell("sin, cos, inputs = torch.sin, torch.cos, (x.clone().requires_grad_(),)")
    report = shell.report("%%compile", "torch.cond(torch.tensor(True), sin, cos, inputs).sum().backward()")  # torch compiles it
    assert (report.notes, report.summary.graphs) == (["line 2 ran uncompiled (backward or optimizer calls)."], 1)
    report = shell.report("%%compile", "loader = torch.utils.data.DataLoader(x)", "y = x + 1")
    assert report.notes == ["line 2 ran uncompiled (a new DataLoader)."]


def test_only_what_the_noted_lines_call_is_said_to_be_called_there(shell):
    shell("def f(t): return t + 1")
    eager, default = 'torch.compiler.set_stance("force_eager")', 'torch.compiler.set_stance("default")'
    called = ", annotated assignment); calls of f there went to torch.compile."
    for line, said in (("y = f(x)", ")."), ("y: int = f(x)", called)):
        notes = shell.report("%%compile", eager, line, "y = f(x)", default).notes
        assert notes[0].endswith(f"ran uncompiled (torch.compiler.set_stance(){said}")


def test_return_fails_before_anything_runs(shell):
    done = shell("%%compile", "y = 1", "return 3")
    assert type(done.error) is SyntaxError
    assert done.text.splitlines()[0].endswith("line 3")
    assert "y" not in shell.ns


def test_known_difference_an_error_that_only_the_running_graph_finds(shell):
    """torch.compile binds names after the graph has run: an error inside the graph loses those that it would have bound."""
    assert type(shell("%%compile", "y = x.clone() + 1", "z = y.nope").error) is AttributeError
    assert "y" not in shell.ns


TRAINING = (
    "model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))",
    "optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1))",
    "for _ in range(3):",
    "    optimizer.zero_grad()",
    "    loss = model(x).square().sum()",
    "    loss.backward()",
    "    optimizer.step()",
    "loss.item()",
)


def test_what_a_training_loop_calls_is_compiled(shell):
    torch.manual_seed(3)
    plain = shell(*TRAINING).result
    torch.manual_seed(3)
    done = shell("%%compile -o report", *TRAINING)
    report = shell.ns["report"]
    assert done.result == plain
    assert report.compiled == ["model"]
    assert (report.summary.graphs, report.summary.breaks, report.summary.skipped) == (1, 0, 0)
    reasons = "a new Module, a new Optimizer, backward or optimizer calls"
    assert report.notes == [f"lines 2–8 ran uncompiled ({reasons}); calls of model there went to torch.compile."]
    assert "torch_dynamo" not in repr(shell.ns["model"].forward)


@pytest.mark.parametrize(
    "loop",
    [
        ["for t in [x, x]:", "    seen.append(helper(model(t)).sum().item())"],
        ["with torch.no_grad():", "    for t in [x, x]:", "        seen.append(helper(model(t)).sum().item())"],
        ["print('start')", "for t in [x, x]:", "    seen.append(helper(model(t)).sum().item())"],  # in a resume function
    ],
)
def test_what_a_loop_with_a_graph_break_calls_is_compiled(shell, loop):
    shell("def helper(t): return t + 1", "model = torch.nn.Sequential(torch.nn.ReLU())")
    report = shell.report("%%compile", "seen = []", *loop)
    assert report.compiled == ["the cell's statements", "model", "helper"]
    assert [g.ops for g in report.graphs] == [1, 1]
    assert shell.ns["seen"] == [6.0, 6.0]
    lines = f"lines {4 if 'print' in loop[0] else 2}–{len(loop) + 2} ran uncompiled"  # in the skipped frame
    assert report.notes[-1] == f"{lines} (the compiler gave up); calls of helper, model there went to torch.compile."


def test_calls_of_what_is_not_for_the_compiler_stay_plain(shell):
    shell("import contextlib", "@contextlib.contextmanager", "def timed(name): yield name",
          "@torch.compiler.disable", "def off(t): return t + 1",
          "class Log:", "    def __init__(self): self.seen = []", "log = Log()",
          "own = torch.compile(lambda t: t * 2, backend='eager')")  # fmt: skip
    loop = ("for t in torch.utils.data.DataLoader([x, x], batch_size=2):", "    with timed('a') as name:")
    report = shell.report("%%compile", *loop, "        log.seen.append(own(off(t)).sum().item())")
    assert shell.ns["log"].seen == [24.0]
    assert (report.compiled, report.summary.graphs) == (["<lambda>"], 1)


def test_a_name_that_is_not_defined_is_no_bug_of_the_compiler(shell):
    assert type(shell("%%compile -o report", "missing(x)").error) is NameError
    text = " ".join(str(shell.ns["report"]).split())
    assert "→ The name is not there when the compiled code is called: if it should be, define or import it before." in text
    assert "Dynamo bug" not in text
    assert "Move the line" not in text
    assert "note: line 2 ran uncompiled (the compiler gave up)." in text


@pytest.mark.parametrize("setting", ["torch.manual_seed(0)", "random.seed(0)", "torch.use_deterministic_algorithms(False)"])
def test_a_seed_is_no_graph_break(shell, setting):
    shell("import random")
    report = shell.report("%%compile", setting, "y = x + 1")
    assert (report.summary.graphs, report.summary.breaks, report.notes) == (1, 0, [])
