"""What a report says about fixes: which breaks and recompiles they remove, why others are not taken, and what calls take."""

from __future__ import annotations

import logging
import math
import random
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dynascope
from dynascope.compiler.lab.experiment import Observation
from dynascope.compiler.lab.fix.candidate import problems_of
from dynascope.compiler.lab.fix.difference import differences
from dynascope.compiler.lab.fix.improvement import gain, why_worse_elsewhere
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.search import Search
from dynascope.compiler.lab.fix.trial import TrialResult
from dynascope.compiler.lab.fix.verification import Verification, Verifier
from dynascope.compiler.report import Fix, Report, time_text


def fix(function: Any, *args: Any, **settings: Any) -> Report:
    return dynascope.explain(function, fix=True, **{"backend": "eager", "fix_seconds": 600, **settings})(*args)


def prints(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    print(y.sum())
    return y + 1


def test_a_caller_may_catch_what_is_raised_at_a_break() -> None:
    def catches(x: torch.Tensor) -> torch.Tensor:
        try:
            return prints(x)
        except ValueError:
            return x

    [b] = dynascope.explain(catches, backend="eager")(torch.ones(3)).breaks
    found = problems_of(b, lambda file: Path(file).read_text(encoding="utf-8"))
    assert [problem.in_try for problem in found] == [True, True]


def test_a_call_has_one_time() -> None:
    """In the run time, in the verdict and before a fix."""
    report = fix(prints, torch.ones(3), profile=2)
    known, after = report.profile.verdict.compiled_seconds, report.fix_set.after.seconds
    assert known == report.profile.median_seconds == report.fix_set.before.seconds
    text = str(report)
    within_noise = f"about {time_text(known)} a call before and after"
    low, high = report.profile.spread
    is_rough = high > 1.5 * low or report.profile.verdict.payback == "unclear"
    assert f"{time_text(known)} → {time_text(after)} a call" in text or within_noise in text or is_rough
    assert f"run time: {time_text(known)} a call (median of warm calls in a loop" in text
    assert f"Under torch.compile, it takes {time_text(known)}" in text
    assert f"under torch.profiler ({time_text(report.profile.profiled_seconds or 0)} a call)" in text


def test_what_is_not_compiled_for_another_reason_than_a_break_is_not_tried() -> None:
    def no_backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        raise OSError("no compiler")

    text = str(fix(lambda x: x + 1, torch.ones(3), backend=no_backend))
    assert "no fix was tried\nnote: No change was tried: what dynascope itself compiles has no graph break" in text


def selects(x: torch.Tensor) -> torch.Tensor:
    chosen = x[x > 0]
    if chosen.numel() == 0:
        return x
    return x - chosen.mean()


def test_a_change_that_only_moves_a_break_is_no_fix() -> None:
    report = fix(selects, torch.randn(8))
    assert report.fixes
    assert not any(x.chosen for x in report.fixes)
    text = str(report)
    assert "no fix was found\n" in text
    assert "✓" not in text
    titles = [x.title for x in report.fixes if x.break_]
    assert len(titles) == len(set(titles)) > 1, "a change that is tried later, after all, is listed once"
    [line] = {x.reason for x in report.fixes if x.break_ and x.after.breaks == 1}
    assert re.match(r"no fix was found for what it leads to: it only moves the graph break to test_fix_reports.py:\d+ ", line)
    assert report.patch() == ""


def clipped(x: torch.Tensor) -> torch.Tensor:
    with dynascope.region(error_on_graph_break=False):
        if (peak := x.max()) > 1:
            x = x / len("%.2f" % peak.item())  # noqa: UP031
        return x


@torch.no_grad()
def clips_twice(x: torch.Tensor) -> torch.Tensor:
    return clipped(x * 3) + clipped(x * 2)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="two breaks on one line: needs Python's columns")
def test_a_change_with_which_a_strict_run_ends_earlier_is_no_fix() -> None:
    """With it, the first call of `clipped` raises the exception that only a recompile raised before."""
    report = fix(clips_twice, torch.tensor([1, 1]), error_on_graph_break=True)
    captured = {x.title: x.reason for x in report.fixes or () if not x.chosen}
    assert captured["Capture numbers that come out of tensors"].partition(": ")[2].startswith("the run ends earlier then, and")


def draws_and_prints(x: torch.Tensor) -> torch.Tensor:
    y = x * x.sum().item()
    print(y * random.random())
    return y


