"""What dynascope asks of the running IPython shell beyond its public API, guarded, in one place.

Imports no IPython: `import dynascope` stays light, and outside IPython every question has the answer "unknown".
"""

from __future__ import annotations

import sys
from typing import Any


def cell_number(file: str) -> int | None:
    """The execution count of the notebook cell with this file name; None where no IPython runs, or for other files."""
    interactive = sys.modules.get("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell._instance if interactive is not None else None
    count = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    return count if isinstance(count, int) else None


def running_cell_number(shell: Any) -> int:
    """The execution count of the cell that runs (`shell.execution_count` is one ahead in IPython 9)."""
    return int(shell.displayhook.prompt_count)


def raw_cell(shell: Any) -> str:
    """The running cell as the user wrote it; "" where that is not known."""
    history = getattr(shell.history_manager, "input_hist_raw", None)
    return str(history[-1]) if history else ""


def is_kernel(shell: Any) -> bool:
    """Whether the shell is that of a notebook."""
    return getattr(shell, "kernel", None) is not None


def is_captured(shell: Any) -> bool:
    """Whether what the cell displays is kept back (`%%capture`)."""
    from IPython.core.displaypub import CapturingDisplayPublisher

    return isinstance(shell.display_pub, CapturingDisplayPublisher)


def is_live(shell: Any) -> bool:
    """Whether a display can be updated: in a notebook, and not captured."""
    return is_kernel(shell) and not is_captured(shell)


def cell_id(shell: Any) -> str | None:
    """The id of the cell that runs, as the notebook's front end names it; not every front end does."""
    cell = shell.get_parent().get("metadata", {}).get("cellId") if is_kernel(shell) else None
    return cell if isinstance(cell, str) else None


def request_id(shell: Any) -> str:
    """The id of the request that the kernel is working on."""
    return str(shell.get_parent().get("header", {}).get("msg_id", ""))


def event_loop(shell: Any) -> Any:
    """The kernel's event loop, which runs code on the main thread between two cells; None where there is none."""
    return getattr(getattr(shell, "kernel", None), "io_loop", None)


def hear_at_once(view: Any) -> None:
    """Have a click heard where the front end sends it, a subshell if there is one, also while a cell runs.

    ipykernel 7.4 hands all messages of a widget to the shell that last wrote to it: most often the one that is busy.
    """
    comm = getattr(view, "comm", None)
    if comm is not None and hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda data, asked: asked
