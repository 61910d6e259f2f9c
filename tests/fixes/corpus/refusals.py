"""Programs for which nothing may be offered, or where what is offered has to be refused."""

from corpus import FixProgram

BRANCH = "Data-dependent branching"
ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"


def _none(name: str, why: str, source: str, kind: str = BRANCH, instead: str = "", **more: object) -> FixProgram:
    return FixProgram(name, source, "none", kind, why=why, instead=instead, **more)  # type: ignore[arg-type]


PROGRAMS = [
    _none("bound_on_one_side", "a name is bound on one side only", """
import torch

def f(x):
    if x.sum() > -100:
        y = x * 2
    return y + 1
"""),
    _none("effect_in_side", "a side changes an object", """
import torch

class Net(torch.nn.Module):
    seen = 0

    def forward(self, x):
        y = x * 2
        if x.sum() > 0:
            y = y + 1
            self.seen += 1
        return y

f = Net()
"""),
    _none("append_in_side", "a side changes a list", """
import torch

def f(x):
    parts = [x]
    if x.sum() > 0:
        parts.append(x * 2)
    return sum(parts)
"""),
    _none("text_in_side", "a side gives a text", """
import torch

def f(x):
    name = "a" if x.sum() > 0 else "b"
    return {name: x * 2}
"""),
    _none("effect_in_condition", "the condition has an effect", """
import torch

def f(x):
    y = x * 2
    if (total := x.sum()) > 0:
        y = y + total
    return y
"""),
    _none("different_outputs", "the sides return different numbers of values", """
import torch

def f(x):
    if x.sum() > 0:
        return x * 2, x
    return x * 2
"""),
    _none("none_on_one_side", "a side returns None", """
import torch

def f(x):
    if x.sum() > 0:
        return None
    return x * 2
"""),
    _none("print_in_side", "a side prints, and computes", """
import torch

def f(x):
    y = x * 2
    if x.sum() > 0:
        print("positive")
        y = y + 1
    return y
"""),
    _none("break_out_of_loop", "the number of turns depends on values", """
import torch

def f(x):
    for _ in range(5):
        if x.sum() > 100:
            break
        x = x * 2
    return x
""", instead="", inputs=("torch.arange(4.) + 1", "torch.arange(4.) + 100")),
    _none("raise_in_try", "the exception is caught", """
import torch

def f(x):
    try:
        if x.sum() > 5:
            raise ValueError("large")
        return x * 2
    except ValueError:
        return x
"""),
    _none("raise_with_side_effect", "something is done before it raises", """
import torch

seen = []

def f(x):
    y = x * 2
    if x.sum() > 50:
        seen.append(1)
        raise ValueError("large")
    return y
"""),
    _none("numpy", "the values leave torch", """
import numpy as np
import torch

def f(x):
    y = x * 2
    np.save("/dev/null", y.detach().numpy())
    return y.sin()
""", "attempted to trace numpy function unsupported by PyTorch", "wrap"),
    _none("nonzero", "the size of the result depends on values", """
import torch

def f(x):
    return (x > 1).nonzero().sum() + x
""", "Dynamic shape operator", "setting"),
    _none("masked_rows", "the size of the result depends on values", """
import torch

def f(x):
    return x[x > 1].sum() + x
""", "Dynamic shape operator", "setting"),
    _none("unique", "the size of the result depends on values", """
import torch

def f(x):
    return torch.unique(x).sum() + x
""", "Dynamic shape operator", "setting"),
    _none("frame", "the interpreter is looked at", """
import inspect
import torch

def f(x):
    y = x * 2
    inspect.currentframe()
    return y + 1
""", "Attempted to call function marked as skipped", "wrap"),
    FixProgram("random_in_side", """
import torch

def f(x):
    y = x * 2
    if x.sum() > 0:
        y = y + torch.rand_like(x)
    else:
        y = y - torch.rand_like(x)
    return y
""", "none", BRANCH, why="only one side may draw random numbers"),
    FixProgram("gradient_of_the_other_side", """
import torch

def f(x):
    y = x * 1
    if x.sum() > 0:
        y = x.sqrt()
    return y.sum()
""", "fixed", BRANCH, (
        "(torch.arange(4.) + 1).requires_grad_()",
        "(-torch.ones(4)).requires_grad_()",
    ), "Choose with torch.cond"),
    FixProgram("shapes_differ", """
import torch

def f(x):
    if x.sum() > 0:
        return x * 2
    return x.sum() * 2
""", "false", BRANCH),
    FixProgram("types_differ", """
import torch

def f(x):
    if x.sum() > 0:
        y = x > 0
    else:
        y = x * 2
    return y
""", "false", BRANCH),
    FixProgram("loop_changes_shape", """
import torch

def f(x):
    while x.sum().abs() < 100:
        x = torch.cat([x, x])
    return x.sum()
""", "false", BRANCH, ("torch.arange(4.) + 1", "-torch.arange(4.) - 1")),
]  # fmt: skip
