"""Damaged TORCH_TRACE logs: no crash, no hang, and what is unreadable is mentioned in the report's text."""

from __future__ import annotations

import os
import random
import re
import time
from pathlib import Path
from typing import Any

import pytest
from damaged_traces import DAMAGE, SILENT, corpus
from example_counts import examples

from dynascope.compiler.capture.trace_files import load
from dynascope.compiler.report import Report

SEED = int(os.environ.get("DYNASCOPE_TRACE_SEED", "0"))
SECONDS = 60
LOGS = corpus()


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """The report of each log before it is damaged."""
    folder = tmp_path_factory.mktemp("intact")
    reports = {}
    for name, log in LOGS.items():
        (folder / "log.log").write_bytes(log)
        reports[name] = load(folder / "log.log")
    return reports


def content(report: Report) -> dict[str, Any]:
    """What a report says of the program; torch's version, which one record gives, may get lost and is then None."""
    return {k: v for k, v in report.to_dict().items() if k not in ("versions", "unread", "notes")}


def mentions(report: Report, intact: Report) -> bool:
    """Whether the text says that something is missing or wrong."""
    text = " ".join(str(report).split())
    if report.unread:
        return "the log is damaged, incomplete or from an unknown torch" in text
    if report.summary.unfinished > intact.summary.unfinished:
        return f"{report.summary.unfinished} unfinished" in text
    new = [note for note in report.notes if note not in intact.notes]
    return bool(new) and all(re.sub(r"\W", "", note)[:40] in re.sub(r"\W", "", text) for note in new)


def loaded(file: Path) -> Report | None:
    """The file's report; None if it is refused, which takes one line."""
    try:
        return load(file)
    except ValueError as error:
        why = str(error)
    assert why.count("\n") == 0
    return None


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_mentioned(damage: str, intact: dict[str, Report], tmp_path: Path) -> None:
    file = tmp_path / "log.log"
    for number in range(max(1, examples(52) // len(DAMAGE))):
        chance = random.Random(f"{SEED} {damage} {number}")
        name = chance.choice(list(LOGS))
        file.write_bytes(DAMAGE[damage](LOGS[name], chance))
        began = time.process_time()
        report = loaded(file)
        if report is None:
            continue
        assert time.process_time() - began < SECONDS
        assert Report.from_dict(report.to_dict()) == report
        if damage not in SILENT:
            assert content(report) == content(intact[name]) or mentions(report, intact[name]), (name, number)
        if report.unread:
            with pytest.raises(ValueError, match="×"):
                load(file, strict=True)
