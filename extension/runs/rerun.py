"""Run again, from the view: the same text, in the present namespace, with other settings and regions.

A click is heard on any thread, even while a cell runs, so it only queues.  The run itself happens on the shell's main
thread, after the current cell, by the kernel's own event loop: interrupts work there, and nothing else runs meanwhile.
What it prints, displays and raises goes to the view.  In and Out do not advance.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from IPython.core.error import UsageError

from dynascope.cell import tracebacks
from dynascope.cell.source import Cell, own_nodes
from dynascope.compiler.report import Report
from dynascope.compiler.settings import Settings
from dynascope.runs.display import Display
from dynascope.runs.rerun_output import Output
from dynascope.shell import cell_id, event_loop, hear_at_once

#: what a view may change
CHANGEABLE = ("fullgraph", "error_on_graph_break", "backend", "dynamic", "device", "mode", "nested_graph_breaks")

#: every view with buttons that work
_views: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = threading.Lock()
#: who waits for its turn, or runs
_queued: Controller | None = None
_running: Controller | None = None


class Rerunnable(Protocol):
    """A finished run of a cell, as its view's buttons need it."""

    shell: Any
    cell: Cell
    settings: Settings
    raw: str
    report: Report | None

    def __call__(self) -> Any:
        """Runs; returns the value of the cell's last expression."""

    def again(self, settings: Settings, display: Display) -> Rerunnable:
        """The run that repeats this one with these settings, in the same view."""


def can_run_again(shell: Any) -> bool:
    """Whether a button can run code here: in a kernel, whose event loop calls us when the cell is over."""
    return event_loop(shell) is not None


def attach(run: Rerunnable, display: Display) -> None:
    """Make the buttons of the run's view work; a rerun's view has them already."""
    view = display.view
    controller = getattr(view, "controller", None)
    if controller is None:
        _views.add(view)
        view.controller = controller = Controller(run, display, cell_id(run.shell))
        view.on_request(controller.heard)
        hear_at_once(view)
        view.devices = devices()
        changes = changed_objects(run.cell)
        if changes and view.can_run_again:
            view.message(f"Run again runs the cell once more: {', '.join(changes)} will change again.")
    controller.run = run


def devices() -> list[str]:
    """On which devices a graph can be run here."""
    import torch

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return ["cpu"] if accelerator is None else ["cpu", accelerator.type]


class Controller:
    """Hears one view's requests."""

    def __init__(self, run: Rerunnable, display: Display, cell: str | None) -> None:
        self.run = run
        self.display = display
        self.cell_id = cell

    @property
    def view(self) -> Any:
        return self.display.view

    def heard(self, request: dict[str, Any]) -> None:
        """On any thread: queue, or refuse."""
        kind = request.get("kind")
        if kind == "stop":
            self._stop()
        elif kind == "run_again":
            try:
                settings = self.settings(request)
            except (ValueError, TypeError, UsageError) as error:
                self.view.message(str(error), "error")
                return
            self._queue(functools.partial(self._again, settings))
        elif kind == "run_graph":
            self._queue(functools.partial(self._graph, str(request["graph"]), request.get("device")))

    def _queue(self, work: Callable[[], None]) -> None:
        global _queued
        with _lock:
            if _queued is not None or _running is not None:
                self.view.message("a run is queued already: wait for it, or stop it", "warning")
                return
            _queued = self
        self.view.busy = True
        self.view.message("queued: runs when the kernel is free")
        try:
            event_loop(self.run.shell).add_callback(self.start, work)
        except BaseException:
            _queued = None
            raise

    def _stop(self) -> None:
        global _queued
        if _running is self:
            os.kill(os.getpid(), signal.SIGINT)
        elif _queued is self:
            _queued = None
            self.view.busy = False
            self.view.message("taken back: nothing was run")
        else:
            self.view.message("nothing of this view is running: the kernel's own interrupt stops a cell")

    # -- what the next run is like ------------------------------------------------------------------------

    def settings(self, request: dict[str, Any]) -> Settings:
        """The settings of this run with what the view asks for; raises ValueError for what cannot be."""
        asked = request.get("settings") or {}
        unknown = [name for name in asked if name not in CHANGEABLE]
        if unknown:
            raise ValueError(f"a view cannot change {', '.join(unknown)}")
        settings = self.run.settings.replace(**asked, output=None, save=None, keep=False, expect=None)
        regions = list(settings.region)
        for wanted in request.get("regions") or []:
            target = self.target(wanted["target"])
            regions = [r for r in regions if r.rpartition("=")[0].strip() != target] + [f"{target}={wanted['set']}"]
        return settings.replace(region=regions)

    def target(self, target: str) -> str:
        """A view's target as `--region` has it: lines of this cell, a name, or a library function's dotted path."""
        report = self.run.report
        if report is None:
            return target
        file, namespace = self.run.cell.file, self.run.shell.user_ns
        breaks = [(b.file, b.line, b.function, b.cell) for b in report.breaks]
        every = breaks + [(f.file, f.line, f.name, f.cell) for f in report.frames]
        name, _, line = target.rpartition(":")
        if target.isdigit():  # a break's line, in this cell or an earlier one
            found = [p for p in breaks if p[1] == int(target) and p[3] is not None]
            found = [] if any(p[0] == file for p in found) else found
        elif line.isdigit():  # `forward:12`, of a library
            found = [p for p in every if (p[1], p[2], p[3]) == (int(line), name, None)]
            target = name
        else:
            found = [p for p in every if p[2] == target and p[0] != file and target not in namespace]
        return _path_of(*found[0][:3], namespace) if found else target

    # -- running ---------------------------------------------------------------------------------------

    def start(self, work: Callable[[], None]) -> None:
        """On the shell's main thread, between two cells."""
        global _queued, _running
        with _lock:
            if _queued is not self:
                return  # taken back
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

    def _graph(self, id: str, device: str | None) -> None:
        """One graph on its own; its figures go into the report, and to every place where that is shown."""
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

    def _again(self, settings: Settings) -> None:
        with Output(self.view) as output:
            self._run_cell(settings, output)

    def _run_cell(self, settings: Settings, output: Output) -> None:
        shell = self.run.shell
        try:
            output.value(shell, self.run.again(settings, self.display)())
        except UsageError as error:
            self.view.message(str(error), "error")
        except KeyboardInterrupt:
            self.view.message("interrupted", "warning")
        except Exception as error:
            output.error(tracebacks.as_text(shell, error))


