"""Runs models of `small_models` one after the other, plain or recorded, each from a clean torch.

    TORCH_LOGS=graph_breaks,recompiles,graph_code python run_models.py plain OUT NAME... 2> LOG
    python run_models.py recorded OUT NAME...

Plain, torch's own log goes to LOG, in which a line `>>> NAME` begins each model.  OUT gets one line of JSON for each.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import torch
from small_models import MODELS


def plain(name: str, target: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    graphs = 0

    def backend(gm: torch.fx.GraphModule, _: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return gm.forward

    with torch._dynamo.config.patch(suppress_errors=True):  # as explain has it
        torch.compile(target, backend=backend)(**inputs)
    return {"graphs": graphs, "metrics": [m.compile_id for m in torch._dynamo.utils.get_compilation_metrics()]}


def recorded(name: str, target: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    from dynascope import explain

    report = explain(target, backend="eager")(**inputs)
    summary = report.summary
    return {
        "graphs": summary.graphs,
        "breaks": sorted({f"{b.file}:{b.line}" for b in report.breaks}),
        "recompiles": summary.recompiles,
        "refused": sum("recompile limit" in (f.reason or "") for f in report.frames),
        "failed": [f"{f.name}: {f.reason}" for f in report.frames if f.status in ("failed", "unfinished")],
        "unread": report.unread,
        "hooks": [name for name, took in report.hooks.items() if took is not True],
    }


def main() -> None:
    mode, out, *names = sys.argv[1:]
    warnings.simplefilter("ignore")
    for name in names:
        print(f">>> {name}", file=sys.stderr, flush=True)
        torch._dynamo.reset()
        torch._dynamo.utils.clear_compilation_metrics()
        torch.manual_seed(0)
        try:
            target, inputs = MODELS[name]()
        except Exception as error:  # no such package, or another version of it
            found: dict[str, Any] = {"absent": f"{type(error).__name__}: {error}"}
        else:
            try:
                with torch.no_grad():
                    found = (plain if mode == "plain" else recorded)(name, target, inputs)
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}".split("\n")[0]}
        with open(out, "a", encoding="utf-8") as lines:
            lines.write(json.dumps([name, found]) + "\n")


if __name__ == "__main__":
    main()
