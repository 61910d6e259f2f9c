"""A branch that only guards: a check that raises becomes an assertion in the graph, indexing runs without asking for rows.

What no values decide is asked first.
"""

from __future__ import annotations

import ast

from dynascope.compiler.lab.fix.candidate import Candidate, Condition, Problem
from dynascope.compiler.lab.fix.rewrites.reading import (
    apart,
    as_tensor,
    conditions_of,
    is_pure,
    is_pure_call,
    is_python,
    negated,
    number_of,
    precision_of,
    read_later,
    uses,
)
from dynascope.compiler.lab.fix.rewrites.source import Source, Torch, candidate, dotted, moved, parse

_VALUES_LOST = ", with the message's text but not its values"
_ONLY_IF = "The values are asked for only if the rest of the condition holds"
_GPU = "on a GPU the error is reported at a later synchronization"


@apart
def raising(problem: Problem) -> list[Candidate]:
    """`if bad: raise Error(...)` and `assert good, f"..."` as `torch._assert_async`."""
    source = parse(problem.source)
    if source is None or problem.in_try:
        return []
    asserted = source.innermost(problem, ast.Assert)
    checked: list[tuple[ast.expr, ast.expr | None]] = []  # conditions that are good or, for `raise`, bad, and the messages
    statement = asserted or source.branch_at(problem, ast.If)
    if asserted is not None:
        checked.append((asserted.test, asserted.msg))
    elif statement is not None and source.stands_alone(statement):
        at = [statement]
        while at:
            branch = at[0]
            raised = branch.body[0] if isinstance(branch, ast.If) and len(branch.body) == 1 else None
            if not isinstance(raised, ast.Raise) or raised.exc is None or not isinstance(branch, ast.If) or len(at) > 1:
                return []
            given = raised.exc.args if isinstance(raised.exc, ast.Call) else []
            # more arguments than the message are lost, too
            checked.append((branch.test, ast.Tuple(given, ast.Load()) if len(given) > 1 else next(iter(given), None)))
            at = branch.orelse  # type: ignore[assignment]
    if statement is None or not checked:
        return []
    torch, lines, shortened, tests = Torch(source, source.scope_of(statement)), list[str](), "", list[Condition]()
    for test, message in checked:
        good = (as_tensor if asserted is not None else negated)(source, torch, test)
        if good is None or is_python(test) or not is_pure(torch, test):
            return []
        text = message.elts[0] if isinstance(message, ast.Tuple) and not hasattr(message, "lineno") else message
        lines.append(f"{torch('_assert_async')}({good}, {_message(source, text)})")
        is_constant = message is None or (isinstance(message, ast.Constant) and isinstance(message.value, str))
        shortened, tests = shortened if is_constant else _VALUES_LOST, [*tests, *conditions_of(source, torch, test)]
    indent = source.indent(statement)
    if asserted is not None:
        changes = [(source.start(asserted), source.end(asserted), lines[0])]
    else:
        lines = [*source.comments(statement.lineno, statement.end_lineno or 0), *lines]
        changes = [(*source.whole_lines(statement), "".join(f"{indent}{line}\n" for line in lines))]
    assumption = f"It raises from inside the graph{shortened}; {_GPU}.{precision_of(source, *(test for test, _ in checked))}"
    return candidate(problem, source, "Assert inside the graph", [*changes, *torch.changes()], assumption, tuple(tests))


def _message(source: Source, text: ast.expr | None) -> str:
    """The message as a constant, with the source text of f-string fields and other code: no values are known inside a graph."""
    if isinstance(text, ast.Constant) and isinstance(text.value, str):
        return source.text_of(text)
    if isinstance(text, ast.JoinedStr):
        fields = [(getattr(part, "value", part), isinstance(part, ast.Constant)) for part in text.values]
        return repr("".join(str(value) if is_text else f"{{{ast.unparse(value)}}}" for value, is_text in fields))
    return repr(source.text_of(text)) if text is not None else '"check failed"'


_PLAIN = (
    ast.Name, ast.Attribute, ast.Constant, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.unaryop, ast.boolop, ast.cmpop, ast.Load,
)  # fmt: skip


