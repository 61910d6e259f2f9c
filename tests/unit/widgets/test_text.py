"""The terminal view: short, plain in a pipe, a caret line under the break."""

from __future__ import annotations

import io
import sys

import pytest
from msgspec.structs import replace
from samples import SAMPLES, loop, one_break, recompiled, refused

from dynascope.compiler.report import InputRun, Profile, Recompile, Report, Verdict
from dynascope.compiler.report.comparison import parse_expectations
from dynascope.widgets.features.comparisons import unmet
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.recompiles import recompile_row
from dynascope.widgets.features.run_time import input_words, verdict_words
from dynascope.widgets.features.summary import headline
from dynascope.widgets.render.text import to_text
from dynascope.widgets.terminal import ProgressLine, Terminal


def test_one_break() -> None:
    lines = to_text(one_break(), colour=False, width=100).splitlines()
    assert lines[0] == "f: 2 graphs · 1 graph break · 1 resume function · 0 skipped · compiled in 0.84 s"
    assert lines[2] == "✂ graph break at In[3]:4:5 in f (resumed)"
    assert lines[3] == "      4 │ torch._dynamo.graph_break()"
    assert lines[4] == "        │ ^^^^^^^^^^^^^^^^^^^^^^^^^^^"
    assert len(lines) <= 8


def test_skips_recompiles_and_errors_are_told() -> None:
    assert "– skipped frame decode at In[3]:8: because of the break at In[3]:11" in to_text(loop(), colour=False)
    assert "↻ recompile 0/1 of f (0.21 s)\n    n was 2 when it was compiled, and is not now" in to_text(recompiled())
    assert "✗ Unsupported at In[3]:4" in to_text(refused(), colour=False)


@pytest.mark.parametrize("name", SAMPLES)
def test_plain_text_is_plain_and_not_too_wide(name: str) -> None:
    text = to_text(SAMPLES[name](), colour=False, width=80)
    assert "\x1b" not in text
    assert "\x00" not in text
    if name not in ("hostile", "many"):
        assert max(map(len, text.splitlines())) <= 100


def test_colour_changes_no_character() -> None:
    import re

    plain, coloured = to_text(loop(), colour=False, width=90), to_text(loop(), colour=True, width=90)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_stream_that_cannot_encode_our_signs_gets_plain_ones(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
    for make in SAMPLES.values():
        report = make()
        print(report, report.details(), report.headline(), report.diff(one_break()), report._repr_mimebundle_()["text/plain"])
    sys.stdout.flush()
    text = written.getvalue().decode(encoding)
    assert "* graph break at In[3]:4:5 in f (resumed)" in text
    assert "      4 | torch._dynamo.graph_break()" in text
    assert ("f: 2 graphs · 1 graph break" if encoding == "cp1252" else "f: 2 graphs - 1 graph break") in text
    assert "breaks 1 -> 0" in text


def test_breaks_that_are_alike_are_shown_once() -> None:
    report = one_break()
    [first] = report.breaks
    [hit] = first.hits
    report.breaks += [replace(first, id=f"b{n}", line=n, hits=[replace(hit, line=n)]) for n in range(5, 18)]
    text = to_text(report, colour=False)
    assert text.count("✂ graph break") == 1
    assert "    13 more graph breaks like this:\n      In[3]:5:5  torch._dynamo.graph_break()\n" in text
    report.breaks[1].explanation = "Another reason."
    assert to_text(report, colour=False).count("✂ graph break") == 2
    del report.breaks[3:]
    assert to_text(report, colour=False).count("✂ graph break") == 3, "two that are alike are both shown in full"


def test_a_headline_fits_the_terminal() -> None:
    report = one_break()
    report.compiled = ["the cell's statements"]
    lines = to_text(report, colour=False, width=80).splitlines()
    head = "the cell's statements: 2 graphs · 1 graph break · 1 resume function ·"
    assert lines[:2] == [head, "  0 skipped · compiled in 0.84 s"]


@pytest.mark.parametrize(("n", "s"), [(1, ""), (2, "s")])
def test_counts_agree_with_their_nouns(n: int, s: str) -> None:
    report = one_break()
    report.summary.unknown_breaks, report.graphs[0].ops = n, n
    assert f"1 graph break and {n} at {'an unknown place' if n == 1 else 'unknown places'} ·" in headline(report)
    assert f", {n} op{s}\n" in unmet(report, parse_expectations("ops=0")[0])
    report.inputs = [InputRun(arguments="y", frames=["f0", "f1"])]
    for name in ("graphs", "breaks", "resumes"):
        assert "In[3]" not in unmet(report, parse_expectations(f"{name}=9")[0]), "what inputs added is not counted"
    verdict = Verdict(eager_seconds=2.0, compiled_seconds=1.0, payback="calls", payback_calls=n)
    profile = Profile(calls=n, median_seconds=1.0, verdict=verdict)
    assert verdict_words(profile).endswith(f"pays for itself after {n} call{s}")
    assert verdict_words(replace(profile, shares={"gaps": 1.0})).endswith("; no compiled graph runs in its own thread")
    run = InputRun(arguments="x", outcome="reused", seconds=1.0, payback="calls", payback_calls=n)
    assert input_words(run).endswith(f"pays back after {n} call{s}")
    run = InputRun(arguments="x", outcome="recompiled", recompiles=n)  # several guards failed, or none is known
    assert input_words(run).startswith(f"compiled again {n} time{s}; all compiles took ")
    again = Recompile(frame="f0", of=None, entries=1, limit=n)
    assert recompile_row(again, Places(Report()))["facts"] == f"1 of {n} version{s}"


def test_the_details_have_the_whole_of_a_long_note() -> None:
    note = f"check: compiled and eager differ: {'; '.join(f'value {i} by 0.5' for i in range(60))}. The eager one is right."
    report = Report(notes=[note])
    assert "The eager one is right." not in str(report)
    assert "The eager one is right." in " ".join(report.details().split())


def test_what_was_asked_for_and_what_is_missing_is_in_the_text_however_many_notes_there_are() -> None:
    report = one_break()
    report.notes = [*(f"note {n}" for n in range(20)), "second call: it has the same graph breaks"]
    report.unread = {"payload damaged": 2}
    report.hooks = {"frames": True, "stops": "AttributeError: no run"}
    text = to_text(report, width=200)
    assert "note: 2 records of the compiler could not be used (payload damaged 2)" in text
    assert "these hooks do not fit this torch: stops: AttributeError: no run" in text
    assert "note: second call: it has the same graph breaks" in text
    assert "note 8\n… and 11 more notes" in text


def test_of_a_word_that_is_longer_than_a_line_the_beginning_is_shown() -> None:
    assert Terminal(False, 48).labelled("cause: ", "a" * 100, 1) == ["cause: " + "a" * 39 + " …"]


def test_in_a_pipe_a_long_search_says_now_and_then_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    often = ProgressLine(every=20)
    for second in range(45):
        often.show({"seconds": second, "stage": f"tracing {second}"})
    assert capsys.readouterr().err == "[21 s] tracing 21\n[42 s] tracing 42\n"
