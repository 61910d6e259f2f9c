"""`--check` compares all that Python shows of a result, and says so where it compared nothing."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import numpy as np
import pytest
import torch
from msgspec.structs import asdict
from torch.nn.functional import dropout
from torch.utils.checkpoint import checkpoint

import dynascope
from dynascope.compiler.lab.experiment import Experiment, Variant
from dynascope.compiler.lab.recorded_call import RecordedCall


def checked(function: Callable[..., Any], *args: Any, backend: Any = "eager") -> dict[str, Any]:
    report = dynascope.explain(function, backend=backend, check=True)(*args)
    return {**asdict(report.check), "words": next(note for note in report.notes if note.startswith("check: "))}


@dataclasses.dataclass
class Pair:
    x: Any


class Bag(set[int]):
    pass


class Holder:
    def __init__(self, x: Any) -> None:
        self.x = x

    def add(self, x: torch.Tensor) -> torch.Tensor:
        self.x.append(other())
        return x * 1


SEEN = Holder([])


def other() -> int:
    """Another number in compiled code: what a wrong compiler would do."""
    return 1 if torch.compiler.is_compiling() else 5


def ordered(x: torch.Tensor, moved: bool) -> Any:
    result = OrderedDict(a=x + 1, b=x + 2)
    if moved:
        result.move_to_end("a")
    return result


class Counting(torch.nn.Module):
    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(other())
        return x * 1


class Averaging(torch.nn.Module):
    def __init__(self, less: int) -> None:
        super().__init__()
        self.weight, self.less = torch.nn.Parameter(torch.ones(3)), less

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.weight.data.add_(other() - self.less)  # does not change the parameter's version
        return x * 1


class Setting(torch.nn.Module):
    def __init__(self, name: str, value: Callable[[], Any]) -> None:
        super().__init__()
        self.name, self.value = name, value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        setattr(self, self.name, self.value())
        return x * 1


array = torch.compiler.disable(np.array)


def leaves(x: torch.Tensor, holder: Holder) -> None:
    holder.x = x * other()


@pytest.mark.parametrize(
    ("function", "args", "where"),
    [
        (Counting(), (), "seen (effects)"),
        (Averaging(0), (), "weight (effects)"),
        (Averaging(1), (), "weight is new or changed only in the eager call"),
        (Setting("calls", other), (), "Setting.calls (effects)"),
        (Setting("_calls", other), (), "Setting._calls (effects)"),
        (Setting("last", lambda: torch.ones(2) * other()), (), "Setting.last (effects)"),
        (Setting("kept", lambda: {"a": [other()]}), (), "Setting.kept['a'][0] (effects)"),
        (lambda x: Pair(x + other()), (), "the value.x (values)"),
        (lambda x: Holder([x + other()]), (), "the value.x[0] (values)"),
        (lambda x: (x + 1, float(other())), (), "the value[1] (values)"),
        (lambda x: (x + 1, str(other())), (), "the value[1] (values)"),
        (lambda x: (x + 1, [0] * other()), (), "the value[1][1] exists only in the eager call"),
        (lambda x: (x + 1, np.array(["a" * other()])), (), "the value[1] (values)"),
        (lambda x: (x + 1, array([other()], "M8[D]")), (), "the value[1] (values)"),
        (lambda x: (x + 1, HTTPStatus(199 + other())), (), "the value[1] (values)"),
        (lambda x: ordered(x, other() == 5), (), "the value['a'] (values)"),
        (leaves, (Holder(None),), "argument 1.x (effects)"),
        (lambda x, model: model(x), (Counting(),), "argument 1.seen (effects)"),
        (Holder([]).add, (), "Holder.x[1] (effects)"),
        (functools.partial(leaves, holder=Holder(None)), (), "Holder.x (effects)"),
        (lambda x: SEEN.add(x), (), "SEEN.x[1] (effects)"),
    ],
)
def test_a_difference_is_found_wherever_it_is(function: Any, args: tuple[Any, ...], where: str) -> None:
    found = checked(function, torch.ones(3), *args)
    assert (found["agrees"], found["numbers"].verdict == "rounding") == (False, False), found
    assert found["differences"][0].startswith(where)


def test_what_only_one_call_counts_as_written_is_no_difference_where_it_has_the_same_value() -> None:
    class Initialized(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.weight.data.copy_(x)  # in eager mode, neither this nor the next line changes a version
            self.bias.grad.data.zero_()
            return super().forward(x)

    module = Initialized(3, 3)
    module.bias.grad = torch.ones(3)
    found = checked(module, torch.ones(3, 3), backend="aot_eager")
    assert (found["agrees"], found["differences"]) == (True, [])


def test_what_agrees_is_counted() -> None:
    values = {"n": 2.0, "a": np.ones(2), "s": HTTPStatus.OK}
    found = checked(
        lambda x: (Pair(x + 1), {**values, "f": np.float32(1 + 1e-7 * torch.compiler.is_compiling())}), torch.ones(3)
    )
    assert (found["agrees"], found["compared"]["values"]) == (True, 5)
    assert found["words"] == "check: compiled and eager agree (5 values, 2 arguments, attributes or variables after the call)."


def test_attributes_of_modules_count_where_the_call_changes_them() -> None:
    module = Setting("step", lambda: getattr(module, "step", 0) + 1)
    assert checked(module, torch.ones(3))["compared"] == {"values": 1, "effects": 2, "gradients": 0}  # x and step
    assert module.step == 1


def test_where_nothing_is_compared_nothing_agrees() -> None:
    linear = torch.nn.Linear(2, 2)
    for function in (lambda x: {3}, lambda x: [print(linear(x)) for _ in range(2)]):  # as a call at the recompile limit
        found = checked(function, torch.ones(2))["words"]
        assert found == "check: nothing was compared: no compiled graph ran in the last call."
    found = checked(lambda n: {torch.ones(n)}, 3)
    assert found["agrees"] is None
    assert found["words"] == "check: nothing was compared: the call returns and changes nothing that can be compared (set)."
    found = checked(lambda x: (x + 1, {3}), torch.ones(2))
    assert found["words"].endswith("agree (1 value, 1 argument, attribute or variable after the call; not compared: set).")
    found = checked(lambda x: (x + 1, Bag([other()])), torch.ones(2))
    assert found["not_compared"] == ["Bag"]


def test_at_the_recompile_limit_it_is_still_compiled_code_that_is_compared() -> None:
    holder = Holder(0)

    def counts(x: torch.Tensor) -> torch.Tensor:
        holder.x += 1
        return x * other() + holder.x

    with torch._dynamo.config.patch(recompile_limit=1):
        assert checked(counts, torch.ones(3))["agrees"] is False


def draws_others(graph: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
    """A backend with random numbers of its own, as Inductor has."""
    return lambda *args: torch.rand(1) is not None and graph(*args)


def test_random_numbers_that_the_backend_draws_itself_are_no_difference() -> None:
    found = checked(lambda x: torch.nn.functional.dropout(x, 0.5), torch.ones(100), backend=draws_others)
    assert found["agrees"] is None
    assert "unknown whether compiled and eager agree" in found["words"]
    assert "a backend may draw other numbers than eager code" in found["words"]
    found = checked(lambda x: torch.nn.functional.dropout(x, 0.5) * scaled(1 + 3e-6), 1e3 * torch.ones(100))
    assert (found["agrees"], found["numbers"].verdict) == (False, "rounding")


@pytest.mark.filterwarnings("ignore:Dynamo does not know")
def test_what_is_another_in_each_eager_call_is_not_compared() -> None:
    found = checked(lambda times: (times.append(time.perf_counter_ns() % 10**6), torch.rand(1))[1], [])
    assert (found["agrees"], found["not_compared"]) == (True, ["argument 0[0] (effects), another in each eager call"])


def test_an_error_that_only_eager_code_raises_is_a_difference() -> None:
    found = checked(lambda x: x.sin().numpy(), torch.ones(1, requires_grad=True))
    assert "compiled and eager differ: the eager call raises RuntimeError: Can't call numpy() on Tensor" in found["words"]


def test_gradients_of_a_computed_argument_are_compared() -> None:
    weight = torch.ones(3, requires_grad=True)
    found = checked(lambda h: h.sin() * 2, weight * 2, backend="aot_eager")
    assert (found["agrees"], found["compared"]["gradients"]) == (True, 1), found
    # now another tensor; a leaf that is returned as it is has a gradient, too
    found = checked(lambda h, x: (h.add_(1) * 2, x), weight * 2, torch.ones(3, requires_grad=True), backend="aot_eager")
    assert (found["agrees"], found["compared"]["gradients"]) == (True, 1), found


def test_a_backward_that_only_compiled_code_cannot_run_is_said() -> None:
    def penalty(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        x = (x * torch.rand_like(x)).requires_grad_()
        return torch.autograd.grad((x @ weight).exp().sum(), x, create_graph=True)[0].norm()

    found = checked(penalty, torch.ones(3), torch.ones(3, requires_grad=True), backend="aot_eager")
    assert (found["agrees"], found["numbers"]) == (False, None), "random numbers do not explain it"
    assert found["words"].startswith("check: compiled and eager differ: backward() in the compiled call raises RuntimeError: ")
    assert found["words"].endswith("double backward; the eager call gives 1 gradient.")


def test_gradients_that_eager_has_only_in_backward_are_not_compared() -> None:
    def runs(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(torch.sin, x, use_reentrant=True) * 2

    found = checked(runs, torch.ones(3, requires_grad=True), backend="aot_eager")
    assert found["agrees"], found
    assert "not compared: gradients: autograd.grad in the eager call raises RuntimeError: When use_reentrant" in found["words"]


def test_going_backward_uses_up_no_history_of_the_programs_own_tensors() -> None:
    held = torch.nn.Linear(3, 3)(torch.ones(3)).tanh()
    found = checked(lambda x: x * held, torch.ones(3, requires_grad=True), backend="aot_eager")
    assert found["agrees"], found
    assert "not compared: gradients, which go on into the history of an earlier tensor" in found["words"]
    held.sum().backward()
    linear, mean = torch.nn.Linear(3, 3), torch.zeros(3)
    # the history of `mean` is part of the compiled graph alone
    assert checked(lambda x: (y := linear(x), mean.add_(y))[0], torch.ones(3), backend="aot_eager")["agrees"]


def test_what_makes_random_numbers_equal_comes_before_the_difference() -> None:
    assert checked(lambda x: dropout(x) + other(), torch.ones(100))["agrees"] is False, "this backend draws eager's numbers"
    found = checked(lambda x: dropout(x) + other(), torch.ones(100), backend=draws_others)
    assert found["words"].startswith("check: unknown whether compiled and eager agree: the call draws random numbers, and a")
    assert "fallback_random = True can make Inductor's the same (they differ: the value" in found["words"]


def scaled(by: float) -> Any:
    """Another number in compiled code: what a compiler does that rounds elsewhere, or a wrong one."""
    return by if torch.compiler.is_compiling() else 1.0


def autocast_linear(by: float) -> Callable[..., Any]:
    linear = torch.nn.Linear(8, 8)

    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = linear(x)
        return y.float() * scaled(by)

    return f


def test_values_are_judged_by_the_lowest_precision_on_the_way() -> None:
    found = checked(autocast_linear(1.004), torch.ones(4, 8))
    assert found["agrees"] is True
    assert set(found["judged_by"].values()) == {"bfloat16"}
    assert next(iter(found["judged_by"])) == "the value"
    words = "only within the rounding of bfloat16, which was used on the way: the value, gradient of linear.weight"
    assert words in found["words"]
    found = checked(autocast_linear(1.1), torch.ones(4, 8))
    assert found["agrees"] is False
    assert found["differences"][0].startswith("the value (values): by more than the rounding of bfloat16: Mismatched")
    half = checked(
        lambda x: (x.bfloat16().sum(), x * scaled(1.004), (x.bfloat16().sum() * scaled(1.01)).long()), torch.ones(8) * 25
    )
    assert half["differences"][0].startswith("the value[1] (values): Mismatched elements:"), "no bfloat16 on its way"
    assert half["differences"][1].startswith("the value[2]"), "a count is not rounded"


def test_gradients_are_those_of_a_sum_that_is_not_constant() -> None:
    """The sum of a softmax is 1 for any weights: its gradient is rounding, in which compiled and eager always differ."""
    layer = torch.nn.Linear(4, 3)

    with Experiment(RecordedCall(lambda x: layer(x).softmax(-1), (torch.randn(5, 4),), {})) as experiment:
        gradients = dict(experiment.run(Variant(is_eager=True)).parts["gradients"])
    assert gradients["gradient of layer.weight"].abs().max() > 1e-3
