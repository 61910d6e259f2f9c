"""Compiles the statements of a cell that defines no function and no `nn.Module` class, as functions.

    def __cell__(_in): global y, z; ...; return _in, <the last expression>

Every name that the cell binds is global, so callees, lambdas that run later and exception handlers see what they see in a plain
cell.  Two details make that work under Dynamo:

* Dynamo gives up on a frame that reads a global which did not exist when the frame began.  So names that are not bound yet are
  first bound to placeholders (`_Missing`), which the cell must never see.  A statement that reads such a name before it has
  certainly been assigned gets a check in front: `if _in_y: _in_y = False; if y is <placeholder>: del y`.  The check is always
  safe: it takes effect at most once, and only makes the name unbound again, as it is in the plain cell.  It adds nothing to a
  graph.  Placeholders that are left at the end are removed.  Dynamo cannot trace the `del` of a check.  So if a name may be
  read while it is unbound, inside a compound statement or before any statement that can bind it, the next statement that
  binds it starts a new part (`divide`).  An earlier part that does not bind the name itself then needs no placeholder for it,
  and no check.
* Dynamo skips frames that neither hold a tensor nor name a module of torch or numpy, and a resume function knows the cell's
  data only as globals.  So `_in` holds an empty tensor and lives to the end.

As always under torch.compile, names are bound when a graph has run.  So an error that only the running graph finds (a bad index
in the data, an attribute that a computed tensor lacks) loses the names bound before it in the same graph.  Errors found while
tracing lose nothing: the statements then run eagerly.

Statements that would mean something else inside a function, or that Dynamo cannot trace, run uncompiled between these functions
(`why_outside`).
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import CodeType, FunctionType
from typing import Any

from dynascope.cell.ast_tools import blocks, bound_names, copy_compound, dotted_name, generated, is_string, located, own_nodes
from dynascope.cell.interrupts import interruptible
from dynascope.cell.source import Cell, Namespace, compile_tree, reread, run_statement
from dynascope.compiler.fixes.text_edits import NotApplicable
from dynascope.compiler.source.code import STATEMENTS, map_constants
from dynascope.compiler.source.functions import set_from_text
from dynascope.selection.definitions import definitions
from dynascope.selection.global_reads import GlobalReads, names_read

#: the function's parameter, and the prefix of its other local names, the flags
_IN = "_in"
#: names of functions that read the frame they are called from or the notebook's namespace, or that act on IPython
_FRAME_READERS = frozenset(
    ("locals", "globals", "vars", "dir", "eval", "exec", "super", "get_ipython", "breakpoint", "exit", "quit")
)
#: in a trace `torch.compile` returns its argument, `set_stance` is refused, and the result of `re.compile` cannot be bound
_NOT_IN_A_TRACE = ("compile", "set_stance")
#: matches settings of the compiler, such as `torch._dynamo.config.x = 1`: in a trace, they would come too late
_SETTING = re.compile(r"\w+\._(dynamo|inductor|functorch)\.config\.")
_QUALNAME_PREFIX = f"{STATEMENTS}.<locals>."
_OPERATIONS = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift radd rsub rmul rtruediv rfloordiv rmod rpow "
    "rmatmul rand ror rxor rlshift rrshift neg pos invert abs lt le gt ge len iter next contains getitem setitem delitem call "
    "bool int float index str repr enter exit getattr setattr format"
)


class _Missing:
    """The placeholder of a name that is not bound yet; most operations on it raise the NameError of the plain cell."""

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def _raise(self, *args: Any, **kwargs: Any) -> Any:
        name = object.__getattribute__(self, "_name")
        raise NameError(f"name {name!r} is not defined", name=name)

    for _operation in _OPERATIONS.split():
        locals()[f"__{_operation}__"] = _raise
    del _operation


# -- dividing the cell ------------------------------------------------------------------------------------


@dataclass
class Part:
    """Consecutive statements that are compiled together, or that all run uncompiled."""

    statements: list[ast.stmt]
    compiled: bool


def divide(cell: Cell, namespace: Namespace, missing: Iterable[str]) -> list[Part]:
    """The cell's statements in parts, in order; `missing`: names that the cell binds, and that are not bound before it."""
    parts: list[Part] = []
    checks = _Checks(missing, GlobalReads(namespace), _IN)
    bound: set[str] = set()
    maybe_bound: set[str] = set()
    read_before_bound: set[str] = set()  # in the current part
    for statement in cell.statements:
        compiled = why_outside(statement) is None
        names = set(bound_names([statement]))
        binds = names - bound
        checks.checked.clear()
        checks.block([statement], bound)
        if parts and parts[-1].compiled == compiled and not binds & read_before_bound:
            parts[-1].statements.append(statement)
            read_before_bound |= checks.checked
        else:
            parts.append(Part([statement], compiled))
            read_before_bound = set(checks.checked)
        maybe_bound = (maybe_bound | names) - _deleted(statement)
        bound &= maybe_bound  # without the names that were only checked: no statement has bound them yet
    return parts


