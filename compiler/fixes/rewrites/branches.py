"""A branch on values becomes a choice between values: `torch.where` computes both sides, `torch.cond` one of them."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from dynascope.compiler.fixes.candidate import Candidate, Problem
from dynascope.compiler.fixes.rewrites import conditions
from dynascope.compiler.fixes.rewrites.names import (
    Torch,
    Uses,
    bound_before,
    certainly_bound,
    changed_in_place,
    changes_argument,
    is_pure,
    looks_around,
    names_in_order,
    read_later,
    small,
    statements,
    unused_name,
    uses,
)
from dynascope.compiler.fixes.rewrites.source_text import Change, Source, candidate, indented, parse

_BOTH = "Both sides are computed, and the result is a new tensor."
_ONE = (
    "The sides give tensors of the same shape and type, the result is a new tensor, "
    "and what only the other side uses gets a gradient of zero instead of none."
)
_IDENTITY = {"+=": "0", "-=": "0", "*=": "1", "/=": "1"}


def candidates(problem: Problem) -> list[Candidate]:
    """`torch.where` first, where both sides are cheap and have no effects, then `torch.cond`."""
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
    return [*_with_where(problem, source, branch), *_with_cond(problem, source, branch)]


def _expression(problem: Problem, source: Source, choice: cst.IfExp) -> list[Candidate]:
    """`a if test else b`."""
    torch = Torch(source, source.scope_of(choice))
    condition = conditions.as_tensor(source, torch, choice.test)
    if condition is None or conditions.is_python(choice.test) or _not_a_tensor(choice.body) or _not_a_tensor(choice.orelse):
        return []
    tests = conditions.parts(source, choice.test)
    yes, no = _argument(source, choice.body), _argument(source, choice.orelse)
    place = (source.start(choice), source.end(choice))
    found: list[Candidate] = []
    if is_pure(torch, choice.body, choice.orelse):
        changes: list[Change] = [(*place, f"{torch('where')}({condition}, {yes}, {no})"), *torch.changes()]
        found += candidate(problem, source, "Choose with torch.where", changes, _BOTH, tests)
    if is_pure(torch, choice.body, choice.orelse, unknown=True):
        yes, no = _fresh(choice.body, yes), _fresh(choice.orelse, no)
        changes = [(*place, f"{torch('cond')}({condition}, lambda: {yes}, lambda: {no})"), *torch.changes()]
        found += candidate(problem, source, "Choose with torch.cond", changes, _ONE, tests)
    return found


def _not_a_tensor(value: cst.BaseExpression) -> bool:
    """Whether a value is surely no tensor, nor a number that can become one."""
    return isinstance(value, cst.BaseString | cst.Lambda | cst.Dict | cst.List | cst.Set | cst.Tuple | cst.FormattedString) or (
        isinstance(value, cst.Name) and value.value in ("None", "True", "False", "Ellipsis")
    )


def _argument(source: Source, value: cst.BaseExpression) -> str:
    """A value as an argument of a call."""
    text = source.text_of(value)
    return f"({text})" if isinstance(value, cst.Tuple | cst.NamedExpr | cst.GeneratorExp) and not text.startswith("(") else text


def _fresh(value: cst.BaseExpression, text: str) -> str:
    """A value that shares no memory with an operand: the sides of torch.cond may not."""
    return f"{text}.clone()" if isinstance(value, cst.Name | cst.Attribute | cst.Subscript) else text


# torch.where


@dataclass
class _Value:
    """What a side gives to a name: its text, the nodes it is made of, and `+=` or the like (\"\" for `=`)."""

    text: str
    nodes: tuple[cst.BaseExpression, ...]
    operator: str = ""


def _with_where(problem: Problem, source: Source, branch: cst.If) -> list[Candidate]:
    torch = Torch(source, source.scope_of(branch))
    changes = _assigning(source, torch, branch) or _returning(source, torch, branch)
    if changes is None:
        return []
    changes = [*changes, *torch.changes()]
    return candidate(problem, source, "Choose with torch.where", changes, _BOTH, _tests(source, branch))


def _tests(source: Source, branch: cst.If) -> tuple[str, ...]:
    """The conditions on values of a chain of branches."""
    found: list[str] = []
    at = branch
    while True:
        found += conditions.parts(source, at.test)
        if not isinstance(at.orelse, cst.If):
            return tuple(found)
        at = at.orelse


class _Refused(Exception):
    """The branch has no such form."""


def _assigning(source: Source, torch: Torch, branch: cst.If) -> list[Change] | None:
    """The branch as assignments; None if it does anything else."""
    try:
        names = list(dict.fromkeys(_assigned(branch)))
        if not names or not _stands(source, branch):
            return None
        late, before = read_later(source, branch), bound_before(source, branch)
        names = [n for n in names if n in late]
        hoisted: list[str] = []
        condition = conditions.as_tensor(source, torch, branch.test)
        if condition is not None and len(names) > 1:
            name = unused_name(source, "condition")
            hoisted, condition = [f"{name} = {condition}"], name
        made = [(n, _value_of(source, torch, branch, n, before, condition)) for n in names]
    except _Refused:
        return None
    if not made:
        return None
    lines = [*source.comments(*source.lines(branch)), *hoisted, *_assignments(made)]
    return [_replaced(source, branch, lines)]


def _stands(source: Source, branch: cst.If) -> bool:
    """Whether the lines of a branch are its own; an `elif` becomes an `else` with lines of its own."""
    head = source.text[source.line_start(source.lines(branch)[0]) : source.start(branch)].strip()
    return not head or _is_elif(source, branch)


def _is_elif(source: Source, branch: cst.If) -> bool:
    above = source.parent(branch)
    return isinstance(above, cst.If) and above.orelse is branch


def _replaced(source: Source, branch: cst.If, lines: list[str]) -> Change:
    """These lines in place of a branch."""
    indent = source.indent(branch)
    if _is_elif(source, branch):
        lines = ["else:", *(source.indent_unit + line for line in lines)]
    start, end = source.whole_lines(branch)
    return start, end, "".join(f"{indent}{line}\n" for line in lines)


def _assigned(branch: cst.If) -> list[str]:
    """Names that the sides assign, in order; `_Refused` if a side does anything else."""
    names: list[str] = []
    for side in _sides(branch):
        for one in small(side):
            names += [n for n, _ in _targets(one)]
    return names


def _sides(branch: cst.If) -> list[list[cst.CSTNode]]:
    if isinstance(branch.orelse, cst.If):
        return [statements(branch.body), *_sides(branch.orelse)]
    return [statements(branch.body), statements(branch.orelse)]


def _targets(one: cst.CSTNode) -> list[tuple[str, tuple[cst.BaseExpression, str]]]:
    """The names that a small statement assigns, each with its value and operator."""
    if isinstance(one, cst.Pass):
        return []
    if isinstance(one, cst.AugAssign) and isinstance(one.target, cst.Name):
        operator = {"AddAssign": "+=", "SubtractAssign": "-=", "MultiplyAssign": "*=", "DivideAssign": "/="}
        return [(one.target.value, (one.value, operator.get(type(one.operator).__name__, "?")))]
    if isinstance(one, cst.AnnAssign) and isinstance(one.target, cst.Name) and one.value is not None:
        return [(one.target.value, (one.value, ""))]
    if isinstance(one, cst.Assign) and len(one.targets) == 1:
        target = one.targets[0].target
        if isinstance(target, cst.Name):
            return [(target.value, (one.value, ""))]
        if (
            isinstance(target, cst.Tuple)
            and isinstance(one.value, cst.Tuple)
            and len(target.elements) == len(one.value.elements)
        ):
            pairs = list(zip(target.elements, one.value.elements, strict=True))
            if all(isinstance(t.value, cst.Name) and isinstance(v, cst.Element) for t, v in pairs):
                return [(t.value.value, (v.value, "")) for t, v in pairs if isinstance(t.value, cst.Name)]
    raise _Refused


def _side_value(source: Source, torch: Torch, side: list[cst.CSTNode], name: str) -> _Value | None:
    """What a side gives to a name; None if it leaves it alone."""
    value: _Value | None = None
    done: set[str] = set()
    for one in small(side):
        pairs = _targets(one)
        for target, (node, operator) in pairs:
            if target in done or uses(node).reads & done or _not_a_tensor(node) or not is_pure(torch, node):
                raise _Refused
            if target == name:
                value = _Value(_argument(source, node), (node,), operator)
        done |= {target for target, _ in pairs}
    return value


def _value_of(source: Source, torch: Torch, branch: cst.If, name: str, before: set[str], hoisted: str | None = None) -> _Value:
    """What a chain of branches gives to a name."""
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
        raise _Refused
    return _Value(_chosen(source, torch, branch.test, yes.text, no.text, hoisted), (*yes.nodes, *no.nodes), operator)


def _unchanged(name: str, before: set[str], operator: str) -> _Value:
    if name not in before or operator not in ("", *_IDENTITY):
        raise _Refused
    return _Value(_IDENTITY[operator] if operator else name, (), operator)


def _chosen(source: Source, torch: Torch, test: cst.BaseExpression, yes: str, no: str, condition: str | None = None) -> str:
    """One of two values, by a condition that is Python's or a tensor's."""
    if yes == no:
        return yes
    if conditions.is_python(test):
        return f"({yes} if {source.text_of(test)} else {no})"
    swapped = isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not) and condition is None
    if swapped and isinstance(test, cst.UnaryOperation):
        return _chosen(source, torch, test.expression, no, yes)
    condition = condition or conditions.as_tensor(source, torch, test)
    if condition is None or not is_pure(torch, test):
        raise _Refused
    return f"{torch('where')}({condition}, {yes}, {no})"


