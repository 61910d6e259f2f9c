"""Named targets: `-f NAME`."""

from __future__ import annotations

import contextlib
import re

import pytest
import torch

import dynascope

BREAKS = ["def f(x):", "    torch._dynamo.graph_break()", "    return x + 1"]


def test_function_is_compiled_through_every_name_and_stays_the_same_object(shell):
    shell(*BREAKS)
    f, code = shell.ns["f"], shell.ns["f"].__code__
    report = shell.report("%%compile -f f", "g = f", "h = {'k': [f]}", "class C: pass", "C.m = staticmethod(f)",
                          "g(x); h['k'][0](x); C.m(x); list(map(f, [x]))[0]")  # fmt: skip
    assert (report.compiled, report.summary.breaks) == (["f"], 1)
    assert shell.ns["f"] is shell.ns["g"] is shell.ns["h"]["k"][0] is f
    assert f.__code__ is code


def test_signature_is_the_same_while_the_cell_runs(shell):
    shell("import inspect", "def f(a, /, b, c=2, *args, d, e=5, **kw): return a + b + c + d + e + len(args) + len(kw)")
    plain = str(shell("str(inspect.signature(f))").result)
    done = shell("%%compile -f f", "s = str(inspect.signature(f))", "f(x, 1, 2, 3, d=4, z=1), f(x, b=1, d=0)")
    assert shell.ns["s"] == plain
    assert [r.tolist() for r in done.result] == [[15.0] * 3, [9.0] * 3]


def test_closure_and_method(shell):
    shell("def make(k):", "    def inner(x): return x + k", "    return inner", "add = make(3)")
    assert shell("%%compile -f add", "add(x)").result.tolist() == [4, 4, 4]
    frames = shell.report("%%compile -f add -f more", "more = make(4)", "add(x); more(x)").frames
    assert [frame.name for frame in frames] == ["inner", "inner"], "which of both a frame is of is not known"
    shell("@(a := torch._dynamo.error_on_graph_break(False))", "def within(x): return x + 1", "@a", "def top(x): return x * 2",
          "def skips(x):", "    for _ in (0,): torch._dynamo.graph_break(); x = within(x)", "    return x")  # fmt: skip
    with dynascope.observe() as observed:
        shell("for f in (skips, top): torch.compile(f, backend='eager')(x)")
    assert [frame.name for frame in observed.report.frames] == ["skips", "within", "top"]
    make = "def make():", "    def inner(x): return x.sum().item() + x", "    return inner"
    for k in (2, 3):  # the second time, the inner function is equal to that of the first cell, but for its file
        report = shell.report("%%compile -f g", *make, f"def g(x): return make()(x) * {k}", "for _ in range(2): g(x)")
        assert [b.cell for b in report.breaks] == [shell.number]
    shell("class A:", "    def __init__(self, k): self.k = k", "    def m(self, x): return super().__repr__() and x + self.k",
          "a, b = A(1), A(2)")  # fmt: skip
    assert [r.tolist() for r in shell("%%compile -f a.m", "a.m(x), b.m(x)").result] == [[2] * 3, [3] * 3]


def test_partials_and_callable_objects(shell):
    shell("from functools import partial", "def f(t, k): return t + k", "p = partial(partial(f, k=2))",
          "class Add:", "    def __init__(self, k): self.k = k", "    def __call__(self, t): return t + self.k",
          "a, b = Add(3), Add(4)")  # fmt: skip
    for name, call, value in (("p", "p(x)", 3), ("a", "a(x)", 4), ("a", "[a(x), b(x)][0]", 4)):
        assert shell(f"%%compile -f {name} -o report", call).result.tolist() == [value] * 3
        report = shell.ns["report"]
        assert (report.compiled, report.summary.graphs, report.notes) == ([name], 1, [])
    with dynascope.observe() as recording, contextlib.suppress(Exception):
        torch.compile(shell.ns["p"], backend=lambda graph, inputs: 1 / 0)(shell.ns["x"])
    assert "– failed frame partial at torch's wrapper: " in str(recording.report)


def test_module_in_place_and_restored(shell):
    shell("net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())")
    before = dict(shell.ns["net"].__dict__)
    for name in ("net", "net.0", "net.0.forward"):
        report = shell.report(f"%%compile -f {name}", "y = net(x)")
        assert report.compiled == [name]
        assert report.summary.graphs == 1, name
    assert shell.ns["net"].__dict__.keys() == before.keys()


