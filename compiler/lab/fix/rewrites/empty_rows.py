"""A branch around nothing but indexing is removed: if no row is selected, indexing changes nothing anyway."""

from __future__ import annotations

import libcst as cst

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.syntax.conditions import number_of
from dynascope.compiler.lab.fix.syntax.effects import is_pure_call
from dynascope.compiler.lab.fix.syntax.flow import read_later, small, statements
from dynascope.compiler.lab.fix.syntax.names import dotted, uses
from dynascope.compiler.lab.fix.syntax.source_text import Source, candidate, dedented, parse
from dynascope.compiler.lab.fix.syntax.torch_names import Torch

_ASSUMPTION = "The statements also run when no row is selected, and then change nothing and raise no exception."
_IN_PLACE = {
    "index_add_", "index_fill_", "index_copy_", "index_put_", "masked_fill_", "masked_scatter_", "scatter_", "scatter_add_",
}  # fmt: skip
_TO_NUMBERS = {"long", "int", "to", "unbind"}
_SAME_ROWS = {"squeeze", "unsqueeze", "flatten", "view", "reshape", "clone", "expand", "t", *_TO_NUMBERS}
#: methods that a condition calls on a mask; rows are counted in other ways
_OF_VALUES = {"any", "sum", "count_nonzero"}
_NEW = {
    "index_add", "index_fill", "index_copy", "index_put", "masked_fill", "masked_scatter", "scatter", "scatter_add",
    "clone",
}  # fmt: skip
_QUOTIENTS = (cst.Divide, cst.FloorDivide, cst.Modulo)
#: functions that raise an exception if there are no elements
_NEED_ROWS = {
    "max", "min", "amax", "amin", "argmax", "argmin", "aminmax", "median", "nanmedian", "mode", "quantile", "nanquantile",
    "kthvalue", "topk",
}  # fmt: skip


def candidates(problem: Problem) -> list[Candidate]:
    """The statements without the branch; the second candidate also captures operators whose output sizes depend on values."""
    source = parse(problem.source)
    if source is None:
        return []
    branch = source.branch_at(problem)
    if branch is None:  # the break is often in what the branch tests: `rows = mask.nonzero()`
        branch = _branch_on(source, problem)
    if branch is None or branch.orelse is not None or not source.stands_alone(branch):
        return []
    selected = _selected(branch.test)
    body = statements(branch.body)
    if selected is None or not body or not isinstance(branch.body, cst.IndentedBlock):
        return []
    is_mask = bool({n.value for n in source.inside(branch.test, cst.Name)} & _OF_VALUES)
    if is_mask and any(_makes_numbers(n, selected) for n in source.inside(branch, cst.Call, cst.BinaryOperation)):
        return []
    torch, later = Torch(source, source.scope_of(branch)), read_later(source, branch)
    of_rows: set[str] = set()
    for one in small(body):
        if uses(one).reads & uses(selected).reads & of_rows:
            return []  # it is another mask, or other rows, by then
        if not _does_nothing(torch, one, selected, later) or not _is_safe(torch, source, one, selected, of_rows):
            return []
        of_rows |= uses(one).writes
    indent = source.indent(branch)
    first_body_line = source.lines(body[0])[0]
    header = source.comments(source.lines(branch)[0], first_body_line - 1)
    start, end = source.whole_lines(branch)
    moved = dedented(source.lines_text(*body), len(source.indent(body[0])) - len(indent))
    if moved is None:
        return []
    changes = [(start, end, "".join(f"{indent}{c}\n" for c in header) + moved)]
    made, title = [], "Index without asking whether there are rows"
    for settings in ({}, {"torch._dynamo.config.capture_dynamic_output_shape_ops": True}):
        made += candidate(problem, source, title, changes, _ASSUMPTION, settings=settings)
    return made


def _branch_on(source: Source, problem: Problem) -> cst.If | None:
    """The branch after an assignment that broke, if it asks whether the assignment selected anything."""
    statement = source.innermost(problem, cst.SimpleStatementLine)
    if statement is None:
        return None
    bound = uses(statement).writes
    for one in source.following(statement):
        if isinstance(one, cst.If):
            return one if (found := _selected(one.test)) is not None and uses(found).reads & bound else None
        if uses(one).writes & bound:
            return None
    return None


def _selected(test: cst.BaseExpression) -> cst.BaseExpression | None:
    """The mask or the rows of `mask.any()`, `rows.numel() > 0`, `len(rows)` and the like; None for other conditions."""
    number = number_of(test)
    if number is not None:
        return _selected(number[0])
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        operator, bound = test.comparisons[0].operator, test.comparisons[0].comparator
        zero = isinstance(bound, cst.Integer) and bound.value == "0" and isinstance(operator, cst.GreaterThan | cst.NotEqual)
        one = isinstance(bound, cst.Integer) and bound.value == "1" and isinstance(operator, cst.GreaterThanEqual)
        left = number_of(test.left)
        return _counted(left[0] if left is not None else test.left) if zero or one else None
    return _counted(test)


