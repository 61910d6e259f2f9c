"""The search for fixes as a user meets it: what it leaves behind, what ends it, and what can be done with its result."""

from __future__ import annotations

import _thread
import contextlib
import gc
import linecache
import re
import subprocess
import sys
import textwrap
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import planting
import pytest
import torch
from harness import imported

import dynascope
from dynascope.cell.interrupts import Interrupts, interruptible
from dynascope.cli import main
from dynascope.compiler.capture.torch_private import tensors
from dynascope.compiler.lab.fix.trial import Trials
from dynascope.compiler.report import Report
from dynascope.widgets.features.fixes import fix_words

Make = Callable[[str], ModuleType]
pytestmark = pytest.mark.slow


@pytest.fixture
def make() -> Iterator[Make]:
    """make(text): the text as a file, imported; a text that names torch, but does not import it, has it."""
    with contextlib.ExitStack() as stack:

        def made(text: str) -> ModuleType:
            text = textwrap.dedent(text).lstrip("\n")
            is_whole = "torch." not in text or "import torch" in text
            return stack.enter_context(imported(text if is_whole else f"import torch\n\n{text}"))

        yield made


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script to be written, in the current folder, which is the test's own."""
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    return Path("script.py")


def fix(function: Any, *args: Any, fix_seconds: float = 600, **settings: Any) -> Report:
    return dynascope.explain(function, backend="eager", fix=True, fix_seconds=fix_seconds, **settings)(*args)


def chosen(report: Report) -> list[str]:
    return [fix.title for fix in report.fixes or () if fix.chosen]


def names(module: ModuleType) -> dict[str, Any]:
    """What the module has bound; the compiler's own names begin with two underscores."""
    return {name: value for name, value in vars(module).items() if not name.startswith("__")}


PRINTS = """
    def f(x):
        y = x.sin()
        print("half way", y.sum())
        return y + 1
    """
IF_ELSE = "    if x.sum() > 0:\n        y = x * 2\n    else:\n        y = x * 3\n"
WHERE = "    y = torch.where(x.sum() > 0, x * 2, x * 3)\n"
BRANCH = f"import torch\n\ndef f(x):\n{IF_ELSE}    return y + 1\n"


def test_what_the_report_says_of_a_fix(make: Make, tmp_path: Path) -> None:
    f = make(PRINTS).f
    report = fix(f, torch.ones(3))
    [done] = [x for x in report.fixes if x.chosen]
    assert (done.kind, done.break_) == ("setting", report.breaks[0].id)
    assert done.settings == {"torch._dynamo.config.reorderable_logging_functions": ["builtins.print"]}
    assert done.assumption.endswith("for all code, where other compiled code calls a function that prints")
    assert (done.before.breaks, done.after.breaks, done.before.graphs, done.after.graphs) == (1, 0, 2, 1)
    assert (report.fix_set.before.breaks, report.fix_set.after.breaks) == (1, 0)
    assert "+torch._dynamo.config.reorderable_logging_functions.add(print)" in report.patch()
    assert "1 fix: graph breaks 1 → 0, graphs 2 → 1 in the repeated calls" in " ".join(str(report).split())
    looks_up = make("def f(x, n): return x * {0: 1, 1: 2}[int(n)]").f
    [done] = [x for x in fix(looks_up, torch.ones(3), torch.tensor(1)).fixes if x.chosen]
    assert done.assumption == "n.item() does not vary: the code is compiled again for each other value"
    with report.fixed() as g:
        assert g is f
        assert torch.equal(torch.compile(g, fullgraph=True, backend="eager")(torch.zeros(2)), torch.ones(2))
    assert torch._dynamo.config.reorderable_logging_functions == set()
    report.save(tmp_path / "report.json")
    loaded = dynascope.load(tmp_path / "report.json")
    assert (loaded.fixes, loaded.fix_set, loaded.patch()) == (report.fixes, report.fix_set, report.patch())  # type: ignore[union-attr]
    assert ("report.fixed()" in str(report), "report.fixed()" in str(loaded)) == (True, False)
    with pytest.raises(ValueError, match="read from a file"), loaded.fixed():  # type: ignore[union-attr]
        pass