def test_a_change_with_which_a_strict_run_ends_where_it_ended_is_no_fix() -> None:
    """It ends before the `print` that could move behind the graph; and fullgraph captures numbers as it is."""
    reports = [fix(draws_and_prints, torch.ones(3), **{how: True}) for how in ("fullgraph", "error_on_graph_break")]
    assert [[x.title for x in r.fixes or () if x.chosen] for r in reports] == [[], ["Capture numbers that come out of tensors"]]


def moves_to_an_assert(x: torch.Tensor) -> torch.Tensor:
    for i in range(2):
        print(i)
        assert x.sum().item() > 0
        x = x + 1
    return x


def test_a_change_that_moves_a_break_to_one_with_a_conditional_fix_is_a_fix_under_that_condition() -> None:
    report = fix(moves_to_an_assert, torch.ones(3))
    first, second = (x for x in report.fixes or () if x.chosen)
    assert (first.title, first.verdict, second.verdict) == ("Run print() after the graph", "conditional", "conditional")
    assert first.condition == f"The same as for “{second.title}”, together with which it was compared"
    assert (second.condition or "").startswith("With all of them: "), "it was compared with the first change in force"
    assert report.patch() == ""
    assert "reorderable_logging_functions.add(print)" in report.patch(conditional=True)
    assert [x.title for x in report.fixes or ()].count(second.title) == 1
    shown = f"Fix: Run print() after the graph (conditional): {first.condition}; no known count changes with it alone."
    assert shown in " ".join(str(report).split())


def moves(x: torch.Tensor) -> torch.Tensor:
    for i in range(2):
        print(i)
        x = x * x.sum().item()
    return x


def test_a_break_that_moves_before_it_is_removed() -> None:
    report = fix(moves, torch.ones(3))
    first, second = (x for x in report.fixes or () if x.chosen)
    assert (first.removes, second.removes) == ([report.breaks[0].id], [])
    assert re.search(r"A graph break appears at \S+:\d+ \(x = x \* .*\), which a later change removes$", first.reason)
    assert all(words in str(report) for words in ("2 fixes: graph breaks 1 → 0", f"✓ {second.title}: "))


def tells(x: torch.Tensor, is_told: bool) -> str:
    d = {"a": x.sin(), "b": x.cos()}
    if is_told:
        print("of", list(d))
    return max(d, key=lambda k: d[k].sum())  # type: ignore[arg-type, return-value]


def tells_twice(x: torch.Tensor) -> str:
    return tells(x, False) + tells(x, True)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code is found again by its columns")
def test_a_break_in_code_that_a_change_moves_stays_and_the_other_one_is_removed() -> None:
    report = fix(tells_twice, torch.ones(3))
    what = {b.id: b.source.strip() for b in report.breaks} | {f.id: f.name for f in report.frames}
    [(title, *gone)] = [(x.title, *(what[id] for id in x.removes)) for x in report.fixes or () if x.chosen]
    assert (title, gone) == ("Write messages after the last tensor operation", ['print("of", list(d))', "tells"])
    assert "1 fix: graph breaks 2 → 1" in str(report)


LOGGER = logging.getLogger("t")


def logs(x: torch.Tensor) -> torch.Tensor:
    LOGGER.info("mean %.4f", x.mean().item())
    return x * 2


def averages(x: list[torch.Tensor]) -> torch.Tensor:
    norms = [one.norm().item() for one in x]
    return x[0] * float(np.array(norms).mean())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="two breaks on one line: needs Python's columns")
def test_a_break_that_one_change_moves_is_removed_by_the_one_after_which_it_is_gone() -> None:
    first, *_, last = (x.removes for x in fix(logs, torch.ones(3)).fixes or () if x.chosen)
    assert (first, last) == (["b0"], ["b1"])
    both = fix(averages, [torch.ones(3), torch.ones(2)])
    assert [(x.removes, x.moves, "fix moves" in str(both)) for x in both.fixes or () if x.chosen] == [(["b0"], ["b1"], True)]


def tick() -> None:
    """Count in a place that replays do not restore; at the number that the test has set, the user presses Ctrl-C."""
    counter = vars(sys)["ticks of the test"]
    counter["now"] += 1
    if counter["now"] == counter["end"]:
        raise KeyboardInterrupt


