"""Recompiles: their reasons, their limit, and what is none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.utils.checkpoint

from dynascope.compiler.builder.events import Event, Trace
from dynascope.compiler.builder.report_builder import build_report
from dynascope.compiler.capture.recording import observe
from dynascope.compiler.report import Report
from dynascope.widgets.features.recompiles import recompile_words


@pytest.fixture(autouse=True)
def _new_dynamo() -> None:
    torch._dynamo.reset()


def seen(call: Callable[[], Any]) -> Report:
    with observe() as recording:
        call()
    return recording.report


def test_the_recompile_limit_is_told_and_counts_no_recompile() -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = by

    def f(x: torch.Tensor, scale: Scale) -> torch.Tensor:
        return x * scale.by

    def call() -> None:
        compiled = torch.compile(f, backend="eager", dynamic=False)
        for i in range(5):
            compiled(torch.ones(2), Scale(i + 0.5))

    with torch._dynamo.config.patch(recompile_limit=3):
        report = seen(call)
    assert (report.summary.graphs, report.summary.recompiles, report.summary.skipped) == (3, 2, 1)
    assert "recompile limit" in (report.frames[-1].reason or "").lower().replace("_", " ")
    assert recompile_words(report.recompiles[0]) == ["scale.by was 0.5 when it was compiled, and is 1.5 now"]


@pytest.mark.parametrize("config", [{}, {"fail_on_recompile_limit_hit": True}])
def test_what_the_recompile_limit_refuses_is_no_recompile(config: dict[str, bool]) -> None:
    def call() -> None:
        compiled = torch.compile(lambda x: x * 2, backend="eager", dynamic=False, fullgraph=bool(not config))
        for n in range(2, 6):
            compiled(torch.ones(n))

    with torch._dynamo.config.patch(recompile_limit=2, **config), observe() as recording, contextlib.suppress(Exception):
        call()
    report = recording.report
    assert (report.summary.graphs, report.summary.recompiles, report.summary.failed) == (2, 1, 1)
    assert report.frames[-1].recompile_of is None


def test_a_recompile_that_ends_in_a_skip_is_one_with_its_reasons() -> None:
    def f(x: torch.Tensor, often: bool) -> torch.Tensor:
        if often:
            for _ in range(2):
                x = x + 1
                torch._dynamo.graph_break()
        return x * 2

    compiled = torch.compile(f, backend="eager")
    report = seen(lambda: (compiled(torch.ones(2), False), compiled(torch.ones(2), True)))
    assert [(f.status, f.recompile_of) for f in report.frames] == [("compiled", None), ("skipped", "f0")]
    assert [recompile_words(r) for r in report.recompiles] == [["often was False when it was compiled, and is not now"]]


class Counts(torch.nn.Module):
    steps = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        return x * self.steps


def test_the_compilers_hint_on_an_integer_of_a_module_is_shown() -> None:
    module = Counts()
    module.steps = 0
    counts = torch.compile(module, backend="eager")
    report = seen(lambda: (counts(torch.ones(2)), counts(torch.ones(2))))
    assert "the compiler's hint: torch._dynamo.config.allow_unspec_int_on_nn_module = True" in " ".join(str(report).split())


class CountsRows(Counts):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + self.steps


def test_the_compilers_hint_stands_below_the_integer_that_it_is_for() -> None:
    module = CountsRows()
    module.steps = 0
    counts = torch.compile(module, backend="eager", dynamic=False)
    report = seen(lambda: [counts(torch.ones(n)) for n in (2, 2, 3)])
    size, _, integer = " ".join(str(report).rpartition("↻")[2].split()).partition("self.steps was")
    assert "x had another size" in size
    assert "the compiler's hint" not in size
    assert "the compiler's hint" in integer


def test_a_version_without_a_graph_is_one_of_the_versions() -> None:
    def prints(x: torch.Tensor, first: bool) -> torch.Tensor:
        if first:
            torch._dynamo.graph_break()
        return x * 2

    compiled = torch.compile(prints, backend="eager")
    report = seen(lambda: (compiled(torch.ones(2), False), compiled(torch.ones(2), True)))
    assert [r.entries for r in report.recompiles] == [2]


def test_in_a_log_a_version_of_torchs_wrapper_is_one_of_the_versions() -> None:
    """Torch's `inner` around a module has guards and no graph, if the module breaks in its own loop."""
    code = {"co_name": "inner", "co_filename": torch._dynamo.external_utils.__file__, "co_firstlineno": 67, "guard_count": 5}
    [recompile] = build_report([
        Trace({"dynamo_start": {}}, None, compile_id="0/0"),
        Trace({"compilation_metrics": {**code, "cache_size": 0}}, None, compile_id="0/0"),
        Trace({"artifact": {"name": "recompile_reasons"}}, "0/0: L['k'] == 1", compile_id="0/1"),
        Trace({"dynamo_start": {}}, None, compile_id="0/1"),
        Trace({"compilation_metrics": {**code, "cache_size": 1}}, None, compile_id="0/1"),
    ]).recompiles  # fmt: skip
    assert recompile.entries == 2