def known_first(problem: Problem) -> list[Candidate]:
    """`if bad.any(): if verbose: ...` and `if bad.any() and verbose: ...` as `if verbose and bad.any(): ...`."""
    source = parse(problem.source)
    branch = None if source is None else source.branch_at(problem, ast.If)
    if source is None or branch is None or branch.orelse or not source.stands_alone(branch):
        return []
    inner = branch.body[0] if len(branch.body) == 1 and isinstance(branch.body[0], ast.If) else None
    inner = None if inner is None or inner.orelse or inner.lineno == branch.lineno else inner
    body = branch.body if inner is None else inner.body
    operands = [*_operands(branch.test), *(_operands(inner.test) if inner is not None else ())]
    plain = [o for o in operands if all(isinstance(n, _PLAIN) for n in ast.walk(o))]
    values = [o for o in operands if o not in plain]
    torch, indent = Torch(source, source.scope_of(branch)), source.indent(branch)
    lines = moved(source.lines_text(body), indent + source.indent_unit, source.indent(body[0]))
    is_last = not plain or operands.index(plain[-1]) < operands.index(values[0]) if values else True
    if is_last or lines is None or not is_pure(torch, *values) or any(isinstance(n, ast.NamedExpr) for n in ast.walk(branch)):
        return []
    test = " and ".join(f"({source.text_of(o)})" if isinstance(o, ast.BoolOp) else source.text_of(o) for o in [*plain, *values])
    head = source.comments(branch.lineno, body[0].lineno - 1)
    changes = [(*source.whole_lines(branch), "".join(f"{indent}{line}\n" for line in [*head, f"if {test}:"]) + lines)]
    tests = tuple(Condition(one.before, one.before) for value in values for one in conditions_of(source, torch, value))
    return candidate(problem, source, "Ask first what no values decide", changes, _ONLY_IF, tests)


def _operands(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


_ASSUMPTION = "The statements also run when no row is selected, and then change nothing and raise no exception."
_IN_PLACE = {
    "index_add_", "index_fill_", "index_copy_", "index_put_", "masked_fill_", "masked_scatter_", "scatter_", "scatter_add_",
}  # fmt: skip
_TO_NUMBERS = {"long", "int", "to", "unbind"}
_SAME_ROWS = {"squeeze", "unsqueeze", "flatten", "view", "reshape", "clone", "expand", "t", *_TO_NUMBERS}
#: methods that a condition calls on a mask; rows are counted in other ways
_OF_VALUES = {"any", "sum", "count_nonzero"}
#: functions that raise an exception if there are no elements
_NEED_ROWS = {
    "max", "min", "amax", "amin", "argmax", "argmin", "aminmax", "median", "nanmedian", "mode", "quantile", "nanquantile",
    "kthvalue", "topk",
}  # fmt: skip


def indexing(problem: Problem) -> list[Candidate]:
    """The statements without the branch; the second candidate also captures operators whose output sizes depend on values."""
    source = parse(problem.source)
    # the break is often in what the branch tests: `rows = mask.nonzero()`
    branch = None if source is None else source.branch_at(problem, ast.If) or _branch_on(source, problem)
    if source is None or branch is None or branch.orelse or not source.stands_alone(branch):
        return []
    selected, body = _selected(branch.test), branch.body
    if selected is None or body[0].lineno == branch.lineno:
        return []
    is_mask = (
        bool({n.attr for n in source.inside(branch.test, ast.Attribute)} & _OF_VALUES) or dotted_call(branch.test) == "any"
    )
    if is_mask and any(_makes_numbers(n, selected) for n in source.inside(branch, ast.Call, ast.BinOp)):
        return []
    torch, later, of_rows = Torch(source, source.scope_of(branch)), read_later(source, branch), set[str]()
    for one in body:
        if uses(one).reads & uses(selected).reads & of_rows:
            return []  # it is another mask, or other rows, by then
        if not _does_nothing(torch, one, selected, later) or not _is_safe(torch, source, one, selected, of_rows):
            return []
        of_rows |= uses(one).writes
    indent = source.indent(branch)
    header = source.comments(branch.lineno, branch.test.end_lineno or branch.lineno)
    lines = moved(source.lines_text(body), indent, source.indent(body[0]))
    if lines is None:
        return []
    changes = [(*source.whole_lines(branch), "".join(f"{indent}{c}\n" for c in header) + lines)]
    made, title = [], "Index without asking whether there are rows"
    for settings in ({}, {"torch._dynamo.config.capture_dynamic_output_shape_ops": True}):
        made += candidate(problem, source, title, changes, _ASSUMPTION, settings=settings)
    return made


def dotted_call(node: ast.expr) -> str:
    return dotted(node.func) if isinstance(node, ast.Call) else ""


def _branch_on(source: Source, problem: Problem) -> ast.If | None:
    """The branch after an assignment that broke, if it asks whether the assignment selected anything."""
    statement = source.innermost(problem, ast.Assign)
    bound = uses(statement).writes
    for one in source.following(statement) if statement is not None else ():
        if isinstance(one, ast.If):
            return one if (found := _selected(one.test)) is not None and uses(found).reads & bound else None
        if uses(one).writes & bound:
            return None
    return None


def _selected(test: ast.expr) -> ast.expr | None:
    """The mask or the rows of `mask.any()`, `rows.numel() > 0`, `len(rows)` and the like; None for other conditions."""
    number = number_of(test)
    if number is not None:
        return _selected(number[0])
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        bound = getattr(test.comparators[0], "value", None)
        is_some = (bound == 0 and isinstance(test.ops[0], ast.Gt | ast.NotEq)) or (
            bound == 1 and isinstance(test.ops[0], ast.GtE)
        )
        left = number_of(test.left)
        return _counted(left[0] if left is not None else test.left) if is_some else None
    return _counted(test)


def _counted(value: ast.expr) -> ast.expr | None:
    """What an expression counts: `rows` for `len(rows)` or `rows.shape[0]`; None if it counts nothing."""
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Attribute) and value.value.attr == "shape":
        return value.value.value
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Attribute):
        method = value.func.attr
        if method in ("any", "count_nonzero") and dotted(value.func.value) in ("torch", "t", "th") and value.args:
            return value.args[0]
        return value.func.value if method in (*_OF_VALUES, "numel", "size") and len(value.args) <= 1 else None
    return value.args[0] if dotted(value.func) in ("len", "any") and len(value.args) == 1 else None


