"""Where a break stands: line, column, callers, blocks, generators, hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from observed import seen

from dynascope.compiler.builder.dynamo_texts import in_python, read_break, stack_of, undecided_in
from dynascope.compiler.capture.recording import observe
from dynascope.compiler.driver import explain
from dynascope.compiler.report import Undecided
from dynascope.compiler.report.overview import is_asked_for
from dynascope.compiler.source.lines import caret_columns, function_at


def test_a_message_after_the_stack_and_the_traceback_is_part_of_the_text() -> None:
    before = (
        "Graph break: torch.compile cannot properly resume from this graph break, which results in a skip.\n"
        "torch.compile will skip tracing the frame f (model.py line 3) and fall back to eager.\n"
        "The graph break occurred in the following user code:\n"
        '  File "model.py", line 5, in f\n    return torch.zeros(n)\n'
    )
    message = (
        "Could not guard on data-dependent expression Eq(u0, 1) (unhinted: Eq(u0, 1)).  (Size-like symbols: none)\n\n"
        "To fix the error, insert one of the following checks before this call:\n  1. torch._check(n == 1)\n"
    )
    traceback = 'Traceback (most recent call last):\n  File "convert_frame.py", line 9, in __call__\n    result = convert(\n'
    found = read_break(f"{before}\n{traceback}torch._dynamo.exc.UserError: {message}\nfrom user code:\n   File ...")
    assert found.text == f"{before}\n{message}".rstrip()
    assert undecided_in(found.text) == Undecided(expression="u0 == 1", needed="condition", checks=["torch._check(n == 1)"])
    assert in_python("Eq(u0, 1) | Eq(u0, u1)") == "Eq(u0, 1) | Eq(u0, u1)", "no relation of two operands"


def test_a_hint_names_a_setting_where_it_is() -> None:
    """torch tells to assign it to the package, where it has no effect; torch's own text stays as it is."""
    hint = "Set torch._dynamo.{}trace_autograd_ops=True"
    found = read_break("Unsupported Tensor.backward() call\n  Explanation: It is off.\n  Hint: " + hint.format(""))
    assert found.parts[0].hints == [hint.format("config.")]
    assert hint.format("") in found.text
    others = ["Use `torch._dynamo.graph_break()`.", "Set torch._dynamo.config.capture_scalar_outputs = True", "Set x=True"]
    assert [read_break(f"A reason\n  Hint: {other}").parts[0].hints for other in others] == [[other] for other in others]


@torch.compiler.disable
def opaque(x: torch.Tensor, y: Any = 0) -> torch.Tensor:
    return x + y


class Log:
    @torch.compiler.disable
    def write(self, x: torch.Tensor) -> None: ...


