"""Recording adds no frame that torch, a backend or the user's code can see: each program runs plain and recorded."""

from __future__ import annotations

import contextlib
import linecache
import logging
import re
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

import dynascope
from dynascope.compiler.capture.recording import observe
from dynascope.compiler.capture.torch_private import hook_installer, hooks
from dynascope.compiler.driver import explain

PACKAGE = [str(Path(folder).resolve()) for folder in dynascope.__path__]
OURS = [*PACKAGE, str(Path(hook_installer.__file__).resolve().parents[1])]
break_here = torch._dynamo.graph_break


@pytest.fixture(autouse=True)
def _new_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


# -- programs ------------------------------------------------------------------------------------------


def inner(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


@torch.compiler.disable(recursive=False)
def outer(x: torch.Tensor) -> torch.Tensor:
    x = x + 2
    break_here()
    return inner(x)


@torch.compiler.disable
def disabled(x: torch.Tensor) -> torch.Tensor:
    return inner(x) + 1


class Block(torch.nn.Module):
    @torch.compiler.disable(recursive=False)
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return inner(x + 2)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x * 2) + 1


MODEL = Model()


def calls_outer(x: torch.Tensor) -> torch.Tensor:
    return outer(x * 2) + 1


def calls_model(x: torch.Tensor) -> torch.Tensor:
    return MODEL(x)


def calls_wrapped_here(x: torch.Tensor) -> torch.Tensor:
    break_here()
    return torch.compiler.disable(inner, recursive=False)(x) + 1


def calls_disabled(x: torch.Tensor) -> torch.Tensor:
    return disabled(x) * 2


def no_break(x: torch.Tensor) -> torch.Tensor:
    return inner(x) * 2


