"""Entry points: what a cell defines is compiled where its own statements call it, and every name stays plain."""

from __future__ import annotations

import gc
import re
import types
import weakref

import pytest
import torch

import dynascope
from dynascope.compiler.lab.recorded_call import RecordedCall


def test_function_is_compiled_and_the_name_stays_plain(shell):
    before = set(shell.ns)  # Dynamo's own names from other tests
    report = shell.report("%%compile", "def f(x):", "    torch._dynamo.graph_break()", "    return x + 1", "f(x)")
    assert report.compiled == ["f"]
    assert (report.summary.graphs, report.summary.breaks) == (1, 1)
    assert (report.breaks[0].line, report.breaks[0].cell) == (3, shell.number)
    assert type(shell.ns["f"]) is types.FunctionType
    assert not hasattr(shell.ns["f"], "_torchdynamo_orig_callable")
    assert not [n for n in shell.ns if "dynascope" in n and n not in before]


def test_break_has_the_line_of_the_notebook_cell_also_below_another_magic(shell):
    report = shell.report("%%time", "", "%%compile", "", "def f(x):", "    torch._dynamo.graph_break()", "f(x)")
    assert report.breaks[0].line == 6


def test_a_nested_function_of_an_edited_cell_belongs_to_it(shell):
    cell = ["if True:", "    def make():", "        def inner(x):", "            torch._dynamo.graph_break()",
            "            return x + 1", "        return inner", "def f(x): return make()(x)"]  # fmt: skip
    for call in ("f(x)", "f(x * 2)"):
        assert [b.cell for b in shell.report("%%compile", *cell, call).breaks] == [shell.number]


def test_module_class_of_the_cell(shell):
    report = shell.report("%%compile", "class Net(torch.nn.Module):", "    def forward(self, x):",
                          "        torch._dynamo.graph_break()", "        return x + 1", "    def twice(self, x): return x * 2",
                          "net = Net()", "net(x), net.twice(x), net.eval()")  # fmt: skip
    assert (report.compiled, report.summary.breaks) == (["Net"], 1)
    assert {f.name for f in report.frames if f.status == "compiled"} == {"Net", "twice"}
    assert "_compiled_call_impl" not in shell.ns["net"].__dict__
    report = shell.report("%%compile", "class Same(Net): pass", "Same()(x)")
    assert (report.compiled, report.summary.breaks, report.notes) == (["Same"], 1, [])
    report = shell.report("%%compile", "if True:", "    class Same(Net): pass", "Same()(x)")
    assert (report.compiled, report.notes) == (["Same"], [])


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["def f(x):", "    yield x"], "a generator"),
        (["import contextlib as c", "@c.contextmanager", "def f(x):", "    yield x"], "decorated with @c.contextmanager"),
        (["async def f(x):", "    return x"], "an async function"),
        (["import functools", "@functools.lru_cache", "def f(x):", "    return x"], "decorated with @functools.lru_cache"),
        (["@torch.compiler.disable", "def f(x):", "    return x"], "decorated with @torch.compiler.disable"),
    ],
)
def test_other_definitions_stay_as_they_are_and_the_report_says_so(shell, lines, why):
    report = shell.report("%%compile", *lines, "r = f(x)")
    assert report.notes[0] == f"f is not compiled by itself: it is {why}."
    if "async" not in why:
        assert not report.frames or all(f.name != "f" for f in report.frames)
    else:
        shell.ns["r"].close()
    if why == "a generator":  # it is compiled with what calls it
        assert shell.report("%%compile", *lines, "def g(x): return sum(f(x))", "g(x)").notes == []


@pytest.mark.parametrize("decorator", ["torch._dynamo.error_on_graph_break", "dynascope.region"])
def test_region_decorator_is_an_entry_point(shell, decorator):
    flag = "error_on_graph_break=False" if "region" in decorator else "False"
    shell("import dynascope")
    report = shell.report("%%compile --error-on-graph-break", f"@{decorator}({flag})", "def f(x):",
                          "    torch._dynamo.graph_break()", "    return x + 1", "f(x)")  # fmt: skip
    assert report.summary.breaks == 1
    assert report.error is None


NOT_GIVEN = "calls of {} in the cell's own statements did not go to torch.compile: with {}, they do."
M = ["class M(torch.nn.Module):", "    def forward(self, x): return x + 1"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["async def f(x): return x", "y = x * 2"], "its own statements called nothing that is compiled by itself."),
        ([*M, "m = M()"], "no statement of the cell called an instance of M directly: add a call, M(...)(x)."),
        (["def helper(x): return x * 2", "def f(x): return helper(x)"], "called f directly: add a call, f(...)."),
        (["def f(x): return x + 1", "list(map(f, [x]))"], "called f directly: add a call, f(...)."),
        (
            ["class T:", "    def fit(self, x): return f(x)", "def f(x): return x", "T().fit(x)"],
            NOT_GIVEN.format("T.fit", "-f T.fit"),
        ),
        (["def deco(f): return f", "@deco", "def f(x): return x + 1", "f(x)"], NOT_GIVEN.format("f", "-f f")),
    ],
)
def test_nothing_compiled_names_the_cure(shell, lines, said):
    assert said in shell.report("%%compile", *lines).notes[-1]


