"""Records the traces in this folder, or in another: `python record.py [--device cuda] [--out FOLDER]`.

The events of three calls and the report go into `<name>_<device>.json`: `program()` with two backends, a step of training,
and, on a GPU, CUDA graphs.  There this makes the traces that the tests of the device lanes need.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from dynascope.compiler.driver import Run
from dynascope.compiler.lab import profile
from dynascope.compiler.lab.recorded_call import RecordedCall
from dynascope.compiler.report import Report
from dynascope.compiler.settings import Settings

COLUMNS = ("name", "kind", "start", "end", "thread", "device", "correlation", "sequence")


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


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x).relu()
        torch._dynamo.graph_break()
        return self.second(y).cos().sum()


def training(net: Net, x: torch.Tensor) -> None:
    net(x).backward()


def record(function: Any, args: tuple[Any, ...], settings: Settings) -> dict[str, Any]:
    with Run(settings, compiled=[function.__name__]) as run:
        run.retrace(function)
        entry = run.entry_point(function)
        recorded = RecordedCall(function, args, {}, entry=entry)
        entry(*args)
        recorded.returned = True
        measured = profile.measure(recorded, 3)
    assert measured.failed is None, measured.failed
    report = Report.from_dict(run.report.to_dict())
    for graph in report.graphs:
        graph.nodes, graph.code, graph.aot_forward, graph.backend_code = [], "", None, None
    for frame in report.frames:
        frame.bytecode = frame.modified_bytecode = None
        frame.guard_sites, frame.file = [], "record.py"
    for found in report.breaks:
        found.text, found.stack, found.hints, found.file = "", [], [], "record.py"
    report.sources = []
    calls = [e for e in measured.events if e.name == profile.CALL]
    start = calls[0].start
    events = [e for e in measured.events if any(c.start <= e.start < c.end for c in calls)]  # without those that warm up
    rows = [[getattr(e, c) - start if c in ("start", "end") else getattr(e, c) for c in COLUMNS] for e in events]
    origin = f"recorded on {', '.join(measured.devices)}; torch {torch.__version__}"
    return {"origin": origin, "columns": COLUMNS, "events": rows, "report": report.to_dict()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    device = arguments.device
    torch.set_num_threads(1)
    square, net = torch.rand(200, 200, device=device), Net().to(device)
    programs: dict[str, Any] = {
        "inductor": (program, (square,), Settings()),
        "eager": (program, (square,), Settings(backend="eager")),
        "training": (training, (net, torch.rand(64, 64, device=device)), Settings()),
    }
    if device == "cuda":
        programs["cudagraphs"] = (program, (square,), Settings(mode="reduce-overhead"))
    for name, what in programs.items():
        torch._dynamo.reset()
        data = record(*what)
        file = arguments.out / f"{name}_{device}.json"
        rows = ",\n".join(json.dumps(row) for row in data.pop("events"))
        text = json.dumps(data)[:-1] + ', "events": [\n' + rows + "\n]}\n"
        file.write_text(text.replace(str(Path(__file__).resolve()), "record.py"), encoding="utf-8")
        print(file, file.stat().st_size)
