"""Finds out which rank of which job this process is, and keeps the rank's file up to date while it runs.

Who the process is comes from the environment and torch.distributed, of which nothing is initialized.

A thread writes the file, with the current place in the user's code, shortly after something was compiled, and again if the rank
has not moved for a while.  So the file of a rank that hangs shows what it compiled and where it is; that of a rank that is
killed, where it was when the file was last written.  No signal handler is installed, because the program would see it.  Writing
takes at most about a twentieth of the time.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec.structs import replace

from dynascope.compiler.builder.events import Location
from dynascope.compiler.capture.torch_private.caches import process_groups
from dynascope.compiler.ranks.report import Rank, RankStatus
from dynascope.compiler.ranks.structure import GroupNames, RankRecord, encoded, record_of, write
from dynascope.compiler.report import Report, StackEntry, first_line
from dynascope.compiler.source.origin import is_users

#: prefixes of environment variables that influence what torch compiles or how it communicates
_SHAPING = ("TORCH", "PYTORCH", "NCCL", "GLOO", "UCC", "CUDA_", "TRITON", "OMP_NUM_THREADS", "DYNAMO", "INDUCTOR", "AOT_")
#: substrings of environment variables that may differ between ranks or machines
_DIFFERING = (
    "TORCHELASTIC", "TORCH_TRACE", "CUDA_VISIBLE_DEVICES", "CACHE_DIR", "_ASYNC_ERROR_", "LOG_DIR", "SOCKET_IFNAME", "TMPDIR",
)  # fmt: skip


def process_rank() -> Rank | None:
    """This process as a rank; None if neither the process group nor the environment says which one it is."""
    group = process_group()
    number = group[0] if group is not None else _number("RANK")
    if number is None or (group is None and _number("WORLD_SIZE") is None):
        return None
    return Rank(
        rank=number, host=socket.gethostname(), pid=os.getpid(), parent=os.getppid(), local_rank=_number("LOCAL_RANK"),
        node=_number("GROUP_RANK"), restarts=_number("TORCHELASTIC_RESTART_COUNT") or 0,
    )  # fmt: skip


def world_size() -> int | None:
    """How many ranks the job has; None if unknown."""
    group = process_group()
    return group[1] if group is not None else _number("WORLD_SIZE")


def job() -> str | None:
    """An identifier that all ranks of this job share: torchrun's run id, and the master's address and port; None if unknown.

    With static rendezvous, these are the same in each run; on a single machine, the folder of torchrun's logs tells runs apart.
    """
    parts = [os.environ.get(name, "") for name in ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")]
    error_file = os.environ.get("TORCHELASTIC_ERROR_FILE")  # LOGS/attempt_0/0/error.json
    if error_file and _number("LOCAL_WORLD_SIZE") == _number("WORLD_SIZE"):
        parts.append(os.path.abspath(os.path.join(error_file, *[os.pardir] * 3)))
    return ":".join(parts) if any(parts) else None


def process_group() -> tuple[int, int] | None:
    """(rank, size) in torch's default process group; None if it is not initialized."""
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return None
        return int(distributed.get_rank()), int(distributed.get_world_size())
    except (AttributeError, RuntimeError, ValueError):  # it is being destroyed, or torch is still being imported
        return None


def environment() -> dict[str, str]:
    """The environment variables that influence the compiler and should be equal on all ranks."""
    shaping = ((name, value) for name, value in sorted(os.environ.items()) if name.startswith(_SHAPING))
    return {name: value for name, value in shaping if not any(part in name for part in _DIFFERING)}


def _number(name: str) -> int | None:
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else None


#: seconds between two checks of the rank
_INTERVAL = 0.25
#: seconds after which the file of a rank that does not move is written again
_STILL = 2.0
#: after writing, wait for this many times the CPU time that it took
_PAUSE = 20
#: at most this many entries of a stack are kept
_MOST_ENTRIES = 12


