"""Finds what can be compiled, and says why something cannot be: definitions in the cell's text, and the objects of names.

An entry point is an undecorated function or `nn.Module` class of the cell, or a function decorated only with
`error_on_graph_break` (or `region`, which returns the same decorator), `no_grad` or the like.  Functions with other
decorators, decorated classes, generators and async functions are none, because compiling would change their meaning; `refused`
says why.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from types import FunctionType, MethodType
from typing import Any, Literal

from IPython.core.error import UsageError

from dynascope.cell.source import Cell, Namespace
from dynascope.compiler.capture.torch_private import marks
from dynascope.compiler.source.syntax import DEFINITIONS, FUNCTIONS, dotted, is_generator, own_statements
from dynascope.compiler.validate import did_you_mean, wrong_with

_TORCHS_DECORATORS = (
    "error_on_graph_break", "region", "no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "autocast"
)  # fmt: skip


@dataclass(frozen=True)
class Definition:
    """A function or an `nn.Module` class that the cell defines."""

    name: str
    kind: Literal["function", "module"]
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    #: why it is no entry point; None if it is one
    refused: str | None = None


def definitions(cell: Cell, namespace: Namespace) -> list[Definition]:
    """Every function and `nn.Module` class that the cell's own statements define, in order."""
    defined: list[Definition] = []
    is_module: dict[str, bool] = {}  # the classes of the cell so far
    for node in own_statements(cell.statements):
        if isinstance(node, FUNCTIONS):
            defined.append(Definition(node.name, "function", node, _why_refused(node)))
        elif isinstance(node, ast.ClassDef):
            is_module[node.name] = any(_is_module_base(b, namespace, is_module) for b in node.bases)
            if is_module[node.name]:
                defined.append(Definition(node.name, "module", node, _why_refused(node)))
    return defined


def definitions_of(cell: Cell, target: str) -> list[tuple[str, Any]]:
    """(dotted name, node) of the cell's last definition of `target`; if there is none, of all whose last part is `target`."""

    def walked(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Any]]:
        for node in own_statements(body):
            if isinstance(node, DEFINITIONS):
                yield prefix + node.name, node
                yield from walked(node.body, f"{prefix}{node.name}.")

    every = list(walked(cell.statements, ""))
    if exact := [(name, node) for name, node in every if name == target]:
        return exact[-1:]  # if it is defined twice, the name is bound to the last one afterwards
    return [(name, node) for name, node in every if "." not in target and name.rpartition(".")[2] == target]


