"""Each program of the corpus: what a rewrite makes of it does what it did, also on inputs that the fix did not see."""

from __future__ import annotations

import pytest
import torch
from corpus import FixProgram, all_programs, some_programs
from harness import REWRITES, report_of, rewritten, same

from dynascope.compiler.fixes.candidate import Problem

PROGRAMS = all_programs()


def of(*verdicts: str) -> list[object]:
    return [pytest.param(p, id=p.name) for p in some_programs(10) if p.verdict in verdicts]


def named(program: FixProgram, problems: list[Problem]) -> None:
    """The first break has the type of the corpus: that is torch 2.13's name; others have other names, or no break."""
    if torch.__version__.startswith("2.13"):
        assert problems[0].kind == program.kind


def source(program: FixProgram) -> str:
    return program.source.removeprefix("\n")


def test_the_corpus() -> None:
    names = [p.name for p in PROGRAMS]
    assert len(names) == len(set(names)) >= 60
    assert len({p.kind for p in PROGRAMS}) >= 40
    assert all(p.why for p in PROGRAMS if p.verdict == "none")


@pytest.mark.parametrize("program", of("fixed"))
def test_fixed(program: FixProgram) -> None:
    _, problems = report_of(source(program), program.inputs[0])
    named(program, problems)
    text, steps, refused = rewritten(source(program), program.inputs, program.raises)
    assert steps, refused
    settings = {name: value for s in steps for name, value in s.candidate.settings.items()}
    report, problems = report_of(text, program.inputs[0], settings)
    assert problems == []
    assert report.summary.skipped == 0
    assert steps[0].candidate.title == program.title
    options = {"backend": "eager", "fullgraph": True}
    assert same(text, source(program), program.inputs, program.raises, settings, **options) == ""


@pytest.mark.parametrize("program", of("better"))
def test_better(program: FixProgram) -> None:
    before, problems = report_of(source(program), program.inputs[0])
    named(program, problems)
    text, steps, refused = rewritten(source(program), program.inputs, program.raises)
    assert steps, refused
    assert steps[0].candidate.title == program.title
    after, _ = report_of(text, program.inputs[0])
    assert (after.summary.ops, -after.summary.graphs) > (before.summary.ops, -before.summary.graphs)
    assert same(text, source(program), program.inputs, program.raises, {}, backend="eager") == ""


@pytest.mark.parametrize("program", of("false"))
def test_false(program: FixProgram) -> None:
    _, problems = report_of(source(program), program.inputs[0])
    named(program, problems)
    assert [c for rewrite in REWRITES for c in rewrite(problems[0])]
    text, steps, refused = rewritten(source(program), program.inputs)
    assert not [s.candidate.title for s in steps], text
    assert refused


@pytest.mark.parametrize("program", of("none"))
def test_none(program: FixProgram) -> None:
    _, problems = report_of(source(program), program.inputs[0])
    named(program, problems)
    offered = [(c.title, c.edits) for p in problems[:1] for rewrite in REWRITES for c in rewrite(p)]
    assert offered == []