def test_a_report_keeps_nothing_alive(make: Make) -> None:
    made = make(PRINTS)
    report = fix(made.f, torch.ones(3))
    alive = weakref.ref(made.f)
    del made.f
    torch._dynamo.reset()
    gc.collect()
    assert alive() is None
    with pytest.raises(ValueError, match="no longer exists"), report.fixed():
        pass


def test_functions_methods_closures_and_modules_are_fixed_for_the_time_of_a_block(make: Make) -> None:
    made = make("""
        import inspect

        def outer(scale):
            def inner(x):
                if x.sum() > 0:
                    y = x * scale
                else:
                    y = x * 3
                return y
            return inner

        class Net(torch.nn.Module):
            def forward(self, x):
                return outer(2)(x.sin()) + 1

        def caller(x):  # who called
            return x * len(inspect.stack()[0].function)

        def calls(x):
            return caller(x.sin()) + 1
        """)
    net, before = made.Net(), names(made)
    for target in (made.outer(torch.tensor(2.0)), net, net.forward, made.calls):
        report = fix(target, x := torch.ones(2, 3))
        assert report.fix_set.after.breaks == 0, report.fixes
        with report.fixed() as g:
            torch._dynamo.reset()
            assert torch.allclose(torch.compile(g, backend="eager", fullgraph=True)(x), target(x))
        assert names(made) == before
    assert "+@torch._dynamo.nonstrict_trace" in report.patch()


def test_a_numpy_function_becomes_an_operator(make: Make) -> None:
    made = make("""
        import numpy as np

        def smooth(x, k=2):
            y = np.unwrap(x.detach().numpy()) * k
            return torch.tensor(y.sum())

        def f(x):
            return smooth(x.sin()) + 1
        """)
    report = fix(made.f, torch.arange(4.0))
    assert report.conditional_fix_set.after.breaks == 0, report.fixes
    [first, right] = [x for x in report.fixes or () if x.chosen]
    assert first.title == "Make the calls once in eager mode before compiling", "torch warns only once"
    refused = [x.reason for x in report.fixes or () if x.verdict == "refused"]
    assert any("returned 0 dimensions, but its fake implementation says 1" in reason for reason in refused)
    assert "No gradients are asked for, as in the recorded calls (" in right.condition
    assert right.verdict == "conditional"
    assert "custom_op" not in report.patch()
    patch = report.patch(conditional=True)
    assert f"# holds under a condition: {right.condition}; assumes: {right.assumption}\n" in patch
    assert 'schema="(Tensor x, int k=2) -> Tensor"' in patch
    operator = f"{made.__name__}_smooth"
    assert f"dynascope::{operator}" in patch
    assert not hasattr(torch.ops.dynascope, operator)
    expected = made.f(x := torch.rand(7))
    with report.fixed(conditional=True) as g:
        assert torch.allclose(torch.compile(g, backend="aot_eager", fullgraph=True)(x), expected)


# -- conditions ----------------------------------------------------------------------------------------------------------


def test_a_lost_check_is_a_condition_on_inputs_that_were_made_and_a_refusal_on_recorded_ones(make: Make) -> None:
    program = """
        def f(x):
            y = x * 2
            if y.sum() > 100:
                raise ValueError("too large")
            return y + 1
        """
    check = '    if y.sum() > 100:\n        raise ValueError("too large")\n'
    with planting.only(planting.Planted("Drop the check", check, "    pass\n")), planting.counted_verifications() as plans:
        report = fix(make(program).f, torch.ones(3))
    assert len(plans) == 2
    [done] = [x for x in report.fixes or () if x.chosen]
    assert done.verdict == "conditional"
    assert re.match(r"With .+, compiled with aot_eager, it raises nothing where eager raises ValueError", done.condition)
    assert report.patch() == ""
    assert f"    # holds under a condition: {done.condition}" in report.patch(conditional=True)
    assert (report.fix_set.after.breaks, report.conditional_fix_set.after.breaks) == (1, 0)  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"use fixed\(conditional=True\)"), report.fixed():
        pass
    assert "1 fix under a condition: graph breaks 1 → 0" in str(report)


