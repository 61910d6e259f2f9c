"""Branches on values."""

from corpus import FixProgram

BRANCH = "Data-dependent branching"
WHERE, COND = "Choose with torch.where", "Choose with torch.cond"


def _fixed(name: str, source: str, title: str = WHERE, **more: object) -> FixProgram:
    return FixProgram(name, source, "fixed", BRANCH, title=title, **more)  # type: ignore[arg-type]


PROGRAMS = [
    _fixed("assign_both", """
import torch

def f(x):
    y = x + 1
    if y.sum() > 0:  # positive
        # twice
        y = x * 2
    else:
        y = x - 1
    return y
"""),
    _fixed("assign_one_side", """
import torch

def f(x):
    y = x.sin()
    if x.mean() > 0:
        y = y * 2
    return y + 1
"""),
    _fixed("two_names", """
import torch

def f(x):
    if x.sum() > 0:
        a = x * 2
        b = x + 1
    else:
        b = x - 1
        a = x / 2
    return a, b
"""),
    _fixed("swapped_names", """
import torch

def f(x):
    a, b = x + 1, x * 2
    if (a - b).sum() > 0:
        a, b = b, a
    return a - b
"""),
    _fixed("elif_chain", """
import torch

def f(x):
    if x.sum() > 5:
        y = x * 2
    elif x.sum() > 0:
        y = x * 3
    elif x[0] < -100:
        y = x
    else:
        y = -x
    return y
"""),
    _fixed("python_elif", """
import torch

def f(x, mode="twice"):
    if mode == "none":
        y = x
    elif x.sum() > 0:
        y = x * 2
    else:
        y = x * 3
    return y + 1
"""),
    _fixed("return_both", """
import torch

def f(x):
    if x.max() > 2:
        return x * 2
    else:
        return x - 2
"""),
    _fixed("early_return", """
import torch

def f(x):
    if x.sum() > 0:
        return x
    return -x
"""),
    _fixed("early_return_with_more", """
import torch

def f(x):
    scale = x.abs().max() + 1
    if x.sum() > 0:
        return x / scale  # normal
    # the other way
    y = x * scale
    z = y.cos()
    return z - y
"""),
    _fixed("early_returns", """
import torch

def f(x):
    if x.sum() > 5:
        return x * 2
    if x.sum() < -5:
        return x * 3
    return x
"""),
    _fixed("return_tuple", """
import torch

def f(x):
    if x.sum() > 0:
        return x * 2, x.sum()
    return x - 1, x.sum()
"""),
    _fixed("one_line", """
import torch

def f(x):
    y = x * 2
    if y.sum() < 0: y = -y
    return y + 1
"""),
    _fixed("conditional_expression", """
import torch

def f(x):
    y = x * 2 if x.sum() > 0 else x / 2
    return y + 1
"""),
    _fixed("conditional_expression_in_call", """
import torch

def f(x):
    return torch.relu(x if x.sum() > 0 else -x) + 1
"""),
    _fixed("several_lines", """
import torch

def f(x):
    y = x
    if (x.sum() >  # a comment inside
            x.max() - 1):
        y = (x *
             2)
    return y + 1
"""),
    _fixed("boolean_and", """
import torch

def f(x):
    y = x + 1
    if y.sum() > 0 and x[0] > 0:
        y = y * 2
    return y
"""),
    _fixed("boolean_not", """
import torch

def f(x):
    y = x + 1
    if not (x > 0).all():
        y = y.clamp(min=0)
    return y
"""),
    _fixed("chained_comparison", """
import torch

def f(x):
    y = x * 2
    if -5 < x.sum() < 5:
        y = y + 1
    return y
"""),
    _fixed("truth_of_a_number", """
import torch

def f(x):
    y = x * 2
    if torch.count_nonzero(x > 0):
        y = y + 1
    return y
"""),
    _fixed("augmented", """
import torch

def f(x):
    y = x * 2
    if x.sum() > 0:
        y += 1
    else:
        y += x
    return y
"""),
    _fixed("augmented_one_side", """
import torch

def f(x):
    y = x * 2
    if x.sum() > 0:
        y *= 3
    return y
"""),
    _fixed("augmented_argument", """
import torch

def f(x):
    if x.sum() > 0:
        x -= 1
    return x * 2
""", without_gradients=True),
    _fixed("statements_in_order", """
import torch

def f(x):
    if x.sum() > 0:
        # in two steps
        y = x * 2
        y = y + 1
    else:
        y = x.cos()
    return y
""", COND),
    _fixed("augmented_twice", """
import torch

def f(x):
    y = x.clone()
    if x.sum() > 0:
        y += 1
        y *= 2
    else:
        y -= 1
    return y
""", COND),
    _fixed("module", """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.one = torch.nn.Linear(4, 4)
        self.two = torch.nn.Linear(4, 4)

    def forward(self, x):
        if x.mean() > 0:
            h = self.one(x)
        else:
            h = self.two(x)
        return torch.relu(h)

f = Net()
""", COND, without_gradients=True),
    _fixed("module_early_return", """
import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.one = nn.Linear(4, 4)

    def forward(self, x):
        # nothing to do
        if x.abs().sum() < 8:
            return x
        h = self.one(x)
        return h + x

f = Net()
""", COND, without_gradients=True),
    _fixed("method", """
import torch

class Scaler:
    factor = 2.0

    def scale(self, x):
        if x.sum() > 0:
            x = x * self.factor
        return x + 1

f = Scaler().scale
"""),
    _fixed("closure", """
import torch

def make(k):
    def f(x):
        if x.sum() > k:
            y = x * k
        else:
            y = x + k
        return y
    return f

f = make(2)
"""),
    _fixed("decorated", """
import functools
import torch

def doubled(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(x) * 2
    return wrapper

@doubled
def f(x):
    if x.sum() > 0: return x + 1
    return x - 1
"""),
    _fixed("torch_as_t", """
import torch as t

def f(x):
    if x.sum() > 0:
        y = t.sin(x)
    else:
        y = t.cos(x)
    return y
"""),
    _fixed("imported_where", """
import torch
from torch import where, sin

def f(x):
    torch = None  # not the module
    if x.sum() > 0:
        y = sin(x)
    else:
        y = x
    return y
"""),
    _fixed("no_import", '''"""A module that does not name torch."""
from __future__ import annotations

def f(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x * 3
    return y
'''),
    FixProgram("equal", """
import torch

def f(x):
    if torch.equal(x, x.abs()):
        return x + 1
    return x - 1
""", "fixed", "Data dependent operator", title=WHERE),
    FixProgram("allclose", """
import torch

def f(x):
    y = x * 2
    if not y.allclose(x.abs() * 2, atol=1e-3):
        y = y + 1
    return y
""", "fixed", "Data dependent operator", title=WHERE),
    FixProgram("is_nonzero", """
import torch

def f(x):
    y = x * 2
    if (x > 0).sum().is_nonzero():
        y = y + 1
    return y
""", "fixed", "Data dependent operator", title=WHERE),
    _fixed("builtin_all", """
import torch

def f(x):
    if all(x > 0):
        return x + 1
    return x - 1
"""),
    _fixed("tabs", "import torch\n\ndef f(x):\n\ty = x + 1\n\tif y.sum() > 0:\n\t\ty = y * 2\t# two\n\treturn y\n"),
    _fixed("crlf", """import torch

def f(x):
    y = x + 1
    if y.sum() > 0:
        y = y * 2
        y = y + 1
    return y
""".replace("\n", "\r\n"), COND),
    _fixed("in_a_helper", """
import torch

def positive(x):
    if x.sum() > 0:
        return x
    return x.abs()

def f(x):
    return positive(x - 1) + 1
"""),
    _fixed("in_a_loop", """
import torch

def f(x):
    for k in range(3):
        if x.sum() > k:
            x = x - 1
        else:
            x = x + 2
    return x
"""),
    _fixed("under_no_grad", """
import torch

def f(x):
    with torch.no_grad():
        y = x * 2
        if y.sum() > 0:
            y = y.sqrt()
    return y + x
""", inputs=("torch.arange(4.) + 1", "-torch.arange(4.) - 1")),
    _fixed("with_gradients", """
import torch

def f(x):
    y = x.exp()
    if x.sum() > 0:
        y = y * x
    return y.sum()
""", inputs=("(torch.arange(4.) + 1).requires_grad_()", "(-torch.arange(4.)).requires_grad_()")),
    _fixed("while_loop", """
import torch

def f(x):
    x = x.abs() + 1
    n = 0
    while x.sum() < 100:
        x = x * 2  # again
        n += 1
    return x - 1
""", "Loop with torch.while_loop", without_gradients=True),
    _fixed("while_two_names", """
import torch

def f(x):
    total = torch.zeros(())
    step = x.abs() + 1
    while total < 50:
        total = total + step.sum()
        step = step * 1.5
    return total, step
""", "Loop with torch.while_loop", without_gradients=True),
]  # fmt: skip
