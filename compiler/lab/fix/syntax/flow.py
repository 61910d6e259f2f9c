"""Which names are bound before a statement, and which are read after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst
from libcst import matchers

from dynascope.compiler.lab.fix.syntax.names import Uses, dotted, parameters, uses
from dynascope.compiler.lab.fix.syntax.source_text import STATEMENTS, Source

#: context managers of torch that may be imported by name
_TORCH_MANAGERS = {"no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "autocast", "record_function", "profile"}


def statements(block: cst.CSTNode | None) -> list[cst.CSTNode]:
    """The statements of a block; those of `if x: a; b` are `a` and `b`."""
    if isinstance(block, cst.Else | cst.Finally):
        block = block.body
    return list(block.body) if isinstance(block, cst.IndentedBlock | cst.SimpleStatementSuite | cst.Module) else []


def small(block: Iterable[cst.CSTNode]) -> list[cst.CSTNode]:
    """These statements, with a line such as `a = 1; b = 2` split into its two statements."""
    return [s for one in block for s in (one.body if isinstance(one, cst.SimpleStatementLine) else [one])]


def certainly_bound(block: Sequence[cst.CSTNode]) -> set[str]:
    """Names that are certainly bound when a block has run to its end."""
    bound: set[str] = set()
    for one in small(block):
        bound -= _deleted(one)
        if isinstance(one, cst.If):
            if one.orelse is not None:
                other = [one.orelse] if isinstance(one.orelse, cst.If) else statements(one.orelse)
                body = statements(one.body)
                sides = [certainly_bound(s) for s in (body, other) if not leaves(s)]
                bound |= set.intersection(*sides) if sides else set()
        elif isinstance(one, cst.With):
            entered = uses(*one.items)
            bound |= entered.writes | (certainly_bound(statements(one.body)) if _runs_whole(one) else set())
        elif isinstance(one, cst.Try | cst.TryStar):
            bound |= certainly_bound(statements(one.finalbody)) | (
                certainly_bound(statements(one.body)) if not one.handlers else set()
            )
        elif not isinstance(one, cst.For | cst.While | cst.Match):  # no case of a `match` need fit
            bound |= uses(one).writes - _walrus_names(one)
    return bound


def _walrus_names(statement: cst.CSTNode) -> set[str]:
    """Names that `:=` binds in a statement: perhaps not in every case, as in `a and (b := c)`."""
    return {dotted(one.target) for one in matchers.findall(statement, matchers.NamedExpr())}  # type: ignore[attr-defined]


def _deleted(*nodes: cst.CSTNode) -> set[str]:
    """Names that `del` statements in some code may unbind."""
    targets = [d.target for d in uses(*nodes).stores if isinstance(d, cst.Del)]
    parts = [p.value for t in targets if isinstance(t, cst.Tuple | cst.List) for p in t.elements]
    return {t.value for t in (*targets, *parts) if isinstance(t, cst.Name)}


def _runs_whole(block: cst.With) -> bool:
    """Whether a `with` block raises what its body raises: assumed only of torch's context managers; others may suppress it."""
    called = [item.item.func if isinstance(item.item, cst.Call) else item.item for item in block.items]
    return all(dotted(f).startswith("torch.") or dotted(f).split(".")[-1] in _TORCH_MANAGERS for f in called)


def leaves(block: Sequence[cst.CSTNode]) -> bool:
    """Whether a block ends with return or raise."""
    last = small(block)[-1:]
    return bool(last) and isinstance(last[0], cst.Return | cst.Raise)


def bound_before(source: Source, statement: cst.CSTNode) -> set[str]:
    """Local names that are bound whenever control reaches a statement.

    Outside of functions, these include the names that no statement above binds: an earlier cell may have bound them, and if
    none has, the proof fails.
    """
    scope = source.scope_of(statement)
    if isinstance(scope, cst.FunctionDef):
        bound = parameters(scope)
    else:
        start = source.start(statement)
        above = (s for s in source.all_of(*STATEMENTS) if source.end(s) <= start)  # type: ignore[type-abstract]
        bound = set(source.names) - uses(*above).writes
    deleted: set[str] = set()
    found: set[str] = set()
    at: cst.CSTNode | None = statement
    while at is not None and at is not scope:
        block = list(source.block_of(at))
        if at in block:
            earlier = block[: block.index(at)]
            found |= certainly_bound(earlier) - deleted
            deleted |= _deleted(*earlier)
        inner, at = at, source.parent(at)
        if isinstance(at, cst.For) and inner is at.body:
            found |= targets_of(at) - deleted
    return found | (bound - deleted)


def targets_of(loop: cst.For) -> set[str]:
    """Names that the target of a `for` loop binds."""
    visitor = Uses()
    visitor._bind(loop.target)
    return visitor.writes


def read_first(block: Iterable[cst.CSTNode], bound: set[str] | None = None) -> set[str]:
    """Names that a block may read before it binds them."""
    bound, read = set(bound or ()), set()
    for one in small(block):
        known = bound
        if isinstance(one, cst.For):
            read |= uses(one.iter).reads - bound
            known = bound | targets_of(one)
        elif isinstance(one, cst.If | cst.While):
            read |= uses(one.test).reads - bound
        elif isinstance(one, cst.With):
            read |= uses(*one.items).reads - bound
            known = bound | uses(*one.items).writes
        if isinstance(one, cst.For | cst.If | cst.While | cst.With):
            read |= read_first(statements(one.body), known)
            other = getattr(one, "orelse", None)
            read |= read_first([other] if isinstance(other, cst.If) else statements(other), bound)
        elif isinstance(one, cst.Try):
            handlers = [(h.type, h.name, statements(h.body)) for h in one.handlers]
            read |= read_first(statements(one.body), bound) | read_first(statements(one.finalbody), bound)
            read |= read_first(statements(one.orelse), bound | certainly_bound(statements(one.body)))
            for kind, name, body in handlers:
                read |= (uses(kind).reads - bound) | read_first(body, bound | uses(name).writes)
        else:
            read |= uses(one).reads - bound
        bound |= certainly_bound([one])
    return read


def read_later(source: Source, *run: cst.CSTNode) -> set[str]:
    """Names that may be read after some statements: below them, in the next turn of a loop, or by another function.

    Outside of functions, these are all names that the statements bind: a later cell may read them.
    """
    scope = source.scope_of(run[0])
    start, end = source.start(run[0]), source.end(run[-1])
    if isinstance(scope, cst.Module):
        return uses(*run).writes
    loops = [a for a in source.ancestors(run[0]) if isinstance(a, cst.For | cst.While) and source.scope_of(a) is scope]
    first = source.start(loops[-1]) if loops else end
    read = read_first(run) if loops else set()
    for name in source.inside(scope, cst.Name):
        at = source.start(name)
        if start <= at < end:
            continue
        nested = source.scope_of(name) is not scope or any(isinstance(a, cst.Lambda) for a in source.ancestors(name))
        if at >= first or nested:
            read.add(name.value)
    inside = [n for r in run for n in (*source.inside(r, cst.FunctionDef), *source.inside(r, cst.Lambda))]
    return read | uses(*inside).reads | shared_names(source, scope)


def shared_names(source: Source, scope: cst.CSTNode | None = None) -> set[str]:
    """Names that `global` and `nonlocal` declare in a scope, or in the whole file if none is given."""
    declared = [g.names for g in source.all_of(cst.Global) if scope in (None, source.scope_of(g))]
    declared += [g.names for g in source.all_of(cst.Nonlocal) if scope in (None, source.scope_of(g))]
    return {item.name.value for names in declared for item in names}
