"""Pages of reports with a device's time line, to be looked at: `python pages.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from device_programs import ON_GPU, broken, network, square, straight, train

import dynascope

CASES = {
    "breaks": (broken, (square(),), {}),
    "training": (train, network(), {}),
    **({"cuda_graphs": (straight, (square(),), {"mode": "reduce-overhead"})} if ON_GPU else {}),
}

if __name__ == "__main__":
    for name, (function, arguments, settings) in CASES.items():
        torch._dynamo.reset()
        report = dynascope.explain(function, profile=10, **settings)(*arguments)
        report.run_graph("g0", calls=5)
        for suffix in (".html", ".json"):
            print(report.save(Path(sys.argv[1]) / (name + suffix)))
