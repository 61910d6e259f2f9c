"""Keeps the state of many objects and of the process at one moment, and restores it; drops output.

Checking all of it takes time and evicts the CPU's caches, which would make the next call slow.  So `restore()` learns what
calls change, and `restore(only_changed=True)` checks nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import operator
import os
import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO, cast

import torch

from dynascope.compiler.lab import objects
from dynascope.compiler.lab.objects import NotRestored, State, same_numbers
from dynascope.compiler.patching import patched

_Setting = tuple[Callable[[], Any], Callable[[Any], Any]]


def process_states() -> Iterator[State]:
    """All state of the process and the thread that is restored."""
    settings: list[_Setting] = [
        (torch.is_grad_enabled, torch.set_grad_enabled),
        (torch.get_default_dtype, torch.set_default_dtype),
        (torch.get_num_threads, torch.set_num_threads),
        (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        (os.getcwd, os.chdir),
        (lambda: dict(os.environ), _set_environment),
        (lambda: list(sys.path), functools.partial(operator.setitem, sys.path, slice(None))),
    ]
    for read, write in settings:
        with contextlib.suppress(OSError, RuntimeError):  # if the directory was removed, or torch's newer API set the precision
            yield State(read, write, operator.eq)
    yield from random_states()


def _set_environment(kept: dict[str, str]) -> None:
    for name in os.environ.keys() - kept.keys():
        del os.environ[name]
    os.environ.update(kept)


def random_states() -> list[State]:
    """The random state of Python, NumPy and torch, on every device that was used."""
    pairs: list[_Setting] = [(random.getstate, random.setstate)]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        pairs.append((numpy.random.get_state, numpy.random.set_state))
    return [*(State(read, write, same_numbers) for read, write in pairs), *torch_random_states()]


def torch_random_states() -> list[State]:
    """The states of torch's default generators, on every device that was used."""
    pairs: list[_Setting] = [(torch.get_rng_state, torch.set_rng_state)]
    for module in (torch.cuda, torch.xpu):
        if module.is_available() and module.is_initialized():
            pairs.append((module.get_rng_state_all, module.set_rng_state_all))
    if torch.backends.mps.is_available():
        pairs.append((torch.mps.get_rng_state, torch.mps.set_rng_state))
    return [State(read, write, _same_generators) for read, write in pairs]


def _same_generators(now: Any, before: Any) -> bool:
    """Whether the states of a device's generator, or of all generators of a kind of devices, are equal."""
    one, other = (state if isinstance(state, list) else [state] for state in (now, before))
    return all(map(torch.equal, one, other))


class _Stream:
    """A stream that keeps the output of one thread and passes on the others' output, because all threads share `sys.stdout`."""

    def __init__(self, stream: Any, kept: io.TextIOWrapper) -> None:
        self._stream, self._kept, self._thread = stream, kept, threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kept if threading.get_ident() == self._thread else self._stream, name)


@dataclass
class HeldBack:
    """What a thread has written in a block."""

    printed: str = ""
    #: log records
    logged: list[str] = field(default_factory=list)


@contextlib.contextmanager
def held_back_output() -> Iterator[HeldBack]:
    """Keep back what the calling thread prints and logs; where there is no stream, what all threads print.

    What is printed is known at the end of the block.  Torch's own log records are not kept back.
    """
    held, thread, handle = HeldBack(), threading.get_ident(), logging.Logger.callHandlers
    written = io.BytesIO()
    kept = io.TextIOWrapper(written, encoding="utf-8", errors="replace", newline="", write_through=True)
    out, err = [cast(TextIO, kept if stream is None else _Stream(stream, kept)) for stream in (sys.stdout, sys.stderr)]

    def collect(logger: logging.Logger, record: logging.LogRecord) -> None:
        if threading.get_ident() != thread or record.name.partition(".")[0] == "torch":
            handle(logger, record)
            return
        try:
            message = record.getMessage()
        except Exception:  # the arguments do not fit: the program's own handlers would say so, and go on
            message = f"{record.msg!r} {record.args!r}"
        held.logged.append(f"{record.name} {record.levelname}: {message}")

    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), patched(logging.Logger, {"callHandlers": collect}):
        try:
            yield held
        finally:
            kept.flush()
            held.printed = written.getvalue().decode()


#: at most this many bytes of tensors and arrays are copied in all; the values of the rest are not restored
MOST_BYTES = 4 << 30


class StateSnapshot:
    """The state of these objects and of the process at the moment when the snapshot is made."""

    def __init__(self, objects: Iterable[Any]) -> None:
        #: sentences on what will not be, or was not, restored
        self.notes: list[str] = []
        self._bytes = self._too_large = 0
        self._storages: set[tuple[int, int]] = set()
        self._states = [("the process", state) for state in process_states()]
        self._changing: set[int] = set()  # positions in `_states`
        for value in objects:
            self._states += [(f"a {type(value).__name__}", state) for state in self._states_of(value)]
        if self._too_large:
            are = "is" if self._too_large == 1 else "are"
            self.notes.append(
                f"{self._too_large} of the tensors and arrays that the call can reach {are} not copied, because together they "
                "are too large: what the call changes there is not restored"
            )

    def _states_of(self, value: Any) -> Iterator[State]:
        storage = objects.storage_of(value) if isinstance(value, torch.Tensor) else None
        if storage is not None:
            key = (storage.data_ptr(), storage.nbytes())
            known = key in self._storages  # from another view of it
            self._storages.add(key)
            if not known and self._fits(storage.nbytes()):
                yield objects.storage_state(storage)
        watched = objects.watched(value)
        if watched is not None:
            yield watched
        elif self._fits(objects.size_of(value)):
            yield from objects.states_of(value)

    def _fits(self, size: int) -> bool:
        """Whether this many more bytes may be kept; if so, they are counted as kept."""
        fits = self._bytes + size <= MOST_BYTES
        self._bytes += size if fits else 0
        self._too_large += not fits
        return fits

    def restore(self, *, only_changed: bool = False) -> None:
        """Restore all state; with `only_changed`, check and restore only the state that earlier restores found changed."""
        for number in sorted(self._changing) if only_changed else range(len(self._states)):
            name, state = self._states[number]
            try:
                if state.restore():
                    self._changing.add(number)
            except NotRestored as reason:
                self.notes.append(str(reason))
            except Exception as error:
                self.notes.append(f"{name} could not be restored: {type(error).__name__}: {error}")
