"""Numbers taken out of tensors."""

from corpus import FixProgram

ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"
KEEP, LATER = "Keep the value in a tensor", "Take the number at the end"


def _fixed(name: str, source: str, **more: object) -> FixProgram:
    return FixProgram(name, source, "fixed", ITEM, title=KEEP, **more)  # type: ignore[arg-type]


PROGRAMS = [
    _fixed("item", """
import torch

def f(x):
    return x * x.sum().item()
"""),
    _fixed("float", """
import torch

def f(x):
    scale = float(x.abs().max())  # of all
    y = x / scale
    return y + scale
"""),
    _fixed("int", """
import torch

def f(x):
    n = int(x.sum())
    return x + n
"""),
    _fixed("item_of_expression", """
import torch

def f(x):
    k = (x * x).mean().item() + 1
    return (
        x /  # normal
        k
    )
"""),
    _fixed("square_root", """
import math
import torch

def f(x):
    norm = math.sqrt((x * x).sum().item())
    return x / norm
"""),
    _fixed("difference_of_items", """
import torch

def f(x):
    return (x - x.min().item()) / (x.max().item() - x.min().item())
"""),
    _fixed("range_by_names", """
import torch

def f(x):
    low = x.min().item()
    high = x.max().item()
    return (x - low) / (high - low + 1e-6)
"""),
    _fixed("clamped", """
import torch

def f(x):
    limit = x.mean().item()
    return x.clamp(max=limit) + torch.clamp(x, min=limit)
"""),
    _fixed("compared", """
import torch

def f(x):
    mask = x > x.mean().item()
    return torch.where(mask, x, x.median().item())
"""),
    _fixed("gradient_stays_cut", """
import torch

def f(x):
    return (x * x.sum().item()).sum()
""", inputs=("(torch.arange(4.) + 1).requires_grad_()", "(-torch.ones(4)).requires_grad_()")),
    _fixed("module_scale", """
import torch

class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        s = x.std().item()
        return self.weight * (x / (s + 1e-5))

f = Norm()
"""),
    _fixed("numbers_and_branch", """
import torch

def f(x):
    y = x * x.mean().item()
    if y.sum() > 10:
        y = y / y.sum().item()
    return y
"""),
    FixProgram("kept_for_a_log", """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        self.last = y.sum().item()
        return y.sin() + 1

net = Net()

def f(x):
    return net(x), net.last
""", "better", ITEM, title=LATER),
    FixProgram("returned_number", """
import torch

def f(x):
    y = x * 2
    loss = y.sum().item()
    return y.sin() * 2, loss
""", "better", ITEM, title=LATER),
    FixProgram("number_and_message", """
import torch

def f(x):
    y = x * 2
    loss = float(y.sum())
    z = y.cos() - 1
    print("loss", loss)
    return z * 2
""", "better", ITEM, title=LATER),
    FixProgram("history", """
import torch

history = []

def f(x):
    y = x * 2
    history.append(y.mean().item())
    return y.sin() * 2
""", "better", ITEM, title=LATER),
    FixProgram("slice_bound", """
import torch

def f(x):
    n = int(x.abs().argmax())
    return x[:n + 1].sum()
""", "none", ITEM, instead="setting", why="a slice needs a number"),
    FixProgram("loop_count", """
import torch

def f(x):
    for _ in range(int(x.abs().max())):
        x = x + 1
    return x
""", "none", ITEM, why="the number of turns is a value"),
    FixProgram("returned_item", """
import torch

def f(x):
    return (x * 2).sum().item()
""", "none", ITEM, instead="setting", why="the caller gets a Python number"),
    FixProgram("item_in_text", """
import torch

def f(x):
    name = "k%d" % x.argmax().item()
    return {name: x * 2}
""", "none", ITEM, why="the text of a key depends on a value"),
    FixProgram("tolist", """
import torch

def f(x):
    first = x.tolist()[0]
    return x * first
""", "none", "Tensor.tolist() with non-integer tensor", why="a list of numbers of unknown use"),
]  # fmt: skip