def _assignments(made: list[tuple[str, _Value]]) -> list[str]:
    """One assignment a name, or one for all where a later one reads an earlier name."""
    done: set[str] = set()
    for name, value in made:
        if any(uses(n).reads & done for n in value.nodes):
            if any(v.operator for _, v in made):
                raise _Refused
            return [f"{', '.join(n for n, _ in made)} = {', '.join(v.text for _, v in made)}"]
        done.add(name)
    return [f"{name} {value.operator or '='} {value.text}" for name, value in made]


def _returning(source: Source, torch: Torch, branch: cst.If) -> list[Change] | None:
    """The branch as one return, together with what follows it where it has no `else`; None if it does not only return."""
    if _is_elif(source, branch) or not source.stands_alone(branch):
        return None
    after = source.following(branch)
    kept = 0
    if branch.orelse is None:
        while kept < len(after) and _computes(torch, after[kept]):
            kept += 1
    try:
        values = _returned(source, torch, [branch, *after[kept:]])
    except _Refused:
        return None
    between, tail = after[:kept], after[kept:]
    text = values[0] if len(values) == 1 else ", ".join(values)
    if not between:
        last = tail[-1] if tail and branch.orelse is None else branch
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
    """What a block returns, one text a value; `_Refused` if it does anything but return."""
    first = block[0] if block else None
    inner = small([first])[0] if first is not None else None
    if isinstance(inner, cst.Return) and len(small([first])) == 1 and inner.value is not None:  # type: ignore[list-item]
        value = inner.value
        parts = [e.value for e in value.elements] if isinstance(value, cst.Tuple) else [value]
        if any(not is_pure(torch, p) or isinstance(p, cst.StarredElement) for p in parts):
            raise _Refused
        return [source.text_of(p) for p in parts]
    if isinstance(first, cst.If):
        yes = _returned(source, torch, statements(first.body))
        other: list[cst.CSTNode] = block[1:]
        if first.orelse is not None:
            other = [first.orelse] if isinstance(first.orelse, cst.If) else statements(first.orelse)
        no = _returned(source, torch, other)
        if len(yes) != len(no):
            raise _Refused
        for a, b in zip(yes, no, strict=True):
            if a != b and any(_not_a_tensor(cst.parse_expression(f"({side})")) for side in (a, b)):
                raise _Refused
        return [_chosen(source, torch, first.test, a, b) for a, b in zip(yes, no, strict=True)]
    raise _Refused


