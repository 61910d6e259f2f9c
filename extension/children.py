"""Records the processes that `torch.multiprocessing` starts, as `spawn` and notebook launchers (`accelerate`) have it do.

While a `RanksRecording` is active, the function that a new process is to run is wrapped, so the process records itself and
writes the file of its rank.  Nothing is patched in any other process.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from dynascope.compiler.ranks import RanksReport
from dynascope.compiler.ranks.recorder import RankRecorder
from dynascope.compiler.report import message_of


def recorded(folder: Path, function: Callable[..., Any], *args: Any) -> Any:
    """Call the function of a new process under a recording, and write the file of its rank into the folder."""
    from dynascope.compiler.driver.pipeline import Run

    run = Run(retraces=False)
    recorder = RankRecorder(folder, run.recording)
    error: BaseException | None = None
    try:
        with run:
            recorder.start()
            return function(*args)
    except BaseException as raised:
        error = raised
        raise
    finally:
        failed = error is not None and not (isinstance(error, SystemExit) and not error.code)
        text = f"{type(error).__name__}: {message_of(error)}".partition("\n")[0] if error is not None and failed else None
        recorder.end(run.report, "failed" if failed else "finished", text)


class RanksRecording:
    """Records the processes that a `with` block starts; afterwards, `report` is the RanksReport of the job.

    `folder` is where the files of the ranks are kept; without it, they are removed after the block.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._given = Path(folder).absolute() if folder is not None else None
        self._folder = Path()
        self._restore: Callable[[], None] | None = None
        self._report: RanksReport | None = None

    def __enter__(self) -> RanksRecording:
        from torch.multiprocessing.spawn import start_processes

        from dynascope.compiler.capture.torch_private.watched_functions import watch

        self._folder = self._given or Path(tempfile.mkdtemp(prefix="dynascope-ranks-"))
        # its code is replaced, because launchers import the function by name
        self._restore = watch(start_processes, self, before="fn = observer.recording(fn)")
        return self

    def recording(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What a new process runs in place of the function; it can be pickled if the function can."""
        return functools.partial(recorded, self._folder, function)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        from dynascope.compiler.ranks import folder

        assert self._restore is not None
        self._restore()
        self._restore = None
        try:
            if folder.is_job(self._folder):
                self._report = folder.read_job(self._folder)
        finally:
            if self._given is None:
                shutil.rmtree(self._folder, ignore_errors=True)

    def __str__(self) -> str:
        try:
            return str(self.report)
        except LookupError as error:
            return str(error)

    def __repr__(self) -> str:
        return f"<recording of ranks: {str(self).partition(chr(10))[0]}>"

    @property
    def report(self) -> RanksReport:
        """The RanksReport of the processes; raises LookupError inside the block, and if none of the processes was a rank."""
        if self._restore is not None:
            raise LookupError("the report of the processes is made when the block ends: ask for it after the block")
        if self._report is None:
            raise LookupError(
                "torch.multiprocessing has started no rank in the block: a rank has RANK and WORLD_SIZE in its environment, or "
                "a process group"
            )
        return self._report
