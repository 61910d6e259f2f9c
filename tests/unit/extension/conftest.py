"""A real IPython shell in this process, with the extension loaded; each test finds it clean."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from clicks import Clicks, clicks
from IPython.core.interactiveshell import InteractiveShell

CLEAN = frozenset(("In", "Out", "get_ipython", "exit", "quit", "open"))


@dataclass
class Done:
    """What running a cell gave."""

    result: Any
    error: BaseException | None
    text: str
    displays: list[dict[str, Any]] = field(default_factory=list)


class Shell:
    """`shell("%%compile ...", "f(x)")` runs these lines as one cell."""

    def __init__(self) -> None:
        self.ip = InteractiveShell.instance()
        self.number: int | None = None  #: the execution count of the cell that ran last

    @property
    def ns(self) -> dict[str, Any]:
        """The user's namespace."""
        return self.ip.user_ns

    def __call__(self, *lines: str, history: bool = True) -> Done:
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            done = self.ip.run_cell("\n".join(lines), store_history=history)
        self.number = done.execution_count
        text = re.sub(r"\x1b\[[0-9;]*m", "", output.getvalue())
        return Done(done.result, done.error_before_exec or done.error_in_exec, text)

    def report(self, *lines: str) -> Any:
        """Run a cell that must succeed and give its report."""
        import dynascope

        done = self(*lines)
        assert done.error is None, done.text
        return dynascope.last()


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    made = Shell()
    # as in a notebook; a script that an earlier test has run stays `__main__`, and Dynamo looks globals up there
    monkeypatch.setitem(sys.modules, "__main__", made.ip.user_module)
    for name in [n for n in made.ns if not n.startswith("_") and n not in CLEAN]:  # __compiled_fn... are Dynamo's own
        del made.ns[name]
    made.ip.compile.reset_compiler_flags()  # a cell's `__future__` imports are in force in all later cells
    made.ip.run_line_magic("colors", "nocolor")
    made.ip.run_line_magic("load_ext", "dynascope")
    made.ns["torch"] = torch
    made.ns["x"] = torch.ones(3)
    made.ip.run_line_magic("config", "DynascopeMagics.backend = 'eager'")
    made.ip.run_line_magic("config", "DynascopeMagics.view = 'none'")
    yield made
    made.ip.run_line_magic("unload_ext", "dynascope")


@pytest.fixture
def kernel(shell: Shell) -> Iterator[Clicks]:
    """The shell as a kernel's, with views whose buttons work."""
    with clicks(shell.ip) as made:
        yield made