# torch.cond


def _with_cond(problem: Problem, source: Source, branch: cst.If) -> list[Candidate]:
    torch = Torch(source, source.scope_of(branch))
    condition = conditions.as_tensor(source, torch, branch.test)
    if (
        condition is None
        or not is_pure(torch, branch.test, unknown=True)
        or _is_elif(source, branch)
        or not source.stands_alone(branch)
        or isinstance(branch.orelse, cst.If)
    ):
        return []
    yes, no = statements(branch.body), statements(branch.orelse)
    used = uses(*yes, *no)
    if any(not isinstance(j, cst.Return) for j in used.jumps) or not is_pure_block(torch, [*yes, *no]):
        return []
    if looks_around(*yes, *no):
        return []
    after: list[cst.CSTNode] = []
    if used.jumps:
        if branch.orelse is None:
            after = source.following(branch)
            no = after
            used = uses(*yes, *no)
        if not (_ends_with_return(yes) and _ends_with_return(no) and is_pure_block(torch, no)) or len(used.jumps) != 2:
            return []
        if not _alike(yes, no):
            return []
        outputs: list[str] = []
    else:
        later = read_later(source, branch)
        outputs = [n for n in _in_order(source, branch) if n in later]
        if not outputs:
            return []
    before = bound_before(source, branch)
    passed = [n for n in _in_order(source, branch, *after) if n in before]
    for side in (yes, no):
        if any(n not in before and n not in certainly_bound(side) for n in outputs):
            return []
    if (used.writes - set(passed)) & _maybe_bound(source, branch) or changes_argument(source, branch, branch, *after):
        return []
    return _cond(problem, source, torch, branch, condition, (yes, no, after), passed, outputs)