def _deleted(statement: ast.stmt) -> set[str]:
    """Names that the statement may delete; `except ... as name` deletes its name at the end."""
    names = {n.id for n in own_nodes(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
    return names | {n.name for n in own_nodes(statement) if isinstance(n, ast.ExceptHandler) and n.name}


def why_outside(statement: ast.stmt) -> str | None:
    """Why this statement is not compiled; None if it is."""
    if is_string(statement):
        return "text"  # sets __doc__
    if isinstance(statement, ast.Delete) and _deleted(statement):
        return "del"  # Dynamo does not trace the deletion of a global: it would skip the whole function
    if _is_setting(statement):
        return "setting"
    return next(filter(None, map(_why_outside, own_nodes(statement))), None)


def _is_setting(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    places = statement.targets if isinstance(statement, ast.Assign) else [value.func] if isinstance(value, ast.Call) else []
    return any(_SETTING.match(dotted_name(place) or "") for place in places)


def _why_outside(node: ast.AST) -> str | None:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return "import"
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    if isinstance(node, ast.AnnAssign):
        return "annotation"
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in _FRAME_READERS:
        return f"{node.id}()"
    called = dotted_name(node.func) if isinstance(node, ast.Call) else None
    if called is not None and called.rpartition(".")[2] in _NOT_IN_A_TRACE:
        return f"{called}()"
    return "type alias" if type(node).__name__ == "TypeAlias" else None


def notes(cell: Cell) -> list[str]:
    """What the report says about statements that were not compiled; imports and the like are not worth a note."""
    reasons = [(statement.lineno, why_outside(statement)) for statement in cell.statements]
    return [
        f"line {line} ran unchanged, outside the compiled statements ({reason})."
        for line, reason in reasons
        if reason not in (None, "import", "text", "del", "setting")
    ]


# -- running ----------------------------------------------------------------------------------------------


def run(shell: Any, cell: Cell, make_entry: Callable[[Any], Any]) -> Any:
    """Run the cell with its statements compiled by `make_entry`; returns the value of the last expression."""
    value = None
    missing = set(bound_names(cell.statements)) - set(shell.user_ns)
    parts = divide(cell, shell.user_ns, missing)
    binds, numbers = _binds(parts), itertools.count()
    for part in parts:
        if part.compiled:
            edited = partial(_edited, shell, cell, missing, binds, next(numbers))
            value = _run_compiled(shell, cell, part.statements, make_entry, edited)
        else:
            for statement in part.statements:
                value = run_statement(shell, cell, statement)
    return value


def _run_compiled(
    shell: Any,
    cell: Cell,
    statements: list[ast.stmt],
    make_entry: Callable[[Any], Any],
    edited: Callable[[str], tuple[Cell, list[ast.stmt]]],
) -> Any:
    """Run these statements compiled, as one function.

    `edited`: for another text of the cell, returns the cell with that text and the statements that correspond to these.
    """
    import torch

    namespace: Namespace = shell.user_ns
    placeholders = {name: _Missing(name) for name in bound_names(statements) if name not in namespace}
    function = FunctionType(_code(shell, cell, statements, placeholders), namespace, STATEMENTS)
    function.__module__ = namespace.get("__name__", "__main__")
    set_from_text(function, lambda text: _code(shell, *edited(text), placeholders))
    namespace.update(placeholders)
    try:
        return interruptible(make_entry(function), (placeholders, torch.empty(0, device="cpu")))[1]
    finally:
        for name, placeholder in placeholders.items():
            if namespace.get(name) is placeholder:
                del namespace[name]


def _binds(parts: list[Part]) -> list[set[str]]:
    """The names that each compiled part binds."""
    return [set(bound_names(part.statements)) for part in parts if part.compiled]


def _edited(
    shell: Any, cell: Cell, missing: set[str], binds: list[set[str]], number: int, text: str
) -> tuple[Cell, list[ast.stmt]]:
    """The cell with another text, and the statements of the compiled part of this number.

    Raises NotApplicable if that text defines a function or a module, or if its compiled parts bind other names.
    """
    edited = reread(shell, replace(cell, text=text))
    if definitions(edited, shell.user_ns):
        raise NotApplicable(
            "the change defines a function, and then the cell compiles only that: put the statements into a function first"
        )
    parts = divide(edited, shell.user_ns, missing)
    if _binds(parts) != binds:
        raise NotApplicable("the cell would bind other names")
    return edited, [part for part in parts if part.compiled][number].statements


def _code(shell: Any, cell: Cell, statements: list[ast.stmt], missing: Iterable[str]) -> CodeType:
    """The code of a function that holds these statements; `missing`: names that have placeholders."""
    bound = bound_names(statements)
    used = {n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name)}
    local = _IN
    while local in used or local in bound:
        local += "_"
    tree = _as_function(statements, bound, local, _Checks(missing, GlobalReads(shell.user_ns), local), cell)
    module = compile_tree(shell, cell, tree, "exec")
    return map_constants(next(c for c in module.co_consts if isinstance(c, CodeType)), _at_module_level)


def _as_function(statements: list[ast.stmt], bound: list[str], local: str, checks: _Checks, cell: Cell) -> ast.Module:
    first, last = statements[0], statements[-1]
    body = checks.block(statements, set())
    result: ast.expr = ast.Constant(value=None)
    if last is cell.last_expression:
        body.pop()
        result = cell.last_expression.value
    pair = ast.Tuple(elts=[ast.Name(id=local, ctx=ast.Load()), result], ctx=ast.Load())
    body = [
        *([located(ast.Global(names=bound), first)] if bound else []),
        *checks.flags(first),
        *body,
        located(ast.Return(value=pair), last),
    ]
    function: Any = generated(f"def {STATEMENTS}({local}): pass", first)
    function.body = body
    return ast.Module(body=[function], type_ignores=[])


def _at_module_level(constant: Any) -> Any:
    """A constant of the function as it is in a plain cell: a lambda is called `<lambda>`, not `__cell__.<locals>.<lambda>`."""
    if isinstance(constant, str):
        return constant.removeprefix(_QUALNAME_PREFIX)
    if isinstance(constant, CodeType) and hasattr(constant, "co_qualname"):
        qualname: dict[str, Any] = {"co_qualname": constant.co_qualname.removeprefix(_QUALNAME_PREFIX)}
        return constant.replace(**qualname)
    return constant


def _surely_bound(statement: ast.stmt) -> set[str]:
    """Names that a simple statement binds if it raises no error: not those of a `:=` that may be skipped."""
    skipped = [part for node in ast.walk(statement) for part in _may_be_skipped(node)]
    return set(bound_names([statement])) - {n.target.id for s in skipped for n in ast.walk(s) if isinstance(n, ast.NamedExpr)}


def _may_be_skipped(node: ast.AST) -> Sequence[ast.AST]:
    """The parts of an expression that are not evaluated in every case."""
    match node:
        case ast.BoolOp(values=[_, *rest]) | ast.Compare(comparators=[_, *rest]):
            return rest
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return [node]
        case ast.Assert(msg=ast.expr() as message):
            return [message]
    return []


class _Checks:
    """Puts `if y is <placeholder>: del y` before statements that may read a name that is still missing."""

    def __init__(self, missing: Iterable[str], reads: GlobalReads, local: str) -> None:
        self.missing = set(missing)
        self.reads = reads
        self.local = local
        #: names that got a check
        self.checked: set[str] = set()

    def block(self, statements: list[ast.stmt], bound: set[str]) -> list[ast.stmt]:
        """The statements with their checks; names that are certainly no placeholders afterwards are added to `bound`."""
        out: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, ast.Global):
                continue  # all names of the function are global
            names = names_read(statement)
            doubtful = sorted((self.missing - bound) & (names | self.reads.through(names)))
            out.extend(self._check(name, statement) for name in doubtful)
            self.checked.update(doubtful)
            bound.update(doubtful)
            if isinstance(statement, ast.Delete):
                out.extend(self._disable(name, statement) for name in sorted(_deleted(statement) & self.missing))
            if blocks(statement):
                out.append(self._compound(statement, bound))
            else:
                out.append(statement)
                bound.update(_surely_bound(statement))
        return out or [located(ast.Pass(), statements[0])]

    def _compound(self, statement: ast.stmt, bound: set[str]) -> ast.stmt:
        """A copy of a compound statement with the checks in its blocks; the cell's own tree stays unchanged."""
        statement, fields = copy_compound(statement)
        bound_after = []
        for node, field in fields:
            block = getattr(node, field)
            inside = set(bound)
            checked = self.block(block, inside)
            if isinstance(node, ast.ExceptHandler) and node.name in self.missing:
                checked.insert(0, self._disable(str(node.name), block[0]))  # Python deletes the name at the end
            setattr(node, field, checked)
            bound_after.append(inside)
        if isinstance(statement, ast.If) and statement.orelse:
            bound.update(set.intersection(*bound_after))
        return statement

    def flags(self, at: ast.stmt) -> list[ast.stmt]:
        """The function's first statements: a flag for each name that is checked anywhere."""
        return [generated(f"{self._flag(name)} = True", at) for name in sorted(self.checked)]

    def _check(self, name: str, at: ast.stmt) -> ast.stmt:
        flag, placeholder = self._flag(name), f"{self.local}[0][{name!r}]"
        return generated(f"if {flag}:\n {flag} = False\n if {name} is {placeholder}:\n  del {name}", at)

    def _disable(self, name: str, at: ast.stmt) -> ast.stmt:
        """Switch the check off before the user's own deletion of the name: a later check could not read the name."""
        return generated(f"{self._flag(name)} = False", at)

    def _flag(self, name: str) -> str:
        return f"{self.local}_{name}"
