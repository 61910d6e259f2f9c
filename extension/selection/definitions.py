"""What a cell defines, read from its syntax tree: which functions and modules are entry points, and which not.

An entry point is a function or an `nn.Module` class that the cell itself defines and that is not decorated,
or only with `error_on_graph_break` (or `region`, which hands back that very object).  Everything else that
is defined has a meaning of its own that compiling would change, and stays as it is: `refused` says why.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Literal

from dynascope.cell.source import Cell, Namespace, own_nodes, own_statements
from dynascope.compiler.torch_private import marks

_REGION_DECORATORS = ("error_on_graph_break", "region")


@dataclass(frozen=True)
class Definition:
    """A function or an `nn.Module` class that the cell defines."""

    name: str
    kind: Literal["function", "module"]
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    #: why it is no entry point; None where it is one
    refused: str | None = None


def definitions(cell: Cell, namespace: Namespace) -> list[Definition]:
    """Every function and `nn.Module` class of the cell's own level, in order."""
    found: list[Definition] = []
    modules: set[str] = set()
    for node in own_statements(cell.statements):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append(Definition(node.name, "function", node, _why_not_function(node)))
        elif isinstance(node, ast.ClassDef) and any(_is_module_base(b, namespace, modules) for b in node.bases):
            modules.add(node.name)
            found.append(Definition(node.name, "module", node, _why_not_decorated(node, ())))
    return found


def bound_names(cell: Cell) -> set[str]:
    """Names that the cell's own statements may bind."""
    names: set[str] = set()
    for node in (n for s in cell.statements for n in own_nodes(s)):
        names.update(names_bound_by(node))
    return names


def why_nothing_ran(cell: Cell, found: list[Definition], namespace: Namespace) -> list[str]:
    """What to say, with the cure, where the cell has called nothing compiled; `namespace` as it is now."""
    own = next((d.name for d in found if marks.is_compiled(namespace.get(d.name))), None)
    if own is not None:  # by the cell's own torch.compile
        return [f"the cell calls none of its compiled functions, so nothing was compiled: add a call, {own}(...), to the cell."]
    nodes = {id(d.node) for d in found}
    others = [s for s in cell.statements if id(s) not in nodes and not isinstance(s, (ast.Import, ast.ImportFrom))]
    decorators = {n.id for d in found for part in d.node.decorator_list for n in ast.walk(part) if isinstance(n, ast.Name)}
    wanted = [d for d in found if d.refused is None and d.name not in decorators]
    if not wanted:
        if not others:
            return []
        return [
            "nothing was compiled: a cell with definitions compiles only what it defines; "
            "put the definitions into a cell of their own to have these statements compiled."
        ]
    for d in wanted:
        places = [s for s in cell.statements if s is not d.node]
        if not any(isinstance(n, ast.Name) and n.id == d.name for s in places for n in ast.walk(s)):
            continue
        target = d.name if d.kind == "function" else _holder(d.name, bound_names(cell), namespace)
        if target is not None:
            return [f"none of the cell's own statements calls {d.name}, so nothing was compiled: use -f {target}."]
    call = wanted[0].name + ("(...)" if wanted[0].kind == "function" else "(...)(x)")
    return [f"the cell calls none of its functions, so nothing was compiled: add a call, {call}, to the cell."]


def _holder(kind: str, names: set[str], namespace: Namespace) -> str | None:
    """The cell's name for a module that is one of this class or has one inside."""
    import torch

    for name in sorted(names):
        value = namespace.get(name)
        if isinstance(value, torch.nn.Module) and any(type(m).__name__ == kind for m in value.modules()):
            return name
    return None


def names_bound_by(node: ast.AST) -> list[str]:
    """Names that this node itself binds or deletes (not the nodes inside it)."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.alias):
        return [] if node.name == "*" else [node.asname or node.name.split(".")[0]]
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return []


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` for a chain of attributes; None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def _why_not_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    if isinstance(node, ast.AsyncFunctionDef):
        return "an async def"
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for s in node.body for n in own_nodes(s)):
        return "a generator"
    return _why_not_decorated(node, _REGION_DECORATORS)


def _why_not_decorated(node: ast.FunctionDef | ast.ClassDef, allowed: tuple[str, ...]) -> str | None:
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = dotted(target)
        if name is not None and name.rpartition(".")[2] in allowed:
            continue
        return f"decorated with @{name or ast.unparse(target)}"
    return None


def _is_module_base(base: ast.expr, namespace: Namespace, modules: set[str]) -> bool:
    """Whether this base class is an `nn.Module`.  The cell has not run yet: what it imports itself is told by name."""
    name = dotted(base.value if isinstance(base, ast.Subscript) else base)
    if name is None:
        return False
    if name in modules:
        return True
    import torch

    value, known = _lookup(name, namespace)
    if known:
        return isinstance(value, type) and issubclass(value, torch.nn.Module)
    named = getattr(torch.nn, name.rpartition(".")[2], None)
    return isinstance(named, type) and issubclass(named, torch.nn.Module)


def _lookup(name: str, namespace: Namespace) -> tuple[Any, bool]:
    root, *rest = name.split(".")
    if root not in namespace:
        return None, False
    value = namespace[root]
    for part in rest:
        try:
            value = getattr(value, part)
        except Exception:
            return None, False
    return value, True
