"""Settings of the process and of the thread that a call may change: the working directory, torch's gradient mode, and the like.

Put back like everything else (`world`), so that a call which changes one of them by a step (`os.chdir("runs")`) has taken
one step in the end.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from dynascope.compiler.replay import restore

_Setting = tuple[Callable[[], Any], Callable[[Any], Any]]


def _settings() -> Iterator[_Setting]:
    """(how to read it, how to set it) of each."""
    import torch

    yield os.getcwd, os.chdir
    yield sys.getrecursionlimit, sys.setrecursionlimit
    yield torch.is_grad_enabled, torch.set_grad_enabled
    yield torch.get_default_dtype, torch.set_default_dtype
    yield torch.get_num_threads, torch.set_num_threads
    yield torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode
    yield torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        yield numpy.geterr, lambda kept: numpy.seterr(**kept)


def putters() -> list[tuple[type, Callable[[], bool]]]:
    """For each setting, what puts it back as it is now and tells whether it had changed."""
    found: list[tuple[type, Callable[[], bool]]] = [(list, functools.partial(restore.refill, sys.path, list(sys.path)))]
    for read, write in _settings():
        try:
            kept = read()
        except (OSError, RuntimeError):  # the directory is gone; torch names no precision that was set in its newer way
            continue
        found.append((type(kept), functools.partial(_put, read, write, kept)))
    return found


def _put(read: Callable[[], Any], write: Callable[[Any], Any], kept: Any) -> bool:
    if read() == kept:
        return False
    write(kept)
    return True