def test_keep_leaves_compiled_entry_points(shell):
    shell.report("%%compile -f h", "def h(x): return x + 1", "def f(x): return h(x)", "_f = f; h(x)")
    shell.report("%%compile --keep -f _f", "_f(x)")
    assert hasattr(shell.ns["_f"], "_torchdynamo_orig_callable")
    with dynascope.observe() as run:  # `h`, which is inlined, still has the code that it was traced with
        shell("for n in [3, 6, 7, 8]: f(torch.ones(n))")
    assert (run.report.summary.cached, run.report.summary.recompiles) == (1, 1)  # as by torch.compile: dynamic from 6 on


@pytest.mark.parametrize("options", ["", " -f m -f s"])  # `s` contains a module of the cell
def test_a_kept_module_is_compiled_in_place_or_as_torch_compile_does(shell, options):
    torch._dynamo.reset()  # torch's own modules share one code object: what an earlier test compiled of one comes back in force
    shell.report(f"%%compile --keep{options}", *M, "m, s = M(), torch.nn.Sequential(M())", "s(m(x))")
    with dynascope.observe() as run:
        assert torch.equal(shell("s(m(x))").result, torch.full((3,), 3.0))
    assert (run.report.summary.cached, run.report.summary.graphs) == (2, 2)
    assert shell.report("%%compile -f M", "m(x)").notes[-1].startswith(KEPT.format("M"))
    again = shell.report("%%compile -f m", "m(x)")  # traced with the settings of this cell
    assert (again.summary.graphs, again.summary.cached, again.notes) == (1, 0, [])


@pytest.mark.parametrize("function", ["", " -f f"])
def test_what_a_recorded_call_copied_goes_with_the_run(shell, function):
    shell("def f(x): return x + 1")
    shell("%%compile --check" + function, "y = f(x)")
    gc.collect()
    assert not [value for value in gc.get_objects() if type(value) is RecordedCall]


def test_users_objects_are_not_kept_alive(shell):
    shell.report("%%compile", "def f(x):", "    return x + 1", "r = [f(x) for _ in range(2)]", "late = (f(y) for y in [x])")
    seen = weakref.ref(shell.ns["f"])
    assert next(shell.ns["late"]).tolist() == [2, 2, 2]
    del shell.ns["f"], shell.ns["late"]
    gc.collect()
    assert seen() is None


HELPER = ["def helper(x):", "    return x.cos()"]
OWN = ["@torch.compile(backend='eager')", "def fn(x):", "    torch._dynamo.graph_break()", "    return helper(x)"]
NET = ["class Net(torch.nn.Module):", "    def forward(self, x): return x + 1", "    def go(self, x): return x + 2"]
ALLOW = "@torch._dynamo.error_on_graph_break(False)"
KEPT = "{}: compiled by torch.compile or --keep, whose settings hold in calls from uncompiled code"


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ([*HELPER, *OWN, "fn(x)"], "fn"),
        ([ALLOW, *HELPER, ALLOW, *OWN, "fn(x)"], "fn"),
        (["import functools", *HELPER, "@functools.partial(torch.compile, backend='eager')", *OWN[1:], "fn(x)"], "fn"),
        ([*HELPER, "helper = torch.compile(helper, backend='eager')", "helper(x)"], "helper"),
        ([*HELPER, "fast = torch.compile(helper, backend='eager')", "fast(x)"], "helper"),
        ([*HELPER, "torch.compile(helper, backend='eager')(x)"], "helper"),
        ([*HELPER, "torch.compile(lambda x: helper(x) * 2, backend='eager')(x)"], "<lambda>"),
        ([*HELPER, "def g(x): return x * 3", "for f in (g, helper):", "    torch.compile(f, backend='eager')(x)"], "g, helper"),
        ([*NET, "net = Net()", "net.compile(backend='eager', fullgraph=True)", "net(x)"], "Net"),
        ([*NET, "net = torch.compile(Net(), backend='eager')", "net(x)"], "Net"),
        ([*NET, "go = torch.compile(Net().go, backend='eager')", "go(x)"], "Net.go"),
        ([*HELPER, "linear = torch.compile(torch.nn.Linear(3, 3), backend='eager')", "linear(x)"], "Linear"),
        ([*HELPER, *OWN, "@torch.compiler.disable", "def main():", "    return fn(x)", "main()"], "fn"),
    ],
)  # fmt: skip
def test_what_the_cell_compiles_itself_is_named_and_left_as_it_is(shell, lines, names):
    report = shell.report("%%compile", *lines)
    assert report.headline().startswith(f"{names}: ")
    assert report.graphs
    assert not any("nothing was compiled" in note for note in report.notes)
    (kept,) = (note for note in report.notes if "whose settings hold" in note)
    assert re.sub(r"( \(with -f \w+, those of %%compile, which can repeat its calls\))?\.$", "", kept) == KEPT.format(names)


