"""Breaks in loops, with and try."""

from corpus import FixProgram

BREAK, BUILTIN, DISABLED = (
    "Call to `torch._dynamo.graph_break()`",
    "Failed to trace builtin operator",
    "Skip calling `torch.compiler.disable()`d function",
)
LOOP, TRY, WITH = (
    "Give the loop a function of its own",
    "Give the try block a function of its own",
    "Give the with block a function of its own",
)

PROGRAMS = [
    FixProgram("break_in_loop", """
import torch

def f(x):
    y = x.sin()
    for i in range(3):
        x = x + i
        # here
        torch._dynamo.graph_break()
        x = x * 2
    return x + y
""", "better", BREAK, title=LOOP),
    FixProgram("break_in_try", """
import torch

def f(x):
    y = x.sin()
    try:
        z = x + 1
        torch._dynamo.graph_break()
        z = z * 2
    finally:
        y = y * 2
    return z + y
""", "better", BREAK, title=TRY),
    FixProgram("disabled_in_loop", """
import torch

@torch.compiler.disable
def slow(x):
    return x + 1

def f(x):
    y = x.cos()
    for _ in range(2):
        x = slow(x) * 2
    return x + y
""", "better", DISABLED, title=LOOP),
    FixProgram("break_in_with", """
import contextlib
import torch

@contextlib.contextmanager
def noted():
    yield

def f(x):
    y = x.sin()
    with noted():
        y = y + 1
        torch._dynamo.graph_break()
        y = y * 2
    return x + y
""", "better", BREAK, title=WITH),
    FixProgram("break_in_while", """
import torch

def f(x):
    y = x.sin()
    n = 0
    while n < 3:
        x = x * 2
        torch._dynamo.graph_break()
        n += 1
    return x + y + n
""", "better", BREAK, title=LOOP),
    FixProgram("break_in_comprehension_loop", """
import torch

def f(x):
    parts = []
    for row in x.unbind(0):
        torch._dynamo.graph_break()
        parts.append(row * 2)
    return torch.stack(parts)
""", "better", BREAK, title=LOOP),
    FixProgram("return_in_loop", """
import torch

def f(x):
    for i in range(3):
        x = x * 2
        torch._dynamo.graph_break()
        if i == 1:
            return x
    return x + 1
""", "none", BREAK, why="the loop returns from the function"),
    FixProgram("graph_break", """
import torch

def f(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y + 1
""", "none", BREAK, why="asked for by the user, and nothing is skipped"),
]  # fmt: skip
