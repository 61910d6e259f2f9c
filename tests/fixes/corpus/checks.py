"""Checks of values, and branches around indexing."""

from corpus import FixProgram

BRANCH, SHAPE = "Data-dependent branching", "Dynamic shape operator"
ASSERT, ROWS = "Assert inside the graph", "Index without asking whether there are rows"
FEW = ("torch.arange(4.) + 1", "-torch.arange(4.) - 1", "torch.tensor([-2., 1., 0.5, 30.])")

PROGRAMS = [
    FixProgram("raise", """
import torch

def f(x):
    if x.sum() > 20:  # too much
        raise ValueError("too much")
    return x * 2
""", "fixed", BRANCH, FEW, ASSERT, raises="RuntimeError"),
    FixProgram("raise_not", """
import torch

def f(x):
    if not torch.isfinite(x).all(): raise FloatingPointError(f"not finite: {x}")
    return x * 2
""", "fixed", BRANCH, ("torch.ones(3)", "torch.tensor([1., float('nan'), 2.])"), ASSERT, raises="RuntimeError"),
    FixProgram("raise_chain", """
import torch

def f(x):
    if (x > 20).any():
        raise ValueError("too large")
    elif (x < -3).any():
        raise ValueError(
            "too small"
        )
    return x * 2
""", "fixed", BRANCH, FEW, ASSERT, raises="RuntimeError"),
    FixProgram("raise_in_method", """
import torch

class Net(torch.nn.Module):
    def check(self, x):
        if torch.isnan(x).any():
            raise RuntimeError("nan")

    def forward(self, x):
        self.check(x)
        return x + 1

f = Net()
""", "fixed", BRANCH, ("torch.ones(3)", "torch.tensor([1., float('nan')])"), ASSERT, raises="RuntimeError"),
    FixProgram("assert_with_values", """
import torch

def f(x):
    assert (x < 20).all(), f"too large: {x.max()}"
    return x * 2
""", "fixed", BRANCH, FEW, ASSERT, raises="RuntimeError"),
    FixProgram("assert_and", """
import torch

def f(x):
    y = x * 2
    assert y.sum() < 100 and y.min() > -100, "out of range"
    return y + 1
""", "fixed", BRANCH, ("torch.ones(3)", "torch.ones(3) * 60", "-torch.ones(3) * 60"), ASSERT, raises="RuntimeError"),
    FixProgram("mask_any", """
import torch

def f(x):
    m = x > 2
    if m.any():  # there is something
        # clear it
        x = x.clone()
        x[m] = 0
    return x * 2
""", "fixed", BRANCH, title=ROWS),
    FixProgram("mask_in_place", """
import torch

def f(x):
    y = x * 2
    if (y > 2).any():
        y.masked_fill_(y > 2, 0.0)
    return y
""", "fixed", BRANCH, title=ROWS),
    FixProgram("mask_differs", """
import torch

def f(x):
    y = x * 2
    m = y > 2
    if m.any():
        y[~m] = 0.0
    return y
""", "none", BRANCH, why="what is indexed is not what the branch asks for"),
    FixProgram("mask_fill", """
import torch

def f(x):
    bad = x < 0
    if bad.sum().item() > 0:
        x = x.masked_fill(bad, 0.5)
    return x * 2
""", "fixed", "Unsupported Tensor.item() call with capture_scalar_outputs=False", title=ROWS),
    FixProgram("rows", """
import torch

def f(x):
    y = x.clone()
    rows = (x > 2).nonzero().squeeze(1)
    if rows.numel() > 0:
        picked = x[rows]
        y[rows] = picked * 2
    return y
""", "fixed", SHAPE, title=ROWS),
    FixProgram("rows_len", """
import torch

def f(x):
    rows = torch.nonzero(x > 2)[:, 0]
    out = torch.zeros_like(x)
    if len(rows):
        out.index_add_(0, rows, x[rows])
    return out
""", "fixed", SHAPE, title=ROWS),
    FixProgram("experts", """
import torch

class Experts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(2))

    def forward(self, x):
        chosen = (x.sum(-1) > 0).long()
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = torch.where(chosen == number)[0]
            if rows.shape[0] > 0:
                out[rows] += expert(x[rows])
        return out

f = Experts()
""", "fixed", SHAPE, ("torch.arange(12.).reshape(4, 3)", "torch.arange(12.).reshape(4, 3) - 6", "-torch.ones(4, 3)"), ROWS,
        without_gradients=True),
]  # fmt: skip
