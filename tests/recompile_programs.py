"""Programs that compile again, each with the known cause: which call, what failed, and the line that wanted it.

A line that ends in `# A` is the one that wants what fails; `expected` has one entry for each recompile: the number of the call,
the kind of the guard of the version that was used last, what it is about, and the mark of its line.
"""

from __future__ import annotations

from typing import NamedTuple


class Program(NamedTuple):
    """A program as text, and the cause of each of its recompiles: (call, kind, source, mark of the line)."""

    text: str
    expected: list[tuple[int, str, str, str]]


def _program(body: str, *expected: tuple[int, str, str, str]) -> Program:
    return Program("import torch\n" + body.strip("\n") + "\n", list(expected))


def _called(functions: str, calls: str, *expected: tuple[int, str, str, str], dynamic: bool | None = None) -> Program:
    """Functions, the last one of which is `f`, and calls of the compiled `f`, which is `c`."""
    compiled = f'c = torch.compile(f, backend="eager"{"" if dynamic is None else f", dynamic={dynamic}"})'
    return _program(f"{functions}{compiled}\n{calls}", *expected)


def _static(calls: str, *expected: tuple[int, str, str, str]) -> Program:
    """Calls of a function in which nothing is dynamic."""
    return _called("def f(x):\n    return x.sin()  # A\n", calls, *expected, dynamic=False)


