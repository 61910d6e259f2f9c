"""Programs whose answer is known: which is right, compiled or eager code, and where the difference begins."""

from __future__ import annotations

import inspect
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import dynascope
from dynascope.compiler.capture.torch_private import float64
from dynascope.compiler.capture.torch_private.bisector import bisect
from dynascope.compiler.report import Check

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def fresh_torch() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def checked(function: Callable[..., Any], *args: Any, backend: Any = "inductor", check: Any = True) -> Check:
    report = dynascope.explain(function, backend=backend, check=check)(*args)
    assert report.check is not None
    return report.check


def line_marked(function: Callable[..., Any], mark: str = "# here") -> int:
    lines, first = inspect.getsourcelines(function)
    return next(first + i for i, line in enumerate(lines) if mark in line)


# -- formulas that lose digits: neither is right ----------------------------------------------------------------------------


def near(rows: int = 64, columns: int = 1000, mean: float = 100.0) -> torch.Tensor:
    return torch.randn(rows, columns) * 1e-3 + mean


def softmax_of_a_wrong_variance(x: torch.Tensor) -> torch.Tensor:
    m = x.mean(-1, keepdim=True)
    v = (x * x).mean(-1, keepdim=True) - m * m  # here
    return torch.softmax(30 * (x - m) / (v + 1e-12).sqrt(), -1)


def raw_variance(x: torch.Tensor) -> torch.Tensor:
    return (x * x).mean(-1) - x.mean(-1) ** 2  # here


def raw_covariance(x: torch.Tensor) -> torch.Tensor:
    y = x.flip(0)
    return (x * y).mean(-1) - x.mean(-1) * y.mean(-1)  # here


def raw_skewness(x: torch.Tensor) -> torch.Tensor:
    m = x.mean(-1)
    second, third = (x * x).mean(-1), (x * x * x).mean(-1)
    return third - 3 * m * second + 2 * m * m * m  # here


def sum_of_deviations(x: torch.Tensor) -> torch.Tensor:
    m = x.mean(-1, keepdim=True)
    return 1e3 * (x - m).sum(-1)  # here


def distance_from_squares(x: torch.Tensor) -> torch.Tensor:
    y = x + 1e-4
    squares = (x * x).sum(-1) + (y * y).sum(-1)
    return squares - 2 * (x * y).sum(-1)  # here


def angle_from_cosine(x: torch.Tensor) -> torch.Tensor:
    y = x + 1e-5 * x.flip(-1)
    cosine = (x * y).sum(-1) / ((x * x).sum(-1) * (y * y).sum(-1)).sqrt()
    return 1e4 * (1 - cosine)  # here


def difference_of_logs(x: torch.Tensor) -> torch.Tensor:
    x = x - 100
    return 1e4 * (x.exp().sum(-1).log() - (x + 1e-7).exp().sum(-1).log())  # here


def alternating_sum(x: torch.Tensor) -> torch.Tensor:
    signs = 1 - 2 * (torch.arange(1000) % 2)
    return 1e2 * (x**3 * signs).sum(-1) / x.sum(-1)  # here


def rest_of_a_sum(x: torch.Tensor) -> torch.Tensor:
    whole = x.sum(-1)
    return whole - x[:, :999].sum(-1) - x[:, 999]  # here


def energy_difference(x: torch.Tensor) -> torch.Tensor:
    return (x**4).sum(-1) - (x.flip(-1) ** 4 * (1 + 1e-9)).sum(-1)  # here


LOSING = [
    softmax_of_a_wrong_variance, raw_variance, raw_covariance, raw_skewness, sum_of_deviations, distance_from_squares,
    angle_from_cosine, difference_of_logs, alternating_sum, rest_of_a_sum, energy_difference,
]  # fmt: skip


@pytest.mark.parametrize("function", LOSING, ids=lambda f: f.__name__)
def test_neither_is_right_where_a_formula_loses_its_digits(function: Callable[..., Any]) -> None:
    found = checked(function, near(), check="where")
    assert found.agrees is False, found
    assert found.numbers is not None
    assert found.numbers.verdict == "both", found.numbers
    assert found.numbers.origin is not None, found.numbers.origin_unknown
    assert found.numbers.origin.line == line_marked(function)


# -- one of the two is wrong ------------------------------------------------------------------------------------------------


def replaces(old: Any, new: Any) -> Callable[..., Any]:
    """A backend in which one operation is another one."""

    def backend(module: torch.fx.GraphModule, inputs: Any) -> Any:
        for node in module.graph.nodes:
            if node.target is old:
                node.target = new
        module.recompile()
        return module.forward

    return backend


def drops_a_cast(module: torch.fx.GraphModule, inputs: Any) -> Any:
    """A backend whose pass takes out the first cast to float32."""
    for node in module.graph.nodes:
        if node.target == "float":
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
            break
    module.recompile()
    return module.forward


