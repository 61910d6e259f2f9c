"""The twin test of observing: programs run plain and recorded in fresh processes, and nobody may see a difference.

Compared are the graphs that a backend gets, torch's counters and metrics of each compile, results, errors with their
tracebacks, warnings, output, what programs read from frames, and what is left behind.  Each scene is recorded by `observe`
or `%%observe`; every second program is also compiled once by `explain`, whose twin is `torch.compile`.
`make test-all` runs 500; `twin_programs.text(number)` is a program.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from example_counts import examples

HERE = Path(__file__).parent
EXAMPLES = examples(8, full=200)
#: programs to a process
BATCH = 40
#: the same programs in each run, unless DYNASCOPE_SEED=random
SEED = random.randrange(2**30) if os.environ.get("DYNASCOPE_SEED") == "random" else 16
NUMBERS = [*random.Random(SEED).sample(range(500), 500), *range(500, EXAMPLES)][:EXAMPLES]


@pytest.mark.parametrize("first", range(0, EXAMPLES, BATCH))
def test_a_recorded_program_is_like_its_plain_twin(first: int, tmp_path: Path) -> None:
    numbers = NUMBERS[first : first + BATCH]
    running = {mode: start(mode, tmp_path, numbers) for mode in ("plain", "recorded")}
    for mode, process in running.items():
        _, log = process.communicate()
        assert process.returncode == 0, f"{mode}: {log[-3000:]}"
    plain, recorded = outcomes(tmp_path, "plain"), outcomes(tmp_path, "recorded")
    assert plain.keys() == recorded.keys() == set(numbers)
    different = [
        f"program {number}, {way}, {what}:\n  plain    {plain[number][way][what]}\n  recorded {value}"
        for number in numbers
        for way in plain[number]
        for what, value in recorded[number][way].items()
        if value != plain[number][way][what]
    ]
    assert not different, "\n".join(different)


def start(mode: str, folder: Path, numbers: list[int]) -> subprocess.Popen[str]:
    """One process for a batch."""
    environ = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "twin_run.py"), mode, str(folder), *map(str, numbers)]
    return subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def outcomes(folder: Path, mode: str) -> dict[int, Any]:
    lines = (folder / f"{mode}.jsonl").read_text(encoding="utf-8").splitlines()
    return dict(json.loads(line) for line in lines)
