"""Finds the namespaces of custom operators that code may use, and the Python function of an operator; removes operators."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from dynascope.compiler.torch_private.availability import guarded

#: namespaces of the operators that come with torch
_OF_TORCH = frozenset((
    "aten", "prim", "prims", "quantized", "higher_order", "inductor", "profiler", "export", "mkldnn", "mkl", "onednn", "c10d",
    "_c10d_functional", "symm_mem", "rngprims", "debugprims", "debug_mode_ops", "_native", "sparse", "torch_attn",
))  # fmt: skip


def namespaces(names: Iterable[str]) -> list[str]:
    """The names among these that are `torch.ops` namespaces with operators from outside torch."""
    spaces = vars(sys.modules["torch.ops"]) if "torch.ops" in sys.modules else {}
    return [n for n in sorted(set(names) - _OF_TORCH) if type(spaces.get(n)).__name__ == "_OpNamespace"]


def python_function(value: Any) -> Any:
    """The function from which `torch.library.custom_op` made an operator; None for any other object."""
    kind = type(value)
    is_operator = (kind.__module__, kind.__name__) == ("torch._library.custom_ops", "CustomOpDef")
    return vars(value).get("_init_fn") if is_operator else None


def unregister(value: Any) -> None:
    """Remove an operator that `torch.library.custom_op` made; does nothing for any other object."""
    if python_function(value) is None:
        return
    with guarded("removing a custom operator"):
        vars(value)["_lib"]._destroy()
        sys.modules["torch._library.custom_ops"].OPDEF_TO_LIB.pop(value._qualname, None)
