"""`--check=where` beside its answers for known programs: what helps, an issue's text, sequences, what is left behind."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from test_numbers_programs import (
    NEAR_100,
    SMALL,
    Program,
    chain,
    checked,
    edited,
    line_with,
    lowers,
    overflows,
    replaces,
    reported,
    softmax_of_a_wrong_variance,
    wrong_gradient,
)
from torch.nn import functional as F

import dynascope
from dynascope.compiler.capture.torch_private import float64
from dynascope.compiler.capture.torch_private.bisector import bisect
from dynascope.compiler.lab.fix.trial import TookTooLong
from dynascope.compiler.lab.numbers import cause, verdict
from dynascope.compiler.report import NumberError

pytestmark = pytest.mark.slow


def casts_twice(x: torch.Tensor) -> torch.Tensor:
    y = (x * 1.001).bfloat16()
    z = (y * 3.1).bfloat16() + 100
    return (z.float() - 100) * 10


def of_seed_0() -> torch.Tensor:
    return torch.randn(16, 32, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("function", "x", "change"),
    [
        (softmax_of_a_wrong_variance, NEAR_100, "torch.var(x, -1, keepdim=True, correction=0)"),
        (lambda x: F.dropout(x) * 2, SMALL, "torch._inductor.config.fallback_random = True"),
        (casts_twice, of_seed_0(), "torch._inductor.config.emulate_precision_casts = True"),
        (overflows, torch.full((64,), 300.0, dtype=torch.float16), "mul in float32"),
    ],
    ids=["variance", "random numbers", "precision casts", "overflow"],
)
def test_what_helps_is_offered_after_it_was_tried(function: Any, x: torch.Tensor, change: str) -> None:
    (remedy,) = checked(Program(function, (x,), "")).numbers.remedies
    assert remedy.change == change
    assert verdict.share_of(remedy.eager) < 1e-6, "what float64 loses with the first formula is no error of the other one"


def test_products_and_sums_that_become_one_operation_are_taken_apart() -> None:
    """What the compiler rounds once is not what it is in eager mode."""
    x, y = (1e4 * numbers(64) for numbers in (torch.rand, torch.rand))

    def cancels(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x * y - z * w

    setting = "cpp.enable_floating_point_contract_flag"
    with torch._inductor.config.patch({setting: "fast"}):
        found = checked(Program(cancels, (x, y, y.clone(), x.clone()), "")).numbers
    assert found.verdict == "both"
    assert "it is off by nothing in eager and by" in found.sentence
    told = (verdict.size_text(NumberError(relative=share), whole="it") for share in (1234.0, 1.8e32))
    assert [*told] == ["1,200 times it", "1.8e+32 times it"]
    lost = [NumberError(relative=share) for share in (1.0, 0.054)]  # which one is nearer is chance
    assert verdict.judged(*lost, None, 1e-7) == verdict.judged(*lost[::-1], None, 1e-7) == "both"
    assert [remedy.change for remedy in found.remedies] == [f"torch._inductor.config.{setting} = 'off'"]


def test_no_setting_helps_where_code_that_was_compiled_for_another_call_runs() -> None:
    """Each trial compiles the call anew, which alone removes the difference."""
    held = [2.0]
    factor = torch.compiler.assume_constant_result(lambda: held[0])

    def grows(x: torch.Tensor) -> torch.Tensor:
        y = x * factor()
        held[0] = 3.0
        return y

    found = checked(Program(grows, (SMALL,), "")).numbers
    assert (found.verdict, [r.change for r in found.remedies]) == ("compiled", ["code compiled for this call alone"])


def product(name: str, settings_say_so: Callable[[], bool], rounding: int) -> Any:
    """A product that has the digits of TensorFloat-32 if torch's settings allow it, as on a GPU."""

    @torch.library.custom_op(f"dynascope_test::{name}_{rounding}", mutates_args=())
    def multiplies(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.dtype is torch.float32 and settings_say_so():
            x, y = (((t.view(torch.int32) + rounding) & ~0x1FFF).view(torch.float32) for t in (x, y.contiguous()))
        return x @ y

    multiplies.register_fake(torch.matmul)
    return multiplies


@pytest.mark.parametrize(
    ("name", "settings_say_so", "change"),
    [
        ("product", lambda: torch.get_float32_matmul_precision() != "highest", "torch.set_float32_matmul_precision('highest')"),
        ("conv", lambda: torch.backends.cudnn.allow_tf32, "torch.backends.cudnn.allow_tf32 = False"),
    ],
    ids=["product", "convolution"],
)
def test_less_precise_products_are_turned_off(name: str, settings_say_so: Callable[[], bool], change: str) -> None:
    eager, compiled = (product(name, settings_say_so, rounding) for rounding in (0, 0x1FFF))
    torch.set_float32_matmul_precision("high")
    try:
        fault = edited(replaces(eager._opoverload, compiled._opoverload))
        found = checked(Program(lambda x: eager(x, x.mT) * 2, (SMALL,), "", fault)).numbers
        assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == ("high", True)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert found.verdict == "both"
    assert [remedy.change for remedy in found.remedies] == [change]


@pytest.mark.parametrize("is_backward", [False, True], ids=["forward", "backward"])
def test_the_script_of_an_issue_shows_it_on_its_own(is_backward: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = lowers(torch.ops.aten.tanh.default, torch.ops.aten.relu.default)
    found = checked(Program(chain, (SMALL.clone().requires_grad_() if is_backward else SMALL,), "", fault)).numbers
    assert "it comes from Inductor's lowering of `tanh`" in found.issue
    script = found.issue.split("```python\n")[1].split("```")[0]
    told = found.issue.split("It prints:\n\n```\n")[1].split("```")[0]
    with fault(), contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(script, "<issue>", "exec"), {})
    assert printed.getvalue() == told


def one_step(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)  # here
    return y * 4 + 10


def generates(x: torch.Tensor) -> torch.Tensor:
    for _ in range(5):
        x = one_step(x)
        torch._dynamo.graph_break()
    return x


def wrong_if_large(x: torch.Tensor) -> torch.Tensor:
    return torch.where((x > 11).any(), torch.cos(x), torch.sin(x))


def test_of_a_sequence_of_calls_the_first_one_that_differs_is_named() -> None:
    found = checked(Program(generates, (torch.zeros(4),), "", edited(replaces(torch.sin, wrong_if_large)))).numbers
    assert (found.origin.line, found.origin.run) == (line_with(one_step, "# here"), 3)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(32, 8), torch.nn.Linear(8, 1)
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.1)

    def forward(self, x: torch.Tensor) -> Any:
        return self.b(torch.tanh(self.a(x)))  # here

    def step(self, x: torch.Tensor) -> torch.Tensor:
        for parameter in self.parameters():
            parameter.grad = None
        loss: torch.Tensor = self(x).pow(2).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()


