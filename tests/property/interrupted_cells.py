"""Interrupts a cell at random points; what the magic replaces while the cell runs must be as before, each time.

`python interrupted_cells.py FOLDER` (an empty folder, for a module) prints how many interrupts came while the cell ran.
"""

from __future__ import annotations

import builtins
import gc
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch
import torch._dynamo.eval_frame as eval_frame
from IPython.core.interactiveshell import InteractiveShell

from dynascope.compiler.capture.torch_private.config import flag_kept

THIRD = "import torch\ndef helper(x):\n    torch._dynamo.graph_break()\n    return x + 1\n"
EARLIER = """import torch, third
def earlier(x):
    torch._dynamo.graph_break()
    return x * 2
class Block(torch.nn.Module):
    def forward(self, x):
        return x + 1
block = Block()
"""
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


def new_shell() -> Any:
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "dynascope")
    shell.run_line_magic("config", "DynascopeMagics.backend = 'eager'")
    shell.run_line_magic("config", "DynascopeMagics.view = 'none'")
    return shell


def names_regions(code: CodeType) -> bool:
    return any("__dynascope" in n for n in code.co_names) or any(
        names_regions(c) for c in code.co_consts if isinstance(c, CodeType)
    )


def is_held(function: FunctionType, besides: tuple[Any, ...]) -> bool:
    """Whether more than a frame holds it: compiled code runs as a function of its own, and tracebacks keep its frame."""
    gc.collect()
    return not all(type(r) is FrameType or any(r is b for b in besides) for r in gc.get_referrers(function))


def objects(user: dict[str, Any], third: Any) -> list[Any]:
    """What the magic replaces while the cell runs, and what must not change with it."""
    return [
        user["earlier"], user["earlier"].__code__, third.helper, third.helper.__code__, user["Block"].forward,
        user["Block"].forward.__code__, eval_frame._maybe_set_eval_frame, signal.getsignal(signal.SIGINT), sys.stdout,
        torch._dynamo.config.suppress_errors, torch.fx.graph_module._forward_from_src, *vars(user["block"]).values(),
    ]  # fmt: skip


def interrupt(shell: Any, seconds: float) -> bool:
    """Run the cell, and interrupt it after some time; returns whether the interrupt came while it ran."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with flag_kept():
            done = shell.run_cell(CELL, store_history=False)
        timer.cancel()
        timer.join()
        time.sleep(0.001)  # one that was sent in this moment is raised here
    except KeyboardInterrupt:  # it came after the cell
        return True
    return isinstance(done.error_in_exec, KeyboardInterrupt)


def main(folder: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts a command in the background ignores it
    (folder / "third.py").write_text(THIRD)
    sys.path.insert(0, str(folder))
    shell = new_shell()
    gc.freeze()  # what exists so far need not be searched
    shell.run_cell(EARLIER, store_history=False).raise_error()
    user, third = shell.user_ns, sys.modules["third"]
    shell.run_cell(CELL, store_history=False).raise_error()
    before, keys = objects(user, third), list(vars(user["block"]))
    dice, stopped = random.Random(7), 0
    for _ in range(15 if os.environ.get("DYNASCOPE_FULL") else 6):
        stopped += interrupt(shell, dice.uniform(0, 0.5))
        assert all(a is b for a, b in zip(before, objects(user, third), strict=True))
        assert list(vars(user["block"])) == keys
        assert not {n for n in vars(builtins) if "dynascope" in n}
        functions = [f for f in gc.get_objects() if type(f) is FunctionType and f.__globals__ is user]
        left = [f for f in functions if names_regions(f.__code__) and not f.__code__.co_name.startswith("torch_dynamo_resume")]
        assert not [f for f in left if is_held(f, besides=(functions, left))]
    print(stopped)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
