"""Options, bad input, errors, displays, and loading and unloading."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
import shlex
from typing import Any

import pytest
import torch

import dynascope
from dynascope import options
from dynascope.compiler.settings import Settings, option_flag
from dynascope.options import command_line, config_traits, default_of


@pytest.mark.parametrize(
    ("line", "body", "message"),
    [
        ("--bakend eager", "1", "unrecognized arguments: --bakend eager (did you mean --backend?)"),
        ("--fullgraph=maybe", "1", "argument --fullgraph/--no-fullgraph: takes no value such as 'maybe'"),
        ("--xyzzy", "1", "unrecognized arguments: --xyzzy"),
        ("--mode fast", "1", "argument --mode: invalid choice: 'fast'"),
        ("--backend eage", "1", "unknown backend 'eage': did you mean eager?"),
        ("--backend inductor --mode max-autotune --options a=1", "1", "give --mode or --options, not both"),
        ("--options a", "1", "--options a: write it as KEY=VALUE"),
        ("--backend inductor --options max_autotune=often", "1", "Inductor's option max_autotune takes a bool, not 'often'"),
        ("--save /dev/null/a.html", "1", "--save /dev/null/a.html: /dev/null is not a writable folder"),
        ("-o class", "1", "--output class: not a name"),
        ("--save 'a", "1", "cannot read the options"),
        ("", "# nothing\n", "%%compile: the cell has no code in it"),
        ("", "%%time\nx", "put %%time on the line above %%compile"),
        ("", "import asyncio\nawait asyncio.sleep(0)", "top-level await is not supported here: in a plain cell, it works"),
    ],
)
def test_bad_input_is_one_line_and_nothing_runs(shell, line, body, message):
    done = shell(f"%%compile --view text {line}", "ran = True\n" * (body == "1") + body)
    assert done.text.startswith(f"UsageError: {message}")
    assert len(done.text.strip().splitlines()) == 1
    assert "ran" not in shell.ns
    assert shell("1 + 1").result == 2


def test_a_traceback_of_a_line_magic_shows_the_lines_above_as_they_are(shell):
    shell("def fails(x):", "    raise ValueError('no')")
    done = shell("a = 1", "%matplotlib --list", "b = None", "", "%compile fails(x)", "c = 1")
    lines = [line.strip() for line in done.text.splitlines()]
    assert f"Cell In[{shell.number}], line 5" in lines
    assert "----> 5 fails(x)" in lines


def test_syntax_error_looks_like_a_plain_cells(shell):
    plain = shell("y = 1", "x = (")
    done = shell("%%compile", "y = 1", "x = (")
    assert type(done.error) is type(plain.error)  # from Python 3.13 on, a subclass of SyntaxError
    assert isinstance(done.error, SyntaxError)
    assert done.text.splitlines()[0].strip() == f"Cell In[{shell.number}], line 3"
    assert "showsyntaxerror" not in vars(shell.ip)


def test_compilers_error_keeps_its_type_and_the_report_is_there(shell):
    done = shell("%%compile --fullgraph", "def f(x):", "    torch._dynamo.graph_break()", "    return x", "f(x)")
    assert type(done.error).__module__ == "torch._dynamo.exc"
    assert "eval_frame.py" not in done.text
    assert dynascope.last().error.type == type(done.error).__name__
    assert dynascope.last().breaks[0].outcome == "raised"


def test_compilers_error_names_lines_as_the_cell_has_them(shell):
    done = shell("%%compile --fullgraph", "y = x + 1", "print('half way')")
    number = shell.number
    assert f"   Cell In[{number}], line 3\n    print('half way')" in done.text
    done = shell("%%compile --error-on-graph-break", "y = x + 1", "with torch._dynamo.error_on_graph_break(False):",
                 "    print('allowed')", "print('half way')")  # fmt: skip
    assert f"   Cell In[{number + 1}], line 5\n    print('half way')" in done.text


def test_report_is_bound_and_saved(shell, tmp_path):
    report = shell.report(f"%%compile -o rep --save '{tmp_path}/r.json'", "x + 1")
    assert shell.ns["rep"] is report
    assert json.loads((tmp_path / "r.json").read_text())["schema"] == 2
    assert shell.report("%%compile --check", "x + 1").previous is report, "the same code, whatever the options"


def test_save_that_fails_keeps_the_cells_own_error(shell, tmp_path):
    (tmp_path / "a.html").mkdir()
    done = shell(f"%%compile --save '{tmp_path}/a.html'", "raise ValueError('mine')")
    assert type(done.error) is ValueError
    assert done.text.count("a.html: not saved: Is a directory") == 1
    done = shell(f"%%compile --save '{tmp_path}/a.html'", "x + 1")
    assert done.error is None
    assert done.result.tolist() == [2, 2, 2], "the cell has run: its value is not lost"
    assert done.text.splitlines()[0] == f"--save {tmp_path}/a.html: not saved: Is a directory"
    assert done.text.count("\n") == 2
    shell.report(f"%%compile --save '{tmp_path}/new/b.json'", "x + 1")
    assert (tmp_path / "new" / "b.json").is_file()


def test_error_is_a_plain_exception_once_it_was_shown(shell):
    for cell in ("kept = ValueError('a')\nraise kept", "def f(x): raise ValueError('a')\nf(x)"):
        error = shell("%%compile", cell).error
        assert "_render_traceback_" not in vars(error)
        assert repr(pickle.loads(pickle.dumps(error))) == repr(error)
    shell(
        "try:", "    get_ipython().run_cell_magic('compile', '', 'raise ValueError(1)')", "except ValueError as e:", "    c = e"
    )
    assert "_render_traceback_" not in vars(shell.ns["c"])


def test_device_is_the_default_device_of_the_cell_only(shell):
    shell.report("%%compile --device meta", "y = torch.ones(2)")
    assert shell.ns["y"].device.type == "meta"
    assert torch.ones(1).device.type == "cpu"


def test_terminal_shows_the_report_once_at_the_end(shell):
    done = shell("%%compile --view auto", "print('mine')", "x + 1")
    assert done.text.index("mine") < done.text.index("the cell's statements:") < done.text.index("Out[")
    assert done.text.count("the cell's statements:") == 1


def test_observe_runs_the_cell_as_it_stands(shell):
    shell("@torch.compile(backend='eager')", "def f(x):", "    torch._dynamo.graph_break()", "    return x + 1")
    report = shell.report("%%observe", "y = f(x)")
    assert report.summary.breaks == 1
    report = shell.report("%%observe", "y = f(x)")
    assert report.summary.breaks == 0
    note = "known to Dynamo before this recording, with unknown breaks: f; {} --fresh traces it again"
    assert report.notes == [note.format("%%observe")]
    report.expect("graphs=1,breaks>=0")
    for unknown in ("breaks=0", "unexpected<=3"):
        with pytest.raises(AssertionError, match=r"the breaks of cached frames are unknown\n  known to .* --fresh"):
            report.expect(unknown)
    fresh = shell.report("%%observe --fresh", "y = f(x)")
    assert (fresh.summary.breaks, fresh.notes) == (1, [])
    assert shell("%observe f(x)").result.tolist() == [2, 2, 2]
    assert dynascope.last().notes == [note.format("%observe")]
    shell("g = torch.compile(lambda x: x + 1, backend='eager', dynamic=False)", "g(x), g(torch.ones(4))")
    assert shell.report("%observe g(x)").summary.cached == 1  # of two versions


def test_a_setting_that_no_flag_gives_has_no_line():
    defaults = Settings(nested_graph_breaks=True, dynamic=True)
    assert command_line("%%compile", defaults.replace(dynamic=False), defaults) == "%%compile --dynamic false"
    nested = command_line("%%compile", defaults.replace(nested_graph_breaks=False), defaults)
    assert nested == "%%compile --no-nested-graph-breaks"
    for name in ("nested_graph_breaks", "dynamic"):
        assert command_line("%%compile", defaults.replace(**{name: None}), defaults) == ""
    seconds = command_line("%%compile", defaults.replace(backend="my.0", fix_seconds=2.0), defaults)
    assert seconds == "%%compile --backend my.0 --fix-seconds 2"


def test_every_option_has_a_flag_and_help(shell):
    text = shell.ip.magics_manager.magics["cell"]["compile"].__doc__
    for f in dataclasses.fields(Settings):
        assert option_flag(f) in text, f"option {f.name} is missing in %compile?"


def test_config_sets_defaults(shell):
    shell("%config DynascopeMagics.fullgraph = True")
    try:
        assert shell.report("%%compile", "x + 1").settings["fullgraph"] is True
        assert shell.report("%%compile --no-fullgraph", "x + 1").settings["fullgraph"] is False
    finally:
        shell("%config DynascopeMagics.fullgraph = False")


@pytest.mark.parametrize(("given", "expected"), [(None, "inductor"), ("", "inductor"), ("aot_eager", "aot_eager")])
def test_the_default_backend_comes_from_the_environment(monkeypatch, given, expected):
    """Where a machine has no C++ compiler."""
    if given is not None:  # conftest.py has taken it away
        monkeypatch.setenv("DYNASCOPE_BACKEND", given)
    (field,) = [f for f in dataclasses.fields(Settings) if f.name == "backend"]
    assert default_of(field) == config_traits()["backend"].default_value == expected


def test_a_wrong_value_in_the_configuration_does_not_keep_the_extension_out(shell):
    shell("%config DynascopeMagics.mode = 'nope'")
    done = shell("%reload_ext dynascope")
    assert done.error is None
    assert done.text.startswith("dynascope: the configuration is ignored: The 'mode' trait")
    assert len(done.text.splitlines()) == 1
    assert sum(type(c).__name__ == "DynascopeMagics" for c in shell.ip.configurables) == 1
    assert shell("%compile --backend eager --view none x + 1").error is None


def test_unload_takes_away_exactly_what_load_added(shell):
    ip = shell.ip
    ip.run_line_magic("unload_ext", "dynascope")

    def state():
        magics = {kind: dict(table) for kind, table in ip.magics_manager.magics.items()}
        matchers, events = list(ip.Completer.custom_matchers), {name: list(on) for name, on in ip.events.callbacks.items()}
        return magics, dict(ip.magics_manager.registry), list(ip.configurables), matchers, events

    before = state()
    for _ in range(2):
        ip.run_line_magic("load_ext", "dynascope")
    ip.run_line_magic("reload_ext", "dynascope")
    assert len(ip.Completer.custom_matchers) == len(before[3]) + 1
    ip.run_line_magic("unload_ext", "dynascope")
    assert state() == before
    ip.run_line_magic("load_ext", "dynascope")


def test_api_knows_the_cells(shell):
    shell("import dynascope", "def f(x):", "    torch._dynamo.graph_break()", "    return x + 1")
    number = shell.number
    report = shell("dynascope.explain(f, backend='eager')(x)").result
    assert report.breaks[0].cell == number
    assert dynascope.last() is report


def test_completion(shell):
    from dynascope.magics import DynascopeMagics as Magics
    from dynascope.options import completions

    compiles, observes = Magics.run_compile.parser, Magics.run_observe.parser
    shell("def block(x): return x")
    assert completions(compiles, "--full", shell.ns) == ["--fullgraph"]
    assert completions(compiles, "--no-full", shell.ns) == ["--no-fullgraph"]
    assert completions(compiles, "--mode max", shell.ns) == ["max-autotune", "max-autotune-no-cudagraphs"]
    assert completions(compiles, "--backend aot_eager", shell.ns)[0] == "aot_eager"
    assert completions(compiles, "-f bl", shell.ns) == ["block"]
    assert completions(observes, "--fr", shell.ns) == ["--fresh"]
    assert completions(compiles, "--profile --inp", shell.ns) == ["--inputs"]  # its value may be left out
    assert "--inputs" in completions(compiles, "--profile ", shell.ns)
    assert completions(compiles, "--profile 1", shell.ns) == completions(compiles, "--save --inp", shell.ns) == []
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        found = [c.text for c in shell.ip.Completer.completions("%%compile --error-on-gr", 23)]
    assert "--error-on-graph-break" in found


def test_what_each_new_argument_does_once_is_not_said_to_be_of_the_first_call(shell: Any) -> None:
    report = shell.report(
        "%%compile -f f --second-call --fix --backend eager", "def f(x, table={}):", "    n = x.shape[0]",
        "    if n not in table:", "        torch._dynamo.graph_break()",
        "        table[n] = torch.arange(n)", "    return x + table[n]",
        "f(torch.ones(3))", "f(torch.ones(4))",
    )  # fmt: skip
    assert [b.first_call_only for b in report.breaks] == [True]
    for text in (str(report), report.details(), report.patch()):
        assert not re.search("first call|one call|call it once|None", text, re.IGNORECASE), text


def test_the_line_of_a_magic_gives_its_settings(shell):
    settings = Settings(options={"cuda.arch": "90", "a": 3, "b": "word"}, fix_seconds=0.5, profile=3)
    words = shlex.split(command_line("%%compile", settings, Settings()))
    assert words == [
        "%%compile", "--options", "cuda.arch='90'", "--options", "a=3", "--options", "b=word", "--profile", "3",
        "--fix-seconds", "0.5",
    ]  # fmt: skip
    assert dict(options._pair(word, "--options") for word in words if "=" in word) == settings.options
    assert options._pair("a={[1]}", "--options") == ("a", "{[1]}")
    assert shell("%%compile --fix-seconds 0.5 --view none --backend eager", "def f(x): return x + 1", "r = f(x)").text == ""
