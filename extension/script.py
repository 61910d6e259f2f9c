"""Run a script as `python script.py` does, under a recording.

The script gets its own `__main__`, `sys.argv` and `sys.path[0]`; its exceptions print as Python prints
them, without our frames; its exit status is ours.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback
import types
from pathlib import Path
from typing import Any


def run_script(script: str, arguments: list[str], *, module: bool = False) -> tuple[Any, int]:
    """Run it, and return (report, exit status).

    The status is the script's: of `sys.exit`, 1 after an exception, 130 after Ctrl-C.  A report is made
    in every case.
    """
    import dynascope

    sys.argv = [script, *arguments]
    recording = dynascope.observe()
    try:
        with recording:  # sees what ends the script: the report tells it
            status = _status(script, module)
    except KeyboardInterrupt:
        status = 130
    except BaseException as error:
        sys.stdout.flush()
        traceback.print_exception(type(error), error, _own_frames(error, script, module))
        status = 1
    return recording.report, status


def _status(script: str, module: bool) -> int:
    try:
        if module:
            sys.path[0] = os.getcwd()
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            _execute(Path(script))
    except SystemExit as leaving:
        return exit_status(leaving.code)
    return 0


def exit_status(code: Any) -> int:
    """What the shell sees after `sys.exit(code)`; a text is printed, as Python does."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _execute(path: Path) -> None:
    """As `python path` does.  The module stays `__main__` afterwards: pickling and late calls need it."""
    path = path.absolute()  # as Python has it in `__file__` and in tracebacks; sys.argv keeps what was given
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=str(path), __builtins__=__builtins__, __spec__=None, __package__=None, __cached__=None)
    sys.modules["__main__"] = main
    sys.path[0] = str(path.resolve().parent)  # in the place of our own command's folder
    exec(compile(path.read_bytes(), str(path), "exec"), main.__dict__)


def _own_frames(error: BaseException, script: str, module: bool) -> types.TracebackType | None:
    """The traceback from the script's first frame on; whole where none is the script's (a SyntaxError)."""
    trace = error.__traceback__
    while trace is not None and not module and trace.tb_frame.f_code.co_filename != str(Path(script).absolute()):
        trace = trace.tb_next
    while trace is not None and module and trace.tb_frame.f_globals.get("__name__") != "__main__":
        trace = trace.tb_next
    if trace is None and isinstance(error, SyntaxError):
        return None
    return trace or error.__traceback__
