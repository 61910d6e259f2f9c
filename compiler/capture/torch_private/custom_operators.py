"""Finds the namespaces of custom operators that code may use, and the Python function of an operator; removes operators."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from dynascope.compiler.capture.torch_private.availability import guarded

#: namespaces of the operators that come with torch
OF_TORCH = frozenset((
    "aten", "prim", "prims", "higher_order", "_native", "sparse", "profiler", "export", "onnx", "static_runtime", "streams",
    "quantized", "_quantized", "quantization", "quantized_decomposed", "mkldnn", "mkldnn_prepacked", "mkl", "onednn",
    "inductor", "inductor_prims", "rngprims", "debugprims", "debug_mode_ops", "flex_lib", "torch_attn", "c10d",
    "c10d_functional", "_c10d_functional", "_c10d_functional_autograd", "symm_mem", "fsdp", "_dtensor",
))  # fmt: skip


def namespaces(names: Iterable[str]) -> list[str]:
    """The names among these that are `torch.ops` namespaces with operators from outside torch."""
    spaces = vars(sys.modules["torch.ops"]) if "torch.ops" in sys.modules else {}
    return [n for n in sorted(set(names) - OF_TORCH) if type(spaces.get(n)).__name__ == "_OpNamespace"]


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