def test_a_call_in_eager_mode_comes_first_where_breaks_belong_to_the_first_call(make: Make) -> None:
    made = make("""
        seen = []

        def f(x):
            y = x * 2
            if not seen:
                seen.append(1)
                print("first")
            y = y + 1
            if y.sum() > 0:
                y = y * 2
            return y
        """)
    report = fix(made.f, torch.ones(3))
    first, *others = [x for x in report.fixes or () if x.chosen]
    assert first.title == "Make the calls once in eager mode before compiling"
    assert first.condition.startswith("Calls that were not recorded do not meet these graph breaks either")
    assert (first.before.breaks, first.after.breaks) == (2, 1)
    assert [(x.title, x.verdict) for x in others] == [("Choose with torch.where", "verified")]
    asked = f"# holds under a condition: {first.condition}\n# dynascope: also needed: with torch.compiler.set_stance("
    assert (asked in report.patch(), report.patch(conditional=True).startswith(asked)) == (False, True)
    assert (report.fix_set.after.breaks, report.conditional_fix_set.after.breaks) == (1, 0)  # type: ignore[union-attr]
    assert "2 fixes, 1 under a condition: graph breaks 2 → 0" in str(report)


def test_a_comprehension_that_is_compiled_alone_becomes_a_loop(make: Make) -> None:
    module = make("""
        FACTORS = {"a": 1.5, "b": 2.0}

        def f(x):
            # one for each
            parts = [
                x * FACTORS[name] + number for number, name in enumerate(FACTORS) if name
            ]
            for part in parts:
                torch._dynamo.graph_break()
                x = x * part
            return x
        """)
    report = fix(module.f, torch.arange(4.0))
    if sys.version_info >= (3, 12):  # comprehensions are part of the function around them
        assert [b.type for b in report.breaks] == ["Call to `torch._dynamo.graph_break()`"]
        return
    assert chosen(report) == ["Write the comprehension as a loop"]
    assert report.fix_set.after.breaks == 1  # type: ignore[union-attr]
    with report.fixed() as fixed:
        torch.testing.assert_close(torch.compile(fixed, backend="eager")(torch.ones(3)), torch.full((3,), 4.5))


def three_breaks(make: Make, third: str) -> tuple[list[str], list[str], int]:
    """Titles of the chosen and of the refused changes, and the number of verifications."""
    f = make("""
        def f(x):
            x = x.sin()
            torch._dynamo.graph_break()  # 1
            x = x.cos()
            torch._dynamo.graph_break()  # 2
            x = x.sin()
            torch._dynamo.graph_break()  # 3
            return x.cos()
        """).f
    marks = [f"    torch._dynamo.graph_break()  # {number}\n" for number in (1, 2, 3)]
    changes = [planting.Planted(str(n), mark, third if n == 3 else "") for n, mark in enumerate(marks, 1)]
    with planting.only(*changes), planting.counted_verifications() as plans:
        report = fix(f, torch.ones(3))
    return chosen(report), [x.title for x in report.fixes or () if x.verdict == "refused" and x.edits], len(plans)


def test_changes_are_verified_by_their_sum(make: Make) -> None:
    done, refused, verifications = three_breaks(make, "")
    assert (sorted(done), refused, verifications) == (["1", "2", "3"], [], 3)


def test_of_changes_whose_sum_is_wrong_the_right_ones_are_kept(make: Make) -> None:
    done, refused, _ = three_breaks(make, "    x = x + 1\n")
    assert sorted(done) == ["1", "2"]
    assert "3" in refused


CHECKED_NUMBER = """
    def f(x):
        n = x.max().item()
        assert n <= 100
        low = x.min().item()
        torch._check(low > -9)
        return x * n * low
    """


def test_code_that_the_program_compiles_with_its_own_backend_is_not_counted_as_run_outside_of_graphs(make: Make) -> None:
    module = make("""
        @torch.compile(backend="eager")
        def clip(x):
            if x.sum() > 1:
                x = x / x.sum()
            return x

        def f(n):
            return clip(torch.ones(n))
        """)
    [done] = [x for x in fix(module.f, 4).fixes or () if x.chosen]
    assert (done.before.graphs, done.after.graphs) == (3, 1)
    assert (done.before.eager_ops, done.before.graph_runs) == (None, None)


