"""The rule of rules: a cell leaves under `%%compile` what it leaves without it.

Generated cells run plainly and under `%%compile --backend eager`, in two clean namespaces; names, values, which names are
one object, in-place effects, output, results and exception types must agree.  A failure prints the cell and a
`@reproduce_failure` line.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from notebook import Notebook

SETUP = """
import contextlib
import torch
x = torch.arange(3.0)
m = torch.eye(3)
n = 2
flag = True
items = [1, 2]
table = {"k": torch.ones(3)}
alias = x

def helper(t):
    return t * scale

def bump(t):
    t.add_(1)
    return t

def noisy(t):
    print("noisy")
    return t + 1

@contextlib.contextmanager
def tag(name):
    print("enter", name)
    yield
    print("exit", name)
"""

TENSORS = ["x", "m", "a", "b", "c", "alias", 'table["k"]']
NAMES = ["a", "b", "c"]
FUNCTIONS = ["late", "helper", "bump", "noisy"]

tensors = st.sampled_from(TENSORS)
names = st.sampled_from(NAMES)
small = st.integers(0, 3)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    t, u, k = draw(tensors), draw(tensors), draw(small)
    f = draw(st.sampled_from(FUNCTIONS))
    return draw(st.sampled_from([
        f"{t} + {k}", f"{t} * {u}", f"{t} @ {u}", f"{t}.sum()", f"torch.relu({t} - {k})", f"{f}({t})", f"torch.ones(3) * {k}",
        f"{t} @ torch.ones(7)", f"{t}[{k}]", f"{t}", f"[{t} * j for j in range({k})]", f"{t}.view(3, 1) + {u}",
        f"sum(j for j in range({k}))", f"(lambda t: t + n)({t})", f"torch.zeros(3) if flag else {t}", f"n + {k}",
        f"[j for j in items if j > {k}]", f"{{j: {t} for j in range({k})}}", f"({draw(names)} := {t}) * 2",
    ]))  # fmt: skip


@st.composite
def simple(draw: st.DrawFn) -> list[str]:
    name, t, e, k = draw(names), draw(tensors), draw(expressions()), draw(small)
    return [draw(st.sampled_from([
        f"{name} = {e}", f"{name} = {e}", f"{name} = {e}", f"{name} += {k}", f"{t} *= 2", f"{t}.add_({k})", f"{t}[0] = {k}",
        f"assert n > {k}", f"assert n > {k}, 'too small'", f"del {name}", f"late = lambda t: t * scale + {name}", f"scale = {k}.5",
        f"print({name})", "print('here', n)", f"print({t}.shape)", f"items.append({k})", 'table["k"] += 1', f"{e}", "n += 1",
        f"{name} = {draw(names)} = {e}", f"{name}, *rest = {t}, {k}, 3", "torch._dynamo.graph_break()", f"flag = {draw(st.booleans())}",
        f"raise ValueError({k})", f"{name}: int = {k}", f"import math as {name}", "'text'", f"global {name}", "pass",
    ]))]  # fmt: skip


def indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def without(lines: list[str], *starts: str) -> list[str]:
    """The lines with those that start so emptied."""
    return [re.sub(r"\S.*", "pass", line) if line.strip().startswith(starts) else line for line in lines]


@st.composite
def compound(draw: st.DrawFn, depth: int = 1) -> list[str]:
    body = indent(draw(block(depth - 1, 2)))
    other = indent(draw(block(depth - 1, 1)))
    name, k, t = draw(names), draw(small), draw(tensors)
    return draw(st.sampled_from([
        [f"if n > {k}:", *body],
        ["if flag:", *body, "else:", *other],
        [f"if {t}.sum() > {k}:", *body, "else:", *other],
        [f"for i in range({k}):", *body],
        [f"for i in range({k}):", *body, "    if i == 1:", "        break", "else:", *other],
        [f"for {name} in items:", *body],
        [f"while n < {k}:", "    n += 1", *body],
        ["try:", *body, "except (RuntimeError, NameError, IndexError) as e:", "    caught = type(e).__name__"],
        ["try:", *body, "finally:", *other],
        ["with torch.no_grad():", *body],
        [f"with tag('{name}'):", *body],
        ["with contextlib.suppress(RuntimeError):", *body],
        [f"match {k}:", "    case 0 | 1:", *indent(body), f"    case {name}:", *indent(other)],
    ]))  # fmt: skip


@st.composite
def block(draw: st.DrawFn, depth: int, size: int) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, size))):
        lines += draw(st.one_of(simple(), simple(), compound(depth)) if depth > 0 else simple())
    return without(lines, "global") if depth < 2 else lines


@st.composite
def definitions(draw: st.DrawFn) -> list[str]:
    # locals of f: what f assigns itself must not be read as a global first
    inner = without(draw(block(1, 3)), "del ", "import", "scale", "n +=", "flag", "a: ", "b: ", "c: ", "late")
    k = draw(small)
    return draw(st.sampled_from([
        ["def f(t):", *indent(["a = b = c = t + 1", *inner]),
         "    return a"],
        ["def f(t, k=2):", "    global scale", f"    scale = {k}.0", "    return helper(t) * k"],
        ["def make(k):", "    def inner(t):", "        return t + k", "    return inner", f"f = make({k})"],
        ["def f(t):", "    t += 1", "    torch._dynamo.graph_break()", "    return t @ torch.ones(3)"],
        ["def f(t):", "    for i in range(2):", "        torch._dynamo.graph_break()", "        t = t + i", "    return t"],
        ["def gen(t):", "    yield t", "    yield t + 1", "def f(t):", "    return sum(gen(t))"],
        ["class Net(torch.nn.Module):", "    def forward(self, t):", "        print('in')", f"        return t * {k}", "f = Net()"],
        ["class Bag:", "    size = 3", "def f(t):", "    return t + Bag.size"],
    ]))  # fmt: skip


@st.composite
def with_definitions(draw: st.DrawFn) -> list[str]:
    t = draw(tensors)
    call = draw(st.sampled_from([f"a = f({t})", f"f({t})", f"b = [f(x) for _ in range(2)]", f"print(f({t}))", "g = f"]))  # noqa: F541
    return [*draw(definitions()), *draw(block(1, 2)), call, *draw(block(1, 2))]


cells = st.one_of(block(2, 5), block(2, 5), with_definitions()).map("\n".join)


@pytest.fixture(scope="module")
def notebook() -> Notebook:
    return Notebook()


@settings(max_examples=100, phases=[Phase.explicit, Phase.reuse, Phase.generate], deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
@given(cell=cells)
def test_a_cell_leaves_what_it_leaves_without_the_magic(notebook: Notebook, cell: str) -> None:
    note(cell)
    ast.parse(cell)
    plain = notebook.run(SETUP, cell)
    compiled = notebook.run(SETUP, cell, "%%compile --backend eager --view none")
    assert compiled == plain