def is_pure_block(torch: Torch, block: list[cst.CSTNode]) -> bool:
    """Whether statements compute and return, and do nothing else; functions that are not known may be called."""
    if any(isinstance(s, cst.Expr) and isinstance(s.value, cst.Call) for s in small(block)):
        return False
    found = uses(*block)
    return not found.stores and all(is_pure(torch, c.func, c, unknown=True) for c in found.calls)


def _ends_with_return(block: list[cst.CSTNode]) -> bool:
    last = small(block)[-1:]
    return bool(last) and isinstance(last[0], cst.Return) and last[0].value is not None


def _alike(yes: list[cst.CSTNode], no: list[cst.CSTNode]) -> bool:
    """Whether two sides may return the same number of tensors."""
    values = [s.value for side in (yes, no) for s in small(side)[-1:] if isinstance(s, cst.Return)]
    lengths = [len(v.elements) if isinstance(v, cst.Tuple) else 1 if not isinstance(v, cst.Call) else 0 for v in values]
    parts = [e.value for v in values if isinstance(v, cst.Tuple) for e in v.elements] + [v for v in values if v is not None]
    return (lengths[0] == lengths[1] or 0 in lengths) and not any(
        _not_a_tensor(p) for p in parts if not isinstance(p, cst.Tuple)
    )


def _in_order(source: Source, *nodes: cst.CSTNode) -> list[str]:
    """Names that code binds, in the order of the text."""
    bound = uses(*nodes).writes
    return [n for n in names_in_order(source, *nodes) if n in bound]


def _maybe_bound(source: Source, branch: cst.If) -> set[str]:
    """Names that are bound before the branch on some ways to it only."""
    scope, start = source.scope_of(branch), source.start(branch)
    visitor = Uses()
    for one in statements(scope.body) if isinstance(scope, cst.FunctionDef) else list(scope.body):
        if source.start(one) < start and not source.is_inside(branch, one):
            one.visit(visitor)
    return visitor.writes - bound_before(source, branch)


