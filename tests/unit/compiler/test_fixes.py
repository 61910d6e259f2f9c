"""Fixes of graph breaks: proved ones hold, false ones are refused, and nothing of a trial stays."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import inspect
import linecache
import math
import random
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from msgspec import structs

import dynascope
from dynascope.compiler.driver import fixing
from dynascope.compiler.fixes import patch, setting_changes
from dynascope.compiler.fixes.calls import KeptCall, KeptCalls
from dynascope.compiler.fixes.candidate import Candidate, Condition, Problem
from dynascope.compiler.fixes.plan import Plan
from dynascope.compiler.fixes.proving import tested_values
from dynascope.compiler.fixes.proving.caller_changes import numbers_as_tensors
from dynascope.compiler.fixes.proving.fake_check import WrongFake, checking_backend
from dynascope.compiler.fixes.proving.improvement import captures_more, gain, recompile_key
from dynascope.compiler.fixes.proving.observed import Observed, differences, observe_call
from dynascope.compiler.fixes.proving.side_state import SideState, state_difference
from dynascope.compiler.fixes.proving.time_limit import TookTooLong
from dynascope.compiler.fixes.proving.trial import Trials
from dynascope.compiler.fixes.proving.variations import recorded, variations
from dynascope.compiler.fixes.result import annotate_fixes
from dynascope.compiler.fixes.rewrites import branches, log_values, raise_checks, value_loops
from dynascope.compiler.fixes.search import Found, OutOfTime, Search
from dynascope.compiler.fixes.text_edits import edits_between
from dynascope.compiler.recording.recording import observe
from dynascope.compiler.replay.last_call import WatchedCall
from dynascope.compiler.replay.replay import RecordedCall
from dynascope.compiler.report import Break, FixEdit, Report
from dynascope.compiler.settings import Settings
from dynascope.compiler.source import functions

MakeModule = Callable[[str], ModuleType]


@pytest.fixture
def module(tmp_path: Path) -> Iterator[MakeModule]:
    """module(text): the text as a file, imported."""
    made: list[str] = []

    def make(text: str) -> ModuleType:
        name = f"fix_program_{len(made)}_{random.getrandbits(40)}"
        path = tmp_path / f"{name}.py"
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[name] = loaded
        made.append(name)
        spec.loader.exec_module(loaded)
        return loaded

    yield make
    for name in made:
        del sys.modules[name]


def fix(function: Any, *args: Any, fix_seconds: float = 600, **settings: Any) -> Report:
    return dynascope.explain(function, backend="eager", fix=True, fix_seconds=fix_seconds, **settings)(*args)


def replacing(before: str, after: str, **fields: Any) -> Callable[[Problem], list[Candidate]]:
    """A source of candidates that replaces one text of the file, wherever the break is; `tests` have texts of conditions."""
    fields["tests"] = tuple(Condition(text, text) for text in fields.get("tests", ()))

    def candidates(problem: Problem) -> list[Candidate]:
        lines = problem.source.splitlines(keepends=True)
        new = problem.source.replace(before, after).splitlines(keepends=True)
        if lines == new:
            return []
        edit = FixEdit(problem.file, 1, len(lines), "".join(lines), "".join(new))
        return [Candidate("rewrite", "planted", (edit,), **fields)]

    return candidates


def only(monkeypatch: pytest.MonkeyPatch, *sources: Callable[[Problem], list[Candidate]]) -> None:
    monkeypatch.setattr(fixing, "CANDIDATE_SOURCES", sources)


PRINTS = """
    import torch

    def f(x):
        y = x.sin()
        print("half way", y.sum())
        return y + 1
    """


def test_a_print_is_moved_behind_the_graph(module: MakeModule) -> None:
    f = module(PRINTS).f
    report = fix(f, torch.ones(3))
    assert report.fixes is not None
    assert report.fix_set is not None
    [chosen] = [x for x in report.fixes if x.chosen]
    assert (chosen.kind, chosen.verdict, chosen.break_) == ("setting", "proved", report.breaks[0].id)
    assert chosen.settings == {"torch._dynamo.config.reorderable_logging_functions": ["builtins.print"]}
    assert chosen.assumption.endswith("not between its operations; if an operation raises an exception, they are not printed")
    assert (chosen.breaks_before, chosen.breaks_after, chosen.graphs_before, chosen.graphs_after) == (1, 0, 2, 1)
    assert (report.fix_set.breaks_before, report.fix_set.breaks_after) == (1, 0)
    assert "+torch._dynamo.config.reorderable_logging_functions.add(print)" in report.patch()
    with report.fixed() as g:
        assert g is f
        assert torch.equal(torch.compile(g, fullgraph=True, backend="eager")(torch.zeros(2)), torch.ones(2))
    assert torch._dynamo.config.reorderable_logging_functions == set()


def test_one_fix_uncovers_the_next_break(module: MakeModule) -> None:
    f = module("""
        import torch

        def f(x):
            for i in range(2):
                print(i)
                x = x * x.sum().item()
            return x
        """).f
    report = fix(f, torch.ones(3))
    assert report.fix_set is not None
    assert report.fix_set.breaks_after == 0
    assert report.fix_set.settings["torch._dynamo.config.capture_scalar_outputs"] is True


def test_a_frame_function_is_wrapped(module: MakeModule) -> None:
    f = module("""
        import inspect

        import torch


        def caller(x):  # who called
            return x * len(inspect.stack()[0].function)


        def f(x):
            return caller(x.sin()) + 1
        """).f
    caller = f.__globals__["caller"]
    report = fix(f, torch.ones(3))
    assert report.fix_set is not None
    assert report.fix_set.breaks_after == 0
    [chosen] = [x for x in report.fixes or () if x.chosen]
    assert chosen.kind == "wrap"
    assert "+@torch._dynamo.nonstrict_trace" in report.patch()
    assert f.__globals__["caller"] is caller
    with report.fixed() as g:
        assert f.__globals__["caller"] is not caller
        assert torch.equal(torch.compile(g, fullgraph=True, backend="eager")(torch.zeros(3)), torch.ones(3))
    assert f.__globals__["caller"] is caller


# -- false fixes ---------------------------------------------------------------------------------------------------------

BRANCH = """
    import torch

    def f(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x * 3
        return y + 1
    """
IF = "    if x.sum() > 0:\n        y = x * 2\n    else:\n        y = x * 3\n"


@pytest.mark.parametrize(
    ("after", "tests", "why"),
    [
        ("    y = x * 2\n", (), "values differ"),  # holds only on the recorded side
        ("    y = x * 2\n", ("x.sum() > 0",), "values differ"),
        # the values of eager, the gradient of one side
        ("    y = x * 2 + torch.where(x.sum() > 0, x * 0, x).detach()\n", ("x.sum() > 0",), "gradients differ"),
        ("    y = torch.where(x.sum() > 0, x * 2, x * 3) + 1e-3\n", (), "values differ"),
        ("    y = torch.where(x.sum() > 0, x * 2, x * 3)\n    raise KeyError\n", (), "Observed exception"),
        ("    y = torch.where(x.sum() > 0, x * 2, x * 3)[: 3]\n", (), "size 4"),  # one size is assumed
        ("    y = torch.where(x.sum() > 0, x.add_(1) * 2, x * 3)\n", (), "differ"),
        ("    y = torch.where(x.sum() > 0, x * 2, x * 3) + 0 * torch.rand(3).sum()\n", (), "random numbers"),
        ("    y = torch.where(x.sum() > 0, x * 2, x * 3\n", (), "not valid Python"),
        ("    y = undefined_name(x)\n", (), "graph break"),
    ],
)  # fmt: skip
def test_a_false_fix_is_refused(
    module: MakeModule, monkeypatch: pytest.MonkeyPatch, after: str, tests: tuple[str, ...], why: str
) -> None:
    only(monkeypatch, replacing(IF, after, tests=tests))
    report = fix(module(BRANCH).f, torch.ones(3))
    assert report.fixes is not None
    assert [(x.verdict, x.chosen) for x in report.fixes] == [("refused", False)]
    assert why in report.fixes[0].reason, report.fixes[0].reason
    assert report.patch() == ""
    with pytest.raises(ValueError, match="no proved fixes"), report.fixed():
        pass


def test_a_true_fix_of_the_same_branch_is_proved(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, replacing(IF, "    y = torch.where(x.sum() > 0, x * 2, x * 3)\n", tests=("x.sum() > 0",)))
    report = fix(module(BRANCH).f, torch.ones(3))
    assert [(x.verdict, x.chosen) for x in report.fixes or ()] == [("proved", True)]


def test_a_gradient_through_a_side_that_is_not_taken(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of `where` is right, and its gradient is NaN where the other side has none."""
    f = module("""
        import torch

        def f(x):
            if x.min() > 0:
                y = x.log()
            else:
                y = x * 2
            return y
        """).f
    before = "    if x.min() > 0:\n        y = x.log()\n    else:\n        y = x * 2\n"
    only(monkeypatch, replacing(before, "    y = torch.where(x.min() > 0, x.log(), x * 2)\n", tests=("x.min() > 0",)))
    report = fix(f, torch.ones(3, requires_grad=True))
    assert report.fixes is not None
    assert report.fixes[0].verdict == "refused"
    assert "gradients differ" in report.fixes[0].reason


@pytest.mark.parametrize("after", ["    pass\n", "    print('half way', x.sum())\n", "    print('half way')\n"])
def test_a_print_is_not_dropped_or_changed(module: MakeModule, monkeypatch: pytest.MonkeyPatch, after: str) -> None:
    setting = Candidate("setting", "", settings={"torch._dynamo.config.reorderable_logging_functions": ["builtins.print"]})

    def both(problem: Problem) -> list[Candidate]:
        [rewrite] = replacing('    print("half way", y.sum())\n', after)(problem)
        return [Candidate("rewrite", "planted", rewrite.edits, setting.settings)]

    only(monkeypatch, both)
    report = fix(module(PRINTS).f, torch.ones(3))
    assert report.fixes is not None
    assert report.fixes[0].verdict == "refused"
    assert "prints" in report.fixes[0].reason


def test_a_print_that_runs_only_while_tracing(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    """`nonstrict_trace` prints on each call with the backend "eager", and only once with others."""
    f = module("""
        import torch

        def say(x):
            print("said")
            return x + 1

        def f(x):
            return say(x.sin())
        """).f
    only(monkeypatch, replacing("def say", "@torch._dynamo.nonstrict_trace\ndef say"))
    report = fix(f, torch.ones(3))
    assert report.fixes is not None
    assert report.fixes[0].verdict == "refused"
    assert "prints" in report.fixes[0].reason


OPERATOR = """

@torch.library.custom_op("dynascope_test::scaled", mutates_args=())
def scaled(x: torch.Tensor) -> torch.Tensor:
    return x.repeat(2) * 2

@scaled.register_fake
def _(x):
    return {fake}

def _scaled_backward(ctx, grad):
    return {backward}

scaled.register_autograd(_scaled_backward)

def f(x):
    y = scaled(x)
"""


@pytest.mark.parametrize(
    ("fake", "backward", "why"),
    [
        ("x.new_empty(2 * x.shape[0])", "2 * (grad[: len(grad) // 2] + grad[len(grad) // 2 :])", None),
        ("x.new_empty(6)", "2 * (grad[: len(grad) // 2] + grad[len(grad) // 2 :])", "size"),  # of the recorded size only
        ("torch.empty_like(x)", "2 * (grad[: len(grad) // 2] + grad[len(grad) // 2 :])", "fake"),
        ("x.new_empty(2 * x.shape[0])", "3 * (grad[: len(grad) // 2] + grad[len(grad) // 2 :])", "gradients differ"),
        ("x.new_empty(2 * x.shape[0], dtype=torch.float64)", "grad[:3]", "fake"),
    ],
)
def test_the_shape_and_the_gradient_of_a_custom_operator(
    module: MakeModule, monkeypatch: pytest.MonkeyPatch, fake: str, backward: str, why: str | None
) -> None:
    f = module("""
        import torch

        def f(x):
            y = x.repeat(2) * 2
            torch._dynamo.graph_break()
            return y + 1
        """).f
    operator = OPERATOR.format(fake=fake, backward=backward)
    only(monkeypatch, replacing("def f(x):\n    y = x.repeat(2) * 2\n    torch._dynamo.graph_break()\n", operator))
    report = fix(f, torch.ones(3))
    assert report.fixes is not None
    if why is None:
        assert report.fixes[0].verdict == "proved", report.fixes[0].reason
    else:
        assert report.fixes[0].verdict == "refused"
        assert why in report.fixes[0].reason
    assert not hasattr(torch.ops.dynascope_test, "scaled")


# -- nothing stays -------------------------------------------------------------------------------------------------------


def test_nothing_of_a_trial_stays(module: MakeModule, tmp_path: Path) -> None:
    made = module("""
        import torch

        calls = []
        scale = torch.ones(3)

        def helper(x):
            print("helping")
            return x * scale

        def f(x, log=[]):
            calls.append(1)
            log.append(2)
            y = helper(x)
            if y.sum() > 0:
                y = y + torch.rand(3)
            return y + y.sum().item()
        """)
    f, helper = made.f, made.helper
    compiled = torch.compile(f, backend="eager")
    compiled(torch.ones(3))
    known = {id(code) for code in _known()}
    code, namespace = (f.__code__, helper.__code__), dict(vars(made))
    x = torch.ones(3)
    version = x._version
    plain = dynascope.explain(f, backend="eager")(x)
    entries = torch._dynamo.eval_frame._debug_get_cache_entry_list(f.__code__)
    state, drawn = torch.get_rng_state(), random.getstate()
    files = sorted(tmp_path.iterdir())
    lines = {name: linecache.cache.get(name) for name in [made.__file__]}
    calls, log = list(made.calls), list(f.__defaults__[0])
    alive = _alive(made)
    report = fix(f, x)
    torch.rand(3)
    assert report.fixes
    assert (f.__code__, helper.__code__) == code
    assert f.__code__ is code[0]
    new = {k: v for k, v in vars(made).items() if not k.startswith("__")}
    assert new == {k: v for k, v in namespace.items() if not k.startswith("__")}
    assert made.helper is helper
    assert len(made.calls) == len(calls) + 1  # the call itself
    assert len(f.__defaults__[0]) == len(log) + 1
    assert x._version == version
    assert [e.code for e in torch._dynamo.eval_frame._debug_get_cache_entry_list(f.__code__)] == [e.code for e in entries]
    assert {id(c) for c in _known()} >= known
    assert random.getstate() == drawn
    assert not torch.equal(torch.get_rng_state(), state)
    assert sorted(tmp_path.iterdir()) == files
    assert {name: linecache.cache.get(name) for name in lines} == lines
    assert len(report.breaks) == len(plain.breaks)
    assert _alive(made) == alive


def _alive(made: ModuleType) -> list[str]:
    """Names of the functions of a module, with those that the compiler has made of them."""
    gc.collect()
    functions = [g for g in gc.get_objects() if type(g) is FunctionType and g.__code__.co_filename == made.__file__]
    return sorted(g.__name__ for g in functions)


def _known() -> list[Any]:
    from dynascope.compiler.torch_private import caches

    return caches.known_codes()


@pytest.mark.parametrize("number", [1, 2, 3, 5, 8, 13])
def test_an_interrupt_at_any_moment_leaves_nothing(module: MakeModule, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    made = module(BRANCH)
    only(monkeypatch, replacing(IF, "    y = helper_of_fix(x)\n\n\ndef helper_of_fix(x):\n    return x * 2\n\n\ndef g(y):\n"),
         replacing(IF, "    y = torch.where(x.sum() > 0, x * 2, x * 3)\n", tests=("x.sum() > 0",)))  # fmt: skip
    code, names = made.f.__code__, set(vars(made))
    from dynascope.compiler.fixes.proving import observed, trial

    count = 0

    def interrupting(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count == number:
            raise KeyboardInterrupt
        return observed.observe_call(*args, **kwargs)

    monkeypatch.setattr(trial, "observe_call", interrupting)
    report = fix(made.f, torch.ones(3))
    assert report.fix_set is not None
    assert not report.fix_set.is_complete
    assert any("interrupted" in note for note in report.fix_set.notes)
    assert not any(x.chosen for x in report.fixes or ())
    assert made.f.__code__ is code
    assert {n for n in vars(made) if not n.startswith("__")} == {n for n in names if not n.startswith("__")}
    assert torch._dynamo.config.suppress_errors is False


def test_a_search_looks_at_all_objects_once(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer than a trial, and each trial needs the functions of a file, and those that Dynamo knows."""
    made = module(BRANCH)
    torch.compile(made.f, backend="eager")(torch.ones(3))
    looks: list[int] = []
    counting = SimpleNamespace(get_objects=lambda: looks.append(1) or gc.get_objects(), get_freeze_count=gc.get_freeze_count)
    monkeypatch.setattr(functions, "gc", counting)
    only(monkeypatch, replacing(IF, "    y = torch.where(x.sum() > 0, x * 2, x * 3)\n", tests=("x.sum() > 0",)))
    for _ in range(2):  # the first one makes torch import modules, after each of which there is another look
        looks.clear()
        report = fix(made.f, torch.ones(3))
    assert [x.verdict for x in report.fixes or ()] == ["proved"]
    assert len(looks) <= 3  # one of the run itself


def test_a_number_that_a_call_turns_into_a_tensor_is_restored(module: MakeModule) -> None:
    made = module("""
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = 0

    def forward(self, x):
        self.seen = self.seen + x
        if x.sum() > 0:
            y = x * 2
        else:
            y = x * 3
        return y + self.seen
""")
    net = made.Net()
    report = fix(net, torch.ones(3))
    assert [x.verdict for x in report.fixes or () if x.chosen] == ["proved"]
    assert torch.equal(net.seen, torch.ones(3))


def test_a_search_that_fails_keeps_the_report(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any, **settings: Any) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("dynascope.compiler.driver.fixing.find_fixes", fails)
    report = fix(module(BRANCH).f, torch.ones(3))
    assert report.summary.breaks == 1
    assert "the calls were not tried again: RuntimeError: a fault of ours" in report.notes
    assert dynascope.last() is report


def test_a_form_feed_does_not_end_a_line(module: MakeModule) -> None:
    f = module("""
        import torch

        NAME = "a\fb"

        def f(x):
            if x.sum() > 0:
                return x * 2
            return x * 3
        """).f
    report = fix(f, torch.ones(3))
    assert report.fix_set is not None
    assert report.fix_set.breaks_after == 0
    assert ' NAME = "a\fb"\n' in report.patch()


def test_numbers_are_the_same_after_their_time_as_tensors() -> None:
    target = SimpleNamespace(rate=0.1, steps=3)
    with numbers_as_tensors(target, ("self.rate", "self.steps")):
        assert isinstance(target.rate, torch.Tensor)
        target.steps += 1
    assert (target.rate, target.steps) == (0.1, 4)


def test_a_global_with_the_name_of_an_argument_stays_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "steps", 3)
    with numbers_as_tensors(lambda steps: steps, ["steps"]):
        assert globals()["steps"] == 3
        assert type(globals()["steps"]) is int
    with numbers_as_tensors(lambda: steps, ["steps"]):  # type: ignore[name-defined] # noqa: F821
        assert isinstance(globals()["steps"], torch.Tensor)


def test_a_result_that_was_not_confirmed_in_time_is_not_proved(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    def confirm(search: Any) -> None:
        raise OutOfTime

    monkeypatch.setattr(Search, "_confirm", confirm)
    report = fix(module(PRINTS).f, torch.ones(3))
    assert report.fix_set is not None
    assert not report.fix_set.is_complete
    reasons = [x.reason for x in report.fixes or () if x.verdict == "untried"]
    assert "not proved: the time limit was reached" in reasons
    assert "not proved: " not in reasons
    assert report.patch() == ""


def test_the_time_limit(module: MakeModule) -> None:
    report = fix(module(PRINTS).f, torch.ones(3), fix_seconds=0)
    assert report.fix_set is not None
    assert not report.fix_set.is_complete
    assert {x.verdict for x in report.fixes or ()} <= {"untried", "refused"}
    assert report.patch() == ""


# -- data, patch ---------------------------------------------------------------------------------------------------------


def test_saved_reports_keep_the_fixes(module: MakeModule, tmp_path: Path) -> None:
    report = fix(module(PRINTS).f, torch.ones(3))
    report.save(tmp_path / "report.json")
    loaded = dynascope.load(tmp_path / "report.json")
    assert loaded.fixes == report.fixes
    assert loaded.fix_set == report.fix_set
    assert loaded.patch() == report.patch()
    with pytest.raises(ValueError, match="read from a file"), loaded.fixed():
        pass


def test_a_report_keeps_nothing_alive(module: MakeModule) -> None:
    import weakref

    made = module(PRINTS)
    report = fix(made.f, torch.ones(3))
    alive = weakref.ref(made.f)
    del made.f
    torch._dynamo.reset()
    gc.collect()
    assert alive() is None
    with pytest.raises(ValueError, match="no longer exists"), report.fixed():
        pass


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_git_applies_the_patch(module: MakeModule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ending: str) -> None:
    text = textwrap.dedent("""
        import torch

        NAME = "a\fb"


        def f(x):  # a comment
            if x.sum() > 0:
                y = x * 2
            else:
                y = x * 3
            print( "done" )
            return y + 1   # odd spaces


        if __name__ == "__main__":
            torch.compile(f, backend="eager")(torch.ones(3))""").lstrip("\n")
    made = module(text)
    path = Path(str(made.__file__))
    path.write_bytes(text.replace("\n", ending).encode())
    linecache.checkcache(str(path))
    monkeypatch.setattr(
        fixing,
        "CANDIDATE_SOURCES",
        (*fixing.CANDIDATE_SOURCES, replacing(IF, "    y = torch.where(x.sum() > 0, x * 2, x * 3)\n", tests=("x.sum() > 0",))),
    )
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    report = fix(made.f, torch.ones(3))
    assert report.fix_set is not None
    assert report.fix_set.breaks_after == 0
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=report.patch().encode(), check=True)
    after = path.read_bytes().decode()
    for line in ("def f(x):  # a comment", '    print( "done" )', "    return y + 1   # odd spaces"):
        assert line + ending in after
    assert "    y = torch.where(x.sum() > 0, x * 2, x * 3)" + ending in after
    assert not after.endswith("\n")
    assert after.count("\n") == after.count(ending)
    recording = dynascope.observe()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    try:
        with recording:
            exec(compile(after, str(path), "exec"), namespace)
    finally:
        torch._dynamo.config.reorderable_logging_functions.clear()
    recording.report.expect("breaks=0,graphs=1")


@pytest.mark.parametrize(
    ("raw", "after"),
    [
        ("a = 1\nb = 1\r\nc = 1\n", "a = 2\nb = 1\r\nc = 1\nd = 1\n\n\n"),  # most lines end with \n
        ("a = 1\r\nb = 1\r\nc = 1", "a = 2\r\nb = 1\r\nc = 1\r\nd = 1\r\n\r\n"),
        ("\ufeffa = 1\nb = 1\nc = 1\n", "\ufeffa = 2\nb = 1\nc = 1\nd = 1\n\n\n"),
    ],
)
def test_line_ends_and_a_byte_order_mark_stay(tmp_path: Path, raw: str, after: str) -> None:
    path = tmp_path / "edited.py"
    path.write_bytes(raw.encode())
    file, text = str(path), Plan().text(str(path))
    assert text == "a = 1\nb = 1\nc = 1\n"
    new = text.replace("a = 1", "a = 2") + "d = 1\n\n\n"
    assert patch.with_file_line_ends(file, text) == raw
    assert patch.with_file_line_ends(file, new, like=text) == after
    patch.apply(edits_between(file, text, new))
    assert path.read_bytes().decode() == after


def test_methods_closures_and_modules(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    made = module("""
        import torch

        def outer(scale):
            def inner(x):
                if x.sum() > 0:
                    y = x * scale
                else:
                    y = x * 3
                return y
            return inner

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(3, 3)

            def forward(self, x):
                x = self.linear(x)
                if x.sum() > 0:
                    y = x * 2
                else:
                    y = x * 3
                return y
        """)

    def where(problem: Problem) -> list[Candidate]:
        lines = problem.source.splitlines(keepends=True)
        number = problem.line - 1
        indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
        one, other = (lines[number + k].partition("=")[2].strip() for k in (1, 3))
        after = f"{indent}y = torch.where(x.sum() > 0, {one}, {other})\n"
        edit = FixEdit(problem.file, number + 1, number + 4, "".join(lines[number : number + 4]), after)
        return [Candidate("rewrite", "where", (edit,), tests=(Condition("x.sum() > 0", "x.sum() > 0"),))]

    only(monkeypatch, where)
    inner, net = made.outer(torch.tensor(2.0)), made.Net()
    for target in (inner, net, net.forward):
        report = fix(target, torch.ones(2, 3))
        assert report.fix_set is not None
        assert report.fix_set.breaks_after == 0, [x.reason for x in report.fixes or ()]
        with report.fixed() as g:
            torch.compile(g, backend="eager", fullgraph=True)(torch.ones(2, 3))


def test_a_numpy_function_becomes_an_operator(module: MakeModule) -> None:
    made = module("""
        import numpy as np
        import torch


        def smooth(x, k=2):
            y = np.unwrap(x.numpy()) * k
            return torch.tensor(y.sum())


        def f(x):
            return smooth(x.sin()) + 1
        """)
    report = fix(made.f, torch.arange(4.0))
    assert report.fix_set is not None
    assert report.fix_set.breaks_after == 0, [(x.title, x.reason) for x in report.fixes or ()]
    wrong, right = [x for x in report.fixes or () if x.verdict != "untried"]
    assert (wrong.verdict, right.verdict) == ("refused", "proved")
    assert "returned 0 dimensions, but its fake implementation says 1" in wrong.reason
    assert 'schema="(Tensor x, int k=2) -> Tensor"' in report.patch()
    assert f"dynascope::{made.__name__}_smooth" in report.patch()
    assert not hasattr(torch.ops.dynascope, f"{made.__name__}_smooth")
    x = torch.rand(7)
    expected = made.f(x)
    with report.fixed() as g:
        assert torch.allclose(torch.compile(g, backend="aot_eager", fullgraph=True)(x), expected)


@pytest.mark.parametrize(
    ("name", "body", "why"),
    [
        ("strided", lambda x: (x + 1).t().contiguous().t(), r"returned strides \(1, 2\)"),
        ("changing", lambda x: x.numpy().fill(0.0) or x + 1, "changes an argument in place"),
    ],
)
def test_strides_and_arguments_of_an_operator_are_checked(name: str, body: Callable[..., Any], why: str) -> None:
    operator = torch.library.custom_op(f"dynascope::{name}", body, mutates_args=(), schema="(Tensor x) -> Tensor")
    operator.register_fake(lambda x: torch.empty_like(x))
    try:
        with pytest.raises(WrongFake, match=why):
            torch.compile(lambda x: operator(x) + 1, backend=checking_backend)(torch.ones(2, 3))
    finally:
        operator._lib._destroy()


def test_keyword_arguments_and_the_number_of_results_of_an_operator_are_checked() -> None:
    library = torch.library.Library("dynascope", "FRAGMENT")
    library.define("keyword(*, Tensor x) -> Tensor")
    library.define("many(Tensor x) -> Tensor[]")
    library.impl("keyword", lambda *, x: x.numpy().fill(0.0) or x + 1, "CPU")
    library.impl("many", lambda x: [x + 1, x + 2, x + 3], "CPU")
    torch.library.register_fake("dynascope::keyword", lambda *, x: torch.empty_like(x), lib=library)
    torch.library.register_fake("dynascope::many", lambda x: [torch.empty_like(x), torch.empty_like(x)], lib=library)
    keyword, many = torch.ops.dynascope.keyword, torch.ops.dynascope.many
    try:
        with pytest.raises(WrongFake, match="changes an argument in place"):
            torch.compile(lambda x: keyword(x=x) + 1, backend=checking_backend)(torch.ones(2))
        with pytest.raises(WrongFake, match="returned 3 values, but its fake implementation says 2"):
            torch.compile(lambda x: many(x)[0] + 1, backend=checking_backend)(torch.ones(2))
    finally:
        library._destroy()


def test_state_outside_of_the_arguments(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dictionary, a global, a list of an object and a variable of a closure are compared, too."""
    made = module("""
        import torch

        stats, count = {}, 0

        class Log:
            def __init__(self):
                self.seen = []

        log = Log()

        def outer():
            last = None

            def f(x):
                nonlocal last
                global count
                if x.sum() > 0:
                    y = x * 2
                else:
                    y = x * 3
                stats["n"] = x.shape[0]  # A
                count += 1  # B
                log.seen.append(3)  # C
                last = (last or 0) + 1  # D
                return y

            return f

        f = outer()
        """)
    good = "        y = torch.where(x.sum() > 0, x * 2, x * 3)\n"
    for mark in ("A", "B", "C", "D", ""):

        def source(problem: Problem, mark: str = mark) -> list[Candidate]:
            lines = problem.source.splitlines(keepends=True)
            start = next(i for i, line in enumerate(lines) if "if x.sum()" in line)
            kept = [line for line in lines[start + 4 :] if not (mark and line.endswith(f"# {mark}\n"))]
            if mark == "D":
                kept.insert(0, "        last\n")
            text = [*lines[:start], good, *kept]
            edit = FixEdit(problem.file, 1, len(lines), "".join(lines), "".join(text))
            return [Candidate("rewrite", "planted", (edit,), tests=(Condition("x.sum() > 0", "x.sum() > 0"),))]

        only(monkeypatch, source)
        report = fix(made.f, torch.ones(3))
        [tried] = report.fixes or ()
        assert tried.verdict == ("refused" if mark else "proved"), (mark, tried.reason)
        assert "valid Python" not in tried.reason


@pytest.mark.parametrize("base", ["torch.nn.Module", "object"])
def test_a_tensor_that_an_object_keeps(module: MakeModule, monkeypatch: pytest.MonkeyPatch, base: str) -> None:
    made = module(f"""
        import torch

        class Model({base}):
            def __init__(self):
                super().__init__()
                self.last = None

            def __call__(self, x):
                if x.sum() > 0:
                    y = x * 2
                else:
                    y = x * 3
                self.last = y.detach()
                return y

        model = Model()

        def f(x):
            return model(x)
        """)
    start = Path(str(made.__file__)).read_text()
    branch = start[start.index("        if x.sum()") : start.index("        self.last = y")]
    good = "        y = torch.where(x.sum() > 0, x * 2, x * 3)\n"
    for text, verdict in ((good, "proved"), (good + "        return y\n", "refused")):
        only(monkeypatch, replacing(branch, text, tests=("x.sum() > 0",)))
        report = fix(made.f, torch.ones(3))
        assert [(x.verdict, x.reason) for x in report.fixes or () if x.verdict != verdict] == []
        if verdict == "refused":
            assert "last" in (report.fixes or ())[0].reason


def test_a_module_among_the_arguments_is_compared(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    made = module("""
        import torch

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear, self.calls, self.last = torch.nn.Linear(3, 3, bias=False), 0, None

        def f(model, x):
            if x.sum() > 0:
                y = x * 2
            else:
                y = x * 3
            model.calls += 1  # A
            model.last = y.detach()  # B
            return model.linear(y)  # C
        """)
    text = Path(str(made.__file__)).read_text()
    branch = text[text.index("    if x.sum()") : text.index("    model.calls")]
    good = "    y = torch.where(x.sum() > 0, x * 2, x * 3)\n"
    lost = {
        "": "", "A": "    model.calls += 1  # A\n", "B": "    model.last = y.detach()  # B\n",
        "C": "    return model.linear(y)  # C",
    }  # fmt: skip
    for mark, line in lost.items():
        instead = (
            "    return torch.nn.functional.linear(y, model.linear.weight.detach(), model.linear.bias)" if mark == "C" else ""
        )
        rest = text[text.index("    model.calls") :]
        whole = branch + rest
        only(monkeypatch, replacing(whole, good + (rest.replace(line, instead) if line else rest), tests=("x.sum() > 0",)))
        report = fix(made.f, made.Model(), torch.ones(3))
        [tried] = report.fixes or ()
        assert tried.verdict == ("refused" if mark else "proved"), (mark, tried.reason)
        assert "valid Python" not in tried.reason


def test_what_an_added_statement_raises_refuses_the_change(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    f = module(PRINTS).f
    only(monkeypatch, replacing("import torch\n", "import torch\nimport no_such_package\n"))
    report = fix(f, torch.ones(3))
    assert ["No module named" in x.reason for x in report.fixes or () if x.title == "planted"] == [True]


def test_conditions_in_two_files_are_forced_by_themselves(module: MakeModule) -> None:
    other = module("""
        import torch

        def g(x):
            if x.mean() > 0:
                x = x * 5
            return x
        """)
    made = module("""
        import torch

        def f(x):
            if x.sum() > 0:
                x = x * 2
            return g(x)
        """)
    made.g = other.g
    report = fix(made.f, torch.ones(3))
    chosen = [x for x in report.fixes or () if x.chosen]
    assert len(chosen) == 2
    assert "with a condition forced" in chosen[0].reason


@pytest.mark.parametrize(
    "body",
    [
        "if bool(x.sum().item() > 3):\n    return x * 2\nreturn x + 1",
        "if bool(x.sum() > 3 and x.max() < 9):\n    return x * 2\nreturn x + 1",
        "some = (x > 1).any()\nif some.item():\n    y = x * 2\nelse:\n    y = x + 1\nreturn y, some",
        "y = x * 1\nif x.sum().item() > 0:\n    y = x * 2\nz = y.cos()\nif x.sum().item() > 0:\n    z = z * 3\nreturn y + z",
    ],
)
def test_conditions_of_numbers_are_forced_in_both_programs(module: MakeModule, body: str) -> None:
    report = fix(module(f"import torch\n\ndef f(x):\n{textwrap.indent(body, '    ')}\n").f, torch.ones(3))
    assert report.fix_set is not None
    assert report.fix_set.breaks_after == 0, [(x.title, x.verdict, x.reason) for x in report.fixes or ()]
    [chosen, *_] = [x for x in report.fixes or () if x.chosen]
    assert "condition forced" in chosen.reason


WRONG_SIDE = """
    import torch

    class Model(torch.nn.Module):
        def forward(self, x):
            k = 0
            big = (x == 7.25).any()
            while {loop}:
                x = x + 1
                k = k + 1
            if big:
                y = torch.zeros_like(x, dtype=torch.int64)
            else:
                y = x * 2
            return y

        def wait(self, done):
            while not done:
                done = True
    """


@pytest.mark.parametrize("loop", ["k < 2", "k < big.dim() + 2"])
def test_conditions_are_forced_in_methods_and_beside_loops(
    module: MakeModule, monkeypatch: pytest.MonkeyPatch, loop: str
) -> None:
    """`torch.where` gives another dtype on the side that no input reaches."""
    only(monkeypatch, branches.candidates)
    tried = [x for x in fix(module(WRONG_SIDE.format(loop=loop)).Model(), torch.ones(3)).fixes or () if "where" in x.title]
    assert [x.verdict for x in tried] == ["refused"], tried
    assert "where `big` is True" in tried[0].reason


def test_no_part_of_the_condition_of_a_loop_is_forced(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    f = module("""
        import torch

        def f(x):
            n = torch.zeros((), dtype=torch.int64)
            while x.sum().item() < 100 and n.item() < 10:
                x = x * 2
                n = n + 1
            return x
        """).f
    only(monkeypatch, value_loops.candidates)
    [tried, *_] = fix(f, torch.ones(3, dtype=torch.int64), fix_seconds=120).fixes or ()
    assert tried.verdict == "proved", tried.reason


def test_a_wrong_gradient_is_refused_where_gradients_may_be_asked_for(module: MakeModule) -> None:
    """That of `while_loop` is not that of eager; without gradients the loop is the same."""
    f = module("""
        import torch

        def f(x):
            while x.abs().sum() > 1:
                x = x / 2
            return x
        """).f
    report = fix(f, torch.arange(4.0))
    tried = [x for x in report.fixes or () if "while_loop" in x.title]
    assert [x.verdict for x in tried] == ["refused"], [x.reason for x in tried]
    assert "gradients" in tried[0].reason
    with torch.no_grad():
        report = fix(f, torch.arange(4.0))
    assert [x.title for x in report.fixes or () if x.chosen] == [tried[0].title]


def test_a_fix_with_which_gradients_are_an_error_says_so(module: MakeModule) -> None:
    f = module("""
        import numpy as np
        import torch

        def unwrapped(x):
            return torch.from_numpy(np.unwrap(x.detach().numpy()))

        def f(x):
            return unwrapped(x.sin()) + 1
        """).f
    report = fix(f, torch.arange(4.0))
    [chosen] = [x for x in report.fixes or () if x.chosen]
    assert "No gradients are asked for, as in the recorded calls (" in chosen.assumption
    assert "raises" in chosen.assumption


def test_a_second_try_without_gradients_says_which_change_they_fail_with(module: MakeModule) -> None:
    """Its own backward raises, which AOTAutograd sees only where the whole program is one graph."""
    f = module("""
        import torch

        def f(x):
            y = x + 1
            z = x * 2
            for i in range(2):
                z = z * float(x.max())
                m = y > 0.5
                if m.any():
                    y = y.clone()
                    y[m] = y[m] * 2
            for i in range(2):
                if torch.equal(x, y.abs()):
                    y *= x
                z = x
                y *= y
            return y, z * 1
        """).f
    report = fix(f, torch.linspace(-1, 2, 4))
    assert report.fix_set is not None
    assert report.fix_set.breaks_after == 0
    assert any("No gradients are asked for" in x.assumption for x in report.fixes or () if x.chosen)


def test_a_change_that_is_right_only_where_it_is_compiled_is_refused(
    module: MakeModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = module("""
        import torch

        def f(x):
            torch._dynamo.graph_break()
            return x + 1
        """).f
    only(monkeypatch, replacing("torch._dynamo.graph_break()", "x = x if torch.compiler.is_compiling() else x * 2"))
    [tried] = fix(f, torch.arange(4.0)).fixes or ()
    assert tried.verdict == "refused"
    assert tried.reason.startswith("without torch.compile, with the recorded inputs")


def test_a_break_that_moves_to_the_call_is_not_fixed(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    f = module("""
        import torch

        def g(x):
            torch._dynamo.graph_break()
            return x + 1

        def f(x):
            return g(x.sin()) * 2
        """).f
    only(monkeypatch, replacing("def g(x)", "@torch.compiler.disable\ndef g(x)"))
    report = fix(f, torch.arange(4.0))
    assert [x.verdict for x in report.fixes or ()] == ["refused"]
    assert "a graph break at the call instead" in (report.fixes or ())[0].reason


def test_a_source_of_candidates_that_fails_is_left_out(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(problem: Problem) -> list[Candidate]:
        raise RecursionError

    only(monkeypatch, broken, *fixing.CANDIDATE_SOURCES)
    report = fix(module(PRINTS).f, torch.ones(3))
    assert report.fix_set is not None
    assert report.fix_set.breaks_after == 0
    assert "No change by `test_fixes` was tried for f: it raised RecursionError" in report.fix_set.notes


def test_recompiles_of_a_file_that_is_no_longer_valid_python(module: MakeModule) -> None:
    made = module("""
        import torch

        def f(x, n):
            return x * n
        """)
    Path(str(made.__file__)).write_text("import (\n")
    linecache.checkcache(made.__file__)
    guards = [SimpleNamespace(kind="size", source="x", dimension=0)]
    recompile: Any = SimpleNamespace(failed_guards=guards)
    found = setting_changes.for_recompile(recompile, "f", Plan().text(str(made.__file__)))
    assert [candidate.title for candidate in found] == ["Compile for all sizes at once", "Mark dimension 0 of x as dynamic"]
    report = Report()
    plan = Plan(settings={"torch._dynamo.config.capture_scalar_outputs": True})  # a setting that the patch writes into a file
    kept: Any = SimpleNamespace(calls=[SimpleNamespace(target=made.f)], refusals=[])
    annotate_fixes(report, Found(plan=plan), kept, None)
    assert report.patch() == "# dynascope: no file changes; needed: torch._dynamo.config.capture_scalar_outputs = True\n"


def test_a_change_that_is_wrong_where_two_conditions_hold(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    """No input reaches both sides at once, so the two conditions are forced together."""
    f = module("""
        import torch

        def f(x):
            y = x * 1
            if x[0] > 5:
                y = x * 2
            if x[1] < -5:
                y = y + 1
            return y
        """).f
    before = "    if x[0] > 5:\n        y = x * 2\n    if x[1] < -5:\n        y = y + 1\n"
    right = "    y = torch.where(x[0] > 5, x * 2, y)\n    y = torch.where(x[1] < -5, y + 1, y)\n"
    wrong = "    y = torch.where(x[0] > 5, x * 2, torch.where(x[1] < -5, y + 1, y))\n"
    for after, verdict in ((right, "proved"), (wrong, "refused")):
        only(monkeypatch, replacing(before, after, tests=("x[0] > 5", "x[1] < -5")))
        tried, *_ = fix(f, torch.ones(3)).fixes or ()
        assert tried.verdict == verdict, tried.reason
    assert "where `x[0] > 5` is True and `x[1] < -5` is True, " in tried.reason


def test_a_gradient_of_zero_instead_of_none(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    """An optimizer treats them differently: only where the program asks for no gradients is it said and accepted."""
    f = module("""
        import torch

        def f(x, w):
            if x.sum() > 0:
                y = x * w
            else:
                y = x * 2
            return y
        """).f
    before = "    if x.sum() > 0:\n        y = x * w\n    else:\n        y = x * 2\n"
    only(monkeypatch, replacing(before, "    y = torch.where(x.sum() > 0, x * w, x * 2)\n", tests=("x.sum() > 0",)))
    [tried] = fix(f, -torch.ones(3), torch.ones(3)).fixes or ()
    assert tried.verdict == "proved", tried.reason
    assert "gradient of zero where eager has none" in tried.assumption
    [tried] = fix(f, -torch.ones(3), torch.ones(3, requires_grad=True)).fixes or ()
    assert tried.verdict == "refused"
    assert "gradients differ" in tried.reason


def test_layerdrop_is_no_choice(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    """`torch.where` draws the numbers of a layer that is left out; `torch.cond` draws others for the backward."""
    made = module("""
        import torch

        layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))

        def f(x):
            if torch.rand([]) < 0.5:
                y = x * 1
            else:
                y = layer(x)
            return y
        """)
    before = "    if torch.rand([]) < 0.5:\n        y = x * 1\n    else:\n        y = layer(x)\n"
    for choice, why in (("where(torch.rand([]) < 0.5, x * 1, layer(x))", ""), (
        "cond(torch.rand([]) < 0.5, lambda x: x * 1, lambda x: layer(x), (x,))", "differ",
    )):  # fmt: skip
        only(monkeypatch, replacing(before, f"    y = torch.{choice}\n"))
        for seed in range(2):  # one of them runs the layer
            torch.manual_seed(seed)
            [tried] = fix(made.f, torch.ones(2, 4)).fixes or ()
            if tried.verdict == "refused":
                break
        assert tried.verdict == "refused", choice
        assert why in tried.reason


def test_a_warning_about_numbers_that_are_taken_out(module: MakeModule) -> None:
    f = module("""
        import torch

        def f(x):
            return x / float(x.abs().max())
        """).f
    torch.set_warn_always(True)  # otherwise eager warns once in a process
    try:
        with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True"):
            report = fix(f, torch.arange(3.0, requires_grad=True))
    finally:
        torch.set_warn_always(False)
    assert report.fix_set is not None
    assert report.fix_set.breaks_after == 0, [(x.title, x.reason) for x in report.fixes or ()]


def test_a_loop_that_other_inputs_make_endless(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    from dynascope.compiler.fixes.proving import trial

    f = module("""
        import torch

        def f(x):
            while x.abs().sum() < 100:
                x = x * 2
            return x
        """).f
    monkeypatch.setattr(trial, "LONGEST_CALL", 0.2)
    with torch.no_grad():
        report = fix(f, torch.ones(3), fix_seconds=600)
    assert report.fix_set is not None
    assert report.fix_set.is_complete
    assert report.fix_set.breaks_after == 0, [(x.title, x.reason) for x in report.fixes or ()]


def test_a_break_that_stays_may_still_lose_less(module: MakeModule) -> None:
    f = module("""
        import torch

        def f(x):
            for _ in range(2):
                x = x * 2
                torch._dynamo.graph_break()
            return x.sin()
        """).f
    report = fix(f, torch.ones(3))
    first, *_ = [x for x in report.fixes or () if x.chosen]
    assert (first.verdict, first.breaks_before, first.breaks_after) == ("proved", 1, 1)
    assert "The graph break stays; operations in graphs: 0 → " in first.reason


def test_copies_do_not_count_as_operations() -> None:
    def report(graphs: int, *targets: str) -> Any:
        nodes = [SimpleNamespace(target=target) for target in targets]
        summary = SimpleNamespace(ops=len(nodes), graphs=graphs, skipped=0, failed=0, recompiles=0)
        return SimpleNamespace(summary=summary, graphs=[SimpleNamespace(nodes=nodes)], breaks=[], error=None)

    copied, captured = report(1, "add", "clone"), report(1, "add", "mul")
    assert captures_more(captured, copied)
    assert gain(captured, copied, "The recompiles stay").startswith("The recompiles stay; operations in graphs: 1 → 2, ")


def test_a_break_without_a_candidate_says_why(module: MakeModule) -> None:
    f = module("""
        import torch

        def f(x):
            y = x * 2
            y.resize_(2)
            return y + 1
        """).f
    [tried] = fix(f, torch.ones(3)).fixes or ()
    assert (tried.title, tried.verdict, tried.break_) == ("No change is known", "refused", "b0")
    assert "make a new tensor instead" in tried.reason


@pytest.mark.skipif(sys.version_info < (3, 11), reason="breaks have no columns")
def test_two_breaks_on_one_line(module: MakeModule) -> None:
    f = module("""
        import torch

        def f(x):
            y = x * 2; print(y.sum()); y.resize_(2)
            return y + 1
        """).f
    found = [(x.break_, x.title, x.verdict) for x in fix(f, torch.ones(3)).fixes or ()]
    assert found == [("b0", "Run print() after the graph", "proved"), ("b1", "No change is known", "refused")]


@pytest.mark.skipif(torch.__version__.startswith(("2.9", "2.11")), reason="the table has the types of torch 2.13")
def test_every_reason_is_for_a_type_of_the_compiler() -> None:
    import json

    from dynascope.compiler.fixes.rewrites.unfixable import REASONS

    registry = json.loads((Path(torch._dynamo.__file__).parent / "graph_break_registry.json").read_text())
    known = {entry["Gb_type"] for entries in registry.values() for entry in entries}
    assert not sorted(set(REASONS) - known)


def test_gradients_differ_by_rounding_in_proportion_to_the_largest() -> None:
    """Parts of a shared weight's gradient cancel, in an order that the compiler chooses."""
    from dynascope.compiler.accuracy.outcome import Outcome
    from dynascope.compiler.fixes.proving.observed import Observed, differences

    def seen(what: str, *numbers: float) -> Observed:
        parts: dict[str, Any] = {"values": [], "effects": [], "gradients": []}
        parts[what] = [("w", torch.tensor(numbers))]
        return Observed(Outcome(parts, drew=False, opaque=[], unchanged=set()))

    right = seen("gradients", 100.0, 1e-3)
    assert differences(seen("gradients", 100.0, 1e-3 + 3e-5), right) is None
    assert "gradients differ" in str(differences(seen("gradients", 100.0, 2e-3), right))
    assert "gradients differ" in str(differences(seen("gradients", 100.0, float("nan")), right))
    assert "values differ" in str(differences(seen("values", 100.0, 1e-3 + 3e-5), seen("values", 100.0, 1e-3)))


def test_rounding_that_changes_how_texts_are_sorted_is_no_difference() -> None:
    from dynascope.compiler.accuracy.outcome import Outcome

    def seen(texts: list[str], channel: str) -> Observed:
        output = {"printed": "\n".join(texts)} if channel == "printed" else {channel: texts}
        return Observed(Outcome({}, drew=False, opaque=[], unchanged=set()), **output)  # type: ignore[arg-type]

    for channel, verb in (("printed", "prints"), ("logged", "logs"), ("warned", "warns")):
        eager = seen(["1.00001 a", "1.00000 b", "1.00003 c", "1.00002 c"], channel)
        assert differences(seen(["0.99999 a", "1.00000 b", "1.00002 c", "1.00003 c"], channel), eager) is None
        text = differences(seen(["0.99999 a", "1.00000 b", "1.00002 c", "2.00000 c"], channel), eager)
        assert str(text).startswith("warns 3 lines" if verb == "warns" else f"{verb} '2.00000 c' where eager has")


def test_the_order_of_log_records_is_noticed_as_that_of_printed_lines() -> None:
    from dynascope.compiler.accuracy.outcome import Outcome
    from dynascope.compiler.fixes.proving.observed import Observed, differences, order_changed

    def seen(printed: str = "", *logged: str) -> Observed:
        return Observed(outcome=Outcome({}, drew=False, opaque=[], unchanged=set()), printed=printed, logged=list(logged))

    eager = seen("a\nb\n", "net INFO: loss 1.0", "net INFO: done")
    for order, other in (
        (False, seen("a\nb\n", "net INFO: loss 1.00000001", "net INFO: done")),
        (True, seen("a\nb\n", "net INFO: done", "net INFO: loss 1.0")),
        (True, seen("b\na\n", "net INFO: loss 1.0", "net INFO: done")),
    ):
        assert differences(other, eager) is None
        assert order_changed(other, eager) is order


@pytest.mark.parametrize("name", ["ignore_logging_functions", "ignore_logger_methods"])
def test_the_setting_that_drops_log_records_is_the_one_that_the_break_names(name: str) -> None:
    from dynascope.compiler.fixes import setting_changes

    reason = f"Logger not supported for non-export cases; add methods to config.{name}"
    problem = Problem("a.py", 'logger.info("half way")', 1, 1, None, None, "f", reason, reason)
    (found,) = setting_changes.candidates(problem)
    assert found.settings == {f"torch._dynamo.config.{name}": ["logging.Logger.info"]}


class _Counts:
    used = 0
    __slots__ = ("seen",)

    def __init__(self) -> None:
        self.seen = 0


_counts, _log, _STATE = _Counts(), [(0, "first")], {"last": (1, 2)}
_module, _array = torch.nn.Module(), np.zeros(2)


def _counting() -> Any:
    return _counts, _log, _STATE, _module, _array


def test_state_of_classes_functions_slots_and_of_what_a_list_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    _counting.calls = 0  # type: ignore[attr-defined]
    state = SideState(_counting)
    before = state.read()
    for owner, name in ((_Counts, "used"), (_counts, "seen"), (_counting, "calls")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, 1)
            assert f".{name}: " in str(state_difference(state.read(), before))
    with monkeypatch.context() as patched:
        patched.setattr(_counts, "seen", (1, "first"))
        assert "_Counts.seen" in str(state_difference(state.read(), before))
    with monkeypatch.context() as patched:
        patched.setitem(_STATE, "last", (1, 3))
        assert "dict['last'][1]: " in str(state_difference(state.read(), before))
    for owner, name, value in ((_module, "stats", {"n": 1}), (_module, "_seen", [{"n": 2}]), (_counting, "calls", {"n": [1]})):
        with monkeypatch.context() as patched:  # containers that a call makes
            patched.setattr(owner, name, value, raising=False)
            assert f".{name}" in str(state_difference(state.read(), before))
    _array[0] += 1
    assert "_array: " in str(state_difference(state.read(), before))
    _array[0] -= 1
    _log.append((0, "second"))
    assert "list.length: " in str(state_difference(state.read(), before))
    _log.pop()
    assert state_difference(state.read(), before) is None


def test_integers_of_zero_empty_tensors_and_zeros_of_both_signs() -> None:
    def varied(name: str, first: Any = (1.0, 1.0, 1.0)) -> tuple[Any, ...]:
        given = torch.tensor(first), torch.tensor([1, 2])
        (found,) = [v for v in variations(None, given, {}) if v.name == name]
        return found.vary(given, {})[0]

    assert varied("integers of zero")[1].tolist() == [0, 0]
    assert varied("size 0 instead of 3")[0].shape == (0,)
    for first in ((1.0, 1.0, 1.0), (-1.0, 1.0, float("inf"))):
        zeros = varied("inputs of zeros", first)[0]
        assert (zeros.tolist(), torch.signbit(zeros).tolist()) == ([0, 0, 0], [True, False, True])
    assert varied("large inputs", [3j])[0].tolist() == [4e4j]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("loss 9e-05", "loss 1e-05", False),
        ("loss 1e-05", "loss 0.0", False),
        ("loss 1.2e-07", "loss 0.0", True),
        ("loss 0.7000001", "loss 0.7", True),
        ("tensor([0.1235, -0.0000])", "tensor([0.1234, -0.0000])", True),
        ("tensor([9.0000e-05])", "tensor([1.0000e-05])", False),
        ("step 20001", "step 20002", False),
        ("mean 3", "mean 3.0", False),
        ("big 1.0000e999", "big 2.0000e999", False),
    ],
)
def test_printed_numbers_may_differ_by_rounding_only(one: str, other: str, is_same: bool) -> None:
    from dynascope.compiler.accuracy.outcome import Outcome

    seen, eager = (Observed(Outcome({}, drew=False, opaque=[], unchanged=set()), printed=text) for text in (one, other))
    assert (differences(seen, eager) is None) == is_same


def test_every_generator_of_random_numbers_is_compared() -> None:
    own, numpys = torch.Generator(), np.random.default_rng(0)
    draws: list[Callable[[], Any]] = [
        random.random, np.random.rand, lambda: torch.rand(1), lambda: torch.rand(1, generator=own), numpys.random,
    ]  # fmt: skip

    def nothing() -> Any:
        return own, numpys

    recorded_call = RecordedCall(nothing, (), {})
    call, state = KeptCall(nothing, recorded_call), SideState(nothing)

    def seen(draw: Callable[[], Any]) -> Observed:
        with recorded_call.replaying() as prepare:
            return observe_call(call, draw, prepare, recorded().vary, state)

    eager = seen(nothing)
    assert all(differences(replace(seen(draw), outcome=eager.outcome), eager) for draw in draws)
    assert differences(seen(nothing), eager) is None


@pytest.mark.parametrize(("error", "ends"), [(SystemExit(3), False), (KeyboardInterrupt(), True), (TookTooLong(), True)])
def test_the_programs_exit_is_an_outcome_and_an_interrupt_is_not(error: BaseException, ends: bool) -> None:
    def exits() -> None:
        raise error

    call = KeptCall(exits, RecordedCall(exits, (), {}))
    with pytest.raises(type(error)) if ends else contextlib.nullcontext():
        assert observe_call(call, exits, lambda **_: ((), {}), recorded().vary).error is error


def test_calls_through_torchs_modules_and_decorators_are_kept() -> None:
    class Block(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    function = torch.no_grad()(lambda x: x + 1)
    model = torch.nn.Sequential(Block())
    kept = KeptCalls()
    with observe(Settings()), kept.watching_compiled_code():
        for target in (function, torch.vmap(function), model, torch.nn.functional.relu):
            torch.compile(target, backend="eager")(torch.ones(3))
    assert [inspect.unwrap(call.target) for call in kept.calls] == [inspect.unwrap(function)] * 2 + [model]


def test_lines_that_are_not_printed_before_an_exception() -> None:
    expected = Observed(error=ValueError(), printed="start\n")
    assert differences(Observed(error=ValueError(), printed="start\nTraceback\n"), expected) is None
    assert "does not print 'start'" in str(differences(Observed(error=ValueError()), expected))


def test_a_call_is_timed_with_the_mode_of_the_run() -> None:
    seen = []

    class Driver:
        def entry_point(self, target: Any, settings: Settings) -> Any:
            seen.append((settings.backend, settings.mode, settings.profile))
            return target

        def environment(self, settings: Settings) -> Any:
            return contextlib.nullcontext()

        def retracing(self) -> Any:
            return contextlib.nullcontext(lambda target: None)

    def call(target: Any) -> WatchedCall:
        return WatchedCall(target, target, RecordedCall(target, (), {}), None)

    settings = Settings(backend="inductor", mode="reduce-overhead", profile=3)
    trials = Trials([], settings, Driver(), None)
    assert (trials.seconds(call(lambda: None), Plan(), 1) or 2) < 1
    assert seen == [("inductor", "reduce-overhead", None)]
    assert trials.settings.mode is None
    for target, deadline in ((sys.exit, math.inf), (lambda: time.sleep(0.1), 0.0)):
        trials.deadline = deadline
        assert trials.seconds(call(target), Plan(), 1) is None


def test_places_above_which_lines_were_added() -> None:
    plan = Plan({"f.py": "import torch\na\nb\n"}, {}, {"f.py": "a\nb\n"})
    b, moved = (Break(id="b0", file="f.py", line=line, type="t", reason="", function="f") for line in (2, 3))
    other = Break(id="b1", file="f.py", line=1, type="t", reason="", function="f")
    report = SimpleNamespace(frame=lambda frame: SimpleNamespace(file="f.py", line=int(frame)), breaks=[other, b])
    again, before = (SimpleNamespace(frame=frame, failed_guards=[]) for frame in "32")
    assert recompile_key(again, report, plan) == recompile_key(before, report, Plan())  # type: ignore[arg-type]
    report.profile = SimpleNamespace(breaks=[SimpleNamespace(break_="b0", seconds=1.0)])
    other = structs.replace(other, line=2)
    step = SimpleNamespace(plan=plan, ran=SimpleNamespace(report=SimpleNamespace(breaks=[other, moved])))
    assert Search._ordered(SimpleNamespace(_report=report), step)[0] is moved  # type: ignore[arg-type]


def test_a_change_that_fails_with_empty_tensors_only_says_so(module: MakeModule) -> None:
    f = module("""
        import torch

        def f(x):
            return x * x.max() if x.sum() > 0 else x * 2
        """).f
    report = fix(f, torch.ones(3))
    (fixed,) = [x for x in report.fixes or () if x.chosen]
    assert fixed.title == "Choose with torch.where"
    assert fixed.assumption.endswith(". No tensor is empty")


@pytest.mark.skipif(torch.__version__.startswith("2.9"), reason="AOTAutograd fails to compile it there; see torch_versions.md")
@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("x * (n / 2 - 1)", ["which raise RuntimeError", "RuntimeError instead of AssertionError"]),
        ("x * (1.0 / (n - 50))", ["such as a division by zero", "the compiler's checks (u0 <", "instead of AssertionError"]),
    ],
)
def test_what_captured_numbers_take_for_granted(module: MakeModule, returned: str, said: list[str]) -> None:
    """No input that is tried fails the check, or divides by zero: the graph raises another exception, or none."""
    f = module(f"""
        import torch

        def f(x):
            n = x.sum().item()
            assert n < 100
            return {returned}
        """).f
    (fixed,) = [x for x in fix(f, torch.arange(3)).fixes or () if x.chosen]
    sentences = fixed.assumption.split(". ")
    assert len(sentences) == len(said)
    assert all(map(str.__contains__, sentences, said)), sentences


def test_a_number_that_must_pass_a_check_and_an_exception_that_is_caught(module: MakeModule) -> None:
    f = module("""
        import torch

        def f(x):
            y = torch.ones(x[0].item()) + x
            try:
                y = y * 2
            except RuntimeError:
                y = y + 1
            return y
        """).f
    (fixed,) = [x for x in fix(f, torch.tensor([4, 3, 4, 4])).fixes or () if x.chosen]
    assert "checks (u0 >= 4, Eq(u0, 4)), which raise RuntimeError" in fixed.assumption
    assert "No operation in a try block raises an exception" in fixed.assumption


def test_a_change_that_leaves_its_break_is_not_repeated_on_its_own_lines(module: MakeModule) -> None:
    f = module("""
        import torch

        def f(x):
            n = x[0, 0].item()
            return x.select(1, n), x[0, n:], x[0, n]
        """).f
    report = fix(f, torch.tensor([[2, 1, 3], [0, 0, 1]]), fix_seconds=20)
    titles = [x.title for x in report.fixes or () if x.chosen]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize(
    ("arguments", "condition"),
    [
        ("x, log, mode='plain'", "mode == 'scaled'"),
        ("x, log", "log.step % 10 == 0"),
        ("x, log", "log.step is None"),
        ("x, log, config={'scaled': False}, scale=2", "config['scaled'] or scale is None"),
    ],
)
def test_numbers_and_strings_that_a_condition_asks_about_are_varied(
    module: MakeModule, monkeypatch: pytest.MonkeyPatch, arguments: str, condition: str
) -> None:
    """A condition is false in the recorded call; where it is true, the stored number is read before the end."""
    loaded = module(f"""
        class Log:
            step, last = 1, 5.0

            def __init__(self):
                self.step = 1

        def f({arguments}):
            loss = x.sum().item()
            log.last = loss
            y = x.sin()
            if {condition}:
                y = y * log.last
            return y + 1
        """)
    only(monkeypatch, log_values.candidates)
    log = loaded.Log()
    [refused] = fix(loaded.f, torch.ones(3), log).fixes or []
    assert (refused.verdict, log.step) == ("refused", 1)
    assert "values differ" in refused.reason


@pytest.mark.parametrize(("above", "loses"), [("calls.append(1)", True), ("x = x.add_(0.5)", True), ("x = x + 0.5", False)])
def test_changes_before_an_exception_are_an_assumption(
    module: MakeModule, monkeypatch: pytest.MonkeyPatch, above: str, loses: bool
) -> None:
    f = module(f"""
        import torch

        calls = []

        def f(x):
            {above}
            if (x < 0).any():
                raise ValueError("negative")
            return x + 1
        """).f
    only(monkeypatch, raise_checks.candidates)
    [chosen] = [x for x in fix(f, torch.ones(3)).fixes or [] if x.chosen]
    assert ("before it raises an exception" in chosen.assumption) == loses


def test_buffers_and_parameters_are_compared_after_an_exception() -> None:
    norm = torch.nn.BatchNorm1d(2)
    state = SideState(norm)
    before = state.read_after_error([])
    norm.running_mean.add_(1)  # type: ignore[union-attr]
    assert "running_mean" in str(state_difference(state.read_after_error([]), before))
    norm.running_mean.sub_(1)  # type: ignore[union-attr]
    assert state_difference(state.read_after_error([]), before) is None
    norm.bias.data.add_(1)
    assert "bias" in str(state_difference(state.read_after_error([]), before))


_weight = torch.nn.Parameter(torch.ones(2))


def test_a_parameter_that_no_module_holds_is_compared() -> None:
    state = SideState(lambda: _weight)
    before = state.read()
    with torch.no_grad():
        _weight.add_(1)
    assert "_weight" in str(state_difference(state.read(), before))


def test_a_search_is_silent_about_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests turn warnings into errors, as `-W error` does."""
    text = 'PATTERN = "\\d+"\ndef f(x):\n    if x.sum() > 0:\n        return x + 1\n    return x - 1\n'
    (tmp_path / "with_an_escape.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = importlib.import_module("with_an_escape")
    report = dynascope.explain(program.f, backend="eager", fix=True, fix_seconds=600)(torch.ones(3))
    assert [fix.verdict for fix in report.fixes or [] if fix.chosen] == ["proved"]


def test_a_block_of_the_module_is_not_run_again_and_its_functions_are_restored(module: MakeModule) -> None:
    made = module("""
    ran = []

    try:
        from nowhere_at_all import f
    except ImportError:
        def f(x):
            if x.sum() > 0:
                y = x + 1
            else:
                y = x - 1
            return y * 2

    if __name__ != "__main__":
        ran.append(1)
        def g(x):
            if x.sum() > 0:
                y = x + 1
            else:
                y = x - 1
            return y * 3
    """)
    for name in ("f", "g"):
        function = getattr(made, name)
        code = function.__code__
        report = fix(function, torch.ones(3))
        assert [x.verdict for x in report.fixes or () if x.chosen] == ["proved"]
        assert getattr(made, name) is function
        assert function.__code__ is code
    assert made.ran == [1]


def test_a_log_call_with_wrong_arguments_does_not_end_the_program(module: MakeModule) -> None:
    f = module("""
    import logging

    def f(x):
        y = x.sin()
        logging.getLogger("own").warning("sum:", 3)
        if x.sum() > 0:
            return y + 1
        return y * 2
    """).f
    report = fix(f, torch.ones(3))
    assert report.fix_set is not None
    assert report.fix_set.breaks_before == len(report.breaks)


def test_a_step_that_only_uncovers_breaks_is_no_fix_when_the_time_is_over(
    module: MakeModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = module("""
    import sys

    def f(x):
        for i in range(2):
            print(i)
            x = x * 2
            sys.getrefcount(x)
        return x
    """).f
    tick, done = Search._tick, []

    def over_after_the_first_step(search: Search) -> None:
        if len(search._steps) == 2 and not done:
            done.append(1)
            raise OutOfTime
        tick(search)

    monkeypatch.setattr(Search, "_tick", over_after_the_first_step)
    report = fix(f, torch.ones(2))
    assert done
    assert [x.title for x in report.fixes or () if x.chosen] == []


def test_what_was_not_tried_because_of_a_dropped_change_is_tried(module: MakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    f = module("""
    def f(x):
        for i in range(2):
            x = x * 2
            print(i)
            y = x.sum().item()
            x = x.sin() + 1
        return x
    """).f
    planted = replacing(
        "        print(i)\n        y = x.sum().item()\n        x = x.sin() + 1\n    return x\n",
        "        x = x.sin() + 1\n    print(0)\n    print(1)\n    return x\n",
        settings={"torch._dynamo.config.reorderable_logging_functions": ["builtins.print"]},
    )
    only(monkeypatch, setting_changes._reorderable, lambda problem: planted(problem) if "print" in problem.reason else [])
    report = fix(f, torch.ones(2))
    assert [(x.title, x.verdict) for x in report.fixes or () if x.chosen] == [("planted", "proved")]


def test_entries_of_a_dict_with_long_keys_are_told_apart() -> None:
    stats = dict.fromkeys((f"{'a/long/path' * 9}/{name}" for name in ("mean", "norm")), 0.0)
    state = SideState([stats], [])
    before = state.read()
    stats[next(iter(stats))] = 1.0
    assert state_difference(state.read(), before) is not None


def test_inputs_of_few_operations_and_calls_that_do_not_fit_end_no_search(module: MakeModule) -> None:
    made = module("""
    import torch

    def f(x, i):
        y = x.sin()
        if x.sum() > 0:
            y = y + 1
        else:
            y = y - 1
        return y + i.to(torch.float32)

    def h(x, mode="a"):
        if x is not None and mode == "a":
            return x + 1
        return x
    """)
    report = fix(made.f, torch.ones(2), torch.ones(2).to(torch.uint16))
    assert [x.verdict for x in report.fixes or () if x.chosen] == ["proved"]
    call = SimpleNamespace(namespace=None, target=made.h)
    text = inspect.getsource(made)
    plan = SimpleNamespace(texts={made.__file__: text.replace("x + 1", "x + 2")}, originals={made.__file__: text})
    assert tested_values.variations_for(plan, call, (), {}) == []  # type: ignore[arg-type]


def test_the_users_own_set_of_functions_stays_in_force(module: MakeModule) -> None:
    f = module("""
    import warnings

    def f(x):
        x = x.sin()
        warnings.warn("careful")
        x = x.cos()
        print("b")
        return x + 1
    """).f
    with torch._dynamo.config.patch(reorderable_logging_functions={warnings.warn}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = fix(f, torch.ones(2))
    assert [x.settings for x in report.fixes or () if x.chosen] == [
        {"torch._dynamo.config.reorderable_logging_functions": ["builtins.print"]}
    ]


def test_a_call_in_a_try_is_named_too(module: MakeModule) -> None:
    f = module("""
    def inner(x):
        return x.sin().cos()

    def f(x):
        try:
            print("a")
            y = inner(x)
        except RuntimeError:
            y = x
        return y
    """).f
    (chosen,) = [x for x in fix(f, torch.ones(2)).fixes or () if x.chosen]
    assert "No operation in a try block raises an exception" in chosen.assumption


def test_a_mark_is_not_put_before_a_call_that_may_not_be_made() -> None:
    text = "import torch\ndef f(x): return x + 1\ndef g(x):\n    return f(x) if x is not None else None\n"
    assert patch.marked_calls(text, "f", ["x, 0"], {}) is None
    assert patch.marked_calls(text.replace(" if x is not None else None", ""), "f", ["x, 0"], {}) is not None


LOSSY = """
    import torch
    def rounded(x, by):
        return x * by if torch.compiler.is_compiling() else x
    def f(x):
        x = rounded(x, 1.01)
        if x.sum() > 0:
            y = x * 2
        else:
            y = x * 3
        return y
"""


def test_where_the_unchanged_program_differs_from_eager_a_fix_agrees_with_that(
    module: MakeModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = fix(module(LOSSY).f, torch.ones(3))
    [chosen] = [x for x in report.fixes or () if x.chosen]
    assert (chosen.title, chosen.verdict) == ("Choose with torch.where", "proved")
    assert chosen.reason.startswith("agrees with eager (or with the unchanged compiled program, where that differs from eager)")
    assert "The unchanged program, too, differs from eager when it is compiled (values differ: the value: " in chosen.assumption

    def wrong(problem: Problem) -> list[Candidate]:
        return [Candidate("rewrite", "planted", (FixEdit(problem.file, 6, 9, BRANCH, "    y = x * 2.01\n"),))]

    BRANCH = "    if x.sum() > 0:\n        y = x * 2\n    else:\n        y = x * 3\n"
    monkeypatch.setattr(fixing, "CANDIDATE_SOURCES", [wrong])
    [refused] = fix(module(LOSSY).f, torch.ones(3)).fixes or ()
    assert refused.verdict == "refused"


def test_a_fix_of_a_program_under_autocast_is_judged_by_its_precision(module: MakeModule) -> None:
    program = """
        import torch
        linear = torch.nn.Linear(8, 8)
        def f(x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = linear(x)
            print("mean", y.float().mean().item())
            z = y.float() * (1.003 if torch.compiler.is_compiling() else 1.0)
            return z
    """
    report = fix(module(program).f, torch.ones(4, 8))
    assert [x.verdict for x in report.fixes or () if x.chosen] == ["proved"] * len(report.fix_set.fixes)
    assert report.fix_set.breaks_after == 0
    assert not [x for x in report.fixes or () if "differs from eager" in x.assumption]
