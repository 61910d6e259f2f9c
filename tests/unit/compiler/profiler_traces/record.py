"""Records the traces in this folder: `python record.py [--device cuda]`, one file for each backend.

The program is `program()`; the events of three calls and the report go into `<backend>_<device>.json`, with the versions and
the device's name.  On a machine with a GPU this makes the traces that the tests of the device lanes need.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from dynascope.compiler import profile, recording, run
from dynascope.compiler.fresh import fresh
from dynascope.compiler.repeat import Repeat
from dynascope.compiler.settings import Settings

COLUMNS = ("name", "kind", "start", "duration", "thread", "device", "correlation")


def inner(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return (x @ x).cos()


def program(x: torch.Tensor) -> torch.Tensor:
    y = x @ x
    print("between")
    z = (y + 1).relu() @ x
    time.sleep(0.002)
    z = inner(z)
    if z.sum() > 0:
        z = z + 1
    return z @ x


def record(backend: str, device: str) -> dict[str, Any]:
    settings = Settings(backend=backend)
    observed = recording.observe(settings, ["program"])
    x = torch.rand(200, 200, device=device)
    with observed, run.environment(settings), fresh() as freshen:
        freshen(program)
        entry = run.entry(program, settings)
        repeat = Repeat(program, (x,), {})
        entry(x)
        measured = profile.measure(entry, repeat, 3)
    assert measured.failed is None, measured.failed
    report = observed.report
    for graph in report.graphs:
        graph.nodes, graph.code, graph.aot_forward, graph.backend_code = [], "", None, None
    for frame in report.frames:
        frame.bytecode = frame.modified_bytecode = None
        frame.guards, frame.phases, frame.file = [], {}, "record.py"
    for found in report.breaks:
        found.text, found.stack, found.hints, found.file = "", [], [], "record.py"
    report.sources = []
    start = measured.events[0]["start"]
    rows = [[e["start"] - start if c == "start" else e[c] for c in COLUMNS] for e in measured.events]
    origin = f"recorded on {', '.join(measured.devices)}; torch {torch.__version__}"
    return {"origin": origin, "columns": COLUMNS, "events": rows, "report": report.to_dict()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    torch.set_num_threads(1)
    for backend in ("inductor", "eager"):
        torch._dynamo.reset()
        data = record(backend, device)
        file = Path(__file__).parent / f"{backend}_{device}.json"
        rows = ",\n".join(json.dumps(row) for row in data.pop("events"))
        file.write_text(json.dumps(data)[:-1] + ', "events": [\n' + rows + "\n]}\n", encoding="utf-8")
        print(file, file.stat().st_size)
