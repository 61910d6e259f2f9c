"""Makes candidates that wrap a function with `nonstrict_trace`: the graph then calls it, and Dynamo does not look into it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.text_edits import parsed
from dynascope.compiler.report import FixEdit
from dynascope.compiler.source.lines import split_lines

_NONSTRICT = "_dynamo.nonstrict_trace"


def decorated(problem: Problem) -> list[Candidate]:
    """Candidates that decorate the function around the break."""
    return _wrapped(problem, _decorated)


def called(problem: Problem) -> list[Candidate]:
    """Candidates that wrap the function that is called at the break."""
    return _wrapped(problem, _called)


def _wrapped(problem: Problem, make: Callable[[Problem, ast.Module, str], list[Candidate]]) -> list[Candidate]:
    tree = parsed(problem.source)
    torch = name_of_torch(tree) if tree is not None else None
    return [] if tree is None or torch is None else make(problem, tree, torch)


def _decorated(problem: Problem, tree: ast.Module, torch: str) -> list[Candidate]:
    """Decorate the function around the break, if it is at the top level and has no decorator."""
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == problem.function]
    if len(found) != 1 or found[0].decorator_list:
        return []
    node = found[0]
    line = split_lines(problem.source)[node.lineno - 1].rstrip("\n")
    edit = FixEdit(problem.file, node.lineno, node.lineno, line, f"@{torch}.{_NONSTRICT}\n{line}")
    return [Candidate("wrap", f"Trace {node.name} without looking into it", (edit,), assumption=_assumption(node.name))]


def _called(problem: Problem, tree: ast.Module, torch: str) -> list[Candidate]:
    """Wrap the imported function that is called at the break; a wrapper that an earlier fix has made is used again."""
    lines = [line.rstrip("\n") for line in split_lines(problem.source)]
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and problem.line <= node.lineno <= problem.end_line
        and problem.column in (None, _characters(lines[node.lineno - 1], node.col_offset))
        and _dotted(node.func) is not None
    ]
    if len(calls) != 1:
        return []
    call, name = calls[0], _dotted(calls[0].func)
    assert name is not None
    top = next((node for node in tree.body if node.lineno <= problem.line <= (node.end_lineno or 0)), None)
    if name.partition(".")[0] in sys.stdlib_module_names:  # results of Python's library vary between calls, or are no tensors
        return []
    if name.startswith((f"{torch}._dynamo.", f"{torch}.compiler.")):  # a break that is asked for
        return []
    if top is None or not _is_imported(name.partition(".")[0], tree) or call.func.end_lineno != call.func.lineno:
        return []
    helper = "_traced_" + name.replace(".", "_")
    line = lines[call.lineno - 1]
    start, end = _characters(line, call.func.col_offset), _characters(line, call.func.end_col_offset or 0)
    first = min([top.lineno, *(d.lineno for d in getattr(top, "decorator_list", ()))])
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    replaced = f"{line[:start]}{helper}{line[end:]}"
    added = f"{helper} = {torch}.{_NONSTRICT}({name})"
    edits: tuple[FixEdit, ...] = (FixEdit(problem.file, call.lineno, call.lineno, line, replaced),)
    if added not in lines[: first - 1]:
        edits = (FixEdit(problem.file, first, first - 1, "", f"{added}\n\n\n"), *edits)
    return [Candidate("wrap", f"Trace {name} without looking into it", edits, assumption=_assumption(name))]


def _characters(line: str, column: int) -> int:
    """A column of `ast`, which counts bytes, in characters."""
    return len(line.encode()[:column].decode())


def _assumption(name: str) -> str:
    return f"{name} changes no state, and what it reads besides its arguments stays the same"


def name_of_torch(tree: ast.Module) -> str | None:
    """The name under which a module imports torch; None if it does not."""
    names = [a.asname or a.name for node in tree.body if isinstance(node, ast.Import) for a in node.names if a.name == "torch"]
    return names[0] if names else None


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)) is not None:
        return f"{before}.{node.attr}"
    return None


def _is_imported(name: str, tree: ast.Module) -> bool:
    """Whether the module imports the name."""
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return name in [(a.asname or a.name).partition(".")[0] for node in imports for a in node.names]
