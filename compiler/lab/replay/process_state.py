"""Restores state of the process and the thread, such as random numbers, settings of torch and the environment; drops output."""

from __future__ import annotations

import contextlib
import functools
import io
import operator
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from dynascope.compiler.lab.replay.object_state import State, same_numbers

_Setting = tuple[Callable[[], Any], Callable[[Any], Any]]


def states() -> Iterator[State]:
    """All state of the process and the thread that is restored."""
    import torch

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
    import torch

    pairs: list[_Setting] = [(torch.get_rng_state, torch.set_rng_state)]
    for module in (torch.cuda, torch.xpu):
        if module.is_available() and module.is_initialized():
            pairs.append((module.get_rng_state_all, module.set_rng_state_all))
    if torch.backends.mps.is_available():
        pairs.append((torch.mps.get_rng_state, torch.mps.set_rng_state))
    return [State(read, write, _same_generators) for read, write in pairs]


def _same_generators(now: Any, before: Any) -> bool:
    """Whether the states of a device's generator, or of all generators of a kind of devices, are equal."""
    import torch

    one, other = (state if isinstance(state, list) else [state] for state in (now, before))
    return all(map(torch.equal, one, other))


class _HeldBack:
    """A stream that keeps the output of one thread and passes on the others' output, because all threads share `sys.stdout`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._kept = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace")
        self._thread = threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kept if threading.get_ident() == self._thread else self._stream, name)


def held_back(stream: Any) -> Any:
    """A replacement for `stream` that drops the calling thread's output, or, if `stream` is None, the output of all threads."""
    return io.StringIO() if stream is None else _HeldBack(stream)