def test_modules_that_torch_runs_through_one_wrapper(shell):
    shell("from torch.nn import Linear, Sequential", "enc, dec = Sequential(Linear(3, 3)), Sequential(Linear(3, 3))")
    text = " ".join(str(shell.report("%%compile -f enc -f dec", "dec(enc(x))")).split())
    assert " of dec (In[" in text, "the number of the call is that of the wrapper"
    assert " 2 of 8 versions, which it shares with enc) " in text
    report = shell.report(
        "%%compile -f enc -f dec", "enc(x)", "torch._dynamo.reset()", "for n in (2, 3): dec(torch.ones(n, 3))"
    )
    assert re.search(r"; 2 of 8 versions\)", " ".join(str(report).split())), "those of enc are gone"


@pytest.mark.parametrize("call", ["block(x)", "use(block)", "for i in range(2): block(x)", "use(model[0])"])
@pytest.mark.parametrize("module", ["torch.nn.Linear(3, 3)", "torch.nn.Sequential(torch.nn.ReLU())", "Block()"])
def test_a_module_of_an_earlier_cell_is_called_by_all_its_names(shell, module, call):
    shell("class Block(torch.nn.Module):", "    def forward(self, x): return x + 1", f"block = {module}",
          "model = torch.nn.ModuleList([block])", "def use(module): return module(x)")  # fmt: skip
    report = shell.report("%%compile -f block -f model.0", call)
    assert (report.summary.graphs, report.notes) == (1, [])


def test_function_the_user_compiled_before_is_traced_and_stays_a_cache_hit(shell):
    shell("count = []", "def backend(gm, inputs):", "    count.append(1)", "    return gm.forward",
          "@torch.compile(backend=backend)", *BREAKS, "f(x)", "def g(x): return f(x)")  # fmt: skip
    graphs = len(shell.ns["count"])
    f = shell.ns["f"]
    assert shell.report("%%compile -f f", "f(x)").summary.breaks == 1
    assert shell.ns["f"] is f
    shell("f(x)")
    assert len(shell.ns["count"]) == graphs


def test_users_compiled_caller_sees_the_plain_function(shell):
    shell(*BREAKS, "count = []", "def backend(gm, inputs):", "    count.append(1)", "    return gm.forward",
          "@torch.compile(backend=backend)", "def user(x): return f(x) * 2", "user(x)")  # fmt: skip
    report = shell.report("%%compile -f f", "for _ in range(12): user(x)", "f(x)")
    assert not [r for r in report.recompiles if report.frame(r.frame).name == "user"]
    graphs = len(shell.ns["count"])
    shell("user(x)")
    assert len(shell.ns["count"]) == graphs


def test_compiled_function_stays_as_it_was_after_an_error_and_an_interrupt(shell):
    shell(*BREAKS)
    f, code = shell.ns["f"], shell.ns["f"].__code__
    from torch._dynamo import eval_frame

    switch = eval_frame._maybe_set_eval_frame
    for raised in ("KeyboardInterrupt", "ValueError('no')"):
        assert type(shell("%%compile -f f", "f(x)", f"raise {raised}").error).__name__ in raised
        assert f.__code__ is code
        assert eval_frame._maybe_set_eval_frame is switch


def test_a_thread_that_leaves_compiled_code_does_not_disturb_another(shell):
    shell("import threading", "inside, go, end, out = *(threading.Event() for _ in range(3)), []",
          "def k(x): return x.cos()", "def f(x):", "    inside.set(); go.wait(20)", "    return x.sin()",
          "@torch.compile(backend='eager')", "def h(x):", "    go.set(); end.wait(20)", "    return k(x) * 2",
          "t = threading.Thread(target=lambda: inside.wait(20) and out.append(h(x)))")  # fmt: skip
    report = shell.report("%%compile -f f -f k", "t.start(); f(x); end.set(); t.join(); k(x)")
    assert torch.equal(shell.ns["out"][0], torch.ones(3).cos() * 2)
    assert not any("was not called" in note for note in report.notes)
    assert "k" in [frame.name for frame in report.frames]


