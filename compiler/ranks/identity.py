"""Finds out which rank of which job this process is, from the environment and torch.distributed; initializes nothing."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from dynascope.compiler.ranks.report import Rank
from dynascope.compiler.ranks.structure import GroupNames

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
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(_SHAPING) and not any(part in name for part in _DIFFERING)
    }


def group_names() -> GroupNames:
    """The process groups of this process: torch's name -> (the program's name, the ranks)."""
    if process_group() is None:
        return {}
    from dynascope.compiler.capture.torch_private.caches import process_groups

    return process_groups()


def _number(name: str) -> int | None:
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else None
