"""Regions and restoring on generated programs, against the model of `made_programs`; interrupts at random points."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
import torch
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from made_programs import Function, Model, Statement, programs, text

import dynascope
from dynascope.compiler.torch_private.region_flag import flag_kept

EXAMPLES = examples(40)


@pytest.fixture(scope="module")
def shell() -> Any:
    made = InteractiveShell.instance()
    made.run_line_magic("load_ext", "dynascope")
    made.run_line_magic("config", "DynascopeMagics.backend = 'eager'")
    made.run_line_magic("config", "DynascopeMagics.view = 'none'")
    yield made
    made.run_line_magic("unload_ext", "dynascope")


def with_region(functions: list[Function], chosen: Statement, flag: bool) -> list[Function]:
    """The same program, as data, with one statement inside an `allow` or `forbid`."""

    def walk(body: list[Statement]) -> list[Statement]:
        out = []
        for s in body:
            if s is chosen:
                out.append(Statement("forbid" if flag else "allow", [s], line=s.line))
            else:
                out.append(Statement(s.kind, walk(s.body), s.value, s.line))
        return out

    return [Function(f.name, walk(f.body), f.line) for f in functions]


def all_of(body: list[Statement]) -> list[Statement]:
    return [inner for s in body for inner in (s, *all_of(s.body))]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.booleans(), st.data())
def test_line_regions_do_what_a_with_does(shell: Any, functions: list[Function], outer: bool, data: st.DataObject) -> None:
    source = text(functions)
    # the model does not know a block that cannot be resumed inside one that can
    every = [s for s in all_of([s for f in functions for s in f.body]) if s.kind not in ("for", "try", "manager")]
    chosen = data.draw(st.sampled_from(every))
    last = chosen
    while last.body:
        last = last.body[-1]
    flag = not outer
    model = Model(with_region(functions, chosen, flag), flag=outer).run()
    lines = f"{chosen.line + 1}" if not chosen.body else f"{chosen.line + 1}-{last.line + 1}"
    magic = f"%%compile {'--error-on-graph-break' if outer else ''} --region {lines}={'error' if flag else 'allow'}"
    shell.run_cell(f"{magic}\n{source}{functions[-1].name}(torch.arange(4.0))", store_history=False)
    report = dynascope.last()
    assert {b.line - 1: b.outcome for b in report.breaks} == model.breaks, magic + "\n" + source
    assert (report.error.line - 1 if report.error and report.error.line else None) == model.refused
    for f in functions:
        assert not names_regions(shell.user_ns[f.name].__code__)


def names_regions(code: CodeType) -> bool:
    return any("__dynascope" in n for n in code.co_names) or any(
        names_regions(c) for c in code.co_consts if isinstance(c, CodeType)
    )


REGIONS = "third.helper=allow", "earlier=allow", "block=allow", "4-5=allow"
CELL = f"""%%compile --error-on-graph-break {" ".join(f"--region {r}" for r in REGIONS)}
import third
def f(x):
    x = third.helper(x) + earlier(x)
    torch._dynamo.graph_break()
    return block(x)
f(torch.ones(3))
_ = get_ipython().run_cell_magic('compile', '--region earlier=allow', 'earlier(torch.ones(3))')
"""


def is_held(function: FunctionType, besides: tuple[Any, ...]) -> bool:
    """Whether more than a frame holds it: compiled code runs as a function of its own, and tracebacks keep its frame."""
    gc.collect()
    return not all(type(r) is FrameType or any(r is b for b in besides) for r in gc.get_referrers(function))


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Interrupts raise, also where the tests were started in the background (a shell ignores them there)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# an interrupt inside a weak reference's callback of torch's own cannot be raised, and Python says so
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("interrupts")
def test_interrupts_at_random_points_restore_every_object(shell: Any, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "third.py").write_text("import torch\ndef helper(x):\n    torch._dynamo.graph_break()\n    return x + 1\n")
    shell.run_cell(
        "import torch, third\ndef earlier(x):\n    torch._dynamo.graph_break()\n    return x * 2\n"
        "class Block(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\nblock = Block()",
        store_history=False,
    )
    user, third = shell.user_ns, sys.modules["third"]
    import builtins

    import torch._dynamo.eval_frame as eval_frame

    def objects() -> list[Any]:
        return [
            user["earlier"], user["earlier"].__code__, vars(third)["helper"], third.helper.__code__, user["Block"].forward,
            user["Block"].forward.__code__, eval_frame._maybe_set_eval_frame, signal.getsignal(signal.SIGINT), sys.stdout,
            torch._dynamo.config.suppress_errors, torch.fx.graph_module._forward_from_src, *vars(user["block"]).values(),
        ]  # fmt: skip

    shell.run_cell(CELL, store_history=False)
    before, keys, names = objects(), list(vars(user["block"])), {n for n in vars(builtins) if "dynascope" in n}
    assert not names
    dice, stopped = random.Random(7), 0
    for _ in range(15):
        timer = threading.Timer(dice.uniform(0, 0.5), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            with flag_kept():
                done = shell.run_cell(CELL, store_history=False)
            stopped += isinstance(done.error_in_exec, KeyboardInterrupt)
            timer.cancel()
            timer.join()
            time.sleep(0.001)  # one that was sent in this moment is raised here
        except KeyboardInterrupt:  # it came after the cell
            stopped += 1
        assert all(a is b for a, b in zip(before, objects(), strict=True))
        assert list(vars(user["block"])) == keys
        assert not {n for n in vars(builtins) if "dynascope" in n}
        functions = [f for f in gc.get_objects() if type(f) is FunctionType and f.__globals__ is user]
        left = [f for f in functions if names_regions(f.__code__) and not f.__code__.co_name.startswith("torch_dynamo_resume")]
        assert not [f for f in left if is_held(f, besides=(functions, left))]
    assert stopped