def _cond(
    problem: Problem,
    source: Source,
    torch: Torch,
    branch: cst.If,
    condition: str,
    blocks: tuple[list[cst.CSTNode], list[cst.CSTNode], list[cst.CSTNode]],
    passed: list[str],
    outputs: list[str],
) -> list[Candidate]:
    """Two functions, and the call that chooses."""
    yes, no, after = blocks
    indent = source.indent(branch)
    when_true, when_false = unused_name(source, "when_true"), unused_name(source, "when_false")
    first = _function(source, branch, when_true, yes, passed, outputs)
    second = _function(source, branch, when_false, no, passed, outputs, deeper=bool(after))
    if first is None or second is None:
        return []
    operands = f", ({', '.join(passed)}{',' if len(passed) == 1 else ''})" if passed else ""
    call = f"{torch('cond')}({condition}, {when_true}, {when_false}{operands})"
    result = f"{', '.join(outputs)} = {call}" if outputs else f"return {call}"
    header = [] if _one_line(branch) else source.comments(source.lines(branch)[0], source.lines(branch)[0])
    text = "".join(f"{indent}{c}\n" for c in header) + first + second + f"{indent}{result}\n"
    start, end = source.whole_lines(branch, *after[-1:])
    changes: list[Change] = [(start, end, text), *torch.changes()]
    title = "Choose with torch.cond"
    return candidate(problem, source, title, changes, _ONE, conditions.parts(source, branch.test))


def _one_line(branch: cst.If) -> bool:
    return isinstance(branch.body, cst.SimpleStatementSuite)


def _function(
    source: Source,
    branch: cst.If,
    name: str,
    side: list[cst.CSTNode],
    passed: list[str],
    outputs: list[str],
    deeper: bool = False,
) -> str | None:
    """A side of the branch as a function; None if its lines cannot be moved."""
    indent = source.indent(branch)
    inner = indent + source.indent_unit
    body = ""
    if side and not isinstance(side[0], cst.BaseSmallStatement):
        inner = source.indent(side[0]) + (source.indent_unit if deeper else "")
        text: str | None = _block_text(source, side)
        text = indented(text, source.indent_unit) if deeper and text is not None else text
        if text is None:
            return None
        body = text
    elif side:
        body = "".join(f"{inner}{_in_one_line(source, s)}\n" for s in side)
    if outputs:
        last = {t: v for s in small(side) for t, v in _last_values(s)}
        values = [f"{n}.clone()" if n not in uses(*side).writes else _fresh(last[n], n) if n in last else n for n in outputs]
        body += f"{inner}return {', '.join(values)}\n"
    elif (returned := small(side)[-1]) and isinstance(returned, cst.Return) and returned.value is not None:
        fresh = _fresh_return(source, returned.value)
        if fresh is not None:
            old = source.text_of(returned)
            at = body.rindex(old)
            body = body[:at] + f"return {fresh}" + body[at + len(old) :]
    return f"{indent}def {name}({', '.join(passed)}):\n{body}"


def _block_text(source: Source, side: list[cst.CSTNode]) -> str:
    """The lines of a side, with the comments above its first statement."""
    leading = getattr(side[0], "leading_lines", ())
    above = "".join(f"{source.indent(side[0])}{c.comment.value}\n" for c in leading if c.comment is not None)
    return above + source.lines_text(*side, changes=conditions.not_in_place(source, *side))


def _in_one_line(source: Source, one: cst.CSTNode) -> str:
    """The text of a statement of `if x: statement`."""
    changes = conditions.not_in_place(source, one)
    return changes[0][2] if changes else source.text_of(one)


def _last_values(one: cst.CSTNode) -> list[tuple[str, cst.BaseExpression]]:
    try:
        return [(name, value) for name, (value, _) in _targets(one)]
    except _Refused:
        return []


def _fresh_return(source: Source, value: cst.BaseExpression) -> str | None:
    """What a side returns, without memory of an operand; None if it needs no change."""
    if isinstance(value, cst.Tuple):
        parts = [e.value for e in value.elements]
        texts = [_fresh(p, source.text_of(p)) for p in parts]
        return ", ".join(texts) if any(isinstance(p, cst.Name | cst.Attribute | cst.Subscript) for p in parts) else None
    text = source.text_of(value)
    return f"{text}.clone()" if isinstance(value, cst.Name | cst.Attribute | cst.Subscript) else None
