"""Rule 3: the statements of a cell, compiled as functions.

`def __cell__(_in): global y, z; ...; return _in, <the last expression>`: every name that the cell binds is
global, so callees, late lambdas and an exception half-way find what they find in a plain cell.  Two things
make that work under Dynamo:

* It gives up on a frame that reads a global which did not exist when the frame began.  So names not bound yet
  are bound to a `_Missing` beforehand.  The cell must never see it: before a statement that reads such a name, where
  it is not certain that it has been assigned, stands `if _in_y: _in_y = False; if y is <stand-in>: del y`.  That is
  always right (it puts the truth back, once) and costs nothing in a trace.  What is still missing afterwards is deleted.
  Dynamo cannot trace the deletion itself; where it is certain to come, the statements are cut in two before.
* It passes over frames that hold no tensor, and a resume function knows the cell's data only as globals.  `_in`
  holds an empty tensor, and lives to the end.

What torch.compile itself changes stays changed: names are bound when a graph has run, so an error that only the
running graph finds (a bad index in the data, an attribute that a computed tensor lacks) loses those bound before it
in the same graph.  Errors that show while tracing lose nothing: the statements then run eagerly.

Statements that mean something else inside a function run between these functions, as they stand (`outside`).
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from dynascope.cell.interrupts import interruptible
from dynascope.cell.source import Cell, Namespace, blocks, compile_tree, own_nodes, run_code
from dynascope.compiler.source.code import STATEMENTS
from dynascope.selection.definitions import dotted, names_bound_by
from dynascope.selection.global_reads import Callees

_IN = "_in"
#: read the frame they are called from, or a namespace that is not the function's
_FRAME_READERS = frozenset(
    ("locals", "globals", "vars", "dir", "eval", "exec", "super", "get_ipython", "breakpoint", "exit", "quit")
)
#: in a trace `torch.compile` gives back what it got, `set_stance` is refused, and what `re.compile` makes cannot be bound
_NOT_IN_A_TRACE = ("compile", "set_stance")
_PREFIX = f"{STATEMENTS}.<locals>."


_OPERATIONS = tuple(
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift radd rsub rmul rtruediv rfloordiv rmod rpow "  # noqa: SIM905
    "rmatmul rand ror rxor rlshift rrshift neg pos invert abs lt le gt ge len iter next contains getitem setitem delitem call "
    "bool int float index str repr enter exit getattr setattr format".split()
)


class _Missing:
    """Stands for a name that is not bound yet; whoever uses it gets the NameError of the plain cell."""

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def _raise(self, *args: Any, **kwargs: Any) -> Any:
        name = object.__getattribute__(self, "_name")
        raise NameError(f"name {name!r} is not defined", name=name)

    for _method in _OPERATIONS:
        locals()[f"__{_method}__"] = _raise
    del _method


@dataclass
class Part:
    """Consecutive statements: compiled together, or outside, as they stand."""

    statements: list[ast.stmt]
    #: why they run outside; None where they are compiled
    outside: str | None


def parts(cell: Cell, namespace: Namespace) -> list[Part]:
    """The cell's statements in runs that are compiled together and runs that are not."""
    found: list[Part] = []
    missing = set(_bound(cell.statements)) - set(namespace)
    checks, real = _Checks(missing, Callees(namespace), _IN), set[str]()
    read_first: set[str] = set()  # in this part: read where it may be missing
    for statement in cell.statements:
        reason = why_outside(statement)
        binds = set(_bound([statement])) - real
        checks.checked.clear()
        checks.block([statement], real)
        if found and (found[-1].outside is None) == (reason is None) and not binds & read_first:
            found[-1].statements.append(statement)
            read_first |= checks.checked
        else:
            found.append(Part([statement], reason))
            read_first = set(checks.checked)
        real -= _deleted(statement)
    return found


