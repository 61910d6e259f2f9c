"""What changed between two reports, and what a report is expected to be."""

from __future__ import annotations

import pytest
import torch
from msgspec.structs import replace
from observed import broken, seen

from dynascope.compiler.driver import explain
from dynascope.compiler.report import Break, Hit, InputRun, Recompile, Report
from dynascope.compiler.report.comparison import ExpectationFailed, parse_expectations


def found(line: int, source: str, outcome: str = "resumed", allowed: bool | None = False, column: int | None = None) -> Break:
    return Break(
        id=f"b{line}", file="<cell>", cell=1, line=line, column=column, function="f", type="t", source=source, outcome=outcome,  # type: ignore[arg-type]
        allowed=allowed, hits=[Hit(frame="f0", line=line, outcome=outcome)],  # type: ignore[arg-type]
    )  # fmt: skip


def test_not_met_new_and_moved_breaks_are_told_apart() -> None:
    before = Report(breaks=[found(2, "print(x)"), found(5, "log(x)"), found(9, "y.item()")])
    difference = Report(breaks=[found(4, "print(x)"), found(5, "log(x)"), found(12, "save(x)")]).diff(before)
    assert [b.source for b in difference.not_met] == ["y.item()"]
    assert [b.source for b in difference.new] == ["save(x)"]
    assert [(a.line, b.line) for a, b in difference.moved] == [(2, 4)]
    assert difference.summary == "1 not met · 1 newly met · 1 moved"
    assert difference.to_dict()["lines"] == [
        "newly met: In[1]:12 save(x)", "not met: In[1]:9 y.item()", "moved: In[1]:4 print(x) (before: line 2)",
    ]  # fmt: skip
    two = Report(breaks=[found(2, "log(x); log(x)", column=c) for c in (0, 8)])
    assert Report(breaks=[found(9, "y")]).diff(two).lines[1:] == [f"not met: In[1]:2:{c} log(x); log(x)" for c in (1, 9)]


def test_a_break_that_moved_only_within_its_line_is_not_worth_a_mention() -> None:
    before, now = (Report(breaks=[found(2, "log(x)", column=c), found(5, "log(x)", column=c)]) for c in (4, 8))
    assert now.diff(before).lines == ["the same graph breaks and counts"]
    now.breaks[0].outcome = "raised"
    assert now.diff(before).lines == ["now raised: In[1]:2 log(x) (before: resumed)"]
    now.breaks = [found(2, "log(x)", column=8), found(7, "log(x)", column=8)]
    assert now.diff(before).lines == ["moved: In[1]:7 log(x) (before: line 5)"]


def test_of_two_breaks_on_one_line_the_one_whose_column_is_gone_is_not_met() -> None:
    before = Report(breaks=[found(2, "log(x); log(y)", column=c) for c in (4, 12)])
    assert Report(breaks=[found(2, "log(x); log(y)", column=12)]).diff(before).not_met == before.breaks[:1]


def test_a_break_that_is_now_allowed_or_refused_has_changed() -> None:
    before = Report(breaks=[found(2, "print(x)")])
    allowed = Report(breaks=[found(2, "print(x)", allowed=True)])
    refused = Report(breaks=[found(2, "print(x)", "raised")])
    assert allowed.diff(before).lines == ["now allowed: In[1]:2 print(x) (before: not allowed)"]
    assert Report(breaks=[found(2, "print(x)", allowed=None)]).diff(before).lines == ["the same graph breaks and counts"]
    assert Report(breaks=[found(2, "print(x)", allowed=None)]).diff(allowed).lines == ["the same graph breaks and counts"]
    assert refused.diff(before).lines == ["now raised: In[1]:2 print(x) (before: resumed)"]
    assert refused.diff(allowed).lines == ["now raised and not allowed: In[1]:2 print(x) (before: resumed and allowed)"]
    skipped = Report(breaks=[found(2, "print(x)", "skipped", allowed=True)])
    assert allowed.diff(skipped).lines == ["now resumed: In[1]:2 print(x) (before: skipped)"]


def test_without_any_graph_an_expectation_says_that_nothing_was_compiled() -> None:
    with pytest.raises(AssertionError, match=r"^expected breaks<=1,recompiles=0, but nothing was compiled\n  add a call$"):
        Report(notes=["nothing was compiled: add a call"]).expect("breaks<=1,recompiles=0")
    Report().expect("graphs=0,breaks=0")
    report = explain(lambda number: number, backend="eager")(torch.ones(1))
    with pytest.raises(AssertionError, match=r"found 0\n  no graph was made of the code that ran$"):
        report.expect(graphs=1)