def one_break(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    break_here()
    return x * 2


def deep(x: torch.Tensor) -> torch.Tensor:
    return one_break(x + 1) + one_break(x + 2)


def in_loop(x: torch.Tensor) -> torch.Tensor:
    for i in range(3):
        x = x + i
        break_here()
    return x


def data_dependent(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x * 2
    return x - 1


def skipped(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    torch._dynamo.skip_frame()
    return inner(x)


def calls_skipped(x: torch.Tensor) -> torch.Tensor:
    return skipped(x + 1) * 2


def prints(x: torch.Tensor) -> torch.Tensor:
    print(end="")
    return x + 1


def other_sizes(x: torch.Tensor) -> torch.Tensor:
    compiled = torch.compile(inner, backend="eager")
    return compiled(x)


def reads_frames(x: torch.Tensor) -> torch.Tensor:
    return x + sys._getframe().f_lineno


def warns(x: torch.Tensor) -> torch.Tensor:
    warnings.warn("from the program", UserWarning, stacklevel=2)
    return x + 1


def fails(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    break_here()
    raise ValueError("the user's own")


def bad_shape(x: torch.Tensor) -> torch.Tensor:
    return x @ torch.ones(7, 7)


DISABLED = [calls_outer, calls_model, calls_wrapped_here, calls_disabled, outer]
PROGRAMS: list[Any] = [
    *DISABLED, no_break, one_break, deep, in_loop, data_dependent, skipped, calls_skipped, prints, other_sizes, reads_frames,
    warns, fails, bad_shape,
]  # fmt: skip


# -- both ways -----------------------------------------------------------------------------------------


def stack() -> list[tuple[str, int | None, str]]:
    return [(s.filename, s.lineno, s.name) for s in traceback.extract_stack()[:-2]]


class Starts(logging.Handler):
    """The stacks that torch records at the start of each compile."""

    def __init__(self) -> None:
        super().__init__()
        self.stacks: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", {})
        if "dynamo_start" in metadata:
            self.stacks.append(metadata["dynamo_start"]["stack"])


def everything(program: Callable[..., Any], fullgraph: bool = False) -> dict[str, Any]:
    """What a program, and a backend, can notice: results, errors, warnings, counts and all stacks."""
    torch._dynamo.reset()
    counters.clear()
    graphs: list[Any] = []

    def backend(gm: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append((str(gm.graph), stack(), str(torch._guards.TracingContext.extract_stack())))
        return gm.forward

    starts = Starts()
    torch._logging._internal.trace_log.addHandler(starts)
    results: list[Any] = []
    errors: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            compiled = torch.compile(program, backend=backend, fullgraph=fullgraph)
            for size in (2, 3):
                try:
                    results.append(compiled(torch.ones(size)).tolist())
                except Exception as error:
                    errors.append("".join(traceback.format_exception(error)))
    finally:
        torch._logging._internal.trace_log.removeHandler(starts)
    return {
        "results": results,
        "errors": [re.sub(r"0x[0-9a-f]+", "0x", e) for e in errors],
        "graphs": graphs,
        "starts": starts.stacks,
        "warnings": [(str(w.message), w.filename, w.lineno) for w in warned],
        "frames": dict(counters["frames"]),
        "breaks": [re.sub(r"0x[0-9a-f]+", "0x", reason) for reason in counters["graph_break"].elements()],
    }


@pytest.mark.parametrize(
    ("program", "fullgraph"),
    [*((p, False) for p in PROGRAMS), *((p, True) for p in (no_break, deep, calls_outer, calls_skipped, bad_shape))],
    ids=lambda p: p.__name__ if callable(p) else "fullgraph" if p else "",
)
def test_a_program_notices_nothing(program: Any, fullgraph: bool) -> None:
    outcomes, recording = [], observe()
    everything(program, fullgraph)  # what torch does once in a process is done
    for around in (contextlib.nullcontext(), recording):
        with around:
            outcomes.append(everything(program, fullgraph))
    plain, seen = outcomes
    for part in plain:
        assert seen[part] == plain[part], part
    assert set(recording.report.hooks.values()) == {True}


@pytest.mark.parametrize("program", DISABLED[:4], ids=lambda p: p.__name__)
def test_disable_is_honoured_under_explain(program: Any) -> None:
    graphs = len(everything(program)["graphs"])
    torch._dynamo.reset()
    shapes = [explain(program, backend="eager")(torch.ones(2)).summary.graphs for _ in range(2)]
    torch._dynamo.reset()
    seen: list[Any] = []
    torch.compile(program, backend=lambda gm, _: seen.append(gm) or gm.forward)(torch.ones(2))  # type: ignore[func-returns-value]
    assert shapes == [len(seen)] * 2
    assert graphs >= len(seen)


SCRIPT = """
import contextlib, logging, re, sys, traceback
import torch, torch._dynamo
from dynascope import observe

def inner(x):
    return x.sin() if x.sum() > 0 else x.cos()

def f(x):
    torch._dynamo.graph_break()
    return inner(x) + 1

def refused(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y

def backend(gm, inputs):
    raise RuntimeError("no such backend")

def everything():
    torch._dynamo.reset()
    compiled = torch.compile(f, backend="aot_eager")
    for size in (3, 4, 5):
        compiled(torch.ones(size))
    for chosen in ({"backend": "eager", "fullgraph": True}, {"backend": backend}):
        try:
            torch.compile(refused, **chosen)(torch.ones(3))
        except Exception:
            traceback.print_exc()
    with torch._dynamo.config.patch(suppress_errors=True):
        torch._dynamo.reset()
        torch.compile(refused, backend=backend)(torch.ones(3))

everything()  # what is printed once in a process
torch._logging.set_logs(dynamo=logging.DEBUG, graph_breaks=True, recompiles=True, guards=True)
torch._dynamo.config.verbose = VERBOSE
for around in (contextlib.nullcontext(), observe()):
    print("<<<< next >>>>", flush=True)
    with around:
        everything()
print("<<<< next >>>>", flush=True)
"""


@pytest.mark.parametrize("verbose", [False, True], ids=["short", "verbose"])
def test_logs_and_tracebacks_are_the_same(verbose: bool, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(SCRIPT.replace("VERBOSE", str(verbose)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout
    _, plain, recorded, _ = done.stdout.split("<<<< next >>>>\n")
    assert "Graph break in user code" in recorded
    assert "Recompiling function" in recorded
    assert [folder for folder in OURS if folder in recorded] == []
    assert steady(recorded) == steady(plain)


def steady(log: str) -> list[str]:
    """The lines of a log without its clock, its addresses, and the times that it ends with."""
    lines = [re.sub(r"^[VDIWE]\d{4} [\d:.]+ \d+ ", "", line) for line in log.splitlines()]
    lines = [
        re.sub(r"0x[0-9a-f]+|\b\d{8,}\b|[0-9a-f]{8}-[0-9a-f-]{27}|(?<=__compiled_fn_)\w+|\d+\.\d+", "N", line) for line in lines
    ]
    return [line for line in lines if "latency" not in line and "_dynamo/utils.py" not in line]


# -- watching a function from inside -------------------------------------------------------------------


class Watched:
    __hidden = 1

    def both(self, x: int, *rest: int) -> tuple[int, ...]:
        """Its words."""

        def deeper() -> int:
            return self.__hidden

        if x < 0:
            raise ValueError(re.sub("a", "b", "negative"))
        if x == 0:
            return ()
        with contextlib.suppress(KeyError):
            return (x, deeper(), *rest)

    def nothing(self) -> None:
        self.done = True


class Notes(list[Any]):
    def note(self, *what: Any) -> None:
        self.append(what)

    def result(self, result: Any) -> Any:
        self.append(("result", result))
        return result


def test_a_watched_function_is_the_same_to_everybody_else() -> None:
    notes, watched = Notes(), Watched()
    function, code = Watched.both, Watched.both.__code__
    undo = hook_installer.watch(
        function, notes, before="observer.note(x, rest)", returned="observer.result(result)", failed="observer.note(self)"
    )
    now = function.__code__
    assert Watched.both is function
    assert now is not code
    for name in ("co_name", "co_filename", "co_firstlineno", "co_varnames", "co_freevars", "co_flags", "co_argcount"):
        assert getattr(now, name) == getattr(code, name)
    assert watched.both(2, 3) == (2, 1, 3)
    assert watched.both(0) == ()
    with pytest.raises(ValueError, match="negbtive") as seen:
        watched.both(-1)
    assert notes == [(2, (3,)), ("result", (2, 1, 3)), (0, ()), ("result", ()), (-1, ()), (watched,)]
    undo()
    assert function.__code__ is code
    with pytest.raises(ValueError, match="negbtive") as plain:
        watched.both(-1)
    assert traceback.format_tb(seen.tb)[1:] == traceback.format_tb(plain.tb)[1:]
    assert seen.value.__context__ is None


def test_a_function_that_ends_without_a_return_returns_none() -> None:
    notes = Notes()
    undo = hook_installer.watch(Watched.nothing, notes, returned="observer.result(result)")
    assert Watched().nothing() is None
    undo()
    assert notes == [("result", None)]


def test_what_cannot_be_watched_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "changed_module.py"
    path.write_text("def f(x):\n    return x + 1\n")
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    path.write_text("def f(x):\n    return x + 2\n")
    with pytest.raises(ValueError, match="not the code that runs"):
        hook_installer.watch(space["f"], None, before="observer(x)")
    with pytest.raises(ValueError, match="no parameter y"):
        hook_installer.watch(Watched.both, None, before="observer(y)")
    exec(compile("def g(x): return x", "<nowhere>", "exec"), space)
    with pytest.raises(OSError, match="source"):
        hook_installer.watch(space["g"], None, before="observer(x)")
    assert space["f"](1) == 2
    path.write_text("f = lambda x: x; g = f\n")
    exec(compile("def f(x): return x + 1", str(path), "exec"), space)
    linecache.checkcache(str(path))
    with pytest.raises(ValueError, match="the source of f is not its definition"):
        hook_installer.watch(space["f"], None, before="observer(x)")


def test_a_changed_source_of_torch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(*_: Any, **__: Any) -> Any:
        raise ValueError("the source is not the code that runs")

    monkeypatch.setattr(hooks, "watch", changed)
    with observe() as recording:
        assert torch.compile(no_break, backend="eager")(torch.ones(2)).shape == (2,)
    status = recording.report.hooks
    assert status["structured trace"] is True
    assert status["frames"] == "ValueError: the source is not the code that runs"
