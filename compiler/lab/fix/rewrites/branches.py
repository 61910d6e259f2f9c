"""A branch on values becomes a choice between values: `torch.where` computes both sides, `torch.cond` one of them."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.rewrites.branch_functions import _ONE, with_cond
from dynascope.compiler.lab.fix.rewrites.branch_parts import Refused, is_no_tensor, is_starred, targets, without_alias
from dynascope.compiler.lab.fix.syntax import conditions
from dynascope.compiler.lab.fix.syntax.effects import changed_in_place, is_pure
from dynascope.compiler.lab.fix.syntax.flow import bound_before, read_later, small, statements
from dynascope.compiler.lab.fix.syntax.guarded_indices import guards_an_index
from dynascope.compiler.lab.fix.syntax.names import unused_name, uses
from dynascope.compiler.lab.fix.syntax.source_text import Change, Source, candidate, parse
from dynascope.compiler.lab.fix.syntax.torch_names import Torch

_BOTH = "Both sides are computed, and the result is a new tensor of their common shape and type."
_IDENTITY = {"+=": "0", "-=": "0", "*=": "1", "/=": "1"}


def candidates(problem: Problem) -> list[Candidate]:
    """`torch.where` first, if both sides are known to have no effects, then `torch.cond`."""
    source = parse(problem.source)
    if source is None:
        return []
    choice = source.innermost(problem, cst.IfExp, lambda n: n.test)
    if choice is None and problem.column is not None and problem.kind.startswith("Data-dependent branching"):
        place = source.line_start(problem.line) + problem.column
        choice = next((n for n in source.all_of(cst.IfExp) if source.start(n) == place), None)
    if choice is not None:
        return _expression(problem, source, choice)
    branch = source.branch_at(problem)
    if branch is None or conditions.is_python(branch.test):
        return []
    return [*_with_where(problem, source, branch), *with_cond(problem, source, branch)]


def _expression(problem: Problem, source: Source, choice: cst.IfExp) -> list[Candidate]:
    """The candidates for `a if test else b`."""
    torch = Torch(source, source.scope_of(choice))
    condition = conditions.as_tensor(source, torch, choice.test)
    if condition is None or conditions.is_python(choice.test) or is_no_tensor(choice.body) or is_no_tensor(choice.orelse):
        return []
    tests = conditions.parts(source, torch, choice.test)
    precision = conditions.precision(source, choice.test)
    yes, no = source.argument(choice.body), source.argument(choice.orelse)
    place = (source.start(choice), source.end(choice))
    found: list[Candidate] = []
    if is_pure(torch, choice.body, choice.orelse) and not guards_an_index(source, choice, [choice]):
        changes: list[Change] = [(*place, f"{torch('where')}({condition}, {yes}, {no})"), *torch.changes()]
        found += candidate(problem, source, "Choose with torch.where", changes, _BOTH + precision, tests)
    if is_pure(torch, choice.body, choice.orelse, unknown=True):
        yes, no = without_alias(choice.body, yes), without_alias(choice.orelse, no)
        changes = [(*place, f"{torch('cond')}({condition}, lambda: {yes}, lambda: {no})"), *torch.changes()]
        found += candidate(problem, source, "Choose with torch.cond", changes, _ONE + precision, tests)
    return found


@dataclass
class _Value:
    """The value that a side assigns to a name: its text, its nodes, and the operator, `+=` or the like ("" for `=`)."""

    text: str
    nodes: tuple[cst.BaseExpression, ...]
    operator: str = ""


def _with_where(problem: Problem, source: Source, branch: cst.If) -> list[Candidate]:
    torch = Torch(source, source.scope_of(branch))
    sides = [branch, *(source.following(branch) if uses(branch).jumps else [])]
    changes = _assigning(source, torch, branch) or _returning(source, torch, branch)
    if changes is None or guards_an_index(source, branch, sides):
        return []
    changes = [*changes, *torch.changes()]
    chosen = [n for s in sides for n in (s, *source.inside(s, cst.If)) if isinstance(n, cst.If)]
    tests = tuple(part for n in chosen for part in conditions.parts(source, torch, n.test))
    assumption = _BOTH + conditions.precision(source, *(n.test for n in chosen))
    return candidate(problem, source, "Choose with torch.where", changes, assumption, tests)


def _assigning(source: Source, torch: Torch, branch: cst.If) -> list[Change] | None:
    """The branch as assignments of chosen values; None if it does anything but assign, or the values cannot be chosen."""
    try:
        names = list(dict.fromkeys(_assigned(branch)))
        if not names:
            return None
        late, before = read_later(source, branch), bound_before(source, branch)
        names = [n for n in names if n in late]
        hoisted: list[str] = []
        condition = conditions.as_tensor(source, torch, branch.test)
        if condition is not None and len(names) > 1 and isinstance(source.scope_of(branch), cst.FunctionDef):
            name = unused_name(source, "condition")
            hoisted, condition = [f"{name} = {conditions.in_one_statement(condition)}"], name
        made = [(n, _value_of(source, torch, branch, n, before, condition)) for n in names]
    except Refused:
        return None
    if not made:
        return None
    lines = [*source.comments(*source.lines(branch)), *hoisted, *_assignments(made)]
    return [_replaced(source, branch, lines)]


def _replaced(source: Source, branch: cst.If, lines: list[str]) -> Change:
    """The change that puts these lines in place of a branch; an `elif` becomes an `else` with them inside."""
    indent = source.indent(branch)
    if source.is_elif(branch):
        lines = ["else:", *(source.indent_unit + line for line in lines)]
    start, end = source.whole_lines(branch)
    return start, end, "".join(f"{indent}{line}\n" for line in lines)


def _assigned(branch: cst.If) -> list[str]:
    """Names that the sides assign, in order; raises `Refused` if a side does anything else."""
    names: list[str] = []
    for side in _sides(branch):
        for one in small(side):
            names += [n for n, _ in targets(one)]
    return names


def _sides(branch: cst.If) -> list[list[cst.CSTNode]]:
    if isinstance(branch.orelse, cst.If):
        return [statements(branch.body), *_sides(branch.orelse)]
    return [statements(branch.body), statements(branch.orelse)]


def _side_value(source: Source, torch: Torch, side: list[cst.CSTNode], name: str) -> _Value | None:
    """The value that a side assigns to a name; None if it does not assign the name.

    Raises `Refused` if the side binds a name twice or reads one that it has bound, or if a value may have effects or is
    certainly no tensor.
    """
    value: _Value | None = None
    done: set[str] = set()
    for one in small(side):
        pairs = targets(one)
        for target, (node, operator) in pairs:
            if target in done or uses(node).reads & done or is_no_tensor(node) or not is_pure(torch, node):
                raise Refused
            if target == name:
                value = _Value(source.argument(node), (node,), operator)
        done |= {target for target, _ in pairs}
    return value


def _value_of(source: Source, torch: Torch, branch: cst.If, name: str, before: set[str], hoisted: str | None = None) -> _Value:
    """The value that an `if` and its `elif`s assign to a name; `hoisted`: the name of the condition, if it has one."""
    yes = _side_value(source, torch, statements(branch.body), name)
    if isinstance(branch.orelse, cst.If):
        no: _Value | None = _value_of(source, torch, branch.orelse, name, before)
    else:
        no = _side_value(source, torch, statements(branch.orelse), name)
    if yes is None and no is None:
        return _unchanged(name, before, "")
    operator = yes.operator if yes is not None else no.operator if no is not None else ""
    yes, no = (v if v is not None and v.text != name else _unchanged(name, before, operator) for v in (yes, no))
    if yes.operator != no.operator:
        raise Refused
    if operator and name in uses(*yes.nodes, *no.nodes).reads:
        raise Refused  # the update in place would run even if the branch is not taken, and overwrite what backward needs
    nodes = (*yes.nodes, *no.nodes, *([branch.test] if hoisted is None else []))
    return _Value(_chosen(source, torch, branch.test, yes.text, no.text, hoisted), nodes, operator)


def _unchanged(name: str, before: set[str], operator: str) -> _Value:
    if name not in before or operator not in ("", *_IDENTITY):
        raise Refused
    return _Value(_IDENTITY[operator] if operator else name, (), operator)


def _chosen(source: Source, torch: Torch, test: cst.BaseExpression, yes: str, no: str, condition: str | None = None) -> str:
    """The expression that chooses one of two values: `yes if test else no` for a Python condition, else `torch.where`."""
    if yes == no:
        return yes
    if conditions.is_python(test):
        yes = f"({yes})" if _is_loose(yes) else yes
        return f"({yes} if {source.text_of(test)} else {no})"
    if condition is None and isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _chosen(source, torch, test.expression, no, yes)
    condition = condition or conditions.as_tensor(source, torch, test)
    if condition is None or not is_pure(torch, test):
        raise Refused
    return f"{torch('where')}({condition}, {yes}, {no})"


def _is_loose(text: str) -> bool:
    """Whether an expression that is followed by `if` must be in parentheses: it is `a if b else c` or a lambda."""
    expression = cst.parse_expression(f"({text})")
    return isinstance(expression, cst.IfExp | cst.Lambda) and len(expression.lpar) == 1


def _assignments(made: list[tuple[str, _Value]]) -> list[str]:
    """One assignment for each name, or one for all names if a later value reads an earlier name."""
    done: set[str] = set()
    for name, value in made:
        if any(uses(n).reads & done for n in value.nodes):
            if any(v.operator for _, v in made):
                raise Refused
            return [f"{', '.join(n for n, _ in made)} = {', '.join(v.text for _, v in made)}"]
        done.add(name)
    return [f"{name} {value.operator or '='} {value.text}" for name, value in made]


def _returning(source: Source, torch: Torch, branch: cst.If) -> list[Change] | None:
    """The branch as one return; None if a side does not only return.

    Without an `else` at its end, the code after the branch is a side, except the assignments at its start, which stay.
    """
    if not source.stands_alone(branch):
        return None
    ending = branch.orelse
    while isinstance(ending, cst.If):
        ending = ending.orelse
    after = source.following(branch) if ending is None else []
    kept = 0
    while kept < len(after) and _computes(torch, after[kept]):
        kept += 1
    try:
        values = _returned(source, torch, [branch, *after[kept:]])
    except Refused:
        return None
    between, tail = after[:kept], after[kept:]
    text = values[0] if len(values) == 1 else ", ".join(values)
    if not between:
        last = (branch, *tail)[-1]
        start, end = source.whole_lines(branch, last)
        comments = source.comments(source.lines(branch)[0], source.lines(last)[1])
        indent = source.indent(branch)
        return [(start, end, "".join(f"{indent}{line}\n" for line in [*comments, f"return {text}"]))]
    moved = uses(branch)
    if moved.reads & uses(*between).writes or changed_in_place(moved.reads, *between):
        return None
    indent = source.indent(branch)
    comments = source.comments(*source.lines(branch))
    first = (*source.whole_lines(branch), "".join(f"{indent}{line}\n" for line in comments))
    start, end = source.whole_lines(*tail)
    comments = source.comments(source.lines(tail[0])[0], source.lines(tail[-1])[1])
    return [first, (start, end, "".join(f"{indent}{line}\n" for line in [*comments, f"return {text}"]))]


def _computes(torch: Torch, one: cst.CSTNode) -> bool:
    """Whether a statement assigns a value to names and does nothing else."""
    body = one.body if isinstance(one, cst.SimpleStatementLine) else ()
    return bool(body) and all(isinstance(s, cst.Assign | cst.AnnAssign) and is_pure(torch, s) for s in body)


def _returned(source: Source, torch: Torch, block: list[cst.CSTNode]) -> list[str]:
    """The texts of the values that a block returns; raises `Refused` if it does anything else, or they cannot be chosen."""
    first = block[0] if block else None
    inner = small([first])[0] if first is not None else None
    if isinstance(inner, cst.Return) and len(small([first])) == 1 and inner.value is not None:  # type: ignore[list-item]
        value = inner.value
        parts = [e.value for e in value.elements] if isinstance(value, cst.Tuple) else [value]
        single = isinstance(value, cst.Tuple) and len(parts) == 1
        if single or is_starred(value) or any(not is_pure(torch, p) for p in parts):
            raise Refused
        return [source.argument(p) for p in parts]
    if isinstance(first, cst.If):
        yes = _returned(source, torch, statements(first.body))
        other = [first.orelse] if isinstance(first.orelse, cst.If) else statements(first.orelse)
        no = _returned(source, torch, [*other, *block[1:]])
        if len(yes) != len(no):
            raise Refused
        for a, b in zip(yes, no, strict=True):
            if a != b and any(is_no_tensor(cst.parse_expression(f"({side})")) for side in (a, b)):
                raise Refused
        return [_chosen(source, torch, first.test, a, b) for a, b in zip(yes, no, strict=True)]
    raise Refused
