"""What code reads, binds and does, and which names are bound before a statement or read after it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from dynascope.compiler.lab.fix.rewrites.source import FUNCTIONS, Source, Torch, dotted

#: builtins that change nothing
_PURE_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "dict", "float", "getattr", "hasattr", "int", "isinstance", "len", "list", "max", "min",
    "pow", "range", "round", "str", "sum", "tuple", "zip", "enumerate",
})  # fmt: skip
#: methods that are taken to change something, whatever their object is
_CHANGING_METHODS = frozenset({
    "append", "extend", "update", "pop", "popitem", "insert", "remove", "discard", "clear", "setdefault", "write",
    "writelines", "flush", "put", "send", "close", "backward", "step", "zero_grad", "register_hook",
})  # fmt: skip
_RANDOM = ("rand", "dropout", "bernoulli", "multinomial", "normal", "poisson", "seed", "exponential", "uniform", "rrelu")
_CHANGING_TORCH = ("set_", "save", "manual_", "seed", "compile", "_assert", "_check", "load")
_NESTED = (*FUNCTIONS, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_STORES = (ast.Delete, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.ClassDef, ast.NamedExpr)
_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)


class Uses(ast.NodeVisitor):
    """Names and effects of some code.

    Nested functions and classes are included, except for the names that they bind and their jumps.
    """

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        #: stores to attributes and items, deletions, `global` and `nonlocal`, imports, class definitions, `:=`
        self.stores: list[ast.AST] = []
        #: return, raise, break, continue, yield, await
        self.jumps: list[ast.AST] = []
        self.calls: list[ast.Call] = []
        self._depth = 0

    def _bind(self, name: str | None) -> None:
        if name is not None and not self._depth:
            self.writes.add(name)

    def visit(self, node: ast.AST) -> None:
        is_stored = isinstance(getattr(node, "ctx", None), ast.Store)
        if isinstance(node, ast.Name) and is_stored:
            self._bind(node.id)
        elif isinstance(node, ast.Name):
            self.reads.add(node.id)
        elif isinstance(node, ast.Call):
            self.calls.append(node)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.reads.add(node.target.id)
        elif isinstance(node, ast.alias):
            self._bind(node.asname or node.name.partition(".")[0])
        elif isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler, *FUNCTIONS, ast.ClassDef)):
            self._bind(node.name)
        elif isinstance(node, ast.MatchMapping):
            self._bind(node.rest)
        if isinstance(node, _STORES) or (is_stored and isinstance(node, ast.Attribute | ast.Subscript)):
            self.stores.append(node)
        if isinstance(node, _JUMPS) and not self._depth:
            self.jumps.append(node)
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return
        self._depth += isinstance(node, _NESTED)
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                    self.visit(child)
        self._depth -= isinstance(node, _NESTED)


def uses(*nodes: ast.AST | None) -> Uses:
    """What some code reads, binds and does."""
    result = Uses()
    for node in nodes:
        if node is not None:
            result.visit(node)
    return result


def names_in_order(source: Source, *nodes: ast.AST) -> list[str]:
    """Each name in some code once, in the order of the text."""
    return list(dict.fromkeys(name.id for one in nodes for name in source.inside(one, ast.Name)))


# what code does besides computing values


def computes(node: ast.AST) -> bool:
    """Whether code contains a call, an operator or a subscript."""
    return any(isinstance(n, ast.Call | ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript) for n in ast.walk(node))


def is_pure(torch: Torch, *nodes: ast.AST | None, unknown: bool = False) -> bool:
    """Whether code only computes values and binds names (also by `x += 1`), without random numbers.

    `unknown`: as for `is_pure_call`.
    """
    found = uses(*nodes)
    return not found.stores and not found.jumps and all(is_pure_call(torch, c, unknown) for c in found.calls)


def is_pure_call(torch: Torch, call: ast.Call, unknown: bool = False) -> bool:
    """Whether a call only computes a value; methods are judged by their names.

    `unknown`: whether to assume the same of unknown functions, and of methods of `self`, `cls` and imported modules.
    """
    if any(k.arg in ("out", "inplace") for k in call.keywords):
        return False
    full, base = torch.full(call.func), call.func
    while isinstance(base, ast.Attribute | ast.Subscript):
        base = base.value
    root, last = dotted(base), call.func.attr if isinstance(call.func, ast.Attribute) else full.rpartition(".")[2]
    if any(word in last for word in _RANDOM) or (last.endswith("_") and not last.endswith("__")):
        return False
    if full.startswith("torch."):
        others = ("torch._dynamo", "torch.compiler", "torch.distributed", "torch.utils")
        return not last.startswith(_CHANGING_TORCH) and not full.startswith(others)
    if isinstance(call.func, ast.Attribute):
        if last in _CHANGING_METHODS or root in ("logging", "logger", "warnings", "sys", "os", "time", "random"):
            return False
        return unknown or (root not in ("self", "cls", "super") and root not in torch.imports)
    return last in _PURE_BUILTINS or (unknown and last not in ("print", "setattr", "exec", "eval", "next"))


# which names are bound before, and read after


def leaves(block: list[ast.stmt]) -> bool:
    """Whether a block ends with return or raise."""
    return bool(block) and isinstance(block[-1], ast.Return | ast.Raise)


def certainly_bound(block: Iterable[ast.stmt]) -> set[str]:
    """Names that are certainly bound when a block has run to its end; loops, `try` and `match` bind none for certain."""
    bound: set[str] = set()
    for one in block:
        bound -= {n.id for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
        if isinstance(one, ast.If):
            sides = [certainly_bound(side) for side in (one.body, one.orelse) if not leaves(side)]
            bound |= set.intersection(*sides) if sides else set()
        elif isinstance(one, ast.With):
            bound |= uses(*one.items).writes
            # torch's context managers suppress no exception; others may
            called = [getattr(item.context_expr, "func", item.context_expr) for item in one.items]
            bound |= certainly_bound(one.body) if all(dotted(f).startswith("torch.") for f in called) else set()
        elif not isinstance(one, ast.For | ast.AsyncFor | ast.While | ast.Match | ast.Try):
            # `:=` perhaps does not bind in every case, as in `a and (b := c)`
            bound |= uses(one).writes - {dotted(n.target) for n in ast.walk(one) if isinstance(n, ast.NamedExpr)}
    return bound


def bound_before(source: Source, statement: ast.stmt) -> set[str]:
    """Local names that are bound whenever control reaches a statement.

    Outside of functions, these include the names that no statement above binds: an earlier cell may have bound them, and if
    none has, the fixed program fails in the first trial.
    """
    scope, at = source.scope_of(statement), statement
    if isinstance(scope, ast.Module):
        bound = set(source.names) - uses(*(s for s in scope.body if s.lineno < statement.lineno)).writes
    else:
        bound = {a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg)}
    around: list[ast.AST] = []
    for above in (statement, *source.ancestors(statement)):
        if above is scope:
            break
        around.append(above)
    for at in reversed(around):  # type: ignore[assignment]
        block = source.block_of(at)
        earlier = block[: block.index(at)] if block else []
        bound -= {n.id for s in earlier for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
        bound |= certainly_bound(earlier)
        if isinstance(at, ast.For) and at is not statement:
            bound |= uses(at.target).writes
    return bound


def read_first(block: Iterable[ast.stmt], bound: set[str]) -> set[str]:
    """Names that a block may read before it binds them."""
    read: set[str] = set()
    for one in block:
        if isinstance(one, ast.If):
            read |= (uses(one.test).reads - bound) | read_first(one.body, set(bound)) | read_first(one.orelse, set(bound))
        else:
            read |= uses(one).reads - bound
        bound |= certainly_bound([one])
    return read


def read_later(source: Source, statement: ast.stmt) -> set[str]:
    """Names that may be read after a statement: below it, in the next turn of a loop, or by another function.

    Outside of functions, these are all names that the statement binds: a later cell may read them.
    """
    scope = source.scope_of(statement)
    if isinstance(scope, ast.Module):
        return uses(statement).writes
    loops = [a for a in source.ancestors(statement) if isinstance(a, ast.For | ast.While) and source.scope_of(a) is scope]
    first = source.start(loops[-1]) if loops else source.end(statement)
    read = read_first([statement], set()) if loops else set()
    inside = set(ast.walk(statement))
    for node in ast.walk(scope):
        if isinstance(node, ast.Global | ast.Nonlocal):
            read |= set(node.names)
        nested = isinstance(node, (*FUNCTIONS, ast.Lambda)) and node is not scope
        if nested or (isinstance(node, ast.Name | ast.AugAssign) and node not in inside and source.end(node) > first):
            read |= uses(node).reads
    return read
