"""Copies the nodes of a live FX graph into plain data: the same nodes as `graph_parser` reads from the graph's printed text.

Reading the text is most of what a report of a large model costs.  No tensor, module or fake tensor is kept.
"""

from __future__ import annotations

import enum
import re
from typing import Any

from dynascope.compiler.builder.graph_parser import set_type
from dynascope.compiler.report import Node

_ENTRY = re.compile(r'^ *File "(?P<file>.+)", line (?P<line>\d+), in .+$', re.M)
_ILLEGAL = re.compile(r"\W")


def graph_nodes(graph: Any) -> list[Node]:
    """The nodes of a graph, in order; raises an exception if this torch has other parts of FX than expected."""
    import torch
    from torch.fx.node import _get_qualified_name

    fx: Any = torch.fx.graph
    operators = {**fx.magic_methods, **fx.inplace_methods}
    places: dict[str, tuple[str | None, int | None]] = {}
    functions: dict[Any, str] = {}

    def function_name(function: Any) -> str:
        name = functions.get(function)
        if name is None:
            name = _get_qualified_name(function)
            known = fx._is_from_torch(function) and function is not torch.device
            name = functions[function] = name if known else _ILLEGAL.sub("_", name)
        return name

    def written(value: Any) -> str:
        """An argument as FX prints it."""
        if isinstance(value, torch.fx.Node):
            return value.name
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{function_name(type(value))}({', '.join(map(repr, value))})"
        if isinstance(value, tuple):
            return f"({', '.join(map(written, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(map(written, value))}]"
        if isinstance(value, slice):
            return f"slice({written(value.start)}, {written(value.stop)}, {written(value.step)})"
        if isinstance(value, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)):
            return function_name(value)
        if isinstance(value, enum.Enum):
            return f"{type(value).__name__}.{value.name}"
        return repr(value)

    def call(args: Any, kwargs: Any) -> str:
        return f"({', '.join([*map(written, args), *(f'{k}={written(v)}' for k, v in kwargs.items())])})"

    def type_text(value: Any) -> str | None:
        """The type of a value as FX prints it; None for values without one."""
        if isinstance(value, torch.Tensor):
            if value.layout in (torch.sparse_csc, torch.sparse_csr):
                return None
            sizes = "".join(f"[{', '.join(map(str, part))}]" for part in (value.shape, value.stride()))
            core = f"{fx.dtype_abbrs[value.dtype]}{sizes}{value.device}"
            if type(value) is torch.Tensor or isinstance(value, torch._subclasses.FakeTensor):
                return core
            placements = ""
            if type(value).__name__ == "DTensor":
                spec: Any = value._spec  # type: ignore[attr-defined]
                placements = f", {spec.format_shard_order_str(spec.placements, spec.shard_order)}"
            return f"{type(value).__name__}({core}{placements})"
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return f"Sym({value!r})"
        return None

    def place(trace: str | None) -> tuple[str | None, int | None]:
        """The innermost entry of a stack, as FX prints it above the node."""
        if not trace:
            return None, None
        if trace not in places:
            entries = list(_ENTRY.finditer(trace))
            places[trace] = (entries[-1]["file"], int(entries[-1]["line"])) if entries else (None, None)
        return places[trace]

    def copied(node: Any) -> Node:
        made = Node(name=node.name, op=node.op, target=str(node.target))
        if (text := type_text(node.meta.get("val", node.meta.get("example_value")))) is not None and node.op != "output":
            set_type(made, text)
        if node.op == "placeholder":
            return made
        made.inputs, args = [n.name for n in node.all_input_nodes], node.args
        if node.op == "output":
            made.code = f"return {written(args[0])}"
            return made
        made.file, made.line = place(node.stack_trace)
        name = getattr(node.target, "__name__", "")
        if node.op == "get_attr":
            made.code = f"self.{node.target}"
        elif node.op == "call_module":
            made.code = f"self.{node.target}{call(args, node.kwargs)}"
        elif node.op == "call_method":
            made.code = f"{written(args[0])}.{node.target}{call(args[1:], node.kwargs)}"
        elif getattr(node.target, "__module__", "") == "_operator" and name in operators:
            values = [*map(written, args)]
            if name in ("getitem", "setitem") and isinstance(args[1], tuple) and args[1]:
                values[1] = values[1][1:-1]  # as Python writes it: x[1, 2]
            made.target, made.code = f"operator.{name}", operators[name].format(*values)
        elif node.target is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            made.target, made.code = "getattr", f"{written(args[0])}.{args[1]}"
        else:
            made.target = function_name(node.target)
            made.code = f"{made.target}{call(args, node.kwargs)}"
        return made

    return [copied(node) for node in graph.nodes]
