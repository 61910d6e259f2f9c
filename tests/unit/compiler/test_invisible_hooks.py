"""Recording adds no frame that the logs of torch show, and watching a function from inside changes nothing of it.

That programs and backends see no difference is a property test (`tests/property/twin`).
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

import dynascope
from dynascope.compiler.capture.recording import observe
from dynascope.compiler.capture.torch_private import hook_installer, hooks

PACKAGE = [str(Path(folder).resolve()) for folder in dynascope.__path__]
OURS = [*PACKAGE, str(Path(hook_installer.__file__).resolve().parents[1])]


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


def test_a_changed_source_of_torch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "watch", Mock(side_effect=ValueError("the source is not the code that runs")))
    with observe() as recording:
        assert torch.compile(lambda x: x.sin() + 1, backend="eager")(torch.ones(2)).shape == (2,)
    status = recording.report.hooks
    assert status["structured trace"] is True
    assert status["frames"] == "ValueError: the source is not the code that runs"
