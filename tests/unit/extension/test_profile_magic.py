"""`--profile`: the run-time part of the report, and no trace in the notebook."""

from __future__ import annotations


def test_profile_of_an_entry_point(shell):
    report = shell.report(
        "%%compile --profile 3", "calls = []", "def f(a):", "    calls.append(1)", "    a.add_(1)",
        "    torch._dynamo.graph_break()", "    return a * 2", "y = f(x)",
    )  # fmt: skip
    assert report.profile is not None, report.notes
    assert report.profile.calls == 3
    assert [report.break_(c.break_).line for c in report.profile.breaks] == [6]
    assert "The largest part of a call: " in str(report)
    assert shell.ns["calls"] == [1]
    assert shell.ns["x"].tolist() == [2, 2, 2]
    assert report.summary.breaks == 1  # the repeated calls are not recorded


def test_profile_of_statements_starts_from_the_state_before_them(shell):
    shell.ns["x"] = x = shell.ns["torch"].ones(3)
    report = shell.report("%%compile --profile 2", "x = x + 1", "print('once')", "y = x * 2")
    assert report.profile is not None, report.notes
    assert shell.ns["x"].tolist() == [2, 2, 2]
    assert shell.ns["y"].tolist() == [4, 4, 4]
    assert x.tolist() == [1, 1, 1]


def test_a_line_magic_takes_profile_with_and_without_a_number(shell):
    shell("def g(a):", "    return a.sin()")
    assert shell.report("%compile --profile g(x)").profile.calls == 10
    assert shell.report("%compile --profile 2 g(x)").profile.calls == 2
    shell("%config DynascopeMagics.profile = 2")
    assert shell.report("%compile --profile 0 g(x)").profile is None
    shell("%config DynascopeMagics.profile = 0")
    assert shell.report("%compile g(x)").profile is None


def test_what_cannot_be_undone_is_said_and_output_of_the_repeated_calls_is_held_back(shell, tmp_path):
    shell.ns["path"] = str(tmp_path / "log")
    done = shell("%%compile --profile 2", "def f(a):", "    open(path, 'a').close()", "    print('x')", "    return a", "f(x)")
    assert done.text.startswith("dynascope: the call may use `open`")
    assert done.text.count("x\n") == 1


def test_a_list_of_inputs_is_given_to_what_was_compiled(shell):
    report = shell.report(
        "%%compile --profile 1 --inputs sizes --keep",
        "def f(a):",
        "    return a * 2",
        "sizes = [torch.ones(n) for n in (3, 5, 6)]",
        "f(x)",
    )
    assert [r.outcome for r in report.inputs] == ["reused", "recompiled", "reused"], report.notes
    assert report.settings["inputs"] == "sizes"
    assert "float32[5]" in str(report)
    assert "needs another compile" in str(report)


def test_inputs_that_cannot_work_are_one_line_before_anything_runs(shell):
    shell.ns["sizes"] = 3
    function = ("def f(a):", "    print('ran')", "    return a + 1", "f(x)")
    for options, cell, words in (
        ("--profile 1 --inputs sizes", function, "--inputs sizes: expected a list of inputs, not int"),
        ("--profile 1 --inputs nothing", function, "--inputs nothing: no 'nothing' in the notebook"),
        ("--profile 1 --inputs a.b", function, "--inputs a.b: no 'a.b' in the notebook"),
        ("--inputs sizes", function, "--inputs requires --profile"),
        ("--profile 1 --inputs sizes", ("print('ran')", "x + 1"), "--inputs: statements take no inputs"),
    ):
        done = shell(f"%%compile {options}", *cell)
        assert f"UsageError: {words}" in done.text
        assert "ran" not in done.text.replace("anything", "")