def test_a_changed_global_and_a_new_type_are_reasons_in_words() -> None:
    space: dict[str, Any] = {"torch": torch, "factor": 2}
    exec("def f(x):\n    return x * factor\n", space)
    compiled = torch.compile(space["f"], backend="eager", dynamic=False)

    def call() -> None:
        compiled(torch.ones(2))
        space["factor"] = 3
        compiled(torch.ones(2))
        compiled(torch.ones(2, dtype=torch.float64))

    report = seen(call)
    words = [recompile_words(r) for r in report.recompiles]
    assert words[0] == ["factor was 2 when it was compiled, and is 3 now"]
    # 2.9 and 2.11 name the argument by its number
    assert {"x had another dtype: Float before, Double now", "args[0] had another dtype: Float before, Double now"} & {
        *words[1]
    }


def test_a_guard_on_a_module_of_torchs_own_names_the_module_not_torchs_wrapper() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.1))
    compiled = torch.compile(model, backend="eager")
    report = seen(lambda: (compiled(torch.ones(2)), model.eval(), compiled(torch.ones(2))))
    assert [recompile_words(r) for r in report.recompiles] == [
        ["Sequential.1.training was True when it was compiled, and is False now"]
    ]


def test_both_lengths_of_a_dict_and_of_a_list_are_in_the_words() -> None:
    def f(x: torch.Tensor, items: Any) -> torch.Tensor:
        for item in items.values() if isinstance(items, dict) else items:
            x = x + item
        return x + len(items)

    x = torch.ones(2)
    for one, two in (({"a": x}, {"a": x, "b": x}), ([x], [x, x]), ([x], [])):
        compiled = torch.compile(f, backend="eager")
        torch._dynamo.reset()
        report = seen(lambda: (compiled(x, one), compiled(x, two)))  # noqa: B023
        assert [recompile_words(r) for r in report.recompiles] == [
            [f"items had length 1 when it was compiled, and has {len(two)} now"]
        ]


def test_after_a_nested_call_a_recompile_belongs_to_the_call_in_progress() -> None:
    inner = torch.compile(lambda x: x + 1, backend="eager")

    @torch._dynamo.disable
    def between(x: torch.Tensor) -> None:
        for _ in range(3):
            inner(x)

    def top(x: torch.Tensor, n: int) -> torch.Tensor:
        between(x)
        return x * n

    compiled = torch.compile(top, backend="eager")
    report = seen(lambda: (compiled(torch.ones(2), 2), compiled(torch.ones(2), 3)))
    assert [r.call for r in report.recompiles] == [2]