def _makes_numbers(node: ast.AST, mask: ast.expr) -> bool:
    """Whether an expression makes numbers of a mask: as an index, they select the rows 0 and 1, whatever the mask selects."""
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.BitAnd) and (_is_made_of(node.left, mask) or _is_made_of(node.right, mask))
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in _TO_NUMBERS and _is_made_of(function.value, mask)


def _does_nothing(torch: Torch, one: ast.stmt, selected: ast.expr, later: set[str]) -> bool:
    """Whether, if no row is selected, a statement changes nothing that is read later; `_is_safe` checks the values in it."""
    target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else getattr(one, "target", None)
    if isinstance(target, ast.Subscript):
        indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        return any(_is_made_of(index, selected) for index in indices)
    if isinstance(one, ast.Assign) and isinstance(target, ast.Name):
        return target.id not in later or _gives_the_same(torch, target.id, one.value, selected)
    call = one.value if isinstance(one, ast.Expr) else None
    is_in_place = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _IN_PLACE
    return is_in_place and any(_is_made_of(a, selected) for a in call.args)  # type: ignore[union-attr]


def _is_safe(torch: Torch, source: Source, one: ast.stmt, selected: ast.expr, of_rows: set[str]) -> bool:
    """Whether a statement's values have no effects, and raise no exception for lack of rows.

    `of_rows`: the names that statements above bind.  An unknown function that is given rows is taken to have no effects, and
    to work without any rows, too.
    """

    def has_rows(node: ast.AST) -> bool:
        return bool(uses(node).reads & of_rows) or any(_is_same(n, selected) for n in ast.walk(node))

    for call in source.inside(one, ast.Call):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
        rows, changes = has_rows(call), isinstance(one, ast.Expr) and one.value is call
        if not (changes or is_pure_call(torch, call, unknown=rows)) or (rows and (name in _NEED_ROWS or number_of(call))):
            return False
    for item in source.inside(one, ast.Subscript):
        is_shape = isinstance(item.value, ast.Attribute) and item.value.attr == "shape"
        first = item.slice.elts[0] if isinstance(item.slice, ast.Tuple) else item.slice
        if not isinstance(first, ast.Slice) and not is_shape and has_rows(item.value) and not has_rows(first):
            return False
    quotients = [n for n in source.inside(one, ast.BinOp) if isinstance(n.op, ast.Div | ast.FloorDiv | ast.Mod)]
    return not any(_counted(n.right) is not None and has_rows(n.right) and not has_rows(n.left) for n in quotients)


def _is_same(one: ast.AST, other: ast.expr) -> bool:
    return isinstance(one, ast.expr) and ast.dump(one) == ast.dump(other)


def _is_made_of(index: ast.expr, selected: ast.expr) -> bool:
    """Whether an index selects nothing if the mask or the rows select nothing: `rows[:, 0]`, `rows + 1`, `mask & other`."""
    if _is_same(index, selected):
        return True
    if isinstance(index, ast.Subscript):
        return _is_made_of(index.value, selected)
    if isinstance(index, ast.BinOp):
        keeps = isinstance(index.op, ast.Add | ast.Sub | ast.Mult | ast.BitAnd | ast.FloorDiv | ast.Mod)
        return keeps and (_is_made_of(index.left, selected) or _is_made_of(index.right, selected))
    function = index.func if isinstance(index, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in _SAME_ROWS and _is_made_of(function.value, selected)


def _gives_the_same(torch: Torch, name: str, value: ast.expr, selected: ast.expr) -> bool:
    """Whether a value equals the old one if nothing is selected: `x.masked_fill(mask, 0)`, `torch.where(mask, 0, x)`."""
    if not isinstance(value, ast.Call):
        return False
    full, arguments = torch.full(value.func), value.args
    if full == "torch.where" and len(arguments) == 3:
        return _is_made_of(arguments[0], selected) and dotted(arguments[2]) == name
    if not full.startswith("torch."):
        arguments = [*([value.func.value] if isinstance(value.func, ast.Attribute) else []), *arguments]
    last = value.func.attr if isinstance(value.func, ast.Attribute) else full.rpartition(".")[2]
    if not arguments or dotted(arguments[0]) != name:
        return False
    return last == "clone" or (f"{last}_" in _IN_PLACE and any(_is_made_of(a, selected) for a in arguments))