def _deleted(statement: ast.stmt) -> set[str]:
    """Names that the statement may delete."""
    names = {n.id for n in own_nodes(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
    return names | {n.name for n in own_nodes(statement) if isinstance(n, ast.ExceptHandler) and n.name}


def why_outside(statement: ast.stmt) -> str | None:
    """Why this statement cannot be part of a function and mean the same; None where it can."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str):
        return "text"  # sets __doc__
    if isinstance(statement, ast.Delete) and _deleted(statement):
        return "del"  # of a global, which Dynamo does not trace: it would pass over the whole function
    for node in own_nodes(statement):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return "import"
        if isinstance(node, ast.ClassDef):
            return f"class {node.name}"
        if isinstance(node, ast.AnnAssign):
            return "annotation"
        if isinstance(node, ast.Name) and node.id in _FRAME_READERS:
            return f"{node.id}()"
        called = dotted(node.func) if isinstance(node, ast.Call) else None
        if called is not None and called.rpartition(".")[2] in _NOT_IN_A_TRACE:
            return f"{called}()"
        if type(node).__name__ == "TypeAlias":
            return "type alias"
    return None


def notes(cell: Cell) -> list[str]:
    """What the report says of statements that were not compiled; imports and definitions go without saying."""
    reasons = [(statement.lineno, why_outside(statement)) for statement in cell.statements]
    return [
        f"line {line} ran as it stands, outside the compiled statements ({reason})."
        for line, reason in reasons
        if reason not in (None, "import", "text", "del")
    ]


def run(shell: Any, cell: Cell, enter: Callable[[Any], Any]) -> Any:
    """Run the cell, its statements compiled; returns the value of the last expression."""
    value = None
    for part in parts(cell, shell.user_ns):
        last = part.statements[-1]
        result = last if last is cell.last_expression else None
        if part.outside is None:
            value = _run_compiled(shell, cell, part.statements, enter)
            continue
        for statement in part.statements:
            if statement is result:
                code = compile_tree(shell, cell, ast.Expression(body=result.value), "eval")
                with cell.regions.around(statement) if cell.regions else contextlib.nullcontext():
                    value = run_code(shell, code)
            else:
                run_code(shell, compile_tree(shell, cell, ast.Module(body=[statement], type_ignores=[]), "exec"))
    return value


def _run_compiled(shell: Any, cell: Cell, statements: list[ast.stmt], enter: Callable[[Any], Any]) -> Any:
    import torch

    namespace: Namespace = shell.user_ns
    bound = _bound(statements)
    # `_in` is the one local name; the cell may use the same one
    used = {n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name)}
    local = _IN
    while local in used or local in bound:
        local += "_"
    missing = [name for name in bound if name not in namespace]
    tree = _function(statements, bound, local, _Checks(missing, Callees(namespace), local), cell)
    module = compile_tree(shell, cell, tree, "exec")
    code = _as_module_level(next(c for c in module.co_consts if isinstance(c, CodeType)))
    function = FunctionType(code, namespace, STATEMENTS)
    function.__module__ = namespace.get("__name__", "__main__")
    stand_ins = {name: _Missing(name) for name in missing}
    with _pre_bound(namespace, stand_ins):
        data = (stand_ins, torch.empty(0, device="cpu"))
        return interruptible(enter(function), data)[1]


@contextlib.contextmanager
def _pre_bound(namespace: Namespace, stand_ins: dict[str, _Missing]) -> Iterator[None]:
    namespace.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if namespace.get(name) is stand_in:
                del namespace[name]


def _bound(statements: list[ast.stmt]) -> list[str]:
    """Names that the statements bind at their own level, in order; a comprehension's own variables are not among them."""
    names: dict[str, None] = {}
    for statement in statements:
        for node in _own_scope(statement):
            names.update(dict.fromkeys(names_bound_by(node)))
    return list(names)


def _own_scope(node: ast.AST) -> Iterator[ast.AST]:
    """`own_nodes`, without the targets of comprehensions (a walrus inside one binds outside, so it stays)."""
    if isinstance(node, ast.comprehension):
        scopes: list[ast.AST] = [node.iter, *node.ifs]
        for child in scopes:
            yield from _own_scope(child)
        return
    yield node
    if isinstance(node, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    for child in ast.iter_child_nodes(node):
        yield from _own_scope(child)


def _function(statements: list[ast.stmt], bound: list[str], local: str, checks: _Checks, cell: Cell) -> ast.Module:
    first, last = statements[0], statements[-1]
    body = checks.block(statements, set())
    result: ast.expr = ast.Constant(value=None)
    if last is cell.last_expression:
        body.pop()
        result = cell.last_expression.value
    packed = ast.Tuple(elts=[ast.Name(id=local, ctx=ast.Load()), result], ctx=ast.Load())
    body.append(_at(ast.Return(value=packed), last))
    body[:0] = [_strip(flag, first) for flag in checks.flags()]
    if bound:
        body.insert(0, _at(ast.Global(names=bound), first))
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg(arg=local)], kwonlyargs=[], kw_defaults=[], defaults=[])
    made = ast.FunctionDef(name=STATEMENTS, args=arguments, body=body, decorator_list=[])
    if "type_params" in made._fields:
        made.type_params = []  # type: ignore[attr-defined,unused-ignore]
    return ast.Module(body=[_at(made, first)], type_ignores=[])


def _at(node: Any, place: ast.AST) -> Any:
    """`node` and what has no place of its own in it, at the start of `place`: no line of it is the user's."""
    line, column = getattr(place, "lineno", 1), getattr(place, "col_offset", 0)
    for inner in ast.walk(node):
        if "lineno" in inner._attributes and not hasattr(inner, "lineno"):
            inner.lineno = inner.end_lineno = line  # type: ignore[attr-defined]
            inner.col_offset = inner.end_col_offset = column  # type: ignore[attr-defined]
    return node


class _Checks:
    """Puts `if y is <stand-in>: del y` where the statements may read a name that is still missing."""

    def __init__(self, missing: Iterable[str], callees: Callees, local: str) -> None:
        self.missing = set(missing)
        self.callees = callees
        self.local = local
        #: names that got a check
        self.checked: set[str] = set()

    def block(self, statements: list[ast.stmt], real: set[str]) -> list[ast.stmt]:
        """The block with its checks; `real`, the names that are certainly no stand-ins, grows."""
        out: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, ast.Global):
                continue  # all of them are, already
            doubtful = sorted((self.missing - real) & self._reads(statement))
            out.extend(self._check(name, statement) for name in doubtful)
            self.checked.update(doubtful)
            real.update(doubtful)
            if isinstance(statement, ast.Delete):
                out.extend(self._no_check(name, statement) for name in sorted(_deleted(statement) & self.missing))
            out.append(self._inside(statement, real))
            if not blocks(statement):
                real.update(name for node in _own_scope(statement) for name in names_bound_by(node))
        return out or [_at(ast.Pass(), statements[0])]

    def _inside(self, statement: ast.stmt, real: set[str]) -> ast.stmt:
        """A compound statement with the checks in its blocks; the tree of the cell itself is left alone."""
        if not blocks(statement):
            return statement
        copy = type(statement)(**dict(ast.iter_fields(statement)))
        ast.copy_location(copy, statement)
        ends = []
        for field in ("body", "orelse", "finalbody"):
            if getattr(copy, field, None):
                within = set(real)
                setattr(copy, field, self.block(getattr(copy, field), within))
                ends.append(within)
        for field in ("handlers", "cases"):
            if getattr(copy, field, None):
                parts = []
                for part in getattr(copy, field):
                    new = type(part)(**dict(ast.iter_fields(part)))
                    ast.copy_location(new, part)
                    new.body = self.block(part.body, set(real))
                    if isinstance(part, ast.ExceptHandler) and part.name in self.missing:
                        new.body.insert(0, self._no_check(str(part.name), part.body[0]))  # Python deletes it at the end
                    parts.append(new)
                setattr(copy, field, parts)
        if isinstance(statement, ast.If) and statement.orelse:
            real.update(set.intersection(*ends))
        return copy

    def _reads(self, statement: ast.stmt) -> set[str]:
        """Names that a statement may read before one of its own blocks gets to check: its header, for a compound one."""
        names = _loaded(statement, {id(s) for block in blocks(statement) for s in block})
        return names | self.callees.read(names)

    def flags(self) -> list[ast.stmt]:
        """What stands at the beginning: a flag for each name that is checked anywhere."""
        return [ast.parse(f"{self._flag(name)} = True").body[0] for name in sorted(self.checked)]

    def _flag(self, name: str) -> str:
        return f"{self.local}_{name}"

    def _check(self, name: str, place: ast.stmt) -> ast.stmt:
        flag, stand_in = self._flag(name), f"{self.local}[0][{name!r}]"
        text = f"if {flag}:\n {flag} = False\n if {name} is {stand_in}:\n  del {name}"
        return _strip(ast.parse(text).body[0], place)

    def _no_check(self, name: str, place: ast.stmt) -> ast.stmt:
        """The user deletes the name: a later check would not find it."""
        return _strip(ast.parse(f"{self._flag(name)} = False").body[0], place)


