"""Which indices a condition guards: `x[i] if i < len(x) else y` must not compute `x[i]` always."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import libcst as cst
from libcst import matchers

from dynascope.compiler.lab.fix.syntax.names import dotted, uses
from dynascope.compiler.lab.fix.syntax.source_text import Source
from dynascope.compiler.lab.fix.syntax.torch_names import Torch

#: methods and functions that take indices, or class labels that are used as indices
_PICKING = {
    "cross_entropy", "embedding", "embedding_bag", "gather", "index_add", "index_copy", "index_fill", "index_put",
    "index_select", "multi_margin_loss", "narrow", "nll_loss", "one_hot", "scatter", "scatter_add", "scatter_reduce", "select",
    "take", "take_along_dim",
}  # fmt: skip
#: those of these functions whose first argument is the index
_INDEX_FIRST = {"embedding", "embedding_bag", "one_hot"}
#: subscripts and calls that pick by index, each with its indices
_Indices: TypeAlias = list[tuple[cst.CSTNode, Sequence[cst.CSTNode]]]
#: assignments: the names that each binds, and its value
_Assigns: TypeAlias = list[tuple[set[str], cst.BaseExpression]]


def guards_an_index(source: Source, choice: cst.If | cst.IfExp, sides: list[cst.CSTNode]) -> bool:
    """Whether a side of a branch has an index that a condition of the branch asks about."""
    torch = Torch(source, source.scope_of(choice))
    tests = [n.test for n in (choice, *source.inside(choice, cst.If), *source.inside(choice, cst.IfExp))]
    found = _indices(source, torch, *sides)
    known = [one for one in found if any(source.is_inside(one[0], test) for test in tests)]
    indices = [one for one in found if one not in known]
    assigns = [(uses(one).writes, one.value) for one in source.inside(source.scope_of(choice), cst.Assign)]
    return _is_asked(source, torch, tests, known, indices, _earlier(source, choice, assigns)) or _is_compared(
        torch, tests, known, indices, assigns
    )


def _is_asked(
    source: Source, torch: Torch, tests: list[cst.BaseExpression], known: _Indices, indices: _Indices, earlier: _Assigns
) -> bool:
    """Whether conditions depend on an index: `left = len(x) - i` above, `if left > 0` and `x[i]`.

    Not `y = x[i]` above, `if y > 0` and `x[i]`: that has used the index already.
    """
    origins = _origins(_names(*tests), earlier)
    inner = [(n, written) for written, value in origins for n, _ in _indices(source, torch, value)]
    used = {source.text_of(node) for node, written in inner if not written & uses(node).reads}
    asked = _names(*tests, *(value for _, value in origins)) - _names(*(p for _, parts in known for p in parts))
    return any(source.text_of(node) not in used and _names(*parts) & asked - torch.imports.keys() for node, parts in indices)


def _is_compared(torch: Torch, tests: list[cst.BaseExpression], known: _Indices, indices: _Indices, assigns: _Assigns) -> bool:
    """Whether what an index is made from is compared with something: `n = i + 1` and `ok = n < len(x)`, `if ok` and `x[n]`.

    Only comparisons count: nearly all values depend on an input, and so do indices.
    """
    compared = [(written, value) for written, value in assigns if matchers.findall(value, matchers.Comparison())]
    asked = uses(*tests, *(value for _, value in _origins(uses(*tests).reads, compared))).reads
    names = uses(*(part for _, parts in indices for part in parts)).reads
    names |= uses(*(value for _, value in _origins(names, assigns))).reads
    return bool(names & asked - uses(*(part for _, parts in known for part in parts)).reads - torch.imports.keys())


def _indices(source: Source, torch: Torch, *nodes: cst.CSTNode) -> _Indices:
    """The subscripts, and the calls that pick by index, in some code, each with its indices."""
    found: _Indices = []
    for one in (one for node in nodes for one in (node, *source.inside(node, cst.Subscript, cst.Call))):
        if isinstance(one, cst.Subscript):
            found.append((one, [e.slice for e in one.slice if isinstance(e.slice, cst.Index)]))
        elif isinstance(one, cst.Call):
            found.append((one, _picking_arguments(torch, one)))
    return found


def _names(*nodes: cst.CSTNode) -> set[str]:
    """Names that code reads; `self.x` for an attribute of `self`."""
    own = matchers.Attribute(value=matchers.Name("self"))
    return uses(*nodes).reads - {"self"} | {dotted(a) for n in nodes for a in matchers.findall(n, own)}  # type: ignore[arg-type]


def _earlier(source: Source, choice: cst.CSTNode, assigns: _Assigns) -> _Assigns:
    """The assignments that may run before a branch: in a loop, also those below it."""
    scope = source.scope_of(choice)
    looped = any(isinstance(a, cst.For | cst.While) and source.scope_of(a) is scope for a in source.ancestors(choice))
    outside = [one for one in assigns if not source.is_inside(one[1], choice)]
    return outside if looped else [one for one in outside if source.start(one[1]) < source.start(choice)]


def _origins(names: set[str], assigns: _Assigns) -> _Assigns:
    """The assignments to these names, and to the names in their values."""
    found, origins = set(names), []
    for written, value in reversed(assigns):
        if written & found:
            found |= uses(value).reads
            origins.append((written, value))
    return origins


def _picking_arguments(torch: Torch, call: cst.Call) -> Sequence[cst.Arg]:
    """The arguments of a call that may be indices or class labels: for `_PICKING`, but not `x` in `torch.gather(x, 0, i)`."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _PICKING:
        return ()
    if torch.is_torch(call.func) is None or call.func.attr.value in _INDEX_FIRST:
        return call.args
    return [a for n, a in enumerate(call.args) if (a.keyword.value != "input" if a.keyword is not None else n > 0)]