class RankRecorder:
    """Writes the file of this process's rank until `end` is called.

    `recording`: has the `events` so far, and its `snapshot()` returns the report so far; the recorder does not change it.
    """

    def __init__(self, folder: str | Path, recording: Any) -> None:
        self.folder = Path(folder)
        self._recording = recording
        self._events = recording.events  # this list itself: when the recording ends, its `events` are a new, empty list
        self._started = time.time()
        self._job = job()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._rank: Rank | None = None
        self._world_size: int | None = None
        self._names: GroupNames = {}
        self._at: list[StackEntry] = []
        self._since = time.monotonic()
        self._last: tuple[RankRecord, bytes] | None = None
        #: the last error of this recorder, in one line: an error here must not disturb the program
        self.problem: str | None = None
        self._thread = threading.Thread(target=self._watch, name="dynascope rank", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self, report: Report, status: RankStatus = "finished", error: str | None = None) -> None:
        """Write the file for the last time; `error`: what ended the program, in one line."""
        self._stop.set()
        with self._lock:  # waits for a write that has begun
            self._guarded(self._identify)
            self._guarded(lambda: self._write(report, status, error))

    # -- the thread ----------------------------------------------------------------------------------

    def _watch(self) -> None:
        still, next_report, written = _STILL, 0.0, -1
        while not self._stop.wait(_INTERVAL):
            self._guarded(self._look)
            now, events = time.monotonic(), len(self._events)
            unmoved = now - self._since
            still = _STILL if unmoved < _STILL else still
            if self._rank is not None and events != written and now >= next_report:
                written, used = events, time.thread_time()
                self._while_running(lambda: self._write(self._recording.snapshot(), "no end", None))
                next_report = time.monotonic() + _PAUSE * (time.thread_time() - used)
            elif unmoved > still and self._last is not None:
                still *= 2  # the file of a rank that hangs is written less and less often
                self._while_running(self._write_again)

    def _while_running(self, write: Callable[[], None]) -> None:
        with self._lock:
            if not self._stop.is_set():
                self._guarded(write)

    def _look(self) -> None:
        """Note the rank, and the place of the main thread in the user's code."""
        at = users_stack(sys._current_frames().get(threading.main_thread().ident or 0))
        if [(e.file, e.line) for e in at] != [(e.file, e.line) for e in self._at]:
            self._at, self._since = at, time.monotonic()
        self._identify()

    def _identify(self) -> None:
        """Note the rank and the process groups while they exist: `destroy_process_group` removes them."""
        rank = process_rank()
        if rank is not None and (self._rank is None or process_group() is not None):
            self._rank, self._world_size = rank, world_size()
        self._names.update(process_groups())

    def _guarded(self, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception as error:  # an observer must not make the program fail
            self.problem = f"{type(error).__name__}: {first_line(str(error))}".removesuffix(": ")

    def _write(self, report: Report, status: RankStatus, error: str | None) -> None:
        if self._rank is None:
            return
        rank = replace(self._rank, status=status, error=error, started=self._started)
        record = record_of(
            rank, report, names=self._names, settings=settings_in(self._events), environment=environment(),
            world_size=self._world_size, job=self._job,
        )  # fmt: skip
        self._last = record, encoded(report.to_dict())
        self._write_again()

    def _write_again(self) -> None:
        """Write the last record with the current time and place of the rank."""
        assert self._last is not None
        record, report = self._last
        rank = record.rank
        rank.written = time.time()
        if rank.status != "finished" and self._at:
            rank.at, rank.at_seconds = self._at, round(time.monotonic() - self._since, 2)
        write(self.folder, record, report)


def users_stack(frame: FrameType | None) -> list[StackEntry]:
    """The entries of a running thread's stack that are in the user's code, outermost first; at most the innermost twelve."""
    stack = ((f.f_code, line) for f, line in traceback.walk_stack(frame)) if frame is not None else ()
    own = (Location(code.co_filename, line, code.co_name) for code, line in stack if is_users(code.co_filename))
    return [location.entry(lambda file: None) for location in islice(own, _MOST_ENTRIES)][::-1]


def settings_in(events: Iterable[Any]) -> dict[str, Any]:
    """The compiler's settings, from the first compile that logged them."""
    for event in list(events):
        metrics = (getattr(event, "metadata", None) or {}).get("compilation_metrics")
        if isinstance(metrics, dict) and (found := _settings_of(metrics)):
            return found
    return {}


def _settings_of(metrics: dict[str, Any]) -> dict[str, Any]:
    """The settings in torch's CompilationMetrics, by name."""
    found: dict[str, Any] = {}
    for part in ("dynamo", "inductor"):
        with contextlib.suppress(TypeError, ValueError, AttributeError):
            values = json.loads(metrics.get(f"{part}_config") or "{}").items()
            found.update({f"torch._{part}.config.{k}": v for k, v in values if _is_setting(v)})
    return found


def _is_setting(value: Any) -> bool:
    """Whether a value is plain and contains no path or address, which would differ between ranks that are set up alike."""
    return isinstance(value, (bool, int, float)) or (isinstance(value, str) and "/" not in value and "0x" not in value)
