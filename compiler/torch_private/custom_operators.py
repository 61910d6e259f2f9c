"""Custom operators: which of them code may call, and the Python function of one."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from dynascope.compiler.torch_private.availability import guarded

#: operators' namespaces that come with torch
_TORCHS_OWN = frozenset((
    "aten", "prim", "prims", "quantized", "higher_order", "inductor", "profiler", "export", "mkldnn", "mkl", "onednn", "c10d",
    "_c10d_functional", "symm_mem", "rngprims", "debugprims", "debug_mode_ops", "_native", "sparse", "torch_attn",
))  # fmt: skip


def namespaces(names: Iterable[str]) -> list[str]:
    """Those of these names that are `torch.ops` namespaces and hold operators from outside torch."""
    spaces = vars(sys.modules["torch.ops"]) if "torch.ops" in sys.modules else {}
    return [n for n in sorted(set(names) - _TORCHS_OWN) if type(spaces.get(n)).__name__ == "_OpNamespace"]


def python_function(value: Any) -> Any:
    """The function that `torch.library.custom_op` has made an operator of; None for everything else."""
    kind = type(value)
    is_operator = (kind.__module__, kind.__name__) == ("torch._library.custom_ops", "CustomOpDef")
    return vars(value).get("_init_fn") if is_operator else None


def unregister(value: Any) -> None:
    """Remove an operator that `torch.library.custom_op` has made; everything else is left alone."""
    if python_function(value) is None:
        return
    with guarded("removing a custom operator"):
        vars(value)["_lib"]._destroy()
        sys.modules["torch._library.custom_ops"].OPDEF_TO_LIB.pop(value._qualname, None)