def test_what_an_earlier_cell_compiled_is_compiled_anew_and_then_in_force_again(shell):
    made = shell.ns["made"] = []
    shell("def count(graph, _): made.append(graph); return graph")
    shell("@torch.compile(backend=count)", "def g(x): return x + 1", "g(x)")
    assert shell.report("%%compile", "def f(x): return x * 2", "f(x), g(x)").summary.graphs == 2
    assert len(made) == 2
    shell("g(x)")
    assert len(made) == 2


def test_own_settings_stay_and_f_replaces_them(shell):
    strict = ["@torch.compile(backend='eager', fullgraph=True)", *OWN[1:]]
    done = shell("%%compile", *HELPER, *strict, "fn(x)")
    report = dynascope.last()
    assert done.error is not None, "the cell's own fullgraph"
    assert report.compiled == ["fn"]
    assert "(with -f fn, those of %%compile, which can repeat its calls)" in report.notes[0]
    report = shell.report("%%compile --fullgraph", *HELPER, *OWN, "fn(x)")
    assert report.summary.breaks == 1
    report = shell.report("%%compile -f fn", *HELPER, *strict, "fn(x)")
    assert (report.compiled, report.notes, report.summary.breaks) == (["fn"], [], 1)
    shell(*NET, "net = Net()", "net.compile(backend='aot_eager')")
    assert shell.report("%%compile -f net --backend eager", "net(x)").graphs[0].aot_forward is None
    for own in ("net = torch.compile(Net(), backend='eager')", "net = Net(); net.compile(backend='eager')"):
        report = shell.report("%%compile", *NET, own, "net(x)")
        assert any("(with -f net, " in note for note in report.notes), "-f Net does not reach it"
        assert shell.report("%%compile -f net", own, "net(x)").compiled == ["net"]


def test_own_and_magics_functions_come_in_the_order_of_their_calls(shell):
    both = shell.report("%%compile", *HELPER, *OWN, "fn(x)", "helper(x)")
    assert both.compiled == ["fn", "helper"]
    assert [note.split(":")[0] for note in both.notes] == ["fn"]
    assert shell.report("%%compile", *HELPER, *OWN, "helper(x)", "fn(x)").compiled == ["helper", "fn"]
    assert shell.report("%%compile -f helper", *HELPER, *OWN, "helper(x)", "fn(x)").compiled == ["helper", "fn"]
    inlined = shell.report("%%compile", "@torch.compile", *HELPER, "def outer(x): return helper(x)", "outer(x)")
    assert (inlined.compiled, inlined.notes) == (["outer"], [])
    shell("def own(module, _): return seen.append(1) or module", "seen = []", "helper = torch.compile(helper, backend=own)")
    for call, times in (("outer(x)", 0), ("helper(x) + 1", 1)):  # the cell's statements call it by itself
        shell.report("%%compile", f"y = {call}")
        assert shell.ns["seen"] == [1] * times


def test_compiled_function_that_is_not_called(shell):
    report = shell.report("%%compile", *HELPER, *OWN)
    assert report.headline().startswith("nothing compiled: 0 graphs")
    assert report.notes == ["nothing was compiled: no statement of the cell called fn directly: add a call, fn(...)."]
    shell("%%compile -o report", "x.grd.backward()", "net(x)")  # the error comes before the call
    assert shell.ns["report"].notes[-1].startswith("nothing was compiled: the cell's statements ran uncompiled, and called no")


def test_a_function_that_a_function_of_the_cell_makes_is_compiled_by_its_name(shell):
    for k, own in (("2", 0), ("x + 1", 1)):  # what makes it has a graph of its own, or none
        cell = ["def make(k):", "    k = k + 1", "    return lambda t: t * k", f"h = make({k})", "y = h(x)"]
        assert shell.report("%%compile", *cell).notes == [NOT_GIVEN.format("h", "-f make -f h")]
        assert shell.report("%%compile -f make -f h", *cell).summary.graphs == 1 + own
        assert shell.ns["y"].tolist() == [3] * 3