def _loaded(node: ast.AST, without: set[int]) -> set[str]:
    """Global names that this code reads or deletes, now or (a lambda) later."""
    names: set[str] = set()
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
        names.add(node.id)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        names.add(node.target.id)
    for child in ast.iter_child_nodes(node):
        if id(child) not in without:
            names |= _loaded(child, without)
    if isinstance(node, ast.Lambda):
        own = node.args
        names -= {a.arg for a in (*own.posonlyargs, *own.args, *own.kwonlyargs, own.vararg, own.kwarg) if a is not None}
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        first = _loaded(node.generators[0].iter, without)
        own_names = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        names = (names - own_names) | first
    return names


def _strip(node: ast.stmt, place: ast.AST) -> ast.stmt:
    for inner in ast.walk(node):
        if "lineno" in inner._attributes:
            del inner.lineno, inner.col_offset, inner.end_lineno, inner.end_col_offset  # type: ignore[attr-defined]
    checked: ast.stmt = _at(node, place)
    return checked


def _as_module_level(code: CodeType, outermost: bool = True) -> CodeType:
    """Lambdas made by the cell have the names that they have in a plain cell, without `__cell__.<locals>.`."""
    constants = tuple(
        _as_module_level(c, False)
        if isinstance(c, CodeType)
        else c[len(_PREFIX) :]
        if isinstance(c, str) and c.startswith(_PREFIX)
        else c
        for c in code.co_consts
    )
    changes: dict[str, Any] = {"co_consts": constants}
    if not outermost and hasattr(code, "co_qualname"):
        changes["co_qualname"] = code.co_qualname.removeprefix(_PREFIX)
    return code.replace(**changes)
