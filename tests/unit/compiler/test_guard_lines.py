"""Programs with a known answer: which line wants the guard that fails on which call."""

from __future__ import annotations

import runpy

import pytest
import torch
from programs import COLUMNS, NOTICES_ATTRIBUTES
from recompile_programs import PROGRAMS

from dynascope.compiler.builder.compile_records import CompileRecord
from dynascope.compiler.builder.guards import Version
from dynascope.compiler.capture.recording import observe
from dynascope.compiler.report import Report
from dynascope.widgets.features.recompiles import recompile_words


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    folder, made = tmp_path_factory.mktemp("programs"), {}
    for name, program in PROGRAMS.items():
        file = folder / f"{name.replace(' ', '_').replace(',', '')}.py"
        file.write_text(program.text, encoding="utf-8")
        torch._dynamo.reset()
        with observe() as recording:
            runpy.run_path(str(file))
        made[name] = recording.report
    return made


def marked(name: str, mark: str) -> int | None:
    lines = PROGRAMS[name].text.splitlines()
    return next((n for n, line in enumerate(lines, 1) if line.endswith(f"# {mark}")), None) if mark else None


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_line_that_caused_a_recompile(name: str, reports: dict[str, Report]) -> None:
    if name in ("an attribute of a module", "training and evaluation") and not NOTICES_ATTRIBUTES:
        pytest.skip("plain torch runs the old code; see torch_versions.md")
    told = []
    for recompile in reports[name].recompiles:
        guard = recompile.failed_guards[0]
        told.append((recompile.call, guard.kind, guard.source or guard.text, guard.at.line if guard.at else None))
    assert told == [(call, kind, about, marked(name, mark)) for call, kind, about, mark in PROGRAMS[name].expected]


#: program -> of the symbols in its last frame: what it stands for, why it is dynamic, its only value, and the mark of the line
#: that gave it that value
SYMBOLS = {
    "a number becomes a symbol": [("n", None, "automatic", None, "")],
    "a branch on a size": [("x", 0, "setting", None, "")],
    "a size pinned by a constant tensor": [],
    "a size pinned by int": [("x", 0, "setting", "4", "A")],
    "a pin deep in calls": [("x", 0, "setting", "4", "A")],
    "automatic, then a branch": [("x", 0, "automatic", None, "")],
    "two sizes that were equal": [("x", 0, "setting", None, ""), ("y", 0, "setting", None, "")],
    "a marked size": [("x", 1, "marked", None, "")],
}


@pytest.mark.parametrize("name", SYMBOLS)
def test_why_a_symbol_is_one_and_what_gave_it_a_value(name: str, reports: dict[str, Report]) -> None:
    told = []
    for symbol in reports[name].frames[-1].symbols:
        pin = next((c for c in symbol.constraints if c.value is not None), None)
        told.append((symbol.source, symbol.dimension, symbol.dynamic, symbol.value, pin and pin.at and pin.at.line))
    assert told == [(*facts, marked(name, mark)) for *facts, mark in SYMBOLS[name]]


def test_who_wanted_a_guard(reports: dict[str, Report]) -> None:
    def wanted(name: str) -> tuple[str, str | None, str]:
        guard = reports[name].recompiles[-1].failed_guards[0]
        return guard.origin, guard.asked_by, (guard.hint or "")[:14]

    assert wanted("a number") == ("code", None, "")
    assert wanted("a branch on a size")[0] == "code"
    assert wanted("a size of one") == ("compiler", "0/1 specialization", "")
    said = "x.size()[0] was at least 2 when it was compiled, and is 1 now; torch compiles for 0 and 1 apart"
    assert recompile_words(reports["a size of one"].recompiles[0]) == [said]
    assert wanted("two sizes that were equal") == ("compiler", "duck sizing", "duck sizing ad")
    assert not NOTICES_ATTRIBUTES or wanted("an attribute of a module") == ("code", None, "you might want")
    assert wanted("a size pinned by a constant tensor") == ("operation", "infer_size", "")


@pytest.mark.parametrize(
    ("condition", "source"),
    [("L['n'] <= 10", "n"), ("2 <= L['n']", "n"), ("-3 <= L['n'] + 1", "n + 1"), ("L['a'] == L['b']", "a")],
)
def test_the_source_of_a_condition_is_its_expression_and_a_line_of_torch_no_place(condition: str, source: str) -> None:
    record = CompileRecord(None, guard_text=f"+- LAMBDA_GUARD: {condition}  # (_refs/__init__.py:3 in f)\n")
    read = Version(record, lambda file: None)
    assert [(g.source, g.asked_by, site.at) for site in read.sites for g in site.guards] == [(source, "f", None)]


@pytest.mark.parametrize(
    ("id", "source", "cause"), [("0/0", "L['x'].item()", "data"), ("0/0", "L['n']", "unknown"), ("0/1", "L['n']", "automatic")]
)
def test_a_value_has_changed_only_after_an_earlier_compile(id: str, source: str, cause: str) -> None:
    made = [("create_symbol", {"symbol": "s0", "source": source})]
    record = CompileRecord(id, shapes=made, metrics={"dynamo_config": '{"automatic_dynamic_shapes": true}'})
    assert [symbol.dynamic for symbol in Version(record, lambda file: None).symbols.values()] == [cause]


def test_a_helper_is_reached_through_its_calls(reports: dict[str, Report]) -> None:
    columns = COLUMNS and not torch.__version__.startswith(("2.9", "2.11"))  # their stacks have lines only
    guard = reports["a number in a helper"].recompiles[0].failed_guards[0]
    assert [(e.line, e.function) for e in guard.stack] == [(5, "f"), (3, "helper")]
    assert (guard.at.column, guard.at.end_column) == ((11, 16) if columns else (None, None))
