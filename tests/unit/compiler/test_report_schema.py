"""The Report as a contract: validated when it is loaded, described by a JSON Schema, and reports of schema 1 still load."""

from __future__ import annotations

import copy
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch
from programs import PROGRAMS

import dynascope
from dynascope.cli import main
from dynascope.compiler.report import FlagOrigin, InlinedFunction, Report
from dynascope.runs.display import Display
from dynascope.widgets.labels.bands import region_name
from dynascope.widgets.labels.recompiles import guard_words, recompile_words
from dynascope.widgets.labels.run_time import cost_method, first_to_fix, input_words, verdict_words
from dynascope.widgets.labels.summary import headline
from dynascope.widgets.labels.words import Places
from dynascope.widgets.model.build import view_model
from dynascope.widgets.render.text import to_text
from tools import generated

SAVED = sorted((Path(__file__).parent / "saved_reports").glob("*.json"))
TRACES = sorted((Path(__file__).parent / "profiler_traces").glob("*.json"))
OLD = [*SAVED, *(path for path in TRACES if json.loads(path.read_text(encoding="utf-8"))["report"]["schema"] == 1)]


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    """The committed JSON Schema."""
    found = json.loads(generated.SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


def old(path: Path) -> dict[str, Any]:
    """A report that was saved in schema 1."""
    data = json.loads(path.read_text(encoding="utf-8"))
    found: dict[str, Any] = data.get("report", data)
    return found


def test_the_schema_of_the_docs_is_current() -> None:
    assert generated.SCHEMA.read_text(encoding="utf-8") == generated.json_schema_text(), "run: python -m tools.generated schema"


def everything(x: Any) -> Any:
    x = helper(x)
    torch._dynamo.graph_break()
    return x * 2


def helper(x: Any) -> Any:
    return x.sin() + 1


def test_a_report_with_every_part_is_valid_and_comes_back_as_it_was(schema: jsonschema.Draft202012Validator) -> None:
    inputs = [torch.ones(3), torch.ones(4), torch.ones(2, 2).double(), 7]
    report = dynascope.explain(everything, backend="eager", profile=2, check=True, inputs=inputs, bytecode=True)(torch.ones(3))
    report.run_graph("g0", backend="eager", calls=2)
    data = json.loads(json.dumps(report.to_dict()))
    assert {"profile", "inputs", "check"} <= data.keys()
    schema.validate(data)
    before = copy.deepcopy(data)
    assert Report.from_dict(data) == report
    assert data == before


@pytest.mark.parametrize("program", PROGRAMS[::6], ids=lambda p: p.name)
def test_reports_of_programs_are_valid(program: Any, schema: jsonschema.Draft202012Validator) -> None:
    torch._dynamo.reset()
    space: dict[str, Any] = {"torch": torch, "compiled": dynascope.compile(backend="eager", **program.options)}
    with dynascope.observe() as recording:
        try:
            exec(compile(program.text("@compiled"), "<program>", "exec"), space)
        except Exception:
            assert recording is not None  # some programs are made to fail
    report = recording.report
    schema.validate(json.loads(json.dumps(report.to_dict())))
    assert Report.from_dict(report.to_dict()) == report


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frames": "xy"}, "Expected `array`, got `str` - at `$.frames`"),
        ({"summary": None}, "Expected `object`, got `null` - at `$.summary`"),
        ({"frames": [{"id": "f0"}]}, "Object missing required field `compile_id` - at `$.frames[0]`"),
        ({"breaks": [{"id": "b0", "file": "a", "line": "7"}]}, "Expected `int`, got `str` - at `$.breaks[0].line`"),
        (
            {"graphs": [{"id": "g0", "frame": "f0", "ops": 1, "break": 3}]},
            "Expected `str | null`, got `int` - at `$.graphs[0].break`",
        ),
        ({"origin": "nowhere"}, "Invalid enum value 'nowhere' - at `$.origin`"),
        ({"hooks": {"frames": []}}, "Expected `bool | str`, got `array` - at `$.hooks[...]`"),
    ],
)
@pytest.mark.parametrize("number", [1, 2])
def test_what_is_no_report_is_one_line_with_the_place(number: int, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="not a dynascope report") as caught:
        Report.from_dict({"schema": number, **change})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", [0, 3, "2", None, True, [2]])
def test_other_schemas_are_refused(number: Any) -> None:
    with pytest.raises(ValueError, match="reads schemas 1 and 2" + (": update dynascope$" if number == 3 else "$")):
        Report.from_dict({"schema": number})


def outcome(data: dict[str, Any]) -> str:
    """The headline of what can be loaded, or the error's message."""
    try:
        return Report.from_dict(data).headline()
    except ValueError as error:
        return str(error)


def test_wrong_types_anywhere_in_old_data_are_one_line() -> None:
    """Whatever stands in the place of a part, the upgrade leaves it to the validation."""
    data = old(next(p for p in SAVED if p.stem == "profiled"))
    for name in data:
        for wrong in (7, "text", [7], [[]], {"a": 1}, None):
            for broken in ({**data, name: wrong}, {**data, "profile": {**data["profile"], "breaks": wrong, "verdict": wrong}}):
                assert "\n" not in outcome(broken)