def test_a_break_is_not_met_where_it_was_fixed_and_where_a_run_did_not_come_to_it() -> None:
    def f(x: torch.Tensor, breaks: bool) -> torch.Tensor:
        if breaks:
            torch._dynamo.graph_break()
        return x + 1

    before, now = (explain(f, backend="eager")(torch.ones(2), breaks) for breaks in (True, False))
    difference = now.diff(before)  # the break is still in the code
    assert (difference.summary, difference.not_met) == ("1 not met", before.breaks)
    assert difference.lines[0].startswith("not met: test_diff_and_expect.py:")
    refused = explain(f, backend="eager", fullgraph=True)(torch.ones(2), True)  # it would have come to the rest
    assert (before.diff(refused).new, refused.diff(before).not_met) == ([], []), "it has the same break"
    later = Report(breaks=[*before.breaks, found(2, "log(x)")])
    ended = "the earlier run ended with an error: a break that it does not have is not known to be new"
    assert (later.diff(refused).new, later.diff(refused).lines[0]) == ([], ended)


def test_breaks_of_code_that_was_compiled_before_a_run_are_neither_gone_nor_new() -> None:
    @torch.compile(backend="eager")
    def f(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    first, again = (seen(lambda: f(torch.ones(2))) for _ in range(2))
    difference = again.diff(first)
    assert difference.not_met == first.breaks
    known = "this run ran code that was compiled before it: a break that it does not have is not known to be gone"
    assert difference.lines[0] == known
    nothing = "this run compiled nothing: a break that it does not have is not known to be gone"
    assert Report().diff(first).lines[0] == nothing
    assert (first.diff(again).new, first.diff(again).not_met) == ([], [])


def test_another_number_of_graphs_and_the_times() -> None:
    split = explain(broken, backend="eager")(torch.ones(2))
    whole = explain(whole_one, backend="eager")(torch.ones(2))
    assert "1 graph (before: 2)" in whole.diff(split).lines
    assert "2 graphs (before: 1)" in split.diff(whole).lines
    assert whole.diff(split).to_dict()["times"].startswith("compiled in ")
    split.inputs = [InputRun(arguments="x", frames=[frame.id for frame in split.frames])]
    assert whole.diff(split).not_met == [], "what only inputs met is not the program's own"


def whole_one(x: torch.Tensor) -> torch.Tensor:
    return (x + 1) * 2


def test_expectations_tell_what_was_found_and_where() -> None:
    report = explain(broken, backend="eager")(torch.ones(2))
    report.expect("graphs=2,breaks<=1", resumes=1, skipped=0, recompiles=0, ops=">=2")
    with pytest.raises(ExpectationFailed) as caught:
        report.expect(breaks=0, graphs=1)
    line = broken.__code__.co_firstlineno + 2
    message = str(caught.value)
    assert "expected breaks=0, found 1" in message
    assert f"observed.py:{line} torch._dynamo.graph_break()" in message
    assert f"expected graphs=1, found 2\n  g0 in broken at observed.py:{line - 1}, 1 op\n" in message
    report = Report.from_dict(report.to_dict())
    resumed = next(f for f in report.frames if f.kind == "resume")
    report.frames.append(replace(resumed, id="f9", recompile_of=resumed.id))
    with pytest.raises(ExpectationFailed, match="expected resumes=0, found 1") as caught:
        report.expect(resumes=0)
    assert str(caught.value).count("resume in broken") == 1
    report.recompiles.append(Recompile(frame="f9", of=resumed.id, reasons=["x"]))
    report.summary.recompiles = 1
    with pytest.raises(ExpectationFailed, match="expected recompiles=0, found 1\n  resume in broken: x"):
        report.expect(recompiles=0)


@pytest.mark.parametrize("text", ["", "graphs", "graphs=two", "nothing=1", "graphs<2", "compile_seconds=1"])
def test_what_cannot_be_expected_is_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="expect") as caught:
        parse_expectations(text)
    assert "\n" not in str(caught.value)


def test_a_term_that_cannot_be_expected_is_answered_with_all_that_can() -> None:
    with pytest.raises(ValueError, match=r"check=agrees, or NAME=NUMBER.*graphs, ops, breaks.*unexpected"):
        parse_expectations("graph=1")


def test_the_first_run_has_no_previous_report_to_compare_with() -> None:
    with pytest.raises(ValueError, match=r"^diff takes an earlier report; .* is None unless the same cell ran before$"):
        Report().diff(Report().previous)


def test_the_previous_report_is_beside_the_data() -> None:
    first, second = Report(), Report()
    second.previous = first
    assert "previous" not in second.to_dict()
    assert Report.from_dict(second.to_dict()).previous is None