def test_a_recompile_in_compiled_autograd_has_the_compile_whose_guard_failed() -> None:
    factor = 3

    def scale(grad: torch.Tensor) -> torch.Tensor:
        return grad * factor

    def call() -> None:
        nonlocal factor
        with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
            for number in (3, 4):
                factor = number
                x = torch.ones(2, requires_grad=True).sin()
                x.register_hook(scale)
                x.sum().backward()

    report = seen(call)
    (guard,) = report.recompiles[0].failed_guards
    assert guard.compile_id == next(f.compile_id for f in report.frames if f.kind == "autograd")
    assert "!" not in guard.text + str(guard.source)
    assert guard.at is not None
    assert "grad * factor" in guard.at.source


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("reset", [False, True])
def test_after_a_reset_no_version_from_before_it_is_taken(reset: bool, refused: bool) -> None:
    """Made by hand: the first compile after the reset is not recorded, and had the same id as one before."""

    def compiled(compile_id: str, function: str) -> list[Event]:
        code = {"co_name": function, "co_filename": f"{function}.py", "co_firstlineno": 1}
        guards = "| +- GuardManager: source=L['k']\n| | +- EQUALS_MATCH: L['k'] == 1  # return x * k  # first.py:2 in first"
        records = {"dynamo_start": None, "dynamo_cpp_guards_str": guards, "compilation_metrics": None}
        return [
            Trace({name: code if name.startswith("comp") else {}}, text, compile_id=compile_id)
            for name, text in records.items()
        ]

    reasons = Trace({"artifact": {"name": "recompile_reasons"}}, "0/0: L['k'] == 1", compile_id="0/1")
    refusal = Trace({"compilation_metrics": {"fail_reason": "recompile_limit reached"}}, compile_id="0/1")
    report = build_report([
        *compiled("0/0", "first"), *compiled("1/0", "second"), *(compiled("1/0", "second") if reset else []),
        reasons, *([refusal] if refused else compiled("0/1", "first")),
    ])  # fmt: skip
    places = [(report.frame(r.frame).name, r.failed_guards[0].at is not None) for r in report.recompiles]
    assert places == ([] if reset and refused else [("first", not reset)])
    cut = build_report([*compiled("0/0", "first"), reasons])  # a log that ends before the compile starts
    assert [(cut.frame(r.frame).status, r.refused_by) for r in cut.recompiles] == [("unfinished", None)]


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        ("accumulated_recompile_limit reached", 256),  # torch 2.9
        ("recompile_limit reached with fullgraph=True", 8),
        ("exceeding the accumulated_recompile_limit cache size limit (currently set to 300)", 300),
    ],
)
def test_the_limit_that_refused_a_recompile_is_named(words: str, limit: int) -> None:
    config = '{"recompile_limit": 8, "accumulated_recompile_limit": 256}'
    metrics = {"fail_reason": words, "dynamo_config": config}
    code = {"co_name": "f", "co_filename": "f.py", "co_firstlineno": 1}
    first = [{"dynamo_start": {}}, {"compilation_metrics": code}]
    [recompile] = build_report([
        *(Trace(record, None, compile_id="0/0") for record in first),
        Trace({"artifact": {"name": "recompile_reasons"}}, "0/0: L['k'] == 1", compile_id="0/1"),
        Trace({"compilation_metrics": metrics}, compile_id="0/1"),
    ]).recompiles  # fmt: skip
    assert (recompile.refused_by, recompile.limit) == (words.replace("exceeding the ", "").split()[0], limit)


class _Base(torch.nn.Module):
    number = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.number


class _First(_Base):
    number = 1


class _Second(_Base):
    number = 2


def _one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def _two(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        ([torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.sin], ["Linear", "ReLU", "sin"]),
        ([torch._dynamo.error_on_graph_break(False)(f) for f in (_one, _two)], ["_one", "_two"]),
        ([_First(), _Second()], ["_First", "_Second"]),
    ],
    ids=["torch's wrapper of modules", "decorated functions", "an inherited forward"],
)
def test_functions_that_share_code_keep_their_names(targets: list[Any], names: list[str]) -> None:
    """torch recompiles the shared code, and counts it; what is compiled is another function."""
    with observe() as recording:
        for target in targets:
            torch.compile(target, backend="eager")(torch.ones(3))
    report = recording.report
    assert [f.name for f in report.frames] == names
    assert [report.frame(r.frame).name for r in report.recompiles] == names[1:]
    assert str(report).splitlines()[0].startswith(", ".join(names))


def test_the_arguments_of_a_decorated_function_are_not_named_by_the_decorator() -> None:
    @torch.no_grad()
    def scale(x: torch.Tensor, by: float, plus: int = 0) -> torch.Tensor:
        return x * by + plus

    with observe() as recording:
        compiled = torch.compile(scale, backend="eager")
        for by, plus in ((1.0, 0), (2.0, 0), (2.0, 5)):
            compiled(torch.ones(3), by, plus=plus)
    told = " ".join(" ".join(recompile_words(r)) for r in recording.report.recompiles)
    assert "argument 2 was 1.0 when it was compiled" in told
    assert "plus was 0 when it was compiled" in told
    assert "args[" not in told
