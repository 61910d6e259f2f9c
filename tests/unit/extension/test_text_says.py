"""The text of a report: why code runs eagerly, what made a break an error, what ended a call."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from observed import broken, seen

import dynascope
from dynascope.compiler.lab import recorded_call
from dynascope.widgets.features.breaks import advice
from dynascope.widgets.model import view_model


def loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        print(end="")
    return x + 1


def trying(x: torch.Tensor) -> torch.Tensor:
    try:  # noqa: SIM105
        torch._dynamo.graph_break()
    except ValueError:
        pass
    return x + 1


def region(x: torch.Tensor) -> torch.Tensor:
    with torch._dynamo.error_on_graph_break(True):
        torch._dynamo.graph_break()
    return x


class Breaks(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x.sin().absent()


@torch.compiler.disable
def fails(x: torch.Tensor) -> torch.Tensor:
    raise OSError("disk")


def calls(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    y = fails(x)
    return y + 1


def resumes_then_fails(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return fails(x + 1)


def copies_then_fails(xs: list[torch.Tensor]) -> torch.Tensor:
    return fails(copy.deepcopy(xs)[0])


def text(f: Callable[..., Any], **settings: Any) -> str:
    """The report as text, on one line; an error of the user's own is expected."""
    try:
        report = dynascope.explain(f, backend="eager", **settings)(torch.ones(3))
    except (OSError, AttributeError):
        report = dynascope.last()
    return " ".join(str(report).split())


def raises(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] == 3:
        raise OSError("disk")
    return x


