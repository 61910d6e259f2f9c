"""One program for each of many rarer types of graph break."""

from corpus import FixProgram


def _none(name: str, kind: str, why: str, source: str, instead: str = "", **more: object) -> FixProgram:
    return FixProgram(name, source, "none", kind, why=why, instead=instead, **more)  # type: ignore[arg-type]


def _body(lines: str) -> str:
    """A module with `f` of these lines."""
    return "\nimport torch\n\ndef f(x):\n    y = x * 2\n" + "".join(f"    {line}\n" for line in lines.strip().splitlines())


PROGRAMS = [
    _none("recurrent", "Attempted to wrap RNN, GRU, or LSTM", "the compiler has a setting for it", """
import torch

torch.manual_seed(0)
lstm = torch.nn.LSTM(4, 4)

def f(x):
    return lstm(x.view(1, 4))[0] + 1
""", "setting", without_gradients=True),
    _none("autograd_grad", "using `torch.autograd.grad` with `torch._dynamo.config.trace_autograd_ops=False`",
          "the compiler has a setting for it", """
import torch

w = torch.ones(4, requires_grad=True)

def f(x):
    (g,) = torch.autograd.grad((x * w * w).sum(), w)
    return g + 1
""", "setting"),
    _none("backward_to_a_weight", "Unsupported Tensor.backward() call", "a gradient is left in a weight", """
import torch

w = torch.ones(4, requires_grad=True)

def f(x):
    loss = (x * w).sum()
    loss.backward()
    return loss.detach() + 1
"""),
    _none("parameter_made", "Attempted to use `torch.nn.Parameter()` constructor with Dynamo",
          "a parameter is made in each call", _body("w = torch.nn.Parameter(torch.ones(4))\nreturn y * w"), "wrap"),
    _none("nested_tensor", "Operator does not support running with fake tensors", "there is no fake of nested tensors",
          _body("z = torch.nested.nested_tensor([x, y])\nreturn z.to_padded_tensor(0.) + 1")),
    _none("sparse", "Attempted to wrap sparse Tensor with VariableTracker", "sparse tensors cannot be in a graph",
          _body("return y.to_sparse().to_dense() + 1")),
    _none("requires_grad_of_an_input", "Unsupported Tensor.requires_grad_() call", "an input is changed for autograd",
          _body("x.requires_grad_()\nreturn y + 1")),
    _none("resized", "Unsupported Tensor.resize_() call", "the memory of a tensor changes",
          _body("y.resize_(2)\nreturn y + 1")),
    _none("shared", "Unhandled args for method", "the memory of a tensor moves", _body("y.share_memory_()\nreturn y + 1")),
    _none("random_in_place", "Tensor.random_ op", "random whole numbers in place", _body("y.random_(0, 2)\nreturn y * 0")),
    _none("repr_of_a_tensor", "repr() on tensor", "the text of a tensor", _body("return y + 0 * len(repr(y))")),
    _none("id_of_a_tensor", "Reconstruction of FakeIdVariable", "the address of an object", _body("return y + (id(y) == 0)")),
    _none("other_class", "__class__ assignment on user-defined object", "the class of an object changes", """
import torch

class A:
    pass

class B:
    pass

def f(x):
    a = A()
    a.__class__ = B
    return x * 2
"""),
    _none("sorted_by_values", "sort with non-constant keys", "the order of a list depends on values",
          _body("parts = sorted([x, y, x - 1], key=lambda t: t.sum())\nreturn parts[0] + 1")),
    _none("generator_made", "An opaque object was created in the middle of the program.", "a random generator is made",
          _body("g = torch.Generator()\ng.manual_seed(0)\nreturn y + torch.rand(4, generator=g)")),
    _none("unsupported_step", "torch._dynamo.step_unsupported() with empty checkpoint", "asked for by the user",
          _body("torch._dynamo.step_unsupported()\nreturn y + 1")),
    _none("mark_dirty", "Unsupported autograd.Function context `mark_dirty`", "a function of autograd changes its input", """
import torch

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

def f(x):
    return Double.apply(x.sin()) + 1
"""),
    _none("lock", "Unsupported context manager", "a lock is taken", """
import threading
import torch

lock = threading.Lock()

def f(x):
    y = x * 2
    with lock:
        y = y + 1
    return y * 2
"""),
    _none("one_hot", "Attempted to use `torch.nn.functional.one_hot` with data-dependent output shape",
          "the number of classes depends on values",
          _body("return torch.nn.functional.one_hot(x.abs().long()).sum() + x")),
    _none("is_inference", "Encountered tensor.is_inference() during tracing", "the mode is asked for, not a value",
          _body("return y if y.is_inference() else y + 1")),
    _none("data_of_another_size", "Failed to mutate tensor data attribute", "a tensor gets other memory",
          _body("y.data = torch.ones(2)\nreturn y + 1")),
    _none("forked_random_state", "torch.* op returned non-Tensor", "the random state is read and set",
          _body("with torch.random.fork_rng():\n    y = y + torch.rand(4) * 0\nreturn y + 1")),
    _none("lists_compared", "list_richcompare_nonconst", "lists of tensors are compared",
          _body("same = [x.sum()] == [y.sum()]\nreturn y + same")),
    _none("iterator_of_the_module", "missing tp_iter", "an iterator is used up", """
import torch

numbers = iter({1: 2})

def f(x):
    return x * 2 + 0 * len(list(numbers))
"""),
    _none("endless_generator", "Missing tp_iternext", "a generator goes on from call to call", """
import torch

def counted():
    i = 0
    while True:
        yield i
        i += 1

numbers = counted()

def f(x):
    return x * next(numbers) * 0 + 1
"""),
    _none("bytes_of_an_array", "Unsupported ndarray method call", "the values leave torch",
          _body("return y + 0 * len(y.numpy().tobytes())")),
    _none("array_of_objects", "ndarray.astype(object)", "the values leave torch",
          _body("return y + 0 * len(y.numpy().astype(object))")),
    _none("number_of_the_library", "Unsupported function call", "an object of C code is made", """
import decimal
import torch

def f(x):
    y = x * 2
    return y + int(decimal.Decimal(2))
"""),
    _none("text_of_a_number", "Observed exception", "the text of a value",
          _body("text = f'{y.sum():.2f}'\nreturn y + 0 * len(text)")),
    _none("out_with_gaps", "Attempted to call op with non-contiguous `out=` tensor", "the result goes into memory with gaps",
          _body("out = torch.empty(8)[::2]\ntorch.add(x, y, out=out)\nreturn out + 1")),
    _none("out_of_another_size", "Shape mismatch with out= tensor variant", "the result goes into memory of another size",
          _body("out = torch.empty(2)\ntorch.add(x, y, out=out)\nreturn out + 1")),
    _none("as_parameter", "Argument of `as_subclass` must be a non-dispatcher-style tensor subclass",
          "a tensor becomes a parameter",
          _body("return y.as_subclass(torch.nn.Parameter) + 1")),
    _none("hook_in_the_call", "setattr() on unsupported type", "hooks of a module change in the call", """
import torch

layer = torch.nn.Linear(4, 4)

def f(x):
    handle = layer.register_forward_hook(lambda module, given, made: made * 2)
    y = layer(x)
    handle.remove()
    return y + 1
"""),
    FixProgram("addresses_compared", _body("""
if y.data_ptr() == x.data_ptr():
    y = y + 1
return y * 2
"""), "false", "Data pointer comparison"),
]  # fmt: skip
