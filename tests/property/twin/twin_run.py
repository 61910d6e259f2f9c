"""Runs programs of the twin test in one process, plain or recorded, and writes what they, torch and a backend noticed.

python twin_run.py plain|recorded FOLDER NUMBER...
"""

from __future__ import annotations

import abc
import collections.abc
import contextlib
import io
import json
import linecache
import re
import sys
import threading
import traceback
import types
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from IPython.core.interactiveshell import InteractiveShell
from torch._dynamo import utils
from twin_programs import text

Compile = Callable[..., Any]
#: what differs between two compiles of the same code
_CHANGING = re.compile(r"0x[0-9a-f]+|(?<=__compiled_fn_)\d+_[0-9a-f_]+|\b\d{9,}\b")
#: parts of a compile's metrics that must agree
METRICS = (
    "compile_id", "co_name", "co_firstlineno", "cache_size", "graph_op_count", "graph_node_count", "graph_input_count",
    "guard_count", "fail_type", "fail_reason", "restart_reasons", "recompile_reason", "non_compliant_ops", "is_forward",
    "has_guarded_code", "specialize_float",
)  # fmt: skip


def steady(value: Any) -> str:
    """A value as text that is the same in each run: texts in a set stand in no order, as they may have an address in them."""
    return str(sorted(map(steady, value))) if isinstance(value, set) else _CHANGING.sub("N", str(value))


def described(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return [type(value).__name__, str(value.dtype), list(value.shape), value.requires_grad, repr(value.detach().tolist())]
    return steady(repr(value))


class Witness:
    """What one run of a program shows to itself, to its backend and in torch's counters."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.graphs: list[Any] = []
        self.calls: list[Any] = []
        self.seen: list[Any] = []

    def backend(self, gm: torch.fx.GraphModule, inputs: Any, **_: Any) -> Any:
        self.note(gm)
        return gm.forward

    def note(self, gm: torch.fx.GraphModule) -> None:
        names = [f.name for f in traceback.extract_stack()]
        inside = [f.filename == self.path for f in traceback.extract_stack()]
        ops = [(n.op, str(n.target), steady(n.meta.get("stack_trace"))) for n in gm.graph.nodes]
        self.graphs.append((steady(ops), names[inside.index(True) :] if True in inside else names[-12:]))

    def differentiable(self, gm: torch.fx.GraphModule, inputs: Any) -> Any:
        self.note(gm)
        return torch._dynamo.lookup_backend("aot_eager")(gm, inputs)

    def failing(self, gm: torch.fx.GraphModule, inputs: Any) -> Any:
        self.note(gm)
        raise RuntimeError("no such backend")

    def compile_it(self, function: Any, *, fails: bool = False, backward: bool = False, **options: Any) -> Any:
        backend = self.failing if fails else self.differentiable if backward else self.backend
        return torch.compile(function, backend=backend, **options)

    def call(self, function: Any, *args: Any) -> Any:
        """The function's result, or None after an error."""
        result = None
        try:
            result = function(*args)
            self.calls.append(described(result))
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)[1:]
            chain = [steady(repr(e)) for e in (error, error.__cause__, error.__context__)]
            self.calls.append([chain, [(f.name, f.lineno) for f in frames], getattr(error, "__notes__", None)])
        return result

    def module(self, name: str) -> types.ModuleType:
        """The program, loaded from its file."""
        module = types.ModuleType(name)
        module.__file__ = self.path
        vars(module).update(compile_it=self.compile_it, call=self.call, saw=self.seen.append)
        sys.modules[name] = module
        source = Path(self.path).read_text(encoding="utf-8")
        linecache.checkcache(self.path)
        exec(compile(source, self.path, "exec"), vars(module))
        return module


def state() -> dict[str, Any]:
    """What a program or a recording could leave behind."""
    config = torch._dynamo.config.get_config_copy() if hasattr(torch._dynamo.config, "get_config_copy") else {}
    return {
        "grad": torch.is_grad_enabled(),
        "modes": torch._C._len_torch_function_stack(),
        "threads": threading.active_count(),
        "tracing": [sys.gettrace() is None, sys.getprofile() is None],
        "filters": len(warnings.filters),
        "stance": steady(torch._dynamo.eval_frame._stance),
        "config": steady(sorted((k, v) for k, v in config.items() if not callable(v))),
        "flag": getattr(torch._C._dynamo.eval_frame, "get_error_on_graph_break", lambda: None)(),
        "handlers": len(torch._logging._internal.trace_log.handlers),
    }