def test_a_change_that_costs_more_by_estimate_is_refused_with_what_was_counted(make: Make) -> None:
    f = make("def f(x):\n  try:\n    print('t')\n    x = x + 1\n  except ValueError:\n    pass\n  return x").f
    [refused] = fix(f, torch.ones(3)).fixes
    assert refused.reason == "by estimate, a later call is slower: graph runs 0 → 1, eager operations 1 → 0"


def test_a_break_that_the_backend_makes_is_not_said_to_be_gone(make: Make) -> None:
    program = make("""
        def f(x, mask):
            x = x.clone()
            x[mask] = torch.tanh(x[:4])
            return x.sum() * 2
    """)
    x = torch.ones(6, 4, requires_grad=True)
    report = dynascope.explain(program.f, backend="aot_eager", fix=True)(x, torch.arange(6) < 4)
    assert [f.reason for f in report.fixes or ()] == ["it is not in the repeated calls, which run without the backend"]
    assert report.breaks[0].first_call_only is None


def test_a_change_with_which_calls_go_on_compiling_is_refused(make: Make) -> None:
    program = make("""
        class Meter:
            total, n = 0.0, 0

        meter = Meter()

        def f(x):
            y = x.sum()
            meter.total += y.item()
            meter.n += 1  # outside of graphs; with the number captured, the graph's guards ask about it
            return y
    """)
    assert not chosen(report := fix(program.f, torch.ones(3)))
    assert "refused, the fourth of four equal repeated calls compiles f" in " ".join(str(report).split())
    program = make("""
        seen = []

        def part(x):
            v = x.sum().item()
            seen.append(v)
            return x * v

        def f(x):
            return part(x) + part(x)
    """)
    with torch._dynamo.config.patch(recompile_limit=64):
        assert not chosen(report := fix(program.f, torch.ones(3)))
    assert report.fix_set.before.compiled_again == ["resume in part"], "of its two guards, neither is the cause"
    assert not chosen(fix(program.f, torch.ones(3))), "the rest of `part`, compiled twice in each call, has reached the limit"
    program = make("""
        seen = []

        def f(x):
            for _ in range(1):
                x = part(x)
            return x

        def part(x):
            seen.append(x.sum().item())
            return x + 1
    """)
    report = fix(program.f, torch.ones(3))  # calls compile both halves of `part`; with a change, all of `f`
    known = [
        re.sub(", the number of recompiles .* still compiles part .a guard that failed: len.seen. == .*", "", n)
        for n in report.fix_set.notes
    ]
    assert (known, chosen(report)) == (["Without a fix"], [])
    f = make("def f(x, kept):\n  kept[:] = [torch.cat([*kept, x])]\n  print('t')\n  return kept[0] + 1").f
    assert "unknown" not in str(fix(f, torch.ones(3), [])), "its size is dynamic from the third call on"


def test_an_assert_on_shapes_is_no_condition(make: Make) -> None:
    f = make("""
        def f(x):
            assert x.dim() == 2  # decided while it is traced
            if x.isnan().any(): raise RuntimeError("nan")
            return (x > 0).nonzero() + 1
    """).f
    report = fix(f, torch.rand(4, 4))
    assert [(x.verdict, x.condition) for x in report.fixes or () if x.chosen] == [("verified", "")] * 2


def test_the_first_answer_is_there_as_soon_as_the_recorded_inputs_were_compared(make: Make) -> None:
    """What was not compared then is a condition; an interrupt does not lose it."""
    f = make(CHECKED_NUMBER).f
    with planting.interrupted_after_an_answer() as said:
        report = fix(f, torch.arange(4))
    answers = [sentence for sentence in said if sentence.startswith("graph breaks ")]
    assert answers[:1] == ["graph breaks 2 → 0 under a condition; comparing more inputs"]
    [done] = [x for x in report.fixes or () if x.chosen]
    assert (done.title, done.verdict) == ("Capture numbers that come out of tensors", "conditional")
    known, _, untried = done.condition.partition(". ")  # what was seen comes first
    assert known == "Captured numbers pass the checks of the version that runs (u0 <= 100), or it raises RuntimeError"
    assert untried.startswith("There was no time to compare it with")
    holds(report)