def test_deep_data_is_one_line() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        Report.from_dict({"schema": 2, "frames": deep})


def test_unknown_keys_are_passed_over() -> None:
    report = Report.from_dict(
        {"schema": 2, "weather": 3, "summary": {"graphs": 1, "moons": 2}, "previous": {}, "loaded": False}
    )
    assert (report.summary.graphs, report.previous, report.loaded) == (1, None, True)


@pytest.mark.parametrize("path", OLD, ids=lambda p: p.stem)
def test_reports_of_schema_1_load_and_are_valid_in_schema_2(path: Path, schema: jsonschema.Draft202012Validator) -> None:
    data = old(path)
    before = copy.deepcopy(data)
    report = Report.from_dict(data)
    assert data == before
    assert report.schema == 2
    plain = json.loads(json.dumps(report.to_dict()))
    schema.validate(plain)
    assert Report.from_dict(plain) == report
    assert view_model(report)["headline"] == headline(report)
    assert to_text(report)


@pytest.mark.parametrize("path", OLD, ids=lambda p: p.stem)
def test_the_sentences_of_schema_1_are_the_views_now(path: Path) -> None:
    data = old(path)
    report = Report.from_dict(data)
    places = Places(report)
    for was, found in zip(data["breaks"], report.breaks, strict=True):
        shown = region_name(found, places)
        assert (shown or {"run": "this run", "default": "default"}.get(found.region.kind)) == was["region"]
    for was, again in zip(data["recompiles"], report.recompiles, strict=True):
        assert recompile_words(again) == was["words"]
    for was, run in zip(data.get("inputs", ()), report.inputs or (), strict=True):
        assert input_words(run) == was["words"]
    if report.profile is not None and "profile" in data:
        numbers = re.compile(r"\d[\d.,]*(?: \w+)?")  # the sentence has been written anew
        assert numbers.findall(verdict_words(report.profile)) == numbers.findall(data["profile"]["verdict"]["words"])
        assert first_to_fix(report.profile, report) == data["profile"]["first"].replace(" %", "%")
        for was, cost in zip(data["profile"]["breaks"], report.profile.breaks, strict=True):
            assert cost_method(cost) == was["how"]


def test_old_regions_become_structures() -> None:
    found = {p.stem: Report.from_dict(old(p)) for p in SAVED}
    assert [b.region for b in found["stopped"].breaks] == [
        FlagOrigin(kind="with", file="model.py", line=29), FlagOrigin(kind="decorator", name="allowed"), FlagOrigin(kind="run"),
    ]  # fmt: skip
    assert [b.region.name for b in found["options"].breaks if b.region.kind == "option"] == ["6", "inner"]
    assert [(r.first, r.last, r.set_by.name) for r in found["options"].sources[0].regions][-1] == (6, 6, "6")
    assert found["dynamic"].breaks[0].region == FlagOrigin()


def test_a_recompiles_guards_are_facts() -> None:
    def f(x: Any, n: int) -> Any:
        return x * n

    torch._dynamo.reset()
    compiled = torch.compile(f, backend="eager", dynamic=False)
    with dynascope.observe() as recording:
        compiled(torch.ones(3), 2)
        compiled(torch.ones(4), 2)
    (guard,) = recording.report.recompiles[0].failed_guards
    assert (guard.kind, guard.source, guard.dimension, guard.before, guard.now) == ("size", "x", 0, "3", "4")
    assert guard_words(guard) == "x had another size in dimension 0: 3 before, 4 now"


class Block(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return helper(x).cos()


def test_inlined_functions_bear_their_names_and_those_of_their_classes() -> None:
    torch._dynamo.reset()
    block = Block()
    report = dynascope.explain(lambda x: block(x) + 1, backend="eager")(torch.ones(3))
    line = Block.forward.__code__.co_firstlineno
    found = {i.name: i for i in report.frames[0].inlined}
    assert found.keys() == {"helper", "Block.forward"}
    assert found["Block.forward"] == InlinedFunction(name="Block.forward", file=__file__, line=line, end_line=line + 1)
    parts = {p["key"]: p for p in view_model(report)["details"]["f0"]["parts"]}
    assert {row[0] for row in parts["inlined"]["body"]} == {"helper", "Block.forward"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Stdout is a terminal that takes colours, for the rest of a test."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", made := Terminal())
    return made


def test_text_is_plain_also_where_stdout_is_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    terminal(monkeypatch)
    report = Report.from_dict(old(next(p for p in SAVED if p.stem == "regions")))
    assert "\x1b" not in str(report)
    assert "\x1b" not in report.save(tmp_path / "report.txt").read_text(encoding="utf-8")


def test_the_command_and_the_terminal_display_are_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    path = next(p for p in SAVED if p.stem == "regions")
    assert main(["report", str(path)]) == 0
    assert "\x1b[" in shown.getvalue()
    display = Display(None, "text")
    assert "\x1b[" in display._mimebundle(Report.from_dict(old(path)))["text/plain"]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in display._mimebundle(Report.from_dict(old(path)))["text/plain"]
