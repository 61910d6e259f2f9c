"""Records the ranks of a job: each writes a file of its own into one folder (`compiler.ranks`).

Under torchrun (`torchrun ... -m dynascope run script.py`), one rank of each folder reports: the one that ends last, or the
first one that fails, because torchrun then ends the others.  By default, each machine has its own folder.

A `RanksRecording` (`dynascope.record_ranks`) records the processes that `torch.multiprocessing` starts, as `spawn` and notebook
launchers (`accelerate`) have it do: the function that a new process is to run is wrapped, so the process records itself.
Nothing is patched in any other process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from dynascope.compiler.ranks import RanksReport, recorder
from dynascope.compiler.ranks import folder as job_folder
from dynascope.compiler.ranks.structure import read as read_rank
from dynascope.compiler.report import Report, message_of

# -- one rank, under torchrun ---------------------------------------------------------------------


class RankRun:
    """This process as one rank of a job: writes its file into the folder, and reports unless another rank does."""

    def __init__(self, ranks_dir: str | None) -> None:
        # the program may change the directory
        self.folder = Path(ranks_dir).absolute() if ranks_dir else _default_folder()
        self.folder_is_default = not ranks_dir
        attempt = f"{recorder.job()} {os.environ.get('TORCHELASTIC_RESTART_COUNT', '')}"
        #: the file that says that this attempt of the job has been reported
        self._mark = self.folder / f".reported-{hashlib.sha256(attempt.encode()).hexdigest()[:12]}"
        local = os.environ.get("LOCAL_WORLD_SIZE", "")
        #: how many ranks write into the folder: all, or those of this machine
        self._expected = int(local) if self.folder_is_default and local.isdigit() else recorder.world_size() or 1

    def start(self, recording: Any) -> None:
        """Begin to write the rank's file from `recording`, which records this process."""
        self._recorder = recorder.RankRecorder(self.folder, recording)
        if os.environ.get("RANK") == "0":
            if os.path.exists(self._mark):  # False also where the folder cannot be read
                _say(f"{self.folder} has an earlier run of this job: for a report of this run, pass another --ranks-dir")
            if self.folder_is_default:
                _say(f"if a rank is killed, `dynascope report {self.folder}` shows what it did")
        self._recorder.start()

    def end(self, report: Report, status: int) -> RanksReport | None:
        """Write the file for the last time; returns the job's report if this rank is the one to show it."""
        has_error = report.error is not None and not report.error.caught  # the file contains the error already
        error = f"exit status {status}" if status and not has_error else None
        self._recorder.end(report, "failed" if status else "finished", error)
        if self._recorder.problem is not None:
            _say(f"this rank's file could not be written: {self._recorder.problem}")
        if not (status or self._all_have_ended()) or not self._claim_report():
            return None
        try:
            return self._report()
        except (ValueError, OSError) as error:
            _say(f"no report: {error}")
            return None

    def _report(self) -> RanksReport:
        """The report of the ranks in the folder; notes say if the ranks of other machines are missing, and where the files are.

        If all ranks are alike, the default folder is removed.
        """
        report = job_folder.read_job(self.folder, world_size=self._expected)
        total = recorder.world_size() or self._expected
        if total > self._expected:
            how = "for one report of all of them, pass --ranks-dir with a folder that all machines share"
            report.notes.append(f"this report has only the {self._expected} ranks of this machine, of {total}; {how}")
        if self.folder_is_default and report.alike:
            shutil.rmtree(self.folder, ignore_errors=True)
        elif self.folder_is_default:
            report.notes.append(f"the files of the ranks are in {self.folder}")
        return report

    def _all_have_ended(self) -> bool:
        ended: set[int] = set()
        rank = recorder.process_rank()
        job, restarts = recorder.job(), rank.restarts if rank is not None else 0
        for file in job_folder.rank_files(self.folder):
            with contextlib.suppress(ValueError, OSError):
                record = read_rank(file)
                if record.job == job and record.rank.restarts == restarts and record.rank.status in ("finished", "failed"):
                    ended.add(record.rank.rank)
        return len(ended) >= self._expected

    def _claim_report(self) -> bool:
        """Claim the right to report on this attempt of the job; False if another rank has claimed it.

        If the folder takes no mark, each rank that asks reports: better twice than never.
        """
        try:
            os.close(os.open(self._mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except OSError as error:
            return not isinstance(error, FileExistsError)
        return True


def _say(sentence: str) -> None:
    print(f"dynascope: {sentence}", file=sys.stderr)


def _default_folder() -> Path:
    """One folder for all ranks of this job on this machine; each rank computes the same path by itself."""
    name = f"{recorder.job()} {os.environ.get('GROUP_RANK', '')} {os.getppid()}"
    user = getattr(os, "getuid", lambda: 0)()
    return Path(tempfile.gettempdir()) / f"dynascope-{user}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


# -- the processes that torch.multiprocessing starts -----------------------------------------------


def recorded(folder: Path, function: Callable[..., Any], *args: Any) -> Any:
    """Call the function of a new process under a recording, and write the file of its rank into the folder."""
    from dynascope.compiler.driver import Run

    run = Run(retraces=False)
    rank = recorder.RankRecorder(folder, run.recording)
    try:
        with run:
            rank.start()
            return function(*args)
    finally:
        error = sys.exc_info()[1]
        failed = error is not None and not (isinstance(error, SystemExit) and not error.code)
        text = f"{type(error).__name__}: {message_of(error)}".partition("\n")[0] if error is not None and failed else None
        rank.end(run.report, "failed" if failed else "finished", text)


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

        from dynascope.compiler.capture.torch_private.hook_installer import watch

        self._folder = self._given or Path(tempfile.mkdtemp(prefix="dynascope-ranks-"))
        # its code is replaced, because launchers import the function by name
        self._restore = watch(start_processes, self, before="fn = observer.recording(fn)")
        return self

    def recording(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What a new process runs in place of the function; it can be pickled if the function can."""
        return functools.partial(recorded, self._folder, function)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._restore is not None
        self._restore()
        self._restore = None
        try:
            if job_folder.is_job(self._folder):
                self._report = job_folder.read_job(self._folder)
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
            what = "a rank has RANK and WORLD_SIZE in its environment, or a process group"
            raise LookupError(f"torch.multiprocessing has started no rank in the block: {what}")
        return self._report