PROGRAMS: dict[str, Program] = {
    "a size": _static("c(torch.ones(3)); c(torch.ones(4))", (2, "size", "x", "A")),
    "a size of the second dimension": _static("c(torch.ones(2, 3)); c(torch.ones(2, 4))", (2, "size", "x", "A")),
    "three sizes": _static("for n in (3, 4, 5):\n    c(torch.ones(n))", (2, "size", "x", "A"), (3, "size", "x", "A")),
    "a dtype": _static("c(torch.ones(3)); c(torch.ones(3, dtype=torch.float64))", (2, "dtype", "x", "A")),
    "a rank": _static("c(torch.ones(3)); c(torch.ones(3, 3))", (2, "rank", "x", "A")),
    "a stride": _static("c(torch.ones(3, 4)); c(torch.ones(4, 3).t())", (2, "stride", "x", "A")),
    "a gradient": _static("c(torch.ones(3)); c(torch.ones(3, requires_grad=True))", (2, "requires_grad", "x", "A")),
    "a number": _called("""
def f(x, n):
    x = x + 1
    return x * n  # A
""", "c(torch.ones(2), 2); c(torch.ones(2), 3)", (2, "value", "n", "A"), dynamic=False),
    "a number becomes a symbol": _called("""
def f(x, n):
    return x * n  # A
""", "for n in (2, 3, 4, 5):\n    c(torch.ones(2), n)", (2, "value", "n", "A")),
    "a float that a backend makes constant": _program("""import math
def f(x, p):
    return x * math.exp(-10 * p)  # A
c = torch.compile(f, backend="aot_eager")
c(torch.ones(2), 0.0); c(torch.ones(2), 0.25); c(torch.ones(2), 0.5)
""", (2, "value", "p", "A"), (3, "value", "p", "A")),
    "a number in a helper": _called("""
def helper(z, n):
    return z * n  # A
def f(x, n):
    return helper(x + 1, n)
""", "c(torch.ones(2), 2); c(torch.ones(2), 3)", (2, "value", "n", "A"), dynamic=False),
    "a flag": _called("""
def f(x, flag):
    if flag:  # A
        return x + 1
    return x - 1
""", "c(torch.ones(2), True); c(torch.ones(2), False); c(torch.ones(2), True)", (2, "value", "flag", "A")),
    "an attribute that hides another": _program("""
class Scale:
    by = 2
scale = Scale()
def f(x, scale):
    return x * scale.by  # A
c = torch.compile(f, backend="eager", dynamic=False)
c(torch.ones(2), scale)
scale.by = 3
c(torch.ones(2), scale)
""", (2, "new attribute", "scale", "A")),
    "an attribute of a module": _program("""
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 1
    def forward(self, x):
        for _ in range(self.steps):  # A
            x = x + 1
        return x
net = Net()
c = torch.compile(net, backend="eager")
c(torch.ones(2))
net.steps = 2
c(torch.ones(2))
""", (2, "value", "self.steps", "A")),
    "training and evaluation": _program("""
class Net(torch.nn.Module):
    def forward(self, x):
        return x + 1 if self.training else x - 1  # A
net = Net()
c = torch.compile(net, backend="eager")
c(torch.ones(2))
net.eval()
c(torch.ones(2))
""", (2, "value", "self.training", "A")),
    "the keys of a dict": _called("""
def f(x, d):
    return x + d["a"] + len(d)  # A
""", 'c(torch.ones(2), {"a": 1}); c(torch.ones(2), {"a": 1, "b": 2})', (2, "length", "d", "A")),
    "the type of an argument": _called("""
def f(x, scale):
    return x * float(len(scale))  # A
""", "c(torch.ones(2), [1.0]); c(torch.ones(2), (1.0,))", (2, "type", "scale", "A")),
    "none": _called("""
def f(x, mask):
    if mask is not None:  # A
        x = x * mask
    return x + 1
""", "c(torch.ones(2), None); c(torch.ones(2), torch.ones(2))", (2, "none", "mask", "A")),
    "a function as an argument": _called("""
def up(x):
    return x + 1
def down(x):
    return x - 1
def f(x, step):
    return step(x)  # A
""", "c(torch.ones(2), up); c(torch.ones(2), down)", (2, "object", "step.__code__", "A")),
    "a branch on a size": _called("""
def f(x):
    if x.shape[0] > 10:  # A
        return x + 1
    return x - 1
""", "c(torch.ones(4)); c(torch.ones(12)); c(torch.ones(6))", (2, "range", "x.size()[0]", "A"), dynamic=True),
    "a branch on a product of sizes": _called("""
def f(x):
    y = x.sin()
    if x.shape[0] * x.shape[1] == 12:  # A
        return y + 1
    return y
""", "c(torch.ones(5, 7)); c(torch.ones(3, 4))", (2, "expression", "(x.size()[1]*x.size()[0]) != 12", "A"), dynamic=True),
    "a size pinned by a constant tensor": _called("""
def f(x):
    table = torch.arange(5)
    return x + table  # A
""", "c(torch.ones(5)); c(torch.ones(1))", (2, "size", "x", "A"), dynamic=True),
    "a stride, and a size pinned by int": _called("""
def f(x):
    x = x.sin()  # A
    for _ in range(int(x.shape[1])):
        x = x + 1
    return x
""", "c(torch.ones(3, 4)); c(torch.ones(24).as_strided((3, 4), (4, 2)))", (2, "stride", "x", "A"), dynamic=True),
    "a size pinned by int": _called("""
def f(x):
    n = int(x.shape[0])
    for _ in range(n):  # A
        x = x + 1
    return x
""", "c(torch.ones(3)); c(torch.ones(4))", (2, "size", "x", "A"), dynamic=True),
    "a pin deep in calls": _called("""
def inner(x):
    return [x + i for i in range(x.shape[0])][-1]  # A
def f(x):
    return inner(x * 2)
""", "c(torch.ones(3)); c(torch.ones(4))", (2, "size", "x", "A"), dynamic=True),
    "a size of one": _called("""
def f(x):
    return x * 2  # the first use, which wants nothing
""", "c(torch.ones(4)); c(torch.ones(1))", (2, "minimum", "x.size()[0]", ""), dynamic=True),
    "automatic, then a branch": _called("""
def f(x):
    y = x.cos()  # A
    if y.shape[0] > 8:  # B
        y = y + 1
    return y
""", "for n in (2, 3, 9):\n    c(torch.ones(n))", (2, "size", "x", "A"), (3, "range", "x.size()[0]", "B")),
    "two sizes that must be equal": _program("""
def f(x, y):
    return x + y  # A
c = torch.compile(f, backend="eager", dynamic=True)
with torch.fx.experimental._config.patch(use_duck_shape=False):
    c(torch.ones(3), torch.ones(3))
c(torch.ones(4), torch.ones(1))
""", (2, "expression", "y.size()[0] == x.size()[0]", "A")),
    "two sizes that were equal": _called("""
def f(x, y):
    return x.sum() + y.sum()
""", "c(torch.ones(3), torch.ones(3)); c(torch.ones(3), torch.ones(4))",
   (2, "expression", "y.size()[0] == x.size()[0]", ""), dynamic=True),
    "a marked size": _program("""
def f(x):
    if x.shape[1] % 2 == 0:  # A
        return x * 2
    return x
c = torch.compile(f, backend="eager")
for n in (4, 5):
    x = torch.ones(3, n)
    torch._dynamo.mark_dynamic(x, 1)
    c(x)
""", (2, "expression", "(x.size()[1] % 2) == 0", "A")),
    "the gradient mode": _static(
        "c(torch.ones(3))\nwith torch.no_grad():\n    c(torch.ones(3))", (2, "global state", "grad_mode", "")
    ),
    "a resume function": _called("""
def f(x, n):
    x = x + 1
    torch._dynamo.graph_break()
    return x * n  # A
""", "c(torch.ones(2), 2); c(torch.ones(2), 3)", (2, "value", "n", "A"), dynamic=False),
}  # fmt: skip
