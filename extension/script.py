"""Runs a script as `python script.py` does, or a module as `python -m module` does, under a recording.

The script gets its own `__main__`, `sys.argv` and `sys.path[0]`; its exceptions (except KeyboardInterrupt) go to
`sys.excepthook`, without our frames; its exit status becomes ours.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import runpy
import sys
import traceback
import types
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynascope.compiler.settings import Settings


def run_script(
    script: str,
    arguments: list[str],
    *,
    module: bool = False,
    fix: Settings | None = None,
    started: Callable[[Any], None] = lambda recording: None,
) -> tuple[Any, int]:
    """Run a script or module; returns (report, exit status).  `started` is called with the recording before the script runs.

    The status is 0, that of `sys.exit`, 1 after an exception, or 130 after Ctrl-C.  There is a report in every case.
    `fix`: if given, settings with which to search, afterwards, for fixes for what the script compiles.
    """
    from dynascope.compiler.driver.pipeline import Run

    sys.argv = [script, *arguments]
    file = None if module else Path(script).absolute()  # the script may change the directory
    recording = Run(retraces=False, fix_own=fix, on_progress=None)
    try:
        with recording:  # inside the `try`: the report includes the error that ends the script
            started(recording.recording)
            status = _status(script, file)
    except KeyboardInterrupt:
        status = 130
    except BaseException as error:
        status = _show(error.with_traceback(_own_frames(error, file)))
    report = recording.report
    if not report.frames and not report.notes and report.error is None:
        report.notes.append(
            "the script calls nothing under torch.compile: use torch.compile(model), model.compile() or @torch.compile."
        )
    return report, status


def _status(script: str, file: Path | None) -> int:
    try:
        if file is None:
            _set_first_path(os.getcwd())
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            _execute(file)
    except SystemExit as error:
        return _exit_status(error.code)
    return 0


def _exit_status(code: Any) -> int:
    """The process's exit status after `sys.exit(code)`; a `code` that is neither None nor an int is printed, as Python does."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _execute(path: Path) -> None:
    """Run a file as `__main__`.  The module stays `__main__` afterwards: pickling and late calls need it.

    `path` is absolute, as in Python's own `__file__` and tracebacks; sys.argv keeps the path as it was given.
    """
    main = types.ModuleType("__main__")
    loader = SourceFileLoader("__main__", str(path))
    main.__dict__.update(
        __file__=str(path), __builtins__=builtins, __loader__=loader, __spec__=None, __package__=None, __cached__=None
    )
    sys.modules["__main__"] = main
    _set_first_path(str(path.resolve().parent))
    exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), main.__dict__)  # without our `__future__`


def _set_first_path(folder: str) -> None:
    """Replace our own command's folder in `sys.path`; with PYTHONSAFEPATH (Python 3.11 and newer), it has none."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def _show(error: BaseException) -> int:
    """Show an exception as Python does when it ends a script; returns the exit status."""
    with contextlib.suppress(Exception):  # the script may have replaced or closed it
        sys.stdout.flush()
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__  # for `pdb.pm()` in a hook
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as ended:
        return _exit_status(ended.code)
    except BaseException:  # raised by a hook of the script
        traceback.print_exc()  # prints the error, too: it is the context
    return 1


def _own_frames(error: BaseException, file: Path | None) -> types.TracebackType | None:
    """The traceback from the script's first frame on.

    If no frame is the script's, this is the whole traceback, or None for a SyntaxError, whose message has the place.
    """

    def is_own(frame: types.FrameType) -> bool:
        if file is None:
            return frame.f_globals.get("__name__") == "__main__"
        return frame.f_code.co_filename == str(file)

    trace = error.__traceback__
    while trace is not None and not is_own(trace.tb_frame):
        trace = trace.tb_next
    if trace is None and isinstance(error, SyntaxError):
        return None
    return trace or error.__traceback__
