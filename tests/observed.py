"""What many tests of the compiler begin with: a function that breaks, a program as a module, what a call compiles."""

from __future__ import annotations

import io
import json
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from dynascope.compiler.capture.recording import observe
from dynascope.compiler.lab.slices import Event
from dynascope.compiler.report import Report

PROFILES = Path(__file__).parent / "unit" / "compiler" / "profiler_traces"


def broken(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def loaded(name: str, text: str, **names: Any) -> ModuleType:
    """The text, run as a module of this name that has these names from outside; its file is `<name>`."""
    file, module = f"<{name}>", ModuleType(name)
    sys.modules[name] = module
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    vars(module).update(names)
    exec(compile(text, file, "exec"), vars(module))
    return module


def seen(call: Callable[[], Any]) -> Report:
    """The report of a call under `observe()`."""
    with observe() as recording:
        call()
    return recording.report


def profiled(name: str) -> tuple[list[Event], Report]:
    """The profiler's events of recorded calls, and their report."""
    data = json.loads((PROFILES / f"{name}.json").read_text(encoding="utf-8"))
    return [Event(**dict(zip(data["columns"], row, strict=True))) for row in data["events"]], Report.from_dict(data["report"])
