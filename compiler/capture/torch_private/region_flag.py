"""Finds torch's `error_on_graph_break`, which makes regions, and restores or sets the flag of the same name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dynascope.compiler.capture.torch_private.availability import note_missing


def error_on_graph_break() -> Any:
    """torch's function that makes regions, which Dynamo recognizes in traced code; raises RuntimeError if torch lacks it."""
    import torch._dynamo

    region = getattr(torch._dynamo, "error_on_graph_break", None)
    if region is None:
        note_missing("error_on_graph_break", "not in this torch")
        raise RuntimeError(f"torch {torch.__version__} has no error_on_graph_break: regions need torch 2.9 or newer")
    return region


@contextlib.contextmanager
def flag_kept() -> Iterator[None]:
    """Restore the flag after the block, even if an interrupt keeps torch from restoring it."""
    import torch._dynamo.decorators as decorators

    get = getattr(decorators, "_get_error_on_graph_break", None)
    put = getattr(decorators, "_set_error_on_graph_break", None)
    if get is None or put is None:
        yield
        return
    before = get()
    try:
        yield
    finally:
        if get() != before:
            put(before)


def set_flag_of(compiled: Any, flag: bool) -> bool:
    """Set error_on_graph_break on a compiled module; returns False for a function, or if modules of this torch lack it."""
    context = getattr(compiled, "dynamo_ctx", None)
    if context is None or not hasattr(context, "error_on_graph_break"):
        return False
    context.error_on_graph_break = flag
    return True
