"""Records the processes that launchers such as `torch.multiprocessing` and `accelerate.notebook_launcher` start.

A process whose environment has `DYNASCOPE_RANKS` (a folder) records itself from its import of the compiler on, and writes the
file of its rank into the folder as soon as it knows its rank.  `dynascope.autoload` begins the recording.  In a forked process,
in which torch may be imported already, a hook that multiprocessing calls after the fork begins it.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import multiprocessing
import multiprocessing.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, TracebackType

from dynascope.compiler.jobs.recorder import VARIABLE, RankRecorder
from dynascope.compiler.patching import patched
from dynascope.compiler.ranks import RanksReport
from dynascope.compiler.report import message_of

_DYNAMO = "torch._dynamo"
#: pid of the process in which `begin` does nothing, because `mark_recorded` was called there; a fork has another pid
_recorded: int | None = None
#: the error that ended the target of this child process, if one did
_ended_by: list[BaseException | None] = []


def mark_recorded() -> None:
    """Make `begin` do nothing in this process from now on: it is recorded already, or is not to be recorded."""
    global _recorded
    _recorded = os.getpid()


def begin(folder: str) -> None:
    """Record this process from its import of the compiler on."""
    if _recorded == os.getpid():
        return
    mark_recorded()
    os.environ[VARIABLE] = absolute = os.path.abspath(folder)  # the program may change the directory, then start others
    if multiprocessing.parent_process() is not None:
        _watch_target()
    after_import(_DYNAMO, lambda: _record(Path(absolute)))


def _watch_target() -> None:
    """Keep the error that ends a child: from Python 3.13 on, `sys.exc_info()` no longer has it when `end` is called."""
    from dynascope.compiler.torch_private.watched_functions import watch

    with contextlib.suppress(Exception):  # if `run` has no source, or is defined inside a function, the error is not kept
        watch(type(multiprocessing.current_process()).run, _Errors, failed="observer.keep()")


class _Errors:
    """Observes the target of a child process."""

    @staticmethod
    def keep() -> None:
        """Keep the error that is being raised."""
        _ended_by.append(sys.exc_info()[1])


def _record(folder: Path) -> None:
    from dynascope.compiler.driver.pipeline import Run

    run = Run(retraces=False)
    run.__enter__()
    recorder = RankRecorder(folder, run.recording)
    recorder.start()

    def end() -> None:
        # up to Python 3.12, multiprocessing calls this in a `finally` of the child, while the error is being handled
        error = sys.exc_info()[1] or next(iter(_ended_by), None)
        if multiprocessing.parent_process() is None:
            error = error or getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        failed = error is not None and not (isinstance(error, SystemExit) and not error.code)
        run.__exit__(None, None, None)
        text = f"{type(error).__name__}: {message_of(error)}".partition("\n")[0] if failed else None
        recorder.end(run.report, "failed" if failed else "finished", text)

    # before Python 3.13, a forked child runs no atexit functions; every child runs multiprocessing's finalizers
    multiprocessing.util.Finalize(None, end, exitpriority=1000)


# -- after an import ----------------------------------------------------------------------------------


def after_import(name: str, act: Callable[[], None]) -> None:
    """Call `act` when the module `name` has been imported; at once if it has been."""
    if name in sys.modules:
        act()
    else:
        sys.meta_path.insert(0, _Finder(name, act))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module as Python does, and has its loader call `act` afterwards."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self.name, self.act = name, act

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute, loader = spec.loader.exec_module, spec.loader

            def exec_module(module: ModuleType) -> None:
                del loader.exec_module  # restores the method of its class
                execute(module)
                self.act()

            loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


# -- from a notebook ----------------------------------------------------------------------------------


class RanksRecording:
    """Records the processes that a `with` block starts; afterwards, `report` is the RanksReport of the job.

    `folder` is where the files of the ranks are kept; without it, they are removed after the block.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._given = Path(folder).absolute() if folder is not None else None
        self._folder = Path()
        self._restore = contextlib.ExitStack()
        self._active = False
        self._report: RanksReport | None = None

    def __enter__(self) -> RanksRecording:
        self._folder = self._given or Path(tempfile.mkdtemp(prefix="dynascope-ranks-"))
        self._restore.enter_context(patched(os.environ, {VARIABLE: str(self._folder)}))
        self._active = True
        mark_recorded()  # only the processes that the block starts are recorded, also if this one imports torch in it
        multiprocessing.util.register_after_fork(self, RanksRecording._in_child)
        return self

    def _in_child(self) -> None:
        """Record a process that multiprocessing has forked."""
        if self._active:
            begin(os.environ[VARIABLE])

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        from dynascope.compiler.jobs import folder

        self._active = False
        self._restore.close()
        try:
            if folder.is_job(self._folder):
                self._report = folder.read_job(self._folder)
        finally:
            if self._given is None:
                shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def report(self) -> RanksReport:
        """The RanksReport of the processes; raises LookupError inside the block, and if none of the processes was a rank."""
        if self._active:
            raise LookupError("the report of the processes is made when the block ends: ask for it after the block")
        if self._report is None:
            raise LookupError(
                "no process of the block was a rank: a rank has RANK and WORLD_SIZE in its environment, or a process group"
            )
        return self._report
