"""Runs the cell of a view again: the same text in the current namespace, with other settings and regions.

A click may arrive on any thread, even while a cell runs, so it only queues the run.  The kernel's own event loop starts the
run on the shell's main thread, after the current cell: interrupts work there, and nothing else runs meanwhile.  It runs in the
context of the last cell, in which torch keeps what is set in `torch._dynamo.config` and the like.  What the run prints,
displays and raises goes to the view.  In and Out do not advance.  Requests to run a single graph are queued, too.
"""

from __future__ import annotations

import contextlib
import contextvars
import io
import os
import re
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from dynascope.cell import tracebacks
from dynascope.compiler.report import Report
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.lines import function_at
from dynascope.runs.cell_run import CellRun
from dynascope.runs.display import Display
from dynascope.shell import cell_id, event_loop, receive_clicks_immediately
from dynascope.widgets.words import as_overwritten

#: settings that a view may change
CHANGEABLE = (
    "fullgraph", "error_on_graph_break", "backend", "dynamic", "device", "mode", "nested_graph_breaks", "check", "second_call",
    "fix",
)  # fmt: skip

#: every view with buttons that work
_views: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = threading.Lock()
#: the controller whose work is queued or runs
_active: Controller | None = None
#: of the last cell
_context = contextvars.Context()


def attach(run: CellRun, display: Display) -> None:
    """Make the buttons of the run's view work; for a rerun, they get the new run."""
    view = display.view
    if not hasattr(view, "controller"):
        view.controller = Controller(run, display, cell_id(run.shell))
        view.on_request = view.controller.on_request
        _views.add(view)
        receive_clicks_immediately(view)
    view.controller.run = run


class Controller:
    """Handles the requests of one view."""

    def __init__(self, run: CellRun, display: Display, cell: str | None) -> None:
        self.run = run
        self.display, self.view = display, display.view
        self.cell_id = cell
        #: the queued work; None while it runs
        self.queued: Callable[[], None] | None = None

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
            self._queue(partial(self._run_cell, settings))
        elif kind == "run_graph":
            self._queue(partial(self._run_graph, str(request["graph"])))

    def _settings(self, request: dict[str, Any]) -> Settings:
        """The last run's settings without `output`, `save`, `keep` and `expect`, with the changes that the view requests.

        Raises ValueError for impossible changes.
        """
        changes = request.get("settings") or {}
        if unknown := [name for name in changes if name not in CHANGEABLE]:
            raise ValueError(f"a view cannot change {', '.join(unknown)}")
        settings = self.run.settings.replace(**changes, output=None, save=None, keep=False, expect=None)
        regions = list(settings.region)
        for change in request.get("regions") or []:
            target = region_target(change["target"], self.run.report, self.run.cell.file, self.run.shell.user_ns)
            regions = [r for r in regions if r.rpartition("=")[0].strip() != target] + [f"{target}={change['set']}"]
        return settings.replace(region=regions)

    def _queue(self, work: Callable[[], None]) -> None:
        global _active
        with _lock:
            if _active is not None:
                self.view.message("a run is already queued or in progress: wait for it, or stop it", "warning")
                return
            _active, self.queued = self, work
        self.view.busy = True
        self.view.message("queued: runs when the kernel is free")
        event_loop(self.run.shell).add_callback(lambda: _context.run(self._start, work))

    def _stop(self) -> None:
        global _active
        with _lock:
            cancelled = self.queued is not None
            if cancelled:
                _active = self.queued = None
        if cancelled:
            self.view.busy = False
            self.view.message("cancelled: nothing was run")
        elif _active is self:
            os.kill(os.getpid(), signal.SIGINT)
        else:
            self.view.message("this view has nothing running: to stop a cell, interrupt the kernel")

    def _start(self, work: Callable[[], None]) -> None:
        """Do the queued work; called on the shell's main thread, between two cells."""
        global _active
        with _lock:
            if self.queued is not work:
                return  # cancelled; another run may be queued since
            self.queued = None
        view = self.view
        view.message("")
        view.running = True
        try:
            with contextlib.ExitStack() as stack:
                # interrupts raise KeyboardInterrupt, as in a cell: between cells, the kernel ignores them
                stack.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
                work()
        except KeyboardInterrupt:
            view.message("interrupted", "warning")
        finally:
            _active = None
            view.running = view.busy = False

    def _run_cell(self, settings: Settings) -> None:
        shell = self.run.shell
        output = Output(self.view)
        with output.collecting():
            try:
                if (value := self.run.again(settings, self.display)()) is not None:
                    data, _ = shell.display_formatter.format(value, include={"text/plain"})
                    output.add("data", str(data.get("text/plain", "")))
            except UsageError as error:
                self.view.message(str(error), "error")
            except KeyboardInterrupt:
                self.view.message("interrupted", "warning")
            except BaseException as error:  # SystemExit, too, as in a cell: in the event loop, it would end the kernel
                output.add("error", tracebacks.as_text(shell, error))
            finally:
                tracebacks.after_cell()  # the kernel calls it only after the cells that it runs itself

    def _run_graph(self, id: str) -> None:
        """Run one graph alone; its measurements go into the report, which is then shown again."""
        report, view = self.run.report, self.view
        view.message(f"running {id} on its own, eager and compiled")
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                report.run_graph(id)
        except Exception as error:
            view.message(f"{id} could not be run on its own: {type(error).__name__}: {error}", "error")
        else:
            self.display.finish(report)
            view.message("")


