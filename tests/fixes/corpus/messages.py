"""Printing, logging and clocks."""

from corpus import FixProgram

BUILTIN, SKIPPED, LOGGER = (
    "Failed to trace builtin operator",
    "Attempted to call function marked as skipped",
    "logging.Logger method not supported for non-export cases",
)
ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"
AFTER, REORDERED = (
    "Write messages after the last tensor operation",
    "Print values and sizes as text, after the graph",
)

PROGRAMS = [
    FixProgram("print_item", """
import torch

def f(x):
    y = x * 2
    print("sum", y.sum().item(), f"mean {y.mean().item():.3f}")  # both
    return y.sin() + 1
""", "fixed", ITEM, title=REORDERED),
    FixProgram("print_between", """
import torch

def f(x):
    y = x * 2
    print("y:", y, "of", x.shape)
    z = y.sin()
    print(f"z: {z.sum():.2f}")
    return z + 1
""", "fixed", BUILTIN, title=REORDERED),
    FixProgram("print_a_name_bound_again", """
import torch

def f(x):
    print("before", x)
    x = x * 2
    print("after", x)
    x = x + 1
    return x
""", "better", BUILTIN, title=AFTER),
    FixProgram("print_in_loop", """
import torch

def f(x):
    for i in range(3):
        x = x + 1
        print("turn", i, x.sum())
        x = x * 2
    return x
""", "better", BUILTIN, title=AFTER),
    FixProgram("print_when_verbose", """
import torch

def f(x, verbose=True):
    y = x * 2
    if verbose:
        print("half way")
        print(y)
    return y.sin()
""", "better", BUILTIN, title=AFTER),
    FixProgram("print_when_positive", """
import torch

def f(x):
    y = x * 2
    if x.sum() > 0:
        print("positive")
    z = y.sin()
    return z * 2
""", "better", "Data-dependent branching", title=AFTER),
    FixProgram("logger", """
import logging
import torch

logger = logging.getLogger("corpus")

def f(x):
    y = x * 2
    logger.warning("sum %s", y.sum())
    return y.sin() + 1
""", "better", LOGGER, title=AFTER),
    FixProgram("warning", """
import warnings
import torch

def f(x):
    y = x * 2
    warnings.warn("careful")
    return y.sin() + 1
""", "better", SKIPPED, title=AFTER),
    FixProgram("print_in_module", """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        h = x.sin()
        print(f"h {h.mean()}")
        with torch.no_grad():
            k = h * 2
            print("k", k.sum())
        return h + k

f = Net()
""", "better", BUILTIN, title=AFTER),
    FixProgram("clock_in_loop", """
import time
import torch

def f(x):
    for _ in range(3):
        now = time.time()
        x = x * 2 + 0 * now
    return x
""", "better", SKIPPED, title="Call time.time() before the loop"),
    FixProgram("folder_in_loop", """
import os
import torch

def f(x):
    for _ in range(2):
        folder = os.getcwd()
        x = x * len(folder) / len(folder)
    return x
""", "better", SKIPPED, title="Call os.getcwd() before the loop"),
    FixProgram("clock", """
from time import perf_counter
import torch

def f(x):
    y = x.sin()
    start = perf_counter()
    return y + 1, start > 0
""", "better", SKIPPED, title="Call perf_counter() at the function's start"),
    FixProgram("print_then_change", """
import torch

def f(x):
    y = x * 2
    print(y)
    y += 1
    return y.sin()
""", "fixed", BUILTIN, title="Print copies of values, after the graph"),
    FixProgram("print_view_then_change", """
import torch

def f(x):
    y = x * 2
    rows = y.view(2, 2)
    print(rows)
    y += 1
    return y.sin()
""", "fixed", BUILTIN, title="Print copies of values, after the graph"),
    FixProgram("print_before_return", """
import torch

def f(x):
    y = x * 2
    print(y)
    return y
""", "none", BUILTIN, instead="setting", why="it stands behind the last operation"),
    FixProgram("print_then_early_return", """
import torch

def f(x, stop=False):
    y = x * 2
    print(y)
    if stop:
        return y
    return y.sin()
""", "none", BUILTIN, instead="setting", why="the function may return between the message and the end"),
]  # fmt: skip