def test_uncalled_target_is_told(shell):
    shell(*BREAKS)
    shell("@torch.compiler.disable(recursive=False)", "def off(x): return f(x)", "def caller(x): return off(x)",
          "net = torch.nn.Sequential(torch.nn.ReLU())")  # fmt: skip
    report = shell.report("%%compile -f caller -f f -f net -f net.0", "caller(net(x))")
    why = "was not called, or only during calls of what is compiled."
    assert report.notes == [f"-f net.0 {why}"]  # `off` runs uncompiled, and what it calls is compiled by itself
    again = "for n in (1, 2):\n    net = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Flatten(0)); y = net(x + n)"
    report = shell.report("%%compile -f net", "net(x)", again)
    assert (report.summary.graphs, report.notes) == (2, [])  # those of the loop are alike
    report = shell.report("%%compile -f net", "net(x)", "net = torch.nn.Sequential()")
    assert report.notes == []  # the name was called, with another module
    report = shell.report("%%compile -f f", "def f(x): yield x", "f(x)")
    assert report.notes == ["-f f was not compiled: it is a generator."]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("blok", "cannot compile blok: no 'blok' in the notebook (did you mean block?)"),
        ("x", "cannot compile x: it is a Tensor, not a function, method or nn.Module"),
        ("block.nope", "cannot compile block.nope: block has no 'nope'"),
        ("a-b", "cannot compile a-b: no 'a-b' in the notebook"),
        ("len", "cannot compile len: no 'len' in the notebook"),
        ("opem", "cannot compile opem: no 'opem' in the notebook"),  # IPython's `open` is no name of the user's
        ("torch.add", "cannot compile torch.add: it is a builtin_function_or_method: "
         "-f takes only Python functions, methods and modules"),
        ("blocks", "cannot compile blocks: it has no `forward` in Python: "
         "name other modules, or the class of these modules"),
    ],
)  # fmt: skip
def test_bad_names_are_one_line(shell, name, message):
    shell("def block(x): return x", "blocks = torch.nn.ModuleList()")
    assert shell(f"%%compile -f {name}", "ran = True").text.strip() == f"UsageError: {message}"
    assert "ran" not in shell.ns


def test_source_of_a_target_is_its_own(shell):
    shell("import inspect", "def outer():", "    c = 3", "    def f(x):", "        if x is None: raise ValueError(c)",
          "        return x * c", "    return f", "f = outer()")  # fmt: skip
    done = shell("%%compile -f f", "f(x)", "inspect.getsource(f), f.__code__.co_firstlineno")
    assert done.result == ("    def f(x):\n        if x is None: raise ValueError(c)\n        return x * c\n", 4)
    assert dynascope.last().summary.graphs
    report = shell.report("%%compile -f f", "f(x)", "f(torch.ones(5))")
    assert [frame.parent for frame in report.frames] == [None, None]
    done = shell("%%compile -f f", "f(None)")
    assert done.text.endswith("ValueError: 3\n")
    assert done.text.count("Cell In[") == 2, done.text  # the cell's statement and the function's own, no jump


def test_two_modules_of_one_class_are_named_as_f_names_them(shell):
    shell("class Net(torch.nn.Module):", "    def forward(self, x): return x + 1", "gen, disc = Net(), Net()")
    text = shell("%%compile -f gen -f disc --view text", "gen(torch.ones(3))", "disc(torch.ones(4))").text
    shared = r"recompile \d+/1 of disc \(In\[.*; 2 of 8 versions, which it shares with gen\)"
    assert re.search(shared, " ".join(text.split())), "the number of the call is that of all of them"


def test_a_recompile_of_a_named_function_is_at_the_line_that_calls_it(shell):
    shell("import functools", "def act(x, k):", "    return x * k", "", "twice = functools.partial(act, k=2)")
    text = shell("%%compile -f twice --view text", "twice(torch.ones(3))", "act(torch.ones(3), k=3)").text
    assert f" of act (call 2, In[{shell.number}]:3;" in text


def test_a_call_with_nothing_to_compile_makes_all_later_ones_eager(shell):
    shell("def f(x, scale):", "    return x * 2 if scale else x")
    shell("class Base(torch.nn.Module):", "    def forward(self, x, scale): return x * 2 if scale else x")
    shell("class Net(Base): pass", "net = Net()")
    shell("def rest(x, scale):", "    if print() or not scale: return 0", "    return x * 2")
    shell("def ends(x, scale):", "    y = x * 2", "    print(scale)", "    return y")
    shell("def side(x):", "    if x > 1: return x", "    return x + 1")
    shell("def clip(x, scale):", "    n = x.sum().item()", "    if scale: x = x * n", "    return x")
    calls = r"\. What it calls may still be compiled\."
    rest = rf"the rest of rest, from line 2 on, had .* call 1, which ended at line 2\..* 2 later calls followed{calls}"
    clip = rf"the rest of clip, from line 2 on, had .* call 1\..* 2 later calls followed{calls}"
    f, base = (
        rf"{name} had nothing to compile in call 1\..* 2 later calls followed{calls}.*" for name in ("f", r"Base\.forward")
    )
    for name, note in (("f", f), ("net", base), ("rest", rest), ("ends", ""), ("clip", clip)):
        report = shell.report(f"%%compile -f {name}", f"for scale in (False, True, True): {name}(torch.ones(3), scale)")
        assert (report.summary.graphs, bool(re.fullmatch(note, "".join(report.notes)))) == (name in ("ends", "clip"), True)
    assert shell.report("%%compile -f side", "for s in (2, 0, 0): side(torch.tensor(s))").notes == []
    assert shell.report("%%compile -f f", "f(torch.ones(3), False); torch._dynamo.reset(); f(torch.ones(3), True)").notes == []
