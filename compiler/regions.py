"""`region()`: another `error_on_graph_break` for one stretch of code."""

from __future__ import annotations

from typing import Any


def region(*, error_on_graph_break: bool) -> Any:
    """A decorator and context manager under which graph breaks are errors (True) or allowed (False).

    It hands back the very object of `torch._dynamo.error_on_graph_break`, because Dynamo knows that one
    and honours it inside traced code.  `fullgraph=True` wins over it.

    Raises TypeError where the flag is no bool.
    """
    if not isinstance(error_on_graph_break, bool):
        raise TypeError(f"region(error_on_graph_break=...) takes True or False, not {error_on_graph_break!r}")
    import torch._dynamo

    return torch._dynamo.error_on_graph_break(error_on_graph_break)