def test_a_disabled_function_breaks_its_caller_with_the_reason() -> None:
    @torch.compiler.disable(reason="writes a file")
    def log(x: torch.Tensor) -> torch.Tensor:
        return x

    def f(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        log(x)
        x = x * 2
        kept.write(x)
        return x * 3

    kept = Log()

    report = explain(f, backend="eager")(torch.ones(2))
    assert (report.summary.graphs, report.summary.breaks, report.summary.skipped) == (3, 2, 0)
    assert report.breaks[0].gb_ids == ["GB0098"]
    assert "writes a file" in report.breaks[0].text
    assert [is_asked_for(b) for b in report.breaks] == [True, True], "torch has a type of its own for methods"


def test_a_break_in_a_module_hook_is_told_at_the_hook() -> None:
    layer = torch.nn.Linear(2, 2)

    def hook(module: Any, inputs: Any, output: Any) -> Any:
        torch._dynamo.graph_break()
        return output + 1

    layer.register_forward_hook(hook)
    report = explain(layer, backend="eager")(torch.ones(1, 2))
    assert [(b.function, b.line) for b in report.breaks] == [("hook", hook.__code__.co_firstlineno + 1)]


def test_breaks_that_begin_in_one_column_are_told_apart_by_where_they_end() -> None:
    find = torch.compiler.disable(lambda: opaque)

    def f(x: torch.Tensor) -> torch.Tensor:
        a_long_name = find()(
            x,
            1,
        )
        return a_long_name * 2

    breaks = explain(f, backend="eager")(torch.ones(2)).breaks
    if breaks[0].column is not None:  # Python 3.10 keeps none
        assert [(b.column, (b.end_line or 0) - b.line, b.end_column) for b in breaks] == [(22, 0, 28), (22, 3, 9)]


def test_each_condition_of_an_if_has_a_break_of_its_own_at_its_place() -> None:
    def f(x: torch.Tensor, n: int) -> torch.Tensor:
        if n > 0 and (x.sum() > 5
                      or x.any()):  # fmt: skip
            x = x + 1
        return x

    def looped(x: torch.Tensor, n: int) -> torch.Tensor:  # which cannot be resumed
        for _ in range(1):
            x = f(x, n)
        return x

    for called in (f, lambda x, n: f(x, n), looped):
        torch._dynamo.reset()
        breaks = explain(called, backend="eager")(torch.ones(2), 3).breaks
        if breaks[0].column is not None:  # Python 3.10 keeps none
            assert [(b.line - breaks[0].line, b.column, b.end_column) for b in breaks] == [(0, 22, 33), (1, 25, 32)]


class Vector:
    def __init__(self, x: torch.Tensor) -> None:
        self.x = x

    def __bool__(self) -> bool:
        return bool((self.x != 0).any())


def test_a_condition_before_which_the_graph_ends_is_one_break_in_the_function_and_in_its_caller() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        vector = Vector(x + torch.arange(x.shape[0]))
        if vector:
            x = x + 2
        return x

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        assert [b.source.strip() for b in explain(lambda x: f(x) * 2, backend="eager")(torch.ones(3)).breaks] == ["if vector:"]


class Inner(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print(end="")
        return x + 1


class Outer(Inner):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x * 2) + 1


def test_a_break_in_a_function_of_its_callers_name_is_not_at_the_call() -> None:
    assert [b.source.strip() for b in explain(Outer(), backend="eager")(torch.ones(2)).breaks] == ['print(end="")']


def test_a_break_in_a_generator_is_one_for_the_function_and_its_caller() -> None:
    @torch.no_grad()
    def decode(x: torch.Tensor) -> str:
        return "".join("ab"[int(i)] for i in x)

    report = explain(lambda x: [decode(x)], backend="eager")(torch.tensor([0, 1]))
    assert [(b.function, b.outcome, len(b.hits)) for b in report.breaks] == [("<genexpr>", "skipped", 2)]


@pytest.mark.parametrize(
    ("code", "marks", "columns"),
    [
        ("    y = print(x); return y", "    ^^^^^^^^", (8, 16)),
        ("    y = print(x); return y", "    ~~~~~^^^", (8, 16)),  # from Python 3.13 on
        ("    print(x)", None, (4, None)),  # nothing is marked: the whole line
        ("    return helper(x)", None, (None, None)),  # Python 3.13 marks nothing for the call, either
        ("    y = print(x)", None, (None, None)),
        ("    y = print(", "", (None, None)),  # the marks of several lines are lost in Python 3.13
    ],
)
def test_columns_are_read_from_the_marks_of_a_traceback(
    code: str, marks: str | None, columns: tuple[int | None, int | None]
) -> None:
    caller = '  File "m.py", line 1, in g\n    g(1); f(x)\n          ^^^^\n'
    text = f'User code traceback:\n{caller}  File "m.py", line 2, in f\n{code}\n'
    entries = stack_of(text + (f"    {marks}\n" if marks is not None else ""))
    assert entries[-1].carets is not None
    assert caret_columns(code, entries[-1].carets) == columns


def test_reading_a_source_does_not_warn_of_its_escape_sequences(tmp_path: Path) -> None:
    """These tests turn warnings into errors, as `-W error` does."""
    (tmp_path / "m.py").write_text('def f():\n    return "\\d"\n')
    assert function_at(str(tmp_path / "m.py"), 2) == ("f", 1, 2)


def branching(x: torch.Tensor) -> torch.Tensor:
    loss = x.sum()
    if loss.item() > 100:
        x = x * 2
    return x + 1


def branching_on_more(x: torch.Tensor) -> torch.Tensor:
    if x.numel() > 1 and not x.sum().item() + 1 > 100:
        x = x * 2
    return x + 1


def listing(x: torch.Tensor) -> Any:
    sums = {"a": x.sum()}
    return [value.item() for value in sums.values()]  # Dynamo reports that it cannot resume in there


def test_capturing_a_number_is_not_advised_where_the_line_branches_on_it() -> None:
    advised = (listing, lambda x: x * x.sum().item(), lambda x: [value.sum().item() for value in {"a": x}.values()])
    for function in (branching, branching_on_more, *advised):
        report = seen(lambda f=function: torch.compile(f, backend="eager")(torch.ones(3)))  # type: ignore[misc]
        assert [any("capture_scalar_outputs" in h for h in b.hints) for b in report.breaks] == [function in advised]


def leaving(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 100:
        raise ValueError
    for _ in range(2):
        if (x > 100).any():
            return x
    return x + 1


def choosing(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 100:
        x = x - 1
    if x.sum() > 100:
        print("large")
    assert x.sum() < 100
    try:
        assert x.sum() < 200
    except AssertionError:
        x = x - 1
    return x + 1


def test_what_data_decides_is_known_where_no_tensor_can_be_chosen_instead() -> None:
    assert {b.decides for b in explain(leaving, backend="eager")(torch.ones(3)).breaks} == {"raise", "break"}
    found = [b.decides for b in explain(choosing, backend="eager")(torch.ones(3)).breaks]
    assert found == ["", "other", "raise", "other"]


def test_a_loop_says_which_number_it_needs() -> None:
    def loop(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for i in range((y * 1).sum().item()):
            x = x + i
        return x

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        report = explain(loop, backend="eager")(torch.ones(3), torch.tensor(4))
    assert report.breaks[0].undecided == Undecided(expression="u0", needed="integer")
    assert "Tracing needed to know the value of u0, and no torch._check" in " ".join(str(report).split())


def test_a_branch_that_is_told_otherwise_in_the_caller_is_one_break() -> None:
    def branches(x: torch.Tensor) -> torch.Tensor:
        return x if x.nonzero().numel() == 0 else x + 1

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        breaks = explain(lambda x: branches(x) * 2, backend="eager")(torch.ones(3)).breaks
    is_one = [(b.type, len(b.hits)) for b in breaks] == [("Data-dependent branching", 2)]
    assert is_one is (breaks[0].column is not None), "Python 3.10 has no columns"
    assert Undecided(expression="u0 == 0") in [b.undecided for b in breaks]


def test_a_branch_whose_callers_text_has_only_the_loop_around_the_call_is_one_break() -> None:
    def branches(x: torch.Tensor) -> torch.Tensor:
        return x if x.argmax().item() == 0 else x + 1

    def loops(x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = branches(x) * 2
        return x

    compiled = [torch.compile(f, backend="eager") for f in (branches, loops)]
    for called in (compiled, compiled[1:]):
        torch._dynamo.reset()
        with torch._dynamo.config.patch(capture_scalar_outputs=True), observe() as observed:
            for f in called:
                f(torch.ones(3))
        breaks = observed.report.breaks
        is_one = [b.type for b in breaks] == ["Data-dependent branching"]
        assert is_one is (breaks[0].column is not None), "in either order"


def test_the_break_of_a_failing_cond_is_one_at_the_users_line() -> None:
    def unlike(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x.double(), (x,))

    with observe() as recording, pytest.raises(Exception, match="same dtype"):
        torch.compile(unlike, backend="eager")(torch.ones(3))
    report = recording.report
    [broken] = report.breaks
    assert {b.file for b in (broken, report.error)} == {__file__}
    assert broken.error.startswith("RuntimeError: When merging two branches")
