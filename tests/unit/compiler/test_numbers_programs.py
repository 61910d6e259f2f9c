"""Programs whose answer is known: which is right, compiled or eager code, at which line it begins, and what makes it.

The operations, casts, gradients, lowerings and passes that are made wrong are drawn by the number of the program.
"""

from __future__ import annotations

import contextlib
import inspect
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch.nn import functional as F

import dynascope
from dynascope.compiler.report import Check, Report

pytestmark = pytest.mark.slow
aten = torch.ops.aten
Edit = Callable[[torch.fx.Graph], None]


class Program(NamedTuple):
    """A call, what is planted in its compiler, and the answer."""

    call: Callable[..., Any]
    args: tuple[Any, ...]
    #: one of the verdicts; "agrees": no difference, or one that is rounding
    verdict: str
    #: makes the compiler wrong, and gives the backend; None: Inductor as it is
    fault: Callable[[], contextlib.AbstractContextManager[Any]] | None = None
    #: what is in the line where it begins
    line: str = "# here"
    is_backward: bool = False
    #: backend, part and detail of the stage
    stage: tuple[str, str, str] | None = None


def reported(program: Program) -> Report:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with (program.fault or contextlib.nullcontext)() as backend:
        return dynascope.explain(program.call, backend=backend or "inductor", check="where")(*program.args)


def checked(program: Program) -> Check:
    return reported(program).check