def _why_refused(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str | None:
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = dotted(target)
        if isinstance(node, ast.ClassDef) or name.rpartition(".")[2] not in _TORCHS_DECORATORS:
            return f"decorated with @{name or ast.unparse(target)}"
    if isinstance(node, ast.AsyncFunctionDef):
        return "an async function"
    return "a generator" if isinstance(node, ast.FunctionDef) and is_generator(node) else None


def _is_module_base(base: ast.expr, namespace: Namespace, is_module: dict[str, bool]) -> bool:
    """Whether this base class is an `nn.Module`; `is_module` says it of the classes that the cell has defined above."""
    name = dotted(base.value if isinstance(base, ast.Subscript) else base)
    if not name or name in is_module:
        return bool(name) and is_module[name]
    import torch

    root, _, path = name.partition(".")
    try:
        value = attrgetter(path)(namespace[root]) if path else namespace[root]
    except Exception:
        value = getattr(torch.nn, name.rpartition(".")[2], None)  # the cell has not run: it may import the name itself
    return isinstance(value, type) and issubclass(value, torch.nn.Module)


def why_nothing_ran(defined: list[Definition], namespace: Namespace) -> str:
    """A note on a cell that called nothing that it compiles, and what to do.  `namespace`: the user's, after the cell."""
    decorators = {n.id for d in defined for part in d.node.decorator_list for n in ast.walk(part) if isinstance(n, ast.Name)}
    found = [d for d in defined if d.refused is None and d.name not in decorators]
    found += [d for d in defined if marks.is_compiled(namespace.get(d.name))]
    if not found:
        return "nothing was compiled: of what the cell defines, its own statements called nothing that is compiled by itself."
    name, kind = found[-1].name, found[-1].kind  # it may call those above
    what, call = (name, "(...)") if kind == "function" else (f"an instance of {name}", "(...)(x)")
    return f"nothing was compiled: no statement of the cell called {what} directly: add a call, {name}{call}."


# -- objects of a name ----------------------------------------------------------------------------


def find_target(name: str, namespace: Namespace) -> Any:
    """The object of a dotted name: in the user's namespace, else in a module that is already loaded.

    Raises LookupError, whose message says why, if there is none or it cannot be compiled.
    """
    path, *rest = name.split(".")
    known = sys.modules if path not in namespace and rest else namespace
    if path not in known:
        raise LookupError(f"no {path!r} in the notebook{did_you_mean(path, own_names(namespace))}")
    value = known[path]
    for part in rest:
        try:
            value = getattr(value, part)
        except Exception:
            raise LookupError(f"{path} has no {part!r}{did_you_mean(part, dir(value))}") from None
        path += f".{part}"
    if (reason := why_not_compilable(value)) is not None:
        raise LookupError(reason)
    return value


def own_names(namespace: Namespace) -> list[str]:
    """The names that the user has bound: without those of IPython, such as `open` and `Out`."""
    return [name for name in namespace if name[:1] != "_" and name not in ("In", "Out") and not hasattr(builtins, name)]


def underlying(value: Any) -> Any:
    """What is compiled for this object: the function of a partial, the `__call__` of an object that has one in Python."""
    import torch

    while type(value) is functools.partial:
        value = value.func
    call = inspect.getattr_static(type(value), "__call__", None)
    if type(call) is not FunctionType or isinstance(value, (type, torch.nn.Module)) or marks.is_compiled(value):
        return value
    return MethodType(call, value)


def parts_of(value: Any) -> tuple[Any, ...]:
    """The object and the function of a bound method, each look-up of which makes another one; or just `value`."""
    return (value.__self__, value.__func__) if type(value) is MethodType else (value,)


def why_not_compilable(value: Any) -> str | None:
    """Why this object cannot be compiled; None if it can."""
    import torch

    value = underlying(value)
    is_module = isinstance(value, torch.nn.Module) or (isinstance(value, type) and issubclass(value, torch.nn.Module))
    function = getattr(value.forward, "__func__", value.forward) if is_module else parts_of(value)[-1]
    if marks.is_disabled(function):
        return "it is kept out of the compiler by torch.compiler.disable"
    if function is torch.nn.Module.forward or isinstance(value, torch.jit.ScriptModule):
        return "it has no `forward` in Python: name other modules, or the class of these modules"
    if is_module or marks.is_compiled(function):
        return None
    if isinstance(function, FunctionType):
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            return "it is an async function"
        return "it is a generator" if inspect.isgeneratorfunction(function) else None
    if isinstance(value, type):
        return "it is a class, but not a subclass of nn.Module"
    if callable(value):
        return f"it is a {type(value).__name__}: -f takes only Python functions, methods and modules"
    return f"it is a {type(value).__name__}, not a function, method or nn.Module"


# -- --inputs --------------------------------------------------------------------------------------


def check_inputs(name: str, namespace: dict[str, Any], bound: list[str], *, takes_inputs: bool) -> None:
    """Raise UsageError, with a one-line message, if `--inputs` cannot work.

    `bound`: the names that the cell itself binds; their values are not known yet.  `takes_inputs`: whether the cell compiles
    something that can be called.
    """
    if not takes_inputs:
        raise UsageError("--inputs: statements take no inputs; define a function in the cell, or name one with -f")
    if name in bound:
        return
    if name not in namespace:
        raise UsageError(f"--inputs {name}: no {name!r} in the notebook{did_you_mean(name, own_names(namespace))}")
    if (wrong := wrong_with(namespace[name])) is not None:
        raise UsageError(f"--inputs {name}: {wrong}")


def inputs_named(name: str | None, namespace: dict[str, Any], notes: list[str]) -> Any:
    """The list that has this name after the cell; if it cannot be used, None, and a note says why."""
    wrong = None if name is None else wrong_with(namespace.get(name))
    notes += [f"--inputs {name}: {wrong}"] if wrong is not None else []
    return None if name is None or wrong is not None else namespace[name]
