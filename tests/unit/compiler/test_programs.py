"""Every program with a known truth, under `observe()`; each of their reports is as the JSON Schema says."""

from __future__ import annotations

import json

import jsonschema
import pytest
import torch
from observed import loaded, seen
from programs import PROGRAMS, Program, check, skip_where_unlike

import dynascope.compiler.compiling as run
from dynascope.compiler.report import Report
from tools import generated

SCHEMA = jsonschema.Draft202012Validator(json.loads(generated.SCHEMA.read_text(encoding="utf-8")))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_observed(program: Program) -> None:
    """The program is executed as a cell of its own, its `@compiled` being `dynascope.compile`."""
    skip_where_unlike(program)
    compiled = run.compile(backend="eager", **program.options)
    report = seen(lambda: loaded(f"cell_{program.name}", program.text("@compiled"), torch=torch, compiled=compiled))
    check(program, report)
    SCHEMA.validate(json.loads(json.dumps(report.to_dict())))
    assert Report.from_dict(report.to_dict()) == report