@pytest.mark.parametrize("decorator", ["torch.no_grad()", "torch.no_grad", "torch.inference_mode()", "torch.autocast('cpu')"])
def test_a_function_under_a_context_of_torchs_is_compiled(shell, decorator):
    shell("net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())")
    cell = f"@{decorator}", "def generate(t, n):", "    for _ in range(n): t = net(t)", "    return t", "y = generate(x, 2)"
    shell(*cell)
    plain = shell.ns["y"]
    for _ in range(2):
        report = shell.report("%%compile", *cell)
        assert report.compiled == ["generate"]
        assert (report.summary.graphs, report.summary.breaks) == (1, 0)
        assert torch.equal(shell.ns["y"], plain)
        assert (shell.ns["y"].dtype, shell.ns["y"].requires_grad) == (plain.dtype, plain.requires_grad)


def test_a_partial_of_a_function_of_the_cell_is_compiled(shell):
    shell("from functools import partial")
    report = shell.report("%%compile", "def f(t, k): return t + k", "y = partial(partial(f, x), k=3)()")
    assert (report.compiled, report.summary.graphs) == (["f"], 1)
    assert shell.ns["y"].tolist() == [4, 4, 4]


def test_what_ran_eagerly_is_named_with_the_option_that_compiles_it(shell):
    shell("import functools", "net = torch.nn.Sequential(torch.nn.ReLU())", "def earlier(t): return t + 1")
    report = shell.report("%%compile", "def log(t): print(t)", "y = earlier(net(x)); log(y)")
    assert report.notes == [NOT_GIVEN.format("net", "-f log -f net")]
    hooked = ("h = net.register_forward_hook(hook)", "net(x)", "h.remove()")
    report = shell.report("%%compile", "def hook(*_): pass", *hooked)
    assert report.notes == [NOT_GIVEN.format("net", "-f net")]
    report = shell.report("%%compile -f earlier -f net", "def log(t): print(t)", "y = earlier(net(x))")
    assert report.summary.graphs == 2
    own = ("def own(f):", "    @functools.wraps(f)", "    def wrapper(t): return f(t)", "    return wrapper", "@own",
           "def f(t): return t + 1", "f(x)")  # fmt: skip
    unchanged, eager = shell.report("%%compile", *own).notes
    assert unchanged == "f is not compiled by itself: it is decorated with @own."
    assert eager == NOT_GIVEN.format("f", "-f f")
    assert shell.report("%%compile -f f", *own).summary.graphs == 1
    vectorized = ("def f(t): return t + 1", "y = torch.vmap(f)(x)")  # with `-f f`, torch refuses
    uncalled = (*M, "m = M(); y = earlier(x)")  # in what other cells define, there may be nothing to compile
    assert all("add a call" in shell.report("%%compile", *cell).notes[0] for cell in (vectorized, uncalled))


def test_the_note_names_only_calls_that_f_can_compile(shell):
    shell("class Off(torch.nn.Module):", "    @torch.compiler.disable", "    def forward(self, x): return x + 1",
          "net, off, scripted = torch.nn.ReLU(), Off(), torch.jit.script(torch.nn.Linear(3, 3))")  # fmt: skip
    held = "blocks = [torch.nn.Sequential(M())]"
    report = shell.report("%%compile", *M, held, "for block in blocks[:]: y = block(off(scripted(x)))", "del block", "net(x)")
    assert report.notes == [NOT_GIVEN.format("net", "-f net")]
    assert "it has no `forward` in Python" in shell("%%compile -f scripted", "y = scripted(x)").text
    report = shell.report("%%compile", "for t in [x]: scripted(t).sum().backward()")
    assert "called nothing directly that %%compile compiles" in report.notes[-1]
    report = shell.report("%%compile", "@torch.compile(backend='eager')", *M, "m = M(); m(x)")
    assert (report.notes, report.summary.graphs) == ([], 1)


def test_a_model_beside_a_compiled_loss_is_said_to_run_eagerly(shell):
    shell("net = torch.nn.Linear(3, 2)", "def show(y): return y")
    report = shell.report("%%compile", "def loss(y): return (y * y).sum()", "show(loss(net(x)))")
    assert report.notes == [NOT_GIVEN.format("net", "-f loss -f net")]
    assert shell.report("%%compile -f loss -f net", "loss(net(x)).backward()").notes == []


def test_statements_that_lead_to_a_break_are_compiled(shell):
    shell("def log(value): print(end='')", "class Net(torch.nn.Module):\n    def forward(self, x): log(x); return x + 1")
    text = str(shell.report("%%compile --backend eager", "net = Net()\nx = torch.ones(3)\ny = net(x) * 2\nz = net(x * 2)"))
    assert "1 graph break" in text
    assert "eagerly" not in text
