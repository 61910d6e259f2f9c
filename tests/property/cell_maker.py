"""Random cells, each from one number: statements that matter to a compiler, in every nesting."""

from __future__ import annotations

import re
from random import Random

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

NAMES = ["a", "b", "c"]
TENSORS = ["x", "m", "alias", 'table["k"]']


class CellMaker:
    """`CellMaker(seed).cell()`: the same seed gives the same cell."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        #: names that have been assigned so far, probably
        self.assigned: list[str] = []

    def cell(self) -> str:
        """A cell with or without definitions, mostly with a last expression."""
        lines = self.definitions() if self.chance(0.4) else []
        defines = bool(lines)
        lines += self.block(2, 6)
        if defines:
            t = self.tensor()
            lines.append(self.pick(f"a = f({t})", f"f({t})", "b = [f(x) for _ in range(2)]", f"print(f({t}))", "g = f"))
            lines += self.block(1, 3)
        if self.chance(0.6):
            lines.append(self.expression())
        return "\n".join(lines)

    # -- drawing --------------------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def small(self) -> int:
        return self.random.randint(0, 3)

    def tensor(self) -> str:
        if self.chance(0.06):
            return self.pick(*NAMES)  # which may not be there
        return self.pick(*TENSORS, *self.assigned)

    def name(self) -> str:
        return self.pick(*NAMES)

    # -- code -----------------------------------------------------------------------------------------

    def expression(self) -> str:
        t, u, k = self.tensor(), self.tensor(), self.small()
        if self.chance(0.06):
            return self.pick(f"{t} @ torch.ones(7)", "items[99]", "nobody + 1", f"x[{k + 1}]", f"{self.name()} + 1")
        f = self.pick("late", "helper", "bump", "noisy", "bump", "noisy")
        if f == "helper" or (f == "late" and "late" not in self.assigned):
            f = "bump" if self.chance(0.5) else "helper"
        return self.pick(
            f"{t} + {k}", f"{t} * {u}", f"{t}.sum() + {k}", f"torch.relu({t} - {k})", f"{f}({t})", f"torch.ones(3) * {k}",
            f"{t}", f"torch.stack([{t} * j for j in range({k + 1})]).sum(0)", f"{t}.view(-1) + {u}.sum()",
            f"{t} * sum(j for j in range({k}))", f"(lambda t: t + n)({t})", f"torch.zeros(3) if flag else {t}", f"{t} * n",
            f"{t} * [j for j in items[:2]][0]", f"({self.name()} := {t} + {k}) * 2", f"{t}.clone().add_({k})",
        )  # fmt: skip

    def simple(self) -> list[str]:
        name, e, k = self.name(), self.expression(), self.small()
        t = self.pick("x", 'table["k"]', *self.assigned) if self.assigned else "x"
        if self.chance(0.55):
            self.assigned.append(name)
            return [f"{name} = {e}"]
        if self.chance(0.1):
            late = [f"del {name}", f"raise ValueError({k})", f"assert n > {k}", f"assert n > {k}, 'small'", f"t = {name}"]
            return [self.pick(*late)]
        line = self.pick(
            f"{t} += {k}", f"{t} *= 2", f"{t}.add_({k})", f"late = lambda t: t * scale + {t}", f"scale = {k}.5", f"print({t})",
            "print('here', n)", f"print({t}.shape)", f"items.append({k})", 'table["k"] += 1', e, "n += 1",
            f"{name} = {self.name()} = {e}",
            f"{name}, *rest = {e}, {k}, 3", "torch._dynamo.graph_break()", f"flag = {self.chance(0.5)}", f"number: int = {k}",
            "import math as maths", "'text'", "pass", f"assert {t}.sum() < 1e9", "scale = 2.0", "torch._dynamo.graph_break()",
            f"other = {t}", f"pair = [{t}, {t}]", f"pair = {{'t': {t}}}",
        )  # fmt: skip
        if " = lambda" in line:
            self.assigned.append("late")
        return [line]

    def compound(self, depth: int) -> list[str]:
        k, t, name = self.small(), self.tensor(), self.name()
        before = list(self.assigned)
        body, other = indent(self.block(depth - 1, 3)), indent(self.block(depth - 1, 2))
        if self.chance(0.5):
            self.assigned = before
        shapes = [
            [f"if n > {k}:", *body],
            ["if flag:", *body, "else:", *other],
            [f"if {t}.sum() > {k}:", *body, "else:", *other],
            [f"for i in range({k}):", *body],
            [f"for i in range({k}):", *body, "    if i == 1:", "        break", "else:", *other],
            [f"for {name} in list(items):", *body],
            [f"while n < {k}:", "    n += 1", *body],
            ["try:", *body, "except (RuntimeError, NameError, IndexError) as e:", "    caught = type(e).__name__"],
            ["try:", *body, "finally:", *other],
            ["with torch.no_grad():", *body],
            [f"with tag('{name}'):", *body],
            ["with contextlib.suppress(RuntimeError):", *body],
            [f"match {k}:", "    case 0 | 1:", *indent(body), f"    case {name}:", *indent(other)],
        ]
        return self.random.choice(shapes)

    def block(self, depth: int, size: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, size)):
            lines += self.compound(depth) if depth > 0 and self.chance(0.25) else self.simple()
        return lines

    def definitions(self) -> list[str]:
        k = self.small()
        inner = [_for_a_function(line) for line in self.block(1, 3)]
        shapes = [
            ["def f(t):", *indent(["a = b = c = late = t + 1", *inner]), "    return a"],
            ["def f(t, k=2):", "    global scale", f"    scale = {k}.0", "    return helper(t) * k"],
            ["def make(k):", "    def inner(t):", "        return t + k", "    return inner", f"f = make({k})"],
            ["def f(t):", "    t += 1", "    torch._dynamo.graph_break()", "    return t.sum() + t"],
            ["def f(t):", "    for i in range(2):", "        torch._dynamo.graph_break()", "        t = t + i", "    return t"],
            ["def gen(t):", "    yield t", "    yield t + 1", "def f(t):", "    return sum(gen(t))"],
            ["class Net(torch.nn.Module):", "    def forward(self, t):", "        print('in')", f"        return t * {k}",
             "f = Net()"],
            ["class Bag:", "    size = 3", "def f(t):", "    return t + Bag.size"],
            ["@torch._dynamo.error_on_graph_break(False)", "def f(t):", "    torch._dynamo.graph_break()",
             f"    return t + {k}"],
            ["if flag:", "    def f(t):", f"        return t + {k}", "else:", "    def f(t):", "        return t"],
        ]  # fmt: skip
        self.assigned = []
        return self.random.choice(shapes)


#: inside a function these would make a local name of one that the function reads as a global before
_NOT_IN_A_FUNCTION = (
    "del ", "import", "scale", "n +=", "flag", "number", "late", "raise", "assert n", "x ", "alias ", "t =", "pair",
    "other",
)  # fmt: skip


def _for_a_function(line: str) -> str:
    if line.strip().startswith("while"):
        return re.sub(r"while .*", "for _ in range(2):", line)  # its n would be a local name
    if line.strip().startswith(_NOT_IN_A_FUNCTION) and not line.endswith(":"):
        return re.sub(r"\S.*", "pass", line)
    return line


def indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