def witnessed(path: Path, run: Callable[[Witness], None]) -> dict[str, Any]:
    """Run a program from a clean torch, and tell everything about it.

    Python's own caches are emptied, too: Dynamo counts the frames that fill them.
    """
    witness, output = Witness(path), io.StringIO()
    torch._dynamo.reset()
    linecache.clearcache()
    for kind in vars(collections.abc).values():
        if isinstance(kind, abc.ABCMeta):
            kind._abc_caches_clear()
    utils.counters.clear()
    utils.clear_compilation_metrics()
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(output):
        warnings.simplefilter("always")
        run(witness)
    return {
        "graphs": witness.graphs,
        "calls": witness.calls,
        "seen": [steady(value) for value in witness.seen],
        "output": output.getvalue(),
        "warnings": sorted((type(w.message).__name__, steady(w.message), w.filename, w.lineno) for w in warned),
        "counters": {kind: counted(counts) for kind, counts in utils.counters.items()},
        "compiles": [metrics(m, path) for m in utils.get_compilation_metrics()],
        "state": state(),
    }


def counted(counts: Any) -> list[Any]:
    """One of torch's counters; reasons that differ only in an address are one."""
    total: Counter[str] = Counter()
    for what, times in counts.items():
        total[steady(what)] += times
    return sorted((what, times) for what, times in total.items() if times)


def metrics(found: Any, path: Path) -> list[Any]:
    """A compile's metrics; of the stack that it began with, the program's own part."""
    stack = [entry for entry in getattr(found, "stack_trace", None) or () if str(path) in entry]
    return [*(steady(getattr(found, name, None)) for name in METRICS), stack]


def both(folder: Path, number: int, recorded: bool) -> dict[str, Any]:
    """The program's scene, and one call of its function as `explain` makes it."""
    path = folder / f"program_{number}.py"
    path.write_text(text(number), encoding="utf-8")
    name = f"twin_program_{number}"
    scene = recorded_scene if recorded else plain_scene
    once = explained if recorded else compiled_once
    outcome = {"scene": witnessed(path, lambda w: scene(w, w.module(name).scene, in_cell=number % 3 == 0))}
    if number % 2 == 0:
        outcome["once"] = witnessed(path, lambda w: once(w, w.module(name + "_again").f))
    return outcome


def plain_scene(witness: Witness, scene: Any, in_cell: bool) -> None:
    if in_cell:
        run_cell("scene()", scene=lambda: witness.call(scene))
    else:
        witness.call(scene)


def recorded_scene(witness: Witness, scene: Any, in_cell: bool) -> None:
    from dynascope import last, observe

    if in_cell:
        run_cell("%%observe --view none\nscene()", scene=lambda: witness.call(scene))
    else:
        with observe():
            witness.call(scene)
    hooks = last().hooks
    assert set(hooks.values()) == {True}, hooks


def run_cell(cell: str, **names: Any) -> None:
    shell = InteractiveShell.instance()
    shell.user_ns.update(names)
    assert shell.run_cell(cell, store_history=False).success


def compiled_once(witness: Witness, function: Any) -> None:
    with torch._dynamo.config.patch(suppress_errors=True):
        failed(witness, torch.compile(function, backend=witness.backend))


def explained(witness: Witness, function: Any) -> None:
    from dynascope import explain

    failed(witness, explain(function, backend=witness.backend))


def failed(witness: Witness, function: Any) -> None:
    """The error of the program's own, if there is one: what `explain` returns is a report."""
    try:
        function(torch.ones(3))
    except BaseException as error:
        if not isinstance(error, torch._dynamo.exc.TorchDynamoException):
            frames = [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.filename == witness.path]
            witness.calls.append([steady(repr(error)), frames])


def main() -> None:
    mode, folder, *numbers = sys.argv[1:]
    run_cell("%load_ext dynascope" if mode == "recorded" else "pass")
    for number in map(int, numbers):
        outcome = both(Path(folder), number, mode == "recorded")
        with open(Path(folder) / f"{mode}.jsonl", "a", encoding="utf-8") as lines:
            lines.write(json.dumps([number, outcome]) + "\n")


if __name__ == "__main__":
    main()
