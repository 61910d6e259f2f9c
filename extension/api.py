"""The Python API: `dynascope.explain`, `observe`, `compile`, `region`, `load`, `last`, `record_ranks`.

This layer tells `explain` and `observe` the execution counts of notebook cells, if IPython is running.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dynascope.compiler.compiling import compile, region
from dynascope.compiler.driver import Run, last, remember
from dynascope.compiler.ranks import RanksReport
from dynascope.compiler.report import Report
from dynascope.ranks import RanksRecording
from dynascope.shell import cell_number

__all__ = ["compile", "explain", "last", "load", "observe", "record_ranks", "region"]


def explain(function: Callable[..., Any], /, **settings: Any) -> Callable[..., Report]:
    """Compile and call a function, and report what the compiler does.

        report = dynascope.explain(f, error_on_graph_break=True)(x)
        print(report)

    Args:
        function: a function, method or `nn.Module`; it stays unchanged.
        settings: every setting of `%%compile` that is not about a cell; `backend` may be a callable.

    Returns:
        A callable that takes the arguments of `function` and returns the Report.  If the compiler refuses the code,
        `report.error` says why; an error of the user's own code propagates.

    Raises:
        TypeError: if a setting is unknown or `function` is not callable.
        ValueError: if the settings cannot be used here; the message is one line that says what to do.
        AssertionError: from the call, if `expect` does not hold.
    """
    from dynascope.compiler.driver import explain
    from dynascope.widgets.terminal import ProgressLine

    return explain(function, cells=cell_number, on_progress=ProgressLine().show, **settings)


def observe() -> Run:
    """Record what the compiler does in a `with` block; nothing is compiled that the block would not compile.

        with dynascope.observe() as recording:
            compiled(x)
        print(recording.report)

    Returns:
        A context manager; its `report` is the Report of the block or, inside the block, the Report so far.
    """
    return Run(cells=cell_number, retraces=False, trace_again="call torch._dynamo.reset() before the block to compile it there")


def load(path: str | Path, *, strict: bool = False) -> Report | RanksReport:
    """Load a report from TORCH_TRACE logs, from the files of a job's ranks, or from a saved report.

        report = dynascope.load("trace_dir")
        report.save("report.html")

    Args:
        path: a file or a folder.
        strict: raise ValueError if a record is unknown or damaged (for a saved report: if one was when the report was made), or
            if a report of ranks has notes (for example, on a file that was left out).  Without `strict`, such records are only
            counted.

    Returns:
        A RanksReport for files of ranks, logs of several ranks or a saved RanksReport; otherwise a Report.

    Raises:
        FileNotFoundError: if there is nothing to read.
        ValueError: if nothing can be read; with `strict`, if not everything can be.
    """
    from dynascope.compiler.capture import trace_files
    from dynascope.compiler.ranks import folder

    if (ranks := folder.load(Path(path), strict=strict)) is not None:
        return ranks
    report = trace_files.load(path, strict=strict)
    remember(report)
    return report


def record_ranks(folder: str | Path | None = None) -> RanksRecording:
    """Record the processes that a `with` block starts, and report on them as the ranks of one job.

        with dynascope.record_ranks() as job:
            accelerate.notebook_launcher(train, num_processes=2)  # or torch.multiprocessing.spawn
        job.report

    Args:
        folder: where the ranks write their files; without it, a folder that is removed after the block.

    Returns:
        A context manager; its `report` is the RanksReport of the processes that `torch.multiprocessing` starts in the block,
        for a launcher or for you.
    """
    return RanksRecording(folder)
