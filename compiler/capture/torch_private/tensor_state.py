"""Reads and sets the private state of a tensor: its version, its hooks, the sizes that are marked as dynamic."""

from __future__ import annotations

from typing import Any

from dynascope.compiler.capture.torch_private.availability import guarded, note_missing


def version_of(tensor: Any) -> int | None:
    """Autograd's counter of in-place changes of a tensor; None for an inference tensor, which has no counter."""
    return None if tensor.is_inference() else getattr(tensor, "_version", None)


def set_version(tensor: Any, version: int | None) -> None:
    """Set the version to one that `version_of` returned; does nothing for None."""
    if version is None:
        return
    try:
        from torch._C._autograd import _unsafe_set_version_counter

        _unsafe_set_version_counter((tensor,), (version,))
    except (ImportError, TypeError) as error:
        note_missing("versions of tensors", str(error))


def hooks_of(tensor: Any) -> tuple[dict[int, Any], ...]:
    """The dicts in which torch keeps a tensor's backward hooks; empty if it never had any."""
    groups = (getattr(tensor, name, None) for name in ("_backward_hooks", "_post_accumulate_grad_hooks"))
    return tuple(hooks for hooks in groups if hooks is not None)


def mark_dynamic(tensor: Any, dimension: int) -> None:
    """Mark a size of a copied tensor as dynamic; the marks that the copy shares with the original are copied first."""
    import torch

    marks = {name: value for name, value in vars(tensor).items() if name.startswith(("_dynamo_", "_specialize_on"))}
    vars(tensor).update({name: value.copy() for name, value in marks.items() if isinstance(value, (set, dict))})
    with guarded("marks of dynamic sizes"):
        torch._dynamo.mark_dynamic(tensor, dimension)
