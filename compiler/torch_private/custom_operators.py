"""Custom operators: which ones a function may call, and the program's own functions behind them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from dynascope.compiler.torch_private.guards import note_missing

#: operators' namespaces that come with torch
_TORCHS_OWN = frozenset((
    "aten", "prim", "prims", "quantized", "higher_order", "inductor", "profiler", "export", "mkldnn", "mkl", "onednn", "c10d",
    "_c10d_functional", "symm_mem", "rngprims", "debugprims", "debug_mode_ops", "_native", "sparse", "torch_attn",
))  # fmt: skip


def defined(names: Iterable[str]) -> list[Any]:
    """Operators that a program has defined in Python, in namespaces and under names that are among these."""
    wanted = set(names) - _TORCHS_OWN
    return [found for name, found in _table().items() if set(name.split("::")) <= wanted]


def _table() -> dict[str, Any]:
    table = getattr(sys.modules.get("torch._library.custom_ops"), "OPDEFS", None)
    if table is None:
        note_missing("custom operators", "no OPDEFS")
        return {}
    return {name.partition(".")[0]: found for name, found in list(table.items())}


def foreign(names: Iterable[str]) -> list[str]:
    """Namespaces of operators among these names that neither torch nor `torch.library.custom_op` has filled."""
    known = {name.partition("::")[0] for name in _table()} | _TORCHS_OWN
    spaces = vars(sys.modules["torch.ops"]) if "torch.ops" in sys.modules else {}
    return [
        f"the operators torch.ops.{n}" for n in sorted(set(names) - known) if type(spaces.get(n)).__name__ == "_OpNamespace"
    ]


def functions_of(value: Any) -> list[Any]:
    """The program's own functions behind a custom operator; [] for everything else."""
    kind = type(value)
    if kind.__module__ == "torch._ops" and kind.__name__ in ("OpOverloadPacket", "OpOverload"):
        value = _table().get(str(value.name()) if kind.__name__ == "OpOverload" else str(value._qualified_op_name))
        return [] if value is None else [value]
    if (kind.__module__, kind.__name__) != ("torch._library.custom_ops", "CustomOpDef"):
        return []
    kept = [f for v in vars(value).values() for f in (v.values() if isinstance(v, dict) else [v])]
    functions = [f for f in kept if isinstance(f, FunctionType)]
    return functions + [cell.cell_contents for f in functions for cell in f.__closure__ or () if _is_function(cell)]


def _is_function(cell: Any) -> bool:
    try:
        return isinstance(cell.cell_contents, FunctionType)
    except ValueError:  # empty
        return False
