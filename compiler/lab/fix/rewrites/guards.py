"""A branch that only guards: a check that raises becomes an assertion in the graph, indexing runs without asking for rows.

What no values decide is asked first.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import partial

from dynascope.compiler.lab.fix.candidate import Candidate, Condition, Problem
from dynascope.compiler.lab.fix.rewrites import reading
from dynascope.compiler.lab.fix.rewrites.source import Rewrite, Source, applicable, dotted, moved, parse, require
from dynascope.compiler.lab.fix.text_edits import NotApplicable

_VALUES_LOST = ", with the message's text but not its values"
_ONLY_IF = "The values are asked for only if the rest of the condition holds"
_RAISES = "It raises RuntimeError, whatever eager raises and the code around it catches, from inside the graph"
_GPU = "on a GPU it does so later, and the process can use the GPU no more"


def raising(problem: Problem) -> list[Candidate]:
    """`if bad: raise Error(...)` and `assert good, f"..."` as `torch._assert_async`."""
    return [] if problem.in_try else reading.apart(problem, _asserted)


def _asserted(problem: Problem) -> Candidate:
    source = parse(problem.source)
    statement = source.innermost(problem, ast.Assert) or require(source.branch_at(problem, ast.If))
    rewrite, lines, shortened = Rewrite(problem, statement), list[str](), ""
    checks: list[ast.stmt] = [statement]
    for check in checks:
        arguments: list[ast.expr] = []
        match check:
            case ast.Assert(test=test, msg=message):
                arguments = [message] if message is not None else []
            case ast.If(test=test, body=[ast.Raise(exc=ast.expr() as error)], orelse=[] | [_] as others):
                arguments = error.args if isinstance(error, ast.Call) else []
                checks += others
            case _:
                raise NotApplicable
        reading.condition(rewrite, test)
        good = reading.as_tensor(rewrite, test, is_opposite=isinstance(check, ast.If))
        require(not reading.is_python(test) and reading.is_pure(rewrite, test))
        lines.append(f"{rewrite.torch('_assert_async')}({good}, {_message(source, next(iter(arguments), None))})")
        is_constant = all(isinstance(a, ast.Constant) and isinstance(a.value, str) for a in arguments)
        shortened = shortened if is_constant and len(arguments) < 2 else _VALUES_LOST
    if isinstance(statement, ast.Assert):
        change = (source.start(statement), source.end(statement), lines[0])
    else:
        change = source.in_place_of(statement, statement, lines)
    return rewrite.candidate("Assert inside the graph", [change], f"{_RAISES}{shortened}; {_GPU}.")


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
    branch = require(parse(problem.source).branch_at(problem, ast.If))
    rewrite, body, operands = Rewrite(problem, branch), branch.body, reading.and_operands(branch.test)
    source = rewrite.source
    if len(body) == 1 and isinstance(body[0], ast.If) and not body[0].orelse and source.stands_alone(body[0]):
        operands, body = [*operands, *reading.and_operands(body[0].test)], body[0].body
    plain = [o for o in operands if all(isinstance(n, _PLAIN) for n in ast.walk(o))]
    values = [o for o in operands if o not in plain]
    require(values and operands != [*plain, *values] and not branch.orelse and source.stands_alone(branch))
    require(reading.is_pure(rewrite, *values) and not source.inside(branch, ast.NamedExpr))
    test = " and ".join(f"({source.text_of(o)})" if isinstance(o, ast.BoolOp) else source.text_of(o) for o in [*plain, *values])
    lines = moved(source.lines_text(body), source.indent(branch) + source.indent_unit, source.indent(body[0]))
    change = source.in_place_of(branch, branch, [f"if {test}:"], lines, body[0].lineno - 1)
    conditions = (one for value in values for one in reading.conditions_of(rewrite, value))
    rewrite.tests = {Condition(one.before, one.before): None for one in conditions}
    return [rewrite.candidate("Ask first what no values decide", [change], _ONLY_IF)]


_ASSUMPTION = "The statements also run when no row is selected: this changes no values and raises nothing, but may copy."
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
    captured = {"torch._dynamo.config.capture_dynamic_output_shape_ops": True}
    return applicable(problem, partial(_unguarded, {}), partial(_unguarded, captured))


def _unguarded(settings: Mapping[str, object], problem: Problem) -> Candidate:
    source = parse(problem.source)
    # the break is often in what the branch tests: `rows = mask.nonzero()`
    branch = source.branch_at(problem, ast.If) or require(_branch_on(source, problem))
    rewrite, selected, body = Rewrite(problem, branch), require(_selected(branch.test)), branch.body
    require(not branch.orelse and source.stands_alone(branch) and body[0].lineno > branch.lineno)
    called = {n.attr for n in source.inside(branch.test, ast.Attribute)}
    is_mask = called & _OF_VALUES or dotted(getattr(branch.test, "func", None)) == "any"
    require(not is_mask or not any(_makes_numbers(n, selected) for n in ast.walk(branch)))
    later, of_rows = reading.read_later(source, branch), set[str]()
    for one in body:
        # else it is another mask, or other rows, by then
        require(not reading.uses(one).reads & reading.uses(selected).reads & of_rows)
        require(_does_nothing(rewrite, one, selected, later) and _is_safe(rewrite, one, selected, of_rows))
        of_rows |= reading.uses(one).writes
    lines = moved(source.lines_text(body), source.indent(branch), source.indent(body[0]))
    change = source.in_place_of(branch, branch, [], lines, branch.test.end_lineno or branch.lineno)
    return rewrite.candidate("Index without asking whether there are rows", [change], _ASSUMPTION, settings)


def _branch_on(source: Source, problem: Problem) -> ast.If | None:
    """The branch after an assignment that broke, if it asks whether the assignment selected anything."""
    statement = require(source.innermost(problem, ast.Assign))
    bound = reading.uses(statement).writes
    for one in source.following(statement):
        if isinstance(one, ast.If):
            return one if (found := _selected(one.test)) is not None and reading.uses(found).reads & bound else None
        if reading.uses(one).writes & bound:
            return None
    return None


def _selected(test: ast.expr) -> ast.expr | None:
    """The mask or the rows of `mask.any()`, `rows.numel() > 0`, `len(rows)` and the like; None for other conditions."""
    number = reading.number_of(test)
    match number[0] if number is not None else test:
        case ast.Compare(left, [ast.Gt() | ast.NotEq()], [ast.Constant(0)]) | ast.Compare(left, [ast.GtE()], [ast.Constant(1)]):
            number = reading.number_of(left)
            return _counted(number[0] if number is not None else left)
        case value:
            return _counted(value)


def _counted(value: ast.expr) -> ast.expr | None:
    """What an expression counts: `rows` for `len(rows)` or `rows.shape[0]`; None if it counts nothing."""
    match value:
        case ast.Subscript(value=ast.Attribute(value=rows, attr="shape")):
            return rows
        case ast.Call(ast.Attribute(ast.Name("torch" | "t" | "th"), "any" | "count_nonzero"), [rows, *_]):
            return rows
        case ast.Call(func=ast.Attribute(value=rows, attr=method), args=[] | [_]):
            return rows if method in (*_OF_VALUES, "numel", "size") else None
        case ast.Call(func=ast.Name(id="len" | "any"), args=[rows]):
            return rows
    return None


def _makes_numbers(node: ast.AST, mask: ast.expr) -> bool:
    """Whether an expression makes numbers of a mask: as an index, they select the rows 0 and 1, whatever the mask selects."""
    match node:
        case ast.BinOp(left=left, op=operator, right=right):
            return not isinstance(operator, ast.BitAnd) and (_is_made_of(left, mask) or _is_made_of(right, mask))
        case ast.Call(func=ast.Attribute(value=value, attr=method)):
            return method in _TO_NUMBERS and _is_made_of(value, mask)
    return False


def _does_nothing(rewrite: Rewrite, one: ast.stmt, selected: ast.expr, later: set[str]) -> bool:
    """Whether, if no row is selected, a statement changes nothing that is read later; `_is_safe` checks the values in it."""
    match one:
        case ast.Assign(targets=[ast.Subscript(slice=index)]) | ast.AugAssign(target=ast.Subscript(slice=index)):
            indices = index.elts if isinstance(index, ast.Tuple) else [index]
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name not in later or _gives_the_same(rewrite, name, value, selected)
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=method), args=indices)) if method in _IN_PLACE:
            pass
        case _:
            return False
    return any(_is_made_of(index, selected) for index in indices)


def _is_safe(rewrite: Rewrite, one: ast.stmt, selected: ast.expr, of_rows: set[str]) -> bool:
    """Whether a statement's values have no effects, and raise no exception for lack of rows.

    `of_rows`: the names that statements above bind.  An unknown function that is require rows is taken to have no effects, and
    to work without any rows, too.
    """

    def has_rows(node: ast.AST) -> bool:
        return bool(reading.uses(node).reads & of_rows) or any(_is_same(n, selected) for n in ast.walk(node))

    for node in ast.walk(one):
        match node:
            case ast.Call():
                name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
                rows, changes = has_rows(node), isinstance(one, ast.Expr) and one.value is node
                if not changes and not reading.is_pure_call(rewrite, node, unknown=rows):
                    return False
                if rows and (name in _NEED_ROWS or reading.number_of(node)):
                    return False
            case ast.Subscript(value=value, slice=index) if getattr(value, "attr", "") != "shape":
                first = index.elts[0] if isinstance(index, ast.Tuple) else index
                if not isinstance(first, ast.Slice) and has_rows(value) and not has_rows(first):
                    return False
            case ast.BinOp(left=left, op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=right):
                if _counted(right) is not None and has_rows(right) and not has_rows(left):
                    return False
    return True


def _is_same(one: ast.AST, other: ast.expr) -> bool:
    return isinstance(one, ast.expr) and ast.dump(one) == ast.dump(other)


def _is_made_of(index: ast.expr, selected: ast.expr) -> bool:
    """Whether an index selects nothing if the mask or the rows select nothing: `rows[:, 0]`, `rows + 1`, `mask & other`."""
    if _is_same(index, selected):
        return True
    match index:
        case ast.Subscript(value=value):
            return _is_made_of(value, selected)
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.BitAnd() | ast.FloorDiv() | ast.Mod(), right):
            return _is_made_of(left, selected) or _is_made_of(right, selected)
        case ast.Call(func=ast.Attribute(value=value, attr=method)):
            return method in _SAME_ROWS and _is_made_of(value, selected)
    return False


def _gives_the_same(rewrite: Rewrite, name: str, value: ast.expr, selected: ast.expr) -> bool:
    """Whether a value equals the old one if nothing is selected: `x.masked_fill(mask, 0)`, `torch.where(mask, 0, x)`."""
    if not isinstance(value, ast.Call):
        return False
    full, arguments = rewrite.full(value.func), value.args
    if full == "torch.where" and len(arguments) == 3:
        return _is_made_of(arguments[0], selected) and dotted(arguments[2]) == name
    last = value.func.attr if isinstance(value.func, ast.Attribute) else full.rpartition(".")[2]
    if isinstance(value.func, ast.Attribute) and not full.startswith("torch."):
        arguments = [value.func.value, *arguments]
    if not arguments or dotted(arguments[0]) != name:
        return False
    return last == "clone" or (f"{last}_" in _IN_PLACE and any(_is_made_of(a, selected) for a in arguments))