def with_wrong_derivative(x: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = WrongDerivative.apply(x)
    return made


class WrongDerivative(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.tanh()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return gradient * (1 - x.tanh())


def small() -> torch.Tensor:
    return torch.randn(16, 32)


def chain(x: torch.Tensor) -> torch.Tensor:
    a = x * 2
    a = torch.sin(a)
    a = torch.exp(a)
    a = torch.tanh(a)
    a = torch.sqrt(a + 2)
    return a.sum(-1)


def loss_in_float32(x: torch.Tensor) -> torch.Tensor:
    y = (x * 3).to(torch.bfloat16)
    y = y.float()  # here
    y = y + 1000
    return (y - 1000).mean(-1)


def trained(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y = torch.tanh(y)  # here
    return (y * y).sum()


def overflows_in_half(x: torch.Tensor) -> torch.Tensor:
    y = x * x  # here
    return y / 1000


def logs(x: torch.Tensor) -> torch.Tensor:
    y = x - 1
    return torch.log(y) * 2  # here


def log_of_less(x: torch.Tensor) -> torch.Tensor:
    return torch.log(x - 1)


def with_a_break(x: torch.Tensor) -> torch.Tensor:
    a = torch.exp(x)
    torch._dynamo.graph_break()
    b = a.sin()
    b = torch.tanh(b)  # here
    return b * 2


def training_step(x: torch.Tensor, net: torch.nn.Module) -> torch.Tensor:
    loss = torch.tanh(net(x)).pow(2).mean()  # here
    loss.backward()  # type: ignore[no-untyped-call]
    return loss


def in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y += 1
    y = torch.tanh(y)  # here
    x.mul_(2)
    return y + x


CHAIN = [("sin", torch.cos), ("exp", torch.sigmoid), ("tanh", torch.relu), ("sqrt", torch.rsqrt)]


@pytest.mark.parametrize("seed", range(4))
def test_a_wrong_operation_is_the_compilers_fault(seed: int) -> None:
    name, other = random.Random(seed).choice(CHAIN)
    found = checked(chain, small(), backend=replaces(getattr(torch, name), other), check="where")
    assert found.agrees is False
    assert found.numbers is not None
    assert found.numbers.verdict == "compiled", found.numbers
    assert found.numbers.origin is not None, found.numbers.origin_unknown
    assert (found.numbers.origin.line, found.numbers.origin.operation) == (line_marked(chain, name), f"torch.{name}")


@pytest.mark.parametrize(
    ("function", "args", "backend", "verdict"),
    [
        (loss_in_float32, (small(),), drops_a_cast, "compiled"),
        (trained, (small().requires_grad_(),), replaces(torch.tanh, with_wrong_derivative), "compiled"),
        (overflows_in_half, (torch.full((64,), 300.0, dtype=torch.float16),), "inductor", "eager"),
        (with_a_break, (small(),), replaces(torch.tanh, torch.relu), "compiled"),
        (training_step, (small(), torch.nn.Linear(32, 4)), replaces(torch.tanh, with_wrong_derivative), "compiled"),
        (in_place, (small(),), replaces(torch.tanh, torch.cos), "compiled"),
        (logs, (torch.ones(8) + 1e-3,), replaces(torch.log, log_of_less), "compiled"),
        (lambda x: F.dropout(x) * 2, (small(),), "inductor", "unknown"),
        (lambda x: torch.sin(x) * 2, (small().double(),), replaces(torch.sin, torch.cos), "unknown"),
    ],
    ids=[
        "dropped cast",
        "wrong gradient",
        "overflow in eager",
        "graph break",
        "training step",
        "in place",
        "NaN in compiled",
        "random",
        "float64",
    ],
)
def test_the_wrong_one_is_named(function: Any, args: tuple[Any, ...], backend: Any, verdict: str) -> None:
    found = checked(function, *args, backend=backend, check="where")
    assert found.agrees is not True
    assert found.numbers is not None
    assert found.numbers.verdict == verdict, found.numbers
    if verdict != "unknown":
        assert found.numbers.origin is not None, found.numbers.origin_unknown
        assert found.numbers.origin.line == line_marked(function)
        assert found.numbers.origin.is_backward == (function in (trained, training_step))


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


def changes_a_view(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, ::2].mul_(3)
    y.view(-1)[5:9] += y[0, :4]
    return y.cumsum(-1)


def whole_numbers(x: torch.Tensor) -> Any:
    return x.argmax(-1), (x > 0).sum(), x.long() // 3


WELL = {
    "mlp": (torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)), small()),
    "layer norm": (normalized, small()),
    "bfloat16": (normalized, small().bfloat16()),
    "float16": (lambda x: (x @ x.mT).softmax(-1), small().half()),
    "attention": (attention, small()),
    "autocast": (in_autocast, small()),
    "views": (changes_a_view, small()),
    "whole numbers": (whole_numbers, small()),
    "two-pass variance": (lambda x: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True), small() + 5),
    "logsumexp": (lambda x: torch.logsumexp(x * 50, -1), small()),
    "batch norm": (torch.nn.BatchNorm1d(32), small()),
    "gradients": (lambda x: F.cross_entropy(x @ x.mT, torch.arange(16)), small().requires_grad_()),
    "complex": (lambda x: torch.fft.ifft(torch.fft.fft(x) * 2).real, small()),
    "long sum": (lambda x: (x.repeat(1, 500) + 1).sum(-1), small()),
    "NaN in both": (lambda x: x.sqrt() + x.log().sum(), small()),
}


