"""Runs the cell of a view again: the same text in the current namespace, with other settings and regions.

A click may arrive on any thread, even while a cell runs, so it only queues the run.  The kernel's own event loop starts the
run on the shell's main thread, after the current cell: interrupts work there, and nothing else runs meanwhile.  What the run
prints, displays and raises goes to the view.  In and Out do not advance.  Requests to run a single graph are queued, too.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from IPython.core.error import UsageError

from dynascope.cell import tracebacks
from dynascope.cell.mutations import mutated_names
from dynascope.compiler.capture.torch_private import running
from dynascope.compiler.settings import Settings
from dynascope.runs.cell_run import CellRun
from dynascope.runs.display import Display
from dynascope.runs.rerun_output import Output
from dynascope.runs.view_target import region_target
from dynascope.shell import cell_id, event_loop, receive_clicks_immediately

#: settings that a view may change
CHANGEABLE = ("fullgraph", "error_on_graph_break", "backend", "dynamic", "device", "mode", "nested_graph_breaks", "fix")

#: every view with buttons that work
_views: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = threading.Lock()
#: the controller whose work is queued, with this work, and the one whose work runs
_queued: tuple[Controller, Callable[[], None]] | None = None
_running: Controller | None = None


def attach(run: CellRun, display: Display) -> None:
    """Make the buttons of the run's view work; for a rerun, they get the new run."""
    view = display.view
    controller = getattr(view, "controller", None)
    if controller is None:
        _views.add(view)
        view.controller = controller = Controller(run, display, cell_id(run.shell))
        view.on_request(controller.on_request)
        receive_clicks_immediately(view)
        view.devices = running.device_types()
        mutated = mutated_names(run.cell, run.shell.user_ns)
        if mutated and view.can_run_again:
            view.message(f"Run again runs the cell once more and changes {', '.join(mutated)} again.")
    controller.run = run


class Controller:
    """Handles the requests of one view."""

    def __init__(self, run: CellRun, display: Display, cell: str | None) -> None:
        self.run = run
        self.display = display
        self.cell_id = cell

    @property
    def view(self) -> Any:
        return self.display.view

    def on_request(self, request: dict[str, Any]) -> None:
        """Stop the run, or queue the work or refuse it; called on any thread."""
        kind = request.get("kind")
        if kind == "stop":
            self._stop()
        elif kind == "run_again":
            try:
                settings = self._settings(request)
            except (ValueError, TypeError, UsageError) as error:
                self.view.message(str(error), "error")
                return
            self._queue(functools.partial(self._run_cell, settings))
        elif kind == "run_graph":
            self._queue(functools.partial(self._run_graph, str(request["graph"]), request.get("device")))

    def _settings(self, request: dict[str, Any]) -> Settings:
        """The last run's settings without `output`, `save`, `keep` and `expect`, with the changes that the view requests.

        Raises ValueError for impossible changes.
        """
        changes = request.get("settings") or {}
        unknown = [name for name in changes if name not in CHANGEABLE]
        if unknown:
            raise ValueError(f"a view cannot change {', '.join(unknown)}")
        settings = self.run.settings.replace(**changes, output=None, save=None, keep=False, expect=None)
        regions = list(settings.region)
        for change in request.get("regions") or []:
            target = change["target"]
            if self.run.report is not None:
                target = region_target(target, self.run.report, self.run.cell.file, self.run.shell.user_ns)
            regions = [r for r in regions if r.rpartition("=")[0].strip() != target] + [f"{target}={change['set']}"]
        return settings.replace(region=regions)

    def _queue(self, work: Callable[[], None]) -> None:
        global _queued
        with _lock:
            if _queued is not None or _running is not None:
                self.view.message("a run is already queued or in progress: wait for it, or stop it", "warning")
                return
            _queued = self, work
        self.view.busy = True
        self.view.message("queued: runs when the kernel is free")
        try:
            event_loop(self.run.shell).add_callback(self._start, work)
        except BaseException:
            _queued = None
            raise

    def _stop(self) -> None:
        global _queued
        with _lock:
            cancelled = _queued is not None and _queued[0] is self
            if cancelled:
                _queued = None
        if cancelled:
            self.view.busy = False
            self.view.message("cancelled: nothing was run")
        elif _running is self:
            os.kill(os.getpid(), signal.SIGINT)
        else:
            self.view.message("this view has nothing running: to stop a cell, interrupt the kernel")

    def _start(self, work: Callable[[], None]) -> None:
        """Do the queued work; called on the shell's main thread, between two cells."""
        global _queued, _running
        with _lock:
            if _queued is None or _queued[1] is not work:
                return  # cancelled; another run may be queued since
            _queued, _running = None, self
        view = self.view
        view.message("")
        view.running = True
        try:
            with _interrupts():
                work()
        except KeyboardInterrupt:
            view.message("interrupted", "warning")
        finally:
            _running = None
            view.running = view.busy = False

    def _run_cell(self, settings: Settings) -> None:
        shell = self.run.shell
        with Output(self.view) as output:
            try:
                output.add_value(shell, self.run.again(settings, self.display)())
            except UsageError as error:
                self.view.message(str(error), "error")
            except KeyboardInterrupt:
                self.view.message("interrupted", "warning")
            except BaseException as error:  # SystemExit, too, as in a cell: in the event loop, it would end the kernel
                output.add("error", tracebacks.as_text(shell, error))
            finally:
                tracebacks.after_cell()  # the kernel calls it only after the cells that it runs itself

    def _run_graph(self, id: str, device: str | None) -> None:
        """Run one graph alone; its measurements go into the report, which is then shown again."""
        report, view = self.run.report, self.view
        if report is None:
            return
        view.message(f"running {id} on its own, eager and compiled")
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                report.run_graph(id, device=device)
        except KeyError:
            view.message(f"there is no graph {id} in this report", "error")
        except ValueError as error:
            view.message(str(error), "error")
        except Exception as error:
            view.message(f"{id} could not be run on its own: {type(error).__name__}: {error}", "error")
        else:
            self.display.finish(report)
            view.message("")


@contextlib.contextmanager
def _interrupts() -> Iterator[None]:
    """Let interrupts raise KeyboardInterrupt, as in a cell: between cells, the kernel ignores them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# -- hooks of the shell -----------------------------------------------------------------------------------


def before_cell(info: Any = None) -> None:
    """A cell begins: disable the buttons of every view, and mark the views of this cell if its text has changed."""
    cell = getattr(info, "cell_id", None)
    for view in list(_views):
        view.busy = True
        controller = getattr(view, "controller", None)
        if controller is not None and cell is not None and cell == controller.cell_id:
            view.edited = getattr(info, "raw_cell", None) != controller.run.raw


def after_cell(result: Any = None) -> None:
    """A cell is over: enable the buttons again, except in the view whose run is queued."""
    queued = _queued  # a click may cancel it meanwhile
    for view in list(_views):
        if queued is None or view is not queued[0].view:
            view.busy = False


def switch_off() -> None:
    """The extension is unloaded: no view can run its cell again."""
    for view in list(_views):
        view.can_run_again = view.busy = False
    _views.clear()
