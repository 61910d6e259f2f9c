"""Executes one page in a fresh kernel of this Python, leaving no process behind.

nbclient executes the cells.  This module makes sure that the kernel runs under this interpreter, whatever kernel specs the
machine has, and does not read the user's IPython profile.  A cell that takes too long is interrupted.  At the end, also after a
time-out or Ctrl-C, the kernel's whole process group is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

from dynascope.widgets.words import as_overwritten

STARTUP_SECONDS = 120
#: how long to wait for the traceback of an interrupted cell, before its kernel is killed
INTERRUPT_SECONDS = 10

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())
_log.propagate = False  # nbclient logs what it also raises


class _ThisPython(KernelSpecManager):  # type: ignore[misc, unused-ignore]
    """Knows one kernel: ipykernel under this interpreter."""

    def get_kernel_spec(self, kernel_name: str) -> Any:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python", metadata={"debugger": False})


class Client(NotebookClient):  # type: ignore[misc, unused-ignore]
    """nbclient's client for our kernel; it remembers the kernel's process group."""

    group: int | None = None
    #: whether `kill` was called, perhaps before the kernel had started
    killed = False
    #: a folder for the connection file and the sockets
    scratch: str = ""

    def create_kernel_manager(self) -> Any:
        # sockets in a folder of our own: no port to compete for, nothing that others can listen to
        sockets = {"transport": "ipc"} if os.name == "posix" else {}
        file, specs = os.path.join(self.scratch, "kernel.json"), _ThisPython()
        self.km = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs, connection_file=file, **sockets)
        return self.km

    async def async_start_new_kernel(self, **kwargs: Any) -> None:
        await super().async_start_new_kernel(**kwargs)
        self.group = getattr(getattr(self.km, "provisioner", None), "pid", None)
        if self.killed:
            self.kill()

    async def _async_handle_timeout(self, timeout: int, cell: Any = None) -> Any:
        """Interrupt the cell, so that it can clean up and its traceback shows where it hung; then raise CellTimeoutError."""
        manager: Any = self.km
        await manager.interrupt_kernel()
        deadline = time.monotonic() + INTERRUPT_SECONDS
        while time.monotonic() < deadline and not any(o["output_type"] == "error" for o in cell.outputs):
            await asyncio.sleep(0.1)
        return await super()._async_handle_timeout(timeout, cell)

    def kill(self) -> None:
        """Kill the kernel and what it started: the kernel leads a process group of its own."""
        self.killed = True
        group, self.group = self.group, None
        if group is None:
            return
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(group, signal.SIGKILL)
            else:
                os.kill(group, signal.SIGTERM)


def merge_streams(cell: Any) -> None:
    """Merge the outputs of each stream into one; keep only the last text of a line that is rewritten after `\\r`.

    nbclient's `coalesce_streams` takes minutes for a long line.
    """
    texts: dict[str, list[str]] = {}
    merged: list[Any] = []
    for output in cell.outputs:
        is_stream = output["output_type"] == "stream"
        if not is_stream or output["name"] not in texts:
            merged.append(output)
        if is_stream:
            texts.setdefault(output["name"], []).append(output["text"])
    for index, output in enumerate(merged):
        if output["output_type"] == "stream":
            output["text"] = as_overwritten("".join(texts[output["name"]]))
            if index and (merged[index - 1].get("name"), output["name"]) == ("stderr", "stdout"):
                merged[index - 1 : index + 1] = [output, merged[index - 1]]  # stdout first: the two arrive in any order
    cell.outputs = merged


def execute(notebook: Any, folder: str, *, timeout: float | None, on_cell: Callable[[int], None]) -> None:
    """Execute every cell of `notebook` in place, with `folder` as the current directory.

    The work happens in a thread of its own with its own event loop.  There, nbclient leaves the signal handlers alone, and
    Ctrl-C ends the run instead of killing one kernel and continuing.

    Args:
        timeout: the time limit of each cell in seconds.
        on_cell: called with the index of each cell before it runs.

    Raises nbclient's CellExecutionError, CellTimeoutError and DeadKernelError, whose message is the end of what the kernel's
    process wrote; RuntimeError if no kernel starts; KeyboardInterrupt after Ctrl-C.
    """
    failures: list[BaseException] = []
    with tempfile.TemporaryDirectory(prefix="dynascope-", ignore_cleanup_errors=True) as scratch:
        # the first keeps the debugger's warning about frozen modules out of outputs
        own = {"PYDEVD_DISABLE_FILE_VALIDATION": "1", "IPYTHONDIR": os.path.join(scratch, "ipython")}
        log_path = os.path.join(scratch, "kernel.log")  # what the process writes outside cells: a crash, a C library

        client = Client(
            notebook, resources={"metadata": {"path": folder}}, startup_timeout=STARTUP_SECONDS, store_widget_state=False,
            record_timing=False, shutdown_kernel="immediate", log=_log, timeout_func=lambda cell: timeout,
            on_cell_execute=lambda cell, cell_index: on_cell(cell_index),
        )  # fmt: skip
        client.scratch = scratch

        def work() -> None:
            with open(log_path, "wb") as log:
                try:
                    asyncio.run(client.async_execute(env={**os.environ, **own}, stdout=log, stderr=log))
                except BaseException as error:
                    failures.append(error)
                for cell in notebook.cells:  # not earlier: nbclient updates displays by the indexes of outputs
                    if cell.cell_type == "code":
                        merge_streams(cell)

        thread = threading.Thread(target=work, name=f"notebook in {folder}", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(0.2)  # short, so that Ctrl-C is noticed quickly on every platform
        finally:
            client.kill()  # before the folder is removed: a kernel that still runs would write into it
            thread.join(5)
        if failures and isinstance(failures[0], DeadKernelError):
            with open(log_path, encoding="utf-8", errors="replace") as log:
                raise DeadKernelError("".join(log.readlines()[-20:])) from None
    if failures:
        raise failures[0]
