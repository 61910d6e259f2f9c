"""60 small models of packages from PyPI: the report says what torch's own log says (`make test-real`).

Each model is compiled plain in one process, with TORCH_LOGS, and by `explain` in another.  Models whose package is not
installed are skipped.  What was found lies in build/real_models, as lines of JSON; `python -m tools.generated real` writes the
table in examples/reference/real_models.md from it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_models import MODELS
from torch_log import Log, read

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "real_models"
#: models to a process: importing a package costs more than a model
BATCH = 12
NAMES = list(MODELS)
TORCH = f"{os.sep}torch{os.sep}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(NAMES), BATCH))
def test_the_report_says_what_torch_logs(first: int) -> None:
    names = NAMES[first : first + BATCH]
    BUILD.mkdir(parents=True, exist_ok=True)
    out = {mode: BUILD / f"{mode}_{first}.jsonl" for mode in ("plain", "recorded")}
    log = BUILD / f"plain_{first}.log"
    running = []
    for mode, path in out.items():
        path.unlink(missing_ok=True)
        environ = {**os.environ, "OMP_NUM_THREADS": "1"}
        if mode == "plain":
            environ["TORCH_LOGS"] = "graph_breaks,recompiles,graph_code"
        with log.open("w") if mode == "plain" else open(os.devnull, "w") as stderr:
            command = [sys.executable, str(HERE / "run_models.py"), mode, str(path), *names]
            running.append(subprocess.Popen(command, env=environ, stderr=stderr))
    assert [process.wait() for process in running] == [0, 0]
    logs = read(log.read_text(encoding="utf-8"))
    plain, recorded = (dict(map(json.loads, path.read_text(encoding="utf-8").splitlines())) for path in out.values())
    rows = {name: compared(logs[name], plain[name], recorded[name]) for name in names}
    (BUILD / f"rows_{first}.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    wrong = {name: row["differences"] for name, row in rows.items() if row["differences"]}
    assert not wrong, json.dumps(wrong, indent=1)


def compared(log: Log, plain: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any]:
    """The counts of one model, and where the report and the log differ."""
    absent = plain.get("absent") or recorded.get("absent")
    error = plain.get("error")
    if absent or error or "error" in recorded:
        same = error == recorded.get("error")
        return {"absent": absent, "error": error, "differences": [] if absent or same else [f"{error} / {recorded}"]}
    differences = []
    if not log.graphs == plain["graphs"] == recorded["graphs"]:
        differences.append(f"graphs: {log.graphs} in the log, {plain['graphs']} given to the backend, {recorded['graphs']}")
    # torch also logs the attempt that it refuses at the recompile limit
    if len(log.recompiles) != recorded["recompiles"] + recorded["refused"]:
        differences.append(f"recompiles: {log.recompiles}, {recorded['recompiles']} and {recorded['refused']} refused")
    # where the innermost line is in torch's own code, the report has the line that leads there
    own = {place for place in log.breaks if TORCH not in place}
    told = set(recorded["breaks"])
    if not own <= told or len(told - own) > len(log.breaks - own):
        differences.append(f"breaks: {sorted(log.breaks - told)} only in the log, {sorted(told - own)} only in the report")
    if recorded["failed"] or recorded["unread"] or recorded["hooks"]:
        differences.append(f"{recorded['failed']} {recorded['unread']} {recorded['hooks']}")
    return {
        "absent": None, "error": None, "graphs": recorded["graphs"], "breaks": len(told),
        "recompiles": recorded["recompiles"], "refused": recorded["refused"], "differences": differences,
    }  # fmt: skip