# -- hooks of the shell -----------------------------------------------------------------------------------


def before_cell(info: Any = None) -> None:
    """A cell begins: disable the buttons of every view, and mark the views of this cell if its text has changed."""
    cell = getattr(info, "cell_id", None)
    for view in list(_views):
        view.busy = True
        if cell is not None and cell == view.controller.cell_id:
            view.edited = getattr(info, "raw_cell", None) != view.controller.run.raw


def after_cell(result: Any = None) -> None:
    """A cell is over: enable the buttons again, except in the view whose run is queued."""
    global _context
    _context = contextvars.copy_context()
    for view in list(_views):
        if view.controller.queued is None:
            view.busy = False


def switch_off() -> None:
    """The extension is unloaded: no view can run its cell again."""
    for view in list(_views):
        view.can_run_again = view.busy = False
    _views.clear()


# -- what a click points at ------------------------------------------------------------------------


#: the cell and the line of a break, as its target names them
_IN_CELL = re.compile(r"In\[(\d+)\]")


def region_target(target: str, report: Report, file: str, namespace: dict[str, Any]) -> str:
    """The TARGET for a click: a line of the cell in `file`, a function's name, or the dotted path of a function elsewhere.

    The view sends a function's name, a function outside the notebook with one of its lines (`forward:12`), or the cell and the
    line of a break (`In[3]:12`).  A bare number in the result is a line of this cell.
    """
    places = [(b.file, b.line, b.function, b.cell) for b in report.breaks]
    places += [(f.file, f.line, f.name, f.cell) for f in report.frames]
    name, _, line = target.rpartition(":")
    cell = _IN_CELL.fullmatch(name)
    if cell and line.isdigit():
        found = [p for p in places if (p[1], p[3]) == (int(line), int(cell[1]))]
        if any(p[0] == file for p in found):
            return line
    elif name and line.isdigit():
        found, target = [p for p in places if p[1:] == (int(line), name, None)], name
    else:
        found = [p for p in places if p[2] == target and p[0] != file and target not in namespace]
    if not found:
        return target
    file, at, name, _ = found[0]
    function = function_at(file, at)
    modules = [module for module, loaded in list(sys.modules.items()) if getattr(loaded, "__file__", None) == file]
    return ".".join([*modules[:1], function[0] if function else name])


# -- what the run prints ---------------------------------------------------------------------------


#: seconds between two updates of the view
_UPDATE_EVERY = 0.2


class _Sink(io.RawIOBase):
    """Where a stream's bytes go: to an Output and, once the run is over, to the original stream.

    A logger that the cell sets up keeps its stream.
    """

    def __init__(self, output: Output, original: Any) -> None:
        self.output, self.original = output, original

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        text = bytes(data).decode("utf-8", "surrogatepass")
        if self.output.is_over:
            self.original.write(text)
        else:
            self.output.add("stream", text)
        return len(data)

    def flush(self) -> None:
        if self.output.is_over:
            self.original.flush()


class Output:
    """What a run prints and displays, to be shown in the view, as text."""

    def __init__(self, view: Any) -> None:
        self.view = view
        #: (kind, the texts that belong together)
        self._parts: list[tuple[str, list[str]]] = []
        self._updated = 0.0
        self.is_over = False

    @contextlib.contextmanager
    def collecting(self) -> Iterator[None]:
        """Inside this `with`, everything that is printed and displayed goes to the view."""
        import torch

        self.view.output([])
        output = self
        shell: Any = InteractiveShell.instance()
        before = shell.display_pub
        untraced = partial(torch.compiler.disable, reason="Run again shows it in the view")

        class Publisher(CapturingDisplayPublisher):
            def __getattr__(self, name: str) -> Any:
                return getattr(before, name)  # the kernel may use attributes of its own publisher meanwhile

            @untraced
            def publish(self, data: Any, *args: Any, **kwargs: Any) -> None:
                if kwargs.get("update"):  # of what a cell displayed, such as the report of the first run
                    before.publish(data, *args, **kwargs)
                else:
                    output.add("data", str(data.get("text/plain", "")) + "\n")

            @untraced
            def clear_output(self, wait: bool = False) -> None:
                output._parts.clear()  # the view changes with the next part

        publisher: Any = Publisher
        # text streams of Python's own into the sinks, because Dynamo traces the methods of any other class
        out, err = (
            io.TextIOWrapper(cast(Any, _Sink(self, original)), "utf-8", "surrogatepass", newline="", write_through=True)
            for original in (sys.stdout, sys.stderr)
        )
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                shell.display_pub = publisher()
                yield
        finally:
            shell.display_pub = before
            self.is_over = True
            self._show()

    def add(self, kind: str, text: str) -> None:
        """Add a part of this kind ("stream", "data" or "error")."""
        if self._parts and self._parts[-1][0] == kind == "stream":
            self._parts[-1][1].append(text)
        else:
            self._parts.append((kind, [text]))
        if time.monotonic() - self._updated > _UPDATE_EVERY:
            self._show()
            self._updated = time.monotonic()  # after it: joining a long text takes time

    def _show(self) -> None:
        self.view.output([{"type": kind, "text": as_overwritten("".join(texts))} for kind, texts in self._parts])