def raises_in_a_with(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        raise OSError("disk")


def sparse(x: torch.Tensor) -> torch.Tensor:
    weights = torch.ones(3, 3).to_sparse()
    return weights @ x


GRU = torch.nn.GRU(3, 3)


def recurrent(x: torch.Tensor) -> torch.Tensor:
    return GRU(x.view(1, 1, 3))[0]


def tries_a_call(x: torch.Tensor) -> torch.Tensor:
    try:
        with torch.no_grad():
            return breaks(x)
    except ValueError:
        return x


def breaks(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    raise ValueError(x.shape)


def test_no_graph_break_in_torchs_own_code_is_said_to_be_the_users() -> None:
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def steps(x: torch.Tensor) -> torch.Tensor:
        optimizer.step()
        return model(x)

    words = text(steps)
    assert "torch's own code asks for it" in words
    assert "User-inserted" not in words


def test_why_a_function_is_skipped() -> None:
    words = text(loop)
    assert "because of the break at test_text_says.py" in words
    assert "loop" in words.partition("because of the break at ")[2]
    for function in (trying, tries_a_call):
        line = function.__code__.co_firstlineno + 1
        assert text(function).count(f": in the `try` at test_text_says.py:{line}") == 1


@pytest.mark.parametrize("function", [raises, raises_in_a_with, sparse, recurrent])
def test_no_loop_with_or_try_is_blamed_that_did_not_skip_the_function(function: Callable[..., Any]) -> None:
    reason = text(function).partition("– skipped frame ")[2].partition("because of the break at ")[2]
    assert reason
    assert not [word for word in ("loop", "with", "try") if word in reason.replace("`", " ").split()]
    assert [h.block for b in dynascope.last().breaks for h in b.hits if h.block is not None] == []


def test_what_helps_where_a_loop_or_a_try_skips_a_function() -> None:
    for function, moved in ((loop, "line"), (tries_a_call, "call that leads here")):
        report = dynascope.explain(function, backend="eager", second_call=True)(torch.ones(3))
        words = f"move the {moved}, with any loop, `with` or `try` around it, into a function of its own"
        assert [words in step for step in advice(report, report.breaks[0])].count(True) == 1
        assert "other code" not in str(report).partition("✂")[0]  # not what to do first
    # the rest of it only raises
    assert "Raise it outside of the compiled code, or catch it inside." in advice(report, report.breaks[-1])
    report = dynascope.explain(lambda x: x + len(f"{x.sum():.2f}"), backend="eager")(torch.ones(3))  # only tracing raises
    assert "inside; if only tracing raises it, move the line out." in advice(report, report.breaks[0])[0]
    text(raises)
    assert [step for step in advice(dynascope.last(), dynascope.last().breaks[0]) if "function of its own" in step] == []


def bad_shapes(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    return x @ torch.ones(5, 5)


def test_an_error_of_the_code_itself_is_not_a_maybe(shell) -> None:
    for fullgraph in (False, True):  # with fullgraph, eager code is not run
        with pytest.raises(RuntimeError):
            dynascope.explain(bad_shapes, backend="eager", fullgraph=fullgraph)(torch.ones(3, 3))
        words = " ".join(str(dynascope.last()).split())
        assert ("→ The line raised an error outside of graphs: correct it, or, if it raises none" in words) is not fullgraph
        assert ("may result in an error" in words) is fullgraph
    with pytest.raises(RuntimeError):  # no line of the user's is at fault, or leads there
        dynascope.explain(torch.nn.Sequential(torch.nn.Linear(3, 4)), backend="eager")(torch.ones(2, 2))
    assert "→ The call that leads here raised an error when it was traced: correct it" in str(dynascope.last())
    words = str(shell.report("%%compile", "z = x + 1", "try: w = z @ torch.ones(5, 5)", "except RuntimeError: w = None"))
    assert "in the `try` at" not in " ".join(words.split()), "nor is the frame skipped because of it"


@torch.library.custom_op("text_says::plus", mutates_args=())
def plus(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def steps(n: int) -> int:
    print(end="")
    return n


def calls_an_operation(x: torch.Tensor) -> torch.Tensor:
    y: torch.Tensor = plus(x)
    return y


def test_a_call_that_fails_in_torchs_code_is_to_be_corrected_and_a_break_before_it_did_not_fail(shell):
    shell("a, b = torch.nn.Linear(3, 3), torch.nn.Linear(4, 4)")
    body = "    max(x, a(x), key=lambda t: t.sum().item())", "    return b(x)"
    failed, *others = shell("%%compile --view text", "def f(x):", *body, "f(x)").text.split("✂ graph break at ")[1:]
    assert "→ The line that leads here raised an error outside of graphs: correct it" in " ".join(failed.split())
    assert "raised an error outside" not in " ".join("".join(others).split())
    shell("def log(s): print(s)", "def f(x):", "    log('a')", "    return x.view(7)")  # log has no frame of its own
    words = shell("%%compile --view text", "f(torch.ones(3))").text
    assert words.count("raised an error outside") == 1
    words = shell("%%compile --view text", "import json", "def f(x):", "    return json.dumps(x)", "f(torch.ones(3))").text
    assert "✗ TypeError at In[" in words  # not in Python's module, of which no line is to be corrected either
    assert "→ The line raised an error" not in words


def test_a_break_in_a_package_has_the_users_line_and_no_error_that_did_not_come() -> None:
    words = text(calls_an_operation)
    line = calls_an_operation.__code__.co_firstlineno + 1
    assert f"reached from test_text_says.py:{line} y: torch.Tensor = plus(x)" in words
    assert "may result in an error" not in words, "it ran, and raised none"
    facts = view_model(dynascope.last())["details"][dynascope.last().breaks[0].id]["facts"]
    assert ["reached from", f"test_text_says.py:{line}", ""] in facts
    words = " ".join(text(lambda x: x + steps(2)).split())
    assert "in steps (resumed in <lambda>; steps runs eagerly: Dynamo found no tensor passed to it)" in words
    for nested in (lambda x: broken(x + 1) * 2, lambda x: x + steps(2)):
        assert "runs eagerly" not in text(nested, nested_graph_breaks=True)


def test_what_made_a_break_an_error() -> None:
    assert "(stopped here, because of fullgraph=True)" in text(trying, fullgraph=True)
    assert " in Breaks.forward (stopped here" in text(lambda x: Breaks()(x), fullgraph=True)
    assert "(stopped here, because of error_on_graph_break=True of this run)" in text(trying, error_on_graph_break=True)
    line = region.__code__.co_firstlineno + 1
    assert f"(stopped here, because of error_on_graph_break=True of region test_text_says.py:{line})" in text(region)


def test_a_break_after_which_an_error_ended_the_call_is_not_said_to_be_resumed() -> None:
    assert "(compiled up to here)" in text(calls)
    _, asked, failed = text(lambda x: resumes_then_fails(x) * 2).split("✂ graph break at ")
    assert "in resumes_then_fails (resumed, seen from 2 frames)" in asked
    assert "(compiled up to here)" in failed
    assert "→ The line raised an error outside of graphs" in failed
    copied = text(lambda x: copies_then_fails([x])).rpartition("✂ graph break at copy.py")[2]
    assert "(resumed in copies_then_fails, seen from 2 frames)" in copied


def test_a_line_whose_error_is_of_a_graph_is_not_said_to_raise_it_uncompiled(shell):
    lines = "%%compile --view text", "def f(i): return torch.compiler.disable(abs)(x[i])", "f(torch.tensor([1]))"
    words = shell(*lines, "f(torch.tensor([7]))").text
    assert "✗ IndexError at In[" in words
    assert "raised an error outside" not in words
    body = "def f(x):", "    for _ in range(2):", "        if x.sum() > 0: raise ValueError('large')", "    return x"
    assert "→ Check it outside of the compiled code" in shell("%%compile --view text", *body, "f(torch.ones(3))").text


@pytest.mark.parametrize("stance", ["force_eager", "eager_on_recompile"])
@pytest.mark.parametrize("when", ["around", "inside"])
def test_why_nothing_was_compiled(when: str, stance: Any) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        with torch.compiler.set_stance(stance):
            return torch.compile(loop, backend="eager")(x)

    if when == "around":
        with torch.compiler.set_stance(stance):
            words = text(loop)
            report = dynascope.explain(loop, backend="eager", check=True, profile=3)(torch.ones(3))
        assert (report.check, report.profile) == (None, None)
    else:
        words = " ".join(str(seen(lambda: program(torch.ones(3)))).split())
    assert f'note: calls ran eagerly, because torch.compiler.set_stance("{stance}") was in force' in words


@pytest.mark.parametrize("option", ["", " --fullgraph"])
@pytest.mark.parametrize("condition", ["x.ndim == 2, 'want two dimensions'", "owner.absent", "owner.few"])
def test_a_false_assertion_is_no_condition_on_data(shell, option, condition):
    shell("class owner: absent, few = None, []")
    shell(f"%%compile{option}", "def f(x):", f"    if 1: assert {condition}", "    return x + 1", "f(x)")
    report = dynascope.last()
    assert "AssertionError: the assertion is false.\n    → If it is meant to hold, change what is passed, or" in str(report)
    assert "torch.cond" not in str(report)


def test_a_false_assertion_that_a_caller_may_catch_is_not_said_to_be_resumed_or_to_end_the_call(shell):
    lines = "def f(x, n):", "    assert n > 2, 'small'", "    return x + n"
    shell("%%compile", *lines, "try: f(x, 1)", "except AssertionError: pass", "f(x, 5)")
    report = dynascope.last()
    assert report.summary.graphs == 1
    assert "(AssertionError is raised here)" in str(report)
    lines = "def f(x):", "    assert x.sum() > 0, 'no'", "    assert x.shape[0] == 3", "    return x", "f(torch.ones(3))"
    shell("%%compile", *lines, "try: f(torch.ones(4))", "except AssertionError: pass")
    assert "(AssertionError is raised here)" in str(dynascope.last())  # where Dynamo cannot resume


def test_statements_that_were_not_compiled_are_named_by_their_lines(shell):
    lines = "a = torch.ones(2, 3) * 2", "del a", "b = torch.ones(2, 3)", "try: c = b[:, 7]", "except IndexError: c = None"
    report = shell.report("%%compile", *lines)
    assert report.summary.graphs == 1
    assert report.notes[0].startswith("a compile of the cell's statements (lines 4\N{EN DASH}6) failed, and it ran")


def test_a_repeated_call_is_named_and_what_it_leaves_out(shell, monkeypatch):
    lines = ["%%compile --check --profile 1", "def f(x): return x + 1", "def g(x): return x * 2", "g(f(torch.ones(3)))"]
    report = shell.report(*lines)
    assert "check: this was the last call of g: no other was compared." in report.notes
    assert " a call of `g` (median" in str(report)
    alone = shell.report(*lines[:2], "f(torch.ones(3))")
    assert not any("this was the last call" in note for note in alone.notes)
    twice = shell.report(*lines[:2], "f(f(torch.ones(3)))")
    assert "check: this was the last call: no other was compared." in twice.notes
    more = "f(torch.ones(3)); torch._dynamo.reset()", "f(torch.ones(3))\ntry: f(None)\nexcept TypeError: pass"
    for calls, why in zip(more, ("torch._dynamo.reset() was called after the call", "the last call raised"), strict=True):
        notes = [note for note in shell.report(*lines[:2], calls).notes if note.startswith(("check", "profile"))]
        assert [note.split(": ")[2].startswith(why) for note in notes] == [True, True], notes
    monkeypatch.setattr(recorded_call, "MOST_COPIED", 1)  # as of a loop with a smaller last batch
    for calls in ("[f(torch.ones(n)) for n in (3, 4)]", "f(torch.ones(3)); torch._dynamo.reset(); f(torch.ones(3))"):
        last = shell.report("%%compile --second-call", "def f(x): return print(x) or x", calls)
        assert "second call: not traced: not all that was compiled can be repeated, only the first calls" in last.notes[-1]
    # after how many calls compiling pays off is known only where nothing else was compiled
    assert [r.profile.verdict.compile_seconds is not None for r in (report, alone)] == [False, True]


@dataclass
class Printing:
    x: torch.Tensor

    def __post_init__(self) -> None:
        print(end="")


def test_a_break_below_code_made_from_text_is_not_said_to_come_from_a_line_that_nobody_can_read() -> None:
    words = text(lambda x: Printing(x + 1).x)
    assert "in Printing.__post_init__" in words
    assert "<string>" not in words