def wrong_gradient_if_large(x: torch.Tensor) -> torch.Tensor:
    return torch.where((x.abs() > 3.6).any(), wrong_gradient(torch.tanh)(x), torch.tanh(x))


@pytest.mark.parametrize(("tanh", "step"), [(wrong_gradient(torch.tanh), 0), (wrong_gradient_if_large, 2)], ids=["1", "3"])
def test_of_training_steps_the_first_gradient_that_differs_is_named(tanh: Any, step: int) -> None:
    torch.manual_seed(0)
    net, fault = Net(), edited(replaces(torch.tanh, tanh))
    report = reported(Program(lambda x: torch.stack([net.step(x * scale) for scale in (1, 1, 4, 4)]), (SMALL,), "", fault))
    found = report.check.numbers
    assert (found.origin.line, found.origin.is_backward) == (line_with(Net.forward, "# here"), True)
    said = " ".join(str(report).split())
    assert f"The error of the gradients begins in run {step + 1} of 4 of graph 0, at test_numbers.py:" in said


def updates(x: torch.Tensor, net: torch.nn.Linear) -> None:
    net.zero_grad()
    torch.tanh(net(x)).mean().backward()  # here
    with torch.no_grad():
        net.weight -= 0.1 * net.weight.grad


def test_a_parameter_that_a_graph_changes_is_no_difference() -> None:
    """Nor does measuring change it for what is measured next."""
    torch.manual_seed(0)
    net = torch.nn.Linear(32, 4)

    def step(x: torch.Tensor) -> None:
        for scale in (1, 1, 8):
            updates(x * scale, net)

    found = checked(Program(step, (SMALL,), "", edited(replaces(torch.tanh, wrong_gradient_if_large)))).numbers
    assert "gradient left in net.weight is off by 1 % of the largest gradient (eager: " in found.sentence
    assert (found.origin.line, found.origin.run, found.origin.is_backward) == (line_with(updates, "# here"), 2, True)


def test_a_search_that_takes_too_long_says_what_it_did_not_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cause, "stage_of", Mock(side_effect=TookTooLong))
    report = reported(Program(chain, (SMALL,), "", edited(replaces(torch.sin, torch.cos))))
    assert report.notes[-1] == "check: What makes it is unknown: the search took more than 120 seconds"
    assert "The error begins at" in report.notes[-2]


def test_agreement_can_be_expected() -> None:
    dynascope.explain(torch.sin, backend="eager", check=True)(torch.ones(3)).expect("check=agrees,graphs=1")
    with edited(replaces(torch.sin, torch.cos))() as backend:
        bad = dynascope.explain(chain, backend=backend, check=True)(SMALL)
    with pytest.raises(AssertionError, match=r"expected check=agrees\n  compiled and eager differ.*\n  Against float64, comp"):
        bad.expect("check=agrees")
    unchecked = dynascope.explain(torch.sin, backend="eager")(torch.ones(3))
    with pytest.raises(AssertionError, match="no check was made: --check"):
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
    found = checked(Program(chain, (SMALL,), "", edited(replaces(torch.sin, torch.cos)))).numbers
    assert found.verdict == "unknown"
    assert "MemoryError: in float64, it needs more than" in found.why_not


def test_the_zeros_of_forward_differentiation_have_no_memory_to_be_read() -> None:
    with float64.followed_in_float64() as exact:
        value, slope = torch.func.jvp(torch.nn.Linear(2, 1), (torch.ones(2),), (torch.ones(2),))
    assert exact.copy_of(value) is not None
    assert slope.shape == (1,)
