"""Asks the running IPython shell and its kernel for what their public API does not have: ids, counts, raw text, the event loop.

Nothing here imports IPython at module level, because the Python API uses this module without IPython, too.
"""

from __future__ import annotations

import sys
from typing import Any


def cell_number(file: str) -> int | None:
    """The execution count of the cell with this file name; None outside IPython and for files that are no cells."""
    interactive = sys.modules.get("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell._instance if interactive is not None else None
    count = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    return count if isinstance(count, int) else None


def running_cell_number(shell: Any) -> int:
    """The execution count of the running cell (`shell.execution_count` is one ahead in IPython 9)."""
    return int(shell.displayhook.prompt_count)


def raw_cell(shell: Any, number: int = -1) -> str:
    """The cell of this number, or the running cell, as the user wrote it; "" if that is not known."""
    history = getattr(shell.history_manager, "input_hist_raw", None)
    return str(history[number]) if history and number < len(history) else ""


def is_kernel(shell: Any) -> bool:
    """Whether the shell belongs to a kernel."""
    return getattr(shell, "kernel", None) is not None


def is_captured(shell: Any) -> bool:
    """Whether the cell's displays are captured (`%%capture`), so that none of them can be updated later."""
    from IPython.core.displaypub import CapturingDisplayPublisher

    return isinstance(shell.display_pub, CapturingDisplayPublisher)


def cell_id(shell: Any) -> str | None:
    """The id that the front end gave the running cell; not every front end gives one."""
    cell = shell.get_parent().get("metadata", {}).get("cellId") if is_kernel(shell) else None
    return cell if isinstance(cell, str) else None


def request_id(shell: Any) -> str:
    """The id of the request that the kernel is handling."""
    return str(shell.get_parent().get("header", {}).get("msg_id", ""))


def event_loop(shell: Any) -> Any:
    """The kernel's event loop, which runs callbacks on the main thread between cells; None without a kernel."""
    return getattr(getattr(shell, "kernel", None), "io_loop", None)


def receive_clicks_immediately(view: Any) -> None:
    """Have a view's messages handled by the shell or subshell to which the front end sends them, even while a cell runs.

    ipykernel 7.4 passes all messages of a widget to the shell that last wrote to it, which is most often the busy one.
    """
    comm = getattr(view, "comm", None)
    if comm is not None and hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda data, requested: requested
