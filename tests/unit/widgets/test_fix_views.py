"""The Fix tab of a graph break: what was verified, as a diff; what was tried in vain; the cell with all fixes."""

from __future__ import annotations

from msgspec.structs import replace
from samples import fixed, one_break, recompiled

from dynascope.compiler.report import Counts, Fix, FixSet, InputRun, Profile, Verdict
from dynascope.widgets.features.fixes import fix_row, fix_words, fixes_summary, how_to_apply
from dynascope.widgets.model import view_model
from dynascope.widgets.render.text import to_text


def test_a_break_shows_its_fix_and_what_was_refused() -> None:
    report = fixed()
    model = view_model(report)
    (part,) = [p for p in model["details"][report.breaks[0].id]["parts"] if p["kind"] == "fix"]
    (chosen,), (other,) = part["body"]["chosen"], part["body"]["others"]
    assert chosen["words"] == "Move it: verified, agrees"
    assert chosen["diff"] == ["-    print('<b>')", "+    logged = 1  # <script>"]
    gain = "graph breaks 1 → 0, graphs 2 → 1 in the repeated calls"
    assert (chosen["gain"], chosen["assumption"]) == (gain, "It is printed later")
    assert other["words"] == "Drop it: a printed line is lost"  # it has no change that could be refused
    assert (other["verdict"], other["diff"]) == ("refused", [])
    assert part["body"]["copies"] == {"Copy fixed cell": "x = 1\n"}
    assert f"1 fix: {gain}. report.patch() is the diff." in model["advice"]["first"]
    assert not model["fixable"]


def test_a_fix_that_changes_no_file_is_no_diff() -> None:
    """What to do is said: no empty text is called a diff."""
    report = recompiled()
    report.fixes = [Fix(id="x0", recompile=report.recompiles[0].frame, verdict="verified", settings={"dynamic": True})]
    report.fix_set = FixSet(fixes=["x0"], settings={"dynamic": True}, before=Counts(recompiles=1))
    by_hand = "No file changes: use torch.compile(..., dynamic=True)"
    assert view_model(report)["advice"]["first"].endswith(f". {by_hand}.")  # type: ignore[index]
    assert by_hand in " ".join(to_text(report).split())
    report.patched_by, report.fix_set.cells = "%fix", {"<cell>": "%%compile --dynamic true\nf(x)"}
    assert how_to_apply(report) == "%fix puts the fixes into a new cell"
    assert "diff" not in to_text(report)
    report.fix_set, report.conditional_fix_set = FixSet(), report.fix_set
    assert how_to_apply(report) == "%fix --conditional puts the fixes into a new cell"
    report.conditional_fix_set.settings = {"torch._dynamo.config.x": True}  # type: ignore[union-attr]
    assert how_to_apply(report).endswith("puts the fixes into a new cell; also needed: torch._dynamo.config.x = True")


def test_what_fixes_do_is_what_was_counted_with_all_of_them_not_a_share_of_the_run() -> None:
    report = recompiled()
    report.fixes = [Fix(id="x0", verdict="verified", removes=[report.recompiles[0].frame])]
    report.fix_set = FixSet(fixes=["x0"], before=Counts(graphs=5, recompiles=3), after=Counts(graphs=5, recompiles=1))
    assert fixes_summary(report) == "1 fix: recompiles 3 → 1 in the repeated calls"
    report.fix_set.before.breaks = report.fix_set.after.breaks = 2
    report.fix_set.after.recompiles = None  # unknown
    assert fixes_summary(report) == "1 fix: recompiles 3 → unknown, graph breaks 2 → 2 in the repeated calls", "what stays, too"
    report.fix_set.after.graphs, report.fixes[0].verdict = 4, "conditional"
    gain = "recompiles 3 → unknown, graphs 5 → 4{} in the repeated calls"
    assert fixes_summary(report) == "1 fix under a condition: " + gain.format(", graph breaks 2 → 2")
    report.fixes[0].before, report.fixes[0].after = report.fix_set.before, report.fix_set.after
    assert fix_row(report.fixes[0])["gain"] == gain.format("")
    report.fix_set = FixSet(before=Counts(recompiles=3), after=Counts(recompiles=3), is_complete=False)
    assert fixes_summary(report) == "no fix was found so far: not every change was tried"


def test_what_only_inputs_compile_is_not_said_to_have_no_known_fix() -> None:
    report = replace(recompiled(), fixes=[Fix(id="x0")], fix_set=FixSet(), inputs=[InputRun(arguments="float32[2]")])
    report.summary.recompiles = 0
    assert fixes_summary(report).startswith("no fix was tried: only the program's own calls are repeated")


