"""The overview of a large report: what to do first, causes, the tree of calls; at most one screen of text."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from samples import frame, graph, huge, loop, many, model
from samples import report as sample

from dynascope.compiler import report as of
from dynascope.compiler.report import BreakCost, Fix, FixEdit, FixSet, Profile, Report, Segment, Symbol, Trial, Verdict
from dynascope.compiler.report.measurements import Counts, FixSettings, FixVerdict
from dynascope.compiler.report.overview import causes, setting_in
from dynascope.widgets.drawing.split_graph import split_picture
from dynascope.widgets.features.overview import SCREEN, CauseWords, Overview, is_large, lower_first, overview, overview_lines
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.summary import Recommendation, recommendation
from dynascope.widgets.model import view_model
from dynascope.widgets.render.text import to_details, to_text
from dynascope.widgets.terminal import Terminal

FIRST_CALL = "gone when the same calls are repeated"
WARM_UP = "make the calls once in eager mode before compiling, if later calls do not lead to these graph breaks again"
SCALARS = "torch._dynamo.config.capture_scalar_outputs"


@pytest.fixture
def report() -> Report:
    """Twelve graph breaks, a quarter of which have a hint, and recompiles."""
    return model(breaks=12)


def shown(report: Report) -> Overview:
    return overview(Places(report))


def advice(report: Report) -> Recommendation:
    return recommendation(Places(report))


def test_small_reports_have_no_overview() -> None:
    assert not is_large(loop())
    assert not is_large(many()), "one function, however often it breaks"
    assert overview(Places(loop())) is None
    assert to_text(loop()) == to_details(loop())


def test_the_text_begins_with_what_to_do_and_names_whose_code_it_is(report: Report) -> None:
    text = to_text(report, width=110)
    lines = text.splitlines()
    assert lines[0] == report.headline()
    assert lines[2].startswith("Do this first: at model.py:8 in Block0.forward (zoo) and 8 more places, a")
    assert "Remaining" not in text, "nobody has tried it"
    assert "The compiler hints at `capture_scalar_outputs = True`: whether it helps is not known" in text
    assert "What a call spends its time on is not known: `--profile`, or profile=10, measures it." in text
    failed = replace(report.frames[1], suppressed=True, reason="backend='mine' raised: RuntimeError: no.\n\nmore")
    first = "look into the error in compiling Block0.forward at model.py:2: backend='mine' raised: RuntimeError: no."
    found = advice(replace(report, frames=[*report.frames, failed]))
    assert (found["first"], found["id"], found["more"][0][:14]) == (first, "f1", "At model.py:8 ")
    report.notes.append("profile: not measured: it raised")
    assert "What a call spends its time on is not known: it raised." in advice(report)["more"]
    assert " 1. 9 graph breaks: a condition depends on a tensor's value" in text
    assert "set `torch._dynamo.config.capture_scalar_outputs = True` (the compiler's hint, not tried)" in text
    assert "5 recompiles: another size, such as x: 2, then 3" in text
    assert "last().details()" in lines[-1]
    assert to_details(report) == report.details()
    assert "✂ graph break at model.py:8" in report.details()
    for flag in ("second_call", "fix"):
        asked = replace(report, breaks=report.breaks[-3:], settings={**report.settings, flag: True})
        assert ": keep the value in a tensor, or read it outside" in advice(asked)["first"], "asked for, but there was no time"
    for b in report.breaks:
        b.stack = [of.StackEntry(file="train.py", line=3, function="main", source="f(x)")]
    assert " in Block0.forward (zoo, reached from train.py:3) and 8 more places, " in advice(report)["first"]


@pytest.mark.parametrize("width", [60, 100, 160])
def test_a_report_of_any_size_fits_on_one_screen(width: int) -> None:
    lines = to_text(huge(), width=width).splitlines()
    assert len(lines) <= SCREEN
    assert max(map(len, lines[1:])) <= width + 1


def test_every_break_and_recompile_is_in_one_cause_and_every_frame_in_one_row() -> None:
    report = huge()
    found = shown(report)
    of_causes = [id for cause in found["causes"] for place in cause["places"] for id in place["ids"]]
    assert sorted(of_causes) == sorted([b.id for b in report.breaks] + [r.frame for r in report.recompiles])
    rows = [id for row in found["calls"] if not row["folded"] for id in row["ids"]]
    assert len(rows) == len(set(rows))


def test_the_page_of_a_huge_report_stays_small() -> None:
    report = huge()
    assert (len(report.frames), len(report.breaks), len(report.recompiles)) == (1000, 300, 500)
    assert len(report.to_html().encode()) < 3_000_000


def test_versions_of_a_frame_are_drawn_as_one() -> None:
    report = huge()
    picture = split_picture(report, Places(report), None)
    assert len(picture.groups) == 500
    shown = {s.id for s in [*picture.groups, *picture.boxes]}
    held = {id for s in picture.boxes for id in s.contents}
    every = {f.id for f in report.frames} | {g.id for g in report.graphs} | {b.id for b in report.breaks}
    assert every <= shown | held
    assert {end for a in picture.arrows for end in (a.source, a.target)} <= shown, "no arrow to nowhere"


def test_a_row_of_versions_has_seven_boxes_at_most() -> None:
    frames = [frame("f0", "0/0", "f", 1, graph="g0"), frame("f1", "1/0", "help", 5, parent="f0", called_from=2)]
    frames += [frame(f"f{i}", f"0/{i}", "f", 1, recompile_of="f0", graph=f"g{i}") for i in range(2, 12)]
    graphs = [graph(f.graph, f.id, [("mul", "operator.mul", 2)]) for f in frames if f.graph]
    report = sample("def f(x): ...\n", "f", frames=frames, graphs=graphs)
    row = [s for s in split_picture(report, Places(report), None).boxes if s.kind == "version"]
    assert [s.title for s in row] == ["v2", "v3", "v4", "v5", "v6", "v7", "+4"]
    assert row[-1].full == "versions 8 to 11 of f"
    assert [s.tone is not None for s in row] == [True] * 6 + [False]
    assert row[-1].contents == ["g8", "f9", "g9", "f10", "g10", "f11", "g11"]


def test_measured_times_rank_the_causes_and_fill_the_bars(report: Report) -> None:
    segments = [
        Segment(kind="graph", lane="cpu", start=0.0, duration=0.003, label="graph 1", frame="f1", graph="g1"),
        Segment(kind="gap", lane="cpu", start=0.003, duration=0.001, label="gap", frame="f2", break_="b9", op_count=5),
    ]
    costs = [BreakCost(break_="b9", seconds=0.002, share=0.5), BreakCost(break_="b0", seconds=0.001, share=0.25)]
    report.profile = Profile(calls=3, median_seconds=0.004, lanes=["cpu"], segments=segments, breaks=costs)
    found = shown(report)
    assert found["measured"]
    assert [c["cost"] for c in found["causes"]][:2] == ["2.0 ms a call · 5 eager ops", "1.0 ms a call"]
    assert found["causes"][0]["places"][0]["id"] == "b9"
    parts = {row["name"]: row["part"] for row in found["calls"]}
    assert (parts["Block0.forward"], parts["Block1.forward"], parts["step"]) == (100, 33, 0)
    (row,) = [row for row in found["calls"] if row["name"] == "Block1.forward"]
    assert row["eager"] == 33
    assert row["events"][-2:] == [["graph", "3 graphs, 9 ops"], ["eager", "5 eager ops"]]  # the fourth is a recompile
    lines = to_text(report, width=100).splitlines()
    assert len(lines) <= SCREEN
    assert "run time: 4.0 ms a call" in "\n".join(lines)


def test_what_trying_a_setting_showed_replaces_the_hint(report: Report) -> None:
    report.fixes = [Fix(id="x0", break_="b9", kind="setting", settings={SCALARS: True},
                        verdict="verified", before=Counts(breaks=12), after=Counts(breaks=10))]  # fmt: skip
    cause = shown(report)["causes"][1]
    assert cause["fix"] == "set `torch._dynamo.config.capture_scalar_outputs = True` (tried: verified)"
    report.fixes[0].removes = ["b9", "b10"]
    assert shown(report)["causes"][1]["fix"].endswith("(tried: verified for 2 of 3)")


def tried(break_: str, verdict: FixVerdict, reason: str = "") -> Fix:
    settings: FixSettings = {SCALARS: True}
    return Fix(id="x0", break_=break_, kind="setting", settings=settings, verdict=verdict, reason=reason)


def test_what_was_refused_is_never_the_first_advice(report: Report) -> None:
    scalars = [b for b in report.breaks if setting_in(b.hints)]
    report.breaks = scalars
    report.summary.breaks = len(scalars)
    first = advice(report)
    assert ": keep the value in a tensor, or read it outside" in first["first"], "the calls may not be repeatable"
    assert "not known (`--second-call`, or second_call=True, shows it, if the calls can be repeated)" in first["more"][0]
    assert first["hints"]
    report.fixes = [tried(scalars[1].id, "untried", "no time"), tried(scalars[-1].id, "refused", "outputs differ")]
    assert ": keep the value in a tensor, or read it outside of the compiled code" in advice(report)["first"]
    name, at = "torch._dynamo.config.capture_scalar_outputs", f"model.py:{scalars[-1].line}"
    refused = f"The compiler's hint `{name} = True` was tried at {at} and refused: outputs differ."
    assert "→ Keep the value in a tensor" in to_details(report).split("✂ graph break")[1], "a setting is in force for all"
    assert refused in advice(report)["more"]
    report.fixes.append(Fix(id="x1", title="Choose", verdict="verified", removes=[b.id for b in scalars]))
    assert "hint" not in str(advice(report)["more"]), "nobody needs it any more"
    report.fixes, report.settings = None, {}
    assert "--" not in str(advice(report)), "a script that is only observed has no such flags"


def test_what_else_was_tried_in_vain_is_not_advised(report: Report) -> None:
    branch = next(b for b in report.breaks if not setting_in(b.hints))
    assert "or, for an `if`, use `torch.where` or" in shown(report)["causes"][0]["fix"]
    before = branch.type, branch.hints
    branch.type, branch.hints = "Data dependent operator", ["Consider wrapping the operator into a custom operator"]
    own = next(cause for cause in shown(report)["causes"] if cause["title"].startswith("an operator returns a number"))
    assert own["fix"].startswith("move the call out of the compiled code, or"), "a custom operator would return it, too"
    branch.type, branch.hints = before
    report.fixes = [replace(tried(branch.id, "refused"), settings={}, edits=[FixEdit("model.py", 1, 1)])]
    assert shown(report)["causes"][0]["fix"] == "move it out of the compiled code (what was tried was refused)"
    report.fixes = [replace(report.fixes[0], title="Choose", verdict="verified", removes=[branch.id])]
    alike = shown(report)["causes"][0]
    assert alike["fix"] == f"choose (tried: verified for 1 of {len(alike['places'])})"
    report.frame(report.recompiles[4].frame).symbols = [Symbol(name="s0")]
    again = next(cause for cause in shown(report)["causes"] if cause["kind"] == "recompile")
    assert again["fix"] == "where input sizes vary between calls, try `mark_dynamic`"  # one serves for all
    report.recompiles[4].failed_guards[0] = of.FailedGuard(kind="length", source="log", before="1", actual="2")
    assert CauseWords(Places(report), causes(report)[-1]).title == "log had length 1 when it was compiled, and has 2 now"
    report.recompiles[3].failed_guards[0] = of.FailedGuard(kind="length", source="log", before="2", actual="1")
    title = CauseWords(Places(report), causes(report)[-1]).title
    assert title == "for example, log had length 2 when it was compiled, and has 1 now"
    size, frame = report.recompiles[2].failed_guards[0], report.frame(report.recompiles[3].frame)
    report.recompiles[2].failed_guards[0] = of.FailedGuard(kind="length", source="other")
    line, frame.line = frame.line, report.frame(report.recompiles[4].frame).line  # two of one code
    (length,) = (CauseWords(Places(report), cause) for cause in causes(report) if cause.guard == "length")
    assert length.title.startswith("for example, log had length 2")
    report.recompiles[2].failed_guards[0], frame.line = size, line
    report.breaks, every = [], report.breaks
    said = "look into 1 recompile: log had length 1 when it was compiled, and has 2 now."  # the compiled code may do that
    assert f"Do this first: {said}" in " ".join(to_text(replace(report, recompiles=report.recompiles[4:5])).split())
    report.breaks = every
    report.fixes = [Fix(id="x0", recompile=report.recompiles[0].frame, settings={"dynamic": True}, verdict="refused")]
    again = next(cause for cause in shown(report)["causes"] if cause["kind"] == "recompile")
    assert again["fix"] == "", "what was tried was refused"
    assert "→" not in [line.strip() for line in to_text(report).splitlines()]
    report.breaks[0].type, report.breaks[0].hints = "Unsupported", ["Set torch._dynamo.config.trace_autograd_ops=True"]
    assert "gradients are computed in the compiled code" in [cause["title"] for cause in shown(report)["causes"]]
    for b, hint in zip(report.breaks[:2], ("Avoid `print`.", "Avoid `globals`."), strict=True):
        b.type, b.hints, b.outcome = "Unsupported", [hint], "resumed"
    assert "Move it out of the compiled code" in [c["fix"] for c in shown(report)["causes"]], "neither holds for both"
    report.breaks[0].hints = report.breaks[1].hints
    assert "Avoid `globals`." in [c["fix"] for c in shown(report)["causes"]]


def test_what_is_verified_is_done_first_and_the_rest_remains(report: Report) -> None:
    again = [r.frame for r in report.recompiles]
    removes = [*(b.id for b in report.breaks[:3]), *again[:2]]
    report.fixes = [replace(tried(report.breaks[0].id, "verified"), removes=removes)]
    report.fixes[0].title = "Do it once"
    report.fixes[0].before, report.fixes[0].after = Counts(breaks=12), Counts(breaks=9)
    edits = [FixEdit("model.py", 1, 1)]
    before = Counts(breaks=12, graphs=20, recompiles=len(again))
    after = Counts(breaks=9, graphs=15, recompiles=len(again) - 2)
    report.fix_set = FixSet(fixes=["x0"], edits=edits, before=before, after=after)
    found = advice(report)
    counted = f"1 fix: graph breaks 12 → 9, recompiles {len(again)} → {len(again) - 2}, graphs 20 → 15 in the repeated calls"
    assert found["first"].startswith(f"apply {counted}. report.patch() is the diff")
    assert found["more"][0] == "Fix: Do it once (verified): graph breaks 12 → 9 in the repeated calls."
    assert " ".join(to_text(report, width=60).split()).count(counted) == 2, "the heading of the fixes is whole, too"
    before.seconds, after.seconds = 2.0, 1.0
    assert advice(report)["first"].startswith(f"apply {counted}, 2.00 s → 1.00 s a call. ")
    after.seconds = 3.0
    assert advice(report)["first"].endswith("2.00 s → 3.00 s a call, which is slower.")
    report.settings = {**report.settings, "backend": "inductor"}
    assert advice(report)["first"].startswith("leave 1 fix: ")
    before.graph_runs, before.eager_ops, before.recompiles, before.seconds = 20, 13, 0, None
    report.fix_set.notes = ["The time limit was reached"]
    assert "\nnote: The time limit was reached" in to_text(report), "in short, too"
    report.fix_set.after = replace(before, breaks=9, eager_ops=14)
    assert "13 → 14 in the repeated calls, no fewer operations run outside graphs. report.patch()" in advice(report)["more"][0]
    report.fix_set.before = before = replace(before, recompiles=None, compiled_again=["g (a guard that failed: len(log) == 2)"])
    report.fix_set.after = replace(before, breaks=9, graph_runs=21)
    found = advice(report)
    assert found["first"].startswith("look into what the fourth of four equal repeated calls still compiles: g (a guard that ")
    assert [said.partition(" ")[0] for said in found["more"][:2]] == ["At", "Leave"], "a call enters more graphs"
    report.fix_set.after.compiled_again = ["g (a guard that failed: tensor 'x' requires_grad mismatch)"]
    assert "where the compiled function itself" not in advice(report)["first"]
    report.fix_set.after.compiled_again = ["g"]
    assert advice(report)["first"] == "look into what the fourth of four equal repeated calls still compiles: g."
    report.recompiles[4].refused_by, report.recompiles[3].failed_guards[0].kind = "recompile_limit", "dtype"
    report.fixes[0].removes = []
    said = "look into 3 of 4 recompiles: another size, such as x: 2, then 3"
    (size,) = report.frame(report.recompiles[2].frame).symbols = [Symbol(name="s0")]
    assert advice(report)["first"].startswith(f"{said}; where input sizes vary between calls, try `mark_dynamic`")
    size.dynamic = "setting"
    assert advice(report)["first"] == f"{said}.", "they are dynamic already"
    size.dynamic, size.constraints = "unknown", [of.Constraint(expression="Eq(s0, 3)")]
    assert advice(report)["first"] == f"{said}.", "the code asks for one"
    size.constraints, report.recompiles[2].failed_guards[0].before = [], "1"
    assert "try `dynamic=True`" not in advice(report)["first"], "it is never dynamic"
    for number, again in enumerate(report.recompiles, 2):
        again.call, again.refused_by, again.failed_guards[0].kind = number, None, "value"
        again.failed_guards[0].hint = "set it"
    one = replace(report, recompiles=report.recompiles[:1])
    assert "tensor; what the compiled function itself changes" in CauseWords(Places(one), causes(one)[-1]).step, "in one call"
    report.fixes, before = [], report.fixes
    assert "use a tensor; the compiler's hint: set it." in advice(report)["first"]
    report.fixes = [*before, Fix(id="x1", recompile=again.frame, settings={"dynamic": True}, verdict="refused")]
    assert "5 recompiles: another value, such as x: 2, then 3; where the compiled" in advice(report)["first"]
    for again in report.recompiles:
        again.failed_guards[0].kind = "dtype"
    said = "look into 5 recompiles: for example, x had another dtype: 2 before, 3 now"
    again.failed_guards += [replace(again.failed_guards[0], source="y")]
    assert advice(report)["first"] == f"{said}."
    again.failed_guards[1].kind = "rank"
    assert advice(report)["first"] == f"{said}, beside other guards."


def test_a_break_that_stays_without_the_conditional_fixes_is_under_a_condition() -> None:
    """A verified change can move a break, so that it is gone only with a conditional one."""
    report = model(breaks=3)
    report.fixes = [replace(tried(report.breaks[0].id, "verified"), removes=[b.id for b in report.breaks]),
                    replace(tried(report.breaks[0].id, "conditional"), id="x1", removes=[])]  # fmt: skip
    edits = [FixEdit("model.py", 1, 1)]
    report.fix_set = FixSet(fixes=["x0"], edits=edits, before=Counts(breaks=3), after=Counts(breaks=1))
    report.conditional_fix_set = FixSet(fixes=["x0", "x1"], before=Counts(breaks=3), after=Counts(breaks=0))
    assert "2 fixes, 1 under a condition: graph breaks 3 → 0 in the repeated calls" in advice(report)["first"]
    report.conditional_fix_set.edits, report.patched_by = edits, "dynascope fix --apply"
    assert "--apply --conditional writes those that hold under a condition, too" in advice(report)["first"]
    report.patched_by, done = "", report.patched_by
    assert advice(report)["first"].startswith("review 2 fixes, 1 under a condition: graph breaks 3 → 0")
    for report.patched_by, file, said in (
        ("report.patch()", "model.py", "(conditional=True) is the diff; also needed for those under a condition: torch."),
        (done, "lib/site-packages/model.py", "apply the printed patch by hand, as it changes a library's file; also needed"),
    ):
        edits[0].file, report.conditional_fix_set.settings = file, {"dynamic": True}
        assert said in advice(report)["first"]
    edits[0].file, report.conditional_fix_set.settings = "model.py", {}
    report.patched_by, report.fix_set.fixes = done, []
    assert ". dynascope fix --apply --conditional writes the fixes into the files" in advice(report)["first"]
    report.patched_by, report.conditional_fix_set.cells = "%fix", {"<cell 1>": "old", "<cell 2>": "torch._dynamo.config..."}
    said = advice(report)["first"]
    assert ". %fix --conditional puts the last of 2 fixed cells into a new cell, and prints what changes in the other" in said
    assert "; print(dynascope.last().patch(conditional=True)) has those in model.py" in said
    # also beside a break in a library, whose file is no cell
    copied = {"Copy cell with conditional fixes": "torch._dynamo.config..."}
    details = view_model(report)["details"][report.breaks[0].id]["parts"]
    assert advice(report)["copies"] == copied == next(part["body"] for part in details if part["key"] == "fix")["copies"]


def test_a_cause_says_from_how_many_frames_it_was_seen_but_not_that_it_costs_most(report: Report) -> None:
    [hit] = report.breaks[0].hits
    again = replace(report.frame(hit.frame), id="f99")  # another version of a function is not another frame
    report.frames.append(again)
    report.breaks[0].hits.append(replace(hit, frame="f99"))
    assert "seen from" not in to_text(report)
    again.line += 1
    assert "(seen from 10 frames)" in to_text(report), "how often a break ran is not known"
    report.profile = Profile(calls=3, median_seconds=0.004)
    assert "costly" not in to_text(report), "what the program asks for comes last, whatever it costs"


def test_what_became_of_a_change_for_several_is_said_once(report: Report) -> None:
    report.fixes = [replace(tried(b.id, "untried", "no time"), id=b.id, title="Choose") for b in report.breaks[:2]]
    report.fix_set = FixSet()
    assert to_details(report).count("Choose: no time") == 1


def test_a_setting_for_which_no_time_was_left_does_not_count_as_tried(report: Report) -> None:
    report.fixes = [Fix(id="x0", break_="b9", kind="setting", settings={SCALARS: True})]

    def fix() -> str:
        return next(CauseWords(Places(report), cause).fix() for cause in causes(report) if cause.setting)

    assert fix() == "set `torch._dynamo.config.capture_scalar_outputs = True` (the compiler's hint, not tried)"
    for reason in ("the time limit was reached", "not verified: the time limit was reached"):
        report.fixes[0].reason = reason
        assert fix().endswith("(the compiler's hint, not tried: the time limit was reached)")
    report.fixes[0].settings, report.fixes[0].verdict = {SCALARS: True, "another": True}, "refused"
    assert fix().endswith("(the compiler's hint, not tried)"), "what was refused is both together"


def test_what_only_the_first_call_has_is_a_cause_of_its_own() -> None:
    report = model()
    for b in report.breaks[:2]:
        b.first_call_only = True
    first, rest = shown(report)["causes"][1], shown(report)["causes"][0]
    assert (first["title"], len(first["places"]), len(rest["places"])) == (FIRST_CALL, 2, 4)
    assert first["fix"] == f"{WARM_UP} (tried with the same data)"
    for b in report.breaks:
        b.first_call_only = True
    assert f"{FIRST_CALL}: {WARM_UP}" in advice(report)["first"]


def test_an_acronym_keeps_its_capitals() -> None:
    assert [*map(lower_first, ("BUILD_STRING type error", "Move it", ""))] == ["BUILD_STRING type error", "move it", ""]


@pytest.mark.parametrize("width", [60, 100])
def test_whose_code_it_is_shows_only_where_code_of_several_is_mixed(width: int) -> None:
    report = model()
    assert shown(report)["library"] == "zoo"
    assert "(all in zoo)" in to_text(report, width=width)
    report.breaks[0].file = report.frames[0].file
    assert "your code: " in to_text(report, width=width)
    assert "zoo: " in to_text(report, width=width)
    report.breaks[1].text = "Graph break in user code at /usr/lib/python3.11/functools.py:997"
    report.fix_set = FixSet(notes=["No change was tried: it differs"])
    words = " ".join(to_text(report, width=width).split())
    assert " → functools.py:997, " in words
    assert "note: No change was tried: it differs" in words
    brief = overview_lines(shown(report), Terminal(False, width), 7)
    assert "recompiles: at model.py:2 and 3 more places: another" in str(brief)


def test_what_a_trace_has_tried_is_first_with_what_is_left_after_it(report: Report) -> None:
    scalars = [b.id for b in report.breaks if setting_in(b.hints)]
    report.breaks[0].first_call_only = True
    report.trials = [Trial(breaks=11, graphs=20, removes=[report.breaks[0].id])]
    assert advice(report)["first"].startswith(f"{WARM_UP}: in the repeated calls, 12 graph breaks become 11.")
    removes = [report.breaks[0].id, *scalars]
    report.trials.append(Trial(settings={SCALARS: True}, breaks=8, graphs=9, recompiles=5, removes=removes))
    report.summary.recompiles = 7  # what is left is what the trace has shown, not what the run had
    found = advice(report)
    became = "in the repeated calls, 12 graph breaks become 8."
    assert found["first"].endswith(f", then set `{SCALARS} = True`: {became}")
    assert not found["hints"]
    assert not any("hint" in sentence for sentence in found["more"])
    tried_so = f"set `{SCALARS} = True` (tried: 11 become 8 graph breaks when the calls are repeated)"
    assert tried_so in [cause["fix"] for cause in shown(report)["causes"]]


@pytest.mark.parametrize(
    ("trial", "words"),
    [
        (Trial(settings={SCALARS: True}, harm="it ends in an internal error: no"), "it ends in an internal error: no"),
        (Trial(settings={SCALARS: True}, breaks=13, graphs=9), "graph breaks 12 → 13"),
        (Trial(settings={SCALARS: True}, breaks=11, skipped=3), "graph breaks 12 → 11, frames that run eagerly 2 → 3"),
        (Trial(settings={SCALARS: True}, breaks=12, removes=["b9"]), "graph breaks 12 → 12"),
    ],
)
def test_a_hint_that_did_harm_when_it_was_tried_is_not_followed(report: Report, trial: Trial, words: str) -> None:
    before = Trial(breaks=12, skipped=2, graphs=20)
    report.trials = [before, replace(trial, harm=trial.harm or trial.no_gain_over(before))]
    found = advice(report)
    assert found["first"].startswith("at model.py:8 in Block0.forward (zoo)")
    assert f"The compiler's hint `capture_scalar_outputs = True` was tried, and is not advised: {words}." in found["more"]
    assert "Keep the value" not in found["first"]
    assert "`--fix`, or fix=True, looks for a change" in found["first"]
    report.settings = {**report.settings, "fix": True}  # an error has ended the search
    assert "--fix" not in advice(report)["first"]
    (cause,) = [cause for cause in shown(report)["causes"] if "capture_scalar_outputs" in cause["fix"]]
    assert cause["fix"].startswith("keep the value in a tensor, or read it outside")


def profiled(report: Report, share: float, backend: str = "inductor", eager: float = 2.0) -> Report:
    report.settings = {"backend": backend}
    segments = [
        Segment(kind="graph", lane="CPU", start=0.0, duration=0.9, label="graph 1", frame="f1", graph="g1"),
        Segment(kind="gap", lane="CPU", start=0.9, duration=0.1, label="gap", frame="f2", break_="b0"),
    ]
    verdict = Verdict(eager_seconds=eager, compiled_seconds=1.0, payback="slower" if eager < 1 else "calls")
    report.profile = Profile(calls=3, median_seconds=1.0, lanes=["CPU"], segments=segments,
                             shares={"graphs": 1 - max(0.1, share), "gaps": max(0.1, share)},
                             breaks=[BreakCost(break_="b0", seconds=share, share=share)], verdict=verdict)  # fmt: skip
    return report


def test_breaks_that_cost_next_to_nothing_are_not_called_cheap_and_what_takes_the_time_is_named() -> None:
    """Two graphs that become one can be fused, which may gain much more than the time between them."""
    found = advice(profiled(model(breaks=12), 0.01))
    assert found["first"].startswith("at model.py:8 in Block0.forward (zoo)")
    assert found["more"][0] == "The largest part of a call: compiled graphs, 90%; graph 1 alone, 90% (`Block0.forward`)."
    assert not any("--profile" in sentence for sentence in found["more"])
    other = profiled(model(breaks=12), 0.01)  # most of the time is that of a graph that the report lacks
    other.profile.segments.append(replace(other.profile.segments[0], graph="g99", duration=2.0))
    assert advice(other)["more"][0] == "The largest part of a call: compiled graphs, 90%."
    free = profiled(model(breaks=12), 0.0)
    assert view_model(free)["breaks"][0]["cost"] == "costs nothing that can be measured"
    free.breaks = free.profile.breaks = []
    assert advice(free)["first"].startswith("look into 5 recompiles: another size, such as x: 2, then 3.")


@pytest.mark.parametrize("slowed", [1.0, 2.0], ids=["as without", "twice as slow"])
def test_a_busy_device_decides_what_a_call_takes(slowed: float) -> None:
    """Its share is that of a call without the profiler, which slows down the processor alone."""
    report = profiled(model(breaks=12), 0.01)
    kernel = Segment(kind="kernel", lane="GPU 0", start=0.1, duration=0.6, label="convolve", graph="g1")
    report.profile.segments += [kernel, replace(kernel, duration=0.2, graph=None)]
    report.profile.profiled_seconds = slowed
    report.profile.shares |= {"graphs": 0.1, "waiting": 0.9, "device busy": 0.8 / slowed}
    assert advice(report)["more"][0] == "The largest part of a call: device busy, 80%; graph 1 alone, 60% (`Block0.forward`)."


def test_on_an_idle_device_the_processor_decides_what_a_call_takes() -> None:
    report = profiled(model(breaks=12), 0.4, eager=0.5)
    report.profile.shares |= {"gaps": 0.1, "waiting": 0.2, "graphs": 0.7, "device busy": 0.08}
    said = "The largest part of a call: compiled graphs, 70%; graph 1 alone, 70% (`Block0.forward`)."
    assert said in advice(report)["more"]


def test_what_was_tried_comes_after_a_cause_that_costs_more_than_it_gains() -> None:
    report = profiled(model(breaks=12), 0.4)
    scalars = [b.id for b in report.breaks if setting_in(b.hints)]
    report.trials = [Trial(breaks=12), Trial(settings={SCALARS: True}, breaks=8, graphs=9, removes=scalars)]
    found = advice(report)
    assert found["first"].startswith("at model.py:8 in Block0.forward (zoo)")
    assert "(0.40 s a call): " in found["first"]
    assert found["id"] == "b0"
    assert f"Set `{SCALARS} = True`: in the repeated calls, 12 graph breaks become 8." in found["more"][0]
    report.trials[-1].removes.append("b0")
    found = advice(report)
    assert found["first"].startswith(f"set `{SCALARS} = True`")
    assert found["id"] == "b0", "the view opens on the break that costs most of those that go"
    report.fixes = [replace(tried("b1", "refused"), settings={SCALARS: True})]  # the search compares more
    assert advice(report)["first"].startswith("at model.py:8 in Block0.forward")


def test_compiled_code_that_is_slower_is_said_first_with_the_reason() -> None:
    captures = profiled(model(breaks=12), 0.01, "eager", eager=0.8)
    assert advice(captures)["first"].startswith("at model.py:8 in Block0.forward (zoo)")
    assert "; “eager” only captures: measure with the backend" in view_model(captures)["time"]["verdict"]
    report = profiled(model(breaks=12), 0.4, eager=0.95)
    slower = "Under torch.compile, it takes 1.00 s; eager, 0.95 s: compiling makes it slower."
    assert advice(report)["first"].startswith(f"{slower} At model.py:8")
    report.breaks = report.profile.breaks = []
    assert advice(report)["first"].startswith("look into 5 recompiles: "), "which warm calls do not have"
    assert advice(report)["more"][0] == slower


def test_a_small_report_has_a_recommendation_once_something_was_measured_or_tried() -> None:
    report = many()
    assert recommendation(Places(report)) is None
    report.trials = [Trial(breaks=100)]
    assert advice(report)["first"].startswith("nothing, unless a graph break that the program asks for is not meant: 100 ")
    report.trials = [Trial(breaks=0, removes=[b.id for b in report.breaks])]
    assert "Do this first: make the calls once in eager mode before compiling" in to_text(report)
    assert "<strong>Do this first:</strong> make the calls once" in report.to_html()


def test_damage_is_said_also_where_notes_are_left_out(report: Report) -> None:
    report.notes = [f"note {n}: " + "words " * 30 for n in range(5)]
    assert [f"note {n}:" in to_text(report) for n in range(5)] == [True, True, False, False, False]
    report.origin, report.unread = "trace", {"record that is not JSON": 2}
    text = to_text(report, width=80)
    assert "record that is not JSON 2" in " ".join(text.split())
    assert len(text.splitlines()) <= SCREEN


def with_all_cached(report: Report) -> Report:
    frames = [replace(f, status="cached") for f in report.frames]
    summary = replace(report.summary, breaks=0, recompiles=0, cached=len(frames))
    return replace(report, frames=frames, breaks=[], recompiles=[], summary=summary)


def test_unknown_breaks_are_never_called_none() -> None:
    report = with_all_cached(model())
    text = to_text(report)
    assert f"Do this first: unknown (graph breaks unknown, no recompile; {len(report.frames)} frames cached)." in text
    assert "No graph break" not in text


def test_what_is_wrong_without_a_cause_is_said() -> None:
    report = with_all_cached(model())
    report.summary = replace(report.summary, cached=0, failed=1, skipped=2)
    facts = "look into what is not compiled: {}, no recompile; 1 frame failed; 2 frames skipped."
    assert advice(report)["first"] == facts.format("no graph break")
    report.error = of.Failure(type="KeyError", message="k", origin="user")
    assert advice(report)["first"].startswith("look into the error: no graph break, no recompile; 1 frame failed")
    report.error = None
    report.breaks = [replace(b, allowed=True) for b in model().breaks]
    report.summary.breaks, report.summary.unexpected = 6, 0
    report.trials = [Trial(breaks=6), Trial(settings={SCALARS: True}, breaks=0, removes=[b.id for b in report.breaks])]
    assert advice(report)["first"] == facts.format("6 graph breaks (6 allowed)")