def chooses(x: torch.Tensor) -> torch.Tensor:
    if not torch.compiler.is_compiling():  # when the comparison calls it in eager mode
        tick()
    random.random()
    if x.sum() > 0:
        return x * 2
    return x * 3


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")
@pytest.mark.parametrize("end", [0, 1, 12])
def test_each_change_that_is_not_taken_says_truly_why(monkeypatch: pytest.MonkeyPatch, end: int) -> None:
    monkeypatch.setitem(vars(sys), "ticks of the test", {"now": 0, "end": end})
    report = fix(chooses, torch.ones(3))
    assert report.fix_set.is_complete == (end == 0)
    chosen = [x.title for x in report.fixes or () if x.chosen]
    verdicts = [x.verdict for x in report.fixes or () if x.chosen]
    assert verdicts == (["verified"] if end == 0 else [] if end == 1 else ["conditional"])
    for x in report.fixes or ():
        assert x.reason
        if x.verdict == "untried":
            taken = [f"not needed: “{title}” holds" for title in chosen]
            assert x.reason in (taken or ["the search was interrupted", "not verified: the search was interrupted"])
    assert ("is verified" in str(report)) <= bool(chosen)
    assert ("No change was tried" in [x.title for x in report.fixes or ()]) == (end != 1), "for what is called there"


def asks_a_number(x: torch.Tensor) -> torch.Tensor:
    number = x.sum().item()
    return x + number if number > 2 else x - number


def test_a_setting_is_not_called_unnecessary_for_the_sake_of_a_change_that_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Fix(id="x99")
    monkeypatch.setattr(Search, "_complete", lambda s: (s._refuse(other, "it is slower"), s._drop_from(-1, "it differs")))
    reasons = [x.reason for x in fix(asks_a_number, torch.ones(3)).fixes or ()]
    assert "it differs" in reasons
    assert other.reason == "it is slower; tried on top of “Keep the number a tensor; choose with torch.where” (dropped later)"
    assert "left out for others, which fail" in reasons  # not “not needed”


def test_a_setting_is_dropped_though_what_does_without_it_needs_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def verify(self: Verifier, plan: Plan, *, seconds: float = math.inf, before: Plan | None = None) -> Verification:
        return real(self, plan, seconds=seconds if plan.settings or seconds == math.inf else 0.0, before=before)

    real = Verifier.verify
    monkeypatch.setattr(Verifier, "verify", verify)
    assert [x.settings for x in fix(asks_a_number, torch.ones(3)).fixes or () if x.chosen] == [{}]


def test_one_other_input_is_one_other() -> None:
    assert Verification(variations=1).words() == "agrees with eager on the recorded inputs and 1 other"
    assert Verification(conditions={"": "A check is lost"}).words() == "compared with eager on the recorded inputs"


def test_what_eager_lacks_is_not_said_to_come_from_the_change() -> None:  # the unchanged compiled program may have it, too
    one, none = (Observation({"gradients": parts}) for parts in ([("gradient of x", torch.ones(1))], []))
    assert differences(one, none) == ("gradients differ: gradient of x where eager has none", False, False)


def test_a_change_is_worse_elsewhere_by_recompiles_and_by_what_no_version_captures_any_more() -> None:
    def trial(*sizes: int, dynamic: bool | None = None, ops: int = 0) -> TrialResult:
        torch._dynamo.reset()
        with dynascope.observe() as recording:
            for n in sizes:
                torch.compile(lambda x: x.sin() + 1, backend="eager", dynamic=dynamic)(torch.ones(n))
        return TrialResult(recording.report, graph_runs=2, eager_ops=ops)

    two, one = trial(2, 3), trial(2, 3, dynamic=True, ops=2)
    assert (why_worse_elsewhere(one, two), why_worse_elsewhere(two, one)) == ("", "1 more recompile in the repeated calls")
    assert why_worse_elsewhere(trial(), two) == "less is captured then"
    fewer = trial(2)
    fewer.report.graphs[0].ops = 1
    assert why_worse_elsewhere(fewer, one) == "", "what it costs is less"
    fewer.report.summary.skipped = 1
    assert why_worse_elsewhere(fewer, one) == "less is captured then"
    assert gain(one.report, two.report) == "The graph break stays; there are fewer graphs"
    assert gain(two.report, trial().report) == "The graph break stays; more of the program is in graphs"