def test_a_fix_is_told_with_the_recompiles_that_it_removes_not_the_one_that_it_was_tried_for() -> None:
    report = recompiled()
    report.frames.append(replace(report.frames[1], id="f2", compile_id="0/2", name="loss", code_name="loss", line=4))
    report.recompiles.append(replace(report.recompiles[0], frame="f2"))
    report.fixes = [Fix(id="x0", title="Do it", recompile="f1", verdict="verified", removes=["f2"])]
    report.fix_set = FixSet(fixes=["x0"])
    assert fixes_summary(report) == "1 fix", "nothing is known of what it changes"
    assert "✓ recompile 0/2 of loss: Do it: verified" in to_text(report)


def test_without_a_search_there_is_no_tab() -> None:
    model = view_model(report := one_break())
    assert "fix" not in [p["kind"] for p in model["details"][report.breaks[0].id]["parts"]]
    assert model["fixable"]


def test_a_search_that_was_cut_short_says_so_and_can_be_repeated() -> None:
    report = fixed()
    report.fix_set.is_complete, report.fix_set.notes = False, ["The search was interrupted: not every change was tried"]
    model = view_model(report)
    assert (model["notes"][0], model["fixable"]) == (report.fix_set.notes[0], True)


def test_where_nothing_was_verified_no_fixed_cell_is_offered() -> None:
    report = fixed()
    report.fixes, report.fix_set.fixes = [replace(report.fixes[1], edits=report.fixes[0].edits)], []
    (part,) = [p for p in view_model(report)["details"][report.breaks[0].id]["parts"] if p["kind"] == "fix"]
    assert (part["name"], part["body"]["chosen"], part["body"]["copies"]) == ("Fix (1 tried)", [], {})
    assert f"✗ In[3]:{report.breaks[0].line}:5: Drop it" in to_text(report), "a line may have several breaks"


def test_the_times_of_a_call_are_short_ones() -> None:
    report = fixed()
    report.fix_set.before.seconds, report.fix_set.after.seconds = 0.0019, 0.00071
    advice = view_model(report)["advice"]
    assert "graphs 2 → 1 in the repeated calls, 1.9 ms → 710 µs a call." in advice["first"]
    for low, words in ((0.0015, "repeated calls, about 1.9 ms a call before and after"), (0.0005, "in the repeated calls.")):
        report.fix_set.after.seconds = 0.0016
        report.profile = Profile(calls=3, median_seconds=0.0019, spread=[low, 0.002])
        advice = view_model(report)["advice"]
        assert any(words in one for one in [advice["first"], *advice["more"]])
    assert "a call" not in advice["first"], "calls that differ so much do not show what a change gains"
    report.profile = Profile(calls=3, median_seconds=0.0019, verdict=Verdict(payback="unclear"))
    assert "a call" not in view_model(report)["advice"]["first"], "nor do those of a busy machine"


def test_a_diff_shows_what_changes_in_an_edit() -> None:
    report = fixed()
    [edit] = report.fixes[0].edits
    edit.before = "    a = 1\n    torch._dynamo.graph_break()\n" + "    b\n" * 5
    edit.after = "    a = 1\n    logged = 1  # <script>\n" + "    b\n" * 5 + "    c\n"
    diff = ["     a = 1", "-    torch._dynamo.graph_break()", "+    logged = 1  # <script>"]
    diff += ["     b", "     b", " …", "     b", "     b", "+    c"]
    [part] = [p for p in view_model(report)["details"][report.breaks[0].id]["parts"] if p["kind"] == "fix"]
    assert part["body"]["chosen"][0]["diff"] == diff
    assert "\n".join(" " * 6 + line for line in diff) in to_text(report, colour=False)


def test_where_nothing_was_tried_nothing_was_refused() -> None:
    known = Fix(id="x0", title="No change was tried", verdict="refused", reason="use clone()")
    others = {"settings": {"dynamic": True}}, {"verdict": "untried"}, {"verdict": "untried", "reason": ""}
    in_force = {"settings": {"dynamic": True}, "reason": "it is in force already for others"}
    words = [fix_words(replace(known, **other)) for other in (in_force, {}, *others)]
    ends = in_force["reason"], "use clone()", "refused, use clone()", "use clone()", "untried"
    assert words == [f"No change was tried: {end}" for end in ends]


def test_a_refused_change_that_removes_breaks_says_so() -> None:
    """A person may know that the case which refuses it never comes."""
    fix = Fix(id="x0", title="Assert it", verdict="refused", reason="with size 0: raises TypeError:")
    fix = replace(fix, before=Counts(breaks=4), after=Counts(breaks=1))
    assert fix_words(fix).endswith("raises TypeError. If you know that this does not matter: graph breaks 4 → 1")
    assert "If you know" not in fix_words(replace(fix, after=Counts(breaks=4)))
    assert "If you know" not in fix_words(replace(fix, reason="without torch.compile, with the recorded inputs: values differ"))
    assert "If you know" in fix_words(replace(fix, reason="where `a > 0` is True, with the recorded inputs: values differ"))
    assert "If you know" not in fix_words(replace(fix, verdict="verified"))