def line_with(function: Callable[..., Any], text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return next(first + i for i, line in enumerate(lines) if text in line)


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


# -- formulas that lose digits ----------------------------------------------------------------------------------------------


def softmax_of_a_wrong_variance(x: torch.Tensor) -> torch.Tensor:
    m = x.mean(-1, keepdim=True)
    v = (x * x).mean(-1, keepdim=True) - m * m  # here
    return torch.softmax(30 * (x - m) / (v + 1e-12).sqrt(), -1)


def chosen_by_a_wrong_variance(x: torch.Tensor) -> torch.Tensor:
    v = (x * x).mean(-1) - x.mean(-1) ** 2  # here
    return v * (v > 1e-6)  # in float64, others are chosen


NEAR_100 = numbers(64, 1000) * 1e-3 + 100
LOSING = [softmax_of_a_wrong_variance, chosen_by_a_wrong_variance]


# -- a compiler that is wrong -----------------------------------------------------------------------------------------------


def edited(edit: Edit) -> Callable[[], contextlib.AbstractContextManager[Any]]:
    """Gives a backend that changes each graph."""

    def edits(module: torch.fx.GraphModule, inputs: Any) -> Any:
        edit(module.graph)
        module.recompile()
        return module.forward

    return lambda: contextlib.nullcontext(edits)


def replaces(old: Any, new: Any) -> Edit:
    def edit(graph: torch.fx.Graph) -> None:
        for node in graph.nodes:
            if node.target is old:
                node.target = new

    return edit


def takes_out(target: Any, number: int) -> Edit:
    """Takes out one of the calls of this operation."""

    def edit(graph: torch.fx.Graph) -> None:
        node = [node for node in graph.nodes if node.target == target][number]
        node.replace_all_uses_with(node.args[0])
        graph.erase_node(node)

    return edit


def lowers(old: Any, new: Any) -> Callable[[], contextlib.AbstractContextManager[Any]]:
    """Inductor makes another operation's code for an operation."""

    @contextlib.contextmanager
    def changed() -> Iterator[None]:
        from torch._inductor.lowering import lowerings

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(lowerings, old, lowerings[new])
            yield

    return changed


def passes(edit: Edit) -> Callable[[], contextlib.AbstractContextManager[Any]]:
    """Inductor has one more post-grad pass."""
    return lambda: torch._inductor.config.patch(post_grad_custom_post_pass=edit)  # type: ignore[no-any-return]


def wrong_gradient(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """The same function, with a derivative that is a little wrong."""

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return function(x)

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                own = x.detach().requires_grad_()
                return gradient * torch.autograd.grad(function(own).sum(), own)[0] * 1.01

    return lambda x: Wrong.apply(x)  # type: ignore[no-any-return, no-untyped-call]


def chain(x: torch.Tensor) -> torch.Tensor:
    a = x * 2
    a = torch.sin(a)
    a = torch.exp(a)
    a = torch.tanh(a)
    a = torch.sqrt(a + 2)
    a = torch.sigmoid(a)
    return a.sum(-1)


def casts(x: torch.Tensor) -> torch.Tensor:
    a = (x * 3).bfloat16().float()  # cast 0
    a = a + 1000 - 1000
    a = (a * 7).bfloat16().float()  # cast 1
    a = a + 1000 - 1000
    a = (a * 5).bfloat16().float()  # cast 2
    return (a + 1000 - 1000).mean(-1)


def with_a_break(x: torch.Tensor) -> torch.Tensor:
    a = torch.exp(x)
    torch._dynamo.graph_break()
    b = torch.sin(a)
    b = torch.tanh(b)  # here
    return b * 2


def begins_empty(x: torch.Tensor) -> torch.Tensor:
    y = torch.tensor([]).to(x)  # as the cache of a model
    y = torch.cat([y, x.flatten()])
    return torch.tanh(y)  # here


def training_step(x: torch.Tensor, net: torch.nn.Module) -> torch.Tensor:
    loss = torch.tanh(net(x)).pow(2).mean()  # here
    loss.backward()  # type: ignore[no-untyped-call]
    return loss


def used_twice(x: torch.Tensor) -> torch.Tensor:
    y = x * 2  # here
    return y.cos() + torch.tanh(y)


def changes_in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y += 1
    y = torch.tanh(y)  # here
    x.mul_(2)
    return y + x


def takes_the_largest(x: torch.Tensor) -> torch.Tensor:
    largest = torch.argmax(x, -1)  # here
    torch._dynamo.graph_break()
    return x.sin() + x.gather(-1, largest[:, None])


def keeps_a_copy(x: torch.Tensor) -> torch.Tensor:
    y = x * 3
    z = y.clone()  # here
    y.add_(1)
    return z * y


def returns_what_it_changes(x: torch.Tensor) -> torch.Tensor:
    rows = x[::2]
    rows.exp_()  # here
    return x.sum(0)


SMALL = numbers(16, 32)
CHAIN = {"sin": torch.cos, "exp": torch.sigmoid, "tanh": torch.relu, "sqrt": torch.rsqrt, "sigmoid": torch.tanh}
DRAWN = iter(range(100))


def made_wrong(call: Any, args: tuple[Any, ...], edit: Edit, line: str = "# here", is_backward: bool = False) -> Program:
    """A call whose graph a backend edits, and what is in the line that is wrong then."""
    return Program(call, args, "compiled", edited(edit), line, is_backward, ("edits", "", ""))


def in_a_backend() -> Program:
    name, other = random.Random(next(DRAWN)).choice(list(CHAIN.items()))
    return made_wrong(chain, (SMALL,), replaces(getattr(torch, name), other), f"torch.{name}(")


def of_a_cast() -> Program:
    number = random.Random(next(DRAWN)).randrange(3)
    return made_wrong(casts, (SMALL,), takes_out("float", number), f"# cast {number}")


def of_a_gradient() -> Program:
    name = random.Random(next(DRAWN)).choice(list(CHAIN))
    edit = replaces(getattr(torch, name), wrong_gradient(getattr(torch, name)))
    return made_wrong(chain, (SMALL.clone().requires_grad_(),), edit, f"torch.{name}(", is_backward=True)


def in_inductor(*, is_pass: bool) -> Program:
    name, other = random.Random(next(DRAWN)).choice([(n, o.__name__) for n, o in CHAIN.items()])
    right, wrong = getattr(aten, name).default, getattr(aten, other).default
    fault = passes(replaces(right, wrong)) if is_pass else lowers(right, wrong)
    part = ("post_grad_passes", "post_grad_custom_post_pass") if is_pass else ("lowerings", name)
    return Program(chain, (SMALL,), "compiled", fault, f"torch.{name}(", stage=("inductor", *part))


def tanh_is_wrong(call: Callable[..., Any], *args: Any, gradient: bool = False) -> Program:
    other = wrong_gradient(torch.tanh) if gradient else torch.relu
    return made_wrong(call, args, replaces(torch.tanh, other), is_backward=gradient)


PLANTED = {
    **{f"another operation, {i}": in_a_backend() for i in range(3)},
    **{f"a cast dropped, {i}": of_a_cast() for i in range(2)},
    **{f"a wrong gradient, {i}": of_a_gradient() for i in range(2)},
    **{f"a lowering, {i}": in_inductor(is_pass=False) for i in range(2)},
    **{f"a pass, {i}": in_inductor(is_pass=True) for i in range(2)},
    "after an empty tensor": tanh_is_wrong(begins_empty, SMALL),
    "after a break": tanh_is_wrong(with_a_break, SMALL),
    "a training step": tanh_is_wrong(training_step, SMALL, torch.nn.Linear(32, 4), gradient=True),
    "of one of two users": tanh_is_wrong(used_twice, SMALL.clone().requires_grad_(), gradient=True),
    "beside a change in place": tanh_is_wrong(changes_in_place, SMALL.clone()),
    "an index, before a break": made_wrong(takes_the_largest, (SMALL,), replaces(torch.argmax, torch.argmin)),
    "a copy that is an alias": made_wrong(keeps_a_copy, (SMALL,), takes_out("clone", 0)),
    "a view that is a copy": made_wrong(returns_what_it_changes, (SMALL.clone(),), replaces("exp_", "exp")),
}


# -- less precision, NaN and random numbers ---------------------------------------------------------------------------------


def overflows(x: torch.Tensor) -> torch.Tensor:
    y = x * x  # here
    return y / 1000


def adds_a_large_number(x: torch.Tensor) -> torch.Tensor:
    y = x + 2000
    return (y - 2000) * 3  # here


def logs(x: torch.Tensor) -> torch.Tensor:
    y = x - 1
    return torch.log(y) * 2  # here


def infinite_less_infinite(x: torch.Tensor) -> torch.Tensor:
    y = (x * 300) * 300  # here
    return y / 1e4


def decides(x: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.sum(x, -1) > 0, 1.0, 2.0)


CANCELS = torch.tensor([1e8, 1.0, -1e8, -0.5]) * numbers(64, 1)
SUMS = {"float64": lambda x, dim: x.double().sum(dim), "no other": lambda x, dim: x.flip(1).sum(dim)}
OTHERS = {
    "decides as float64": Program(decides, (CANCELS,), "unknown", edited(replaces(torch.sum, SUMS["float64"]))),
    "decides as no other": Program(decides, (CANCELS.flip(1),), "unknown", edited(replaces(torch.sum, SUMS["no other"]))),
    "overflow in eager": Program(overflows, (torch.full((64,), 300.0, dtype=torch.float16),), "eager"),
    "overflow of a product": Program(infinite_less_infinite, (torch.rand(64).half() + 1,), "eager"),
    "sums in float16": Program(adds_a_large_number, (SMALL.half(),), "eager"),
    "sums in bfloat16": Program(adds_a_large_number, (SMALL.bfloat16(),), "eager"),
    "NaN in compiled": made_wrong(logs, (torch.ones(8) + 1e-3,), replaces(torch.log, lambda x: torch.log(x - 1))),
    "dropout": Program(lambda x: F.dropout(x) * 2, (SMALL,), "unknown"),
    "float64": Program(lambda x: torch.sin(x), (SMALL.double(),), "unknown", edited(replaces(torch.sin, torch.cos))),
}  # fmt: skip


# -- all is well ------------------------------------------------------------------------------------------------------------


def normalized(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(F.gelu(x), (32,))


def attention(x: torch.Tensor) -> torch.Tensor:
    q = x.view(2, 8, 2, 16).transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q, is_causal=True)


def in_autocast(x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        y = x
        for _ in range(6):
            y = F.gelu(y @ x.mT @ x / 32)
        return y.float().log_softmax(-1)


def well(call: Callable[..., Any], *args: Any) -> Program:
    return Program(call, args, "agrees")


WELL = {
    "mlp": well(torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)), SMALL),
    "bfloat16": well(normalized, SMALL.bfloat16()),
    "attention": well(attention, SMALL),
    "autocast": well(in_autocast, SMALL),
    "batch norm": well(torch.nn.BatchNorm1d(32), SMALL),
    "gradients": well(lambda x: F.cross_entropy(x @ x.mT, torch.arange(16)), SMALL.clone().requires_grad_()),
    "NaN in both": well(lambda x: x.sqrt() + x.log().sum(), SMALL),
}
LOST = {f.__name__: Program(f, (NEAR_100,), "both") for f in LOSING}
PROGRAMS = LOST | PLANTED | OTHERS | WELL
#: these take long and have a sister: only `make test-all` runs them
LONG = {*list(LOST)[1:], "a lowering, 1", "a pass, 1", "autocast", "sums in float16", "overflow in eager", "batch norm"}


@pytest.mark.parametrize("name", [pytest.param(name, id=f"{'long: ' * (name in LONG)}{name}") for name in PROGRAMS])
def test_the_answer_is_known(name: str) -> None:
    program = PROGRAMS[name]
    found = checked(program)
    told = found.numbers
    if program.verdict == "agrees":
        assert found.agrees or (told is not None and told.verdict == "rounding"), found
        return
    assert found.agrees is not True
    assert told.verdict == program.verdict, told.sentence
    if program.verdict == "unknown":
        return
    assert told.origin is not None, told.origin_unknown
    assert told.origin.line == line_with(program.call, program.line)
    assert told.origin.is_backward == program.is_backward
    assert program.stage == (told.stage and (told.stage.backend.rpartition(".")[2], told.stage.part, told.stage.detail))
