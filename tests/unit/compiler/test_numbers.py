"""`--check=where` beside its answers for known programs: what helps, an issue's text, sequences, what is left behind."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any

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
    softmax_of_a_wrong_variance,
    wrong_gradient,
)
from torch.nn import functional as F

import dynascope
from dynascope.compiler.capture.torch_private import float64
from dynascope.compiler.capture.torch_private.bisector import bisect

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
    found = checked(Program(function, (x,), "")).numbers
    assert found is not None
    assert [remedy.change for remedy in found.remedies] == [change]


@pytest.mark.parametrize("is_backward", [False, True], ids=["forward", "backward"])
def test_the_script_of_an_issue_shows_it_on_its_own(is_backward: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = lowers(torch.ops.aten.tanh.default, torch.ops.aten.relu.default)
    x = SMALL.clone().requires_grad_() if is_backward else SMALL
    found = checked(Program(chain, (x,), "", fault)).numbers
    assert found is not None
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
    assert found is not None
    assert found.origin is not None
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


def test_of_training_steps_the_first_gradient_that_differs_is_named() -> None:
    net, fault = Net(), edited(replaces(torch.tanh, wrong_gradient(torch.tanh)))
    found = checked(Program(lambda x: torch.stack([net.step(x), net.step(x * 2)]), (SMALL,), "", fault)).numbers
    assert found is not None
    assert found.origin is not None
    assert (found.origin.line, found.origin.run, found.origin.is_backward) == (line_with(Net.forward, "# here"), 0, True)


def test_agreement_can_be_expected() -> None:
    good = dynascope.explain(torch.sin, backend="eager", check=True)(torch.ones(3))
    good.expect("check=agrees,graphs=1")
    with edited(replaces(torch.sin, torch.cos))() as backend:
        bad = dynascope.explain(chain, backend=backend, check=True)(SMALL)
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
    found = checked(Program(chain, (SMALL,), "", edited(replaces(torch.sin, torch.cos)))).numbers
    assert found is not None
    assert found.verdict == "unknown"
    assert "MemoryError: in float64, it needs more than" in found.why_not
