"""The Report as a contract: validated when it is loaded, and described by a JSON Schema."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch
from observed import Terminal

import dynascope
from dynascope.cli import main
from dynascope.compiler.report import InlinedFunction, Report
from dynascope.runs.display import Display
from dynascope.widgets.model import view_model
from tools import generated

#: holds a report with graph breaks
RECORDED = Path(__file__).parent / "profiler_traces" / "eager_cpu.json"


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    """The committed JSON Schema."""
    found = json.loads(generated.SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


@pytest.fixture
def saved() -> dict[str, Any]:
    """The data of a report."""
    data: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))["report"]
    return data


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frames": "xy"}, "Expected `array`, got `str` - at `$.frames`"),
        ({"summary": None}, "Expected `object`, got `null` - at `$.summary`"),
        ({"frames": [{"id": "f0"}]}, "Object missing required field `file` - at `$.frames[0]`"),
        ({"breaks": [{"id": "b0", "file": "a", "line": "7"}]}, "Expected `int`, got `str` - at `$.breaks[0].line`"),
        (
            {"graphs": [{"id": "g0", "frame": "f0", "ops": 1, "break": 3}]},
            "Expected `str | null`, got `int` - at `$.graphs[0].break`",
        ),
        ({"origin": "nowhere"}, "Invalid enum value 'nowhere' - at `$.origin`"),
        ({"hooks": {"frames": []}}, "Expected `bool | str`, got `array` - at `$.hooks[...]`"),
    ],
)
def test_what_is_no_report_is_one_line_with_the_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="not a dynascope report") as caught:
        Report.from_dict({"schema": 2, **change})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", [0, 1, 3, "2", None, True, [2]])
def test_other_schemas_are_refused(number: Any) -> None:
    with pytest.raises(ValueError, match="reads schema 2" + (": update dynascope$" if number == 3 else "$")):
        Report.from_dict({"schema": number})


def test_unknown_keys_are_passed_over() -> None:
    report = Report.from_dict(
        {"schema": 2, "weather": 3, "summary": {"graphs": 1, "moons": 2}, "previous": {}, "loaded": False}
    )
    assert (report.summary.graphs, report.previous, report.loaded) == (1, None, True)


class Block(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return helper(x).cos()


def test_inlined_functions_bear_their_names_and_those_of_their_classes() -> None:
    block = Block()
    report = dynascope.explain(lambda x: block(x) + 1, backend="eager")(torch.ones(3))
    line = Block.forward.__code__.co_firstlineno
    found = {i.name: i for i in report.frames[0].inlined}
    assert found.keys() == {"helper", "Block.forward"}
    assert found["Block.forward"] == InlinedFunction(name="Block.forward", file=__file__, line=line, end_line=line + 1)
    parts = {p["key"]: p for p in view_model(report)["details"]["f0"]["parts"]}
    assert {row[0] for row in parts["inlined"]["body"]} == {"helper", "Block.forward"}


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Stdout is a terminal that takes colours, for the rest of a test."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", made := Terminal())
    return made


def test_text_is_plain_also_where_stdout_is_a_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, saved: dict[str, Any]
) -> None:
    terminal(monkeypatch)
    report = Report.from_dict(saved)
    assert "\x1b" not in str(report)
    assert "\x1b" not in report.save(tmp_path / "report.txt").read_text(encoding="utf-8")


def test_the_command_and_the_terminal_display_are_coloured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, saved: dict[str, Any]
) -> None:
    shown = terminal(monkeypatch)
    assert main(["report", str(Report.from_dict(saved).save(tmp_path / "report.json"))]) == 0
    assert "\x1b[" in shown.getvalue()
    display = Display(None, "text")
    assert "\x1b[" in display._mimebundle(Report.from_dict(saved))["text/plain"]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in display._mimebundle(Report.from_dict(saved))["text/plain"]