@pytest.mark.parametrize(("times", "verdict"), [(2, "verified"), (99, "conditional")])
def test_what_there_was_no_time_to_compare_is_a_condition_unless_there_is_time_at_the_end(
    make: Make, times: int, verdict: str
) -> None:
    f = make("""
        def f(x):
            print("begins")
            y = x * 2
            if y.sum() > 0:
                y = y + 1
            return y
        """).f
    with planting.time_for_one_input(times):
        report = fix(f, torch.arange(4.0))
    done = [x for x in report.fixes or () if x.chosen]
    assert {x.verdict for x in done} == {verdict}
    assert ("There was no time to compare it with" in done[0].condition) == (verdict == "conditional")
    assert bool(report.patch()) == (verdict == "verified")


def test_a_condition_stands_at_the_change_that_brings_it(make: Make) -> None:
    f = make("""
        from logging import root as log
        def f(x):
            y = log.debug("begins") or x.sin()  # nothing is logged
            return log.warning("half way") or y + 1
        """).f
    with planting.time_for_one_input(3):  # at first, not enough for any change
        one, other = (x for x in fix(f, torch.ones(3)).fixes or () if x.chosen)
    assert (one.verdict, one.condition, other.verdict) == ("verified", "", "conditional")
    assert other.condition.startswith("With the recorded inputs, it logs 0 lines where eager has 1 ('root WARNING: half way')")


@pytest.mark.parametrize(("order", "verdict"), [(1, "untried"), (-1, "verified")])
def test_only_what_is_wrong_itself_is_refused_where_it_was_compared_at_the_end(make: Make, order: int, verdict: str) -> None:
    f = make("""
        def f(x):
            x = x * 2
            torch._dynamo.graph_break()  # 1
            x = x + 1
            torch._dynamo.graph_break()  # 2
            return x + 1
        """).f
    wrong = planting.Planted("Right for numbers", "torch._dynamo.graph_break()  # 1", "x = x.nan_to_num()")
    right = planting.Planted("Right", "torch._dynamo.graph_break()  # 2", "pass")
    with planting.only(*[wrong, right][::order]), planting.time_for_one_input(3):
        report = fix(f, torch.ones(3))
    found = {x.title: x for x in report.fixes or ()}
    assert (found[wrong.title].verdict, found["Right"].verdict) == ("refused", verdict)
    assert ["values differ" in found[title].reason for title in (wrong.title, "Right")] == [True, False]


# -- the patch -----------------------------------------------------------------------------------------------------------

SCRIPT = """import torch
{}
NAME = "a\fb"


@torch.compile(backend="eager")
def f(x):  # a comment
{}    print( "done" )
    return y + 1   # odd spaces


if __name__ == "__main__":
    f(torch.ones(3))"""


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text.replace("odd spaces\n", "odd spaces\r\n"),  # most lines end with \n
    ],
)
def test_what_is_applied_keeps_layout_line_ends_and_the_byte_order_mark(change: Callable[[str], str], script: Path) -> None:
    before = change(SCRIPT.format("", IF_ELSE)).encode()
    after = change(SCRIPT.format("\ntorch._dynamo.config.reorderable_logging_functions.add(print)\n", WHERE)).encode()
    script.write_bytes(before)
    with torch._dynamo.config.patch(reorderable_logging_functions=set()):
        assert main(["fix", "--fix-seconds", "600", "-o", "report.json", "--apply", "script.py"]) == 0
        assert script.read_bytes() == after
        torch._dynamo.reset()
        assert main(["run", "--expect", "breaks=0,graphs=1", "script.py"]) == 0
        torch._dynamo.reset()
    script.write_bytes(before)
    patch = dynascope.load("report.json").patch()  # type: ignore[union-attr]
    if "\ufeff" not in patch:  # git takes it for a part of the first line
        subprocess.run(["git", "apply", "-"], input=patch.encode(), check=True)
        assert script.read_bytes() == after