@pytest.mark.parametrize("name", WELL)
def test_no_alarm_where_all_is_well(name: str) -> None:
    function, *args = WELL[name]
    found = checked(function, *args)
    assert found.agrees or (found.numbers is not None and found.numbers.verdict == "rounding"), found


# -- the stage of the compiler ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [3, 8])
@pytest.mark.parametrize("is_pass", [False, True], ids=["lowering", "pass"])
def test_a_fault_in_inductor_is_named_by_its_stage(seed: int, is_pass: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import config
    from torch._inductor.compiler_bisector import CompilerBisector
    from torch._inductor.lowering import lowerings

    name, _ = random.Random(seed).choice(CHAIN)
    aten = torch.ops.aten
    right, wrong = getattr(aten, name).default, aten.cos.default if name != "sqrt" else aten.rsqrt.default

    def replace(graph: torch.fx.Graph) -> None:
        for node in graph.nodes:
            if node.target is right:
                node.target = wrong

    if not is_pass:
        monkeypatch.setitem(lowerings, right, lowerings[wrong])
    with config.patch(post_grad_custom_post_pass=replace if is_pass else None):
        found = checked(chain, small(), check="where").numbers
    assert found is not None
    assert found.verdict == "compiled"
    assert found.origin is not None
    assert found.origin.line == line_marked(chain, name)
    assert found.stage is not None
    assert (found.stage.backend, found.stage.part) == ("inductor", "post_grad_passes" if is_pass else "lowerings")
    assert found.stage.detail == ("post_grad_custom_post_pass" if is_pass else name)
    assert not CompilerBisector.bisection_enabled
    assert CompilerBisector.in_process_cache is None
    assert CompilerBisector.get_backend() is None


# -- what helps -------------------------------------------------------------------------------------------------------------


def casts_twice(x: torch.Tensor) -> torch.Tensor:
    y = (x * 1.001).bfloat16()
    z = (y * 3.1).bfloat16() + 100
    return (z.float() - 100) * 10


@pytest.mark.parametrize(
    ("function", "x", "change"),
    [
        (softmax_of_a_wrong_variance, near(), "torch.var(x, -1, keepdim=True, correction=0)"),
        (lambda x: F.dropout(x) * 2, small(), "torch._inductor.config.fallback_random = True"),
        (casts_twice, small(), "torch._inductor.config.emulate_precision_casts = True"),
    ],
    ids=["variance", "random numbers", "precision casts"],
)
def test_what_helps_is_offered_after_it_was_tried(function: Any, x: torch.Tensor, change: str) -> None:
    found = checked(function, x, check="where").numbers
    assert found is not None
    assert [remedy.change for remedy in found.remedies] == [change]


def test_agreement_can_be_expected() -> None:
    good = dynascope.explain(torch.sin, backend="eager", check=True)(torch.ones(3))
    good.expect("check=agrees,graphs=1")
    bad = dynascope.explain(chain, backend=replaces(torch.sin, torch.cos), check=True)(small())
    with pytest.raises(AssertionError, match=r"expected check=agrees\n  compiled and eager differ.*\n  Against float64, comp"):
        bad.expect("check=agrees")
    unchecked = dynascope.explain(torch.sin, backend="eager")(torch.ones(3))
    with pytest.raises(AssertionError, match="nothing was compared: run it with --check"):
        unchecked.expect("check=agrees")


def test_a_bisection_that_ends_early_leaves_nothing_and_takes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from torch._inductor.compiler_bisector import BACKENDS, CompilerBisector

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    own = Path(CompilerBisector.get_dir()) / "bisect_status.txt"  # of a search that the user has begun
    own.parent.mkdir(parents=True)
    own.write_text("backend=aot_eager\nsubsystem=\n")
    backends, folders = list(BACKENDS), []

    def is_right() -> bool:
        folders.append(CompilerBisector.get_dir())
        if len(folders) == 3:
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        bisect(is_right, "inductor")
    assert not any(map(os.path.exists, folders))
    assert own.read_text() == "backend=aot_eager\nsubsystem=\n"
    assert (CompilerBisector.bisection_enabled, CompilerBisector.in_process_cache, list(BACKENDS)) == (False, None, backends)
    assert bisect(lambda: True, "inductor") is None
    assert own.exists()


def test_what_is_too_large_for_float64_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(float64, "MOST_BYTES", 1000)
    found = checked(chain, small(), backend=replaces(torch.sin, torch.cos)).numbers
    assert found is not None
    assert found.verdict == "unknown"
    assert "MemoryError: in float64, it needs more than" in found.why_not
