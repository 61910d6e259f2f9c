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
    _none("class_in_function", "a class is made", """
import torch

def f(x):
    class K:
        pass
    y = x * 2
    K()
    return y
""", "Invalid call to __build_class__"),
    _none("deepcopy", "a tensor is copied by Python", """
import copy
import torch

def f(x):
    y = copy.deepcopy(x)
    return y + 1
""", "Attempted to copy.deepcopy a tensor"),
    _none("backward", "gradients are computed inside", """
import torch

def f(x):
    y = x.clone().requires_grad_()
    (y * y).sum().backward()
    return y.grad
""", "requires_grad_() intermediate leaked as output"),
    _none("random_number", "a number that differs in each call", """
import random
import torch

def f(x):
    y = x * random.random()
    return y * 0
""", "Attempted to call function marked as skipped"),
    _none("numpy_random", "a number that differs in each call", """
import numpy as np
import torch

def f(x):
    y = x * float(np.random.rand())
    return y * 0
""", "Data dependent operator"),
    _none("file", "a file is read", """
import torch

def f(x):
    y = x * 2
    with open('/dev/null') as text:
        text.read()
    return y + 1
""", "Failed to trace builtin operator"),
    _none("pickled", "an object leaves torch", """
import pickle
import torch

def f(x):
    y = x * 2
    pickle.dumps({'a': 1})
    return y + 1
""", "Attempted to call function marked as skipped"),
    _none("dumped", "an object leaves torch", """
import json
import torch

def f(x):
    y = x * 2
    json.dumps({'a': 1})
    return y + 1
""", "Unsupported method call"),
    _none("collected", "the interpreter is told to do something", """
import gc
import torch

def f(x):
    y = x * 2
    gc.collect()
    return y + 1
""", "Attempted to call function marked as skipped"),
    _none("now", "a method of another module's object", """
import datetime
import torch

def f(x):
    y = x * 2
    datetime.datetime.now()
    return y + 1
""", "Unsupported method call"),
    _none("environment", "the process is changed", """
import os
import torch

def f(x):
    y = x * 2
    os.environ['DYNASCOPE_CORPUS'] = '1'
    return y + 1
""", "Attempted to call function marked as skipped"),
    _none("item_store", "an index is a number", """
import torch

def f(x):
    y = x * 2
    y[int(x.argmax())] = 0
    return y + 1
""", "Unsupported Tensor.item() call with capture_scalar_outputs=False"),
    _none("list_index", "a list is indexed by a value", """
import torch

def f(x):
    parts = [x, x * 2, x * 3, x * 4]
    return parts[x.argmax()]
""", "Unsupported Tensor.item() call with capture_scalar_outputs=False"),
    _none("seed", "the random state is set", """
import torch

def f(x):
    y = x * 2
    torch.manual_seed(0)
    return y + torch.rand(4)
""", "Attempted to call function marked as skipped"),
    _none("inference_mode", "the mode is asked for, not a value", """
import torch

def f(x):
    y = x * 2
    return y if torch.is_inference_mode_enabled() else y + 1
""", "Encountered torch.is_inference_mode_enabled during tracing"),
    _none("text_of_a_tensor", "the text of a tensor", """
import torch

def f(x):
    y = x * 2
    return y + 0 * len(str(y))
""", "Failed to trace builtin operator"),
    _none("one_of", "a value is looked for in a list", """
import torch

def f(x):
    y = x * 2
    if x[0] in [1., 2.]:
        y = y + 1
    return y
""", "Data-dependent branching"),
    _none("turns", "the number of turns is a value", """
import torch

def f(x):
    for _ in range(x.abs().argmax()):
        x = x + 1
    return x
""", "Failed to trace builtin operator"),
    _none("requires_grad", "an attribute of a tensor is set", """
import torch

def f(x):
    y = x * 2
    y.requires_grad = True
    return y + 1
""", "setattr() on Tensor.requires_grad"),
    _none("skipped", "asked for by the user", """
import torch

def f(x):
    y = x * 2
    torch._dynamo.skip_frame()
    return y + 1
""", "Call to `torch._dynamo.skip_frame()`"),
    _none("bincount", "the size of the result depends on values", """
import torch

def f(x):
    return torch.bincount(x.abs().long()).sum() + x
""", "Dynamic shape operator"),
    _none("masked_select", "the size of the result depends on values", """
import torch

def f(x):
    return x.masked_select(x > 0).sum() + x
""", "Dynamic shape operator"),
    _none("repeated", "the size of the result depends on values", """
import torch

def f(x):
    return torch.repeat_interleave(x, x.abs().long()).sum() + x
""", "Dynamic shape operator"),
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