OTHER = "@torch.compile\ndef other(x):\n    return x + 1\n\nother(torch.ones(2))\n\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@torch.compile\n{f}", "@torch.compile(dynamic=True)\n{f}"),
        ("@torch.compile(backend='eager')\n{f}", "@torch.compile(backend='eager', dynamic=True)\n{f}"),
        ("{f}\nf = torch.compile(\n    f, dynamic=False,\n)  # é\n", "{f}\nf = torch.compile(\n    f, dynamic=True,\n)  # é\n"),
        (OTHER + "{f}f = torch.compile(f)\n", OTHER + "{f}f = torch.compile(f, dynamic=True)\n"),
        (OTHER + "{f}g, f = f, torch.compile(lambda x, n: g(x, n))\n", None),  # which of them is not certain
        (OTHER + "other(torch.ones(3))\n\n@torch.compile\n{f}", None),  # it is for both
    ],
)
def test_an_argument_of_torch_compile_is_written_where_it_is_called(
    before: str, after: str | None, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    function, calls = "def f(x, n):\n    return x * n\n", "\nf(torch.ones(2), 2.5)\nf(torch.ones(2), 3.5)\n"
    script.write_text("import torch\n" + before.format(f=function) + calls, encoding="utf-8")
    assert main(["fix", "--apply", "script.py"]) == 0
    assert script.read_text(encoding="utf-8") == "import torch\n" + (after or before).format(f=function) + calls
    assert ("needed: torch.compile(..., dynamic=True)" in capsys.readouterr().out) == (after is None)


def test_a_call_that_raises_only_when_repeated_is_left_out(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    function = "@torch.compile(backend='eager')\ndef {0}(x):\n    x = {1}\n    return x if x.sum() > 0 else -x\n\n"
    functions = function.format("f", "x * 2") + function.format("g", "y.grad + 1")
    calls = "f(torch.ones(2))\ny = torch.ones(2, requires_grad=True)\ny.sum().backward()\ng(y)\ny.grad = None\n"
    script.write_text(f"import torch\n\n{functions}{calls}", encoding="utf-8")
    assert main(["fix", "--fix-seconds", "600", "script.py"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "When repeated, a call of g raised TypeError: unsupported operand" in said
    assert "Repeating 1 call after the run, each by itself and without the arguments of its own torch.compile, gives" in said
    assert "1 fix: graph breaks 1 → 0" in said, "not of 2: where the other call raises is no graph break of the program"


# -- nothing stays -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
def test_nothing_of_a_trial_stays(make: Make) -> None:
    made = make("""
        import functools, torch

        calls = []
        scale = torch.ones(3)
        twice = functools.cache(lambda n: 2 * n)

        def helper(x):
            print("helping")
            return x * scale

        def f(x, log=[]):
            calls.append(1)
            log.append(twice(2))
            y = helper(x)
            if y.sum() > 0:
                y = y + torch.rand(3)
            return y + y.sum().item()
        """)
    f, helper, x = made.f, made.helper, torch.ones(3)
    torch.compile(f, backend="eager")(x)
    plain = dynascope.explain(f, backend="eager")(x)
    code, namespace, version = (f.__code__, helper.__code__), names(made), x._version
    entries = [entry.code for entry in torch._dynamo.eval_frame._debug_get_cache_entry_list(f.__code__)]
    lines, calls, functions = linecache.cache.get(str(made.__file__)), len(made.calls), alive(made)
    report = fix(f, x)
    assert report.fixes
    assert report.notes == ["the cache of <lambda> keeps what repeated calls have put into it"], "it cannot be undone"
    assert (f.__code__ is code[0], helper.__code__ is code[1], made.helper is helper) == (True, True, True)
    assert names(made) == namespace
    assert (len(made.calls), len(f.__defaults__[0])) == (calls + 1, calls + 1)  # the call itself
    assert x._version == version
    assert [entry.code for entry in torch._dynamo.eval_frame._debug_get_cache_entry_list(f.__code__)] == entries
    assert [file.name for file in Path(str(made.__file__)).parent.iterdir() if file.suffix] == [f"{made.__name__}.py"]
    assert linecache.cache.get(str(made.__file__)) == lines
    assert len(report.breaks) == len(plain.breaks)
    assert alive(made) == functions


def alive(made: ModuleType) -> list[str]:
    """Names of the functions of a module, with those that the compiler has made of them."""
    gc.collect()
    functions = [g for g in gc.get_objects() if type(g) is FunctionType and g.__code__.co_filename == made.__file__]
    return sorted(g.__name__ for g in functions)


def test_the_users_own_settings_and_warnings_stay_in_force(make: Make) -> None:
    f = make("""
        import warnings
        PATTERN = "[d]+"

        def f(x):
            x = x.sin()
            warnings.warn("careful")
            x = x.cos()
            print("b")
            return x / float(x.abs().max())
        """).f
    torch.set_warn_always(True)  # otherwise eager warns once in a process
    try:
        with torch._dynamo.config.patch(reorderable_logging_functions={warnings.warn}), warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            report = fix(f, torch.ones(2, requires_grad=True))
    finally:
        torch.set_warn_always(False)
    assert report.fix_set.after.breaks == 0, report.fixes
    assert report.fix_set.settings["torch._dynamo.config.reorderable_logging_functions"] == ["builtins.print"]


# -- what ends a search --------------------------------------------------------------------------------------------------


def holds(report: Report) -> None:
    """What a search claims that was cut short at any moment."""
    if report.fix_set.is_complete:
        return
    assert report.fix_set.notes
    if chosen(report):
        assert (report.conditional_fix_set or report.fix_set).after.breaks < report.fix_set.before.breaks
    else:
        assert report.patch() == ""
        with pytest.raises(ValueError, match="no fix was found"), report.fixed():
            pass


@pytest.mark.parametrize("seconds", [0.05, 0.4, 1.6])
def test_an_interrupt_at_any_moment_leaves_nothing(make: Make, seconds: float) -> None:
    """As in a cell, whose run sends an interrupt again that Python would discard, as in a weak reference's callback."""
    made = make(BRANCH)
    fix(made.f, torch.ones(3), fix_seconds=0)
    code, before = made.f.__code__, names(made)
    timer = threading.Timer(seconds, _thread.interrupt_main)
    with contextlib.suppress(KeyboardInterrupt), Interrupts():  # before the search, or after it
        timer.start()
        report = interruptible(fix, made.f, torch.ones(3))
        holds(report)
        assert report.fix_set.is_complete or any("interrupted" in note for note in report.fix_set.notes)
        timer.join()
    assert made.f.__code__ is code
    assert names(made) == before
    assert torch._dynamo.config.suppress_errors is False


@pytest.mark.parametrize("seconds", [0, 0.5, 2])
def test_what_was_found_until_the_time_was_over(make: Make, seconds: float) -> None:
    """A step that only uncovers other breaks is no fix, and nothing is chosen that was not confirmed."""
    f = make("""
        import sys

        def f(x):
            for i in range(2):
                print(i)
                x = x * 2
                sys.getrefcount(x)
            return x
        """).f
    report = fix(f, torch.ones(2), fix_seconds=seconds)
    holds(report)
    assert chosen(report) == []


def test_a_loop_that_other_inputs_make_endless(make: Make) -> None:
    f = make("import torch\n\ndef f(x):\n    while x.abs().sum() < 100:\n        x = x * 2\n    return x\n").f
    with torch.no_grad(), planting.longest_call(1):
        report = fix(f, torch.ones(3))
    assert (report.fix_set.is_complete, report.fix_set.after.breaks) == (True, 0), [str(fix) for fix in report.fixes]


def test_a_search_that_fails_keeps_the_report(make: Make) -> None:
    with planting.failing_search(RuntimeError("a fault of ours")):
        report = fix(make(BRANCH).f, torch.ones(3))
    assert report.summary.breaks == 1
    assert "the calls were not tried again: RuntimeError: a fault of ours" in report.notes
    assert dynascope.last() is report


def test_a_kind_of_change_that_fails_is_left_out(make: Make) -> None:
    with planting.failing_source(RecursionError()):
        report = fix(make(BRANCH.replace("def", "@torch._dynamo.error_on_graph_break(True)\ndef")).f, torch.ones(3))
    assert report.fix_set.after.breaks == 0
    assert any(note.startswith("No change by ") and "RecursionError" in note for note in report.fix_set.notes)


LOSSY = f"""
def rounded(x, by):
    return x * by if torch.compiler.is_compiling() else x

def f(x):
    x = rounded(x, 1.01)
{IF_ELSE}    return y
"""


def test_a_fix_that_the_backend_gets_wrong_for_the_recorded_inputs_is_not_said_to_be_a_matter_of_opinion(make: Make) -> None:
    def backend(graph: Any, inputs: Any) -> Any:
        is_wrong = "where" in str(graph.graph)
        return lambda *args: tuple(value + is_wrong for value in graph(*args))

    torch._dynamo.register_backend(backend, name="wrong_where")  # type: ignore[attr-defined]
    program = make("import torch\n\ndef f(x):\n    return x * 2 if x.sum() > 0 else x * 3\n")
    report = dynascope.explain(program.f, backend="wrong_where", fix=True)(torch.ones(3))
    words = fix_words(report.fixes[0])
    assert words.startswith(
        "Choose with torch.where: refused, compiled with wrong_where, with the recorded inputs: values differ"
    )
    assert "If you know" not in words


def test_where_the_unchanged_program_differs_from_eager_a_fix_agrees_with_that(make: Make) -> None:
    [done] = [x for x in fix(make(LOSSY).f, torch.ones(3)).fixes or () if x.chosen]
    assert (done.title, done.verdict) == ("Choose with torch.where", "verified")
    assert done.reason.startswith("agrees with eager (or with the unchanged compiled program, where that differs from eager)")
    assert "when it is compiled with aot_eager (with the recorded inputs: values differ: the value: " in done.reason
    with planting.only(planting.Planted("wrong", IF_ELSE, "    y = x * 2.01\n")):
        [refused] = fix(make(LOSSY).f, torch.ones(3)).fixes or ()
    assert refused.verdict == "refused"
    fails = make("def f(x):\n    return torch.nn.functional.mse_loss(x, x * 2) * x.sum().item()\n")
    [done] = [x for x in fix(fails.f, torch.ones(3, requires_grad=True)).fixes or () if x.chosen]
    assert done.verdict == "verified"  # for empty tensors, the unchanged program fails as well


def test_a_fix_of_a_program_under_autocast_is_judged_by_its_precision(make: Make) -> None:
    program = """
        linear = torch.nn.Linear(8, 8)
        def f(x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = linear(x)
            print("mean", y.float().mean().item())
            z = y.float() * (1.003 if torch.compiler.is_compiling() else 1.0)
            return z
    """
    report = fix(make(program).f, torch.ones(4, 8))
    assert [x.verdict for x in report.fixes or () if x.chosen] == ["verified"] * len(report.fix_set.fixes)
    assert report.fix_set.after.breaks == 0
    assert not [x for x in report.fixes or () if "differs from eager" in x.reason]


@pytest.mark.parametrize("lost", [(), ("cpu",)])
def test_what_would_make_a_device_unusable_only_fails_uncompiled(
    make: Make, monkeypatch: pytest.MonkeyPatch, lost: tuple[str, ...]
) -> None:
    failed_uncompiled, run_once = set[bool](), Trials._run

    def watched(self: Trials, call: Any, entry: Any, variation: Any) -> Any:
        observed = run_once(self, call, entry, variation)
        if observed.error is not None:
            failed_uncompiled.add(entry is call.target)
        return observed

    monkeypatch.setattr(Trials, "_run", watched)
    monkeypatch.setattr(tensors, "LOST", lost)
    module = make("""
        def f(x):
            if (x > 3).any():
                raise ValueError("large")
            return x + 1
        """)
    assert "eager raises ValueError" in str(fix(module.f, torch.ones(3)))
    assert (False in failed_uncompiled) is (not lost)