@contextlib.contextmanager
def _interrupts() -> Iterator[None]:
    """The kernel ignores interrupts between cells; a rerun can be interrupted as a cell can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def changed_objects(cell: Cell) -> list[str]:
    """Names whose objects the cell's own statements change, so that a second run changes them again."""
    names: dict[str, None] = {}
    fresh: set[str] = set()
    for statement in cell.statements:
        for node in own_nodes(statement):
            target: ast.AST | None = None
            if isinstance(node, ast.AugAssign):
                target = node.target
            elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
                target = node
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = node.func.attr
                if (name.endswith("_") and not name.startswith("_")) or name in _CHANGING:
                    target = node.func.value
            while isinstance(target, (ast.Attribute, ast.Subscript)):
                target = target.value
            if isinstance(target, ast.Name) and target.id not in fresh:
                names[target.id] = None
        if isinstance(statement, ast.Assign):  # made anew by each run
            fresh.update(t.id for t in statement.targets if isinstance(t, ast.Name) and t.id not in names)
    return list(names)


_CHANGING = frozenset(
    ("append", "extend", "insert", "pop", "remove", "clear", "update", "add", "discard", "setdefault", "step", "backward",
     "load_state_dict")
)  # fmt: skip


def _path_of(file: str, line: int, name: str, namespace: dict[str, Any]) -> str:
    """The dotted path of the function at this place, in the notebook or in a loaded module; else its bare name."""
    import inspect
    import sys
    from types import FunctionType

    spaces = [("", namespace)] + [
        (f"{name}.", vars(module)) for name, module in list(sys.modules.items()) if getattr(module, "__file__", None) == file
    ]
    for prefix, space in spaces:
        for key, value in list(space.items()):
            members = {key: value} if not isinstance(value, type) else {f"{key}.{k}": v for k, v in vars(value).items()}
            for path, member in members.items():
                function = inspect.unwrap(member) if isinstance(member, FunctionType) else None
                if isinstance(function, FunctionType):
                    code = function.__code__
                    if code.co_filename == file and code.co_name == name and _spans(code, line):
                        return prefix + path
    return name


def _spans(code: Any, line: int) -> bool:
    lines = [n for _, _, n in code.co_lines() if n]
    return bool(lines) and min(code.co_firstlineno, *lines) <= line <= max(lines)


# -- hooks of the shell -----------------------------------------------------------------------------------


def before_cell(info: Any = None) -> None:
    """A cell begins: no view can run now; a view of this very cell, run with another text, is of an older one."""
    for view in list(_views):
        view.busy = True
        controller = getattr(view, "controller", None)
        ran = getattr(info, "cell_id", None)
        if controller is not None and ran is not None and ran == controller.cell_id:
            view.edited = getattr(info, "raw_cell", None) != controller.run.raw


def after_cell(result: Any = None) -> None:
    """A cell is over."""
    for view in list(_views):
        if _queued is None or view is not _queued.view:
            view.busy = False


def switch_off() -> None:
    """The extension is unloaded: no button works any more."""
    for view in list(_views):
        view.can_run_again = view.busy = False
    _views.clear()
