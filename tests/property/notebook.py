"""A notebook without a browser: run cells in a real IPython shell and describe what they left."""

from __future__ import annotations

import contextlib
import io
import types
from dataclasses import dataclass, field
from typing import Any

import torch
from IPython.core.interactiveshell import InteractiveShell


@dataclass
class Outcome:
    """Everything about a run that a user could tell apart."""

    error: str | None
    result: Any
    output: str
    names: dict[str, Any]
    #: which names are one object
    same: list[list[str]] = field(default_factory=list)


class Notebook:
    """A shell whose namespace can be cleared."""

    def __init__(self) -> None:
        self.shell = InteractiveShell.instance()
        self.shell.run_line_magic("load_ext", "dynascope")
        self.clean = dict(self.shell.user_ns)

    def clear(self) -> None:
        """Forget what cells have bound."""
        namespace = self.shell.user_ns
        for name in [n for n in namespace if n not in self.clean and not n.startswith("__")]:  # those are the compiler's
            del namespace[name]
        namespace.update(self.clean)

    def run(self, setup: str, cell: str, magic: str = "", *, history: bool = False) -> Outcome:
        """Run `setup`, then `cell` (under `magic`), in an empty namespace, and describe what is there then.

        `history`: whether the cell gets a number, as in a notebook.
        """
        self.clear()
        assert self.shell.run_cell(setup, silent=True).success
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            done = self.shell.run_cell((magic + "\n" if magic else "") + cell, store_history=history)
        error = done.error_before_exec or done.error_in_exec
        printed = output.getvalue()
        if error is not None:  # the traceback is printed too
            printed = printed.partition("-" * 75)[0]
        printed = "".join(line for line in printed.splitlines(keepends=True) if not line.startswith("Out["))
        namespace = {n: v for n, v in self.shell.user_ns.items() if n not in self.clean and not n.startswith("_")}
        groups: dict[int, list[str]] = {}
        for name, value in namespace.items():
            if not isinstance(value, (int, float, str, bool, type(None))):
                groups.setdefault(id(value), []).append(name)
        return Outcome(
            error=type(error).__name__ if error is not None else None,
            result=describe(done.result),
            output=printed,
            names={n: describe(v) for n, v in sorted(namespace.items())},
            same=sorted(sorted(g) for g in groups.values() if len(g) > 1),
        )


def describe(value: Any, depth: int = 0) -> Any:
    """What can be told about a value, in comparable data."""
    if depth > 4:
        return "..."
    if isinstance(value, torch.nn.Module):
        return ("module", type(value).__qualname__, [(n, describe(p, depth + 1)) for n, p in value.named_parameters()])
    if isinstance(value, torch.Tensor):
        return (type(value).__name__, str(value.dtype), list(value.shape), value.requires_grad, repr(value.tolist()))
    if isinstance(value, (list, tuple, set)):
        return (type(value).__name__, [describe(v, depth + 1) for v in value])
    if isinstance(value, dict):
        return ("dict", [(k, describe(v, depth + 1)) for k, v in value.items()])
    if isinstance(value, types.FunctionType):
        return ("function", value.__qualname__, value.__module__, value.__code__.co_name, called(value, depth))
    if isinstance(value, type):
        return ("class", value.__qualname__, value.__module__)
    if isinstance(value, types.ModuleType):
        return ("library", value.__name__)
    if isinstance(value, (int, float, str, bool, type(None))):
        return (type(value).__name__, repr(value))
    return type(value).__name__


def called(function: types.FunctionType, depth: int) -> Any:
    """What a function of one argument does now, late: a lambda that reads a global finds today's."""
    if function.__code__.co_argcount != 1 or function.__name__ in ("noisy", "bump"):
        return None
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return describe(function(torch.ones(3)), depth + 1)
    except Exception as error:
        return type(error).__name__
