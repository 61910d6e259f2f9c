"""What `fix` does for the models of `broken_models`, each in a process of its own: one line of JSON for each in OUT.

    python tests/real/fix_models.py [--seconds N] OUT [NAME...]
    python tests/real/fix_models.py - NAME
    python tests/real/fix_models.py --table OUT

Without names, all.  With `-`, the one model runs in this process, and its figures and fixes are printed.  `--table` writes the
table in examples/reference/fixes.md from OUT.

A warm call is the fourth of the program as torch.compile has it, without dynascope: how many graphs it runs, and its time.
The check that follows is independent of dynascope, too: five calls with inputs that the search has not seen, values and, where
the model trains, gradients, eager and without the fixes against compiled with them; where the unchanged program differs from
eager when it is compiled, that is compared with.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import logging
import os
import random
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy
import torch
from broken_models import MODELS, Broken

TABLE = Path(__file__).parents[2] / "examples" / "reference" / "fixes.md"
BEGIN, END = "<!-- models -->\n", "<!-- end of models -->\n"
HEAD = """\
| model | breaks | graphs | graphs run in a warm call | ms | search | verified, conditional | what is changed |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
MARK = "torch._dynamo.mark_dynamic"


def warm(made: Broken, call: Callable[..., Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Graphs run in a warm call, and its milliseconds; processor time, which does not depend on what else the machine does."""
    runs = 0

    def backend(gm: torch.fx.GraphModule, _: Any) -> Any:
        def run(*args: Any) -> Any:
            nonlocal runs
            runs += 1
            return gm(*args)

        return run

    torch._dynamo.reset()
    compiled, seconds = torch.compile(call, backend=backend, dynamic=settings.get("dynamic")), []
    for _ in range(6):
        torch.manual_seed(1)
        inputs = marked(made.inputs(0), settings)
        runs, start = 0, time.process_time()
        compiled(**inputs)
        seconds.append(time.process_time() - start)
    return {"runs": runs, "ms": round(statistics.median(seconds[3:]) * 1000, 2), "first": round(seconds[0], 2)}


def marked(inputs: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    for mark in settings.get(MARK, ()):
        name, dimension = mark.split(", ")
        with contextlib.suppress(KeyError):
            torch._dynamo.mark_dynamic(inputs[name], int(dimension))
    return inputs


def values(found: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The tensors and plain values in a result, each with where it is."""
    if isinstance(found, Mapping):
        parts: list[tuple[Any, Any]] = list(found.items())
    elif isinstance(found, (list, tuple)):
        parts = list(enumerate(found))
    elif found is None or isinstance(found, (torch.Tensor, bool, int, float, str)) or depth > 6:
        yield path, found
        return
    else:
        parts = list(getattr(found, "__dict__", {}).items())
    for name, value in parts:
        yield from values(value, f"{path}.{name}", depth + 1)


def outcome(made: Broken, call: Callable[..., Any], owner: Any, number: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What one call returns, the gradients it leaves in the parameters of `owner`, or what it raises."""
    torch.manual_seed(100 + number)
    inputs = marked(made.inputs(number), settings)
    for seed in (torch.manual_seed, random.seed, numpy.random.seed):
        seed(number)
    weights = dict(owner.named_parameters()) if made.trains else {}
    for weight in weights.values():
        weight.grad = None
    try:
        found = call(**inputs)
        if made.trains:
            found.backward()
    except Exception as error:
        return {"raises": type(error).__name__}
    given = {path: value.detach().clone() if isinstance(value, torch.Tensor) else value for path, value in values(found)}
    return given | {f"gradient of {name}": None if w.grad is None else w.grad.clone() for name, w in weights.items()}


def differences(eager: dict[str, Any], fixed: dict[str, Any]) -> list[str]:
    wrong = [f"{path}: only in one of both" for path in eager.keys() ^ fixed.keys()]
    for path in eager.keys() & fixed.keys():
        one, other = eager[path], fixed[path]
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
            with contextlib.suppress(AssertionError):
                torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5, equal_nan=True)
                continue
        elif one == other if one is not None or other is None else not other.any():  # a gradient of zero in place of none
            continue
        wrong.append(f"{path}: {str(one)[:80]} in eager mode, {str(other)[:80]}")
    return wrong


def measured(name: str, made: Broken, limit: float | None) -> dict[str, Any]:
    from dynascope import explain
    from dynascope.compiler.lab.fix import search

    class Timed(search.Search):
        """When the search begins, and when it first says that graph breaks go."""

        def __init__(self, trials: Any, report: Any, *, on_progress: Callable[[str], None], **options: Any) -> None:
            super().__init__(trials, report, on_progress=self._heard, **options)
            began.append(time.perf_counter())

        def _heard(self, sentence: str) -> None:
            if sentence.startswith("graph breaks "):
                answered.append(time.perf_counter())

    began, answered, search.Search = list[float](), list[float](), Timed  # type: ignore[misc]
    torch.manual_seed(1)
    started, called = time.process_time(), time.perf_counter()
    report = explain(made.call, backend="eager", fix=True, fix_seconds=limit)(**made.inputs(0))
    processor = time.process_time() - started
    fixes = report.fixes_to_apply(conditional=True)
    chosen = [fix for fix in report.fixes if fix.chosen]
    verified = sum(fix.verdict == "verified" for fix in chosen)
    row: dict[str, Any] = {
        "model": name, "breaks": len(report.breaks), "graphs": report.summary.graphs, "recompiles": report.summary.recompiles,
        "first_call_only": sum(bool(b.first_call_only) for b in report.breaks),
        "processor_seconds": round(processor, 1),
        "first_call_seconds": round(began[0] - called, 1) if began else None,
        "first_answer_seconds": round(answered[0] - began[0], 1) if answered else None,
        "verified": verified, "conditional": len(chosen) - verified,
        "fixes": [{"title": f.title, "verdict": f.verdict, "condition": f.condition} for f in chosen],
        "refused": sorted({f"{f.title}: {f.reason[:160]}" for f in report.fixes if f.verdict == "refused"}),
    }  # fmt: skip
    for figures in (report.fix_set, report.conditional_fix_set):
        if figures is not None:
            row["search"] = round(figures.search_seconds or 0, 1)
            row["complete"], row["notes"] = figures.is_complete, figures.notes
            row["breaks_before"], row["breaks_after"] = figures.before.breaks, figures.after.breaks
            row["graphs_before"], row["graphs_after"] = figures.before.graphs, figures.after.graphs
            row["recompiles_after"] = figures.after.recompiles
    for before in chosen[:1]:
        row["eager_ops_before"], row["eager_ops_after"] = before.before.eager_ops, chosen[-1].after.eager_ops
    if not chosen or fixes is None:
        return row
    eager = [outcome(made, unfixed := copy.deepcopy(made.call), unfixed, number, {}) for number in range(1, 6)]
    torch._dynamo.reset()
    compiled = torch.compile(unfixed := copy.deepcopy(made.call), backend="aot_eager")
    unchanged = [outcome(made, compiled, unfixed, number, {}) for number in range(1, 6)]
    differs = [bool(differences(*pair)) for pair in zip(eager, unchanged, strict=True)]
    row["unchanged_differs"] = sum(differs)
    wanted = [two if is_other else one for one, two, is_other in zip(eager, unchanged, differs, strict=True)]
    with report.fixed(conditional=True) as call:
        row["warm_after"] = warm(made, call, fixes.settings)
        torch._dynamo.reset()
        compiled = torch.compile(call, backend="aot_eager", dynamic=fixes.settings.get("dynamic"))
        checked = [outcome(made, compiled, call, number, fixes.settings) for number in range(1, 6)]
    pairs = enumerate(zip(wanted, checked, strict=True), 1)
    row["wrong"] = [f"call {number}: {words}" for number, pair in pairs for words in differences(*pair)][:8]
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, help="limit of a search, in place of the usual one")
    parser.add_argument("--unfixed", action="store_true", help="only a warm call, in a fresh process")
    given = parser.parse_args()
    if given.table:
        write_table([json.loads(line) for line in Path(given.out).read_text(encoding="utf-8").splitlines()])
        return
    if given.out == "-":
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        for name in given.names:
            torch.manual_seed(0)
            made = MODELS[name]()
            with torch.set_grad_enabled(made.trains):
                print(json.dumps(warm(made, made.call, {}) if given.unfixed else measured(name, made, given.seconds), indent=1))
        return
    for name in given.names or MODELS:
        start = time.perf_counter()
        row = one(name, *([] if given.seconds is None else ["--seconds", str(given.seconds)]))
        row["warm"] = one(name, "--unfixed")
        row["seconds"] = round(time.perf_counter() - start)
        with open(given.out, "a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")
        print(name, {k: row.get(k) for k in ("breaks", "breaks_after", "search", "wrong", "error")}, flush=True)


def write_table(rows: list[dict[str, Any]]) -> None:
    """Rows in the order of `MODELS`, the last one of each model."""
    last = {row["model"]: row for row in rows if "error" not in row}
    lines = [line(last[name]) for name in MODELS if name in last]
    before, _, rest = TABLE.read_text(encoding="utf-8").partition(BEGIN)
    TABLE.write_text(before + BEGIN + HEAD + "".join(lines) + END + rest.partition(END)[2], encoding="utf-8")


def line(row: dict[str, Any]) -> str:
    warm, after = row["warm"], row.get("warm_after")

    def pair(one: Any, other: Any) -> str:
        return f"{one} → {other}" if row["fixes"] else f"{one}"

    titles = dict.fromkeys(f["title"] + (f" ({f['condition']})" if f["condition"] else "") for f in row["fixes"])
    cells = [
        row["model"], pair(row["breaks"], row["breaks_after"]), pair(row["graphs"], row["graphs_after"]),
        pair(warm["runs"], after and after["runs"]),
        pair(warm.get("ms", "–"), after and after.get("ms", "–")),
        f"{row['processor_seconds']:.0f} s" + ("" if row["complete"] else ", cut short"),
        f"{row['verified']}, {row['conditional']}", "; ".join(titles).replace("|", "\\|") or "–",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |\n"


def one(name: str, *options: str) -> dict[str, Any]:
    """What a process of its own finds out about a model."""
    command = [sys.executable, __file__, "-", name, *options]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=3600, env={**os.environ, "OMP_NUM_THREADS": "1"})
        found: dict[str, Any] = json.loads(ran.stdout[ran.stdout.index("{\n ") :])
    except subprocess.TimeoutExpired:
        return {"model": name, "error": "not done in an hour"}
    except ValueError:
        return {"model": name, "error": ran.stderr.strip()[-600:]}
    return found


if __name__ == "__main__":
    main()
