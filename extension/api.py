"""The same from Python: `dynascope.explain`, `observe`, `compile`, `region`, `load`, `last`.

These are the compiler layer's own functions; what is added here is that they know the notebook's cells wherever
IPython runs, and that `last()` remembers the latest report.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dynascope.compiler.report import Report

if TYPE_CHECKING:
    from dynascope.compiler.recording.recording import Recording

_last: Report | None = None


def last() -> Report:
    """The latest report of `%%compile`, `%%observe`, `explain` or `observe`.

    Raises LookupError where there is none yet.
    """
    if _last is None:
        raise LookupError("no report yet: run a cell under %%compile, or dynascope.explain(f)(x)")
    return _last


def remember(report: Report) -> None:
    """Make this the report that `last()` gives."""
    global _last
    _last = report


def explain(function: Callable[..., Any], **settings: Any) -> Callable[..., Report]:
    """Compile and call a function, and report: `report = explain(f, error_on_graph_break=True)(x)`.

    Args:
        function: a function, method or `nn.Module`; it stays as it is.
        settings: every setting of `%%compile`; `backend` may be a callable.

    Returns:
        A callable that takes the arguments of `function` and returns the Report.  What the compiler refuses is in
        `report.error`; an error of the user's own code propagates.
    """
    from dynascope.compiler.driver import explain

    call = explain.explain(function, cells=cell_number, **settings)

    def explained(*args: Any, **kwargs: Any) -> Report:
        report = call(*args, **kwargs)
        remember(report)
        return report

    return explained


def observe() -> Recording:
    """Record what the compiler does in a `with` block: `with observe() as recording: ...`; `recording.report`."""
    from dynascope.compiler.recording.recording import Recording

    class Remembered(Recording):
        def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
            super().__exit__(kind, error, trace)
            remember(self.report)

    return Remembered(cells=cell_number)


def compile(model: Any = None, *, error_on_graph_break: bool | None = None, **arguments: Any) -> Any:
    """What `torch.compile` returns, with the argument that it lacks: `error_on_graph_break`."""
    from dynascope.compiler.driver import explain

    return explain.compile(model, error_on_graph_break=error_on_graph_break, **arguments)


def region(*, error_on_graph_break: bool) -> Any:
    """A decorator and context manager: in this stretch of code, graph breaks are errors (True) or allowed (False)."""
    from dynascope.compiler.driver import regions

    return regions.region(error_on_graph_break=error_on_graph_break)


def load(path: str | Path, *, strict: bool = False) -> Report:
    """The report of a TORCH_TRACE log, a folder of them (one for each rank), or a saved `report.json`.

    Records that are unknown or damaged are passed over, counted in `report.unread`; with `strict` they are an error.
    Raises FileNotFoundError where there is none, and ValueError where nothing can be read.
    """
    from dynascope.compiler.recording import trace_files

    report = trace_files.load(path, strict=strict)
    remember(report)
    return report


def cell_number(file: str) -> int | None:
    """The execution count of the notebook cell with this file name; None where no IPython runs, or for other files."""
    interactive = sys.modules.get("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell._instance if interactive is not None else None
    count = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    return count if isinstance(count, int) else None