def _counted(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """What an expression counts: `rows` for `len(rows)` or `rows.shape[0]`; None if it counts nothing."""
    if isinstance(value, cst.Subscript) and isinstance(value.value, cst.Attribute) and value.value.attr.value == "shape":
        return value.value.value
    if not isinstance(value, cst.Call):
        return None
    if isinstance(value.func, cst.Attribute):
        method = value.func.attr.value
        if method in ("any", "count_nonzero") and dotted(value.func.value) in ("torch", "t", "th") and value.args:
            return value.args[0].value
        return value.func.value if method in ("any", "sum", "numel", "size", "count_nonzero") and len(value.args) <= 1 else None
    if dotted(value.func) in ("len", "any") and len(value.args) == 1:
        return value.args[0].value
    return None


def _makes_numbers(node: cst.CSTNode, mask: cst.BaseExpression) -> bool:
    """Whether an expression makes numbers of a mask: as an index, they select the rows 0 and 1, whatever the mask selects."""
    if isinstance(node, cst.BinaryOperation):
        keeps = isinstance(node.operator, cst.BitAnd)
        return not keeps and (_is_made_of(node.left, mask) or _is_made_of(node.right, mask))
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    return node.func.attr.value in _TO_NUMBERS and _is_made_of(node.func.value, mask)


def _does_nothing(torch: Torch, one: cst.CSTNode, selected: cst.BaseExpression, later: set[str]) -> bool:
    """Whether, if no row is selected, a statement changes nothing that is read later; `_is_safe` checks the values in it."""
    if isinstance(one, cst.Assign) and len(one.targets) == 1:
        target = one.targets[0].target
        if isinstance(target, cst.Subscript):
            return _indexes(target, selected)
        if isinstance(target, cst.Name):
            return target.value not in later or _gives_the_same(torch, target.value, one.value, selected)
    if isinstance(one, cst.AugAssign) and isinstance(one.target, cst.Subscript):
        return _indexes(one.target, selected)
    if isinstance(one, cst.Expr) and isinstance(one.value, cst.Call) and isinstance(one.value.func, cst.Attribute):
        return one.value.func.attr.value in _IN_PLACE and _takes(one.value, selected)
    return False


def _is_safe(torch: Torch, source: Source, one: cst.CSTNode, selected: cst.BaseExpression, of_rows: set[str]) -> bool:
    """Whether a statement's values have no effects, and raise no exception for lack of rows.

    `of_rows`: the names that statements above bind.  An unknown function that is given rows is taken to have no effects, and
    to work without any rows, too.
    """

    def has_rows(node: cst.CSTNode) -> bool:
        inner = source.inside(node, cst.BaseExpression)  # type: ignore[type-abstract]
        return bool(uses(node).reads & of_rows) or any(_is_same(n, selected) for n in (node, *inner))

    for call in source.inside(one, cst.Call):
        changes = isinstance(one, cst.Expr) and one.value is call
        name = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func)
        rows = has_rows(call)
        if not (changes or is_pure_call(torch, call, unknown=rows)) or (rows and (name in _NEED_ROWS or number_of(call))):
            return False
    for item in source.inside(one, cst.Subscript):
        first, of_shape = item.slice[0].slice, isinstance(item.value, cst.Attribute) and item.value.attr.value == "shape"
        if isinstance(first, cst.Index) and not of_shape and has_rows(item.value) and not has_rows(first.value):
            return False
    quotients = [n for n in source.inside(one, cst.BinaryOperation) if isinstance(n.operator, _QUOTIENTS)]
    return not any(_counted(n.right) is not None and has_rows(n.right) and not has_rows(n.left) for n in quotients)


def _indexes(target: cst.Subscript, selected: cst.BaseExpression) -> bool:
    """Whether an index of this item is made of the mask or the rows."""
    return any(isinstance(e.slice, cst.Index) and _is_made_of(e.slice.value, selected) for e in target.slice)


def _takes(call: cst.Call, selected: cst.BaseExpression) -> bool:
    return any(_is_made_of(a.value, selected) for a in call.args)


def _is_same(one: cst.CSTNode, other: cst.BaseExpression) -> bool:
    """Whether two expressions are the same but for parentheses around them."""
    if not isinstance(one, cst.BaseExpression):
        return False
    return one.with_changes(lpar=(), rpar=()).deep_equals(other.with_changes(lpar=(), rpar=()))


def _is_made_of(index: cst.BaseExpression, selected: cst.BaseExpression) -> bool:
    """Whether an index selects nothing if the mask or the rows select nothing: `rows[:, 0]`, `rows + 1`, `mask & other`."""
    if _is_same(index, selected):
        return True
    if isinstance(index, cst.Subscript):
        return _is_made_of(index.value, selected)
    if isinstance(index, cst.BinaryOperation):
        keeps = isinstance(index.operator, cst.Add | cst.Subtract | cst.Multiply | cst.BitAnd | cst.FloorDivide | cst.Modulo)
        return keeps and (_is_made_of(index.left, selected) or _is_made_of(index.right, selected))
    if isinstance(index, cst.Call) and isinstance(index.func, cst.Attribute):
        return index.func.attr.value in _SAME_ROWS and _is_made_of(index.func.value, selected)
    return False


def _gives_the_same(torch: Torch, name: str, value: cst.BaseExpression, selected: cst.BaseExpression) -> bool:
    """Whether a value equals the old one if nothing is selected: `x.masked_fill(mask, 0)`, `torch.where(mask, 0, x)`."""
    if not isinstance(value, cst.Call):
        return False
    full = torch.is_torch(value.func)
    if full is not None:
        last, arguments = full.split(".")[-1], [a.value for a in value.args]
        if last == "where" and len(arguments) == 3:
            return _is_made_of(arguments[0], selected) and dotted(arguments[2]) == name
        same = last in _NEW and bool(arguments) and dotted(arguments[0]) == name
        return same and (last == "clone" or _takes(value, selected))
    if isinstance(value.func, cst.Attribute) and dotted(value.func.value) == name:
        return value.func.attr.value == "clone" or (value.func.attr.value in _NEW and _takes(value, selected))
    return False
