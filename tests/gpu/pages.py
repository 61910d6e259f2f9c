"""Pages of reports with a device's time line, to be looked at: `python pages.py FOLDER [NAME...]`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from device_programs import ON_GPU, broken, detection, language, network, square, straight, train, training

import dynascope

CASES = {
    "breaks": lambda: (broken, (square(),)),
    "backward": lambda: (train, network()),
    "transformer": language,
    "training": training,
    **({"cuda_graphs": lambda: (straight, (square(),))} if ON_GPU else {}),
}
#: takes minutes, and torchvision
SLOW = {"detection": detection}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name in sys.argv[2:] or CASES:
        torch._dynamo.reset()
        torch.manual_seed(0)
        function, arguments = (CASES | SLOW)[name]()
        mode = {"mode": "reduce-overhead"} if name == "cuda_graphs" else {}
        report = dynascope.explain(function, profile=10, check=True, **mode)(*arguments)
        if report.graphs:
            report.run_graph("g0", calls=5)
        print(f"== {name}\n{report}\n", flush=True)
        for suffix in (".html", ".json"):
            report.save(folder / (name + suffix))
